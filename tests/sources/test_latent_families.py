"""Latent attention against the public implementation: default configs, and small ones with every option turned."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, needs_library

SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 40,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 56,
    "kv_lora_rank": 14,
    "q_lora_rank": 18,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 5,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS: dict[str, Any] = {
    **SIZES,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 12,
    "n_shared_experts": 2,
    "n_group": 4,
    "topk_group": 2,
    "first_k_dense_replace": 1,
}
NO_RANK, BIASED = {"q_lora_rank": None}, {"attention_bias": True, "tie_word_embeddings": True}

VARIED: tuple[dict[str, Any], ...] = (
    {"model_type": "deepseek_v2", **EXPERTS},
    {"model_type": "deepseek_v2", **EXPERTS, **NO_RANK, **BIASED, "mlp_bias": True},
    {"model_type": "deepseek_v3", **EXPERTS},
    {"model_type": "deepseek_v3", **EXPERTS, **NO_RANK, **BIASED, "first_k_dense_replace": 3},
    {"model_type": "glm4_moe_lite", **EXPERTS, **BIASED},
    {"model_type": "glm4_moe_lite", **EXPERTS, **NO_RANK, "mlp_layer_types": ["dense", "sparse", "dense", "sparse"]},
    {"model_type": "axk1", **EXPERTS, **BIASED},
    {"model_type": "axk1", **EXPERTS, "num_hidden_layers": 6, "moe_layer_freq": 2},
    {"model_type": "sarvam_mla", **EXPERTS, **NO_RANK, "first_k_dense_replace": 2},
    {"model_type": "sarvam_mla", **EXPERTS, **BIASED},
    {"model_type": "youtu", **SIZES, "attention_bias": True, "tie_word_embeddings": False},
    {"model_type": "youtu", **SIZES, **NO_RANK},
    {"model_type": "minicpm3", **SIZES, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
    {"model_type": "minicpm3", **SIZES, "scale_emb": 2, "dim_model_base": 20},
)
DEFAULTS = ("deepseek_v3", "glm4_moe_lite", "axk1", "youtu", "minicpm3")


@needs_library
@pytest.mark.parametrize("config", VARIED, ids=[f"{one['model_type']}-{i}" for i, one in enumerate(VARIED)])
def test_small_config_equals_the_library(config: dict[str, Any]) -> None:
    check_against_library(config, tokens=7)


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_default_config_equals_the_library(model_type: str) -> None:
    check_against_library({"model_type": model_type})
