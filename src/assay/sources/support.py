"""What is read and what is refused: each model_type with its public class, what is exact, and the tests that say so."""

from __future__ import annotations

from collections.abc import Mapping

from assay.records import dataclass, replace
from assay.sources.classes import offered
from assay.sources.families import FAMILIES, Family
from assay.sources.families.common import APART
from assay.sources.types import OTHER_KINDS, RENAMED

FIGURES = ("parameters", "tensors", "flops", "cache")

# by what a family's reader returns; what is not here is a decoder
_KINDS = {
    "Encoder": "encoder",
    "EncoderDecoder": "encoder-decoder",
    "Multimodal": "text model with towers",
    "Tower": "vision transformer",
}


@dataclass(frozen=True)
class Support:
    """A model_type that is read.

    `kind` is what the architecture is; `cls` the public class that is read where nothing says which, `classes` all of
    them; `says` where it is from and what is its own; `exact` the figures that follow from a config and are held by a
    test, `apart` what others are of; `tests` what holds each. `runs` is true where `assay.build` makes a module of it,
    `not_run` why not, or why its towers are left out.
    """

    model_type: str
    kind: str
    cls: str
    classes: tuple[str, ...]
    says: str
    exact: tuple[str, ...]
    apart: Mapping[str, str]
    tests: Mapping[str, tuple[str, ...]]
    runs: bool
    not_run: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """A model_type that is refused by name, and what it is."""

    model_type: str
    says: str


def supported() -> list[Support]:
    """Every model_type that is read, by kind and name, those that are read as another among them."""
    held, unrun = _gathered("witnesses.json"), _gathered("runs.json")
    own = [
        _support(family, held.get(family.model_type, {}), unrun.get(family.model_type, {}))
        for family in FAMILIES.values()
    ]
    by_type = {one.model_type: one for one in own}
    renamed = [_renamed(name, by_type[renamed.to]) for name, renamed in RENAMED.items() if renamed.to in by_type]
    order = ["decoder", *_KINDS.values()]
    return sorted([*own, *renamed], key=lambda one: (order.index(one.kind), one.model_type.lower()))


def refused() -> list[Refused]:
    """Every model_type that is known and not read, by name."""
    return [Refused(name, OTHER_KINDS[name]) for name in sorted(OTHER_KINDS, key=str.lower) if name not in FAMILIES]


def _support(family: Family, tests: Mapping[str, list[str]], unrun: Mapping[str, list[str]]) -> Support:
    read = family.read
    apart = APART.get(read, {})
    return Support(
        family.model_type,
        _KINDS.get(read.__annotations__["return"], "decoder"),
        family.cls,
        tuple(offered(family).values()),
        " ".join((read.__doc__ or "").partition("\n\n")[0].split()),
        tuple(figure for figure in FIGURES if figure not in apart and tests.get(figure)),
        apart,
        {figure: tuple(tests.get(figure, ())) for figure in FIGURES},
        "model" not in unrun,
        tuple(why for reasons in unrun.values() for why in reasons),
    )


def _renamed(name: str, to: Support) -> Support:
    return replace(to, model_type=name, says=f"Read as {to.model_type}.")


def _gathered(name: str) -> dict[str, dict[str, list[str]]]:
    """What `make docs` writes for each model_type: tests by figure, from their own tables; why a model, or its towers,
    do not run, from building them.
    """
    import json
    from pathlib import Path

    held: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name(name).read_text("utf-8"))
    return held
