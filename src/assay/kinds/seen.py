"""Keys of the same pass that nothing keeps: those before each token, or those of its window alone."""

from __future__ import annotations

from assay.kinds.base import Extent, Keys, Kind, expect, nothing, register
from assay.size import Size, exact_div, minimum
from assay.spec import Op


def _renamed(op: Op) -> tuple[str, str]:
    """The axis of the tokens and the axis of keys in its place."""
    expect(op, len(op.inputs) == 1, f"{op.kind} takes one tensor")
    lost = [a for a in op.inputs[0].axes if a not in op.axes]
    made = [a for a in op.axes if a not in op.inputs[0].axes]
    expect(op, len(lost) == 1 and len(made) == 1, f"{op.kind} puts one axis in the place of another")
    return lost[0], made[0]


def _check_earlier(op: Op) -> None:
    _renamed(op)


def _check_windowed(op: Op) -> None:
    _renamed(op)
    expect(op, op.attr("size") is not None, "windowed names the size of its windows: size=w")


def triangle(n: Size) -> Size:
    """Pairs of n tokens in which the second is not behind the first: n (n + 1) / 2."""
    return exact_div(n * (n + 1), 2)


def _bind_earlier(op: Op, extent: Extent) -> None:
    queries, keys = _renamed(op)
    tokens = extent.sizes[queries]
    extent.sizes[keys] = tokens
    extent.keys[keys] = Keys(queries, triangle(tokens), tokens * tokens)


def _bind_windowed(op: Op, extent: Extent) -> None:
    """As many keys for each query as its window has tokens, and no others are ever multiplied."""
    queries, keys = _renamed(op)
    tokens = extent.sizes[queries]
    extent.sizes[keys] = minimum(extent.value(op.attr("size")), tokens)
    pairs = tokens * extent.sizes[keys]
    extent.keys[keys] = Keys(queries, pairs, pairs)


register(
    Kind(
        "earlier",
        "the same tokens, seen as keys by themselves and by those behind them; nothing is kept",
        _check_earlier,
        bind=_bind_earlier,
        reads=nothing,
        writes=nothing,
        storage="view",
    ),
    Kind(
        "windowed",
        "the same tokens, each seen as a key by its own window alone",
        _check_windowed,
        bind=_bind_windowed,
        reads=nothing,
        writes=nothing,
        storage="view",
        attrs=("size",),
    ),
)
