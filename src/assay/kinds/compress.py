"""Keys and values of whole windows: every `rate` tokens leave one entry, which later queries see in their place
(DeepSeek-AI 2026, DeepSeek-V4, sections 2.3.1 and 2.3.2).

A query at position t sees floor((t + 1) / rate) entries. Sums over queries begin at the window that the past has
begun, so that nothing is a difference of large totals.
"""

from __future__ import annotations

from assay.kinds.base import Extent, Keys, Kind, Pairs, Work, expect, flat, register, traded
from assay.size import Size, exact_div, floor_div, is_integer, maximum, minimum, remainder
from assay.spec import Axes, Op


def entries(tokens: Size, rate: Size) -> Size:
    """Windows that so many tokens fill."""
    return floor_div(tokens, rate)


def filled(n: Size, past: Size, rate: Size) -> tuple[Size, Size, Size]:
    """Windows full before, full now, and tokens of the one that is open: no large number is added to a small one."""
    rests = remainder(past, rate) + remainder(n, rate)
    carried = entries(rests, rate)
    return entries(past, rate), entries(n, rate) + carried, rests - carried * rate


def entry_pairs(n: Size, past: Size, rate: Size) -> Size:
    """(query, entry) pairs of n queries behind `past` tokens: sum over j = 1 … n of floor((past + j) / rate)."""
    before, q, rest = filled(n, past, rate)
    return n * before + rate * exact_div(q * (q - 1), 2) + q * (rest + 1)


def top_pairs(n: Size, past: Size, rate: Size, top: Size) -> Size:
    """The same where a query attends to at most `top` entries: the first a queries to all, the others to `top`."""
    a = maximum(0, minimum(n, rate * top - past))
    return entry_pairs(a, past, rate) + (n - a) * top


def _made(op: Op) -> str:
    made = [a for a in op.axes if all(a not in t.axes for t in op.inputs)]
    expect(op, len(made) == 1, f"{op.kind} makes one axis, of entries")
    return made[0]


def slots_of(op: Op) -> tuple[str, str, Axes]:
    """The axes of tokens and of slots in a window, and those of halves where windows overlap."""
    expect(op, len(op.activations) == 2 and len(op.weights) == 1, "pool takes values, gates and a bias of the slots")
    x, bias = op.activations[0].axes, op.weights[0].axes
    tokens = [a for a in x if a not in op.axes and a not in bias]
    slots = [a for a in bias if a not in x]
    halves = tuple(a for a in x if a not in op.axes and a in bias)
    expect(op, len(tokens) == 1 == len(slots), "the bias spans the slots of a window and what a value spans")
    return tokens[0], slots[0], halves


def _check_pool(op: Op) -> None:
    _made(op)
    slots_of(op)


def _bind_pool(op: Op, extent: Extent) -> None:
    tokens, slots, _ = slots_of(op)
    rate = extent.sizes[slots]
    _, new, _ = filled(extent.sizes[tokens], extent.sizes["past"], rate)
    extent.sizes[_made(op)] = new
    extent.keys[_made(op)] = Keys(tokens, Pairs(new), Pairs(new), (), rate)


def _pool(op: Op, extent: Extent) -> Work:
    """A softmax over the slots of a window for each element, and the values' sum under it; no maximum is subtracted."""
    _, slots, halves = slots_of(op)
    span = (*op.axes, slots, *halves)
    terms = extent(span)
    return {"add": terms + 2 * extent.less(span, op.axes), "exp": terms, "divide": terms, "multiply": terms}


def _pool_state(op: Op, extent: Extent) -> Size:
    """Values and gates of the window that is open, and of the last full one's half that the next entry needs."""
    tokens, slots, halves = slots_of(op)
    rate = extent.sizes[slots]
    before, now, rest = filled(extent.sizes[tokens], extent.sizes["past"], rate)
    width = extent(a for a in op.axes if a != _made(op))
    kept = rest * extent(halves) * width
    if halves:
        kept = kept + minimum(before + now, 1) * rate * width
    return 2 * kept


def _check_collect(op: Op) -> None:
    traded(op)
    expect(op, op.attr("rate") is not None, "collect names how many tokens leave one entry: rate=R")


def _bind_collect(op: Op, extent: Extent) -> None:
    _, axis = traded(op)
    n, past, rate = extent.sizes["n"], extent.sizes["past"], extent.value(op.attr("rate"))
    pairs, top = Pairs(entry_pairs(n, past, rate)), op.attr("top")
    before, now, _ = filled(n, past, rate)
    extent.sizes[axis] = before + now
    if top is None:
        extent.keys[axis] = Keys("n", pairs, pairs, (), rate)
    else:
        most = extent.value(top)
        extent.keys[axis] = Keys("n", Pairs(top_pairs(n, past, rate, most)), pairs, (rate * most,), rate)


def _collect_state(op: Op, extent: Extent) -> Size:
    return extent(op.axes)


def _collect_grows(op: Op, extent: Extent) -> Size:
    """On average: an entry every `rate` tokens."""
    width = extent(a for a in op.axes if a not in (traded(op)[1], "b"))
    rate = extent.value(op.attr("rate"))
    if is_integer(width) and is_integer(rate) and width % rate:
        return width / rate  # a mean, of a compressed cache alone
    return exact_div(width, rate)


def _collect_writes(op: Op, extent: Extent) -> Size:
    return extent(op.inputs[0].axes)


def _pool_layout(op: Op, axes: Axes) -> tuple[str, ...]:
    """Slots, then what a value spans."""
    return (axes[0], *flat(op, axes[1:]))


register(
    Kind(
        "pool",
        "one entry for each full window of tokens: a sum under a softmax over its slots, element by element",
        _check_pool,
        _pool,
        bind=_bind_pool,
        state=_pool_state,
        layout=_pool_layout,
    ),
    Kind(
        "collect",
        "cached entries of windows, followed by new ones",
        _check_collect,
        bind=_bind_collect,
        state=_collect_state,
        grows=_collect_grows,
        writes=_collect_writes,
        storage="state",
        attrs=("rate", "top"),
    ),
)
