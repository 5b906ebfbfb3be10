"""The public implementation run and measured, against what its config alone says: two ways that share no rule."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from library import built

import assay

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 96}
TWO_KEYS = {**SMALL, "num_key_value_heads": 2}
LATENT = {
    "kv_lora_rank": 8,
    "q_lora_rank": 12,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "moe_intermediate_size": 24,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **TWO_KEYS},
    "gpt2": {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 96, "n_positions": 64},
    "gemma2": {"model_type": "gemma2", **TWO_KEYS, "head_dim": 16, "sliding_window": 4},
    "mixtral": {"model_type": "mixtral", **TWO_KEYS, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {
        "model_type": "qwen3_moe",
        **TWO_KEYS,
        "head_dim": 12,
        "moe_intermediate_size": 24,
        "num_experts": 8,
        "num_experts_per_tok": 3,
    },
    "deepseek_v3": {"model_type": "deepseek_v3", **SMALL, "num_key_value_heads": 4, **LATENT},
    "bert": {"model_type": "bert", **SMALL},
}
AUTO = {"bert": "AutoModelForMaskedLM"}
B, N = 2, 10


def real(name: str) -> Any:
    """The library's model with memory behind it, as its own initialization fills it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**CONFIGS[name])
        return getattr(transformers, AUTO.get(name, "AutoModelForCausalLM")).from_config(made).eval()


def on_meta(name: str) -> Any:
    """The same without memory; grouped products on meta are of 16 bits alone."""
    return built(CONFIGS[name], AUTO.get(name, "AutoModelForCausalLM")).to(torch.bfloat16).eval()


def said(name: str, **setting: Any) -> assay.Count:
    return assay.count(assay.load(CONFIGS[name]), batch=B, tokens=N, **setting)


@pytest.mark.parametrize("name", CONFIGS)
def test_forward(name: str) -> None:
    """On meta, in products, and on the CPU, in kernels."""
    counted = said(name)
    for net in (on_meta(name), real(name)):
        ids = torch.zeros(B, N, dtype=torch.long, device=net.device)
        with torch.no_grad():
            found = assay.measure(net, ids)
        assert found.flops.total == counted.flops.total
        assert found.parameters == counted.parameters.total


@pytest.mark.parametrize("name", ["llama", "gpt2", "mixtral", "bert"])
def test_training(name: str) -> None:
    """Three times forward, but that flash attention computes its scores again: five products for two."""
    net = real(name)  # no dropout: it would take attention to products
    ids = torch.zeros(B, N, dtype=torch.long)
    found = assay.measure(net, ids, labels=ids, backward=True)
    counted = said(name)
    scores = counted.flops.attention_scores
    assert found.flops.forward == counted.flops.total
    kernels = sum(flops for op, flops in found.flops.by_op.items() if "attention" in op)
    assert kernels == scores * 7 // 2
    assert found.flops.backward == 2 * counted.flops.total + scores // 2


def test_a_decode_step() -> None:
    net = real("llama")
    with torch.no_grad():
        past = net(torch.zeros(B, 7, dtype=torch.long), use_cache=True).past_key_values
        found = assay.measure(net, torch.zeros(B, 1, dtype=torch.long), cache=past)
    step = assay.count(assay.load(CONFIGS["llama"]), batch=B, tokens=1, past=7)
    assert found.flops.total == step.flops.total


@pytest.mark.slow
def test_llama_405b_without_memory() -> None:
    """8,192 tokens through 126 layers, forward and backward, on the meta device."""
    config = {
        "model_type": "llama",
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
    }
    d, f, kv, layers, vocabulary, n = 16384, 53248, 1024, 126, 128256, 8192
    weights = layers * (2 * d * d + 2 * d * kv + 3 * d * f) + vocabulary * d
    ids = torch.zeros(1, n, dtype=torch.long, device="meta")
    found = assay.measure(built(config), ids, labels=ids, backward=True)
    assert found.parameters == 405_853_388_800
    assert found.flops.forward == 2 * n * weights + layers * 4 * n * n * d == 7_169_159_410_483_200
    assert found.flops.total == 3 * found.flops.forward
    assert found.flops.forward == assay.count(assay.load(config), tokens=n).flops.total
    assert "126 × LlamaDecoderLayer" in found.table(depth=3)
