"""Peaks of a pass forward measured on a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from measurements import PASSED, passed, title

PEAKS = [record for record in PASSED if record["section"] == "infer_peak"]
SHOWN = [record for record in PASSED if record["section"] == "hf"]


@pytest.mark.parametrize("record", PEAKS, ids=title)
def test_a_pass_is_as_measured(record: dict[str, Any]) -> None:
    """Promised are 5 %; what is left is less than an allocator's blocks."""
    assert abs(passed(record).error) < 0.0005


def test_what_was_there_before_is_the_same_in_all() -> None:
    """The other records have a constant more, whatever the batch and the length."""
    more = [passed(record).measured - passed(record).said for record in SHOWN]
    assert max(more) - min(more) < 1000
