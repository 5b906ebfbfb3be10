"""A sweep's figures as columns, and how they are put together from pieces."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from assay.records import dataclass, field, replace
from assay.studies.names import WHOLE, chosen, named, whole_name

LARGEST = 2**63 - 1  # that an array of int64 holds
OPTIONAL = ("set",)  # groups of columns that a sweep may lack
SHOWN = 10  # rows of a sweep that is printed, at either end


@dataclass(frozen=True)
class Sweep:
    """Figures at many settings: `columns` are NumPy arrays of one length, a row for each setting.

    `swept` are the columns that were varied. Counted figures are int64 where `exact`, arrays of ints where one is
    larger than that; else float64, exact below 2**53.
    """

    columns: Mapping[str, Any] = field(repr=False)
    swept: tuple[str, ...]
    exact: bool

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def __eq__(self, other: object) -> bool:
        """The same columns in the same order, equal row by row."""
        if not isinstance(other, Sweep):
            return NotImplemented
        told, theirs = (self.swept, self.exact, list(self.columns)), (other.swept, other.exact, list(other.columns))
        return told == theirs and all(
            mine.tolist() == other.columns[name].tolist() for name, mine in self.columns.items()
        )

    __hash__ = None  # type: ignore[assignment]  # arrays can change

    def __getitem__(self, name: str) -> Any:
        """A column by its name, or by the end of it where only one ends so: `context` is `setting.context`."""
        return self.columns[self.column(name)]

    def column(self, name: str) -> str:
        """The whole name of a column. Raises SettingError where there is none, or several end so."""
        return whole_name(name, self.columns)

    def along(self, names: tuple[str, ...]) -> Sweep:
        """The same rows, told apart by these columns alone."""
        return replace(self, swept=names)

    def only(self, names: Collection[str]) -> Sweep:
        """The same rows with these columns alone. Raises SettingError for what is no column."""
        return Sweep({name: self.columns[name] for name in chosen(names, self.columns)}, self.swept, self.exact)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as a dict of plain values."""
        plain = [column.tolist() for column in self.columns.values()]
        for row in zip(*plain, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the rows as CSV, or return them as text where no path is given. Raises SettingError."""
        from assay.studies.written import csv_text, write

        if path is None:
            return csv_text(self)
        write(self, os.fspath(path), "csv")
        return None

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the rows as one object of JSON, or return it where no path is given. Raises SettingError."""
        from assay.studies.written import json_text, write

        if path is None:
            return json_text(self)
        write(self, os.fspath(path), "json")
        return None

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the columns as Parquet. Raises SettingError where pyarrow is not installed."""
        from assay.studies.written import write

        write(self, os.fspath(path), "parquet")

    def plot(self, figure: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw a figure: write it as .png, .svg or .html, or return matplotlib's where no path is given.

        Raises SettingError where matplotlib is not installed, or the sweep lacks what the figure needs.
        """
        from assay.studies.figures import draw, save

        return draw(self, figure) if path is None else save(self, figure, os.fspath(path))

    def __str__(self) -> str:
        from assay.studies.shown import plain_table

        return "\n".join(plain_table(self))


class Columns:
    """Columns that fill up: one value as long as all pieces have it, an array from the first that differs."""

    def __init__(self, rows: int, exact: bool) -> None:
        self.rows = rows
        self.exact = exact
        self.known: dict[str, None] = {}  # every column that there could be
        self.held: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}

    def add(self, start: int, stop: int, figures: Mapping[str, Any], wanted: Collection[str] | None) -> None:
        """The figures of some rows; what a piece lacks is 0, or None where it is no number."""
        self.known |= dict.fromkeys(figures)
        for name in figures if wanted is None else (name for word in wanted for name in named(word, figures)):
            if name not in self.held:
                self.held[name] = _absent(figures[name]) if start else figures[name]
        for name, before in self.held.items():
            value = figures[name] if name in figures else _absent(before)
            if name not in self.arrays:
                if _alike(value, before):
                    continue
                self.arrays[name] = self._column(name, start)
            sort = _joined(self.arrays[name].dtype.kind, _sort(value), self.exact)
            if sort != self.arrays[name].dtype.kind:
                self.arrays[name] = self.arrays[name].astype(DTYPES[sort])
            self.arrays[name][start:stop] = value

    def _column(self, name: str, start: int) -> Any:
        """An array with the one value that all rows so far have."""
        import numpy

        before = self.held[name]
        column = numpy.empty(self.rows, dtype=DTYPES[_sort(before)])
        if start:
            column[:start] = before
        return column

    def made(self, swept: tuple[str, ...], wanted: Collection[str] | None) -> Sweep:
        """The sweep. Raises SettingError for a wanted column that there is none of."""
        for word in wanted or ():
            if word not in OPTIONAL:
                chosen((word,), self.known)
        columns = {
            name: _settled(name, self.arrays[name]) if name in self.arrays else _repeated(value, self.rows)
            for name, value in self.held.items()
            if name in self.arrays or value is not None
        }
        return Sweep({name: columns[name] for name in in_order(columns)}, swept, self.exact)


# sorts of columns, by the letter that NumPy has for them
DTYPES: dict[str, Any] = {"i": "int64", "f": "float64", "O": object}


def _sort(value: Any) -> str:
    """The sort of column that a value or an array needs."""
    if _is_array(value):
        return "f" if value.dtype.kind == "f" else "O"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "O"
    return "f" if isinstance(value, float) else "i" if abs(value) <= LARGEST else "O"


def _joined(one: str, other: str, exact: bool) -> str:
    """The sort of column that holds both; an exact integer stays one beside a decimal."""
    if one == other:
        return one
    return "f" if {one, other} == {"i", "f"} and not exact else "O"


def _alike(value: Any, before: Any) -> bool:
    return not _is_array(value) and not _is_array(before) and type(value) is type(before) and bool(value == before)


GROUPS = """
    model.name set setting model parameters flops cache weights attention memory training generate published blocks
""".split()


def in_order(names: Collection[str]) -> list[str]:
    """Columns group by group, those of a group in the order that they were first met."""

    def group(name: str) -> int:
        head = name if name in GROUPS else name.partition(".")[0]
        return GROUPS.index(head) if head in GROUPS else len(GROUPS)

    return sorted(names, key=group)


def _absent(like: Any) -> Any:
    """What a row has in a column of other rows: none of a number, nothing in the place of a word."""
    sample = like.flat[0] if _is_array(like) else like
    return 0 if isinstance(sample, int | float) else None


def _is_array(value: object) -> bool:
    return hasattr(value, "dtype")


def _settled(name: str, column: Any) -> Any:
    """A column as an array of the narrowest sort that holds it."""
    if column.dtype.kind == "f" and name.startswith(("setting.", "set.")) and (abs(column) < WHOLE).all():
        return column.astype(DTYPES["i"])  # settings are integers; so large, an array holds them as they were given
    if column.dtype.kind != "O":
        return column
    listed = column.tolist()
    kinds = set(map(type, listed))
    if kinds == {int}:
        return column.astype(DTYPES["i"]) if max(map(abs, listed)) <= LARGEST else column
    if kinds <= {int, float} and not any(isinstance(v, int) and abs(v) > WHOLE for v in listed):
        return column.astype(DTYPES["f"])
    return column


def _repeated(value: Any, rows: int) -> Any:
    """One value in every row, stored once."""
    import numpy

    held = numpy.empty((), dtype=DTYPES[_sort(value)])
    held[()] = value
    return numpy.broadcast_to(held, rows)
