"""The module that tells int, array and symbol apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import SizeError
from assay.size import (
    ceil_div,
    exact_div,
    first_above,
    floor_div,
    fraction,
    is_symbol,
    lift,
    maximum,
    minimum,
    only_at_zero,
    per,
    product,
    remainder,
    surely_above,
    whole,
)

numpy = pytest.importorskip("numpy")
sympy = pytest.importorskip("sympy")

ints = st.integers(-(10**25), 10**25)
n = sympy.Symbol("n", positive=True, integer=True)


def test_lift_keeps_ints_and_symbols() -> None:
    assert lift(10**25, "tokens") == 10**25
    assert lift(n + 1, "tokens") == n + 1
    assert lift(0, "past", least=0) == 0


def test_lift_makes_plain_ints_of_numbers() -> None:
    for value in (sympy.Integer(7), numpy.int64(7), numpy.array(7), numpy.float64(7.0)):
        lifted = lift(value, "tokens")
        assert (type(lifted), lifted) == (int, 7)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64"])
def test_lift_makes_floats_of_arrays(dtype: str) -> None:
    lifted = lift(numpy.array([[1, 2], [3, 4]], dtype=dtype), "tokens")
    assert lifted.dtype == numpy.float64
    assert lifted.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0, "tokens is 0; it must be an integer of at least 1"),
        (-3, "tokens is -3"),
        (True, "tokens is True"),
        (1.0, "tokens is 1.0"),
        ("8", "tokens is '8'"),
        (None, "tokens is None"),
        (sympy.Rational(1, 2), "tokens is 1/2"),
        (sympy.Integer(0), "tokens is 0"),
        (sympy.oo, "tokens is oo"),
        (numpy.array([1, 0]), "tokens holds 0; every element"),
        (numpy.array([1.5, 2.0]), "tokens holds 1.5"),
        (numpy.array([numpy.nan]), "tokens holds nan"),
        (numpy.array([numpy.inf]), "tokens holds inf"),
        (numpy.array([True]), "tokens is an array of bool"),
        (numpy.array(["8"]), "tokens is an array of <U1"),
        (numpy.array([1 + 0j]), "tokens is an array of complex128"),
        ([1, 2], r"tokens is \[1, 2\]"),
        (numpy.array([1, 0], dtype=object), "tokens holds 0; every element"),
        (numpy.array([1, 1.0], dtype=object), "tokens holds 1.0; every element"),
        (numpy.array([1, True], dtype=object), "tokens holds True; every element"),
        (numpy.array([1, None], dtype=object), "tokens holds None; every element"),
    ],
)
def test_lift_refuses(value: Any, says: str) -> None:
    with pytest.raises(SizeError, match=says):
        lift(value, "tokens")


def test_is_symbol() -> None:
    assert is_symbol(n)
    assert not is_symbol(sympy.Integer(3))
    assert not is_symbol(3)
    assert not is_symbol(numpy.array([1]))


@given(a=ints, b=ints)
def test_minimum_and_maximum_of_ints(a: int, b: int) -> None:
    assert minimum(a, b) == min(a, b)
    assert maximum(a, b) == max(a, b)


@given(a=ints, b=st.integers(1, 10**25))
def test_divisions_of_ints(a: int, b: int) -> None:
    assert floor_div(a, b) == a // b
    assert ceil_div(a, b) == -((-a) // b)
    assert ceil_div(a, b) - floor_div(a, b) == (a % b != 0)
    assert exact_div(a * b, b) == a
    assert remainder(a, b) == a - b * floor_div(a, b)


def test_remainder_of_vast_arrays() -> None:
    """The multiple taken away is no float; what is left is exact all the same."""
    assert remainder(numpy.array([20947740433615624.0]), 83809).tolist() == [20947740433615624 % 83809]
    assert remainder(n, 5).subs(n, 10**25 + 3) == 3


def test_arrays_element_by_element() -> None:
    a, b = numpy.array([1.0, 5.0]), numpy.array([3.0, 2.0])
    assert minimum(a, b).tolist() == [1.0, 2.0]
    assert maximum(a, 2).tolist() == [2.0, 5.0]
    assert floor_div(a, 2).tolist() == [0.0, 2.0]
    assert ceil_div(7, b).tolist() == [3.0, 4.0]


VAST = (1, 7, 2**53 + 1, 10**25 + 3)


def held(values: tuple[int, ...]) -> Any:
    return numpy.array(values, dtype=object)


def test_arrays_of_ints_stay_exact_at_any_magnitude() -> None:
    a = lift(held(VAST), "tokens")
    assert a.dtype == object
    assert [type(element) for element in a] == [int] * 4
    assert lift(numpy.array([numpy.int64(5), 2], dtype=object), "tokens").tolist() == [5, 2]
    assert type(lift(numpy.array(7, dtype=object), "tokens")) is int
    cases: dict[Callable[[Any, int], Any], Callable[[int], int]] = {
        minimum: lambda x: min(x, 8),
        maximum: lambda x: max(x, 8),
        floor_div: lambda x: x // 8,
        ceil_div: lambda x: -(-x // 8),
        remainder: lambda x: x % 8,
    }
    for ours, plain in cases.items():
        assert ours(a, 8).tolist() == [plain(x) for x in VAST]
    assert exact_div(a * (a + 1), 2).tolist() == [x * (x + 1) // 2 for x in VAST]
    with pytest.raises(SizeError, match="not every element divides by 2"):
        exact_div(a, 2)
    zeros = only_at_zero(10**18, lift(held((0, 4)), "past", least=0))
    assert (zeros * 10**18).tolist() == [10**36, 0]  # an int64 would wrap


def test_per_is_an_int_where_that_divides() -> None:
    assert [(type(x), x) for x in (per(6, 3), per(7, 2))] == [(int, 2), (float, 3.5)]
    assert [(type(x), x) for x in per(held((6, 7)), 2)] == [(int, 3), (float, 3.5)]
    assert per(numpy.array([6.0, 7.0]), 2).tolist() == [3.0, 3.5]
    assert per(n * n, n) == n


def test_symbols_stay_formulas() -> None:
    assert minimum(n, 5).subs(n, 3) == 3
    assert maximum(n, 5).subs(n, 3) == 5
    assert floor_div(n, 2).subs(n, 7) == 3
    assert ceil_div(n, 2).subs(n, 7) == 4
    assert exact_div(n * (n + 1), 2).subs(n, 10**25) == 10**25 * (10**25 + 1) // 2


def test_exact_div_refuses_a_remainder() -> None:
    with pytest.raises(SizeError, match="7 does not divide by 2"):
        exact_div(7, 2)


def test_only_at_zero() -> None:
    assert (only_at_zero(9, 0), only_at_zero(9, 4)) == (9, 0)
    assert only_at_zero(9, numpy.array([0.0, 4.0])).tolist() == [9, 0]
    assert only_at_zero(9, sympy.Symbol("p")).subs("p", 0) == 9
    assert only_at_zero(9, sympy.Symbol("p")).subs("p", 4) == 0


def test_product() -> None:
    assert product([]) == 1
    assert product([2, n, 3]) == 6 * n
    assert product([10**20, 10**20]) == 10**40


def test_surely_above() -> None:
    assert surely_above(3, 2)
    assert not surely_above(2, 2)
    assert surely_above(numpy.array([1, 3]), 2)
    assert not surely_above(numpy.array([1, 2]), 2)
    assert not surely_above(n, 2)  # nobody knows


def test_the_first_that_is_above() -> None:
    assert first_above(5, 3) == (5, 3)
    assert first_above(numpy.array([1.0, 7.0, 9.0]), 5) == (7, 5)
    assert first_above(10, numpy.array([[20.0], [4.0]])) == (10, 4)
    assert first_above(numpy.array([1, 2], dtype=object), numpy.array([2, 1], dtype=object)) == (2, 1)


def test_fractions() -> None:
    assert fraction(0.4, "mfu") == 0.4
    assert fraction(1, "mfu") == 1
    assert fraction(n, "mfu") == n
    assert fraction(numpy.array([0.1, 1.0]), "mfu").tolist() == [0.1, 1.0]


@pytest.mark.parametrize("value", [0, -0.1, 1.5, 250, True, "0.4", float("nan"), numpy.array([0.5, 2.0]), None])
def test_what_is_no_fraction(value: object) -> None:
    with pytest.raises(SizeError, match=r"mfu is .*; it must be a fraction above 0 and at most 1"):
        fraction(value, "mfu")


def test_a_percentage_in_place_of_a_fraction_is_told() -> None:
    with pytest.raises(SizeError, match=r"; 40 % is 0\.4$"):
        fraction(40, "mfu")


def test_whole() -> None:
    assert [whole(2.9), whole(3)] == [2, 3]
    assert whole(n) == n
    assert whole(numpy.array([1.5])).tolist() == [1.5]


def test_surely_above_of_decimals() -> None:
    assert surely_above(1.5, 1)
    assert not surely_above(1, 1.0)
