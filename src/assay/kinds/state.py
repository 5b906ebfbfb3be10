"""What a pass leaves for the next: keys and values, within a window or a chunk.

With n tokens now and p before them, a query sees at most w keys of a window, itself among them; chunks of C
tokens see nothing of the chunk before. The sums are closed: nothing is looped over. A query's own key is among them,
or with `own` = 0 it is not.
"""

from __future__ import annotations

from assay.kinds.base import Extent, Keys, Kind, expect, register, traded, triangle, view, with_own
from assay.size import Size, floor_div, maximum, minimum, only_at_zero, remainder
from assay.spec import Op


def causal_pairs(n: Size, past: Size, own: int = 1) -> Size:
    """Pairs of n queries behind `past` keys where each sees itself and all before it."""
    return n * past + triangle(n - 1 + own)


def prefix_pairs(n: Size, past: Size, own: int = 1) -> Size:
    """The same where tokens of the first pass all see each other."""
    return only_at_zero(n * (n - 1 + own), past, causal_pairs(n, past, own))


def window_pairs(n: Size, past: Size, w: Size, own: int = 1) -> Size:
    """The same where each sees at most w keys: the first a queries see all, the others w each."""
    a = maximum(0, minimum(n, w - past))
    return causal_pairs(a, past, own) + (n - a) * (w - 1 + own)


def chunk_pairs(n: Size, past: Size, chunk: Size, own: int = 1) -> Size:
    """The same where each sees only its own chunk: the rest of the chunk begun, full chunks, and a rest.

    Nothing but sums of what is counted: a difference of two totals would cost arrays their last digits.
    """
    begun = remainder(past, chunk)
    first = minimum(n, chunk - begun)
    later = n - first
    full, rest = floor_div(later, chunk), remainder(later, chunk)
    return causal_pairs(first, begun, own) + full * triangle(chunk - 1 + own) + triangle(rest - 1 + own)


def block_pairs(n: Size, past: Size, block: Size, count: Size, own: int = 1) -> Size:
    """The same where each sees its own block so far, and the best `count` - 1 of those before it, which are full."""
    a = maximum(0, minimum(n, count * block - past))
    rest = n - a
    chosen = rest * (count - 1) * block
    return causal_pairs(a, past, own) + chosen + chunk_pairs(rest, maximum(past, count * block), block, own)


def _bind_append(op: Op, extent: Extent) -> None:
    queries, keys = traded(op)
    n, past = extent.sizes[queries], extent.sizes["past"]
    window, chunk = _limits(op, extent) if op.attrs else (None, None)
    if window is None:
        extent.sizes[keys] = n + past
        pairs = with_own(causal_pairs, n, past)
        if not op.attrs:
            extent.keys[keys] = Keys(queries, pairs, pairs)
            return
        if op.attr("whole"):
            extent.keys[keys] = Keys(queries, with_own(prefix_pairs, n, past), pairs)
            return
        # each query attends to its best few of those it sees, or to the last few: the others are kept all the same
        top, block = op.attr("top", op.attr("near")), op.attr("block")
        if block is not None:
            size, count = extent.value(block), extent.value(top)
            seen = with_own(block_pairs, n, past, size, count)
            extent.keys[keys] = Keys(queries, seen, pairs, (size * count,), size)
        elif top is None:
            extent.keys[keys] = Keys(queries, pairs, pairs)
        else:
            k = extent.value(top)
            extent.keys[keys] = Keys(queries, with_own(window_pairs, n, past, k), pairs, (k,))
        return
    extent.sizes[keys] = n + minimum(past, window - 1)
    stepped = with_own(window_pairs, n, past, window)
    visible = stepped if chunk is None else with_own(chunk_pairs, n, past, chunk)
    breaks: tuple[Size, ...] = (window,)
    if op.attr("top") is not None:  # the best few of those in the window
        most = minimum(window, extent.value(op.attr("top")))
        visible, breaks = with_own(window_pairs, n, past, most), (most, window)
    extent.keys[keys] = Keys(queries, visible, stepped, breaks, chunk)


def _limits(op: Op, extent: Extent) -> tuple[Size | None, Size | None]:
    """(positions kept, chunk): a chunk is kept like a window of its size."""
    window, chunk = op.attr("window"), op.attr("chunk")
    chunk = None if chunk is None else extent.value(chunk)
    return (chunk if window is None else extent.value(window)), chunk


def _check_append(op: Op) -> None:
    traded(op)
    expect(op, op.attr("window") is None or op.attr("chunk") is None, "a window or a chunk, not both")
    expect(op, op.attr("block") is None or op.attr("top") is not None, "block= goes with how many are seen, top=")


def _check_hold(op: Op) -> None:
    traded(op)


def _append_state(op: Op, extent: Extent) -> Size:
    """What a step at this context reads: every position so far, at most a window's or a chunk's."""
    queries, keys = traded(op)
    held = extent.sizes["past"] + extent.sizes[queries]
    window, _ = _limits(op, extent)
    if window is not None:
        held = minimum(held, window)
    return held * extent(a for a in op.axes if a != keys)


def _append_grows(op: Op, extent: Extent) -> Size:
    """One position, none where a window is full; no difference of large sums, so that arrays stay exact."""
    queries, keys = traded(op)
    width = extent(a for a in op.axes if a not in (keys, "b"))
    window, _ = _limits(op, extent)
    if window is None:
        return width
    room = window - extent.sizes["past"] - extent.sizes[queries]
    return maximum(0, minimum(1, room)) * width


def _append_writes(op: Op, extent: Extent) -> Size:
    return extent(op.inputs[0].axes)


def _hold_state(op: Op, extent: Extent) -> Size:
    """The whole result: made once, read at every step."""
    return extent(op.axes)


register(
    Kind(
        "hold",
        "keys or values of a source, made once and kept",
        _check_hold,
        state=_hold_state,
        writes=_append_writes,
        storage="state",
    ),
    view(
        "reuse",
        "keys or values at hand that an earlier layer made and keeps",
        _check_append,
        bind=_bind_append,
        attrs=("window", "chunk"),
        borrows=True,
    ),
    Kind(
        "append",
        "cached keys or values, followed by those of these tokens",
        _check_append,
        bind=_bind_append,
        state=_append_state,
        grows=_append_grows,
        writes=_append_writes,
        storage="state",
        attrs=("window", "chunk", "top", "near", "block", "whole"),
    ),
)
