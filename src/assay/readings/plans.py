"""A list of ops, sorted once by what readings ask of it: layers of one structure share the answers.

Most layers of a model whose layers differ consist of the same ops and differ in a size or two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from assay.kinds import Extent, Kind, Work, kind_of
from assay.size import Size, all_integers
from assay.spec import Op, Tensor

Found = TypeVar("Found")
Active: TypeAlias = Callable[[Op, Extent, Tensor], Size]

MOST = 256  # plans that are kept
_ALWAYS = ("b", "n", "past")  # axes that any op may ask for


def _axes(op: Op) -> frozenset[str]:
    """The axes that figures of an op can depend on; an attribute may name one."""
    named = (value for _, value in op.attrs if isinstance(value, str))
    return frozenset(chain(_ALWAYS, op.axes, named, *(tensor.axes for tensor in op.inputs)))


class Line:
    """An op as a fold over work sees it."""

    __slots__ = ("axes", "op", "part", "scores", "work")

    def __init__(self, op: Op, work: Callable[[Op, Extent], Work]) -> None:
        self.op = op
        self.work = work
        self.part, _, sub = op.part.partition(".")
        self.scores = sub == "scores"
        self.axes = _axes(op)


class Plan:
    """The ops that bind axes, that cost something, that leave state, and their weights."""

    __slots__ = ("binding", "contracting", "lines", "ops", "state_axes", "stateful", "weight_axes", "weights")

    def __init__(self, ops: tuple[Op, ...]) -> None:
        kinds = [(op, kind_of(op)) for op in ops]
        self.ops = ops
        self.binding = [(op, kind.bind) for op, kind in kinds if kind.bind is not None]
        self.lines = [Line(op, kind.work) for op, kind in kinds]
        self.contracting = [line for line, (_, kind) in zip(self.lines, kinds, strict=True) if kind.contracts]
        self.stateful = [(op, kind, kind.state) for op, kind in kinds if kind.state is not None]
        self.state_axes = _together(op for op, _, _ in self.stateful)
        self.weights = [_weight(op, one, kind) for op, kind in kinds for one in op.weights]
        # a weight has the axes of its own; how much of it is active may depend on others
        active = _together(op for op, _, passed, _, _ in self.weights if passed is not None)
        self.weight_axes = active.union(*(weight.axes for _, weight, _, _, _ in self.weights))


def _weight(op: Op, weight: Tensor, kind: Kind) -> tuple[Op, Tensor, Active | None, str, bool]:
    """An op's weight, what of it is active where that is not all, its part, and whether it is a head's matrix."""
    part, _, sub = op.part.partition(".")
    return op, weight, kind.active, part, sub == "vocabulary" and weight is op.weights[0]


def _together(ops: Iterable[Op]) -> frozenset[str]:
    return frozenset().union(*map(_axes, ops))


def plan_of(ops: tuple[Op, ...]) -> Plan:
    """The plan of some ops, one for all tuples of the same ops. Raises KindError."""
    key = tuple(map(id, ops))
    plan = _PLANS.get(key)
    if plan is None:
        if len(_PLANS) >= MOST:
            _PLANS.clear()
        plan = _PLANS[key] = Plan(ops)  # it holds the ops, so that their identities stay theirs
    return plan


_PLANS: dict[tuple[int, ...], Plan] = {}


class Known:
    """What ops came to in one block, for the next block of the same ops in the same setting.

    `news` are the axes whose size or keys have changed since; None where all may have.
    """

    def __init__(self) -> None:
        self.extent: Extent | None = None
        self.news: Collection[str] | None = None
        self.figures: dict[object, Any] = {}

    def turn(self, extent: Extent) -> Known:
        """The same before another block."""
        last, self.extent = self.extent, extent if all_integers(extent.sizes.values()) else None
        if last is None or self.extent is None:
            self.news = None
            return self
        was, knew = last.sizes, last.keys
        changed = {axis for axis, size in extent.sizes.items() if was.get(axis) != size}
        self.news = changed.union(axis for axis, keys in extent.keys.items() if knew.get(axis) != keys)
        return self

    def of(self, key: object, axes: frozenset[str], find: Callable[[], Found]) -> Found:
        """What it came to in the last block where none of its axes has changed, else what it comes to now."""
        if self.news is not None and axes.isdisjoint(self.news):
            kept: Found = self.figures[key]
            return kept
        found = self.figures[key] = find()
        return found
