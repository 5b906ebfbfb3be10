"""What `fit` and the readings that it asks cannot answer: one line each."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.errors import HardwareError, SettingError, SizeError

# --- mistakes ---


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"gpu": "h1000"}, r"no GPU or other chip is called 'h1000'; did you mean h100-"),
        ({"gpus": 0}, "gpus is 0; it must be an integer of at least 1"),
        ({"page": 0}, "page is 0; it must be an integer of at least 1"),
        ({"batch": 0}, "batch is 0; it must be an integer of at least 1"),
        ({"plan": assay.Plan(tensor=64)}, "tensor is 64; .* has 32 query heads"),
        ({"plan": assay.Plan(pipeline=33)}, "pipeline is 33; .* has 32 layers"),
        ({"gpus": 6, "plan": assay.Plan(tensor=4)}, "gpus is 6; the plan's tensor 4 are 4, of which 6 is no multiple"),
        ({"reserve": 10**12}, "reserve is 1,000,000,000,000 bytes; NVIDIA H100 SXM5 80 GB has"),
        ({"utilization": 1.5}, "utilization is 1.5; it must be a fraction above 0 and at most 1"),
        ({"optimizer": "lion"}, "optimizer is lion; it is of training, and inference is asked about"),
        ({"train": True, "cache": "fp8"}, "cache is fp8; it is of inference, and training is asked about"),
        ({"train": True, "optimizer": "adamax"}, "optimizer is 'adamax'; known: sgd"),
        ({"train": True, "context": 10**6, "recompute": "all"}, "recompute is 'all'; known: none, attention, layer"),
        ({"train": True, "weights": "nf4"}, "weights is nf4; it is of inference, and training is asked about"),
        ({"lora": 8}, "lora is 8; it is of training, and inference is asked about"),
        ({"train": True, "lora": 0}, "lora is 0; it must be an integer of at least 1"),
        ({"weights": "int3"}, "weights is 'int3'; known: fp64, .*; and formats: fp8-blocks, int8-rows, gptq, awq, nf4"),
        ({"policy": "transformers", "prompts": 1}, "prompts is 1; the policy transformers reads all sequences"),
        ({"policy": "transformers", "page": 16}, "page is 16; the policy transformers keeps its cache in no pages"),
    ],
)
def test_mistakes(asked: dict[str, Any], says: str) -> None:
    given = {"gpu": "h100", **asked}
    with pytest.raises((SettingError, SizeError, HardwareError), match=says):
        assay.fit(assay.load("llama-3-8b"), given.pop("gpu"), **given)


def test_a_position_table_ends_a_context() -> None:
    with pytest.raises(SettingError, match="GPT-2 has a learned position table of 1024 rows"):
        assay.fit(assay.load("gpt-2"), "h100", context=2000)


WORDS = ("weights", "cache", "state", "logits", "latent", "attention", "policy", "optimizer", "precision", "recompute")


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("value", [["x"], [], {}, object()])
@pytest.mark.parametrize("name", ["plan", "dropout", "source", "images", "image_tokens", "sounds", *WORDS])
def test_what_is_no_word_and_no_size_is_named(name: str, value: Any, train: bool) -> None:
    with pytest.raises(
        (SettingError, SizeError), match=rf"^{name} is .*(must be|is of (training|inference))"
    ) as caught:
        assay.fit(assay.load("gpt-2"), "h100", train=train, context=64, **{name: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [["x"], [], {}, "", 1.5])
@pytest.mark.parametrize("name", ["weights", "cache", "state", "logits", "latent", "attention", "policy", "compute"])
def test_memory_is_told_words(name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"^{name} is .*; known: "):
        assay.memory(assay.load("gpt-2"), 1, 64, **{name: value})


@pytest.mark.parametrize("value", [["x"], [], {}, "x"])
@pytest.mark.parametrize("name", ["precision", "optimizer", "attention", "policy", "recompute", "device", "dropout"])
def test_training_memory_is_told_words(name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"^{name} is .*; (known: |a rate from)"):
        assay.training_memory(assay.load("gpt-2"), 1, 64, **{name: value})


def test_no_plan_and_no_model() -> None:
    with pytest.raises(SettingError, match=r"^plan is 'x'; it must be a Plan$"):
        assay.fit(assay.load("gpt-2"), "h100", plan="x")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"^model is 'gpt-2'; it must be a model, as assay.load reads it$"):
        assay.fit("gpt-2", "h100")  # type: ignore[arg-type]
