"""Many values in one word: what each form stands for, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import SettingError
from assay.studies.ranges import dependent, followed, values


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7", (7,)),
        ("1,8", (1, 8)),
        ("8, 1, 8", (8, 1)),
        ("1k:8k", (1000, 2000, 4000, 8000)),
        ("1k:5k", (1000, 2000, 4000, 5000)),
        ("1Ki:4Ki", (1024, 2048, 4096)),
        ("3:3", (3,)),
        ("1k:1M:x10", (1000, 10_000, 100_000, 1_000_000)),
        ("2:20:x1.5", (2, 3, 4, 7, 10, 15, 20)),  # 4.5, 6.75, 10.125, 15.1875 rounded
        ("1:1000:4", (1, 10, 100, 1000)),
        ("1:4:9", (1, 2, 3, 4)),
        ("100:500:+200", (100, 300, 500)),
        ("100:450:+200", (100, 300, 450)),
        ("1,10:30:+10,100:400", (1, 10, 20, 30, 100, 200, 400)),
    ],
)
def test_forms(text: str, found: tuple[int, ...]) -> None:
    assert tuple(values(text, "--batch")) == found


def test_a_range_may_begin_at_nothing() -> None:
    assert tuple(values("0:3:+1", "--past", 0)) == (0, 1, 2, 3)


def test_a_long_range_takes_no_room() -> None:
    assert values("1:100M:+1", "--context") == range(1, 100_000_001)


@pytest.mark.parametrize("given", [5, [5], (5,), range(5, 6), iter([5.0])])
def test_values_of_a_program(given: object) -> None:
    assert tuple(values(given, "batch")) == (5,)


def test_values_of_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    assert values(numpy.array([3, 1, 3]), "batch") == (3, 1)
    assert values(numpy.float64(2), "batch") == (2,)


@given(first=st.integers(1, 10**6), more=st.integers(0, 10**6), many=st.integers(2, 60))
def test_spaced_values_rise_between_the_ends(first: int, more: int, many: int) -> None:
    found = values(f"{first}:{first + more}:{many}", "--context")
    assert (found[0], found[-1]) == (first, first + more)
    assert list(found) == sorted(set(found))
    assert len(found) <= many
    if more > many * many and first > many * many:  # far apart: none falls on another
        assert len(found) == many
        ratios = [b / a for a, b in pairwise(found)]
        assert max(ratios) - min(ratios) < 3 / first + 1e-9


def test_a_picture_takes_more_points_of_a_range_that_says_nothing() -> None:
    assert len(values("1k:1M", "--context", between=50)) == 50
    assert values("1k:4k:x2", "--context", between=50) == (1000, 2000, 4000)
    assert values("1,2", "--context", between=50) == (1, 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("131,072", "--batch is 131,072; a comma separates values: write 131072"),
        ("a", "--batch is 'a'; it must be an integer of at least 1"),
        ("1:", "--batch is '1:'; it must be a list such as 1,8, a range"),
        ("1:2:3:4", "it must be a list such as 1,8, a range"),
        ("5:2", "--batch is 5:2; a range begins at the smaller end"),
        ("0:8", "--batch is 0; it must be an integer of at least 1"),
        ("1:8:x1", "--batch goes on by x1; the factor must be a number of at least 1.01"),
        ("1:8:x", "the factor must be a number of at least 1.01"),
        ("1:8:1", "how many values of --batch is 1; it must be an integer of at least 2"),
        ("1:8:+0", "the step of --batch is 0; it must be an integer of at least 1"),
        ("1:1T:+1", "--batch has 1,000,000,000,000 values; a sweep takes at most 100,000,000 of one size"),
        ("1:1000000000000000000000000T:+1", "must be an integer of at most"),
        ("1:1T:1G", "--batch has 1,000,000,000 values"),
        ("", "--batch is ''"),
    ],
)
def test_refusals(text: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        values(text, "--batch")


def test_a_factor_leads_nowhere_from_nothing() -> None:
    with pytest.raises(SettingError, match=r"--past begins at 0, where no factor leads on; write 0:8:\+STEP"):
        values("0:8", "--past", 0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "batch has no values"),
        (None, "batch holds None; each must be an integer of at least 1"),
        ([1, 2.5], "batch holds 2.5"),
        ([0, 1], "batch holds 0"),
        (True, "batch holds True"),
        (range(5), "batch holds 0"),
        (["8"], "batch holds '8'"),
    ],
)
def test_refusals_of_a_program(given: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        values(given, "batch")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("4*width", ("width", Fraction(4))),
        ("width * 4", ("width", Fraction(4))),
        ("3.5*width", ("width", Fraction(7, 2))),
        ("width/64", ("width", Fraction(1, 64))),
        ("attention.heads", ("attention.heads", Fraction(1))),
        ("8", None),
        ("1k:8k", None),
        ("0*width", None),
        ("4*", None),
    ],
)
def test_sizes_that_follow(text: str, found: tuple[str, Fraction] | None) -> None:
    assert dependent(text) == found


def test_following_takes_several_steps_in_any_order() -> None:
    rules = {"b": ("a", Fraction(2)), "a": ("width", Fraction(1, 4))}
    assert followed({"width": 8}, rules) == {"width": 8, "b": 4, "a": 2}
    with pytest.raises(SettingError, match="a is 1/4 times width, 6: no integer"):
        followed({"width": 6}, rules)
    with pytest.raises(SettingError, match="b follows from a, which is not set; set width too"):
        followed({"width": 6}, {"b": ("a", Fraction(2))})
