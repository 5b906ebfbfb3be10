"""What families of configs have in common: each helper reads the keys that most of them use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from assay.blocks import Body, Branch, Decoder, Embedding, Head, Layer, Norm, Rope, Step
from assay.blocks.stacks import Ending
from assay.errors import SourceError
from assay.records import dataclass, field
from assay.sources.config import Config, fraction_of
from assay.sources.rotations import LENGTH, ORIGINAL, PLAIN, stretched

if TYPE_CHECKING:
    from assay.blocks.encoder_decoder import EncoderDecoder
    from assay.blocks.towers import Multimodal, Tower

Names = Mapping[str, str]
Stack: TypeAlias = "Decoder | EncoderDecoder | Tower | Multimodal"
Made = TypeVar("Made", bound="Decoder | EncoderDecoder | Tower | Multimodal")
Kind = TypeVar("Kind", bound=Hashable)

# what a class is for
CAUSAL, BASE, MASKED, PRETRAINING = "causal", "base", "masked", "pretraining"
SEQUENCE, TOKEN, QUESTION = "sequence-classification", "token-classification", "question-answering"
SEQ2SEQ, ENCODER = "seq2seq", "encoder"


@dataclass(frozen=True)
class Class:
    """A class of a family that has no causal language model: what it is for, how its name ends, what it ends in.

    `end` makes what follows the last layer, or the half that is left of an encoder and a decoder; `names` says where
    that is stored, beside the family's own names.
    """

    role: str
    suffix: str
    end: Callable[[Config, Any], Ending | Stack | None]
    names: Names = field(default_factory=dict)
    bare: bool = False  # the layers' names lack their first part


@dataclass(frozen=True)
class Family:
    """A model_type: how its config is read and where the public implementation keeps its weights.

    A decoder-only family's classes follow from its causal language model; others list theirs in `classes`, the one
    that is read where nothing says which first, all of them named after `stem`.
    """

    model_type: str
    read: Callable[[Config], Stack]
    names: Names
    cls: str  # of the causal language model
    harmless: frozenset[str] = field(default_factory=frozenset)
    also: tuple[str, ...] = ()  # other names that configs give the same class
    classes: tuple[Class, ...] = ()

    @property
    def stem(self) -> str:
        """What the names of listed classes begin with."""
        return self.cls.removesuffix(self.classes[0].suffix)


FAMILIES: dict[str, Family] = {}


def family(
    *model_types: str,
    cls: str,
    names: Names,
    harmless: Sequence[str] = (),
    also: Sequence[str] = (),
    classes: Sequence[Class] = (),
) -> Callable[[Callable[[Config], Made]], Callable[[Config], Made]]:
    """Register a reader under one or more model_types; `harmless` are keys of this family that change no size."""

    def add(read: Callable[[Config], Made]) -> Callable[[Config], Made]:
        for model_type in model_types:
            if model_type in FAMILIES:
                raise SourceError(f"model_type {model_type!r} is registered twice")
            listed = tuple(classes)
            FAMILIES[model_type] = Family(model_type, read, names, cls, frozenset(harmless), tuple(also), listed)
        return read

    return add


APART: dict[Callable[[Config], Any], Mapping[str, str]] = {}


def apart(**figures: str) -> Callable[[Callable[[Config], Made]], Callable[[Config], Made]]:
    """Say of which work a figure of a family is where a config does not settle it, or it is another's: flops="..."."""

    def add(read: Callable[[Config], Made]) -> Callable[[Config], Made]:
        APART[read] = figures
        return read

    return add


def under(prefix: str, names: Names) -> dict[str, str]:
    """The same names below a prefix; ~ stays in front."""
    return {weight: f"~{prefix}{path[1:]}" if path[:1] == "~" else prefix + path for weight, path in names.items()}


ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python": "gelu",
    "gelu_accurate": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "relu2": "relu2",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "linear": "identity",
    "xielu": "xielu",
}


def activation(c: Config, key: str = "hidden_act", default: str | None = "silu") -> str:
    """The activation of the feed-forward layers, by the library's names."""
    return ACTIVATIONS[c.word(key, default, ACTIVATIONS)]


def rms(c: Config, default: float = 1e-6, key: str = "rms_norm_eps") -> Norm:
    """RMSNorm with the config's eps."""
    return Norm(eps=c.positive(key, default))


def layernorm(c: Config, key: str = "layer_norm_epsilon", default: float = 1e-5) -> Norm:
    """LayerNorm with gain and bias and the config's eps."""
    return Norm("layernorm", "gain+bias", c.positive(key, default))


def rope(
    c: Config,
    head_width: int,
    theta: float = 10000.0,
    partial: float = 1.0,
    kind: str = "",
    *,
    theta_key: str = "rope_theta",
    style: str | None = None,
    scaling: Mapping[str, Any] | None = None,
    older: Mapping[str, str] | None = None,
) -> Rope:
    """Rotary positions; `partial_rotary_factor` rotates only a part of each head.

    `kind` is a name of `layer_types` where the parameters may be listed for each; an old flat `rope_scaling`
    then speaks of the full layers. `scaling` is the config class's own table, `older` are names that it gives another
    meaning.
    """
    flat, parameters = c.table("rope_scaling") or {}, c.table("rope_parameters") or {}
    nested = next((table for table in (flat, parameters) if kind in table), None)
    if nested is not None:
        flat, parameters = {}, nested[kind] or {}
        if not isinstance(parameters, dict):
            c.fail("rope_parameters", f"an object or null under {kind}")
    found = {**parameters, **(flat if kind in ("", "full_attention") else {})}
    if scaling is not None and not flat and c.data.get("rope_parameters") is None:
        found = dict(scaling)
    base = c.positive(theta_key, theta) if c.has(theta_key) else theta
    share = c.positive("partial_rotary_factor", partial) if c.has("partial_rotary_factor") else partial
    inner = Config(found, c.where, f"{c.prefix}rope_parameters.")
    word = inner.word("rope_type", inner.word("type", "default"))
    base = inner.positive("rope_theta", base)
    share = inner.positive("partial_rotary_factor", share)
    width = fraction_of(head_width, share) if share <= 1 else 0
    if width < 1:
        (inner if "partial_rotary_factor" in found else c).fail("partial_rotary_factor", "a number above 0, at most 1")
    if width == head_width and width % 2 and width > 4:  # the library lets narrower ones pass
        c.fail("head_dim", f"such that a head's rotated width is even, for rotations turn pairs: it is {int(width)}")
    stretch = (older or {}).get(word, word)
    if stretch not in PLAIN:
        longest = c.size(LENGTH) if LENGTH not in found and c.has(LENGTH) else None
        first = nested is None and stretch in ("llama3", "yarn", "longrope") and c.has(ORIGINAL)
        found |= stretched(found, stretch, longest, c.size(ORIGINAL) if first else None)
    return Rope(None if width == head_width else width, base, _frozen(found or None), style)


def _frozen(value: Any) -> Any:
    """A table as nested tuples, so that specs stay hashable."""
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class Heads(NamedTuple):
    """Query heads, key/value heads and their width: what attention is first given."""

    query: int
    kv: int
    width: int


def heads(
    c: Config,
    width: int,
    n: int | None = None,
    kv: int | None = None,
    head_dim: int | None = None,
    *,
    width_key: str = "hidden_size",
) -> Heads:
    """The heads of a config in today's words; `n`, `kv`, `head_dim` are the config class's defaults.

    An absent or null `num_key_value_heads` is the number of heads unless `kv` says otherwise;
    an absent or null `head_dim` is width / heads unless `head_dim` says otherwise.
    """
    query = c.size("num_attention_heads", n)
    groups = c.maybe("num_key_value_heads", kv) or query
    c.divides("num_attention_heads", query, "num_key_value_heads", groups)
    per: int | None = c.maybe("head_dim", head_dim)
    if per is None:
        per = c.divides(width_key, width, "num_attention_heads", query)
    c.read |= {"num_key_value_heads": groups, "head_dim": per}  # what another name may say again
    return Heads(query, groups, per)


def no_own_width(c: Config, width: int, h: Heads) -> None:
    """Refuse a head width but that of the model over its heads, for classes that take no other."""
    if h.query * h.width != width:
        c.fail("head_dim", f"hidden_size / num_attention_heads, {int(width)} / {int(h.query)}, for this model_type")


def depth(c: Config, default: int | None = None, key: str = "num_hidden_layers") -> int:
    """How many layers."""
    return c.depth(key, default)


def windows(
    c: Config,
    layers: int,
    default: Callable[[int], str],
    kinds: Sequence[str] = ("full_attention", "sliding_attention"),
) -> list[str]:
    """`layer_types`, or what the config class derives for layer i where the key is absent."""
    listed = c.sequence("layer_types", lambda v: v in kinds, f"one of {', '.join(kinds)}", layers)
    return listed if listed is not None else [default(i) for i in range(layers)]


# what configs call a layer of experts, in a report's words
WORDS = {"sparse": "experts", "moe": "experts"}


def label(*words: str | None) -> str:
    """The name of a kind of layer in a report: the words of a config, shortened."""
    return ", ".join(WORDS.get(word, word).removesuffix("_attention") for word in words if word)


def by_kind(kinds: Sequence[Kind], make: Callable[[Kind], Layer]) -> tuple[Layer, ...]:
    """A layer for each kind in turn, a name or a tuple; layers of one kind are one object."""
    made = {kind: make(kind) for kind in dict.fromkeys(kinds)}
    return tuple(made[kind] for kind in kinds)


def pre_norm(mixer: Body, mlp: Body, norm: Norm, kind: str = "", scale: float | None = None) -> Layer:
    """x + mixer(norm(x)), then x + mlp(norm(x))."""
    return Layer((Step((Branch(mixer, norm),), scale=scale), Step((Branch(mlp, norm),), scale=scale)), label(kind))


def sandwich(mixer: Body, mlp: Body, norm: Norm, kind: str = "") -> Layer:
    """x + norm(mixer(norm(x))), then the same around the mlp (Gemma 2)."""
    return Layer((Step((Branch(mixer, norm, norm),)), Step((Branch(mlp, norm, norm),))), label(kind))


def inner_post_norm(mixer: Body, mlp: Body, norm: Norm, kind: str = "") -> Layer:
    """x + norm(mixer(x)), then x + norm(mlp(x)) (OLMo 2)."""
    return Layer((Step((Branch(mixer, None, norm),)), Step((Branch(mlp, None, norm),))), label(kind))


def parallel(mixer: Body, mlp: Body, norm: Norm, kind: str = "") -> Layer:
    """x + mixer(norm(x)) + mlp(norm(x)), one norm for both (GPT-J)."""
    return Layer((Step((Branch(mixer), Branch(mlp)), before=norm),), label(kind))


def labels(c: Config, default: int = 2) -> int:
    """How many labels a classifier has: those of `id2label`, else `num_labels`, else the config class's number."""
    table = c.table("id2label")
    if table is not None:
        if not table:
            c.fail("id2label", "an object with at least one label")
        return len(table)
    return c.size("num_labels", default)


def stack(
    c: Config,
    layers: tuple[Layer, ...],
    width: int,
    norm: Norm | None,
    *,
    vocab: int | None = None,
    tied: bool = False,
    trained: int | None = None,
    embedding_scale: float | None = None,
    **head: Any,
) -> Decoder:
    """Embedding, layers, final norm and head under today's keys; `tied` and `vocab` are the config class's defaults."""
    rows = c.size("vocab_size", vocab)
    shared = c.flag("tie_word_embeddings", tied)
    return Decoder(
        Embedding(rows, width, scale=embedding_scale),
        layers,
        Head(rows, width, shared, norm=norm, **head),
        trained=c.maybe("max_position_embeddings", trained),
    )


def predicting(c: Config, made: Decoder, layer: Layer, norm: Norm) -> Decoder:
    """The same with `num_nextn_predict_layers` modules for further tokens, where they are asked for."""
    key = "num_nextn_predict_layers"
    if not c.mtp:
        c.skip(key)
        return made
    from assay.blocks.multi_token import FurtherDecoder, FurtherLayer

    count = c.depth(key)
    module = FurtherLayer(layer.steps, "further prediction", made.embedding.vocab, made.width, norm)
    c.notes.append("each module for further tokens stores the embedding and the head once more, as its files do")
    return FurtherDecoder(
        made.embedding, made.layers, made.head, made.limit, made.trained, made.names, (module,) * count
    )
