"""`assay sweep` as a person meets it: tables, files, pictures, and one line for a mistake."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from commandline import answer, run

import assay

pytest.importorskip("numpy")


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = answer(capsys, "sweep", "llama-3-8b", "--tokens", "1k:4k", "--batch", "1,8").splitlines()
    assert lines[0] == "Llama 3 8B"
    assert len(lines) == 4 + 6
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)


def test_the_table_that_an_article_breaks_off_with(capsys: pytest.CaptureFixture[str]) -> None:
    """One attention layer of GPT-2, d = 768 and 12 heads: 8nd², 2n²d, 5hn², 2n²d; beside it 16nd² of the MLP."""
    d, h = 768, 12
    lengths = "128,512,1Ki:16Ki"
    out = answer(
        capsys,
        "sweep",
        "gpt-2",
        "--set",
        "layers=1",
        "--set",
        "context=16384",
        "--tokens",
        lengths,
        "--figure",
        "attention",
    )
    _, common, _, head, *rows = [line for line in out.splitlines() if not line.startswith("·")]
    assert "convention stable-softmax" in common
    assert head.split() == ["tokens", "projections", "scores", "softmax", "output", "mlp"]
    for row, n in zip(rows, (128, 512, 1024, 2048, 4096, 8192, 16384), strict=True):
        figures = [n, 8 * n * d * d, 2 * n * n * d, 5 * h * n * n, 2 * n * n * d, 16 * n * d * d]
        assert row.split() == [f"{figure:,}" for figure in figures]


def test_csv_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("llama-3-8b", "--tokens", "1,10", "--columns", "tokens,flops.total")
    rows = list(csv.reader(io.StringIO(answer(capsys, "sweep", *words, "--csv"))))
    totals = [assay.count(assay.load("llama-3-8b"), tokens=n).flops.total for n in (1, 10)]
    assert rows == [["setting.tokens", "flops.total"], ["1", str(totals[0])], ["10", str(totals[1])]]
    held = json.loads(answer(capsys, "sweep", *words, "--json"))
    assert held == {"assay": assay.__version__, "columns": rows[0], "rows": [[1, totals[0]], [10, totals[1]]]}


def test_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    out = answer(capsys, "sweep", "llama-3-8b", "t5-base", "--tokens", "1:64", "--write", str(path))
    assert out == f"{path}: 14 rows of {len(path.read_text().splitlines()[0].split(','))} columns\n"
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [row["setting.source"] for row in rows] == [""] * 7 + ["1", "2", "4", "8", "16", "32", "64"]
    assert rows[0]["flops.total"] == str(assay.count(assay.load("llama-3-8b"), tokens=1).flops.total)


def test_large_files_say_that_integers_are_rounded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    words = ("llama-3-8b", "--context", "1:100_002:+1", "--columns", "context,flops.total", "--write", str(path))
    assert answer(capsys, "sweep", *words) == (
        f"{path}: 100,002 rows of 2 columns; integers beyond 2^53 are rounded, --exact keeps them\n"
    )
    last = path.read_text().splitlines()[-1].split(",")
    assert last == ["100002", str(assay.count(assay.load("llama-3-8b"), context=100_002).flops.total)]


def test_a_picture_is_drawn_smoothly(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "a.html"
    out = answer(capsys, "sweep", "llama-3-8b", "--context", "1k:1M", "--plot", str(path))
    assert out == f"{path}: FLOPs of a token by part, stacked\n"
    assert "40 of 241 rows" in path.read_text()


def test_lists_of_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    figures = answer(capsys, "sweep", "--figure", "list").splitlines()
    assert [line.split()[0] for line in figures][:2] == ["flops", "shares"]
    columns = answer(capsys, "sweep", "llama-3-8b", "--columns", "list").splitlines()
    assert {"setting.context", "flops.by_part.mlp", "blocks.layer.flops", "attention.scores"} <= set(columns)
    assert "matmul" in answer(capsys, "sweep", "--convention", "list")
    held = json.loads(answer(capsys, "sweep", "--figure", "list", "--json"))["figures"]
    assert [[name, *says.split()] for name, says in held.items()] == [line.split() for line in figures]
    assert json.loads(answer(capsys, "sweep", "llama-3-8b", "--columns", "list", "--json"))["columns"] == columns


def test_rows_are_printed_beside_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is asked for is printed, and nothing else, so that it can be read on."""
    words = ("llama-3-8b", "--tokens", "1,2", "--columns", "tokens,flops.total")
    for option in ("--json", "--csv"):
        out = answer(capsys, "sweep", *words, option, "--write", str(tmp_path / "a.csv"))
        assert out == answer(capsys, "sweep", *words, option)
    assert (tmp_path / "a.csv").read_text() == answer(capsys, "sweep", *words, "--csv")


def test_columns_of_attention(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "sweep", "llama-3-8b", "--tokens", "5", "--columns", "attention", "--csv")
    assert out.splitlines()[0] == "attention.projections,attention.scores,attention.softmax,attention.output"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "MODEL is missing: a config.json, a preset, or org/name; see assay sweep --help"),
        (("no-such",), "no-such"),
        (("llama-3-8b", "--batch", "8,0"), "--batch is 0; it must be an integer of at least 1"),
        (("llama-3-8b", "--context", "131,072"), "--context is 131,072; a comma separates values: write 131072"),
        (("llama-3-8b", "--set", "width"), "--set is 'width'; it must be KEY=SIZE"),
        (("llama-3-8b", "--set", "width=1k", "--set", "width=2k"), "--set gives width twice; a list is written"),
        (("llama-3-8b", "--set", "mlp.width=4*width"), "mlp.width follows from width, which is not set"),
        (("llama-3-8b", "--set", "width=a"), "width follows from a, which is not set; set it too"),
        (("llama-3-8b", "--columns", "flop"), "flop is no column of this sweep; did you mean"),
        (("llama-3-8b", "--figure", "flop"), "figure is 'flop'; did you mean flops?"),
        (("llama-3-8b", "--plot", "a.gif"), "a.gif ends in none of .png, .svg, .html"),
        (("llama-3-8b", "--write", "a.xls"), "a.xls ends in none of .csv, .json, .parquet"),
        (("llama-3-8b", "--csv", "--json"), "--csv and --json are two formats of one output"),
        (("llama-3-8b", "--context", "1:1M:+1", "--csv"), "1,000,000 rows are too many to print; --write FILE.csv"),
        (("llama-3-8b", "--convention", "matmul,x"), "convention is 'x'; known: matmul"),
        (("llama-3-8b", "--weights", "bf61"), "weights is 'bf61'; known:"),
        (("llama-3-8b", "--tokens", "1,2", "--columns", "nope", "--plot", "a.png"), "nope is no column of this sweep"),
        (("llama-3-8b", "--images", "0:900:+1"), "images is 900; Llama 3 8B has no tower to see them"),
        (("llama-3-8b", "--source", "1:900:+1"), "source is 900; Llama 3 8B has no encoder to give it to"),
        (("llama-3-8b", "--sounds", "1:900:+1"), "sounds is 900; Llama 3 8B has no tower to hear them"),
        (("llama-3-8b", "--image-tokens", "1:900:+1"), "--image-tokens is 900; Llama 3 8B has no tower"),
        (("llama-3-8b", "--past", "1,2", "--context", "5"), "--past and --context cannot both be given"),
        (("gpt-2", "--tokens", "512:2048"), "GPT-2 has a learned position table of 1024 rows"),
        (("llama-3-8b", "--seq-len", "5"), "unrecognized arguments: --seq-len 5; did you mean --tokens?"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "sweep", *words)
    assert (code, out) == (2, "")
    assert err.startswith("assay: ")
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("module", "words"), [("numpy", ()), ("matplotlib", ("--plot", "a.png"))])
def test_a_library_that_is_missing_is_one_line(
    module: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    code, out, err = run(capsys, "sweep", "llama-3-8b", "--context", "1k:4k", *words)
    assert (code, out) == (2, "")
    assert re.search(f"not installed; pip install {module}$", err.strip())
