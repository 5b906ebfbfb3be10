"""Encoder-decoders against the public implementation: every tensor, every FLOP, the settings of a source."""

from __future__ import annotations

from typing import Any

import pytest
from library import built, check_against_library, has_library

from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.readings.generate import generate
from assay.sources.huggingface import read_config
from assay.spec import Model

needs_library = pytest.mark.skipif(not has_library(), reason="needs torch and transformers")

SEQ2SEQ = "AutoModelForSeq2SeqLM"


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


SMALL = [
    bart(),
    bart(encoder_layers=1, scale_embedding=True, activation_function="relu"),
    bart(tie_word_embeddings=False),
    bart("mbart", scale_embedding=True),
    bart("mbart", tie_word_embeddings=False),
    bart("plbart"),
    bart("mvp"),
    bart("pegasus"),
    bart("marian"),
    bart("marian", share_encoder_decoder_embeddings=False, decoder_vocab_size=61),
    bart("marian", share_encoder_decoder_embeddings=False, tie_word_embeddings=False),
    bart("marian", tie_word_embeddings=False),
    bart("blenderbot"),
    bart("blenderbot-small"),
    bart("m2m_100"),
    bart("m2m_100", tie_word_embeddings=False, activation_function="gelu"),
    t5(),
    t5(feed_forward_proj="gated-gelu"),
    t5(feed_forward_proj="gated-silu", num_decoder_layers=1),
    t5("mt5"),
    t5("mt5", feed_forward_proj="relu"),
    t5("umt5"),
    bart("fsmt", src_vocab_size=61, vocab_size=67),
    bart("fsmt", src_vocab_size=67, vocab_size=67, tie_word_embeddings=True, pad_token_id=3),
    t5("switch_transformers", num_experts=3, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    t5("switch_transformers", num_experts=2, num_sparse_encoder_layers=0, num_sparse_decoder_layers=3),
    t5(
        "switch_transformers",
        num_sparse_encoder_layers=2,
        num_sparse_decoder_layers=1,
        router_bias=True,
        tie_word_embeddings=False,
    ),
]
# the library runs other experts than the architecture's, or pads blocks: no witness for FLOPs
TENSORS_ONLY = [
    long("led", attention_window=4, max_encoder_position_embeddings=24, max_decoder_position_embeddings=16),
    long("led", attention_window=[4, 8], tie_word_embeddings=False),
    long("pegasus_x", block_size=4, num_global_tokens=3),
    long("pegasus_x", block_size=5, stagger_local_blocks=False, tie_word_embeddings=False),
    long("bigbird_pegasus", block_size=2, num_random_blocks=1, max_position_embeddings=24),
    long("bigbird_pegasus", use_bias=True, tie_word_embeddings=False, attention_type="original_full"),
    t5("longt5", local_radius=3),
    t5("longt5", local_radius=3, encoder_attention_type="transient-global", global_block_size=2),
    t5("longt5", feed_forward_proj="gated-gelu", encoder_attention_type="transient-global"),
    bart("nllb-moe", num_experts=3, encoder_sparse_step=2, decoder_sparse_step=3),
    bart("nllb-moe", num_experts=2, encoder_sparse_step=1, decoder_sparse_step=0, router_bias=True),
    bart("nllb-moe", num_experts=2, encoder_sparse_step=1, decoder_sparse_step=1, tie_word_embeddings=False),
]


def named(config: dict[str, Any]) -> str:
    """A config in a test's name."""
    usual = bart() if "encoder_ffn_dim" in config else t5()
    return "-".join(str(v) for k, v in config.items() if usual.get(k) != v or k == "model_type")


@needs_library
@pytest.mark.parametrize("config", SMALL, ids=named)
def test_small_models_are_the_librarys(config: dict[str, Any]) -> None:
    check_against_library(config, tokens=7, auto=SEQ2SEQ)
    check_against_library(config, tokens=7, source=11, auto=SEQ2SEQ)


@needs_library
@pytest.mark.parametrize("config", TENSORS_ONLY, ids=named)
def test_small_models_hold_the_librarys_tensors(config: dict[str, Any]) -> None:
    check_against_library(config, auto=SEQ2SEQ)
