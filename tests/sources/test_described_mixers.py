"""Descriptions of hybrids, of recurrent models and of sparse attention: those of the same configs."""

from __future__ import annotations

from typing import Any

import pytest
from described import SIZES, same

# the same architecture as a config and as a description
PAIRS: dict[str, tuple[dict[str, Any], str]] = {
    "jamba": (
        {
            **SIZES,
            "num_hidden_layers": 8,
            "num_key_value_heads": 2,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "attn_layer_period": 4,
            "attn_layer_offset": 2,
            "mamba_dt_rank": 3,
        },
        """
        names = "jamba"
        vocab = 500
        width = 48
        layers = 8
        context = 262144
        positions = "none"
        pattern = ["scan + dense", "scan + sparse", "attend + dense", "scan + sparse"]
        [layer.scan]
        mamba = { inner = 96, state = 16, rank = 3, norms = true }
        [layer.attend]
        attention = { heads = 4, kv_heads = 2 }
        [layer.dense]
        mlp = { width = 100 }
        [layer.sparse]
        moe = { experts = 4, chosen = 2, width = 100 }
        """,
    ),
    "falcon_h1": (
        {
            **SIZES,
            "num_hidden_layers": 2,
            "num_key_value_heads": 2,
            "mamba_d_ssm": 64,
            "mamba_n_heads": 4,
            "mamba_n_groups": 2,
            "mamba_d_head": 16,
            "mamba_d_state": 8,
            "ssm_multipliers": [1.0, 2.0, 3.0, 4.0, 5.0],
            "mlp_multipliers": [0.5, 0.25],
        },
        """
        names = "falcon_h1"
        vocab = 500
        width = 48
        layers = 2
        context = 8192
        blocks = ["attention + mamba2", "mlp"]
        embedding = { scale = 1.0 }
        attention = { heads = 4, kv_heads = 2, input_scale = 1.0, output_scale = 1.0 }
        mlp = { width = 100, scales = [0.5, 0.25] }
        head = { scale = 1.0 }
        [mamba2]
        heads = 4
        head_width = 16
        state = 8
        groups = 2
        norm = "none"
        scale_in = 1.0
        scales = [1.0, 2.0, 3.0, 4.0, 5.0]
        output_scale = 1.0
        """,
    ),
    "minimax": (
        {
            **SIZES,
            "num_hidden_layers": 4,
            "num_key_value_heads": 2,
            "head_dim": 12,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "block_size": 16,
            "full_attn_alpha_factor": 3.5,
            "linear_attn_alpha_factor": 3.5,
            "mlp_alpha_factor": 3.5,
        },
        """
        names = "minimax"
        vocab = 500
        width = 48
        layers = 4
        context = 131072
        norm = { eps = 1e-5 }
        residual = "onto-normed"
        residual_scale = 1.0
        residual_keep = 3.5
        pattern = ["soft", "linear"]
        moe = { experts = 4, chosen = 2, width = 100, router = { normalize = true } }
        [layer.soft]
        attention = { heads = 4, kv_heads = 2 }
        [layer.linear]
        lightning = { heads = 4, width = 12, block = 16 }
        """,
    ),
    "recurrent_gemma": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 5,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "lru_width": 48,
            "intermediate_size": 200,
            "attention_window_size": 20,
        },
        """
        names = "recurrent_gemma"
        vocab = 500
        width = 48
        layers = 5
        tied = true
        norm = { unit_offset = true }
        positions = { width = 6 }
        pattern = ["recurrent * 2", "near"]
        embedding = { scale = 6.928203230275509 }
        mlp = { width = 100, activation = "gelu_tanh", bias = true }
        head = { softcap = 30.0 }
        [layer.recurrent]
        rg_lru = { inner = 48, heads = 4 }
        [layer.near]
        attention = { heads = 4, kv_heads = 1, window = 20, bias = "o" }
        """,
    ),
    "rwkv": (
        {"vocab_size": 500, "hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 100},
        """
        names = "rwkv"
        vocab = 500
        width = 48
        layers = 2
        context = 1024
        norm = "layernorm"
        positions = "none"
        embedding = { norm = true }
        rwkv = { inner = 48 }
        rwkv_mlp = { inner = 100 }
        """,
    ),
    "qwen3_next": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "num_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "shared_expert_intermediate_size": 32,
        },
        """
        names = "qwen3_next"
        vocab = 500
        width = 48
        layers = 4
        context = 32768
        norm = { unit_offset = true }
        positions = { width = 4 }
        pattern = ["delta * 3", "full"]
        moe = { experts = 6, chosen = 2, width = 24, shared = 32, shared_gate = true, router = { normalize = true } }
        [layer.delta]
        gated_delta = { key_heads = 2, value_heads = 4, key_width = 8, value_width = 8, norm = "rmsnorm" }
        [layer.full]
        attention = { heads = 4, kv_heads = 2, head_width = 16, qk_norm = true, gate = "element" }
        """,
    ),
    "kimi_linear": (
        {
            **SIZES,
            "num_hidden_layers": 4,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 24,
            "num_experts": 6,
            "num_experts_per_token": 2,
            "num_shared_experts": 1,
            "kv_lora_rank": 16,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 4,
            "v_head_dim": 8,
            "linear_attn_config": {
                "num_heads": 4,
                "head_dim": 8,
                "short_conv_kernel_size": 4,
                "full_attn_layers": [4],
                "kda_layers": [1, 2, 3],
            },
        },
        """
        names = "kimi_linear"
        vocab = 500
        width = 48
        layers = 4
        context = 1000
        positions = "none"
        first = ["delta + dense"]
        pattern = ["delta + sparse * 2", "full + sparse"]
        [layer.delta]
        kimi_delta = { heads = 4, head_width = 8, rank = 8 }
        [layer.full]
        latent = { heads = 4, latent = 16, plain = 8, rotary = 4, value_width = 8 }
        [layer.dense]
        mlp = { width = 100 }
        [layer.sparse.moe]
        experts = 6
        chosen = 2
        width = 24
        shared = 24
        [layer.sparse.moe.router]
        scores = "sigmoid"
        correction = true
        normalize = true
        scale = 1.0
        """,
    ),
    "nemotron_h": (
        {
            **SIZES,
            "hybrid_override_pattern": "M-M*ME",
            "num_key_value_heads": 2,
            "head_dim": 12,
            "mamba_num_heads": 8,
            "mamba_head_dim": 8,
            "ssm_state_size": 16,
            "n_groups": 2,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "moe_shared_expert_intermediate_size": 32,
            "n_group": 1,
            "topk_group": 1,
            "norm_topk_prob": True,
            "routed_scaling_factor": 1.0,
        },
        """
        names = "nemotron_h"
        vocab = 500
        width = 48
        layers = 6
        context = 4096
        norm = { eps = 1e-5 }
        positions = "none"
        pattern = ["scan", "dense", "scan", "attend", "scan", "sparse"]
        [layer.scan]
        mamba2 = { heads = 8, head_width = 8, state = 16, groups = 2 }
        [layer.dense]
        mlp = { width = 100, gated = false, activation = "relu2" }
        [layer.attend]
        attention = { heads = 4, kv_heads = 2, head_width = 12 }
        [layer.sparse.moe]
        experts = 4
        chosen = 2
        width = 24
        shared = 32
        gated = false
        activation = "relu2"
        [layer.sparse.moe.router]
        scores = "sigmoid"
        correction = true
        normalize = true
        scale = 1.0
        """,
    ),
    "deepseek_v32": (
        {
            **SIZES,
            "num_hidden_layers": 2,
            "first_k_dense_replace": 2,
            "kv_lora_rank": 16,
            "q_lora_rank": 12,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 4,
            "v_head_dim": 8,
            "index_topk": 10,
            "index_head_dim": 8,
            "index_n_heads": 2,
        },
        """
        names = "deepseek_v32"
        vocab = 500
        width = 48
        layers = 2
        context = 163840
        mlp = { width = 100 }
        [latent]
        heads = 4
        latent = 16
        plain = 8
        rotary = 4
        value_width = 8
        query_rank = 12
        top = 10
        indexer = { heads = 2, width = 8 }
        """,
    ),
    "mamba": (
        {"vocab_size": 500, "hidden_size": 48, "num_hidden_layers": 2},
        """
        names = "mamba"
        vocab = 500
        width = 48
        layers = 2
        tied = true
        positions = "none"
        mamba = { inner = 96, state = 16, rank = 3 }
        """,
    ),
    "mamba2": (
        {
            "vocab_size": 500,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_heads": 4,
            "head_dim": 32,
            "state_size": 16,
            "n_groups": 2,
        },
        """
        names = "mamba2"
        vocab = 500
        width = 64
        layers = 2
        positions = "none"
        mamba2 = { heads = 4, head_width = 32, state = 16, groups = 2 }
        """,
    ),
    "lfm2": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"],
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 128,
            "block_auto_adjust_ff_dim": False,
        },
        """
        names = "lfm2"
        vocab = 500
        width = 48
        layers = 3
        context = 128000
        tied = true
        pattern = ["conv", "attend"]
        mlp = { width = 128 }
        [layer.conv]
        short_conv = { inner = 48, kernel = 3 }
        [layer.attend]
        attention = { heads = 4, kv_heads = 2, qk_norm = true }
        """,
    ),
    "xlstm": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 2,
            "num_heads": 4,
            "ffn_round_up_to_multiple_of": 64,
        },
        """
        names = "xlstm"
        vocab = 500
        width = 48
        layers = 2
        positions = "none"
        mlstm = { heads = 4, key_width = 6, value_width = 12, norm = { kind = "layernorm", affine = "gain" } }
        mlp = { width = 128 }
        head = { softcap = 30.0 }
        """,
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_equals_the_config_of_the_same_architecture(case: str) -> None:
    same(case, *PAIRS[case])
