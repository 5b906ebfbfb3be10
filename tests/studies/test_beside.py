"""Columns beside the report's: each row is what its own reading says of that point."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.readings.memory import memory
from assay.readings.published import formulas
from assay.readings.step import training_memory

pytest.importorskip("numpy")

NAMES = ("2n", "kaplan", "chinchilla", "6nd", "palm", "megatron")


def test_published_formulas_of_all_points_at_once() -> None:
    model = assay.load("llama-3-8b")
    swept = assay.sweep(model, tokens=[512, 4096], batch=[1, 3], also=["published"])
    for row in swept.rows():
        counted = assay.count(model, batch=row["setting.batch"], tokens=row["setting.tokens"])
        for formula in formulas(model, counted):
            name = f"published.{formula.name.lower()}"
            assert row[f"{name}.flops_per_token"] == formula.value
            assert row[f"{name}.ratio"] == pytest.approx(float(formula.value / formula.ours), rel=1e-12)
    assert {f"published.{name}.ratio" for name in NAMES} <= set(swept.columns)


def test_memory_of_inference_point_by_point() -> None:
    swept = assay.sweep(
        "llama-3.2-1b", tokens=[1, 300], context=[500, 900], cache=["bf16", "fp8"], columns=["memory", "setting"]
    )
    model = assay.load("llama-3.2-1b")
    assert len(swept) == 8
    for row in swept.rows():
        sizes = {name: row[f"setting.{name}"] for name in ("batch", "tokens", "context", "cache")}
        made = memory(model, logits="all", **sizes)
        assert row["memory.total"] == made.total
        parts = ("weights", "cache", "states", "activations", "logits")
        assert row["memory.total"] == sum(row[f"memory.{part}"] for part in parts)
        assert row["memory.cache"] == assay.count(model, **sizes).cache.bytes


def test_a_training_step_point_by_point() -> None:
    swept = assay.sweep("gpt-2", tokens=[64, 128], batch=2, also=["training"])
    for row in swept.rows():
        made = training_memory(assay.load("gpt-2"), batch=2, tokens=row["setting.tokens"])
        assert (row["training.peak"], row["training.saved"]) == (made.peak.bytes, made.saved)


def test_generated_tokens_by_adding_up_steps() -> None:
    """A prefill and one step behind it for each token, each counted by itself."""
    model = assay.load("llama-3.2-1b")
    swept = assay.sweep(model, tokens=7, generate=[1, 3])
    for row in swept.rows():
        new = row["setting.generate"]
        steps = sum(assay.count(model, tokens=1, past=7 + i).flops.total for i in range(new))
        prefill = assay.count(model, tokens=7).flops.total
        assert (row["generate.prefill"], row["generate.steps"]) == (prefill, steps)
        assert row["generate.flops"] == prefill + steps
        assert row["generate.cache_bytes"] == assay.count(model, tokens=7 + new).cache.bytes


def test_a_position_table_leaves_room_for_new_tokens() -> None:
    swept = assay.sweep("gpt-2", generate=[1, 500])
    assert swept["setting.tokens"].tolist() == [1023, 524]
    assert swept["generate.prefill"].tolist() == swept["flops.total"].tolist()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"also": ["speed"]}, r"^also is 'speed'; known: attention, published, generate, memory, training$"),
        ({"also": ["training"], "past": [1, 2]}, r"^training takes batch and tokens; past cannot be swept beside it$"),
        ({"generate": 0}, r"^generate holds 0; each must be an integer of at least 1"),
    ],
)
def test_refusals(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        assay.sweep("gpt-2", tokens=4, **asked)
