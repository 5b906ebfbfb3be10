"""Columns, their widths, and what is done where there is no room."""

from __future__ import annotations

import io

import pytest

from assay.report.table import WIDTH, Style, table, width_of_stdout


def test_columns_are_aligned() -> None:
    assert table([["a", "1"], ["bcd", "23"]], "<>", ("name", "size")) == [
        "  name  size",
        "  a        1",
        "  bcd     23",
    ]


def test_a_long_last_column_is_wrapped_under_itself() -> None:
    lines = table([["a", "word " * 40], ["b", "short"]], "<<")
    assert all(len(line) <= WIDTH for line in lines)
    assert all(line.startswith("     word") for line in lines[1:-1])
    assert " ".join(" ".join(lines[:-1]).split()) == "a " + " ".join(["word"] * 40)


def test_a_last_column_without_room_is_left_out() -> None:
    assert table([["a" * 90, "much too long for what is left"]], "<<", ("x", "y")) == ["  x", "  " + "a" * 90]


def test_style_changes_nothing_but_colour() -> None:
    rows, head = [["total", "1"], ["a", "2"]], ("x", "y")
    coloured = "\n".join(table(rows, "<>", head, Style(True)))
    assert "\033[1m  total  1\033[0m" in coloured
    for code in ("\033[0m", "\033[1m", "\033[2m"):
        coloured = coloured.replace(code, "")
    assert coloured == "\n".join(table(rows, "<>", head))


def test_long_keys_are_cut_behind_dots() -> None:
    wide = "x" * 70
    lines = table([[wide, "layer.sparse.moe.experts.width and more"]], "<<")
    assert [line.split(wide)[-1].strip() for line in lines] == ["layer.sparse.moe.experts.", "width and more"]


@pytest.mark.parametrize(("columns", "wide"), [("70", 80), ("90", 90), ("200", WIDTH)])
def test_a_terminal_is_as_wide_as_it_is(monkeypatch: pytest.MonkeyPatch, columns: str, wide: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert width_of_stdout() == WIDTH  # a file or a pipe has no width
    monkeypatch.setattr("sys.stdout", Terminal())
    assert width_of_stdout() == wide


class Terminal(io.StringIO):
    """What a command writes to where a person looks on."""

    def isatty(self) -> bool:
        return True
