"""An op as its training rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from assay.errors import KindError
from assay.kinds.training.tape import Tape
from assay.kinds.training.values import Value
from assay.size import Size
from assay.spec import Axes, Op


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
