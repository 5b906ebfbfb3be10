"""Files of a sweep are read back by other libraries and hold the same figures; what fails leaves no file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.studies.sweep import sweep
from assay.studies.written import format_of, sort_of, write_rows

numpy = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def swept() -> assay.Sweep:
    return sweep(["llama-3-8b", "t5-base"], batch=[1, 3], tokens=[1, 10**12])


def plain(value: Any) -> str:
    return "" if value is None else str(value)


def test_csv_holds_the_rows(swept: assay.Sweep, tmp_path: Path) -> None:
    text = swept.to_csv()
    assert text is not None
    read = list(csv.DictReader(io.StringIO(text)))
    for got, row in zip(read, swept.rows(), strict=True):
        assert {name: got[name] for name in row} == {
            name: plain(int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 2**53 else v)
            for name, v in row.items()
        }
    path = tmp_path / "a.csv"
    assert swept.to_csv(path) is None
    assert path.read_text() == text
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_csv_keeps_integers_beyond_any_float(swept: assay.Sweep) -> None:
    figure = assay.count(assay.load("llama-3-8b"), tokens=10**12).flops.total
    assert figure > 2**63
    assert f",{figure}," in (swept.to_csv() or "")


def test_json_holds_the_rows(swept: assay.Sweep, tmp_path: Path) -> None:
    text = swept.to_json()
    assert text is not None
    held = json.loads(text)
    assert list(held) == ["assay", "columns", "rows"]
    assert held["columns"] == list(swept.columns)
    assert [dict(zip(held["columns"], row, strict=True)) for row in held["rows"]] == list(swept.rows())
    swept.to_json(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == text


def test_parquet_holds_the_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    small = sweep(["llama-3-8b", "t5-base"], batch=[1, 3], tokens=[1, 1000])
    small.to_parquet(tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.to_pylist() == list(small.rows())
    assert str(table.schema.field("flops.total").type) == "int64"
    assert str(table.schema.field("model.name").type) == "string"


def test_parquet_rounds_what_its_integers_do_not_hold(swept: assay.Sweep, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    swept.to_parquet(tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    assert str(table.schema.field("flops.total").type) == "double"
    assert table.column("flops.total").to_pylist() == [float(v) for v in swept["flops.total"]]
    with pytest.raises(SettingError, match="x holds integers that Parquet's int64 does not; CSV and JSON do"):
        write_rows(str(tmp_path / "b.parquet"), "parquet", {"x": "i"}, [(1, [numpy.array([10**30], dtype=object)])])
    assert not (tmp_path / "b.parquet").exists()


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_sweep_that_fails_leaves_no_file(form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")

    def rows() -> Any:
        yield 1, [5]
        raise SettingError("too long")

    path = tmp_path / f"a.{form}"
    path.write_text("before")
    with pytest.raises(SettingError, match="too long"):
        write_rows(str(path), form, {"x": "i"}, rows())
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_file_that_cannot_be_written_is_one_line(swept: assay.Sweep, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be written: No such file or directory"):
        swept.to_csv(tmp_path / "missing" / "a.csv")


def test_formats_by_ending() -> None:
    assert [format_of(name) for name in ("a.csv", "b.JSON", "c.d.parquet")] == ["csv", "json", "parquet"]
    with pytest.raises(SettingError, match=r"a.txt ends in none of .csv, .json, .parquet"):
        format_of("a.txt")


def test_without_pyarrow_one_line(swept: assay.Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingError, match="pyarrow, which is not installed; pip install pyarrow"):
        swept.to_parquet(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("values", "sort"),
    [
        ([1, 2], "i"),
        ([1, None], "i"),
        ([None], ""),
        ([1, 0.5], "f"),
        ([2**63], "f"),
        (["bf16", None], "s"),
        ([True], "b"),
    ],
)
def test_sorts(values: list[Any], sort: str) -> None:
    assert sort_of(values) == sort


def test_rounded_integers_are_floats() -> None:
    assert sort_of([1, 2], rounded=True) == "f"
    assert sort_of(["bf16"], rounded=True) == "s"
