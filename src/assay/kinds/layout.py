"""Renaming and picking: no arithmetic, and no new storage where the result is a view."""

from __future__ import annotations

from functools import lru_cache

from assay.kinds.base import Extent, Keys, Kind, Pairs, expect, nothing, register, same_axes, traded, view, whole_output
from assay.size import Size, maximum, minimum
from assay.spec import Op


def _check_trade(op: Op) -> None:
    traded(op)


@lru_cache(maxsize=4096)
def _joined(op: Op) -> tuple[str, tuple[str, ...]]:
    """The axis that is made, and those that are joined."""
    made = next(a for a in op.axes if all(a not in t.axes for t in op.inputs))
    return made, tuple(next(a for a in t.axes if a not in op.axes) for t in op.inputs)


def _bind_joined(op: Op, extent: Extent) -> None:
    """The axis that is made is as long as those that are joined; joined keys are those of the same queries."""
    made, lost = _joined(op)
    if made in extent.sizes:
        return
    extent.sizes[made] = sum((extent.sizes[a] for a in lost), start=0)
    known = [extent.keys[a] for a in lost if a in extent.keys]
    if len(known) == len(lost) > 1:  # keys of several sorts, seen by the same queries
        extent.keys[made] = Keys(
            known[0].queries,
            sum((keys.visible for keys in known), start=Pairs(0)),
            sum((keys.stepped for keys in known), start=Pairs(0)),
            tuple(limit for keys in known for limit in keys.breaks),
            next((keys.period for keys in known if keys.period is not None), None),
        )
    elif len(known) == 1:
        more = sum((extent.sizes[a] for a in lost if a not in extent.keys), start=0)
        others = Pairs(extent.sizes[known[0].queries] * more)
        extent.keys[made] = Keys(known[0].queries, known[0].visible + others, known[0].stepped + others)


def _check_concat(op: Op) -> None:
    made = [a for a in op.axes if all(a not in t.axes for t in op.inputs)]
    expect(op, len(op.inputs) >= 2 and len(made) == 1, "concat joins operands along an axis that it makes")
    for tensor in op.inputs:
        rest = set(tensor.axes) - set(op.axes)
        expect(op, len(rest) == 1, f"{tensor} must have one axis that is joined")


def _check_repeat(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "repeat takes one tensor")
    expect(op, set(op.inputs[0].axes) < set(op.axes), "repeat adds axes along which all is alike")


def _check_pick(op: Op) -> None:
    expect(op, len(op.inputs) == 1, f"{op.kind} takes one tensor")
    lost = set(op.inputs[0].axes) - set(op.axes)
    expect(op, len(lost) == 1 and set(op.axes) < set(op.inputs[0].axes), f"{op.kind} drops one axis")


def _bind_distances(op: Op, extent: Extent) -> None:
    """Twice as many as there are tokens, or as the limit."""
    _, made = traded(op)
    extent.sizes[made] = 2 * minimum(extent.value(op.attr("tokens")), extent.value(op.attr("limit")))


def _bind_offsets(op: Op, extent: Extent) -> None:
    """From the furthest before to the furthest behind, none where there are no tokens."""
    tokens, made = traded(op)
    extent.sizes[made] = maximum(0, 2 * extent.sizes[tokens] - 1)


def _check_distances(op: Op) -> None:
    traded(op)
    given = op.attr("tokens") is not None and op.attr("limit") is not None
    expect(op, given, "distances names the axis of its tokens and the limit to either side")


def _check_unfold(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "unfold takes one tensor")
    made = set(op.axes) - set(op.inputs[0].axes)
    expect(op, len(made) == 1 and set(op.inputs[0].axes) < set(op.axes), "unfold adds one axis, the neighbours")


def _check_reshape(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "reshape takes one tensor")


def _check_idle(op: Op) -> None:
    expect(op, len(op.inputs) == 1 == len(op.weights), "idle names one weight")
    same_axes(op)


def _check_take(op: Op) -> None:
    expect(op, len(op.inputs) == 2, "take picks values by index")
    values, index = set(op.inputs[0].axes), set(op.inputs[1].axes)
    expect(op, index <= set(op.axes) <= values | index, "take has the axes of the index, and others of the values")


def _check_columns(op: Op) -> None:
    expect(op, len(op.inputs) == 1, "columns takes one tensor")
    known = op.inputs[0].axes
    renamed = sum(before != after for before, after in zip(known, op.axes, strict=False))
    fits = len(op.axes) == len(known) + 1 and op.axes[-1] not in known and renamed <= 1
    expect(op, fits, "columns adds the kernel's axis behind the others, of which a stride renames at most one")


def _take_reads(op: Op, extent: Extent) -> Size:
    return 2 * extent(op.axes)


register(
    view("rename", "an axis by another name", _check_trade),
    Kind(
        "behind",
        "of a profile over distances, the value at each key's distance behind the query; zero beyond",
        _check_trade,
        reads=whole_output,
    ),
    view(
        "slice", "a part along one axis, from `at` or from where the slice before it ended", _check_trade, attrs=("at",)
    ),
    view("reshape", "the same elements under other axes", _check_reshape),
    Kind("idle", "stored, and not used in this pass", _check_idle, weighs=nothing, writes=nothing, storage="view"),
    view("unfold", "each position with its neighbours", _check_unfold, attrs=("order",)),
    view(
        "distances",
        "of a table of relative positions, those that so many tokens have",
        _check_distances,
        bind=_bind_distances,
        attrs=("tokens", "limit"),
    ),
    view("offsets", "every distance between two of the tokens", _check_trade, bind=_bind_offsets),
    view("first", "the first along an axis, or the one at an index or token", _check_pick, attrs=("at", "token")),
    view("repeat", "the same along further axes, or `of` layers what each left", _check_repeat, attrs=("of",)),
    Kind("concat", "operands joined along an axis", _check_concat, bind=_bind_joined),
    view("keep", "the positions that get logits", _check_trade),
    view("view", "the same elements", same_axes),
    view(
        "columns",
        "what a kernel sees at every `stride`-th position, after `pad` zeros; or squares of a grid",
        _check_columns,
        attrs=("stride", "pad", "order"),
    ),
    Kind(
        "take",
        "values at an index, or at a distance from the middle, in buckets up to `far` where that is said",
        _check_take,
        reads=_take_reads,
        attrs=("centred", "far"),
    ),
)
