"""The moments of a training step, found from a model with fewer layers where many lie behind each other alike.

Of a stretch of layers that repeats, every further repetition adds the same to what the moments above it hold and to
the gradients that those below it have: what a step holds at the first repetitions and at the last is a straight line
in how many there are, and between them nothing is more. Two lengths of the stretch are walked through.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.readings.order import halves
from assay.readings.step import training_memory
from assay.records import dataclass, field, replace
from assay.spec import Model

FIRST = 2  # repetitions that are kept at the beginning of a stretch
LAST = (1, 2)  # and at its end, in the two lengths that are walked through


@dataclass(frozen=True)
class Moment:
    """A moment of a step: its name, the op at work, bytes by part."""

    name: str
    at: str
    parts: Mapping[str, int]


@dataclass(frozen=True)
class Step:
    """The moments of which one is the fullest, and what the forward pass keeps of what the layers make."""

    moments: tuple[Moment, ...] = field(repr=False)
    saved: int
    notes: tuple[str, ...] = ()


def step(model: Model, batch: int, context: int, fold: bool = True, **asked: Any) -> Step:
    """A step of a model, as `training_memory` is asked; walked through whole where `fold` is False or nothing repeats.

    Raises SettingError and SizeError.
    """
    stretch = _repeated(model) if fold and asked.get("recompute", "none") in ("none", "attention", "layer") else None
    if stretch is None:
        made = training_memory(model, batch, context, **asked)
        return Step(tuple(Moment(m.name, m.at, m.parts) for m in made.timeline), made.saved, made.notes)
    start, period, often = stretch
    short, long = (training_memory(_with(model, start, period, often, last), batch, context, **asked) for last in LAST)
    more = often - FIRST - LAST[1]
    before = {moment.name: moment for moment in short.timeline}
    moments = tuple(
        Moment(
            m.name, m.at, {part: _on(before[m.name].parts.get(part, 0), size, more) for part, size in m.parts.items()}
        )
        for m in long.timeline
        if m.name in before
    )
    return Step(moments, _on(short.saved, long.saved, more), long.notes)


def _on(a: int, b: int, more: int) -> int:
    """The straight line through two values that lie one apart, so many further on."""
    return b + more * (b - a)


def _repeated(model: Model) -> tuple[int, int, int] | None:
    """The longest stretch of layers that repeats: where it begins, of how many layers it is, how often it stands."""
    if halves(model)[0] or model.stretch != 1 or any(s.passes > 1 for s in model.segments):
        return None
    order = _layers(model)
    if len({layer for layer, _ in order}) < len(order) or any(s.turns for s in model.segments):
        return None  # several stacks
    kinds = [kind for _, kind in order]
    best: tuple[int, int, int] | None = None
    for period in range(1, min(12, len(kinds) // 5) + 1):
        start = run = 0
        for at in range(period, len(kinds) + 1):
            if at < len(kinds) and kinds[at] == kinds[at - period]:
                run += 1
                continue
            often = run // period + 1
            walked = 2 * (len(kinds) - often * period) + (2 * FIRST + sum(LAST)) * period
            if walked < len(kinds) and (best is None or often * period > best[1] * best[2]):
                best = (start, period, often)
            start, run = at - period + 1, 0
    return best


def _layers(model: Model) -> list[tuple[int, int]]:
    """Layers in order, with the place of the segment that each is of."""
    return sorted((layer, place) for place, segment in enumerate(model.segments) for layer in segment.layers)


def _with(model: Model, start: int, period: int, often: int, last: int) -> Model:
    """The model with fewer repetitions of a stretch."""
    order = _layers(model)
    cut = {layer for layer, _ in order[start + FIRST * period : start + (often - last) * period]}
    segments = []
    for segment in model.segments:
        kept = tuple(layer for layer in segment.layers if layer not in cut)
        if kept or not segment.layers:
            segments.append(replace(segment, layers=kept))
    return replace(model, segments=tuple(segments), layers=len(order) - len(cut))
