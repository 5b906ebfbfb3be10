"""What PyTorch's autograd keeps of a pass: tensors as storages seen along axes, and the functions that keep them.

Functions have the names that PyTorch has for them; each says which tensors its backward pass needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import reduce

from assay.kinds.training.values import WEIGHT, WIDE, Value, promoted
from assay.kinds.training.views import Views
from assay.spec import Axes


class Tape(Views):
    """Functions of PyTorch, and what they keep."""

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
