"""Renaming and picking: no arithmetic, and no new storage where the result is a view."""

from __future__ import annotations

from assay.kinds.base import Extent, Keys, Kind, expect, nothing, register, same_axes
from assay.size import Size, ceil_div, floor_div, maximum, minimum, only_at_zero
from assay.spec import Op


def _renamed(op: Op) -> tuple[str, str]:
    """The axis given up and the one made in its place."""
    expect(op, len(op.inputs) == 1, f"{op.kind} takes one tensor")
    lost = [a for a in op.inputs[0].axes if a not in op.axes]
    made = [a for a in op.axes if a not in op.inputs[0].axes]
    expect(op, len(lost) == 1 and len(made) == 1, f"{op.kind} puts one axis in the place of another")
    return lost[0], made[0]


def _check_rename(op: Op) -> None:
    _renamed(op)


def band_pairs(n: Size, reach: Size) -> Size:
    """Pairs of n tokens no further than `reach` from each other, themselves included: n (2 r + 1) - r (r + 1).

    Written as a sum of what is counted, for arrays lose digits in a difference.
    """
    r = minimum(reach, n - 1)
    return n + r * (2 * n - r - 1)


def block_pairs(n: Size, block: Size, offset: Size) -> Size:
    """Pairs of n tokens within the same block, the first of which has `offset` tokens where that is not 0."""
    first = minimum(n, offset)
    full = floor_div(n - first, block)
    rest = n - first - full * block
    return first * first + full * block * block + rest * rest


def random_pairs(n: Size, block: Size, random: Size) -> Size:
    """Pairs that blocks see of each other (Zaheer et al. 2020): the first and the last block all, the others these
    two, their neighbours, themselves and `random` more. Up to 5 + 2 `random` blocks every token sees every token.
    """
    blocks = ceil_div(n, block)
    beyond = maximum(0, n - (5 + 2 * random) * block)
    sparse = block * block * (2 * blocks + 2 * (4 + random) + (blocks - 4) * (5 + random))
    return only_at_zero(n * n, beyond) + sparse - only_at_zero(sparse, beyond)


def _bind_keys(op: Op, extent: Extent) -> None:
    """Keys of the same tokens, seen by all, by those within `reach`, or as blocks see each other."""
    queries, keys = _renamed(op)
    tokens = extent.sizes[queries]
    extent.sizes[keys] = tokens
    reach, block, random = op.attr("reach"), op.attr("block"), op.attr("random")
    pairs = tokens * tokens
    if reach is not None:
        pairs = band_pairs(tokens, extent.value(reach))
    elif random is not None:
        pairs = random_pairs(tokens, extent.value(block), extent.value(random))
    elif block is not None:
        pairs = block_pairs(tokens, extent.value(block), extent.value(op.attr("offset", 0)))
    extent.keys[keys] = Keys(queries, pairs, tokens)  # a token alone in its pass has its own key at hand


def _bind_joined(op: Op, extent: Extent) -> None:
    """The axis that is made is as long as those that are joined; joined keys are those of the same queries."""
    made = next(a for a in op.axes if all(a not in t.axes for t in op.inputs))
    if made in extent.sizes:
        return
    lost = [next(a for a in t.axes if a not in op.axes) for t in op.inputs]
    extent.sizes[made] = sum((extent.sizes[a] for a in lost), start=0)
    known = [extent.keys[a] for a in lost if a in extent.keys]
    if len(known) == len(lost) > 1:  # keys of several sorts, seen by the same queries
        extent.keys[made] = Keys(
            known[0].queries,
            sum((keys.visible for keys in known), start=0),
            sum((keys.stepped for keys in known), start=0),
            tuple(limit for keys in known for limit in keys.breaks),
            next((keys.period for keys in known if keys.period is not None), None),
        )
    elif len(known) == 1:
        others = extent.sizes[known[0].queries] * sum((extent.sizes[a] for a in lost if a not in extent.keys), start=0)
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
    _, made = _renamed(op)
    extent.sizes[made] = 2 * minimum(extent.value(op.attr("tokens")), extent.value(op.attr("limit")))


def _bind_offsets(op: Op, extent: Extent) -> None:
    """From the furthest before to the furthest behind, none where there are no tokens."""
    tokens, made = _renamed(op)
    extent.sizes[made] = maximum(0, 2 * extent.sizes[tokens] - 1)


def _check_distances(op: Op) -> None:
    _renamed(op)
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
    Kind(
        "keys",
        "the same tokens, seen as keys by every query",
        _check_rename,
        bind=_bind_keys,
        reads=nothing,
        writes=nothing,
        storage="view",
        attrs=("reach", "block", "offset", "random"),
    ),
    Kind("rename", "an axis by another name", _check_rename, reads=nothing, writes=nothing, storage="view"),
    Kind("slice", "a part along one axis", _check_rename, reads=nothing, writes=nothing, storage="view"),
    Kind(
        "reshape", "the same elements under other axes", _check_reshape, reads=nothing, writes=nothing, storage="view"
    ),
    Kind("idle", "stored, and not used in this pass", _check_idle, weighs=nothing, writes=nothing, storage="view"),
    Kind("unfold", "each position with its neighbours", _check_unfold, reads=nothing, writes=nothing, storage="view"),
    Kind(
        "distances",
        "of a table of relative positions, those that so many tokens have",
        _check_distances,
        bind=_bind_distances,
        reads=nothing,
        writes=nothing,
        storage="view",
        attrs=("tokens", "limit"),
    ),
    Kind(
        "offsets",
        "every distance between two of the tokens",
        _check_rename,
        bind=_bind_offsets,
        reads=nothing,
        writes=nothing,
        storage="view",
    ),
    Kind("first", "the first along an axis", _check_pick, reads=nothing, writes=nothing, storage="view"),
    Kind("repeat", "the same along further axes", _check_repeat, reads=nothing, writes=nothing, storage="view"),
    Kind("concat", "operands behind each other along an axis", _check_concat, bind=_bind_joined),
    Kind("keep", "the positions that get logits", _check_rename, reads=nothing, writes=nothing, storage="view"),
    Kind("view", "the same elements", same_axes, reads=nothing, writes=nothing, storage="view"),
    Kind(
        "columns",
        "what a kernel sees at each position, every `stride` of them",
        _check_columns,
        reads=nothing,
        writes=nothing,
        storage="view",
        attrs=("stride",),
    ),
    Kind("take", "values at an index", _check_take, reads=_take_reads),
)
