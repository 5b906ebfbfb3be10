"""A weight as its stored tensor, seen along the axes of the notation."""

from __future__ import annotations

import re
from math import prod

from assay.kinds.training import WEIGHT, Store, Tape, Value
from assay.readings.tensors import dimensions
from assay.spec import Axes, Block
from assay.spec import Tensor as Operand

_EACH = re.compile(r"\{(?!i\})([^{}]+)\}")  # axes in a path: one tensor for each index of them


class Seen:
    """The weights of a block: how far apart their elements lie, and which are parameters."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.dims: dict[str, tuple[str, ...]] = {}
        self.pieces: dict[str, list[Axes]] = {}  # of a stored dimension that several weights share
        for op in block.ops:
            for weight in op.weights:
                if weight.name not in self.dims:
                    where = block.weight(weight.name)
                    self.dims[weight.name] = dims = dimensions(op, weight, where.layout)
                    for dim in dims:
                        if "+" in dim:
                            self.pieces.setdefault(where.path, []).append(_apart(dim)[1])

    def trained(self, weight: Operand) -> bool:
        """True for a parameter, False for a buffer and for what is frozen."""
        where = self.block.weight(weight.name)
        return not (where.buffer or where.frozen)

    def view(self, tape: Tape, weight: Operand, groups: tuple[Axes, ...], layer: int | None = None) -> Value:
        """The weight with a dimension for each group of axes, copied where it cannot be seen so."""
        path = self.block.weight(weight.name).path
        each = tuple(axis for found in _EACH.findall(path) for axis in found.split())
        apart: dict[str, int] = {}
        run = 1
        for dim in reversed(self.dims[weight.name]):
            before, own = _apart(dim)
            if each and set(own) <= set(each):
                continue
            for axis in reversed(own):
                if axis.isdigit():
                    run *= int(axis)
                    continue
                apart[axis] = run
                run *= tape.sizes[axis]
            if "+" in dim:
                run = run // self._extent(tape, own) * sum(self._extent(tape, one) for one in self.pieces[path])
            for axis in reversed(before):
                if axis.isdigit():
                    run *= int(axis)
                else:
                    apart[axis] = run
                    run *= tape.sizes[axis]
        apart = self._flat(tape, weight, apart)
        grad = self.trained(weight) and tape.grads
        store = Store(0, WEIGHT, key=self._key(path, weight.name, layer))
        axes = tuple(a for group in groups for a in group)
        if not tape.shuffles:
            return Value(axes, tape.apart_in(axes, axes), store, grad, tape.dtype)
        if each:
            made = tape.new((*each, *(a for a in apart)), grad, order=(*each, *reversed(apart)))
            return tape.join(made, *groups)
        if not apart:
            return Value(axes, (), store, grad, tape.dtype)
        return tape.join(Value(tuple(apart), tuple(apart.values()), store, grad, tape.dtype), *groups)

    def _key(self, path: str, name: str, layer: int | None) -> tuple[str, str, int | None]:
        """What tells a weight from others: one that all layers share has no layer."""
        return path, name if path in self.pieces else "", layer if "{i}" in path else None

    @staticmethod
    def _flat(tape: Tape, weight: Operand, apart: dict[str, int]) -> dict[str, int]:
        """Neighbouring dimensions that the notation has one axis for, rows and columns of positions, as that axis."""
        lacking = [a for a in weight.axes if a not in apart]
        others = [a for a in apart if a not in weight.axes]
        if len(lacking) != 1 or not others or prod(tape.sizes[a] for a in others) != tape.sizes[lacking[0]]:
            return apart
        start = list(apart).index(others[0])
        if list(apart)[start : start + len(others)] != others:
            return apart
        return {lacking[0] if a == others[0] else a: run for a, run in apart.items() if a not in others[1:]}

    @staticmethod
    def _extent(tape: Tape, axes: Axes) -> int:
        return prod(int(a) if a.isdigit() else tape.sizes[a] for a in axes)


def _apart(dim: str) -> tuple[Axes, Axes]:
    """The axes of a stored dimension: what is before a +, and the weight's own."""
    before, plus, own = dim.replace("(", " ").replace(")", " ").partition("+")
    return (tuple(before.split()), tuple(own.split())) if plus else ((), tuple(before.split()))
