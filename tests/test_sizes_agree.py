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
    AXES,
    SYMBOLS,
    Figures,
    as_arrays,
    check_array,
    check_exact,
    columns,
    few,
    held,
    landing,
    numpy,
    rows_of,
    sizes_at,
    substituted,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from witness import WITNESSES
from witnessed.base import Witness

from assay.spec import Block, parse_lines


def witness_block(witness: Witness) -> Block:
    return Block("block", parse_lines(witness.text), {})


@cache
def witness_formulas(text: str) -> Figures:
    """Every column with a symbol for every axis."""
    return columns(Block("block", parse_lines(text), {}), SYMBOLS)


@pytest.mark.parametrize("witness", WITNESSES, ids=[w.line for w in WITNESSES])
@settings(max_examples=10)
@given(values=st.lists(sizes_at, min_size=len(AXES), max_size=len(AXES)))
def test_kinds_as_symbols(witness: Witness, values: list[int]) -> None:
    ints = dict(zip(AXES, values, strict=True))
    formulas = witness_formulas(witness.text)
    named = {SYMBOLS[axis]: value for axis, value in ints.items()}
    assert substituted(formulas, named) == columns(witness_block(witness), ints)


@pytest.mark.parametrize("witness", WITNESSES, ids=[w.line for w in WITNESSES])
@settings(max_examples=15)
@given(data=st.data())
def test_kinds_as_arrays(witness: Witness, data: st.DataObject) -> None:
    rows = [dict(zip(AXES, row, strict=True)) for row in data.draw(rows_of(len(AXES)))]
    arrays = {axis: numpy.array([float(row[axis]) for row in rows]) for axis in AXES}
    block = witness_block(witness)
    check_array(columns(block, arrays), [columns(block, row) for row in rows])


@pytest.mark.parametrize("witness", WITNESSES, ids=[w.line for w in WITNESSES])
@settings(max_examples=10)
@given(data=st.data())
def test_kinds_as_arrays_to_the_last_bit(witness: Witness, data: st.DataObject) -> None:
    block = witness_block(witness)
    sizes = dict(zip(AXES, data.draw(st.lists(few, min_size=len(AXES), max_size=len(AXES))), strict=True))
    rows = landing(lambda row: columns(block, row), sizes, data)
    check_array(columns(block, as_arrays(rows)), [columns(block, row) for row in rows])


@pytest.mark.parametrize("witness", WITNESSES, ids=[w.line for w in WITNESSES])
@settings(max_examples=5)
@given(rows=st.lists(st.lists(sizes_at, min_size=len(AXES), max_size=len(AXES)), min_size=3, max_size=3))
def test_kinds_as_arrays_of_ints(witness: Witness, rows: list[list[int]]) -> None:
    arrays = {axis: held(column) for axis, column in zip(AXES, zip(*rows, strict=True), strict=True)}
    block = witness_block(witness)
    check_exact(columns(block, arrays), [columns(block, dict(zip(AXES, row, strict=True))) for row in rows])


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
    found = columns(Block("block", parse_lines(MASKED[mask] + ATTENDS), {}), sizes)
    return {name: figure for name, figure in found.items() if not name.endswith("grows")}


@cache
def masked_formulas(mask: str) -> Figures:
    return masked(mask, SYMBOLS)


@pytest.mark.parametrize("mask", MASKED)
@settings(max_examples=10)
@given(values=st.lists(sizes_at, min_size=len(AXES), max_size=len(AXES)))
def test_masks_as_symbols(mask: str, values: list[int]) -> None:
    ints = dict(zip(AXES, values, strict=True))
    named = {SYMBOLS[axis]: value for axis, value in ints.items()}
    assert substituted(masked_formulas(mask), named) == masked(mask, ints)


@pytest.mark.parametrize("mask", MASKED)
@settings(max_examples=15)
@given(data=st.data())
def test_masks_as_arrays(mask: str, data: st.DataObject) -> None:
    rows = [dict(zip(AXES, row, strict=True)) for row in data.draw(rows_of(len(AXES)))]
    check_array(masked(mask, as_arrays(rows)), [masked(mask, row) for row in rows])


@pytest.mark.parametrize("mask", MASKED)
@settings(max_examples=20)
@given(data=st.data())
def test_masks_as_arrays_to_the_last_bit(mask: str, data: st.DataObject) -> None:
    sizes = dict(zip(AXES, data.draw(st.lists(few, min_size=len(AXES), max_size=len(AXES))), strict=True))
    rows = landing(lambda row: masked(mask, row), sizes, data)
    check_array(masked(mask, as_arrays(rows)), [masked(mask, row) for row in rows])


# -- one setting at a time -------------------------------------------------------------------------------------------
