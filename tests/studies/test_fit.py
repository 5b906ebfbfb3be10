"""Whether models fit: held against what `memory`, `training_memory` and `sharded` say, runs on GPUs and published runs.

The answers are asked again from outside: what is said to fit is laid out by another reading, and one more does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fitting import chip, learned, served

import assay
from assay.errors import SettingError
from assay.records import replace
from assay.rewrites.quantize import quantize
from assay.studies.fit import Fit
from assay.studies.needs import scheme_of


def test_a_step_of_all_tensors_at_once_and_in_one_kernel() -> None:
    """Where what the optimizer makes beside is too much, the change is one that makes nothing."""
    asked: dict[str, Any] = {"batch": 1, "context": 128, "train": True}
    need = learned("llama-3.2-1b", 1, 128, optimizer="adamw-foreach")
    plain = learned("llama-3.2-1b", 1, 128)
    made = assay.fit(assay.load("llama-3.2-1b"), chip(need - 1), optimizer="adamw-foreach", **asked)
    assert (made.need.bytes, made.need.at, made.fits) == (need, "optimizer step", False)
    (fused,) = [one for one in made.changes if one.sets == {"optimizer": "adamw"}]
    assert fused.fits
    assert fused.need.bytes == plain < need


def holds(made: Fit, need: Callable[[int, int], int], most: int | None) -> None:
    """The limits are exact: they fit, and one more does not."""
    batch, context = made.case.batch, made.case.context
    assert made.need.bytes == need(batch, context) == sum(made.need.parts.values())
    assert made.batch.value is not None
    assert made.context.value is not None
    if made.batch.value:
        assert need(made.batch.value, context) <= made.room
    assert need(made.batch.value + 1, context) > made.room
    if made.context.value:
        assert need(batch, made.context.value) <= made.room
    if made.context.value != most:
        assert need(batch, made.context.value + 1) > made.room
    assert made.fits is (batch <= made.batch.value) is (context <= made.context.value)


Asked = tuple[str, str, int, int, dict[str, Any]]
SERVED: dict[str, Asked] = {  # model, chip, batch, context, what else
    "every head its keys": ("opt-13b", "a100-40gb", 4, 1024, {}),
    "grouped heads": ("llama-3-8b", "h100", 24, 8000, {}),
    "grouped heads, too many": ("llama-3-8b", "l4", 24, 8000, {}),
    "8 bits and pages": ("llama-3.1-8b", "rtx-4090", 3, 30_000, {"cache": "fp8", "page": 16, "chunk": 512}),
    "latent": ("deepseek-v2-lite", "a100-40gb", 4, 9000, {"chunk": 1000}),
    "windows": ("gemma-3-1b", "t4", 3, 16_000, {}),
    "windows alone": ("gpt-oss-20b", "h100", 7, 50_000, {"chunk": 2048}),
    "hybrid": ("granite-4.0-h-tiny", "l4", 2, 30_000, {"logits": "all"}),
    "experts": ("olmoe-1b-7b", "a10g", 3, 2000, {}),
    "encoder": ("bert-base", "t4", 700, 300, {}),
    "the public implementation": ("llama-3.2-3b", "t4", 2, 9000, {"policy": "transformers"}),
}


@pytest.mark.parametrize("name", SERVED)
def test_the_limits_of_inference_are_exact(name: str) -> None:
    model, gpu, batch, context, asked = SERVED[name]
    made = assay.fit(assay.load(model), gpu, batch=batch, context=context, changes=False, **asked)
    read = assay.load(model)
    holds(made, lambda b, c: served(model, b, c, **_cut(asked, c)), read.positions or read.trained)


def _cut(asked: dict[str, Any], context: int) -> dict[str, Any]:
    return asked | ({"chunk": min(asked["chunk"], context)} if "chunk" in asked else {})


@pytest.mark.parametrize(
    ("name", "gpu", "batch", "context"), [("t5-3b", "l4", 16, 300), ("whisper-small", "t4", 40, 99)]
)
def test_the_limits_of_encoder_decoders_are_exact(name: str, gpu: str, batch: int, context: int) -> None:
    model = assay.load(name)
    made = assay.fit(model, gpu, batch=batch, context=context, changes=False)

    def need(b: int, c: int) -> int:
        return served(name, b, c, source=None if model.source_tokens else c)

    holds(made, need, model.positions or model.trained)


LEARNED: dict[str, Asked] = {
    "grouped heads": ("llama-3.2-1b", "a100-40gb", 2, 3000, {}),
    "recomputed": ("llama-3.2-3b", "h100", 3, 5000, {"recompute": "layer", "optimizer": "adamw-8bit"}),
    "plain attention": ("qwen2.5-0.5b", "l4", 1, 2000, {"attention": "plain", "precision": "autocast"}),
    "loss in chunks": ("gemma-2-2b", "h100", 2, 3000, {"logits_chunk": 256}),
    "experts": ("olmoe-1b-7b", "h200", 2, 2000, {"precision": "mixed"}),
    "latent": ("deepseek-v2-lite", "h200", 1, 1500, {"recompute": "layer"}),
    "hybrid": ("lfm2-700m", "l4", 1, 2000, {"accumulation": 4}),
    "state-space": ("mamba-130m", "t4", 1, 800, {}),
    "encoder-decoder": ("t5-small", "t4", 4, 400, {}),
    "encoder": ("bert-base", "t4", 8, 300, {}),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n in ("recomputed", "latent", "experts", "hybrid") else [])
        for n in LEARNED
    ],
)
def test_the_limits_of_training_are_exact(name: str) -> None:
    model, gpu, batch, context, asked = LEARNED[name]
    read = assay.load(model)
    made = assay.fit(read, gpu, batch=batch, context=context, train=True, changes=False, **asked)
    holds(made, lambda b, c: learned(model, b, c, **asked), read.positions or read.trained)


def test_no_size_between_is_passed_over() -> None:
    """What is needed never falls, so the limits are the largest of all sizes, not of those near by."""
    for name, asked in (
        ("gemma-3-1b", {"chunk": 100}),
        ("granite-4.0-h-tiny", {}),
        ("t5-small", {"attention": "plain"}),
    ):
        needs = [served(name, 1, c, **_cut(asked, c)) for c in range(1, 1400, 23)]
        assert needs == sorted(needs)
    steps = [learned("lfm2-350m", 1, c, attention="plain") for c in range(1, 200, 29)]
    assert steps == sorted(steps)


def test_room_is_used_to_the_last_byte() -> None:
    model = assay.load("llama-3-8b")
    need = served("llama-3-8b", 3, 4000)
    assert assay.fit(model, chip(need), batch=3, context=4000).margin == 0
    assert assay.fit(model, chip(need), batch=3, context=4000).fits
    short = assay.fit(model, chip(need - 1), batch=3, context=4000)
    assert (short.fits, short.margin, short.batch.value, short.context.value) == (False, -1, 2, 3999)


def test_none_and_any() -> None:
    far = assay.fit(assay.load("llama-3-70b"), "t4")
    assert (far.batch.value, far.context.value) == (0, 0)
    free = assay.fit(assay.load("falcon-mamba-7b"), "a10g", context=10_000, chunk=512)
    assert (free.context.value, free.context.ends) == (None, "nothing")
    # 64 layers of 8,192 x 16 states in float32 and 8,192 x 4 columns in bf16: 37,748,736 bytes a sequence
    assert free.need.parts["states"] == 64 * 8192 * (16 * 4 + 4 * 2)
    assert free.batch.value is not None
    rest = free.room - free.need.parts["weights"]
    assert 0.9 * rest < free.batch.value * (free.need.parts["states"] + free.need.parts["activations"]) <= rest
    table = assay.fit(assay.load("gpt-2"), "h100", context=100)
    assert (table.context.value, table.context.ends) == (1024, "positions")
    said = assay.fit(assay.load("llama-3-8b"), "h100", context=100)
    assert (said.context.value, said.context.ends) == (8192, "range")
    beyond = assay.fit(assay.load("llama-3-8b"), "h100", context=9000)
    assert beyond.context.ends == "memory"
    assert beyond.context.value is not None
    assert beyond.context.value > 100_000
    assert any("beyond the 8,192 that the model claims" in note for note in beyond.notes)


@pytest.mark.parametrize(
    ("model", "asked", "says"),
    [
        ("llama-3-8b", {}, "weights bf16"),
        ("deepseek-v3", {}, "weights fp8 in blocks of 128×128, the rest bf16"),
        ("deepseek-v3", {"weights": "bf16"}, "weights bf16"),
        ("llama-3-8b", {"weights": "gptq"}, "weights gptq"),
    ],
)
def test_what_weights_are_stored_in_is_said(model: str, asked: dict[str, Any], says: str) -> None:
    """Whatever they come from: a preset has no config."""
    assert f" · {says} · prompts" in str(assay.fit(assay.load(model), "h200", gpus=8, **asked)).replace("\n", " ")


def test_prompts_one_at_a_time() -> None:
    """Weights and the cache of all sequences, and the pass of one prompt; by three readings."""
    model = assay.load("llama-3-8b")
    made = assay.fit(model, "h100", batch=32, context=8000, prompts=1)
    one = assay.memory(model, 1, 8000)
    assert made.need.parts == {
        "weights": 16_060_522_496,
        "cache": 32 * 8000 * 131_072,
        "activations": one.part("activations"),
    }
    assert made.batch.value == (made.room - 16_060_522_496 - one.part("activations")) // (8000 * 131_072)


@pytest.mark.parametrize("weights", [None, "nf4", "fp8"])
def test_adapters_alone(weights: str | None) -> None:
    """r (in + out) parameters beside each matrix of a layer, their two states; the rest as it is stored."""
    model = assay.load("llama-3-8b")
    asked: dict[str, Any] = {"context": 2000, "recompute": "layer", "lora": 16, "weights": weights}
    made = assay.fit(model, "rtx-4090", batch=2, train=True, changes=False, **asked)
    pairs = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096), (4096, 14336), (4096, 14336), (14336, 4096)]
    adapters = 32 * 16 * sum(a + b for a, b in pairs)
    matrices = 32 * sum(a * b for a, b in pairs)
    rest = 8_030_261_248 - matrices
    # nf4: half a byte, a float32 maximum for 64, a table of 16 float32 for each matrix; what is no matrix in bf16
    plain = {None: 2 * 8_030_261_248, "fp8": 8_030_261_248}
    frozen = plain.get(weights, matrices // 2 + 4 * matrices // 64 + 32 * 7 * 64 + 2 * rest)
    assert made.need.parts["parameters"] == 2 * adapters + frozen
    assert made.need.parts["optimizer"] == pytest.approx(4 * adapters, rel=1e-4)
    stored = quantize(model, scheme_of("nf4", model.family, model.dtype)) if weights == "nf4" else model
    dtype = None if weights == "nf4" else weights
    for precision in ("bf16", "autocast"):
        step = assay.training_memory(
            assay.lora(stored, 16, "all-linear"),
            2,
            2000,
            recompute="layer",
            precision=precision,
            workspace=0,
            frozen=dtype,
        )
        again = assay.fit(model, "rtx-4090", batch=2, train=True, precision=precision, changes=False, **asked)
        assert again.need.bytes == step.peak.bytes


# --- what would make it fit ---

MENDED = [
    ("llama-3-70b", "h100", {"batch": 4, "context": 8000}),
    ("gemma-2-9b", "rtx-4090", {"batch": 2, "context": 8000, "logits": "all"}),
    ("granite-4.0-h-small", "h100", {"batch": 100, "context": 8000}),
    ("t5-11b", "l4", {"batch": 8, "context": 500}),
    ("llama-3-8b", "h100", {"context": 8000, "train": True}),
    (
        "llama-3-8b",
        "a100-40gb",
        {"context": 8000, "batch": 2, "train": True, "attention": "plain", "precision": "mixed"},
    ),
    ("llama-3-8b", "h100", {"context": 8000, "batch": 2, "train": True, "plan": assay.Plan(data=8, zero=1)}),
    ("llama-3-8b", "rtx-4090", {"context": 2000, "train": True}),
]


def mended(model: assay.Model, gpu: str, asked: dict[str, Any], sets: dict[str, Any]) -> Fit:
    """The question with a change made, asked anew."""
    plan = asked.get("plan") or assay.Plan()
    own = {name: value for name, value in sets.items() if name in ("tensor", "pipeline", "data", "zero", "sequence")}
    rest = {name: value for name, value in sets.items() if name not in own and name != "gpu"}
    return assay.fit(model, sets.get("gpu", gpu), changes=False, **{**asked, **rest, "plan": replace(plan, **own)})


@pytest.mark.parametrize(("name", "gpu", "asked"), MENDED)
def test_every_change_is_true(name: str, gpu: str, asked: dict[str, Any]) -> None:
    model = assay.load(name)
    made = assay.fit(model, gpu, **asked)
    assert not made.fits
    assert any(one.fits for one in made.changes)
    for one in (*made.changes, *made.pairs):
        again = mended(model, gpu, asked, dict(one.sets))
        assert (again.need.bytes, again.margin, again.fits) == (one.need.bytes, one.margin, one.fits), one.says
        assert again.gpus == one.gpus
        assert again.chip.name == one.chip
        assert one.need.bytes <= made.need.bytes


def test_as_few_chips_as_can_be() -> None:
    """Each number of tensor ranks and stages below the one that is told does not fit or cannot be."""
    model = assay.load("llama-3-70b")
    asked: dict[str, Any] = {"batch": 16, "context": 8000}
    made = assay.fit(model, "l40s", **asked)
    told = {next(iter(one.sets)): one for one in made.changes if one.group == "gpus"}
    assert set(told) == {"tensor", "pipeline"}
    for way, one in told.items():
        for ranks in range(1, one.gpus):
            fewer_ranks: dict[str, Any] = {way: ranks}
            try:
                fewer = assay.fit(model, "l40s", plan=assay.Plan(**fewer_ranks), changes=False, **asked)
            except SettingError:
                continue
            assert not fewer.fits, (way, ranks)


def test_two_changes_where_no_one_does() -> None:
    made = assay.fit(assay.load("llama-3-8b"), "t4", batch=8, context=8000)
    assert not any(one.fits and one.group not in ("gpus", "chip", "batch", "context") for one in made.changes)
    assert made.pairs
    assert all(one.fits and len(one.sets) >= 2 and one.gpus == 1 for one in made.pairs)


def test_a_larger_chip_is_the_smallest_that_does() -> None:
    made = assay.fit(assay.load("mixtral-8x7b"), "a100", context=8000)
    larger = [one for one in made.changes if one.group == "chip"]
    assert [one.chip for one in larger] == ["h100-nvl"]
    between = [c for c in assay.chips() if made.memory < c.memory < assay.chip("h100-nvl").memory]
    assert not any(
        assay.fit(assay.load("mixtral-8x7b"), c, context=8000, changes=False).fits
        for c in between
        if "NVIDIA" in c.title
    )
