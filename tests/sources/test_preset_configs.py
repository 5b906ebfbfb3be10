"""Presets of which no config was recorded: each beside a config with the same sizes, read by its family."""

from __future__ import annotations

from typing import Any

import pytest
from described import ledger, said, structure

from assay.readings.count import count
from assay.sources.huggingface import read_config
from assay.sources.presets import read_preset

LFM2 = ["full_attention" if i in (2, 5, 8, 10, 12, 14) else "conv" for i in range(16)]
LFM2_MOE = ["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)]
GRANITE = ["attention" if i % 10 == 5 else "mamba" for i in range(40)]
MINIMAX = ["full_attention" if i % 8 == 7 else "linear_attention" for i in range(80)]

CONFIGS: dict[str, dict[str, Any]] = {
    "albert-base": {
        "model_type": "albert",
        "vocab_size": 30000,
        "embedding_size": 128,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_act": "gelu_new",
    },
    "deberta-v3-base": {
        "model_type": "deberta-v2",
        "vocab_size": 128100,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "relative_attention": True,
        "position_buckets": 256,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": "p2c|c2p",
        "position_biased_input": False,
    },
    "dinov2-base": {"model_type": "dinov2", "image_size": 518, "patch_size": 14},
    "electra-base": {
        "model_type": "electra",
        "architectures": ["ElectraForPreTraining"],
        "embedding_size": 768,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "falcon-mamba-7b": {
        "model_type": "falcon_mamba",
        "vocab_size": 65024,
        "hidden_size": 4096,
        "num_hidden_layers": 64,
        "tie_word_embeddings": False,
    },
    "flan-t5-base": {
        "model_type": "t5",
        "d_model": 768,
        "d_ff": 2048,
        "d_kv": 64,
        "num_layers": 12,
        "num_decoder_layers": 12,
        "num_heads": 12,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "vocab_size": 32128,
    },
    "granite-4.0-h-micro": {
        "model_type": "granitemoehybrid",
        "vocab_size": 100352,
        "hidden_size": 2048,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 0,
        "shared_intermediate_size": 8192,
        "mamba_n_heads": 64,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "layer_types": GRANITE,
        "tie_word_embeddings": True,
        "attention_multiplier": 0.015625,
        "embedding_multiplier": 12,
        "residual_multiplier": 0.22,
        "logits_scaling": 8,
        "max_position_embeddings": 131072,
    },
    "granite-4.0-h-tiny": {
        "model_type": "granitemoehybrid",
        "vocab_size": 100352,
        "hidden_size": 1536,
        "num_hidden_layers": 40,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "num_local_experts": 64,
        "num_experts_per_tok": 6,
        "intermediate_size": 512,
        "shared_intermediate_size": 1024,
        "mamba_n_heads": 48,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "layer_types": GRANITE,
        "tie_word_embeddings": True,
        "attention_multiplier": 0.0078125,
        "embedding_multiplier": 12,
        "residual_multiplier": 0.22,
        "logits_scaling": 6,
        "max_position_embeddings": 131072,
    },
    "lfm2-1.2b": {
        "model_type": "lfm2",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "layer_types": LFM2,
        "num_key_value_heads": 8,
        "intermediate_size": 8192,
        "block_auto_adjust_ff_dim": False,
    },
    "lfm2-8b-a1b": {"model_type": "lfm2_moe", "num_hidden_layers": 24, "layer_types": LFM2_MOE},
    "mamba-2-2.7b": {
        "model_type": "mamba2",
        "vocab_size": 50288,
        "hidden_size": 2560,
        "num_hidden_layers": 64,
        "num_heads": 80,
        "n_groups": 1,
        "tie_word_embeddings": True,
    },
    "mbart-large": {"model_type": "mbart", "vocab_size": 250027, "scale_embedding": True},
    "minimax-text-01": {
        "model_type": "minimax",
        "vocab_size": 200064,
        "hidden_size": 6144,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_local_experts": 32,
        "intermediate_size": 9216,
        "layer_types": MINIMAX,
        "rotary_dim": 64,
        "max_position_embeddings": 10240000,
    },
    "mt5-base": {
        "model_type": "mt5",
        "d_model": 768,
        "d_ff": 2048,
        "d_kv": 64,
        "num_layers": 12,
        "num_heads": 12,
        "tie_word_embeddings": False,
    },
    "nemotron-h-8b": {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
        "max_position_embeddings": 8192,
    },
    "nllb-200-3.3b": {
        "model_type": "m2m_100",
        "vocab_size": 256206,
        "d_model": 2048,
        "encoder_layers": 24,
        "decoder_layers": 24,
        "encoder_ffn_dim": 8192,
        "decoder_ffn_dim": 8192,
    },
    "opus-mt-en-de": {
        "model_type": "marian",
        "vocab_size": 58101,
        "d_model": 512,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 2048,
        "decoder_ffn_dim": 2048,
        "max_position_embeddings": 512,
        "scale_embedding": True,
        "activation_function": "swish",
    },
    "pegasus-large": {
        "model_type": "pegasus",
        "vocab_size": 96103,
        "encoder_layers": 16,
        "decoder_layers": 16,
        "scale_embedding": True,
        "activation_function": "relu",
    },
    "recurrentgemma-2b": {
        "model_type": "recurrent_gemma",
        "num_key_value_heads": 1,
        "lru_width": 2560,
        "intermediate_size": 15360,
    },
    "roberta-large": {
        "model_type": "roberta",
        "vocab_size": 50265,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
    },
    "whisper-large-v3-turbo": {
        "model_type": "whisper",
        "d_model": 1280,
        "encoder_layers": 32,
        "decoder_layers": 4,
        "encoder_attention_heads": 20,
        "decoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "decoder_ffn_dim": 5120,
        "num_mel_bins": 128,
        "vocab_size": 51866,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_equals_the_config_of_its_sizes(name: str) -> None:
    ours, theirs = read_preset(name), read_config(CONFIGS[name], name, name)
    assert structure(ours) == structure(theirs)
    assert ledger(ours) == ledger(theirs)
    assert said(ours) == said(theirs)
    images = ours.sight is not None
    for convention in ("matmul", "scalar"):
        one, other = (count(m, tokens=None if images else 300, convention=convention) for m in (ours, theirs))
        assert (one.parameters, one.flops, one.cache) == (other.parameters, other.flops, other.cache)
