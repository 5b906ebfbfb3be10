"""Over an axis: softmax, norms, sums, top-k."""

from __future__ import annotations

from assay.kinds.reduce import over
from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import saves
from assay.kinds.training.values import FLAG, INDEX, Value
from assay.size import product


@saves("softmax")
def softmax(at: Passing, x: Value) -> Value:
    """The result is kept; with a sink the result that it is part of."""
    op, tape = at.op, at.tape
    x = tape.beside(x, op.axes)
    if not op.weights:
        return tape.softmax(x)
    dim = op.attr("over", op.axes[-1])
    longer = tape.axis("and_sink", tape.real[dim] + 1, at.sizes[dim] + 1)
    axes = tuple(longer if a == dim else a for a in op.axes)
    sink = at.weight(op.weights[0])
    both = tape.softmax(tape.new(axes, x.grad or sink.grad, x.dtype))
    return both.called(op.axes)


def _normed(at: Passing, x: Value) -> tuple[Value, tuple[str, ...], bool]:
    """The operand with what is normed over last, these axes, and whether its gains are along all of them."""
    op = at.op
    last = tuple(a for a in op.axes if a in over(op))
    order = tuple(a for a in op.axes if a not in last) + last
    return at.tape.beside(x, order), last, all(w.axes == last for w in op.weights)


@saves("rmsnorm")
def rmsnorm(at: Passing, x: Value) -> Value:
    """A gain that is stored as its distance from one is made first."""
    op, tape = at.op, at.tape
    x, last, plain = _normed(at, x)
    gains = [at.weight(w) for w in op.weights]
    if gains and op.attr("unit_offset"):
        gains[0] = tape.linear_in(gains[0])
    y = tape.rms_norm(x, last, gains[0] if plain and gains else None)
    if gains and not plain:
        y = tape.mul(y, tape.beside(gains[0], y.axes))
    return tape.order(y, op.axes)


@saves("layernorm")
def layernorm(at: Passing, x: Value) -> Value:
    """Gains and biases go into the function where they are along what is normed, else behind it."""
    op, tape = at.op, at.tape
    x, last, plain = _normed(at, x)
    gains: list[Value | None] = [at.weight(w) for w in op.weights]
    if gains and gains[0] is not None and op.attr("unit_offset"):
        gains[0] = tape.linear_in(gains[0])
    gain, bias = [*gains, None, None][:2]
    if plain:
        return tape.order(tape.layer_norm(x, last, gain, bias), op.axes)
    y = tape.layer_norm(x, last, None, None)
    if gain is not None:
        y = tape.mul(y, tape.beside(gain, y.axes))
    if bias is not None:
        y = tape.linear_in(y, tape.beside(bias, y.axes))
    return tape.order(y, op.axes)


@saves("sum", "mean")
def sum_(at: Passing, x: Value) -> Value:
    """Nothing is kept."""
    return at.tape.order(at.tape.sum(x, at.op.axes, at.op.kind), at.op.axes)


@saves("rms")
def rms(at: Passing, *x: Value) -> Value:
    """Squares keep their operand, a bound below what it bounds, roots their result."""
    op, tape = at.op, at.tape
    given = x[0] if x else at.weight(op.inputs[0])
    mean = tape.sum(tape.unary(given, function="square"), op.axes, "mean")
    if op.attr("least") is not None:
        mean = tape.unary(mean, function="clamp")
    return tape.order(tape.unary(mean, "result", "sqrt"), op.axes)


@saves("near_softmax")
def near_softmax(at: Passing, scores: Value, index: Value) -> Value:
    """For each choice which scores are far from it, and the shares of the others; and the index."""
    tape = at.tape
    left = scores
    for _ in range(at.sizes[index.axes[-1]]):
        shares = tape.softmax(tape.masked_fill(left, tape.new(scores.axes, dtype=FLAG)))
        if shares.grad:
            tape.keep(index)
        left = tape.new(scores.axes, scores.grad, scores.dtype)
    return tape.new(at.op.axes, scores.grad, scores.dtype)


@saves("normalize")
def normalize(at: Passing, x: Value) -> Value:
    """x over its sum."""
    dim = at.op.attr("over", at.op.axes[-1])
    rows = at.tape.sum(x, tuple(a for a in x.axes if a != dim))
    return at.tape.div(x, at.tape.linear_in(rows))


@saves("topk")
def topk(at: Passing, x: Value) -> Value:
    """Indices, which have no gradient; they are kept for the values, which are dropped with the op."""
    op, tape = at.op, at.tape
    lost = [a for a in x.axes if a not in op.axes]
    (made,) = [a for a in op.axes if a not in x.axes]
    lead = tuple(a for a in op.axes if a != made)
    x = tape.join(x, *((a,) for a in lead), tuple(lost))
    groups, kept = at.value("groups"), at.value("keep_groups")
    if groups and kept and kept < groups:
        _best_groups(at, x, lead, lost)
    index = tape.new(op.axes, dtype=INDEX)
    most = at.count(lost)
    if at.sizes[made] > most:  # fewer than are to be chosen: one of them again, in another tensor
        found = tape.new((*lead, tape.axis("found", product(tape.real[a] for a in lost), most)), dtype=INDEX)
        if x.grad:
            tape.keep(found, passing=True)
    elif x.grad:
        tape.keep(index, passing=True)
    return index


def _best_groups(at: Passing, x: Value, lead: tuple[str, ...], lost: list[str]) -> None:
    """The best of each group, their sums' best groups, and what hides the others."""
    tape = at.tape
    groups, kept = at.value("groups"), at.value("keep_groups")
    judged = min(at.value("judged", 2), at.count(lost) // groups)
    if not x.grad:
        return
    every = (*lead, tape.axis("groups", groups, groups))
    tape.keep(tape.new((*every, tape.axis("judged", judged, judged)), dtype=INDEX), passing=True)
    tape.keep(tape.new((*lead, tape.axis("kept", kept, kept)), dtype=INDEX), passing=True)
    tape.keep(tape.new(every, dtype=FLAG), passing=True)


@saves("shorten")
def shorten(at: Passing, x: Value) -> Value:
    """x times the smaller of one and limit over its length."""
    tape = at.tape
    x = tape.beside(x, at.op.axes)
    rows = tuple(a for a in x.axes if a not in over(at.op))
    length = tape.new(rows, x.grad, x.dtype)
    if x.grad:
        tape.keep(x, length)
    share = tape.unary(tape.linear_in(tape.unary(length, "result")))
    return tape.mul(x, share)


@saves("sinkhorn")
def sinkhorn(at: Passing, x: Value) -> Value:
    """Over the sums of columns, then of rows and of columns again, `times` in all."""
    tape = at.tape
    x = tape.linear_in(tape.beside(x, at.op.axes))
    rows, columns = x.axes[-2:]
    for turn in range(2 * int(at.value("times", 1)) - 1):
        summed = tape.linear_in(tape.sum(x, tuple(a for a in x.axes if a != (columns if turn % 2 else rows))))
        x = tape.div(x, summed)
    return x


@saves("differential")
def differential(at: Passing) -> Value:
    """The share is a difference of two exponentials, which keep themselves."""
    tape = at.tape
    for _ in range(2):
        tape.keep(tape.new((), True))
    return tape.new(at.op.axes, True)
