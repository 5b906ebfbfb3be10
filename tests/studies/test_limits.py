"""The largest size that fits, held against trying every size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.limits import largest

SHAPES: dict[str, Callable[[int, int, int], int]] = {
    "line": lambda a, b, x: b + a * x,
    "square": lambda a, b, x: b + a * x * x + x,
    "window": lambda a, b, x: b + a * min(x, 40) + x // 7,
    "pages": lambda a, b, x: b + a * ((x + 15) // 16),
    "the larger of two": lambda a, b, x: max(b + 9 * x, a * x * x),
    "steps": lambda a, b, x: b + 100 * (x // a),
}


@pytest.mark.parametrize("shape", SHAPES)
@given(
    a=st.integers(1, 60),
    b=st.integers(0, 300),
    room=st.integers(0, 9000),
    most=st.integers(1, 500),
    start=st.integers(1, 900),
)
@settings(deadline=None, max_examples=150)
def test_every_size_tried(shape: str, a: int, b: int, room: int, most: int, start: int) -> None:
    def need(x: int) -> int:
        return SHAPES[shape](a, b, x)

    fits = [x for x in range(1, most + 1) if need(x) <= room]
    assert largest(need, room, most, start) == (max(fits) if fits else 0)
    assert largest(need, room, most, start, need(0)) == largest(need, room, most, start)
    free = largest(need, room, None, start)
    assert largest(need, room, None, start, need(0)) == free
    assert free is not None
    assert free == 0 or need(free) <= room < need(free + 1)
    assert free or need(1) > room


def test_what_never_grows_has_no_largest() -> None:
    assert largest(lambda x: 5, 5) is None
    assert largest(lambda x: 5, 4) == 0
    assert largest(lambda x: min(x, 100), 100) is None
    assert largest(lambda x: 5, 5, 80) == 80


def test_a_line_takes_a_handful_of_questions() -> None:
    asked: list[int] = []

    def need(x: int) -> int:
        asked.append(x)
        return 16_060_522_496 + 1_073_741_824 * x

    assert largest(need, 80_000_000_000, None, 8) == 59
    assert len(asked) == 5
    assert {59, 60} <= set(asked)
