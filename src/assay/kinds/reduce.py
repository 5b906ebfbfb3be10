"""Over an axis: softmax, norms, sums to one, top-k."""

from __future__ import annotations

from assay.kinds.base import Extent, Kind, Work, expect, register, same_axes, traded
from assay.size import floor_div, minimum, product
from assay.spec import Axes, Op


def over(op: Op) -> Axes:
    """The axes reduced over: named by `over`, else the weight's, else the last."""
    named = op.attr("over")
    if named is not None:
        return (named,) if isinstance(named, str) else tuple(named)
    return op.weights[0].axes if op.weights else op.axes[-1:]


def _check_reduce(op: Op) -> None:
    expect(op, len(op.activations) == 1, f"{op.kind} takes one tensor")
    same_axes(op)
    expect(op, set(over(op)) <= set(op.axes), f"{op.kind} reduces over an axis that it has")


def _check_softmax(op: Op) -> None:
    expect(op, len(op.activations) == 1 and len(op.weights) <= 1, "softmax takes one tensor and perhaps a sink")
    same_axes(op)
    expect(op, op.attr("over", op.axes[-1]) in op.axes, "softmax sums over an axis that it has")


def _softmax(op: Op, extent: Extent) -> Work:
    """E exponentials, E - R additions, E divisions over R rows; no maximum is found or subtracted."""
    over = op.attr("over", op.axes[-1])
    elements = extent(op.axes)
    rows = [a for a in op.axes if a != over]
    work: Work = {"exp": elements, "add": extent.less(op.axes, rows), "divide": elements}
    if op.weights:  # a learned sink: one more term in each row's sum
        work["exp"] = elements + extent(rows)
        work["add"] = elements
    if over in extent.keys or op.part.endswith(".scores"):  # of attention, to a source's keys too: no choice of experts
        work["softmax"] = elements
    return work


def _rmsnorm(op: Op, extent: Extent) -> Work:
    """x / sqrt(mean(x^2) + eps) * gain (Zhang & Sennrich 2019): 4 d + 3 a row with a gain."""
    elements = extent(op.axes)
    rows = extent(a for a in op.axes if a not in over(op))
    gains = elements if op.weights else 0
    return {"multiply": 2 * elements + gains, "add": elements, "divide": 2 * rows, "root": rows}


def _layernorm(op: Op, extent: Extent) -> Work:
    """(x - mean) / sqrt(var + eps) * gain + bias (Ba et al. 2016)."""
    elements = extent(op.axes)
    rows = extent(a for a in op.axes if a not in over(op))
    gains = elements if op.weights else 0
    shifts = elements if len(op.weights) > 1 else 0
    return {
        "multiply": 2 * elements + gains,
        "add": (elements - rows) + 2 * elements + shifts,
        "divide": 3 * rows,
        "root": rows,
    }


def _check_sum(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "sum takes one tensor")
    expect(op, set(op.axes) < set(op.inputs[0].axes), "sum drops at least one axis")


def _sum(op: Op, extent: Extent) -> Work:
    return {"add": extent.less(op.inputs[0].axes, op.axes)}


def _mean(op: Op, extent: Extent) -> Work:
    return {**_sum(op, extent), "divide": extent(op.axes)}


def _rms(op: Op, extent: Extent) -> Work:
    """The root of the mean of squares of each row."""
    rows = extent(op.axes)
    return {"multiply": extent(op.inputs[0].axes), **_sum(op, extent), "divide": rows, "root": rows}


def _sparsify(op: Op, extent: Extent) -> Work:
    """Mean and deviation of a row, a limit made of them, what is above it less the limit (You et al. 2025)."""
    elements = extent(op.axes)
    rows = extent(a for a in op.axes if a not in over(op))
    return {
        "add": (elements - rows) + 3 * elements,
        "multiply": elements + rows,
        "divide": 2 * rows,
        "root": rows,
        "compare": elements,
    }


def _shorten(op: Op, extent: Extent) -> Work:
    """Each row's length, its share of the limit, at most one, times the row."""
    elements = extent(op.axes)
    rows = extent(a for a in op.axes if a not in over(op))
    return {"multiply": 2 * elements, "add": elements, "root": rows, "divide": rows, "compare": rows}


def _normalize(op: Op, extent: Extent) -> Work:
    over = op.attr("over", op.axes[-1])
    return {"add": extent.less(op.axes, [a for a in op.axes if a != over]), "divide": extent(op.axes)}


def _check_sinkhorn(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "sinkhorn takes one tensor")
    same_axes(op)
    expect(op, len(op.axes) >= 2, "sinkhorn works on the matrix of the last two axes")


def _sinkhorn(op: Op, extent: Extent) -> Work:
    """Rows, then columns, each over its sum, `times` over; the first rows' sums are one already (Sinkhorn 1967)."""
    tall = int(op.attr("times", 1))
    wide = tall - 1
    rows, columns = extent.less(op.axes, op.axes[:-1]), extent.less(op.axes, (*op.axes[:-2], op.axes[-1]))
    return {"divide": (wide + tall) * extent(op.axes), "add": wide * rows + tall * columns}


def _check_blocks(op: Op) -> None:
    traded(op)
    expect(op, op.attr("block") is not None, "blocks names the size of a block: block=w")


def _bind_blocks(op: Op, extent: Extent) -> None:
    lost, made = traded(op)
    extent.sizes[made] = floor_div(extent.sizes[lost], extent.value(op.attr("block")))


def _check_topk(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "topk takes one tensor")
    lost, made = set(op.inputs[0].axes) - set(op.axes), set(op.axes) - set(op.inputs[0].axes)
    expect(op, len(lost) >= 1 and len(made) == 1, "topk trades the axes it chooses from for the chosen")


def _topk(op: Op, extent: Extent) -> Work:
    """The maximum found once for each chosen: one comparison an element and choice; at most all are chosen.

    Of keys at hand the full choice is counted: how many there are changes with every step, and a sum over
    steps must be what the steps cost one by one.
    """
    given = op.inputs[0].axes
    lost = [axis for axis in given if axis not in op.axes]
    found = product(extent.sizes[axis] for axis in op.axes if axis not in given)
    if not any(axis in extent.keys for axis in lost):
        found = minimum(found, product(extent.sizes[axis] for axis in lost))
    return {"compare": extent(given) * found}


def _check_near(op: Op) -> None:
    expect(op, len(op.inputs) == 2, "near_softmax takes scores and an index")
    expect(op, set(op.axes) == set(op.inputs[1].axes), "near_softmax has the axes of the index")


def _near(op: Op, extent: Extent) -> Work:
    """Distances to the best, those beyond the limit left out, exponentials and their sum, anew for each choice."""
    pairs = extent(dict.fromkeys(op.inputs[0].axes + op.axes))
    rows = extent(op.axes)
    return {"add": (pairs - rows) + pairs, "divide": 2 * pairs, "compare": 2 * pairs, "exp": pairs}


def _check_differential(op: Op) -> None:
    expect(op, len(op.inputs) == 4 and not op.activations, "differential takes four vectors that are weights")
    expect(op, len({t.axes for t in op.inputs}) == 1 == len(op.axes), "differential makes one axis, the two sides")


def _differential(op: Op, extent: Extent) -> Work:
    """Two dot products, their exponentials, the difference, a constant of the layer, the sign."""
    width, once = extent(op.inputs[0].axes), extent(())
    return {"multiply": 2 * width + once, "add": 2 * width, "exp": 2 * once}


_NORM = ("eps", "over", "unit_offset")

register(
    Kind("softmax", "exp(x) over its sum", _check_softmax, _softmax, attrs=("over",)),
    Kind("rmsnorm", "x over its root mean square, times a gain", _check_reduce, _rmsnorm, attrs=_NORM),
    Kind(
        "layernorm",
        "(x - mean) / deviation, times a gain, plus a bias",
        _check_reduce,
        _layernorm,
        attrs=_NORM,
    ),
    Kind("sum", "sum over the axes that the result lacks", _check_sum, _sum),
    Kind(
        "rms",
        "root of the mean of squares over the axes that the result lacks",
        _check_sum,
        _rms,
        attrs=("least",),
    ),
    Kind(
        "sparsify", "what is above a share of a normal distribution", _check_reduce, _sparsify, attrs=("share", "over")
    ),
    Kind("shorten", "no longer than a limit", _check_reduce, _shorten, attrs=("limit", "over", "eps")),
    Kind("mean", "mean over the axes that the result lacks", _check_sum, _mean),
    Kind(
        "blocks",
        "sums of full blocks along an axis, the last with what is left over",
        _check_blocks,
        _sum,
        bind=_bind_blocks,
        attrs=("block",),
    ),
    Kind("normalize", "x over its sum", _check_reduce, _normalize, attrs=("over",)),
    Kind("sinkhorn", "rows and columns of a matrix to sums of one", _check_sinkhorn, _sinkhorn, attrs=("times", "eps")),
    Kind(
        "near_softmax",
        "for each choice, its share of a softmax over the scores that are near it",
        _check_near,
        _near,
        attrs=("jitter",),
    ),
    Kind(
        "differential",
        "1 and -l for two sides, l = exp(q1 k1) - exp(q2 k2) + 0.8 - 0.6 exp(-0.3 layer), Ye et al. 2024",
        _check_differential,
        _differential,
    ),
    Kind("topk", "indices of the largest", _check_topk, _topk, attrs=("groups", "keep_groups", "judged")),
)
