"""Recomputation: which ops are not kept for the backward pass and run again in it (Chen et al. 2016, arXiv:1604.06174).

`attention` makes scores, their softmax and the sum of values again (Korthikanti et al. 2022, arXiv:2205.05198, section
5: selective recomputation); `layer` every layer from its input; a number so many layers from the first one's input.
"""

from __future__ import annotations

from assay.errors import SettingError
from assay.records import replace
from assay.spec import Model, Op, Segment

WAYS = ("none", "attention", "layer")


def recompute(model: Model, how: str | int = "none") -> Model:
    """The same model, with what is made again marked. Raises SettingError."""
    if how == "none":
        return model
    if how == "attention":
        return replace(model, segments=tuple(_marked(s, how, scores=True) for s in model.segments))
    stretch = 1 if how == "layer" else how
    try:
        fits = stretch == int(stretch) >= 1 and stretch is not True
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise SettingError(f"recompute is {how!r}; known: {', '.join(WAYS)}, or a number of layers, 1 or more")
    marked = tuple(_marked(s, "layer") if s.layers else s for s in model.segments)
    return replace(model, segments=marked, stretch=int(stretch))


def _marked(segment: Segment, name: str, scores: bool = False) -> Segment:
    def mark(op: Op) -> Op:
        return replace(op, again=name) if not scores or op.part.endswith(".scores") else op

    return replace(segment, block=replace(segment.block, ops=tuple(mark(op) for op in segment.block.ops)))
