"""What ranks exchange, as the libraries that train on many ranks run it."""

from __future__ import annotations

from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import saves
from assay.kinds.training.values import Value


@saves("all_reduce")
def all_reduce(at: Passing, x: Value) -> Value:
    """Summed in place; where axes are lost, of a sum of its own."""
    return at.tape.order(x, at.op.axes) if set(x.axes) == set(at.op.axes) else at.tape.sum(x, at.op.axes)


@saves("copies", "send")
def same(at: Passing, x: Value) -> Value:
    """Nothing happens on the way forward."""
    return at.tape.order(x, at.op.axes)


@saves("scatter")
def scatter(at: Passing, x: Value) -> Value:
    """A part of it, seen where it lies."""
    return at.tape.rename(x, at.op.axes)


@saves("all_gather")
def all_gather(at: Passing, x: Value) -> Value:
    """What keeps the result keeps the rank's own part, from which backward gathers it again (Korthikanti et al. 2022,
    section 4.2.2).
    """
    whole = at.tape.new(at.op.axes, x.grad, x.dtype)
    return Value(whole.axes, whole.strides, x.store, x.grad, x.dtype)


@saves("reduce_scatter", "all_to_all")
def apart(at: Passing, x: Value, *index: Value) -> Value:
    """A tensor of its own, for which nothing is kept."""
    return at.tape.new(at.op.axes, x.grad, x.dtype)


@saves("receive")
def receive(at: Passing, x: Value) -> Value:
    """Gradients go back to the stage before."""
    return at.tape.new(at.op.axes, True)
