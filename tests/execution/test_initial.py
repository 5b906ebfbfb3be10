"""Parameters at the start: as the field sets them, the same for the same seed."""

from __future__ import annotations

import math
from typing import Any

import pytest
from execution.families import CAUSAL, MASKED, PAIRED

import assay

torch = pytest.importorskip("torch")


def built(model_type: str, seed: int = 0, **more: Any) -> Any:
    return assay.build(assay.load({"model_type": model_type, **(CAUSAL | MASKED)[model_type], **more}), seed=seed)


@pytest.mark.parametrize(("model_type", "norm", "bias"), [("gpt2", ".ln_", ".bias"), ("bert", "LayerNorm", ".bias")])
def test_gains_are_one_and_biases_zero(model_type: str, norm: str, bias: str) -> None:
    found = dict(built(model_type).named_parameters())
    gains = [tensor for name, tensor in found.items() if norm in name and name.endswith(".weight")]
    biases = [tensor for name, tensor in found.items() if name.endswith(bias)]
    assert gains
    assert biases
    assert all(bool((tensor == 1).all()) for tensor in gains)
    assert all(bool((tensor == 0).all()) for tensor in biases)


def test_gains_beside_one_are_zero() -> None:
    found = dict(built("gemma2").named_parameters())
    assert all(bool((tensor == 0).all()) for name, tensor in found.items() if "norm" in name)


@pytest.mark.parametrize(("more", "deviation"), [({}, 0.02), ({"initializer_range": 0.07}, 0.07)])
def test_the_rest_is_normal(more: dict[str, Any], deviation: float) -> None:
    table = built("llama", vocab_size=4001, **more).get_parameter("model.embed_tokens.weight")
    assert table.numel() == 4001 * 32
    assert table.std().item() == pytest.approx(deviation, rel=0.02)  # of 128,032 draws: within 0.2 % as a rule
    assert abs(table.mean().item()) < 0.02 * deviation


def test_a_seed_is_a_model() -> None:
    first, again, other = (built("llama", seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["lm_head.weight"], other["lm_head.weight"])


def test_the_first_loss_knows_nothing() -> None:
    own = built("llama")
    logits = own(torch.arange(20)[None])
    assert logits.softmax(-1).max().item() < 3 / 101


def test_biases_of_experts_and_of_heads_are_zero() -> None:
    experts = dict(built("gpt_oss").named_parameters())
    found = [tensor for name, tensor in experts.items() if name.endswith("_proj_bias")]
    assert {tensor.dim() for tensor in found} == {2}
    assert all(bool((tensor == 0).all()) for tensor in found)
    bart = assay.build(assay.load({"model_type": "bart", **PAIRED["bart"]}), seed=0)
    assert bool((bart.get_buffer("final_logits_bias") == 0).all())


def test_norms_of_towers() -> None:
    config = {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 48, "image_size": 16}
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "patch_size": 8}
    tower = assay.build(assay.load(config | sizes), seed=0)
    gains = [tensor for name, tensor in tower.named_parameters() if "norm" in name and name.endswith("weight")]
    assert len(gains) == 6
    assert all(bool((tensor == 1).all()) for tensor in gains)


@pytest.mark.parametrize(
    ("model_type", "config", "auto"),
    [
        ("gpt2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 501, "initializer_range": 0.05}, "CausalLM"),
        ("t5", PAIRED["t5"] | {"d_model": 64, "d_ff": 96, "initializer_factor": 0.5}, "Seq2SeqLM"),
        ("mt5", PAIRED["t5"] | {"d_model": 64, "d_ff": 96, "tie_word_embeddings": False}, "Seq2SeqLM"),
    ],
)
def test_matrices_spread_as_the_library_s(model_type: str, config: dict[str, Any], auto: str) -> None:
    """Deviations that are no one number: of what ends in the residual stream, of scores that are not scaled."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    made = transformers.AutoConfig.for_model(model_type, **config)
    their = getattr(transformers, f"AutoModelFor{auto}").from_config(made).state_dict()
    own = assay.build(assay.load(made), seed=0).named_parameters()
    wide = {name: tensor.detach() for name, tensor in own if tensor.dim() > 1 and tensor.numel() >= 128}
    assert len(wide) > 10
    for name, tensor in wide.items():
        # the deviation of n draws lies within 1 / sqrt(2 n) of its own, four times that in all but one of 16,000
        near = 4 * math.sqrt(2) / math.sqrt(2 * tensor.numel())
        assert tensor.std().item() == pytest.approx(their[name].std().item(), rel=near), name
