"""Small configs of families that stand for many, and the library's class of each."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 101,
}
LATENT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "moe_intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 101,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 12,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_group": 4,
    "topk_group": 2,
    "first_k_dense_replace": 1,
    "n_shared_experts": 2,
}
CAUSAL: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101},
    "llama": SMALL,
    "mistral": SMALL | {"sliding_window": 5},
    "qwen2": SMALL,
    "qwen3": SMALL | {"head_dim": 16},
    "gemma2": SMALL | {"head_dim": 8, "sliding_window": 5},
    "mixtral": SMALL | {"num_local_experts": 4},
    "qwen3_moe": SMALL | {"head_dim": 8, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
    "gpt_oss": SMALL
    | {
        "head_dim": 16,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": 5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 150000.0},
    },
    "deepseek_v3": LATENT,
    "mamba2": {
        "hidden_size": 32,
        "num_heads": 8,
        "head_dim": 8,
        "state_size": 8,
        "n_groups": 2,
        "num_hidden_layers": 2,
        "vocab_size": 101,
        "expand": 2,
        "chunk_size": 8,
    },
    "qwen3_next": SMALL
    | {
        "head_dim": 8,
        "num_hidden_layers": 4,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 24,
    },
}
ENCODER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 101,
    "max_position_embeddings": 40,
}
MASKED: dict[str, dict[str, Any]] = {
    "bert": ENCODER,
    "modernbert": ENCODER | {"local_attention": 6, "num_hidden_layers": 4, "pad_token_id": 0},
}
PAIRED: dict[str, dict[str, Any]] = {
    "t5": {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 4,
        "vocab_size": 101,
        "decoder_start_token_id": 0,
    },
    "bart": {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "vocab_size": 101,
        "max_position_embeddings": 40,
        "forced_eos_token_id": None,
    },
}
CLASSES = (
    dict.fromkeys(CAUSAL, "AutoModelForCausalLM")
    | dict.fromkeys(MASKED, "AutoModelForMaskedLM")
    | dict.fromkeys(PAIRED, "AutoModelForSeq2SeqLM")
)
CONFIGS = CAUSAL | MASKED | PAIRED
