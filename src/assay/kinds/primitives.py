"""What implementations are made of where they compose a thing of several functions: casts, powers, copies, losses."""

from __future__ import annotations

from assay.kinds.base import Extent, Kind, Work, expect, no_work, register, same_axes
from assay.spec import Op


def _check_cast(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "cast takes one tensor")
    expect(op, set(op.axes) == set(op.inputs[0].axes), "cast keeps the axes of its operand")
    expect(op, (op.attr("to") is None) != (op.attr("like") is None), "cast names a dtype, to=fp32, or like=x whose")


def _check_power(op: Op) -> None:
    same_axes(op)
    expect(op, op.attr("by") in (2, 3), "power is a square or a cube: by=2 or by=3")


def _power(op: Op, extent: Extent) -> Work:
    return {"multiply": (int(op.attr("by")) - 1) * extent(op.axes)}


def _rsqrt(op: Op, extent: Extent) -> Work:
    """A sum with eps, a root, a quotient."""
    elements = extent(op.axes)
    added = {"add": elements} if op.attr("eps") is not None else {}
    return {"root": elements, "divide": elements, **added}


def _dropout(op: Op, extent: Extent) -> Work:
    """A comparison with a number drawn, and a product."""
    elements = extent(op.axes)
    return {"compare": elements, "multiply": elements}


def _check_dropout(op: Op) -> None:
    same_axes(op)
    rate = op.attr("rate")
    expect(op, isinstance(rate, float) and 0 < rate < 1, "dropout has a rate between 0 and 1")


def _log_softmax(op: Op, extent: Extent) -> Work:
    """x less the logarithm of the sum of exponentials, of each row."""
    elements, rows = extent(op.axes), extent(op.axes[:-1])
    return {"exp": elements, "add": extent.less(op.axes, op.axes[:-1]) + elements, "function": rows}


def _check_nll(op: Op) -> None:
    expect(op, len(op.inputs) == 2 and op.axes == (), "nll takes logarithms and an index, and makes one number")
    expect(op, op.inputs[1].axes == op.inputs[0].axes[:-1], "nll has an index for each row")


def _nll(op: Op, extent: Extent) -> Work:
    """The sum of what the index picks."""
    return {"add": extent(op.inputs[1].axes)}


register(
    Kind("cast", "the same in another dtype", _check_cast, no_work, attrs=("to", "like")),
    Kind("power", "to a whole power", _check_power, _power, attrs=("by",)),
    Kind("rsqrt", "one over the square root", same_axes, _rsqrt, attrs=("eps",)),
    Kind("copy", "the same in a contiguous tensor of its own", same_axes, no_work),
    Kind("dropout", "each element zero by chance, the others grown for it", _check_dropout, _dropout, attrs=("rate",)),
    Kind("log_softmax", "logarithm of a softmax over the last axis", same_axes, _log_softmax),
    Kind("nll", "what an index picks, negative, over all rows: the loss", _check_nll, _nll, attrs=("shifted",)),
)
