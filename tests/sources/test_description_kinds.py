"""Descriptions of encoders, encoder-decoders, hybrids, recurrent and vision models: those of the same configs."""

from __future__ import annotations

from typing import Any

import pytest
from described import described, figures, ledger, structure

from assay.sources.huggingface import read_config

# the same architecture as a config and as a description
PAIRS: dict[str, tuple[dict[str, Any], str]] = {
    "bert": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "max_position_embeddings": 64,
        },
        """
        kind = "encoder"
        names = "bert"
        vocab = 500
        width = 48
        layers = 3
        context = 64
        tied = true
        norm = "layernorm"
        positions = "learned"
        residual = "post"
        embedding = { norm = true, tables = { type = 2 } }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        """,
    ),
    "bert, a classifier": (
        {
            "model_type": "bert",
            "architectures": ["BertForSequenceClassification"],
            "num_labels": 5,
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "max_position_embeddings": 64,
        },
        """
        kind = "encoder"
        names = "bert"
        class = "sequence-classification"
        vocab = 500
        width = 48
        layers = 3
        context = 64
        norm = "layernorm"
        positions = "learned"
        residual = "post"
        embedding = { norm = true, tables = { type = 2 } }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = { labels = 5 }
        """,
    ),
    "bert, both heads": (
        {
            "model_type": "bert",
            "architectures": ["BertForPreTraining"],
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "max_position_embeddings": 64,
        },
        """
        kind = "encoder"
        names = "bert"
        class = "pretraining"
        vocab = 500
        width = 48
        layers = 3
        context = 64
        tied = true
        norm = "layernorm"
        positions = "learned"
        residual = "post"
        embedding = { norm = true, tables = { type = 2 } }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = { labels = 2 }
        head = {}
        """,
    ),
    "roberta, base": (
        {
            "model_type": "roberta",
            "architectures": ["RobertaModel"],
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "max_position_embeddings": 66,
            "type_vocab_size": 1,
        },
        """
        kind = "encoder"
        names = "roberta"
        class = "base"
        vocab = 500
        width = 48
        layers = 3
        context = 64
        norm = "layernorm"
        positions = "learned"
        residual = "post"
        embedding = { positions = 66, norm = true, tables = { type = 1 } }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = {}
        """,
    ),
    "albert": (
        {
            "vocab_size": 500,
            "embedding_size": 16,
            "hidden_size": 48,
            "num_hidden_layers": 5,
            "num_hidden_groups": 2,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "max_position_embeddings": 64,
        },
        """
        kind = "encoder"
        names = "albert"
        vocab = 500
        width = 48
        layers = 5
        layer_groups = 2
        context = 64
        tied = true
        norm = "layernorm"
        positions = "learned"
        residual = "post"
        embedding = { narrow = 16, bias = true, norm = true, tables = { type = 2 } }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu_tanh", bias = true }
        head = { activation = "gelu_tanh" }
        """,
    ),
    "electra, discriminator": (
        {
            "model_type": "electra",
            "architectures": ["ElectraForPreTraining"],
            "vocab_size": 500,
            "embedding_size": 16,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "max_position_embeddings": 64,
        },
        """
        kind = "encoder"
        names = "electra"
        class = "pretraining"
        vocab = 500
        width = 48
        layers = 3
        context = 64
        norm = "layernorm"
        positions = "learned"
        residual = "post"
        embedding = { narrow = 16, bias = true, norm = true, tables = { type = 2 } }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = { labels = 1, activation = "gelu", over = "all" }
        """,
    ),
    "deberta-v2": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "max_position_embeddings": 64,
            "relative_attention": True,
            "position_buckets": 20,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
        },
        """
        kind = "encoder"
        names = "deberta-v2"
        vocab = 500
        width = 48
        layers = 3
        context = 64
        tied = true
        norm = "layernorm"
        positions = "none"
        residual = "post"
        embedding = { norm = true, span = 20, span_norm = true, norm_late = true }
        disentangled = { heads = 4, bias = true, shared = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        """,
    ),
    "modernbert": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 7,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "local_attention": 16,
        },
        """
        kind = "encoder"
        names = "modernbert"
        vocab = 500
        width = 48
        layers = 7
        context = 8192
        tied = true
        norm = { kind = "layernorm", affine = "gain" }
        positions = { theta = 160000.0 }
        first = ["start"]
        pattern = ["near * 2", "far"]
        embedding = { norm = true }
        attention = { heads = 4 }
        mlp = { width = 100, activation = "gelu" }
        head = { dense_bias = false }
        [layer.start]
        residual = "pre-rest"
        [layer.near]
        positions = { theta = 10000.0 }
        attention = { reach = 8 }
        [layer.far]
        """,
    ),
    "t5": (
        {
            "vocab_size": 500,
            "d_model": 48,
            "d_kv": 20,
            "d_ff": 100,
            "num_layers": 3,
            "num_heads": 4,
            "relative_attention_num_buckets": 16,
        },
        """
        names = "t5"
        vocab = 500
        width = 48
        layers = 3
        tied = true
        positions = "none"
        attention = { heads = 4, head_width = 20, scale = 1.0, relative = 16 }
        mlp = { width = 100, gated = false, activation = "relu" }
        head = { scale = 0.14433756729740643 }
        [encoder]
        [decoder]
        """,
    ),
    "t5, version 1.1": (
        {
            "model_type": "t5",
            "vocab_size": 500,
            "d_model": 48,
            "d_kv": 20,
            "d_ff": 100,
            "num_layers": 3,
            "num_decoder_layers": 2,
            "num_heads": 4,
            "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
        },
        """
        kind = "encoder-decoder"
        vocab = 500
        width = 48
        layers = 3
        decoder = { layers = 2 }
        positions = "none"
        attention = { heads = 4, head_width = 20, scale = 1.0, relative = 32 }
        mlp = { width = 100, activation = "gelu_tanh" }
        [names]
        like = "t5"
        "encoder.Wu" = "encoder.block.{i}.layer.1.DenseReluDense.wi_1.weight"
        "decoder.Wu" = "decoder.block.{i}.layer.2.DenseReluDense.wi_1.weight"
        """,
    ),
    "bart": (
        {
            "vocab_size": 500,
            "d_model": 48,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 100,
            "decoder_ffn_dim": 90,
            "max_position_embeddings": 64,
        },
        """
        names = "bart"
        vocab = 500
        width = 48
        context = 64
        tied = true
        norm = "layernorm"
        positions = "learned"
        residual = "post"
        embedding = { positions = 66, norm = true }
        attention = { heads = 4, bias = true }
        mlp = { gated = false, activation = "gelu", bias = true }
        head = { bias = true }
        [encoder]
        layers = 3
        mlp = { width = 100 }
        [decoder]
        layers = 2
        mlp = { width = 90 }
        """,
    ),
    "mbart": (
        {
            "vocab_size": 500,
            "d_model": 48,
            "encoder_layers": 3,
            "decoder_layers": 3,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 100,
            "decoder_ffn_dim": 100,
            "max_position_embeddings": 64,
        },
        """
        kind = "encoder-decoder"
        names = "mbart"
        vocab = 500
        width = 48
        layers = 3
        context = 64
        tied = true
        norm = "layernorm"
        positions = "learned"
        embedding = { positions = 66, norm = true }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        head = { bias = true }
        """,
    ),
    "whisper": (
        {
            "vocab_size": 500,
            "d_model": 48,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 100,
            "decoder_ffn_dim": 100,
            "num_mel_bins": 10,
            "max_source_positions": 60,
            "max_target_positions": 64,
        },
        """
        names = "whisper"
        vocab = 500
        width = 48
        context = 64
        tied = true
        norm = "layernorm"
        positions = "learned"
        attention = { heads = 4, bias = "qvo" }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        [encoder]
        layers = 3
        frames = { channels = 10, positions = 60 }
        [decoder]
        layers = 2
        """,
    ),
    "vit": (
        {
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 100,
            "image_size": 32,
            "patch_size": 8,
        },
        """
        kind = "vision"
        names = "vit"
        width = 48
        layers = 3
        norm = "layernorm"
        patches = { image = 32, patch = 8, tokens = { cls = 1 } }
        attention = { heads = 4, bias = true }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = {}
        """,
    ),
    "dinov2": (
        {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "mlp_ratio": 2, "image_size": 28},
        """
        kind = "vision"
        names = "dinov2"
        width = 48
        layers = 3
        norm = "layernorm"
        gains = true
        patches = { image = 28, patch = 14, tokens = { cls = 1 }, spare = ["mask"] }
        attention = { heads = 4, bias = true }
        mlp = { width = 96, gated = false, activation = "gelu", bias = true }
        """,
    ),
    "jamba": (
        {
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 8,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 100,
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
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 100,
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
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 12,
            "intermediate_size": 100,
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
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "intermediate_size": 100,
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
            "vocab_size": 500,
            "hidden_size": 48,
            "hybrid_override_pattern": "M-M*ME",
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 12,
            "intermediate_size": 100,
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
            "vocab_size": 500,
            "hidden_size": 48,
            "num_hidden_layers": 2,
            "first_k_dense_replace": 2,
            "num_attention_heads": 4,
            "kv_lora_rank": 16,
            "q_lora_rank": 12,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 4,
            "v_head_dim": 8,
            "intermediate_size": 100,
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
    config, text = PAIRS[case]
    mine = described(text)
    theirs = read_config({"model_type": case.split(",")[0], **config}, "config.json", "theirs")
    assert structure(mine) == structure(theirs)
    assert ledger(mine) == ledger(theirs)
    assert figures(mine) == figures(theirs)
    for said in ("layers", "width", "positions", "settings", "sight", "cls"):
        assert getattr(mine, said) == getattr(theirs, said), said
    for said in ("source_tokens", "source_positions", "source_stride"):
        assert getattr(mine, said) == getattr(theirs, said), said
