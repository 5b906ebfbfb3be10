"""The blocks that a description may hold: their tables, defaults that depend on more than the block, and checks.

A block becomes describable by one line in `BLOCKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from assay.blocks import Norm, Rope
from assay.blocks.mlp import FUSED
from assay.blocks.stacks import Scaled
from assay.errors import SourceError
from assay.records import dataclass, defaults_of, field, replace
from assay.sources.fields import Section, build
from assay.sources.rotations import grown

NORMS = {"rmsnorm": Norm(), "layernorm": Norm("layernorm", "gain+bias")}


@dataclass(frozen=True)
class Role:
    """What a stack of layers is for: an encoder's see every token and keep nothing."""

    encodes: bool = False
    source: int | None = None  # width of what an encoder gives, where layers attend to it
    span: int | None = None  # how far vectors of relative positions reach to either side


@dataclass(frozen=True)
class Around:
    """What a block finds around it: the model's width, its layer's norm and positions, the stack that it is in."""

    width: int
    norm: Norm
    positions: Rope | str | None
    role: Role = Role()
    holds: bool = True  # a learned bias of the distance is kept in this layer


@dataclass(frozen=True)
class Described:
    """A block that a table of its name describes.

    `place` is its module below `blocks` and its name there, imported where a description holds it. `fill` checks what
    fields say together, and gives those whose default depends on more than the block; `hidden` are fields that no
    table sets, `only` those that one may where they are few; `biases` are the letters that `bias` may hold; `needs`
    names fields that say nothing without another. `richer` is the block of a table that sets a field that only it
    has. `encodes` where it has no order in time, so that an encoder's layer may hold it.
    """

    place: str
    fill: Callable[[Section, Around], dict[str, Any]] = lambda c, around: {}
    hidden: tuple[str, ...] = ("positions",)
    biases: str = ""
    needs: Mapping[str, str] = field(default_factory=dict)
    richer: str = ""
    only: tuple[str, ...] = ()
    encodes: bool = False

    @property
    def block(self) -> type[Any]:
        """The block's class."""
        return _imported(self.place)

    def chosen(self, c: Section, around: Around) -> type[Any]:
        """The class that a table asks for."""
        if self.place == "attention.Attention" and around.role.encodes and c.data.get("sees", "all") == "past":
            return _imported("towers.Causal")
        more = set(self.fields()) - set(defaults_of(self.block)) if self.richer else set()
        return _imported(self.richer) if more & set(c.data) else self.block

    def fields(self) -> list[str]:
        """What a table may set."""
        named = defaults_of(_imported(self.richer) if self.richer else self.block)
        return [name for name in named if (name in self.only if self.only else name not in self.hidden)]


def _imported(place: str) -> type[Any]:
    """A class of `blocks` by its module and name."""
    module, _, name = place.partition(".")
    found: type[Any] = getattr(import_module(f"assay.blocks.{module}"), name)
    return found


def _attention(c: Section, around: Around) -> dict[str, Any]:
    """As many key/value heads as heads, and the width shared among the heads, unless the table says otherwise."""
    heads = c.size("heads")
    groups = c.size("kv_heads", heads)
    c.divides("heads", heads, "kv_heads", groups)
    if not c.has("head_width") and around.width % heads:
        raise SourceError(
            f"{c.where}: width is {int(around.width)}; it must be a multiple of {c.path('heads')}, {int(heads)}, "
            f"where {c.path('head_width')} is not given"
        )
    each = c.size("head_width", around.width // heads)
    _turns(c, around.positions, each)
    if _said(c, "window") and _said(c, "chunk"):
        c.fail("chunk", f'"none" where {c.path("window")} is set')
    given = {"heads": heads, "kv_heads": groups, "head_width": each, "positions": around.positions}
    return {**given, "sees": _seen(c, around), "relative_here": c.flag("relative_here", around.holds)}


def _seen(c: Section, around: Around) -> str:
    """What tokens see: what came before, or in an encoder everything; limits are of one or of the other."""
    seen = c.word("sees", "all" if around.role.encodes else "past", ("past", "all"))
    if seen == "all" and not around.role.encodes:
        c.fail("sees", "past in a decoder, which keeps what it has seen")
    for key, other in (("window", "reach"), ("chunk", "reach"), ("reach", "window")):
        if _said(c, key) and (key == "reach") != (seen == "all"):
            raise SourceError(f"{c.where}: {c.path(key)} says nothing where sees is {seen}; {other} does")
    if seen == "past" and around.role.encodes and _said(c, "window"):
        raise SourceError(f"{c.where}: {c.path('window')} is not described in an encoder")
    return seen


def _disentangled(c: Section, around: Around) -> dict[str, Any]:
    """Scores of contents and of distances, whose vectors the embedding holds."""
    if around.role.span is None:
        raise SourceError(f"{c.where}: {c.prefix.rstrip('.')} reads relative positions; embedding.span says how far")
    terms = c.sequence("terms", lambda v: v in ("c2p", "p2c"), "c2p, p2c")
    found = ("c2p", "p2c") if terms is None else tuple(dict.fromkeys(terms))
    return {**_attention(c, around), "terms": found, "span": around.role.span}


def _cross(c: Section, around: Around) -> dict[str, Any]:
    """As the layer's own attention, unless the table says otherwise."""
    heads = c.size("heads")
    groups = c.size("kv_heads", heads)
    c.divides("heads", heads, "kv_heads", groups)
    each = c.size("head_width", around.width // heads)
    source = around.role.source
    return {
        "heads": heads,
        "kv_heads": groups,
        "head_width": each,
        "memory": None if source == around.width else source,
    }


def _recurrent_mlp(c: Section, around: Around) -> dict[str, Any]:
    return {"width": around.width}


def _lru(c: Section, around: Around) -> dict[str, Any]:
    """Heads share the inner width evenly."""
    c.divides("inner", c.size("inner"), "heads", c.size("heads"))
    return {}


def _turns(c: Section, positions: Rope | str | None, each: int) -> None:
    """A rotation turns pairs within a head."""
    if isinstance(positions, Rope) and positions.width is not None and (positions.width > each or positions.width % 2):
        key = getattr(positions.width, "key", "positions.width")
        raise SourceError(
            f"{c.where}: {key} is {int(positions.width)}; "
            f"it must be an even integer of at most the head width, {int(each)}"
        )


def _latent(c: Section, around: Around) -> dict[str, Any]:
    """Rotary positions or none."""
    if not isinstance(around.positions, Rope | None):
        raise SourceError(
            f"{c.where}: positions is {around.positions!r}; with latent attention it must be rope or none"
        )
    given: dict[str, Any] = {"positions": around.positions}
    if "scale" not in c.data:  # a scaling of the rotation may change it
        scaling = dict(around.positions.scaling or ()) if around.positions is not None else {}
        table = Section(scaling, c.where, "positions.scaling.", c.origins)
        given["scale"] = grown(table, c.size("plain") + c.size("rotary"))
    indexer = c.child("indexer")
    if indexer.data:
        kind = _imported("sparse.Indexer")
        indexer.known(name if name != "rotary" else "style" for name in defaults_of(kind))
        rotary, width = c.size("rotary"), indexer.size("width")
        for key in ("top", "query_rank"):
            if not _said(c, key):
                c.fail(key, f"an integer of at least 1 where {c.path('indexer')} is set")
        if rotary > width:
            indexer.fail("width", f"an integer of at least {c.path('rotary')}, {int(rotary)}")
        style = None if indexer.word("style", "halves", ("halves", "interleaved")) == "halves" else "interleaved"
        turned = None if around.positions is None else replace(around.positions, width=rotary, style=style)
        norm = indexer.block("norm", Norm, NORMS, defaults_of(kind)["norm"])
        given["indexer"] = kind(indexer.size("heads"), width, turned, norm)
    if _said(c, "window") and _said(c, "top"):
        c.fail("top", f'"none" where {c.path("window")} is set')
    return given


def _said(c: Section, key: str) -> bool:
    """The table sets the key to more than nothing."""
    return c.data.get(key, False) not in (False, "none", "")


def _feed_forward(c: Section, around: Around) -> dict[str, Any]:
    """Some activations take the gate and the other half at once."""
    if c.data.get("activation") in FUSED and c.data.get("gated") is False:
        c.fail("gated", f"true with the activation {c.data['activation']}")
    return {}


def _mixture(c: Section, around: Around) -> dict[str, Any]:
    """No more experts are chosen than there are, nor groups kept; groups are alike."""
    experts = c.size("experts")
    if c.size("chosen") > experts:
        c.fail("chosen", f"an integer of at most {c.path('experts')}, {int(experts)}")
    router = c.child("router")
    groups = router.size("groups", 1)
    if experts % groups:
        router.fail("groups", f"a divisor of {c.path('experts')}, {int(experts)}")
    if router.size("keep_groups", 1) > groups:
        router.fail("keep_groups", f"an integer of at most {router.path('groups')}, {int(groups)}")
    return _feed_forward(c, around)


def _shared(many: str, few: str) -> Callable[[Section, Around], dict[str, Any]]:
    """Heads that are shared among others evenly."""

    def fill(c: Section, around: Around) -> dict[str, Any]:
        c.divides(many, c.size(many), few, c.size(few, 1 if few == "groups" else None))
        return {}

    return fill


_WITH_GATE = {"gate_bias": "gate", "gate_activation": "gate"}
_WITH_NORM = {"qk_norm_over": "qk_norm", "norm_late": "qk_norm"}
_WITH_SHARED = {"shared_gate": "shared", "shared_bias": "shared", "shared_activation": "shared"}

# what cross-attention has of attention's fields
CROSS = ("heads", "kv_heads", "head_width", "value_width", "bias", "scale", "softcap")
_ATTENTION = {**_WITH_GATE, **_WITH_NORM, "keep_all": "window", "relative_here": "relative"}

BLOCKS: dict[str, Described] = {
    "attention": Described("attention.Attention", _attention, ("positions",), "qkvo", _ATTENTION, encodes=True),
    "disentangled": Described(
        "disentangled.Disentangled", _disentangled, ("positions", "span"), "qkvo", _WITH_NORM, encodes=True
    ),
    "latent": Described("latent.Latent", _latent, ("positions", "form", "grown"), "ao", richer="sparse.SparseLatent"),
    "mamba": Described("recurrent.Mamba", hidden=("heads",)),
    "mamba2": Described("recurrent.Mamba2", _shared("heads", "groups"), richer="recurrent.ScaledMamba2"),
    "gated_delta": Described("delta.GatedDelta", _shared("value_heads", "key_heads")),
    "kimi_delta": Described("delta.KimiDelta"),
    "lightning": Described("linear.Lightning"),
    "rg_lru": Described("linear.GatedLru", _lru),
    "mlstm": Described("linear.MatrixLstm"),
    "rwkv": Described("linear.Rwkv"),
    "short_conv": Described("recurrent.ShortConv"),
    "cross": Described("attention.CrossAttention", _cross, biases="qkvo", only=CROSS),
    "mlp": Described("mlp.Mlp", _feed_forward, biases="gud", richer="mlp.ScaledMlp", encodes=True),
    "moe": Described("moe.Moe", _mixture, biases="gud", needs=_WITH_SHARED, encodes=True),
    "rwkv_mlp": Described("linear.RwkvMlp", _recurrent_mlp, ("width",)),
}
FACTORS = ("input_scale", "output_scale")  # of any block


def read_block(c: Section, described: Described, around: Around) -> Any:
    """A block from its table. Raises SourceError."""
    c.known((*described.fields(), *FACTORS))
    if around.role.encodes and not described.encodes:
        fit = ", ".join(name for name, one in BLOCKS.items() if one.encodes)
        raise SourceError(f"{c.where}: {c.prefix.rstrip('.')} goes from token to token; an encoder's layers hold {fit}")
    for key, other in described.needs.items():
        if _said(c, key) and not _said(c, other):
            raise SourceError(f"{c.where}: {c.path(key)} says nothing where {c.path(other)} is not set")
    made = build(
        described.chosen(c, around),
        c,
        described.fill(c, around),
        words={Norm: NORMS},
        norm=around.norm,
        letters=described.biases,
        skip=described.hidden,
    )
    before, after = (c.number(key) for key in FACTORS)
    return made if before is None and after is None else Scaled(made, before, after, made.tag)
