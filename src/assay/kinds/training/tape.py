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
from assay.kinds.training.values import (
    AUTOCAST_TO_FLOAT32,
    BEFORE,
    CACHE,
    COUNT,
    FLAG,
    INDEX,
    INPUT,
    MADE,
    STATES,
    WEIGHT,
    WIDE,
    Keeping,
    Store,
    Value,
    evenly,
    promoted,
    width_of,
)
from assay.size import Size, product
from assay.spec import Axes, Op

__all__ = [  # what a rule needs, in one place
    "BEFORE",
    "CACHE",
    "COUNT",
    "FLAG",
    "INDEX",
    "INPUT",
    "MADE",
    "STATES",
    "WEIGHT",
    "WIDE",
    "Keeping",
    "Passing",
    "Store",
    "Tape",
    "Value",
    "promoted",
    "width_of",
]


class Tape:
    """Functions of PyTorch, and what they keep: each kept storage is noted under `now`, what is at work.

    `sizes` are ints, `real` the sizes that they stand for, `dtype` that of parameters, and of activations where nothing
    casts them. `autocast` is what products then cast their operands to, while other functions cast theirs to float32;
    which, and in what norms keep their statistics, hangs on the `device`.
    """

    def __init__(self, dtype: str, autocast: str | None = None, device: str = "cpu") -> None:
        self.dtype = dtype
        self.autocast = autocast
        self.device = device
        self.raised = AUTOCAST_TO_FLOAT32[device] if autocast else frozenset()
        self.sizes: dict[str, int] = {}
        self.real: Mapping[str, Size] = {}
        self.now: Hashable = None
        self.shuffles = True  # weights that do not lie as an op takes them are copied
        self.grads = True  # what is kept for a backward pass is told
        self.cache: Keeping | None = None  # how later passes are given what this one makes, None where there are none
        self.clock = 0  # storages made so far
        self.kept: list[Store] = []
        self.made: list[Store] = []
        self.there: list[Store] = []  # what is there before the pass
        self.memo: dict[Hashable, Value] = {}
        self.layer: dict[Hashable, Value] = {}  # the same of a layer
        self.apart: dict[Hashable, Size] = {}  # what the backward pass of an op has for itself alone
        self.casts: dict[Hashable, Value] = {}
        self.copies: dict[Hashable, Value] = {}  # of parameters, by what tells them apart

    # --- tensors ---

    def held(self, axes: Iterable[str], dtype: str) -> Size:
        """Bytes of a tensor of some axes."""
        return product(self.real[a] for a in axes) * width_of(dtype)

    def new(self, axes: Axes, grad: bool = False, dtype: str | None = None, order: Axes | None = None) -> Value:
        """A tensor of its own, its axes one behind the other, or lying in another order; of activations' dtype."""
        dtype = dtype or self.dtype
        store = Store(self.held(axes, dtype), maker=self.now)
        self.clock += 1
        store.born = store.read = self.clock
        store.grad = grad
        self.made.append(store)
        return Value(axes, self.apart_in(axes, order or axes), store, grad and self.grads, dtype)

    def given(self, axes: Axes, dtype: str | None = None) -> Value:
        """A tensor that the pass is given: there before it and to its end."""
        dtype = dtype or self.dtype
        store = Store(self.held(axes, dtype), INPUT, self.now)
        self.there.append(store)
        return Value(axes, self.apart_in(axes, axes), store, False, dtype)

    def apart_in(self, axes: Axes, order: Axes) -> tuple[int, ...]:
        """How far elements lie apart along some axes that lie one behind the other in an order."""
        apart, run = dict.fromkeys(axes, 0), 1
        for axis in reversed(order):
            apart[axis] = run
            run *= max(1, self.sizes[axis])
        return tuple(apart[a] for a in axes)

    def read(self, made: Value, *values: Value) -> Value:
        """What was made of some tensors, which are there until then."""
        for value in values:
            value.store.read = self.clock
        return made

    def axis(self, name: str, size: Size, shown: int) -> str:
        """An axis that the op has no name for."""
        self.sizes[name] = shown
        self.real = {**self.real, name: size}
        return name

    def leave(self, store: Store, group: str = CACHE, before: Size = 0) -> None:
        """What stays for the next pass; `before` bytes, which it has from the last, are there until now."""
        store.held = group
        if before:
            old = Store(before, BEFORE, self.now)
            old.read, old.held = self.clock, group
            self.there.append(old)

    def near(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """What several ops of a layer use, made at the first asking there."""
        found = self.layer.get(key)
        if found is None:
            found = self.layer[key] = make()
        return found

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """What several layers use, made at the first asking in a pass."""
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = make()
            found.store.shared = True
        return found

    def keep(self, *values: Value, passing: bool = False) -> None:
        """Autograd keeps the storages of some tensors; `passing`: for a result that is dropped before the op ends."""
        for value in values if self.grads else ():
            if not value.store.keepers:
                self.kept.append(value.store)
            value.store.keepers.append((self.now, passing))

    # --- seen otherwise: nothing is computed ---

    def order(self, x: Value, axes: Axes) -> Value:
        """The same axes in another order."""
        if axes == x.axes:
            return x
        apart = dict(zip(x.axes, x.strides, strict=True))
        lacking = [a for a in axes if a not in apart]
        if lacking:
            raise KindError(f"[{' '.join(x.axes)}] has no {' '.join(lacking)} to be seen along")
        return x.seen(axes, tuple(apart[a] for a in axes))

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
        return x.seen(tuple(a for a, _ in left), tuple(s for _, s in left))

    def expand(self, x: Value, axes: Axes) -> Value:
        """The same along every axis that it lacks."""
        apart = dict(zip(x.axes, x.strides, strict=True))
        return x.seen(axes, tuple(apart.get(a, 0) for a in axes))

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
        return self.read(self.new(x.axes, x.grad, x.dtype), x)

    def reshape(self, x: Value, axes: Axes) -> Value:
        """As many elements under other axes: the same storage where PyTorch can see it so, else a copy."""
        strides = evenly([self.sizes[a] for a in x.axes], x.strides, [self.sizes[a] for a in axes])
        return self.read(self.new(axes, x.grad, x.dtype), x) if strides is None else x.seen(axes, strides)

    def unfold(self, x: Value, axis: str, axes: Axes, step: int) -> Value:
        """Windows along an axis, each `step` further on, their places last: nothing is copied."""
        apart = x.strides[x.axes.index(axis)]
        strides = [step * s if a == axis else s for a, s in zip(x.axes, x.strides, strict=True)]
        return x.seen(axes, (*strides, apart))

    # --- element by element ---

    def pointwise(
        self, *values: Value, axes: Axes | None = None, grad: bool | None = None, dtype: str | None = None
    ) -> Value:
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
        made = any(v.grad for v in values) if grad is None else grad
        return self.read(self.new(out, made, promoted(values) if dtype is None else dtype, order), *values)

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

    def unary(self, x: Value, keeps: str = "operand", function: str = "") -> Value:
        """A function of each element that keeps its operand, its result, or nothing."""
        x = self.upcast(x, function)
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
        return self.read(self.new(x.axes, x.grad, x.dtype), x, hidden)

    def cat(self, axes: Axes, *values: Value) -> Value:
        """Behind each other: nothing is kept."""
        return self.read(self.new(axes, any(v.grad for v in values), promoted(values)), *values)

    def clone(self, x: Value) -> Value:
        """A copy that lies as the original does."""
        return self.pointwise(x)

    # --- dtypes ---

    def cast(self, x: Value, dtype: str) -> Value:
        """In another dtype: nothing is kept, and what has it already is not copied."""
        return x if x.dtype == dtype else self.pointwise(x, dtype=dtype)

    def lower(self, x: Value) -> Value:
        """As autocast gives it to products: of a parameter one copy for the whole pass."""
        if self.autocast is None or x.dtype != "fp32":
            return x
        if x.store.origin != WEIGHT or not x.grad:
            return self.cast(x, self.autocast)
        if x.store.key not in self.copies:
            self.copies[x.store.key] = self.cast(x, self.autocast)
            self.copies[x.store.key].store.shared = True
        return self.copies[x.store.key].seen(x.axes, x.strides)

    def within(self, key: Hashable, y: Value) -> Value:
        """A result that lies in one tensor with others of a key."""
        whole = self.casts.setdefault((key, "result"), y)
        if whole is not y:
            whole.store.bytes = whole.store.bytes + y.store.bytes
            whole.store.read = self.clock
            self.made.remove(y.store)
            y = Value(y.axes, y.strides, whole.store, y.grad or whole.grad, y.dtype)
        return y

    def shared_cast(self, x: Value, key: Hashable) -> Value:
        """What a product casts, once for several that are one."""
        if self.autocast is None or x.dtype != "fp32":
            return x
        if key not in self.casts:
            self.casts[key] = self.lower(x)
        return self.casts[key].seen(x.axes, x.strides)

    def upcast(self, x: Value, function: str) -> Value:
        """As autocast gives it to functions that it runs in float32."""
        return self.cast(x, "fp32") if function in self.raised and x.dtype in WIDE else x

    # --- over axes ---

    def sum(self, x: Value, axes: Axes, function: str = "sum") -> Value:
        """Over the axes that the result lacks: a sum or mean keeps nothing."""
        x = self.upcast(x, function)
        return self.read(self.new(tuple(a for a in x.axes if a in axes), x.grad, x.dtype), x)

    def softmax(self, x: Value) -> Value:
        """The result is kept."""
        x = self.upcast(x, "softmax")
        y = self.read(self.new(x.axes, x.grad, x.dtype), x)
        if x.grad:
            self.keep(y)
        return y

    def rms_norm(self, x: Value, over: Axes, gain: Value | None) -> Value:
        """As PyTorch composes it: square, mean, reciprocal root, product, gain; in one kernel on a GPU."""
        if self.device == "cuda" and (gain is None or gain.dtype == x.dtype):
            grad = x.grad or (gain is not None and gain.grad)
            if grad:
                rows = tuple(a for a in x.axes if a not in over)
                self.keep(x, self.new(rows, dtype=WIDE.get(x.dtype, x.dtype)), *([] if gain is None else [gain]))
            return self.read(self.new(x.axes, grad, x.dtype), x)
        dtype = x.dtype
        x = self.cast(x, WIDE.get(dtype, dtype))
        rows = tuple(a for a in x.axes if a not in over)
        root = self.rsqrt(self.sum(self.pow(x), rows, "mean"))
        y = self.mul(x, root)
        made = self.cast(y if gain is None else self.mul(y, gain), dtype)
        return self.read(made, x, root)  # which the function has to its end

    def pow(self, x: Value) -> Value:
        """A power keeps what it is of, and makes the power below it again."""
        y = self.unary(x, function="pow")
        if y.grad:
            self.apart[self.now] = self.held(y.axes, y.dtype)
        return y

    def rsqrt(self, x: Value) -> Value:
        """The reciprocal of a root keeps itself."""
        return self.unary(x, "result", "rsqrt")

    def layer_norm(self, x: Value, over: Axes, gain: Value | None, bias: Value | None) -> Value:
        """Its operand, means and reciprocal deviations are kept, and gains and biases."""
        x = self.upcast(x, "layer_norm")
        gain, bias = (None if v is None else self.upcast(v, "layer_norm") for v in (gain, bias))
        rows = tuple(a for a in x.axes if a not in over)
        grad = any(v is not None and v.grad for v in (x, gain, bias))
        plain = all(v is None or v.dtype == x.dtype for v in (gain, bias))
        wide = x.dtype if self.device == "cpu" and plain else WIDE.get(x.dtype, x.dtype)
        stats = [self.new(rows, dtype=wide) for _ in range(2)]
        if grad:
            self.keep(x, *stats, *(v for v in (gain, bias) if v is not None))
        return self.read(self.new(x.axes, grad, x.dtype), x, *stats)

    # --- products and look-ups ---

    def linear(self, x: Value, lead: Axes, weight: Value, made: Axes) -> Value:
        """x[… i] W[o i]: rows are joined to one matrix."""
        summed = tuple(a for a in x.axes if a not in lead)
        x, weight = self.lower(x), self.lower(weight)
        rows = self.join(x, lead, summed)
        grad = x.grad or weight.grad
        self.keep(*([rows] if weight.grad else []), *([weight] if x.grad else []))
        return self.read(self.new((*lead, *made), grad, x.dtype), rows, weight)

    def matmul(self, x: Value, y: Value, batch: Axes, left: Axes, summed: Axes, right: Axes) -> Value:
        """A product for each index of the batch; operands are joined to matrices first, then their batch to one."""
        x, y = self.lower(x), self.lower(y)
        if len(left) != 1 or len(summed) != 1:
            x = self.join(x, *((a,) for a in batch), left, summed)
        if len(right) != 1 or len(summed) != 1:
            y = self.join(y, *((a,) for a in batch), summed, right)
        if len(batch) > 1:
            x, y = self.join(x, batch, left, summed), self.join(y, batch, summed, right)
        else:
            x, y = self.order(x, (*batch, *left, *summed)), self.order(y, (*batch, *summed, *right))
        self.keep(*([y] if x.grad else []), *([x] if y.grad else []))
        return self.read(self.new((*batch, *left, *right), x.grad or y.grad, x.dtype), x, y)

    def embedding(self, ids: Value, table: Value, axes: Axes) -> Value:
        """Rows of a table: the index is kept."""
        if table.grad:
            self.keep(ids)
        return self.read(self.new(axes, table.grad, table.dtype), ids)

    def gather(self, x: Value, index: Value, axes: Axes) -> Value:
        """Values at an index along an axis: both are kept, the values for their shape alone."""
        if x.grad:
            self.keep(x, index)
        return self.read(self.new(axes, x.grad, x.dtype), x, index)


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
        known: Mapping[str, Value] | None = None,
    ) -> None:
        self.tape = tape
        self.op = op
        self.index = index
        self.ops = ops
        self.sizes = sizes
        self._weight = weight
        self.past = past
        self.known = known or {}

    def dtype_of(self, name: str) -> str:
        """The dtype of what has a name by now. Raises KindError."""
        found = self.known.get(name)
        if found is None:
            raise self.unknown(f"nothing is called {name} by then")
        return found.dtype

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
