"""The moments of a training step, found from a model with fewer layers where many lie behind each other alike.

Of a stretch of layers that repeats, every further repetition adds the same to what the moments above it hold and to
the gradients that those below it have: what a step holds at the first repetitions and at the last is a straight line
in how many there are, and between them nothing is more. Two lengths of each stretch are walked through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from assay.readings.step import TrainingMemory, training_memory
from assay.records import dataclass, field, replace
from assay.size import Size, largest
from assay.spec import Model

FIRST = 2  # repetitions that are kept at the beginning of a stretch
LAST = (1, 2)  # and at its end, in the two lengths that are walked through


@dataclass(frozen=True)
class Moment:
    """A moment of a step: its name, the op at work, bytes by part."""

    name: str
    at: str
    parts: Mapping[str, Size]

    @property
    def bytes(self) -> Size:
        """All parts together."""
        return sum(self.parts.values(), start=0)


@dataclass(frozen=True)
class Step:
    """The moments of which one is the fullest, and what is kept for the backward pass: `saved` of what the layers make,
    `loss` of what head and loss make.
    """

    moments: tuple[Moment, ...] = field(repr=False)
    saved: Size
    loss: Size
    notes: tuple[str, ...] = ()

    @property
    def resident(self) -> Size:
        """What stays from step to step."""
        return self.moments[0].bytes

    @property
    def peak(self) -> Moment:
        """The fullest moment."""
        return self.moments[largest([moment.bytes for moment in self.moments])]


@dataclass(frozen=True)
class Stretch:
    """Layers of a stack that repeat: where they begin in it, how many they are, how often they stand there."""

    stack: tuple[int, ...]  # places of its segments
    start: int
    period: int
    often: int


def step(model: Model, batch: Size, context: Size | None, fold: bool = True, **asked: Any) -> Step:
    """A step of a model, as `training_memory` is asked; walked through whole where `fold` is False or nothing repeats.

    Raises SettingError and SizeError.
    """
    found = _stretches(model) if fold and asked.get("recompute", "none") in ("none", "attention", "layer") else []
    if not found:
        made = training_memory(model, batch, context, **asked)
        return Step(tuple(Moment(m.name, m.at, m.parts) for m in made.timeline), made.saved, made.loss, made.notes)
    long = training_memory(_with(model, found, None), batch, context, **asked)
    shorter = [(one, training_memory(_with(model, found, one), batch, context, **asked)) for one in found]
    before = [({m.name: m.parts for m in short.timeline}, one.often - FIRST - LAST[1]) for one, short in shorter]
    moments = []
    for m in long.timeline:
        if all(m.name in parts for parts, _ in before):
            steps = [(parts[m.name], more) for parts, more in before]
            on = {
                p: size + sum((more * (size - parts.get(p, 0)) for parts, more in steps), start=0)
                for p, size in m.parts.items()
            }
            moments.append(Moment(m.name, m.at, on))

    def whole(of: Callable[[TrainingMemory], Size]) -> Size:
        more = ((one.often - FIRST - LAST[1]) * (of(long) - of(short)) for one, short in shorter)
        return of(long) + sum(more, start=0)

    return Step(tuple(moments), whole(attrgetter("saved")), whole(attrgetter("loss")), long.notes)


def _stretches(model: Model) -> list[Stretch]:
    """The longest stretch of each stack of layers, where walking through fewer layers pays."""
    if model.stretch != 1 or any(s.passes > 1 or s.turns for s in model.segments):
        return []
    stacks = _stacks(model)
    names = [{model.segments[place].name for place in stack} for stack in stacks]
    if sum(map(len, names)) != len(set().union(*names)):
        return []  # moments of several layers under one name
    found = [one for one in (_repeated(model, stack) for stack in stacks) if one is not None]
    layers = sum(len(s.layers) for s in model.segments)
    long = layers - sum((one.often - FIRST - LAST[1]) * one.period for one in found)
    walked = (1 + len(found)) * long - sum(one.period for one in found)
    return found if walked < layers else []


def _stacks(model: Model) -> list[tuple[int, ...]]:
    """Segments that share the layers of a stack out among them, by their places."""
    made: list[list[int]] = []
    held: set[int] = set()
    for place, segment in enumerate(model.segments):
        if not segment.layers:
            held = set()
        elif held and not held & set(segment.layers):
            made[-1].append(place)
            held |= set(segment.layers)
        else:
            made.append([place])
            held = set(segment.layers)
    return [tuple(stack) for stack in made]


def _repeated(model: Model, stack: tuple[int, ...]) -> Stretch | None:
    """The longest stretch of a stack."""
    kinds = [place for _, place in _layers(model, stack)]
    best: Stretch | None = None
    for period in range(1, min(12, len(kinds) // 5) + 1):
        start = run = 0
        for at in range(period, len(kinds) + 1):
            if at < len(kinds) and kinds[at] == kinds[at - period]:
                run += 1
                continue
            often = run // period + 1
            if often > FIRST + LAST[1] and (best is None or often * period > best.often * best.period):
                best = Stretch(stack, start, period, often)
            start, run = at - period + 1, 0
    return best


def _layers(model: Model, stack: tuple[int, ...]) -> list[tuple[int, int]]:
    """Layers of a stack in order, with the place of the segment that each is of."""
    return sorted((layer, place) for place in stack for layer in model.segments[place].layers)


def _with(model: Model, found: list[Stretch], shorter: Stretch | None) -> Model:
    """The model with fewer repetitions of its stretches, of one of them with one fewer still."""
    cut: set[tuple[int, int]] = set()
    for one in found:
        last = LAST[one is not shorter]
        order = _layers(model, one.stack)
        cut |= set(order[one.start + FIRST * one.period : one.start + (one.often - last) * one.period])
    segments = []
    for place, segment in enumerate(model.segments):
        kept = tuple(layer for layer in segment.layers if (layer, place) not in cut)
        if kept or not segment.layers:
            segments.append(replace(segment, layers=kept))
    return replace(model, segments=tuple(segments), layers=model.layers - len(cut))
