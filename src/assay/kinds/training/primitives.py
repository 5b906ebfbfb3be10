"""Functions that implementations compose things of, as PyTorch runs them."""

from __future__ import annotations

from assay.kinds.training.contractions import everything
from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import saves
from assay.kinds.training.values import FLAG, INDEX, Value


@saves("cast")
def cast(at: Passing, *given: Value) -> Value:
    """Nothing is kept; what has the dtype already is not copied."""
    (x,) = everything(at, given)
    like = at.op.attr("like")
    dtype = at.op.attr("to") if like is None else at.dtype_of(like)
    return at.tape.order(at.tape.cast(x, dtype), at.op.axes)


@saves("power")
def power(at: Passing, x: Value) -> Value:
    """What it is of is kept."""
    return at.tape.pow(at.tape.beside(x, at.op.axes))


@saves("rsqrt")
def rsqrt(at: Passing, x: Value) -> Value:
    """The result is kept."""
    x = at.tape.beside(x, at.op.axes)
    return at.tape.rsqrt(x if at.op.attr("eps") is None else at.tape.linear_in(x))


@saves("copy")
def copy(at: Passing, x: Value) -> Value:
    """A tensor of its own."""
    return at.tape.new(at.op.axes, x.grad, x.dtype)


@saves("dropout")
def dropout(at: Passing, x: Value) -> Value:
    """Which elements stay is kept: a truth each on a GPU, on a CPU a number as large as the element."""
    tape = at.tape
    y = tape.pointwise(tape.beside(x, at.op.axes))
    if x.grad:
        tape.keep(tape.new(y.axes, dtype=FLAG if tape.device == "cuda" else x.dtype))
    return y


@saves("log_softmax")
def log_softmax(at: Passing, x: Value) -> Value:
    """The result is kept, under autocast of what is cast before."""
    return at.tape.softmax(at.tape.beside(at.tape.upcast(x, "loss"), at.op.axes))


@saves("nll")
def nll(at: Passing, x: Value, index: Value) -> Value:
    """What is picked from, the index, or one shifted into a tensor of its own, and the sum of weights."""
    tape = at.tape
    x = tape.upcast(x, "loss")
    index = tape.new(index.axes, dtype=INDEX) if at.op.attr("shifted") else index
    if x.grad:
        tape.keep(x, index, tape.new((), dtype=x.dtype))
    return tape.new((), x.grad, x.dtype)
