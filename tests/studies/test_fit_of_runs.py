"""What ran on a GPU is said to fit on it: measured steps and passes, published trainings, an engine."""

from __future__ import annotations

import re
from typing import Any

import measurements
import pytest
from fitting import RESERVED
from published_rows import needs_rows, rows

import assay
from assay.records import replace

# --- runs ---


@pytest.mark.parametrize("record", measurements.TRAINED, ids=measurements.title)
def test_steps_that_ran_on_a_gpu_fit_on_it(record: dict[str, Any]) -> None:
    model = measurements.model(record["model"])
    asked: dict[str, Any] = {
        "context": record["n"],
        "train": True,
        "precision": record["precision"],
        "attention": measurements.ATTENTION[record["attn"]],
        "recompute": "layer" if record["checkpoint"] else "none",
    }
    made = assay.fit(model, "h200", batch=record["b"], changes=False, **asked)
    assert made.fits
    assert made.need.bytes + RESERVED == pytest.approx(record["peak_bytes"], rel=0.05)
    assert made.batch.value is not None
    assert not assay.fit(model, "h200", batch=made.batch.value + 1, changes=False, **asked).fits
    tight = replace(assay.chip("h200"), memory=int(record["peak_bytes"] / 1.05))
    assert not assay.fit(model, tight, batch=record["b"], changes=False, **asked).fits


@pytest.mark.parametrize("record", measurements.PASSED, ids=measurements.title)
def test_passes_that_ran_on_a_gpu_fit_on_it(record: dict[str, Any]) -> None:
    logits = "all" if record.get("logits_to_keep") == 0 else "last"
    model = measurements.model(record["model"])
    asked: dict[str, Any] = {"context": record["n"], "logits": logits, "policy": "transformers", "weights": "bf16"}
    made = assay.fit(model, "h200", batch=record["b"], changes=False, **asked)
    assert made.fits
    assert made.batch.value is not None
    assert not assay.fit(model, "h200", batch=made.batch.value + 1, changes=False, **asked).fits


@needs_rows
def test_published_runs_fit_on_what_they_ran_on() -> None:
    """Trainings of MPT models, github.com/mosaicml/llm-foundry: FSDP over 8 to 512 GPUs, micro-batches given.

    Their loss is one kernel that keeps no float32 logits, here told as chunks; their attention one kernel, too. They
    chose micro-batches as large as went: half of them would not go with three times as many.
    """
    tight = 0
    found_rows = [row for row in rows() if row["id"].startswith("mfu.mpt.")]
    for row in found_rows:
        said = re.match(r"(\d+) (\w+), micro-batch (\d+), global batch \d+, \w+, (\w+), ckpt (\w+)", row["setting"])
        assert said, row["setting"]
        gpus, gpu, batch, sharding, again = said.groups()
        d = row["dims"]
        config = {
            "model_type": "gpt2",
            "n_layer": d["layers"],
            "n_embd": d["d_model"],
            "n_head": d["heads"],
            "n_inner": d["d_ffn"],
            "n_positions": d["seq"],
            "vocab_size": d["vocab"],
        }
        plan = assay.Plan(data=int(gpus), zero=3 if sharding == "FULL_SHARD" else 2)
        asked: dict[str, Any] = {
            "context": d["seq"],
            "train": True,
            "precision": "mixed",
            "recompute": "layer" if again == "True" else "none",
            "policy": "ours",
            "logits_chunk": 1024,
            "plan": plan,
        }
        chip_name = {"h100_80gb": "h100", "a100_80gb": "a100-80gb", "a100_40gb": "a100-40gb"}[gpu]
        made = assay.fit(assay.load(config), chip_name, batch=int(batch), changes=False, **asked)
        assert made.fits, row["id"]
        assert made.batch.value is not None
        tight += made.batch.value < 3 * int(batch)
    assert len(found_rows) == 21
    assert tight >= 15


def test_an_engine_gets_as_many_in() -> None:
    """vLLM, github.com/vllm-project/vllm/pull/12569: Llama 3.1 70B with 8-bit weights in 0.98 of an H100 80 GB.

    It printed 67.7229 GiB of weights, 1,381 blocks of 16 tokens: 10.79 requests of 2,048. What it keeps for prompts of
    8,192 to 16,384 tokens together, and what graphs and libraries take, leaves it less than is said here.
    """
    model = assay.load("llama-3.1-70b")
    asked: dict[str, Any] = {"context": 2048, "weights": "int8-rows", "utilization": 0.98, "page": 16}
    made = assay.fit(model, "h100", batch=10, prompts=4, **asked)
    assert made.need.parts["weights"] == pytest.approx(67.7229 * 2**30, rel=1e-3)
    assert made.batch.value == 13
    assert assay.fit(model, "h100", batch=10, prompts=8, **asked).batch.value == 11
    assert not assay.fit(model, "h100", batch=16, prompts=4, changes=False, **asked).fits
