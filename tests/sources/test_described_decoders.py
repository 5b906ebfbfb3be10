"""Descriptions of decoders of attention: those of the same configs."""

from __future__ import annotations

from typing import Any

import pytest
from described import SIZES, SMALLEST, same

# the same architecture as a config and as a description
PAIRS: dict[str, tuple[dict[str, Any], str]] = {
    "llama": (
        {
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 6,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "vocab_size": 1000,
        },
        'names = "llama"\n' + SMALLEST,
    ),
    "llama with every bias, tied": (
        {
            "model_type": "llama",
            "hidden_size": 60,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "head_dim": 16,
            "vocab_size": 1000,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
        },
        """
        names = "llama"
        vocab = 1000
        width = 60
        layers = 2
        tied = true
        attention = { heads = 6, head_width = 16, bias = true }
        mlp = { width = 96, bias = true }
        """,
    ),
    "gpt2": (
        {"n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 60, "vocab_size": 500},
        """
        names = "gpt2"
        vocab = 500
        width = 48
        layers = 3
        context = 60
        tied = true
        positions = "learned"
        norm = "layernorm"
        attention = { heads = 4, bias = true }
        mlp = { width = 192, gated = false, activation = "gelu_tanh", bias = "ud" }
        """,
    ),
    "gptj": (
        {"n_embd": 48, "n_layer": 3, "n_head": 4, "rotary_dim": 6, "vocab_size": 500},
        """
        names = "gptj"
        vocab = 500
        width = 48
        layers = 3
        norm = "layernorm"
        positions = { width = 6, style = "interleaved" }
        residual = "parallel"
        attention = { heads = 4 }
        mlp = { width = 192, gated = false, activation = "gelu_tanh", bias = true }
        head = { bias = true }
        """,
    ),
    "gpt_neox": (
        {
            "hidden_size": 48,
            "intermediate_size": 100,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "rotary_pct": 0.5,
            "vocab_size": 500,
        },
        """
        names = "gpt_neox"
        vocab = 500
        width = 48
        layers = 2
        norm = "layernorm"
        positions = { width = 8 }
        residual = "parallel-norms"
        attention = { heads = 3, bias = "qkvo" }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        """,
    ),
    "opt, post-norm, narrow": (
        {
            "hidden_size": 48,
            "ffn_dim": 100,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "word_embed_proj_dim": 20,
            "do_layer_norm_before": False,
            "max_position_embeddings": 64,
            "vocab_size": 500,
        },
        """
        names = "opt"
        vocab = 500
        width = 48
        layers = 2
        context = 64
        tied = true
        positions = "learned"
        norm = "layernorm"
        residual = "post"
        embedding = { narrow = 20, positions = 66 }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "relu", bias = true }
        """,
    ),
    "bloom": (
        {"hidden_size": 48, "n_layer": 2, "n_head": 4, "vocab_size": 500},
        """
        names = "bloom"
        vocab = 500
        width = 48
        layers = 2
        tied = true
        positions = "alibi"
        norm = { kind = "layernorm", eps = 1e-5 }
        embedding = { norm = true }
        attention = { heads = 4, bias = true }
        mlp = { width = 192, gated = false, activation = "gelu_tanh", bias = true }
        """,
    ),
    "gemma2": (
        {**SIZES, "num_hidden_layers": 5, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 20},
        """
        names = "gemma2"
        vocab = 500
        width = 48
        layers = 5
        tied = true
        norm = { unit_offset = true }
        residual = "sandwich"
        pattern = ["local", "global"]
        embedding = { scale = 6.928203230275509 }
        attention = { heads = 4, kv_heads = 2, head_width = 16, scale = 0.0625, softcap = 50.0 }
        mlp = { width = 100, activation = "gelu_tanh" }
        head = { softcap = 30.0 }
        [layer.local.attention]
        window = 20
        [layer.global]
        """,
    ),
    "olmo2": (
        {**SIZES, "num_hidden_layers": 2, "num_key_value_heads": 2},
        """
        names = "olmo2"
        vocab = 500
        width = 48
        layers = 2
        residual = "inner-post"
        attention = { heads = 4, kv_heads = 2, qk_norm = true, qk_norm_over = "full" }
        mlp = { width = 100 }
        """,
    ),
    "mixtral": (
        {**SIZES, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 6, "num_experts_per_tok": 3},
        """
        names = "mixtral"
        vocab = 500
        width = 48
        layers = 2
        attention = { heads = 4, kv_heads = 2 }
        moe = { experts = 6, chosen = 3, width = 100, router = { normalize = true } }
        """,
    ),
    "glm4_moe": (
        {
            **SIZES,
            "moe_intermediate_size": 24,
            "num_hidden_layers": 5,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "first_k_dense_replace": 2,
            "n_routed_experts": 6,
            "num_experts_per_tok": 3,
            "n_shared_experts": 2,
            "attention_bias": True,
            "use_qk_norm": True,
        },
        """
        names = "glm4_moe"
        vocab = 500
        width = 48
        layers = 5
        first = ["dense * 2"]
        pattern = ["sparse"]
        positions = { width = 8 }
        attention = { heads = 4, kv_heads = 2, head_width = 16, bias = "qkv", qk_norm = true }
        [layer.dense.mlp]
        width = 100
        [layer.sparse.moe]
        experts = 6
        chosen = 3
        width = 24
        shared = 48
        router = { scores = "sigmoid", correction = true, normalize = true, scale = 1.0 }
        """,
    ),
    "gpt_oss": (
        {
            "hidden_size": 48,
            "intermediate_size": 40,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "sliding_window": 9,
            "num_local_experts": 6,
            "num_experts_per_tok": 3,
            "vocab_size": 500,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
        """
        names = "gpt_oss"
        vocab = 500
        width = 48
        layers = 3
        pattern = ["local", "global"]
        attention = { heads = 4, kv_heads = 2, head_width = 16, bias = true, sinks = true }
        [moe]
        experts = 6
        chosen = 3
        width = 40
        activation = "swiglu_clamp"
        bias = true
        router = { scores = "softmax-of-chosen", bias = true }
        [layer.local.attention]
        window = 9
        [layer.global]
        """,
    ),
    "smollm3": (
        {**SIZES, "num_hidden_layers": 5, "num_key_value_heads": 2, "pad_token_id": 0},
        """
        names = "smollm3"
        vocab = 500
        width = 48
        layers = 5
        tied = true
        pattern = ["turned * 3", "plain"]
        attention = { heads = 4, kv_heads = 2 }
        mlp = { width = 100 }
        layer.turned.positions = "rope"
        layer.plain.positions = "none"
        """,
    ),
    "deepseek_v3": (
        {
            **SIZES,
            "moe_intermediate_size": 24,
            "num_hidden_layers": 4,
            "num_key_value_heads": 4,
            "q_lora_rank": 20,
            "kv_lora_rank": 12,
            "qk_nope_head_dim": 10,
            "qk_rope_head_dim": 6,
            "v_head_dim": 14,
            "first_k_dense_replace": 1,
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "n_group": 4,
            "topk_group": 2,
        },
        """
        names = "deepseek_v3"
        vocab = 500
        width = 48
        layers = 4
        first = ["dense"]
        pattern = ["sparse"]
        latent = { heads = 4, latent = 12, plain = 10, rotary = 6, value_width = 14, query_rank = 20 }
        layer.dense.mlp = { width = 100 }
        [layer.sparse.moe]
        experts = 8
        chosen = 2
        width = 24
        shared = 24
        router = { scores = "sigmoid", correction = true, normalize = true, scale = 2.5, groups = 4, keep_groups = 2 }
        """,
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_equals_the_config_of_the_same_architecture(case: str) -> None:
    same(case, *PAIRS[case])
