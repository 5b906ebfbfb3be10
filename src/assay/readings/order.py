"""In which order layers run, and what they hand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from assay.records import replace
from assay.spec import Model, Segment

SOURCE = ("m", "frames")  # axes of the setting that segments of an encoder take their tokens from
MEMORY = "memory"  # what the encoder leaves, as the decoder calls it


def halves(model: Model) -> tuple[list[Segment], list[Segment]]:
    """The segments that run over the source of an encoder-decoder, none in other models, and the rest."""
    encoders = [s for s in model.segments if s.axes.get("n") in SOURCE]
    if not encoders or len(encoders) == len(model.segments):
        return [], list(model.segments)
    return encoders, [s for s in model.segments if s not in encoders]


def unordered(segments: Sequence[Segment]) -> str | None:
    """Why it is not known in which order layers run: several run several times, and nobody says in which turns."""
    again = [s for s in segments if s.passes > 1 and s.layers and not s.turns]
    if len(again) < 2:
        return None
    return f"{again[0].name} runs {again[0].passes} times, others too: in which turns is not known"


def in_order(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int | None, int]]:
    """Each layer of some segments in the order in which they run, and at which turn: None where it occurs once.

    Distinct layers of one stack are segments behind each other that share their indices out among them.
    """
    for turning, group in groupby(segments, lambda segment: bool(segment.turns)):
        found = list(group)
        if not turning:
            yield from _stacked(found)
            continue
        for turn in sorted({turn for segment in found for turn in segment.turns}):
            once = {id(s): replace(s, passes=1) for s in found if turn in s.turns}
            back = {id(once[id(s)]): s for s in found if id(s) in once}
            yield from ((back[id(segment)], layer, turn) for segment, layer, _ in _stacked(list(once.values())))


def _stacked(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int | None, int]]:
    """The same of segments that do not take turns."""
    stack: dict[int, Segment] = {}
    for segment in [*segments, None]:
        layers = segment.layers if segment is not None and segment.passes == 1 else ()
        if not layers or stack.keys() & layers:
            yield from ((stack[layer], layer, 0) for layer in sorted(stack))
            stack = {}
        if segment is None:
            return
        if layers:
            stack.update(dict.fromkeys(layers, segment))
        else:
            for turn in range(segment.passes):
                yield from ((segment, layer, turn) for layer in segment.layers or (None,))
