"""Configs of recurrent families: what is refused, what is written in two ways, what is published."""

from __future__ import annotations

from typing import Any

import pytest
from recurrent_cases import HEADS, LATENT, MIXED, NEMOTRON, SCAN

from assay.errors import SourceError
from assay.readings.count import count
from assay.sources.huggingface import read_config

BAD: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("mamba", {"time_step_rank": "some"}, "time_step_rank is 'some'; it must be an integer of at least 1"),
    ("mamba", {"ssm_cfg": {"layer": "Mamba2"}}, "ssm_cfg is .*; it must be {} or null for this model_type"),
    ("mamba2", {"num_heads": 100}, "num_heads is 100; it must be expand x hidden_size / head_dim: 8192 / 64"),
    ("mamba2", {"n_groups": 7}, "num_heads is 128; it must be a multiple of n_groups, 7"),
    ("jamba", {"attn_layer_offset": 8}, "attn_layer_offset is 8; it must be less than attn_layer_period, 8"),
    ("jamba", {"num_experts_per_tok": 17}, "num_experts_per_tok is 17; it must be at most num_experts, 16"),
    ("bamba", {"attn_layer_indices": [32]}, "attn_layer_indices is .32.; it must be a list of indices of layers"),
    ("bamba", {"mamba_d_head": 63}, "mamba_d_head is 63; it must be the inner width, 8192, divided by mamba_n_heads"),
    ("granitemoehybrid", {"layer_types": ["conv"] * 32}, "layer_types is .*; it must be a list of 32 items, each one"),
    ("granitemoehybrid", {"position_embedding_type": "alibi"}, "position_embedding_type is 'alibi'; it must be one of"),
    ("falcon_h1", {"mlp_multipliers": [1.0]}, "mlp_multipliers has 1 items; it must be a list of 2 items"),
    ("falcon_h1", {"mamba_n_heads": 100}, "mamba_n_heads is 100; it must be a divisor of the inner width, 1024"),
    ("nemotron_h", {"hybrid_override_pattern": "MX"}, "hybrid_override_pattern is 'MX'; it must be a letter for each"),
    ("nemotron_h", {"num_hidden_layers": 5}, "num_hidden_layers is 5; it must be 4 or null for this model_type"),
    ("nemotron_h", {"attention_bias": True}, "attention_bias is true; it must be false or null for this model_type"),
    ("zamba", {"n_mamba_heads": 3}, "n_mamba_heads is 3; it must be a divisor of the inner width, 7424"),
    ("zamba2", {"num_hidden_layers": 10}, "layer_types is missing; it must be a list of 10 items"),
    ("zamba2", {"hybrid_layer_ids": [6, 12]}, r"hybrid_layer_ids is \[6, 12\]; it must be \[6, 12, 18, 24, 30, 36, 42"),
    (
        "zamba2",
        {"num_key_value_heads": 8, "use_shared_attention_adapter": True},
        "num_key_value_heads is 8; it must be",
    ),
    ("qwen3_next", {"linear_num_value_heads": 24}, "linear_num_value_heads is 24; it must be a multiple of"),
    ("qwen3_5_text", {"attn_output_gate": False}, "attn_output_gate is false; it must be true or null"),
    (
        "olmo_hybrid",
        {"layer_types": [SCAN] * 32},
        "layer_types is .*; it must be a list with at least one full_attention",
    ),
    ("kimi_linear", {"linear_attn_config": {"kda_layers": [1]}}, "linear_attn_config.kda_layers is .1.; it must be"),
    ("bailing_hybrid", {"layer_group_size": 0}, "layer_group_size is 0; it must be an integer of at least 1"),
    ("lfm2", {"block_dim": 1024}, "block_dim is 1024; it must be 2560 or null for this model_type"),
    ("lfm2", {"block_ffn_dim_multiplier": -1.0}, "block_ffn_dim_multiplier is -1.0; it must be a number above 0"),
    ("lfm2_moe", {}, "layer_types is missing; it must be a list of 32 items"),
    ("minimax", {"block_size": 0}, "block_size is 0; it must be an integer of at least 1"),
    ("recurrent_gemma", {"intermediate_size": 7681}, "intermediate_size is 7681; it must be an even number"),
    ("recurrent_gemma", {"block_types": []}, r"block_types is \[\]; it must be a list with at least one item"),
    ("recurrent_gemma", {"lru_width": 2561}, "num_attention_heads is 10; it must be a divisor of lru_width, 2561"),
    ("rwkv", {"attention_hidden_size": 2048}, "attention_hidden_size is 2048; it must be hidden_size, 4096"),
    ("xlstm", {"num_heads": 7}, "num_heads is 7; it must be a divisor of hidden_size x qk_dim_factor, 2048"),
    ("xlstm", {"weight_mode": "both"}, "weight_mode is 'both'; it must be one of fused, single"),
    ("zaya", {"num_key_value_heads": 1}, "num_key_value_heads is 1; it must be an even number"),
    ("zaya", {"num_experts_per_tok": 2}, "num_experts_per_tok is 2; it must be 1 or null for this model_type"),
)


@pytest.mark.parametrize(("model_type", "keys", "said"), BAD, ids=[f"{t}-{next(iter(k), '')}" for t, k, _ in BAD])
def test_bad_values_are_named(model_type: str, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=f"^config: .*{said}"):
        read_config({"model_type": model_type, **keys}, "config", "model")


def test_a_pattern_and_a_list_are_one_model() -> None:
    """Nemotron-H's letters, and the table that Kimi's first checkpoints hold, which counts layers from one."""
    listed = {"model_type": "nemotron_h", **HEADS, **NEMOTRON}
    letters = {key: value for key, value in listed.items() if key != "layers_block_type"}
    assert (
        read_config(listed, "c", "m").segments
        == read_config({**letters, "hybrid_override_pattern": "M*E-M"}, "c", "m").segments
    )
    kimi_like = {"model_type": "kimi_linear", **LATENT}
    table = {
        "full_attn_layers": [2],
        "kda_layers": [1, 3, 4],
        "head_dim": 6,
        "num_heads": 3,
        "short_conv_kernel_size": 3,
    }
    flat = {"linear_head_dim": 6, "linear_num_heads": 3, "linear_conv_kernel_dim": 3, "layer_types": MIXED}
    one, other = ({**kimi_like, **more} for more in ({"linear_attn_config": table}, flat))
    assert read_config(one, "c", "m").segments == read_config(other, "c", "m").segments


# -- published checkpoints -------------------------------------------------------------------------------------------

LETTERS = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
# what the published files of these models hold besides defaults, keys of their first implementations among them
CHECKPOINTS: tuple[tuple[str, dict[str, Any], int], ...] = (
    (
        "falcon_mamba",
        {
            "hidden_size": 4096,
            "expand": 16,
            "intermediate_size": 8192,
            "num_hidden_layers": 64,
            "time_step_rank": 256,
            "vocab_size": 65024,
            "tie_word_embeddings": False,
        },
        7_272_665_088,
    ),
    (
        "nemotron_h",
        {
            "hidden_size": 4480,
            "hybrid_override_pattern": LETTERS,
            "num_hidden_layers": 56,
            "intermediate_size": 15680,
            "mamba_head_dim": 80,
            "num_attention_heads": 40,
            "rms_norm_eps": 1e-5,
        },
        8_888_227_328,
    ),
    (
        "lfm2",
        {
            "hidden_size": 2048,
            "num_hidden_layers": 16,
            "block_dim": 2048,
            "block_ff_dim": 12288,
            "block_use_swiglu": True,
            "conv_dim": 2048,
            "full_attn_idxs": [2, 5, 8, 10, 12, 14],
            "num_heads": 32,
            "use_pos_enc": True,
        },
        1_170_340_608,
    ),
    (
        "falcon_h1",
        {
            "hidden_size": 1024,
            "intermediate_size": 2048,
            "num_hidden_layers": 36,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 64,
            "mamba_d_head": 64,
            "mamba_d_ssm": 1536,
            "mamba_d_state": 128,
            "mamba_n_heads": 24,
            "mamba_norm_before_gate": False,
            "mamba_use_mlp": True,
            "vocab_size": 32784,
        },
        521_411_104,
    ),
)


@pytest.mark.parametrize(("model_type", "keys", "total"), CHECKPOINTS, ids=[row[0] for row in CHECKPOINTS])
def test_published_checkpoints(model_type: str, keys: dict[str, Any], total: int) -> None:
    """Parameters as the repositories' own tensor headers sum to."""
    assert count(read_config({"model_type": model_type, **keys}, "config", "model")).parameters.total == total


def test_the_first_words_of_minimax() -> None:
    """MiniMax-Text-01 under its own type: 456 B parameters, 45.9 B of them active without the embeddings."""
    keys = {
        "model_type": "minimax_text_01",
        "attn_type_list": [int((i + 1) % 8 == 0) for i in range(80)],
        "head_dim": 128,
        "hidden_size": 6144,
        "intermediate_size": 9216,
        "layernorm_mlp_alpha": 3.55,
        "num_attention_heads": 64,
        "num_hidden_layers": 80,
        "num_local_experts": 32,
        "postnorm": True,
        "rotary_dim": 64,
        "shared_intermediate_size": 0,
        "vocab_size": 200064,
    }
    weights = count(read_config(keys, "config", "model")).parameters
    assert round(weights.total / 1e9) == 456
    assert round((weights.active - weights.embedding - weights.head) / 1e8) == 459
