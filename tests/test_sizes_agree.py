"""int = array element = symbol substituted: every kind of op, every mask.

Ints, arrays of ints and symbols agree exactly at any size; an array's element is exact below 2**53 and within 1e-12
above.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from agreeing import (
    Figures,
    as_arrays,
    check_array,
    check_exact,
    columns,
    few,
    floats_at,
    held,
    landing,
    sizes_at,
    substituted,
    symbol,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from witness import WITNESSES
from witnessed.base import SIZES

from assay.spec import Block, parse_lines


def axes_of(made: Block) -> list[str]:
    """The axes that a block's figures are made of: its own and the pass's. Another would only cost its drawing."""
    return [axis for axis in SIZES if axis in {*made.axes(), "b", "n", "past"}]


def row_of(made: Block, each: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, int]]:
    """A size for each axis of a block."""
    return st.fixed_dictionaries(dict.fromkeys(axes_of(made), each))


def three(made: Block, each: st.SearchStrategy[int]) -> st.SearchStrategy[list[dict[str, int]]]:
    """Three sizes for each."""
    return st.lists(row_of(made, each), min_size=3, max_size=3)


@cache
def block_of(text: str) -> Block:
    return Block("block", parse_lines(text), {})


@cache
def formulas_of(text: str) -> Figures:
    """Every column with a symbol for every axis."""
    return columns(block_of(text), {axis: symbol(axis) for axis in axes_of(block_of(text))})


EACH_KIND = pytest.mark.parametrize("text", [w.text for w in WITNESSES], ids=[w.line for w in WITNESSES])


@EACH_KIND
@settings(max_examples=10)
@given(data=st.data())
def test_kinds_as_symbols(text: str, data: st.DataObject) -> None:
    ints = data.draw(row_of(block_of(text), sizes_at))
    named = {symbol(axis): value for axis, value in ints.items()}
    assert substituted(formulas_of(text), named) == columns(block_of(text), ints)


@EACH_KIND
@settings(max_examples=15)
@given(data=st.data())
def test_kinds_as_arrays(text: str, data: st.DataObject) -> None:
    block = block_of(text)
    rows = data.draw(three(block, floats_at))
    check_array(columns(block, as_arrays(rows)), [columns(block, row) for row in rows])


@EACH_KIND
@settings(max_examples=10)
@given(data=st.data())
def test_kinds_as_arrays_to_the_last_bit(text: str, data: st.DataObject) -> None:
    block = block_of(text)
    rows = landing(lambda row: columns(block, row), data.draw(row_of(block, few)), data)
    check_array(columns(block, as_arrays(rows)), [columns(block, row) for row in rows])


@EACH_KIND
@settings(max_examples=5)
@given(data=st.data())
def test_kinds_as_arrays_of_ints(text: str, data: st.DataObject) -> None:
    block = block_of(text)
    rows = data.draw(three(block, sizes_at))
    arrays = {axis: held([row[axis] for row in rows]) for axis in rows[0]}
    check_exact(columns(block, arrays), [columns(block, row) for row in rows])


ATTENDS = """
s = contract(q[b n g r k], k0[b c g k]) -> [b g r n c]
p = softmax(s[b g r n c]) -> [b g r n c]
y = sum(p[b g r n c]) -> [b g r n]
"""
MASKED = {
    "all before": "k0 = append(k[b n g k]) -> [b c g k]",
    "window": "k0 = append(k[b n g k], window=w) -> [b c g k]",
    "chunk": "k0 = append(k[b n g k], chunk=chunk) -> [b c g k]",
    "best few": "k0 = append(k[b n g k], top=a) -> [b c g k]",
    "best few of a window": "k0 = append(k[b n g k], window=w, top=a) -> [b c g k]",
    "best blocks": "k0 = append(k[b n g k], top=a, block=chunk) -> [b c g k]",
    "all": "k0 = keys(k[b n g k]) -> [b c g k]",
    "all before in one pass": "k0 = keys(k[b n g k], causal=True) -> [b c g k]",
    "windows": "k0 = keys(k[b n g k], windows=w) -> [b c g k]",
    "near": "k0 = keys(k[b n g k], reach=w) -> [b c g k]",
    "blocks": "k0 = keys(k[b n g k], block=chunk, offset=a) -> [b c g k]",
    "blocks at random": "k0 = keys(k[b n g k], block=chunk, random=a) -> [b c g k]",
    "entries": "k0 = collect(z[b i g k], rate=chunk) -> [b c g k]",
    "best entries": "k0 = collect(z[b i g k], rate=chunk, top=a) -> [b c g k]",
    "entries and a window": """k1 = append(k[b n g k], window=w) -> [b m g k]
        k2 = collect(z[b i g k], rate=chunk) -> [b t g k]
        k0 = concat(k1[b m g k], k2[b t g k]) -> [b c g k]""",
    "a window and slots": """k1 = append(k[b n g k], window=w) -> [b m g k]
        k0 = concat(k1[b m g k], z[b f g k]) -> [b c g k]""",
}


def masked(mask: str, sizes: Mapping[str, Any]) -> Figures:
    """Every column but what one more token adds: a mean, and so perhaps a fraction, for entries of several tokens."""
    found = columns(around(mask), sizes)
    return {name: figure for name, figure in found.items() if not name.endswith("grows")}


def around(mask: str) -> Block:
    """Attention with this mask."""
    return block_of(MASKED[mask] + ATTENDS)


@cache
def masked_formulas(mask: str) -> Figures:
    return masked(mask, {axis: symbol(axis) for axis in axes_of(around(mask))})


@pytest.mark.parametrize("mask", MASKED)
@settings(max_examples=10)
@given(data=st.data())
def test_masks_as_symbols(mask: str, data: st.DataObject) -> None:
    ints = data.draw(row_of(around(mask), sizes_at))
    named = {symbol(axis): value for axis, value in ints.items()}
    assert substituted(masked_formulas(mask), named) == masked(mask, ints)


@pytest.mark.parametrize("mask", MASKED)
@settings(max_examples=15)
@given(data=st.data())
def test_masks_as_arrays(mask: str, data: st.DataObject) -> None:
    rows = data.draw(three(around(mask), floats_at))
    check_array(masked(mask, as_arrays(rows)), [masked(mask, row) for row in rows])


@pytest.mark.parametrize("mask", MASKED)
@settings(max_examples=20)
@given(data=st.data())
def test_masks_as_arrays_to_the_last_bit(mask: str, data: st.DataObject) -> None:
    rows = landing(lambda row: masked(mask, row), data.draw(row_of(around(mask), few)), data)
    check_array(masked(mask, as_arrays(rows)), [masked(mask, row) for row in rows])
