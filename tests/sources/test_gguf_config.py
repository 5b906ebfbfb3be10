"""Metadata of GGUF files as configs: what llama.cpp writes of a model reads as its config.json does."""

from __future__ import annotations

from typing import Any

import pytest

from assay.readings.count import count
from assay.sources.checkpoints.gguf_config import ARCHITECTURES, config_of
from assay.sources.checkpoints.held import Checkpoint, Held
from assay.sources.huggingface import read_config

BASE = {
    "block_count": 3,
    "context_length": 64,
    "embedding_length": 32,
    "feed_forward_length": 48,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "rope.freq_base": 10000.0,
}
LAYERNORM = {**{k: v for k, v in BASE.items() if "rms" not in k}, "attention.layer_norm_epsilon": 1e-5}
WIDE = {"attention.key_length": 16, "attention.value_length": 16}
EXPERTS = {"expert_count": 4, "expert_used_count": 2}
MOE = EXPERTS | {"expert_feed_forward_length": 24}
CONFIG = {
    "vocab_size": 80,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
ROUTED = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}

# architecture -> what llama.cpp writes, names of tensors that tell something, the config of the same model
SMALL: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "llama": (BASE, "output.weight", {**CONFIG, "model_type": "llama", "tie_word_embeddings": False}),
    "qwen2": (BASE, "", {**CONFIG, "model_type": "qwen2", "tie_word_embeddings": True}),
    "qwen2moe": (
        BASE | MOE | {"expert_shared_feed_forward_length": 40}, "output.weight",
        {**CONFIG, **ROUTED, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 40},
    ),
    "qwen3": (BASE | WIDE, "", {**CONFIG, "model_type": "qwen3", "head_dim": 16, "tie_word_embeddings": True}),
    "qwen3moe": (
        BASE | WIDE | MOE, "output.weight", {**CONFIG, **ROUTED, "model_type": "qwen3_moe", "head_dim": 16},
    ),
    "gemma": (BASE | WIDE, "", {**CONFIG, "model_type": "gemma", "head_dim": 16}),
    "gemma2": (
        BASE | WIDE | {"attention.sliding_window": 8}, "",
        {**CONFIG, "model_type": "gemma2", "head_dim": 16, "sliding_window": 8},
    ),
    "gemma3": (
        BASE | WIDE | {"attention.sliding_window": 8}, "",
        {**CONFIG, "model_type": "gemma3_text", "head_dim": 16, "sliding_window": 8},
    ),
    "phi3": (
        BASE | {"attention.sliding_window": 8}, "output.weight",
        {**CONFIG, "model_type": "phi3", "sliding_window": 8, "pad_token_id": None},
    ),
    "olmo2": (BASE, "output.weight", {**CONFIG, "model_type": "olmo2"}),
    "olmoe": (
        BASE | EXPERTS, "output.weight", {**CONFIG, "model_type": "olmoe", "num_experts": 4, "num_experts_per_tok": 2},
    ),
    "starcoder2": (LAYERNORM, "", {**CONFIG, "model_type": "starcoder2", "tie_word_embeddings": True}),
    "stablelm": (
        LAYERNORM, "output.weight blk.0.attn_q.bias blk.0.ffn_norm.weight",
        {**CONFIG, "model_type": "stablelm", "use_qkv_bias": True},
    ),
    "command-r": (LAYERNORM, "", {**CONFIG, "model_type": "cohere"}),
    "gpt-oss": (
        BASE | WIDE | MOE | {"attention.sliding_window": 8}, "output.weight",
        {**CONFIG, "model_type": "gpt_oss", "intermediate_size": 24, "head_dim": 16, "num_local_experts": 4,
         "num_experts_per_tok": 2, "sliding_window": 8, "tie_word_embeddings": False},
    ),
    "deepseek2": (
        BASE | MOE | {
            "attention.head_count_kv": 1, "attention.kv_lora_rank": 16, "attention.q_lora_rank": 24,
            "attention.key_length": 24, "attention.value_length": 16, "attention.key_length_mla": 20,
            "attention.value_length_mla": 12, "rope.dimension_count": 8, "leading_dense_block_count": 1,
            "expert_shared_count": 1,
        },
        "output.weight blk.1.exp_probs_b.bias",
        {**CONFIG, "model_type": "deepseek_v3", "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 24,
         "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 12, "n_routed_experts": 4, "n_group": 1,
         "topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "first_k_dense_replace": 1},
    ),
    "gpt2": (
        {k: v for k, v in LAYERNORM.items() if k not in ("attention.head_count_kv", "rope.freq_base")}, "",
        {"model_type": "gpt2", "vocab_size": 80, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_inner": 48,
         "n_positions": 64},
    ),
    "gptneox": (
        {**{k: v for k, v in LAYERNORM.items() if k != "attention.head_count_kv"}, "use_parallel_residual": True},
        "output.weight",
        {**{k: v for k, v in CONFIG.items() if k != "num_key_value_heads"}, "model_type": "gpt_neox"},
    ),
}  # fmt: skip


def held(architecture: str, metadata: dict[str, Any], names: str) -> Checkpoint:
    keys = {"general.architecture": architecture} | {f"{architecture}.{k}": v for k, v in metadata.items()}
    tensors = [Held("token_embd.weight", "F16", (80, 32), 5120), *(Held(n, "F32", (1,), 4) for n in names.split())]
    return Checkpoint("small.gguf", "gguf", ("small.gguf",), tuple(tensors), keys)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_metadata_read_as_the_config_does(architecture: str) -> None:
    metadata, names, config = SMALL[architecture]
    ours = read_config(config_of(held(architecture, metadata, names)), "small.gguf", "small")
    theirs = read_config(config, "config.json", "small")
    assert ours.family == theirs.family
    asked: dict[str, Any] = {"tokens": 5, "past": 11, "cache": "bf16", "weights": "bf16"}
    a, b = count(ours, **asked), count(theirs, **asked)
    assert a.parameters == b.parameters
    assert a.flops == b.flops
    assert a.cache == b.cache


def test_every_architecture_has_a_model_to_compare() -> None:
    assert SMALL.keys() == ARCHITECTURES.keys()
