"""Small configs of encoder-decoders, their halves unlike each other."""

from __future__ import annotations

from typing import Any

from assay.sources.huggingface import read_config
from assay.spec import Model


def bart(model_type: str = "bart", **keys: Any) -> dict[str, Any]:
    """A small config in BART's words, its halves unlike each other."""
    return {
        "model_type": model_type,
        "vocab_size": 97,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 40,
        "decoder_ffn_dim": 56,
        "max_position_embeddings": 24,
        "pad_token_id": 1,
        "decoder_start_token_id": 2,
    } | keys


def t5(model_type: str = "t5", **keys: Any) -> dict[str, Any]:
    """A small config in T5's words: heads of a width of their own."""
    return {
        "model_type": model_type,
        "vocab_size": 97,
        "d_model": 32,
        "d_kv": 6,
        "d_ff": 40,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "decoder_start_token_id": 0,
    } | keys


def whisper(**keys: Any) -> dict[str, Any]:
    """A small Whisper."""
    said = bart("whisper", num_mel_bins=10, max_source_positions=12, max_target_positions=16)
    del said["max_position_embeddings"]
    return said | keys


def long(model_type: str, **keys: Any) -> dict[str, Any]:
    """A small config in BART's words without one limit for both halves."""
    said = bart(model_type)
    del said["max_position_embeddings"]
    return said | keys


def t5gemma(source: int = 32, **keys: Any) -> dict[str, Any]:
    """A small T5Gemma, its encoder of another width where `source` says so."""
    half = {
        "vocab_size": 97,
        "intermediate_size": 40,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 6,
        "sliding_window": 4,
    }
    return {
        "model_type": "t5gemma",
        "encoder": {**half, "hidden_size": source, "num_hidden_layers": 3},
        "decoder": {**half, "hidden_size": 32, "num_hidden_layers": 2, "num_key_value_heads": 1},
    } | keys


def t5gemma2(**keys: Any) -> dict[str, Any]:
    """A small T5Gemma 2, which sees images of 4 x 4 patches as 2 x 2 tokens."""
    half = {**t5gemma()["decoder"], "query_pre_attn_scalar": 6, "layer_types": ["sliding_attention", "full_attention"]}
    return {
        "model_type": "t5gemma2",
        "encoder": {
            "mm_tokens_per_image": 4,
            "text_config": {**half, "intermediate_size": 56},
            "vision_config": {
                "hidden_size": 24,
                "intermediate_size": 20,
                "num_hidden_layers": 2,
                "num_attention_heads": 3,
                "image_size": 16,
                "patch_size": 4,
            },
        },
        "decoder": half,
    } | keys


def prophetnet(**keys: Any) -> dict[str, Any]:
    """A small ProphetNet."""
    return {
        "model_type": "prophetnet",
        "vocab_size": 97,
        "hidden_size": 32,
        "encoder_ffn_dim": 40,
        "decoder_ffn_dim": 56,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "num_encoder_attention_heads": 4,
        "num_decoder_attention_heads": 2,
        "max_position_embeddings": 24,
    } | keys


def seamless(model_type: str = "seamless_m4t", **keys: Any) -> dict[str, Any]:
    """A small SeamlessM4T; the parts that turn text or units into anything are as small as they may be."""
    return {
        "model_type": model_type,
        "vocab_size": 97,
        "hidden_size": 32,
        "decoder_layers": 2,
        "decoder_ffn_dim": 40,
        "decoder_attention_heads": 4,
        "speech_encoder_layers": 3,
        "speech_encoder_attention_heads": 2,
        "speech_encoder_intermediate_size": 48,
        "feature_projection_input_dim": 10,
        "conv_depthwise_kernel_size": 5,
        "adaptor_kernel_size": 4,
        "adaptor_stride": 4,
        "encoder_layers": 1,
        "t2u_encoder_layers": 1,
        "t2u_decoder_layers": 1,
    } | keys


def paired(encoder: str, decoder: str, **keys: Any) -> dict[str, Any]:
    """Two of BERT's kin."""
    sizes = {"vocab_size": 97, "hidden_size": 32, "num_attention_heads": 4, "max_position_embeddings": 24}
    shape = {"num_hidden_layers": 2, "intermediate_size": 40}
    return {
        "model_type": "encoder-decoder",
        "encoder": {"model_type": encoder, **sizes, **shape},
        "decoder": {"model_type": decoder, **sizes, **shape, "is_decoder": True, "add_cross_attention": True, **keys},
    }


def named(config: dict[str, Any]) -> str:
    """A config in a test's name."""
    usual = bart() if "encoder_ffn_dim" in config else t5()
    said = {k: v for k, v in config.items() if usual.get(k) != v or k == "model_type"}
    return "-".join(
        v["model_type"] if isinstance(v, dict) and "model_type" in v else str(v)[:12] for v in said.values()
    )


def model(config: dict[str, Any], cls: str | None = None) -> Model:
    """A config as a model."""
    return read_config(config, "config", "m", cls=cls)
