"""Whether models fit on several chips: against what `sharded` says, and the plans that are usual."""

from __future__ import annotations

from typing import Any

import pytest
from fitting import chip

import assay

# --- many chips ---

PLANS = [
    ("llama-3-70b", assay.Plan(tensor=4), {}),
    ("llama-3-70b", assay.Plan(tensor=16, pipeline=3), {"chunk": 512, "page": 16}),
    ("llama-3.1-405b", assay.Plan(pipeline=9), {"weights": "fp8"}),
    ("deepseek-v3", assay.Plan(data=16, expert=16), {}),
    ("gpt-2", assay.Plan(tensor=4), {}),
]


@pytest.mark.parametrize(("name", "plan", "asked"), PLANS)
def test_inference_on_many_ranks(name: str, plan: assay.Plan, asked: dict[str, Any]) -> None:
    model = assay.load(name)
    made = assay.fit(model, "h100", batch=2, context=900, plan=plan, changes=False, **asked)
    wanted = assay.sharded(model, plan, batch=2, tokens=900, **asked)
    assert (made.need.bytes, made.need.rank.name) == (wanted.most.bytes, wanted.most.rank.name)
    assert [(n.rank.name, n.rank.count, n.bytes) for n in made.ranks] == [
        (one.rank.name, one.rank.count, one.bytes) for one in wanted.ranks
    ]
    assert made.gpus == plan.world == sum(n.rank.count for n in made.ranks)


TRAINED = [
    ("llama-3-8b", assay.Plan(data=8, zero=3), {"precision": "mixed"}),
    ("llama-3-8b", assay.Plan(data=4, zero=1, tensor=2, sequence=True), {"recompute": "layer"}),
    ("llama-3-8b", assay.Plan(data=2, zero=2, pipeline=4), {"precision": "megatron"}),
    ("llama-3-8b", assay.Plan(pipeline=5, tensor=4, microbatches=3), {"optimizer": "adafactor"}),
    ("mixtral-8x7b", assay.Plan(data=8, zero=1, expert=4), {"optimizer": "adamw-8bit"}),
    ("mixtral-8x7b", assay.Plan(data=8, zero=3, expert=2), {"accumulation": 3}),
    ("gpt-2", assay.Plan(tensor=4, data=3, zero=2), {"attention": "plain", "dropout": 0.1}),
]


@pytest.mark.parametrize(("name", "plan", "asked"), TRAINED)
def test_training_on_many_ranks(name: str, plan: assay.Plan, asked: dict[str, Any]) -> None:
    model = assay.load(name)
    made = assay.fit(model, "h100", batch=2, context=700, plan=plan, train=True, changes=False, **asked)
    wanted = assay.sharded(model, plan, train=True, batch=2, tokens=700, workspace=0, **asked)
    assert (made.need.bytes, made.need.rank.name) == (wanted.most.bytes, wanted.most.rank.name)
    assert [n.bytes for n in made.ranks] == [one.bytes for one in wanted.ranks]


def test_the_last_stage_with_the_head_is_the_most_loaded() -> None:
    made = assay.fit(assay.load("gemma-2-2b"), "h100", context=1000, plan=assay.Plan(pipeline=2))
    assert made.need.rank.name == "stage 2 of 2, with the head"


def test_a_latent_is_whole_on_every_rank() -> None:
    """27 layers of 512 + 64 elements in bf16, 31,104 bytes a token, whatever the ranks: it is not divided by them."""
    model = assay.load("deepseek-v2-lite")
    for ranks in (1, 4):
        made = assay.fit(model, "h100", batch=3, context=5000, plan=assay.Plan(tensor=ranks), changes=False)
        assert made.need.parts["cache"] == 3 * 5000 * 31_104


def test_a_cache_of_half_the_bytes_has_twice_the_tokens() -> None:
    """Gemma 2B, github.com/vllm-project/tpu-inference/issues/3126: room for 415,872 tokens, in fp8 for 831,744."""
    model = assay.load("gemma-2b")
    one = assay.memory(model, 1, 2048, context=8192)
    budget = chip(one.part("weights") + one.part("activations") + one.part("logits") + 415_872 * 18_432)
    for cache, sequences in (("bf16", 415_872 // 8192), ("fp8", 831_744 // 8192)):
        asked: dict[str, Any] = {"context": 8192, "cache": cache, "chunk": 2048, "prompts": 1, "changes": False}
        made = assay.fit(model, budget, batch=100, **asked)
        assert made.need.parts["cache"] == 100 * 8192 * 18 * 2 * 256 * (2 if cache == "bf16" else 1)
        assert made.batch.value == sequences


def test_usual_plans_are_said() -> None:
    model = assay.load("llama-3-70b")
    assert str(assay.fit(model, "h100", gpus=8).case.plan) == "tensor 8"
    six = assay.fit(model, "h100", gpus=6)  # 64 heads do not divide among 3 or 6
    assert str(six.case.plan) == "tensor 2, pipeline 3"
    assert six.notes[0] == "2 tensor ranks and 3 stages: usual where no plan is given"
    train = assay.fit(model, "h100", gpus=8, train=True, context=100)
    assert str(train.case.plan) == "data 8, zero 3"
    assert train.notes[0].startswith("8 replicas divide all states, ZeRO 3")
    rest = assay.fit(model, "h100", gpus=8, plan=assay.Plan(tensor=4))
    assert str(rest.case.plan) == "data 2, tensor 4"
    odd = assay.fit(assay.load("gpt-2-xl"), "h100", gpus=4)  # 25 heads divide neither among 4 nor among 2
    assert str(odd.case.plan) == "pipeline 4"


def test_more_chips_than_can_divide_a_model_are_replicas() -> None:
    made = assay.fit(assay.load("gpt-2"), "h100", gpus=10**20 + 39, context=8)  # nothing up to 12 x 12 divides so many
    assert made.case.plan == assay.Plan(data=10**20 + 39)
    assert made.notes[0].endswith("replicas, each with a batch of its own: how to divide the model is not known")
