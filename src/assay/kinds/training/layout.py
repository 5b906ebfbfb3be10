"""Renaming, picking, joining, and what a pass keeps for the next, which training has not."""

from __future__ import annotations

from assay.kinds.training.contractions import everything
from assay.kinds.training.rows import saves
from assay.kinds.training.tape import Passing, Value


@saves("rename", "view", "keys", "append", "reuse", "hold", "keep")
def same(at: Passing, x: Value) -> Value:
    """The same elements; an axis may have another name."""
    return at.tape.rename(x, at.op.axes)


@saves("slice")
def slice_(at: Passing, *given: Value) -> Value:
    """A part along one axis, of a weight too."""
    (x,) = everything(at, given)
    return at.tape.rename(x, at.op.axes)


@saves("first")
def first(at: Passing, x: Value) -> Value:
    """The first along an axis."""
    return at.tape.drop(x, *(a for a in x.axes if a not in at.op.axes))


@saves("repeat")
def repeat(at: Passing, x: Value) -> Value:
    """The same along further axes: none of it is copied."""
    return at.tape.expand(x, at.op.axes)


@saves("concat")
def concat(at: Passing, *given: Value) -> Value:
    """Behind each other in a tensor of its own."""
    return at.tape.cat(at.op.axes, *everything(at, given))


@saves("take")
def take(at: Passing, x: Value, index: Value) -> Value:
    """Values at an index along the last axis."""
    return at.tape.gather(x, index, at.op.axes)


@saves("idle")
def idle(at: Passing) -> Value:
    """Stored, and not used."""
    return at.weight(at.op.weights[0])
