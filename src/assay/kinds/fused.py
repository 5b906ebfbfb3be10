"""Several ops that run as one. What they cost together is what each costs; what lies between them is never stored."""

from __future__ import annotations

from collections.abc import Sequence

from assay.kinds.base import Extent, Kind, Work, expect, kind_of, register
from assay.size import Size
from assay.spec import Op, parse


def whole(op: Op) -> tuple[Op, ...]:
    """The ops that a fused one stands for."""
    return tuple(parse(line, op.part) for line in op.attr("of") or ())


def _check_attend(op: Op) -> None:
    ops = whole(op)
    expect(op, len(op.inputs) == 3 and bool(ops), "attend takes queries, keys and values, and names its ops: of=(…)")
    expect(op, ops[-1].axes == op.axes, "attend makes what the last of its ops makes")


def _attend(op: Op, extent: Extent) -> Work:
    """The sum over its ops."""
    total: dict[str, Size] = {}
    for part in whole(op):
        for sort, times in kind_of(part).work(part, extent).items():
            total[sort] = total.get(sort, 0) + times
    return total


BETWEEN = ("scale", "mask")  # what a kernel does to scores before their softmax; each at most once


def attention(ops: Sequence[Op], at: int) -> int | None:
    """Where an attention that begins at an op ends; None where none does, or where no kernel runs it."""
    scores = ops[at]
    if scores.kind != "contract" or scores.weights or not _scores(scores):
        return None
    seen: list[str] = []
    for index in range(at + 1, len(ops)):
        op, before = ops[index], ops[index - 1]
        if op.inputs[0].name != before.name or op.inputs[0].axes != before.axes:
            return None
        if op.kind == "softmax":
            last = ops[index + 1] if index + 1 < len(ops) else None
            if op.weights or op.attr("over", op.axes[-1]) != scores.axes[-1] or last is None or not _sums(last, op):
                return None
            return None if _read_later(ops[index + 2 :], {scores.name, op.name}) else index + 2
        if op.kind not in BETWEEN or op.kind in seen or len(op.inputs) > 1 or op.axes != scores.axes:
            return None
        if op.kind == "mask" and op.attr("keep") is not None:
            return None
        seen.append(op.kind)
    return None


def _scores(op: Op) -> bool:
    """True for queries times keys: batch first, heads, queries, keys, one axis summed over."""
    q, k = op.inputs
    *heads, n, c = op.axes if len(op.axes) > 2 else ("", "", "")
    summed = [axis for axis in q.axes if axis not in op.axes]
    return (
        n in q.axes
        and n not in k.axes
        and c in k.axes
        and c not in q.axes
        and len(summed) == 1
        and summed[0] in k.axes
        and heads[:1] == ["b"]
        and "b" in k.axes
        and all(axis in q.axes for axis in heads)
        and set(k.axes) <= {*heads, c, *summed}
    )


def _sums(op: Op, weights: Op) -> bool:
    """True for weights times values, summed over the keys."""
    if op.kind != "contract" or op.weights or op.inputs[0].name != weights.name:
        return False
    p, v = op.inputs
    c = p.axes[-1]
    own = [axis for axis in v.axes if axis not in p.axes]
    return c in v.axes and "b" in v.axes and len(own) == 1 and set(op.axes) == {*p.axes, *own} - {c}


def _read_later(ops: Sequence[Op], names: set[str]) -> bool:
    """True where one of these is read before it is made anew."""
    left = set(names)
    for op in ops:
        if any(operand.name in left for operand in op.inputs):
            return True
        left.discard(op.name)
    return False


register(
    Kind(
        "attend",
        "attention in one kernel, whose scores are never stored (Dao et al. 2022)",
        _check_attend,
        _attend,
        attrs=("of", "grouped"),
        contracts=True,
    ),
)
