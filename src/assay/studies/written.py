"""A sweep in a file: CSV, JSON or Parquet, written piece by piece and put in place when it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Protocol

from assay.errors import SettingError
from assay.sources.shown import name as shown
from assay.studies.names import WHOLE

if TYPE_CHECKING:
    from assay.studies.result import Sweep

FORMATS = ("csv", "json", "parquet")
NEEDS = "Parquet is written by pyarrow, which is not installed; pip install pyarrow"
ROWS = 2**15  # of a sweep written at once

# some rows: how many, and for each column one value of them all or an array
Rows = Iterable[tuple[int, Sequence[Any]]]
# the columns by name, and what each holds: i integers, f decimals or rounded integers, b yes or no, s words
Sorts = Mapping[str, str]


class _Writer(Protocol):
    def add(self, many: int, columns: Sequence[Any]) -> None: ...

    def end(self) -> None: ...


def format_of(path: str) -> str:
    """The format that a file's ending says. Raises SettingError."""
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending not in FORMATS:
        raise SettingError(f"{shown(path)} ends in none of {', '.join('.' + known for known in FORMATS)}")
    return ending


def write(swept: Sweep, path: str, form: str) -> None:
    """Write a sweep that is in memory. Raises SettingError."""
    write_rows(path, form, {name: _sort(column) for name, column in swept.columns.items()}, _slices(swept))


def write_rows(path: str, form: str, sorts: Sorts, rows: Rows) -> None:
    """Write rows to a file, which stands there only when all are in it. Raises SettingError."""
    beside = f"{path}.part"
    try:
        if form == "parquet":
            _fill(_Parquet(beside, sorts), rows)
        else:
            with open(beside, "w", encoding="utf-8", newline="") as file:
                _fill(_TEXT[form](file, sorts), rows)
        os.replace(beside, path)
    except OSError as error:
        raise SettingError(f"{shown(path)} cannot be written: {error.strerror or type(error).__name__}") from None
    finally:
        with suppress(OSError):
            os.unlink(beside)


def _fill(writer: _Writer, rows: Rows) -> None:
    for many, columns in rows:
        writer.add(many, columns)
    writer.end()


def csv_text(swept: Sweep) -> str:
    """A sweep as CSV."""
    return _text(_Csv, swept)


def json_text(swept: Sweep) -> str:
    """A sweep as one object of JSON."""
    return _text(_Json, swept)


def _text(writer: Callable[[IO[str], Sorts], _Writer], swept: Sweep) -> str:
    from io import StringIO

    held = StringIO()
    _fill(writer(held, dict.fromkeys(swept.columns, "")), _slices(swept))
    return held.getvalue()


def _slices(swept: Sweep) -> Iterator[tuple[int, Sequence[Any]]]:
    for start in range(0, len(swept), ROWS):
        stop = min(start + ROWS, len(swept))
        yield stop - start, [column[start:stop] for column in swept.columns.values()]


def _sort(column: Any) -> str:
    """What a column of a sweep in memory holds."""
    if column.dtype.kind != "O":
        return str(column.dtype.kind)
    return sort_of(column.tolist())


def sort_of(values: Iterable[Any], rounded: bool = False) -> str:
    """What a column of such values holds, "" for nothing at all; `rounded` where its integers come as floats."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "b"
    if kinds <= {int, float}:
        vast = any(isinstance(value, int) and abs(value) >= 2**63 for value in values)
        return "" if not kinds else "f" if vast or rounded or float in kinds else "i"
    return "s"


def plain(column: Any, many: int) -> Sequence[Any]:
    """A column as a list of plain values: a float that stands for an integer for certain is one."""
    if not hasattr(column, "dtype"):
        return [column] * many
    if column.dtype.kind == "f" and (abs(column) < WHOLE).all() and (column == column.round()).all():
        column = column.astype("int64")
    listed: list[Any] = column.tolist()
    return listed


class _Csv:
    def __init__(self, file: IO[str], sorts: Sorts) -> None:
        import csv

        self.writer = csv.writer(file, lineterminator="\n")
        self.writer.writerow(sorts)

    def add(self, many: int, columns: Sequence[Any]) -> None:
        self.writer.writerows(zip(*(plain(column, many) for column in columns), strict=True))

    def end(self) -> None:
        """Nothing stands behind the last row."""


class _Json:
    """`{"assay": version, "columns": [names], "rows": [[values], …]}`, a row a line."""

    def __init__(self, file: IO[str], sorts: Sorts) -> None:
        import json

        import assay

        self.file, self.dump, self.first = file, json.dumps, True
        version, columns = json.dumps(assay.__version__), json.dumps(list(sorts), ensure_ascii=False)
        file.write(f'{{\n  "assay": {version},\n  "columns": {columns},\n  "rows": [')

    def add(self, many: int, columns: Sequence[Any]) -> None:
        rows = zip(*(plain(column, many) for column in columns), strict=True)
        lines = [f"    {self.dump(row, ensure_ascii=False)}" for row in rows]
        if lines:
            self.file.write(("\n" if self.first else ",\n") + ",\n".join(lines))
            self.first = False

    def end(self) -> None:
        self.file.write("\n  ]\n}\n")


class _Parquet:
    """A row group a piece: int64, float64 where a column has decimals or integers beyond that, words, yes or no."""

    def __init__(self, path: str, sorts: Sorts) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise SettingError(NEEDS) from None
        self.arrow: Any = pyarrow
        types = {"i": pyarrow.int64(), "f": pyarrow.float64(), "b": pyarrow.bool_(), "s": pyarrow.string()}
        self.schema: Any = pyarrow.schema([(name, types[sort or "s"]) for name, sort in sorts.items()])
        self.writer: Any = pyarrow.parquet.ParquetWriter(path, self.schema)

    def add(self, many: int, columns: Sequence[Any]) -> None:
        arrays = [self._array(column, many, field) for column, field in zip(columns, self.schema, strict=True)]
        self.writer.write_table(self.arrow.Table.from_arrays(arrays, schema=self.schema))

    def _array(self, column: Any, many: int, field: Any) -> Any:
        """A column of the file. Raises SettingError for an integer that it cannot hold."""
        if not hasattr(column, "dtype"):
            return self.arrow.repeat(self.arrow.scalar(column, field.type), many)
        if column.dtype.kind == "O" and field.type == self.arrow.float64():
            column = column.astype(float)
        try:
            return self.arrow.array(column, field.type)
        except (self.arrow.ArrowException, OverflowError):
            raise SettingError(f"{field.name} holds integers that Parquet's int64 does not; CSV and JSON do") from None

    def end(self) -> None:
        self.writer.close()


_TEXT: dict[str, Callable[[IO[str], Sorts], _Writer]] = {"csv": _Csv, "json": _Json}
