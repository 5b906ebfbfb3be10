"""The table of a sweep: what it shows, in how many digits, and that it fits a page."""

from __future__ import annotations

import re
from typing import Any

import pytest

from assay.report.table import WIDTH, Style
from assay.studies.shown import headings, plain_table, report, spread_rows
from assay.studies.sweep import sweep

pytest.importorskip("numpy")
PLAIN = Style(False)


def test_what_moves_is_a_column_and_what_stays_stands_above() -> None:
    title, common, _, head, *rows = report(sweep("llama-3-8b", context="1k:4k", batch="1,8"), PLAIN)
    assert title == "Llama 3 8B"
    assert common == "convention matmul · weights bf16 · cache bf16 · parameters 8.030 B · weights 16.06 GB"
    assert head.split("  ")[0] == "batch"
    assert re.split(r"\s{2,}", head.strip()) == [
        "batch", "context", "tokens", "FLOPs", "FLOPs a token", "cache", "scores / all",
    ]  # fmt: skip
    assert len(rows) == 6
    assert re.split(r"\s{2,}", rows[-1].strip()) == [
        "8", "4,000", "2,048", "280,272,385,867,776", "17,106,468,864", "4,194,304,000", "12.3 %",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("models", "asked", "says"),
    [
        (["deepseek-v3"], {}, "weights fp8 in blocks of 128×128, the rest bf16 · cache bf16"),
        (["deepseek-v3", "llama-3-8b"], {}, "weights as each model is stored · cache bf16"),
        (["deepseek-v3"], {"weights": ["int8"]}, "weights int8 · cache bf16"),
        (["deepseek-v3"], {"weights": ["fp8", "bf16"]}, "convention matmul · cache bf16"),
    ],
)
def test_what_weights_are_stored_in_stands_above(models: list[str], asked: dict[str, Any], says: str) -> None:
    """The formats of the model where none is asked for, as the report says them; what is swept is a column."""
    lines = report(sweep(models, tokens=[1000, 2000], **asked), PLAIN)
    assert says in " ".join(lines[1:3])
    words = report(
        sweep(models, tokens=[1000, 2000], columns=["flops.total", "setting", "weights.format"], **asked), PLAIN
    )
    assert says in " ".join(words[1:3])


def test_figures_in_four_digits_where_all_of_them_do_not_fit() -> None:
    lines = report(sweep(["llama-3-8b", "deepseek-v3"], tokens=[1000, 2000]), PLAIN)
    assert "  671.0 B  " in lines[-1]
    assert max(map(len, lines)) <= WIDTH


def test_what_is_wider_goes_on_below_behind_what_is_swept() -> None:
    swept = sweep("llama-3-8b", context=[1000, 2000])
    names = ["setting.context", *(name for name in swept.columns if name.startswith(("flops.", "parameters.")))]
    lines = plain_table(swept, names, PLAIN, shared=False)
    assert max(map(len, lines)) <= WIDTH
    heads = [line for line in lines if line.lstrip().startswith("context")]
    assert len(heads) > 1
    assert len(lines) == 3 * len(heads) + len(heads) - 1
    shown = " ".join(lines)
    for name in headings(names):
        assert name in shown


def test_of_many_rows_the_first_and_the_last() -> None:
    lines = str(sweep("llama-3-8b", context=range(1, 1001))).splitlines()
    assert len(lines) == 1 + 20 + 1 + 20 + 2
    assert lines[21].split() == ["…"] * 6
    assert [line.split()[0] for line in (lines[1], lines[20], lines[22], lines[41])] == ["1", "20", "981", "1,000"]
    assert lines[-1] == "1,000 rows, 40 shown"


def test_heads_are_whole_where_short_ones_are_alike() -> None:
    assert headings(["flops.by_part.mlp", "setting.tokens"]) == ["mlp", "tokens"]
    assert headings(["flops.by_part.mlp", "parameters.by_part.mlp"]) == ["flops.by_part.mlp", "parameters.by_part.mlp"]


def test_rows_evenly_spread() -> None:
    assert spread_rows(3, 5) == [0, 1, 2]
    assert spread_rows(101, 5) == [0, 25, 50, 75, 100]
