"""Sums of products: contract, linear, select; and the look-up and weighted sum around them.

A contraction costs one multiply-add for each point of the space that its axes span, whatever their order:
the rule of opt_einsum and of the scaling literature ("2 x the product of all dimensions, each once").
"""

from __future__ import annotations

from functools import lru_cache

from assay.kinds.base import Extent, Kind, Work, dimension, expect, flat, register, union
from assay.size import Size, minimum
from assay.spec import Axes, Op, Tensor


def _products(op: Op, extent: Extent) -> Work:
    """P multiply-adds over all axes, of which one addition for each of the O results is not made."""
    return {"multiply_add": extent(union(op)), "start": extent(op.axes)}


def _check_contract(op: Op) -> None:
    expect(op, len(op.inputs) == 2, "contract takes two operands")
    known = {a for t in op.inputs for a in t.axes}
    expect(op, set(op.axes) <= known, f"[{' '.join(op.axes)}] has an axis that no operand has")


def _check_linear(op: Op) -> None:
    weights = op.weights
    expect(op, len(op.activations) == 1 and 1 <= len(weights) <= 2, "linear takes x, a weight and perhaps a bias")
    known = {a for t in op.inputs[:2] for a in t.axes}
    expect(op, set(op.axes) <= known, f"[{' '.join(op.axes)}] has an axis that no operand has")
    summed = set(weights[0].axes) - set(op.axes)
    expect(op, summed <= set(op.inputs[0].axes), f"{weights[0]} sums over an axis that {op.inputs[0]} lacks")
    for bias in weights[1:]:
        expect(op, set(bias.axes) <= set(op.axes), f"the bias {bias} has an axis that the result lacks")


def _linear(op: Op, extent: Extent) -> Work:
    work: Work = {"multiply_add": extent(_matrix(op)), "start": extent(op.axes)}
    if len(op.weights) > 1:
        work["add"] = work["start"]
    return work


@lru_cache(maxsize=4096)
def _matrix(op: Op) -> Axes:
    """Every axis of the product: a bias adds none."""
    return tuple(dict.fromkeys(op.inputs[0].axes + op.weights[0].axes + op.axes))


def _linear_layout(op: Op, axes: Axes) -> tuple[str, ...]:
    """Output first, then input, each flat, as nn.Linear keeps them; a bias flat."""
    weight, x = op.weights[0], op.inputs[0].axes
    if axes != weight.axes:
        return flat(op, axes)
    summed = [a for a in axes if a in x and a not in op.axes]
    return (dimension(a for a in axes if a not in summed), dimension(summed))


def _table_layout(op: Op, axes: Axes) -> tuple[str, ...]:
    """Rows as they are indexed."""
    return axes


def _check_select(op: Op) -> None:
    weights = op.weights
    expect(
        op, len(op.activations) == 2 and 1 <= len(weights) <= 2, "select takes x, a weight, perhaps a bias, an index"
    )
    chosen = _chosen(op)
    expect(op, len(chosen) == 1, f"{weights[0]} must have one axis, the experts, that is chosen from")
    index = set(op.activations[1].axes)
    expect(op, index <= set(op.axes), "the result keeps the axes of the index")


def _chosen(op: Op) -> list[str]:
    """The axis that is neither summed nor kept: experts."""
    x = op.activations[0].axes
    return [a for a in op.weights[0].axes if a not in op.axes and a not in x]


def _select(op: Op, extent: Extent) -> Work:
    (experts,) = _chosen(op)
    work: Work = {"multiply_add": extent(a for a in union(op) if a != experts), "start": extent(op.axes)}
    if len(op.weights) > 1:
        work["add"] = work["start"]
    return work


def _select_weighs(op: Op, extent: Extent) -> Size:
    """Weights of the experts touched: at most one an index entry, at most all of them (modelled)."""
    (experts,) = _chosen(op)
    touched = minimum(extent((experts,)), extent(op.activations[1].axes))
    return sum((touched * extent(a for a in w.axes if a != experts) for w in op.weights), start=0)


def _select_active(op: Op, extent: Extent, weight: Tensor) -> Size:
    """The chosen experts' elements."""
    (experts,) = _chosen(op)
    chosen = minimum(extent.sizes[experts], extent.sizes[op.activations[1].axes[-1]])
    return chosen * extent(a for a in weight.axes if a != experts)


def _check_combine(op: Op) -> None:
    expect(op, len(op.inputs) == 2, "combine takes values and their weights")
    expect(op, set(op.inputs[1].axes) <= set(op.inputs[0].axes), "each weight belongs to a value")
    expect(op, set(op.axes) < set(op.inputs[0].axes), "combine sums over at least one axis")


def _combine(op: Op, extent: Extent) -> Work:
    products = op.inputs[0].axes
    return {"multiply": extent(products), "add": extent.less(products, op.axes)}


def _check_gather(op: Op) -> None:
    expect(op, len(op.activations) == 1 and len(op.weights) == 1, "gather takes an index and a table")
    index, table = op.activations[0].axes, op.weights[0].axes
    expect(op, set(op.axes) == set(index) | set(table[1:]), "gather keeps the index's axes and the table's rows")


def _gather_weighs(op: Op, extent: Extent) -> Size:
    return extent(op.axes)


register(
    Kind("contract", "sum of products over the axes that the result lacks", _check_contract, _products, contracts=True),
    Kind(
        "linear",
        "contraction with a weight, plus a bias where one is given",
        _check_linear,
        _linear,
        layout=_linear_layout,
        attrs=("packed",),
        contracts=True,
    ),
    Kind(
        "select",
        "contraction with the experts' weights that an index chooses; with `none`, an index past the last is none",
        _check_select,
        _select,
        attrs=("none", "sorted"),
        weighs=_select_weighs,
        active=_select_active,
        layout=_table_layout,
        contracts=True,
    ),
    Kind("combine", "sum of values times their weights", _check_combine, _combine, attrs=("eps", "sorted")),
    Kind(
        "gather",
        "rows of a table by index, `offset` rows further down, or by buckets of a distance: no arithmetic; of a table "
        "that `ranks` divide zero for rows of others",
        _check_gather,
        weighs=_gather_weighs,
        layout=_table_layout,
        attrs=("offset", "far", "both", "index", "ranks"),
    ),
)
