"""Sums of products, the look-ups and weighted sums around them, as PyTorch runs them."""

from __future__ import annotations

from collections.abc import Iterator

from assay.kinds.training.passing import Passing
from assay.kinds.training.rows import saves
from assay.kinds.training.values import COUNT, FLAG, INDEX, Value
from assay.spec import Axes


def of_both(a: Axes, b: Axes, out: Axes) -> tuple[Axes, Axes, Axes, Axes]:
    """Batch, rows, what is summed, columns of a product over named axes."""
    batch = tuple(x for x in out if x in a and x in b)
    left = side_by_side(a, tuple(x for x in out if x in a and x not in b))
    right = side_by_side(b, tuple(x for x in out if x in b and x not in a))
    return batch, left, tuple(x for x in a if x in b and x not in out), right


def side_by_side(axes: Axes, wanted: Axes) -> Axes:
    """Some of a tensor's axes in its own order where they are neighbours there: joined so, nothing is copied."""
    own = tuple(x for x in axes if x in wanted)
    start = axes.index(own[0]) if own else 0
    return own if axes[start : start + len(own)] == own else wanted


def product(at: Passing, x: Value, y: Value) -> Value:
    """A batched matrix product over named axes."""
    batch, left, summed, right = of_both(x.axes, y.axes, at.op.axes)
    if {*batch, *left, *summed} != set(x.axes) or {*batch, *summed, *right} != set(y.axes):
        raise at.unknown("an operand has an axis that is summed by itself")
    return at.tape.order(at.tape.matmul(x, y, batch, left, summed, right), at.op.axes)


@saves("linear")
def linear(at: Passing, x: Value) -> Value:
    """One matrix, or one for each index of axes that x, weight and result share."""
    op, tape = at.op, at.tape
    weight = op.weights[0]
    if any(a in x.axes and a in op.axes for a in weight.axes):
        y = product(at, x, at.weight(weight))
        return y if len(op.weights) < 2 else tape.linear_in(y, at.weight(op.weights[1]), axes=op.axes)
    summed = tuple(a for a in x.axes if a in weight.axes)
    made = tuple(a for a in op.axes if a in weight.axes)
    lead = tuple(a for a in x.axes if a not in summed)
    x = tape.join(x, *((a,) for a in lead), summed)
    packed = op.attr("packed")  # one product with weights that lie behind each other
    if packed is not None:
        x = tape.shared_cast(x, (packed, x.store))
    matrix = at.weight(weight, made, summed) if packed is None else at.weight(weight)  # whole, none of it is copied
    y = tape.linear(x, lead, matrix, made)
    if packed is not None:
        y = tape.within((packed, x.store), y)
    if len(op.weights) > 1 and set(op.weights[1].axes) != set(made):
        y = tape.linear_in(y, at.weight(op.weights[1]))
    return tape.order(y, op.axes)


@saves("contract")
def contract(at: Passing, *given: Value) -> Value:
    """Two tensors, either of which may be a weight."""
    x, y = everything(at, given)
    return product(at, x, y)


def everything(at: Passing, given: tuple[Value, ...]) -> Iterator[Value]:
    """All operands in order, weights as they are seen."""
    left = iter(given)
    return (at.weight(t) if t.is_weight else next(left) for t in at.op.inputs)


@saves("gather")
def gather(at: Passing, ids: Value) -> Value:
    """Rows of a table."""
    table, tape = at.op.weights[0], at.tape
    if at.op.attr("far") is not None:  # rows of buckets of distances, which all layers share
        key = ("buckets", *(at.value(name) for name in ("far", "both")), at.sizes[table.axes[0]])
        ids = tape.once(key, lambda: tape.new(ids.axes, dtype=INDEX)).called(ids.axes)
    elif at.value("offset", 0):
        ids = tape.new(ids.axes, dtype=INDEX)
    if at.op.attr("index"):  # of numbers of experts
        return tape.new(at.op.axes, dtype=INDEX)
    rows = at.weight(table) if len(table.axes) == 2 else at.weight(table, table.axes[:1], table.axes[1:])
    return tape.order(tape.embedding(ids, rows, (*ids.axes, *table.axes[1:])), at.op.axes)


@saves("combine")
def combine(at: Passing, x: Value, w: Value) -> Value:
    """Values times weights, summed; what is added to the weights makes others of them."""
    w = w if at.op.attr("eps") is None else at.tape.linear_in(w)
    if at.op.attr("sorted"):
        return _put_back(at, x, w)
    y = at.tape.sum(at.tape.mul(x, at.tape.beside(w, x.axes)), at.op.axes)
    return at.tape.order(y, at.op.axes)


@saves("select")
def select(at: Passing, x: Value, index: Value) -> Value:
    """Rows sorted by expert, a product an expert, and the results put where the rows came from.

    Every expert is taken to have some: autocast copies the matrices of those alone.
    """
    op, tape = at.op, at.tape
    if op.attr("sorted"):
        return _grouped(at, x, index)
    weight = op.weights[0]
    (experts,) = [a for a in weight.axes if a not in op.axes and a not in x.axes]
    summed = tuple(a for a in x.axes if a in weight.axes)
    made = tuple(a for a in op.axes if a in weight.axes)
    lead = tuple(a for a in op.axes if a not in made)  # one choice may be of all tokens of a text
    lead = index.axes if set(lead) == set(index.axes) else lead
    matrices = at.weight(weight, (experts,), made, summed)
    bias = at.weight(op.weights[1], (experts,), made) if len(op.weights) > 1 else None
    given, matrices = x.dtype, tape.lower(matrices)
    order = tape.near(("routing", index.store), lambda: tape.new(lead, dtype=INDEX))
    rows = tape.lower(tape.new((*lead, *summed), x.grad, x.dtype))
    if x.grad:
        tape.keep(order)
    tape.keep(*([rows] if matrices.grad else []), *([matrices] if x.grad else []))
    grad = x.grad or matrices.grad or (bias is not None and bias.grad)
    each = tape.read(tape.new((*lead, *made), dtype=rows.dtype), rows, order)  # their gradients are seen in one
    y = tape.read(tape.new(each.axes, grad, rows.dtype), each)
    y = tape.cast(y, given)  # what it is put into has the dtype of what came
    if y.grad:
        tape.keep(order, y)  # put where the rows came from, results keep their places and, for their shape, themselves
    empty = tape.new(y.axes, dtype=y.dtype)
    y = tape.read(tape.new(y.axes, y.grad, y.dtype), y, empty, order)
    if op.attr("none"):  # the choice of no expert gives nothing
        y = tape.masked_fill(y, tape.new(lead, dtype=FLAG))
    return tape.order(y, op.axes)


def _grouped(at: Passing, x: Value, index: Value) -> Value:
    """Rows sorted by expert once for all that read them, in one kernel that is told where an expert's rows end."""
    op, tape = at.op, at.tape
    weight = op.weights[0]
    (experts,) = [a for a in weight.axes if a not in op.axes and a not in x.axes]
    summed = tuple(a for a in x.axes if a in weight.axes)
    made = tuple(a for a in op.axes if a in weight.axes)
    matrices = at.weight(weight, (experts,), made, summed)
    if set(index.axes) <= set(x.axes):  # sorted already
        rows = tape.beside(x, (*index.axes, *summed))
    else:
        rows = tape.near(("rows", x.store, index.store), lambda: tape.new((*index.axes, *summed), x.grad, x.dtype))
        if x.grad:
            tape.keep(tape.near(("sources", index.store), lambda: tape.new(index.axes, dtype=INDEX)))
    rows = tape.cast(rows, matrices.dtype)
    ends = tape.near(("ends", index.store), lambda: tape.new((experts,), dtype=COUNT))
    tape.keep(*([rows] if matrices.grad else []), *([matrices] if rows.grad else []))
    y = tape.new((*index.axes, *made), rows.grad or matrices.grad, rows.dtype)
    if y.grad:
        tape.keep(ends)
    return tape.order(y, op.axes)


def _put_back(at: Passing, x: Value, w: Value) -> Value:
    """Weights sorted as rows are; what both make is put where the rows came from, and summed."""
    tape = at.tape
    own = tape.new(w.axes, w.grad, w.dtype)
    y = tape.mul(x, tape.beside(own, x.axes))
    for grad in (w.grad, y.grad):  # into their order, and back
        if grad:
            tape.keep(tape.new(w.axes, dtype=INDEX))
    return tape.order(tape.sum(tape.new(x.axes, y.grad, y.dtype), at.op.axes), at.op.axes)
