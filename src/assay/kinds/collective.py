"""What ranks exchange: sums, parts and tokens that cross from one rank to others.

`ranks` is how many take part, `over` the sort of parallelism that they are ranks of. A ring sends N (t - 1) / t of what
t ranks gather or scatter and twice that of what they sum (Thakur et al. 2005; Patarasuk & Yuan 2009).
"""

from __future__ import annotations

from assay.kinds.base import Extent, Kind, expect, nothing, register, same_axes, traded, view
from assay.size import Size, ceil_div, is_integer
from assay.spec import Op

GROUPED = ("ranks", "over")


def _share(op: Op, elements: Size, times: int = 1) -> Size:
    """What a ring of ranks sends of so many elements, each rank."""
    ranks = op.attr("ranks")
    return ceil_div(times * elements * (ranks - 1), ranks)


def _grouped(op: Op) -> None:
    ranks = op.attr("ranks")
    expect(op, is_integer(ranks) and ranks >= 1, f"{op.kind} says how many ranks take part, ranks=2")


def _check_sum(op: Op) -> None:
    expect(op, len(op.inputs) == 1, f"{op.kind} takes one tensor")
    expect(op, set(op.axes) <= set(op.inputs[0].axes), f"{op.kind} adds no axis")
    _grouped(op)


def _check_trade(op: Op) -> None:
    traded(op)
    _grouped(op)


def _check_same(op: Op) -> None:
    same_axes(op)
    _grouped(op)


def _check_exchange(op: Op) -> None:
    expect(op, 1 <= len(op.inputs) <= 2, "all_to_all takes tokens, and perhaps where each goes")
    given = {axis for tensor in op.inputs for axis in tensor.axes}
    expect(op, set(op.axes) == given, "all_to_all has every axis of its operands: a row for each place a token goes to")
    _grouped(op)


def _check_passed(op: Op) -> None:
    expect(op, len(op.inputs) == 1, f"{op.kind} takes one tensor")
    same_axes(op)


def _summed(op: Op, extent: Extent) -> Size:
    return _share(op, extent(op.axes), 2)


def _gathered(op: Op, extent: Extent) -> Size:
    return _share(op, extent(op.axes))


def _gathered_back(op: Op, extent: Extent) -> Size:
    """Gradients of all ranks are added and scattered, but for those that all ranks have alike."""
    return 0 if op.attr("alike") else _share(op, extent(op.axes))


def _scattered(op: Op, extent: Extent) -> Size:
    return _share(op, extent(op.inputs[0].axes))


def _all(op: Op, extent: Extent) -> Size:
    return extent(op.axes)


register(
    view(
        "all_reduce",
        "sum over ranks, in place; first over the axes that the result lacks",
        _check_sum,
        attrs=GROUPED,
        moves=_summed,
    ),
    view(
        "copies",
        "the same on every rank; its gradient is the sum of theirs",
        _check_same,
        attrs=GROUPED,
        moves=nothing,
        moves_back=_summed,
    ),
    view(
        "scatter",
        "a rank's own part of what all have; its gradient is gathered",
        _check_trade,
        attrs=GROUPED,
        moves=nothing,
        moves_back=_scattered,
    ),
    Kind(
        "all_gather",
        "what each rank has of an axis, joined; `alike` where all go on with it in the same way",
        _check_trade,
        attrs=(*GROUPED, "alike"),
        moves=_gathered,
        moves_back=_gathered_back,
    ),
    Kind(
        "reduce_scatter",
        "sum over ranks, of which each keeps a part of an axis",
        _check_trade,
        attrs=GROUPED,
        moves=_scattered,
        moves_back=_scattered,
    ),
    Kind(
        "all_to_all",
        "tokens to the ranks of the experts that an index chooses, or back; as many come as go",
        _check_exchange,
        attrs=GROUPED,
        moves=_gathered,
        moves_back=_gathered,
    ),
    view("send", "to the next stage", _check_passed, moves=_all),
    Kind("receive", "from the stage before", _check_passed, moves=nothing, moves_back=_all),
)
