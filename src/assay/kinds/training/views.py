"""Tensors of a pass seen otherwise: nothing is computed, and only where nothing else serves is something copied.

Whether a reshape copies hangs on how long axes are: an axis of one never stands in the way.
"""

from __future__ import annotations

from itertools import pairwise

from assay.errors import KindError
from assay.kinds.training.storages import Storages
from assay.kinds.training.values import Value, evenly
from assay.spec import Axes


class Views(Storages):
    """Storages, and what is seen of them along axes."""

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
