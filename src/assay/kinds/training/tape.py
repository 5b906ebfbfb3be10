"""What PyTorch's autograd keeps of a pass: tensors as storages seen along axes, and the functions that keep them.

A tape is told in integers how long axes are, for whether a reshape copies hangs on them (an axis of one never
stands in the way), and in sizes of any sort what storages hold. Functions have the names that PyTorch has for them;
each says which tensors its backward pass needs. A storage counts once, however many ops keep it, and whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any

from assay.errors import KindError
from assay.size import Size, product
from assay.spec import Axes, Op

MADE, INPUT, WEIGHT = "activations", "inputs", "weights"
FLAG, INDEX = 1, 8  # bytes of an element that is true or false, and of an index


class Store:
    """What tensors lie in: its bytes, where it is from, and which ops had it kept, the first of them first.

    `passing` says of each whether what kept it is gone with the op; `shared` storages live as long as the pass.
    """

    __slots__ = ("bytes", "keepers", "origin", "shared")

    def __init__(self, held: Size, origin: str = MADE) -> None:
        self.bytes = held
        self.origin = origin
        self.keepers: list[tuple[Hashable, bool]] = []
        self.shared = False


class Value:
    """A tensor: axes in order, how far apart their elements lie, the storage, and whether it needs a gradient.

    An axis that is the same all along lies 0 apart.
    """

    __slots__ = ("axes", "grad", "store", "strides")

    def __init__(self, axes: Axes, strides: tuple[int, ...], store: Store, grad: bool) -> None:
        self.axes = axes
        self.strides = strides
        self.store = store
        self.grad = grad

    def called(self, axes: Axes) -> Value:
        """The same under other names."""
        return Value(axes, self.strides, self.store, self.grad)


class Tape:
    """Functions of PyTorch, and what they keep: each kept storage is noted under `now`, what is at work.

    `sizes` are ints, `real` the sizes that they stand for, `width` the bytes of an element of activations.
    `grads` False is a pass that keeps nothing.
    """

    def __init__(self, width: Size) -> None:
        self.width = width
        self.sizes: dict[str, int] = {}
        self.real: Mapping[str, Size] = {}
        self.now: Hashable = None
        self.kept: list[Store] = []
        self.memo: dict[Hashable, Value] = {}

    # --- tensors ---

    def held(self, axes: Iterable[str], width: Size | None = None) -> Size:
        """Bytes of a tensor of some axes."""
        return product(self.real[a] for a in axes) * (self.width if width is None else width)

    def new(self, axes: Axes, grad: bool = False, width: Size | None = None, order: Axes | None = None) -> Value:
        """A tensor of its own, its axes one behind the other, or lying in another order."""
        apart, run = dict.fromkeys(axes, 0), 1
        for axis in reversed(order or axes):
            apart[axis] = run
            run *= max(1, self.sizes[axis])
        return Value(axes, tuple(apart[a] for a in axes), Store(self.held(axes, width)), grad)

    def axis(self, name: str, size: Size, shown: int) -> str:
        """An axis that the op has no name for."""
        self.sizes[name] = shown
        self.real = {**self.real, name: size}
        return name

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """What several layers use, made at the first asking in a pass."""
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = make()
            found.store.shared = True
        return found

    def keep(self, *values: Value, passing: bool = False) -> None:
        """Autograd keeps the storages of some tensors; `passing`: for a result that is dropped before the op ends."""
        for value in values:
            if not value.store.keepers:
                self.kept.append(value.store)
            value.store.keepers.append((self.now, passing))

    # --- seen otherwise: nothing is computed ---

    def order(self, x: Value, axes: Axes) -> Value:
        """The same axes in another order."""
        if axes == x.axes:
            return x
        apart = dict(zip(x.axes, x.strides, strict=True))
        return Value(axes, tuple(apart[a] for a in axes), x.store, x.grad)

    def beside(self, x: Value, axes: Axes) -> Value:
        """In the order of some axes, of which it may lack any: `axes` of the result are those that it has."""
        return self.order(x, tuple(a for a in axes if a in x.axes))

    def rename(self, x: Value, axes: Axes) -> Value:
        """One axis, or several, under the name that `axes` has in its place; brought into their order."""
        made = iter([a for a in axes if a not in x.axes])
        return self.order(x.called(tuple(a if a in axes else next(made) for a in x.axes)), axes)

    def drop(self, x: Value, *lost: str) -> Value:
        """One place of each of some axes."""
        left = [(a, s) for a, s in zip(x.axes, x.strides, strict=True) if a not in lost]
        return Value(tuple(a for a, _ in left), tuple(s for _, s in left), x.store, x.grad)

    def expand(self, x: Value, axes: Axes) -> Value:
        """The same along every axis that it lacks."""
        apart = dict(zip(x.axes, x.strides, strict=True))
        return Value(axes, tuple(apart.get(a, 0) for a in axes), x.store, x.grad)

    def joins(self, x: Value, axes: Axes) -> bool:
        """True where axes become one dimension without a copy."""
        apart = dict(zip(x.axes, x.strides, strict=True))
        seen = [a for a in axes if self.sizes[a] != 1]
        return all(apart[a] == apart[b] * self.sizes[b] for a, b in pairwise(seen))

    def join(self, x: Value, *groups: Axes) -> Value:
        """Dimensions of one axis or several each: the same storage where that can be seen so, else a copy."""
        x = self.order(x, tuple(a for group in groups for a in group))
        if any(self.sizes[a] == 0 for a in x.axes) or all(self.joins(x, group) for group in groups):
            return x
        return self.new(x.axes, x.grad)

    def reshape(self, x: Value, axes: Axes) -> Value:
        """As many elements under other axes: the same storage where PyTorch can see it so, else a copy."""
        strides = _seen([self.sizes[a] for a in x.axes], x.strides, [self.sizes[a] for a in axes])
        return self.new(axes, x.grad) if strides is None else Value(axes, strides, x.store, x.grad)

    def unfold(self, x: Value, axis: str, axes: Axes, step: int) -> Value:
        """Windows along an axis, each `step` further on, their places last: nothing is copied."""
        apart = x.strides[x.axes.index(axis)]
        strides = [step * s if a == axis else s for a, s in zip(x.axes, x.strides, strict=True)]
        return Value(axes, (*strides, apart), x.store, x.grad)

    # --- element by element ---

    def pointwise(self, *values: Value, axes: Axes | None = None, grad: bool | None = None) -> Value:
        """The result of a function of elements: it lies as its operands do, the first of them before the others."""
        out = values[0].axes if axes is None else axes
        rows = [self._apart(value, out) for value in values]
        places = list(reversed(range(len(out))))
        for i in range(1, len(out)):
            moved = i
            for other in range(i - 1, -1, -1):
                turn = self._swapped(rows, out, places[other], places[moved])
                if turn > 0:
                    places[other], places[moved] = places[moved], places[other]
                    moved = other
                elif turn < 0:
                    break
        order = tuple(out[i] for i in reversed(places))
        return self.new(out, any(v.grad for v in values) if grad is None else grad, order=order)

    def _apart(self, x: Value, out: Axes) -> list[int]:
        apart = dict(zip(x.axes, x.strides, strict=True))
        return [apart.get(a, 0) if self.sizes[a] != 1 or a in apart else 1 for a in out]

    def _swapped(self, rows: Sequence[Sequence[int]], out: Axes, a: int, b: int) -> int:
        for row in rows:
            if row[a] == 0 or row[b] == 0:
                continue
            if row[a] != row[b]:
                return 1 if row[a] > row[b] else -1
            if self.sizes[out[a]] > self.sizes[out[b]]:
                return 1
        return 0

    def unary(self, x: Value, keeps: str = "operand") -> Value:
        """A function of each element that keeps its operand, its result, or nothing."""
        y = self.pointwise(x)
        if x.grad:
            self.keep(*{"operand": (x,), "result": (y,), "": ()}[keeps])
        return y

    def linear_in(self, *values: Value, axes: Axes | None = None) -> Value:
        """Sums, and products with numbers: nothing is kept."""
        return self.pointwise(*values, axes=axes)

    def mul(self, x: Value, y: Value, axes: Axes | None = None) -> Value:
        """Each factor is kept where the other needs a gradient."""
        z = self.pointwise(x, y, axes=axes)
        self.keep(*([x] if y.grad else []), *([y] if x.grad else []))
        return z

    def div(self, x: Value, y: Value, axes: Axes | None = None) -> Value:
        """The divisor is kept, and where it needs a gradient the dividend."""
        z = self.pointwise(x, y, axes=axes)
        if z.grad:
            self.keep(y, *([x] if y.grad else []))
        return z

    def lerp(self, x: Value, y: Value, w: Value) -> Value:
        """x + w (y - x)."""
        z = self.pointwise(x, y, w)
        self.keep(*([w] if x.grad or y.grad else []), *([x, y] if w.grad else []))
        return z

    def fold(self, function: Callable[[Value, Value], Value], values: Iterable[Value]) -> Value:
        """A function of two, from left to right."""
        return reduce(function, values)

    def masked_fill(self, x: Value, hidden: Value) -> Value:
        """Elements set where a mask is true: the mask is kept."""
        if x.grad:
            self.keep(hidden)
        return self.new(x.axes, x.grad)

    def cat(self, axes: Axes, *values: Value) -> Value:
        """Behind each other: nothing is kept."""
        return self.new(axes, any(v.grad for v in values))

    def clone(self, x: Value) -> Value:
        """A copy that lies as the original does."""
        return self.pointwise(x)

    # --- over axes ---

    def sum(self, x: Value, axes: Axes) -> Value:
        """Over the axes that the result lacks: a sum or mean keeps nothing."""
        return self.new(tuple(a for a in x.axes if a in axes), x.grad)

    def softmax(self, x: Value) -> Value:
        """The result is kept."""
        y = self.new(x.axes, x.grad)
        if x.grad:
            self.keep(y)
        return y

    def rms_norm(self, x: Value, over: Axes, gain: Value | None) -> Value:
        """As PyTorch composes it where nothing is fused: square, mean, reciprocal root, product, gain."""
        rows = tuple(a for a in x.axes if a not in over)
        self.pow(x)
        root = self.unary(self.new(rows, x.grad), "result")
        y = self.mul(x, root)
        return y if gain is None else self.mul(y, gain)

    def pow(self, x: Value) -> Value:
        """A power keeps what it is of."""
        return self.unary(x)

    def layer_norm(self, x: Value, over: Axes, gain: Value | None, bias: Value | None) -> Value:
        """Its operand, means and reciprocal deviations are kept, and gains and biases."""
        rows = tuple(a for a in x.axes if a not in over)
        grad = any(v is not None and v.grad for v in (x, gain, bias))
        if grad:
            self.keep(x, self.new(rows), self.new(rows), *(v for v in (gain, bias) if v is not None))
        return self.new(x.axes, grad)

    # --- products and look-ups ---

    def linear(self, x: Value, lead: Axes, weight: Value, made: Axes) -> Value:
        """x[… i] W[o i]: rows are joined to one matrix."""
        summed = tuple(a for a in x.axes if a not in lead)
        rows = self.join(x, lead, summed)
        grad = x.grad or weight.grad
        self.keep(*([rows] if weight.grad else []), *([weight] if x.grad else []))
        return self.new((*lead, *made), grad)

    def matmul(self, x: Value, y: Value, batch: Axes, left: Axes, summed: Axes, right: Axes) -> Value:
        """A product for each index of the batch; operands are joined to matrices first, then their batch to one."""
        if len(left) != 1 or len(summed) != 1:
            x = self.join(x, *((a,) for a in batch), left, summed)
        if len(right) != 1 or len(summed) != 1:
            y = self.join(y, *((a,) for a in batch), summed, right)
        if len(batch) > 1:
            x, y = self.join(x, batch, left, summed), self.join(y, batch, summed, right)
        else:
            x, y = self.order(x, (*batch, *left, *summed)), self.order(y, (*batch, *summed, *right))
        self.keep(*([y] if x.grad else []), *([x] if y.grad else []))
        return self.new((*batch, *left, *right), x.grad or y.grad)

    def embedding(self, ids: Value, table: Value, axes: Axes) -> Value:
        """Rows of a table: the index is kept."""
        if table.grad:
            self.keep(ids)
        return self.new(axes, table.grad)

    def gather(self, x: Value, index: Value, axes: Axes) -> Value:
        """Values at an index along an axis: both are kept, the values for their shape alone."""
        if x.grad:
            self.keep(x, index)
        return self.new(axes, x.grad)


def _seen(sizes: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """How far apart elements lie along dimensions of other sizes, None where they do not lie evenly."""
    if 0 in sizes or not sizes:
        return None
    made = [0] * len(wanted)
    at, base, held, given = len(wanted) - 1, strides[-1], 1, 1
    for dim in range(len(sizes) - 1, -1, -1):
        held *= sizes[dim]
        if dim and (sizes[dim - 1] == 1 or strides[dim - 1] == held * base):
            continue
        while at >= 0 and (given < held or wanted[at] == 1):
            made[at] = given * base
            given *= wanted[at]
            at -= 1
        if given != held:
            return None
        if dim:
            base, held, given = strides[dim - 1], 1, 1
    return tuple(made) if at == -1 else None


class Passing:
    """An op as its training rule sees it: on a tape, with its block's ops and sizes and where its weights lie."""

    def __init__(
        self,
        tape: Tape,
        op: Op,
        index: int,
        ops: Sequence[Op],
        sizes: Mapping[str, int],
        weight: Callable[..., Value],
        past: int = 0,
    ) -> None:
        self.tape = tape
        self.op = op
        self.index = index
        self.ops = ops
        self.sizes = sizes
        self._weight = weight
        self.past = past

    def weight(self, operand: Any, *groups: Axes) -> Value:
        """A weight with a dimension for each group of axes; for each axis where none are named."""
        found: Value = self._weight(operand, groups or tuple((a,) for a in operand.axes))
        return found

    def value(self, name: str, default: Any = None) -> Any:
        """An attribute; where it names a size, that size."""
        value = self.op.attr(name, default)
        return self.sizes.get(value, value) if isinstance(value, str) else value

    def real_value(self, name: str) -> Size:
        """The same as a size of any sort."""
        value = self.op.attr(name)
        return self.tape.real[value] if isinstance(value, str) else value

    def count(self, axes: Iterable[str]) -> int:
        """Elements that axes span."""
        return prod(self.sizes[a] for a in axes)

    def makers(self, axis: str) -> list[Op]:
        """The ops of this block whose results are the first to have an axis."""
        return [op for op in self.ops if axis in op.axes and all(axis not in t.axes for t in op.activations)]

    def unknown(self, why: str) -> KindError:
        """An error that names the op."""
        return KindError(f"what training keeps of {str(self.op)!r} is not known: {why}")
