"""Polynomials as articles print them, and their values."""

from __future__ import annotations

import re

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from assay.report.formula import symbol, written

n, d, a, h = (symbol(name) for name in ("n", "d", "d_k", "h"))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (4 * n**2 * d, "4n²d"),
        (n, "n"),
        (sympy.Integer(12000), "12,000"),
        (sympy.Integer(0), "0"),
        (-n, "-n"),
        (3 * n**2 - n, "3n² - n"),
        (2 * n * a - n, "2n d_k - n"),
        (24 * n * d**2 + 4 * n**2 * d, "4n²d + 24nd²"),
        (2 * n**2 * (a + d) + 4 * n**2 - n * (d + 1), "2n²(d + d_k) + 4n² - n(d + 1)"),
        (n * a, "n d_k"),
        (4 * n**12 * h * d, "4n¹²dh"),
        (2 * d + 3, "2d + 3"),
    ],
)
def test_formulas_as_printed(expression: sympy.Expr, text: str) -> None:
    assert written(expression, n) == text


def value(text: str, at: dict[str, int]) -> int:
    """What a printed formula gives, by reading its letters back."""
    powers = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "**" + m[1].translate(powers) + " ", text)
    text = re.sub(r"d_k|[ndh]", lambda m: f" {at[m[0]]} ", text)
    text = re.sub(r"(?<=[0-9)]) *(?=\()|(?<=[0-9)]) +(?=[0-9(])", "*", text)
    return int(eval(text))


@given(
    st.dictionaries(st.tuples(*(st.integers(0, 3),) * 4), st.integers(-9, 9), max_size=6),
    st.tuples(*(st.integers(1, 50),) * 4),
)
def test_a_printed_formula_has_the_value_of_its_polynomial(
    terms: dict[tuple[int, ...], int], sizes: tuple[int, ...]
) -> None:
    letters = (n, d, a, h)
    made = sum((c * sympy.prod(s**p for s, p in zip(letters, ps, strict=True)) for ps, c in terms.items()), sympy.S(0))
    at = dict(zip(map(str, letters), sizes, strict=True))
    assert value(written(made, n).replace(",", ""), at) == made.subs(dict(zip(letters, sizes, strict=True)))
