"""Columns beside those of the report, counted where they are asked for by their group's name.

All are told of many points at once: sums in closed form of arrays as they are, and the moments of a pass, whose order
hangs on sizes, of all points at which a pass takes the same course (`at_each`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from assay.errors import SettingError
from assay.points import at_each
from assay.readings.attention import split
from assay.readings.count import Count
from assay.readings.setting import default_tokens
from assay.records import dataclass
from assay.spec import Model

# sizes that a sweep takes beside those of a count, with the least that each may be
MORE = {"generate": 1}
PIECES = ("projections", "scores", "softmax", "output")  # of attention, taken apart
PARTS = ("weights", "cache", "states", "activations", "logits")  # of memory
ROOM = {"memory": 2**21, "training": 2**17}  # points at a time x ops of a model: some arrays are held for each op

Given = Mapping[str, Any]


@dataclass(frozen=True)
class Points:
    """Some points of a sweep: how many, their sizes as integers or arrays, their words, and the count of them."""

    model: Model
    counted: Count
    given: Given
    words: Given
    many: int


def groups(names: Collection[str]) -> tuple[str, ...]:
    """The groups that some names of columns are of."""
    heads = {name.strip().partition(".")[0] for name in names}
    return tuple(group for group in BESIDE if group in heads)


def checked(also: Collection[str]) -> tuple[str, ...]:
    """Groups asked for by name. Raises SettingError."""
    for name in also:
        if name not in BESIDE:
            raise SettingError(f"also is {name!r}; known: {', '.join(BESIDE)}")
    return tuple(also)


def stride(model: Model, also: Collection[str], most: int) -> int:
    """How many points are counted at once, so that no more than some hundred MB are held."""
    ops = sum(len(segment.block.ops) for segment in model.segments)
    return max(1, min([most, *(ROOM[group] // max(1, ops) for group in also if group in ROOM)]))


def beside(also: Collection[str], points: Points) -> dict[str, Any]:
    """The columns of some groups."""
    return {f"{name}.{key}": value for name in also for key, value in BESIDE[name](points).items()}


def roomy(model: Model, given: Given) -> dict[str, Any]:
    """The sizes of some points, with prompts that leave room for new tokens where nothing says how long they are."""
    if "generate" not in given or {"tokens", "past", "context"} & given.keys():
        return dict(given)
    return {**given, "tokens": default_tokens(model, given["generate"])}


def _attention(points: Points) -> dict[str, Any]:
    made = split(points.model, points.counted.setting)
    return {piece: getattr(made, piece) for piece in PIECES}


def _published(points: Points) -> dict[str, Any]:
    """What formulas of papers say of a token, and the ratio to the count."""
    from assay.readings.published import formulas

    found = {}
    for formula in formulas(points.model, points.counted):
        name = formula.name.lower()
        found[f"{name}.flops_per_token"] = formula.value
        found[f"{name}.ratio"] = formula.value / formula.ours
    return found


def _generate(points: Points) -> dict[str, Any]:
    from assay.readings.generate import generate

    sizes = dict(points.given)
    if "generate" not in sizes:
        return {}
    made = generate(points.model, sizes.pop("generate"), **sizes, **points.words)
    return {
        "flops": made.total,
        "prefill": made.prefill.total,
        "steps": made.steps.total,
        "cache_bytes": made.cache.bytes,
        "without_cache": made.uncached_total,
    }


def _memory(points: Points) -> dict[str, Any]:
    from assay.readings.memory import memory

    known = {name: points.words[name] for name in ("weights", "cache", "state", "latent") if name in points.words}

    def tell(sizes: dict[str, Any]) -> dict[str, Any]:
        made = memory(points.model, logits=points.counted.setting.logits, **known, **sizes)
        return {"total": made.total, **{part: made.part(part) for part in PARTS}}

    return at_each(points.given, tell)


def _training(points: Points) -> dict[str, Any]:
    """A step of AdamW in bfloat16 as the public implementation runs it, attention fused."""
    from assay.studies.steps import step

    others = points.given.keys() - {"batch", "tokens"}
    if others:
        raise SettingError(f"training takes batch and tokens; {', '.join(sorted(others))} cannot be swept beside it")

    def tell(sizes: dict[str, Any]) -> dict[str, Any]:
        made = step(points.model, sizes.get("batch", 1), sizes.get("tokens"))
        return {"peak": made.peak.bytes, "resident": made.resident, "saved": made.saved, "loss": made.loss}

    return at_each(points.given, tell)


BESIDE: dict[str, Callable[[Points], dict[str, Any]]] = {
    "attention": _attention,
    "published": _published,
    "generate": _generate,
    "memory": _memory,
    "training": _training,
}
