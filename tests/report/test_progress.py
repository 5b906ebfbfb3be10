"""A bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from assay.report import progress
from assay.report.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, times: list[float]) -> str:
    clock = iter(times)
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", stream)
    bar = Progress("counting")
    bar(10, 40)
    bar(20, 40)
    bar(40, 40)
    bar.end()
    return stream.getvalue()


def test_a_bar_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(monkeypatch, Terminal(), [0.0, 0.1, 2.0, 4.0])
    assert text.startswith("\rcounting " + "━" * 15 + "╌" * 15 + " 20 of 40, 2 s left")
    assert "40 of 40, 0 s left" in text
    assert text.endswith("\r\033[K"), "the line is left empty"


def test_nothing_for_what_is_over_in_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, Terminal(), [0.0, 0.1, 0.2, 0.3]) == ""


def test_nothing_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, io.StringIO(), [0.0, 1.0, 2.0, 4.0]) == ""
