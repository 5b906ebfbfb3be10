"""Columns beside those of the report, counted where they are asked for by their group's name.

What attention is made of and published formulas are counted of all points at once; memory, a training step and
generated tokens take integers and go from point to point.
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
SLOW = ("generate", "memory", "training")  # counted point by point
STRIDE = 64  # points of these at a time, so that progress is seen

Given = Mapping[str, Any]


@dataclass(frozen=True)
class Points:
    """Some points of a sweep: how many, their sizes as integers or arrays, their words, and the count of them."""

    model: Model
    counted: Count
    given: Given
    words: Given
    many: int

    def at(self, index: int) -> dict[str, Any]:
        """The sizes of one point."""
        return {name: int(v[index]) if hasattr(v, "dtype") else v for name, v in self.given.items()}


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


def beside(also: Collection[str], points: Points) -> dict[str, Any]:
    """The columns of some groups."""
    return {f"{name}.{key}": value for name in also for key, value in BESIDE[name](points).items()}


def roomy(model: Model, given: Given) -> dict[str, Any]:
    """The sizes of some points, with prompts that leave room for new tokens where nothing says how long they are."""
    if "generate" not in given or {"tokens", "past", "context"} & given.keys():
        return dict(given)
    new = given["generate"]
    if not hasattr(new, "dtype"):
        return {**given, "tokens": default_tokens(model, new)}
    tokens = [default_tokens(model, int(one)) for one in new.tolist()]
    return {**given, "tokens": _array(tokens, new.dtype)}


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

    def one(sizes: dict[str, Any]) -> dict[str, int]:
        new = sizes.pop("generate")
        made = generate(points.model, new, **sizes, **points.words)
        return {
            "flops": made.total,
            "prefill": made.prefill.total,
            "steps": made.steps.total,
            "cache_bytes": made.cache.bytes,
            "without_cache": made.uncached_total,
        }

    return _points(one, points) if "generate" in points.given else {}


def _memory(points: Points) -> dict[str, Any]:
    from assay.readings.memory import memory

    known = {name: points.words[name] for name in ("weights", "cache", "state", "latent") if name in points.words}

    def tell(sizes: dict[str, Any]) -> dict[str, Any]:
        made = memory(points.model, logits=points.counted.setting.logits, **known, **sizes)
        return {"total": made.total, **{part: made.part(part) for part in PARTS}}

    return at_each(points.given, tell)


def _training(points: Points) -> dict[str, Any]:
    """A step of AdamW in bfloat16 as the public implementation runs it, attention fused."""
    from assay.readings.step import training_memory

    def one(sizes: dict[str, Any]) -> dict[str, int]:
        others = sizes.keys() - {"batch", "tokens"}
        if others:
            raise SettingError(
                f"training takes batch and tokens; {', '.join(sorted(others))} cannot be swept beside it"
            )
        made = training_memory(points.model, **sizes)
        return {"peak": made.peak.bytes, "resident": made.resident, "saved": made.saved, "loss": made.loss}

    return _points(one, points)


def _points(one: Callable[[dict[str, Any]], dict[str, int]], points: Points) -> dict[str, Any]:
    """Columns of what is counted point by point; one value where no size moves."""
    if not any(hasattr(value, "dtype") for value in points.given.values()):
        return dict(one(dict(points.given)))
    rows = [one(points.at(index)) for index in range(points.many)]
    return {name: _array([row[name] for row in rows], object) for name in rows[0]}


def _array(listed: list[Any], sort: Any) -> Any:
    import numpy

    return numpy.array([*listed, None], dtype=object)[:-1].astype(sort)


BESIDE: dict[str, Callable[[Points], dict[str, Any]]] = {
    "attention": _attention,
    "published": _published,
    "generate": _generate,
    "memory": _memory,
    "training": _training,
}
