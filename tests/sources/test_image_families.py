"""Decoders that look at images in layers of their own (Llama 3.2) or read them as tokens (Fuyu, GIT)."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, flops_of, needs_library, runnable
from towers import SEEN, SEES, SMALL, TEXT

from assay.readings.count import count
from assay.sources.huggingface import read_config

TILES = {
    "model_type": "mllama",
    "text_config": {**TEXT, "num_hidden_layers": 4, "cross_attention_layers": [1, 3], "pad_token_id": 0},
    "vision_config": {"hidden_size": 32, "num_hidden_layers": 3, "num_global_layers": 2, "attention_heads": 4}
    | {"intermediate_size": 40, "image_size": 20, "patch_size": 5, "max_num_tiles": 2, "vision_output_dim": 96}
    | {"intermediate_layers_indices": [0, 2], "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]]},
}
WHOLE = {**TILES, "architectures": ["MllamaForConditionalGeneration"]}


@needs_library
def test_layers_that_look_at_images() -> None:
    check_against_library(WHOLE, auto=SEES)
    check_against_library(TILES, auto="AutoModelForCausalLM")


@needs_library
def test_flops_of_layers_that_look_at_images() -> None:
    """One image of two tiles: 2 x 17 positions, which the library fills up to 2 x 24, before 7 tokens of text."""
    import torch

    seen = {
        "input_ids": torch.zeros((1, 7), dtype=torch.long),
        "pixel_values": torch.zeros((1, 1, 2, 3, 20, 20)),
        "aspect_ratio_ids": torch.ones((1, 1), dtype=torch.long),
        "aspect_ratio_mask": torch.ones((1, 1, 2), dtype=torch.long),
        "cross_attention_mask": torch.ones((1, 7, 1, 2), dtype=torch.long),
    }
    theirs = flops_of(runnable(TILES, SEES), use_cache=False, **seen)
    ours = read_config(WHOLE, "config", "model")
    mask = 2 * 48 * 48  # which the library makes as a product of columns
    assert count(ours, tokens=7, images=1).flops.total + mask == theirs


def test_cached_images() -> None:
    """Two layers keep keys and values of 2 heads of 8 for each of 2 x 17 positions, whatever the text's length."""
    model = read_config(WHOLE, "config", "model")
    bare, seen = count(model, tokens=7), count(model, tokens=7, images=3)
    assert (bare.cache.fixed_bytes, bare.flops.by_part["tower"]) == (0, 0)
    assert seen.cache.fixed_bytes == 2 * 2 * 2 * 8 * (3 * 34) * 2
    assert seen.cache.bytes == bare.cache.bytes + seen.cache.fixed_bytes
    step, blind = count(model, tokens=1, past=7, images=3), count(model, tokens=1, past=7)
    # a step does not see the images again, and attends to them: a query, an output, scores, values, an MLP
    looks = 2 * (2 * 32 * 32 + 2 * 4 * 8 * 3 * 34 + 3 * 32 * 48)
    assert step.flops.total - blind.flops.total == 2 * looks
    assert step.flops.by_part["tower"] == 0


EARLY: dict[str, dict[str, Any]] = {
    "fuyu": {"model_type": "fuyu"},
    "fuyu, small": {
        "model_type": "fuyu",
        "text_config": {"model_type": "persimmon", "hidden_size": 32, "intermediate_size": 48, "vocab_size": 90}
        | {"num_hidden_layers": 2, "num_attention_heads": 4},
        "patch_size": 6,
    },
    "git": {"model_type": "git"},
    "git, small": {
        "model_type": "git",
        **SMALL,
        "vocab_size": 110,
        "max_position_embeddings": 40,
        "vision_config": {**SEEN, "patch_size": 4},
    },
}


@needs_library
@pytest.mark.parametrize("case", EARLY)
def test_early_models_of_images(case: str) -> None:
    check_against_library(EARLY[case], tokens=7 if "small" in case else 0)


@needs_library
def test_flops_of_an_image_before_a_small_decoder() -> None:
    """GIT: 37 positions of an image before 7 tokens, of which it makes logits as well."""
    import torch

    pixels, ids = torch.zeros((1, 3, 24, 24)), torch.zeros((1, 7), dtype=torch.long)
    theirs = flops_of(runnable(EARLY["git, small"], "GitForCausalLM"), pixel_values=pixels, input_ids=ids)
    ours = count(read_config(EARLY["git, small"], "config", "model"), tokens=37 + 7, images=1)
    assert ours.flops.total == theirs
