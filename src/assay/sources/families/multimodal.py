"""What readers of models with towers share: the text model of a nested config, its place, images of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.blocks import Decoder, Final, Head
from assay.blocks.ends import Norm
from assay.blocks.stacks import Ending
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import BASE, CAUSAL, Class, Family, Names
from assay.spec import Op, Sight, ops

SIDE = 1024  # pixels of an image of any size, where nothing is said of it
ALIGNED = 4  # tokens that divide its sides, so that windows of them are whole


def any_size(pixels: int, patches: int) -> Sight:
    """Images of any size, a token for each square of so many pixels a side, `patches` of the tower for each token."""
    step = ALIGNED * pixels
    side = max(1, SIDE // step) * step
    return Sight(tokens=(side // pixels) ** 2, patches=patches, says=f"one of {side:,} x {side:,} pixels")


def text_of(
    c: Config,
    usual: str,
    *,
    tied: bool | None,
    read_as: Mapping[str, tuple[str, Mapping[str, Any]]] | None = None,
    whole: Mapping[str, Any] | None = None,
    key: str = "text_config",
    either: bool = False,
    own: Family | None = None,
) -> tuple[Decoder, Names]:
    """The model of text under `key`, and the names of its weights by themselves.

    `usual` is its type where the config does not say; `read_as` has the types whose layers another type has, with
    their own defaults, `whole` those of a config that has nothing under `key`. Whether the head is tied is for the
    whole config to say, by default `tied`, None where it never is; where `either`, the nested one may say so too.
    `own` is a text model that there is nowhere else, of the type `usual`.
    Raises SourceError for a type that is not read.
    """
    from assay.sources.families import FAMILIES

    inner = c.child(key)
    model_type = inner.word("model_type", usual, () if own is None else (usual,))
    to, values = (read_as or {}).get(model_type, (model_type, {}))
    family = FAMILIES.get(to) if own is None else own
    if family is None or family.classes:
        inner.fail("model_type", f"a type of text model that is read, {usual} for one")
    inner.absent(**{**values, **(whole or {} if not c.has(key) else {})})
    c.skip("tie_word_embeddings")
    inner.skip("tie_word_embeddings")
    shared = c.flag("tie_word_embeddings", tied) if tied is not None else False
    if either and inner.flag("tie_word_embeddings", False):
        shared = True
    if shared and not c.has("tie_word_embeddings"):
        return shared_head(c, *read_inner(c, inner, family))
    inner.data = {**inner.data, "tie_word_embeddings": shared}
    return read_inner(c, inner, family)


def shared_head(c: Config, made: Decoder, names: Names) -> tuple[Decoder, Names]:
    """The text model with its head tied, as the class has it; a note where by itself it would have one of its own."""
    head = made.head
    if not isinstance(head, Head) or head.tied:
        return made, names
    c.notes.append(
        f"tie_word_embeddings is missing: the class shares the head with the embedding; older files may hold a head of "
        f"its own, {head.vocab * head.width:,} parameters more"
    )
    return replace(made, head=replace(head, tied=True)), names


def read_inner(c: Config, inner: Config, family: Family) -> tuple[Decoder, Names]:
    """A text model of a family, read from the config that holds its keys."""
    made = family.read(inner)
    if inner is not c:
        inner.skip(*family.harmless)
        c.notes += inner.notes
    assert isinstance(made, Decoder)
    return replace(made, names=None), family.names if made.names is None else made.names


def moved(names: Names, to: str = "model.language_model.", base: str = "model.") -> dict[str, str]:
    """The names of a text model within another: its base lies elsewhere, its head beside it."""

    def place(path: str) -> str:
        mark, path = path[:1] * path.startswith("~"), path.removeprefix("~")
        return mark + (to + path.removeprefix(base) if path.startswith(base) else path)

    return {weight: place(path) for weight, path in names.items()}


def without(prefix: str, names: Names) -> dict[str, str]:
    """The names of a base model: they lack a prefix."""
    return moved(names, "", prefix)


def headless(made: Multimodal) -> Ending | None:
    """Where the text model without a head ends; an encoder's last norm is none of its head's."""
    head = made.text.head
    return Final(head.width, head.narrow, head.norm) if isinstance(head, Head) else None


def base(c: Config, made: Multimodal) -> Multimodal:
    """The model without a head, under names of its own."""
    towers = tuple(replace(tower, names=without("model.", tower.names or {})) for tower in made.towers)
    text = made.text.ending(headless(made))
    return replace(made, text=text, towers=towers, names=without("model.", made.names or {}))


CLASSES = (
    Class(CAUSAL, "ForConditionalGeneration", lambda c, made: made.text.head),
    Class(BASE, "Model", base),
)


def beside(
    c: Config, text: tuple[Decoder, Names], towers: Sequence[Tower], sight: Sight | None = None, **names: str
) -> Multimodal:
    """A text model below `model.language_model`, and its towers."""
    decoder, own = text
    for key in ("vision_config", "audio_config"):
        if key in c.children:
            c.children[key].skip("tie_word_embeddings")  # a tower has none
    made = tuple(replace(tower, part="tower") for tower in towers)
    return Multimodal(decoder, made, sight or Sight(), {**moved(own), **names})


def placed(c: Config, default: int | None, *keys: str) -> Sight:
    """What is seen or heard stands in the places of tokens of one id; `default` is the class's, None where it has none.

    Raises SourceError for an id that is no integer.
    """
    keys = keys or ("image_token_id", "image_token_index")
    c.skip(*keys)
    value = next((c.data[key] for key in keys if c.has(key)), default)
    if value is not None and type(value) is not int:
        c.fail(keys[0], "an integer")
    return Sight(token=value)


def projector(
    lines: Sequence[str], norm: Norm | None = None, source: str = "x[b n d]", name: str = "projector", **sizes: int
) -> Drawn:
    """Matrices between a tower and the text model, behind a norm of `source` where there is one."""
    made: list[Op] = []
    if norm is not None:
        made += norm.ops("x", "x", "merge", source.partition("[")[2][:-1])
    return Drawn(name, (*made, *ops("tower", *lines)), sizes)
