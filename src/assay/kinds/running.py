"""A norm whose mean and deviation are those of all that came so far."""

from __future__ import annotations

from assay.kinds.base import Extent, Kind, Work, expect, register, same_axes
from assay.spec import Axes, Op


def _over(op: Op) -> Axes:
    """The axes of one moment that are summed over: named by `over`, else the last."""
    named = op.attr("over", op.axes[-1])
    return (named,) if isinstance(named, str) else tuple(named)


def _check(op: Op) -> None:
    expect(op, len(op.activations) == 1, f"{op.kind} takes one tensor")
    same_axes(op)
    along = op.attr("along")
    expect(op, along in op.axes and along not in _over(op), f"{op.kind} runs along an axis that it has: along=n")
    expect(op, set(_over(op)) <= set(op.axes), f"{op.kind} reduces over axes that it has")


def _work(op: Op, extent: Extent) -> Work:
    """Sums of a moment and of squared differences from the mean so far, each added to those before; then as any norm.

    The first moment has none before it.
    """
    elements, rows = extent(op.axes), [a for a in op.axes if a not in _over(op)]
    firsts, moments = [a for a in rows if a != op.attr("along")], extent(rows)
    gains = elements if op.weights else 0
    return {
        "multiply": 2 * elements + gains,
        "add": 2 * extent.less(op.axes, firsts) + elements + moments,
        "divide": 3 * moments,
        "root": moments,
    }


register(
    Kind(
        "running_norm",
        "(x - mean so far) / deviation so far, times a gain",
        _check,
        _work,
        attrs=("along", "over", "eps"),
    ),
)
