"""Figures at ints, as arrays and as formulas: how the same ones are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from assay.kinds import Extent, Stepped, Visible, kind_of
from assay.readings.binding import bind
from assay.readings.count import count
from assay.spec import Block, Model

numpy = pytest.importorskip("numpy")
sympy = pytest.importorskip("sympy")

Figures = dict[str, Any]
CONVENTIONS = ("matmul", "causal", "scalar", "stable-softmax")
EXACT = 2**53  # what floats hold

# any size up to 10**25, small ones often: windows begin and end there
sizes_at = st.one_of(st.integers(1, 40), st.integers(1, 10**6), st.integers(1, 10**25))
# as many as a float holds: what an array's element can be
floats_at = st.one_of(st.integers(1, 40), st.integers(1, 2**20), st.integers(1, 10**18).map(lambda n: int(float(n))))

# few of anything, most often an odd number: a product of these is odd
few = st.one_of(st.integers(0, 20).map(lambda half: 2 * half + 1), st.integers(1, 40))


def columns(made: Block, sizes: Mapping[str, Any]) -> Figures:
    """Every column of every op of a block, dense, visible and step by step."""
    extent = bind(made, sizes)
    seen = Visible(extent.sizes).shared_with(extent)
    stepped = Stepped(extent.sizes).shared_with(extent)
    found: Figures = {}
    for index, op in enumerate(made.ops):
        kind = kind_of(op)
        ways: dict[str, Extent] = {"dense": extent, "visible": seen, "stepped": stepped}
        for way, over in ways.items():
            for sort, work in kind.work(op, over).items():
                found[f"{index} {op.name} {way} {sort}"] = work
        for column in ("reads", "weighs", "writes", "state", "grows"):
            rule = getattr(kind, column)
            if rule is not None:
                found[f"{index} {op.name} {column}"] = rule(op, extent)
        if kind.active is not None:
            found[f"{index} {op.name} active"] = kind.active(op, extent, op.weights[0])
    return found


def totals(model: Model, conventions: Sequence[str] = CONVENTIONS, /, **setting: Any) -> Figures:
    """Every figure of a count, in every convention."""
    found: Figures = {}
    for name in conventions:
        counted = count(model, convention=name, **setting)
        found[f"{name} total"] = counted.flops.total
        found[f"{name} visible"] = counted.flops.visible_total
        found[f"{name} scores"] = counted.flops.attention_scores
        found |= {f"{name} {part}": flops for part, flops in counted.flops.by_part.items()}
    p, kept = counted.parameters, counted.cache
    found |= {"parameters": p.total, "active": p.active, "buffers": p.buffers, "embedding": p.embedding}
    found |= {"non-embedding": p.non_embedding}
    found |= {"cache": kept.bytes, "growth": kept.marginal_bytes_per_token, "fixed": kept.fixed_bytes}
    found |= {f"parameters {part}": elements for part, elements in p.by_part.items()}
    return found | {"weights": counted.weight_bytes}


def substituted(formulas: Figures, values: Mapping[Any, int]) -> Figures:
    """Symbols replaced by ints, exactly."""
    exact = {symbol: sympy.Integer(value) for symbol, value in values.items()}
    known: dict[Any, Any] = {}  # many figures are one formula
    for name, formula in formulas.items():
        if formula not in known:
            known[formula] = sympy.sympify(formula).xreplace(exact)
        assert known[formula].is_Integer, f"{name}: {formula} gives {known[formula]}"
    return {name: int(known[formula]) for name, formula in formulas.items()}


def check_array(arrays: Figures, ints: list[Figures]) -> None:
    """Each element of each figure against the same figure of ints."""
    for name, array in arrays.items():
        elements = numpy.broadcast_to(array, len(ints))
        for element, right in zip(elements, (figures[name] for figures in ints), strict=True):
            if abs(right) < EXACT:
                assert element == right, name
            else:
                assert abs(int(element) - right) <= abs(right) * 10**-12, name


Sizing = dict[Any, int]


def landing(figures: Callable[[Sizing], Figures], sizes: Sizing, data: st.DataObject) -> list[Sizing]:
    """The sizes with others in the place of one of them, so large that some figure lies from 2**52 to 2**53.

    There a sum is exact, and a difference is exact only where what it is taken from is.
    """
    vast = {axis: figures({**sizes, axis: EXACT}) for axis in sizes}
    reached = [(name, axis) for axis, found in vast.items() for name, figure in found.items() if figure >= EXACT]
    if not reached:  # nothing is counted
        return [sizes]
    name = data.draw(st.sampled_from(sorted({name for name, _ in reached})), "figure")
    axis = data.draw(st.sampled_from([axis for known, axis in reached if known == name]), "axis")

    def reached_by(size: int) -> int:
        return int(figures({**sizes, axis: size})[name])

    low, high = (least(reached_by, bound) for bound in (EXACT // 2, EXACT))
    assume(low < high)
    drawn = data.draw(st.lists(st.integers(0, EXACT), min_size=8, max_size=8), "places")
    return [{**sizes, axis: low + place % (high - low)} for place in (0, -1, *drawn)]


def least(figure: Callable[[int], int], bound: int) -> int:
    """The least size whose figure reaches a bound that 2**53 reaches.

    By false position, the end that stays drawn nearer, and halved where it stays long: figures are sums of few powers
    of a size, so a fifth of the steps of halving alone.
    """
    low, high, stays = 1, EXACT, 0
    under, over = figure(low) - bound, figure(high) - bound
    if under >= 0:
        return low
    while high - low > 1:
        if high > 2 * low:
            found = math.isqrt(low * high)
        elif abs(stays) > 2:
            found = (low + high) // 2
        else:
            found = low + (high - low) * under // (under - over)
        found = min(max(found, low + 1), high - 1)
        if (past := figure(found) - bound) < 0:
            low, under, over, stays = found, past, over // 2 if stays < 0 else over, min(stays, 0) - 1
        else:
            high, over, under, stays = found, past, under // 2 if stays > 0 else under, max(stays, 0) + 1
    return high


def as_arrays(rows: list[Sizing]) -> dict[Any, Any]:
    return {axis: numpy.array([float(row[axis]) for row in rows]) for axis in rows[0]}


def held(values: Sequence[int]) -> Any:
    """An array that keeps its ints."""
    return numpy.array([*values, None], dtype=object)[:-1]


def check_exact(arrays: Figures, ints: list[Figures]) -> None:
    """Each element of each figure is the same int."""
    for name, array in arrays.items():
        elements = numpy.broadcast_to(array, len(ints)).tolist()
        right = [figures[name] for figures in ints]
        assert (elements, set(map(type, elements))) == (right, {int}), name


def symbol(name: str) -> Any:
    return sympy.Symbol(name, positive=True, integer=True)


def rows_of(width: int) -> st.SearchStrategy[list[list[int]]]:
    """Three settings of so many sizes."""
    return st.lists(st.lists(floats_at, min_size=width, max_size=width), min_size=3, max_size=3)
