"""Ops made of other ops: the same in another part of the model, over another axis, with weights of other names.

Ops of blocks are shared between layers, so those made of them are: each is made once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from assay.records import replace
from assay.spec import Axes, Op, Tensor


def as_part(made: Iterable[Op], part: str) -> list[Op]:
    """The same ops, all of one part of the model."""
    return [_as_part(op, part) for op in made]


def begun(made: Iterable[Op], prefix: str) -> list[Op]:
    """The same ops, the names of their weights begun with a prefix."""
    return [_begun(op, prefix) if op.weights else op for op in made]


def over(made: Iterable[Op], old: str, new: str) -> list[Op]:
    """The same ops with one axis in the place of another."""
    return [_over(op, old, new) for op in made]


@lru_cache(maxsize=4096)
def _as_part(op: Op, part: str) -> Op:
    return replace(op, part=part)


@lru_cache(maxsize=4096)
def _begun(op: Op, prefix: str) -> Op:
    return replace(op, inputs=tuple(Tensor(prefix + t.name, t.axes) if t.is_weight else t for t in op.inputs))


@lru_cache(maxsize=4096)
def _over(op: Op, old: str, new: str) -> Op:
    def axes(named: Axes) -> Axes:
        return tuple(new if axis == old else axis for axis in named)

    return replace(op, inputs=tuple(Tensor(t.name, axes(t.axes)) for t in op.inputs), axes=axes(op.axes))
