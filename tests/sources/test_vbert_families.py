"""Encoders of text that see images: ModernVBERT, UltraVBERT, NeoMME, against the public implementation."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, needs_library
from towers import SMALL

from assay.errors import SourceError
from assay.readings.count import count
from assay.sources.huggingface import read_config

WORDS = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 40, "vocab_size": 99}
SIGLIP = {**SMALL, "model_type": "siglip_vision_model", "image_size": 32, "patch_size": 4}
NEOMME: dict[str, Any] = {**WORDS, "model_type": "neomme", "embedding_rank": 12, "num_key_value_heads": 1}
NEOMME |= {"head_dim": 16, "patch_size": 4, "num_hidden_layers": 7, "sliding_window": 3}
# encoders of text beside one of images
ENCODED: dict[str, dict[str, Any]] = {
    "modernvbert": {"model_type": "modernvbert"},
    "modernvbert, small": {
        "model_type": "modernvbert",
        "text_config": {**WORDS, "model_type": "modernbert", "pad_token_id": 0},
        "vision_config": SIGLIP,
        "pixel_shuffle_factor": 2,
    },
    "modernvbert, tied": {
        "model_type": "modernvbert",
        "text_config": {**WORDS, "model_type": "modernbert", "pad_token_id": 0, "norm_bias": True},
        "vision_config": {**SIGLIP, "vision_use_head": False},
        "tie_word_embeddings": True,
    },
    "neomme": {"model_type": "neomme"},
    "neomme, small": {**NEOMME, "attention_bias": True},
    "neomme, untied": {
        **NEOMME,
        "tie_word_embeddings": False,
        "mlp_bias": True,
        "num_hidden_layers": 3,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        "per_layer_config": {"1": {"sliding_window": 4}},
    },
    "ultravbert": {"model_type": "ultravbert"},
    "ultravbert, small": {
        "model_type": "ultravbert",
        "text_config": {**WORDS, "model_type": "ultrabert", "prediction_head_size": 20, "pad_token_id": 0},
        "vision_config": SIGLIP,
        "pixel_shuffle_factor": 2,
    },
}


@needs_library
@pytest.mark.parametrize("case", ENCODED)
def test_encoders_that_see_images(case: str) -> None:
    check_against_library(ENCODED[case], 11 if "," in case else 0, auto="AutoModelForMaskedLM")


@needs_library
@pytest.mark.parametrize("end", ["Model", "ForSequenceClassification", "ForTokenClassification"])
@pytest.mark.parametrize("stem", ["ModernVBert", "UltraVBert"])
def test_classes_of_encoders_that_see_images(stem: str, end: str) -> None:
    labels = {"id2label": {"0": "a", "1": "b", "2": "c"}, "classifier_pooling": "mean"}
    config = {**ENCODED[f"{stem.lower()}, small"], **labels, "architectures": [stem + end]}
    check_against_library(config, auto=stem + end)


def test_an_image_before_an_encoder_by_hand() -> None:
    """64 patches of 3 x 4 x 4 pixels; three layers of four 8-wide heads; the probe; 2 x 2 patches as one vector."""
    seen = count(read_config(ENCODED["ultravbert, small"], "config", "model"), tokens=20, images=1)
    layer = 4 * 64 * 32 * 32 + 2 * 64 * 64 * 32 + 2 * 64 * 32 * 40
    probe = 2 * 64 * 32 * 32 + 2 * 32 * 32 + 2 * 64 * 32 + 2 * 32 * 40
    assert seen.flops.by_part["tower"] == 2 * (64 * 48 * 32 + 3 * layer + probe + 16 * 4 * 32 * 32)


@needs_library
def test_an_encoder_of_words_and_patches_without_its_head() -> None:
    check_against_library({**ENCODED["neomme, small"], "architectures": ["NeoMMEModel"]}, auto="AutoModel")


def test_windows_of_words_and_patches_by_hand() -> None:
    """Two heads of 16; five sliding layers see 3, 1,024, 3, 1,024, 3 to either side, the sixth and the last all."""
    model = read_config(ENCODED["neomme, small"], "config", "model")
    seen = count(model, tokens=20, convention="causal").flops.attention_scores
    near = 20 * 7 - 2 * (1 + 2 + 3)
    assert seen == 4 * 2 * 16 * (3 * near + 4 * 20 * 20)
    stem = count(model, tokens=20, images=1, image_tokens=5).flops.by_part["tower"]
    assert stem == 2 * 5 * (48 * 64 + 64 * 32)
    for listed in ({"9": {"sliding_window": 4}}, {"1": {"window": 4}}, {"1": 4}):
        with pytest.raises(SourceError, match=r"config: per_layer_config is .*; it must be an object with a sliding_w"):
            read_config({**NEOMME, "per_layer_config": listed}, "config", "model")
