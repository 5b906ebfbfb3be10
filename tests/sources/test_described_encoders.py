"""Descriptions of encoders, encoder-decoders and vision models: those of the same configs."""

from __future__ import annotations

from typing import Any

import pytest
from described import SIZES, same

BERT = {**SIZES, "num_hidden_layers": 3, "max_position_embeddings": 64}
HALVES = {
    "vocab_size": 500,
    "d_model": 48,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 100,
    "decoder_ffn_dim": 100,
}
POST = """
kind = "encoder"
vocab = 500
width = 48
norm = "layernorm"
positions = "learned"
residual = "post"
attention = { heads = 4, bias = true }
"""

# the same architecture as a config and as a description
PAIRS: dict[str, tuple[dict[str, Any], str]] = {
    "bert": (
        BERT,
        POST
        + """
        names = "bert"
        layers = 3
        context = 64
        tied = true
        embedding = { norm = true, tables = { type = 2 } }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        """,
    ),
    "bert, a classifier": (
        {**BERT, "architectures": ["BertForSequenceClassification"], "num_labels": 5},
        POST
        + """
        names = "bert"
        class = "sequence-classification"
        layers = 3
        context = 64
        embedding = { norm = true, tables = { type = 2 } }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = { labels = 5 }
        """,
    ),
    "bert, both heads": (
        {**BERT, "architectures": ["BertForPreTraining"]},
        POST
        + """
        names = "bert"
        class = "pretraining"
        layers = 3
        context = 64
        tied = true
        embedding = { norm = true, tables = { type = 2 } }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = { labels = 2 }
        head = {}
        """,
    ),
    "roberta, base": (
        {
            **SIZES,
            "architectures": ["RobertaModel"],
            "num_hidden_layers": 3,
            "max_position_embeddings": 66,
            "type_vocab_size": 1,
        },
        POST
        + """
        names = "roberta"
        class = "base"
        layers = 3
        context = 64
        embedding = { positions = 66, norm = true, tables = { type = 1 } }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = {}
        """,
    ),
    "albert": (
        {**SIZES, "embedding_size": 16, "num_hidden_layers": 5, "num_hidden_groups": 2, "max_position_embeddings": 64},
        POST
        + """
        names = "albert"
        layers = 5
        layer_groups = 2
        context = 64
        tied = true
        embedding = { narrow = 16, bias = true, norm = true, tables = { type = 2 } }
        mlp = { width = 100, gated = false, activation = "gelu_tanh", bias = true }
        head = { activation = "gelu_tanh" }
        """,
    ),
    "electra, discriminator": (
        {**BERT, "architectures": ["ElectraForPreTraining"], "embedding_size": 16},
        POST
        + """
        names = "electra"
        class = "pretraining"
        layers = 3
        context = 64
        embedding = { narrow = 16, bias = true, norm = true, tables = { type = 2 } }
        mlp = { width = 100, gated = false, activation = "gelu", bias = true }
        pooler = { labels = 1, activation = "gelu", over = "all" }
        """,
    ),
    "deberta-v2": (
        {
            **BERT,
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
        {**SIZES, "num_hidden_layers": 7, "local_attention": 16},
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
        {**HALVES, "decoder_ffn_dim": 90, "max_position_embeddings": 64},
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
        {**HALVES, "decoder_layers": 3, "max_position_embeddings": 64},
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
        {**HALVES, "num_mel_bins": 10, "max_source_positions": 60, "max_target_positions": 64},
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
}


@pytest.mark.parametrize("case", PAIRS)
def test_equals_the_config_of_the_same_architecture(case: str) -> None:
    same(case, *PAIRS[case])
