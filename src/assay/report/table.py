"""Aligned columns of text. A library for this would cost more time at start than all the rest of a report."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

WIDTH = 100
INDENT = "  "
NARROW = 22  # a column of text is no narrower


class Style:
    """Bold and dim on a terminal, nothing elsewhere; NO_COLOR is obeyed."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def bold(self, text: str) -> str:
        """What is read first."""
        return f"\033[1m{text}\033[0m" if self.on and text else text

    def dim(self, text: str) -> str:
        """What is read last."""
        return f"\033[2m{text}\033[0m" if self.on and text else text


def style_of_stdout() -> Style:
    """Colour where standard output is a terminal that shows it and nobody has asked for none."""
    asked = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(asked and sys.stdout is not None and sys.stdout.isatty())


def width_of_stdout(least: int = 80) -> int:
    """The characters of a line on a narrow terminal, those of a report elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        return WIDTH
    import shutil

    return min(WIDTH, max(least, shutil.get_terminal_size((WIDTH, 0)).columns))


def table(
    rows: Iterable[Sequence[str]],
    align: str,
    head: Sequence[str] = (),
    style: Style | None = None,
    indent: str = INDENT,
    gap: int = 2,
    wide: int = WIDTH,
) -> list[str]:
    """Lines of aligned columns, of at most `wide` characters: `align` holds < or > for each.

    The head is dim, a row whose first cell is `total` bold. A last column of text is wrapped where it is too wide, and
    left out where figures leave no room for it.
    """
    cells = [list(row) for row in rows]
    style = style or Style(False)
    widths = [max((len(row[i]) for row in [head, *cells] if i < len(row)), default=0) for i in range(len(align))]
    room = wide - len(indent) - sum(widths[:-1]) - gap * (len(align) - 1)
    if align[-1] == "<" and room < widths[-1]:
        fits = room >= NARROW
        cells = [folded for row in cells for folded in (_folded(row, room) if fits else [row[:-1]])]
        head = head if fits else head[:-1]
        widths[-1] = room

    def line(row: Sequence[str]) -> str:
        padded = [f"{cell:{align[i]}{widths[i]}}" for i, cell in enumerate(row)]
        return (indent + (" " * gap).join(padded)).rstrip()

    made = [style.dim(line(head))] if head else []
    return made + [style.bold(line(row)) if row and row[0] == "total" else line(row) for row in cells]


def _folded(row: list[str], room: int) -> list[list[str]]:
    """A row whose last cell takes several lines."""
    import textwrap  # text only: --json does without

    text = " ".join(word if len(word) <= room else _parted(word, room) for word in row[-1].split(" "))
    first, *rest = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    return [[*row[:-1], first], *([""] * (len(row) - 1) + [more] for more in rest)]


def _parted(word: str, room: int) -> str:
    """A word that is too long, as a key of many tables, with blanks behind dots and slashes, so that it can be cut."""
    import re

    lines = [""]
    for piece in re.findall(r"[^./·]*[./·]?", word):
        if lines[-1] and len(lines[-1]) + len(piece) > room:
            lines.append("")
        lines[-1] += piece
    return " ".join(lines)


def wrap(text: str, first: str = INDENT, rest: str | None = None, wide: int = WIDTH) -> list[str]:
    """A paragraph cut at blanks to the width of a report."""
    import textwrap  # text only: --json does without

    return textwrap.wrap(
        text,
        wide,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
        break_long_words=True,
    )
