"""Idefics: gated layers between those of a text model, against the public implementation and by hand."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, flops_of, needs_library, runnable

from assay.errors import SourceError
from assay.readings.count import count
from assay.sources.huggingface import read_config

SEEN = "AutoModelForImageTextToText"
PLAIN: dict[str, Any] = {
    "model_type": "idefics",
    "vocab_size": 90,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 50,
    "vision_config": {"embed_dim": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4}
    | {"image_size": 24, "patch_size": 8},
}
RESAMPLED = {
    **PLAIN,
    "cross_layer_interval": 2,
    "additional_vocab_size": 5,
    "qk_layer_norms": True,
    "alpha_type": "vector",
    "use_resampler": True,
    "perceiver_config": {"resampler_n_latents": 5, "resampler_depth": 2, "resampler_n_heads": 3}
    | {"resampler_head_dim": 7, "qk_layer_norms_perceiver": True},
}
FLAMINGO = {
    "idefics": {"model_type": "idefics"},
    "idefics, small": PLAIN,
    "idefics, resampled": RESAMPLED,
    "idefics, tied": {**RESAMPLED, "tie_word_embeddings": True, "alpha_type": "float", "qk_layer_norms": False},
}


@needs_library
@pytest.mark.parametrize("case", FLAMINGO)
def test_layers_that_look_at_images(case: str) -> None:
    check_against_library(FLAMINGO[case], auto=SEEN)
    check_against_library({**FLAMINGO[case], "architectures": ["IdeficsModel"]}, auto="AutoModel")


@needs_library
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("case", [case for case in FLAMINGO if "," in case])
def test_flops_with_images(case: str, images: int) -> None:
    import torch

    seen = {
        "input_ids": torch.zeros((1, 7), dtype=torch.long),
        "pixel_values": torch.zeros((1, images, 3, 24, 24)),
        "image_attention_mask": torch.ones((1, 7, images), dtype=torch.long),
    }
    theirs = flops_of(runnable(FLAMINGO[case], SEEN), use_cache=False, **seen)
    ours = read_config(FLAMINGO[case], "config", "model")
    assert count(ours, tokens=7, images=images).flops.total == theirs


def test_text_alone_passes_the_gated_layers() -> None:
    """Four layers of four matrices of attention and three of an MLP; four gated ones, of whose attention queries and
    outputs are left, and the head.
    """
    n, d, f = 7, 32, 48
    own = 4 * d * d + 3 * d * f
    gated = 2 * d * d + 3 * d * f
    alone = count(read_config(PLAIN, "config", "model"), tokens=n)
    assert alone.flops.total == 2 * n * (4 * own + 4 * gated + d * 90) + 4 * 4 * n * n * d
    assert alone.cache.fixed_bytes == 0


@pytest.mark.parametrize(("case", "layers", "positions"), [("idefics, small", 4, 10), ("idefics, resampled", 2, 5)])
def test_keys_of_images_are_made_once(case: str, layers: int, positions: int) -> None:
    """Keys and values 32 wide, of 3 x 3 patches and a token of their own or of 5 vectors, of each of three images.

    The library makes them anew at each step.
    """
    model = read_config(FLAMINGO[case], "config", "model")
    seen, bare = count(model, tokens=7, images=3), count(model, tokens=7)
    assert seen.cache.fixed_bytes == layers * 2 * 32 * 3 * positions * 2
    assert seen.cache.bytes == bare.cache.bytes + seen.cache.fixed_bytes
    assert bare.cache.bytes == 4 * 2 * 32 * 7 * 2
    step, blind = count(model, tokens=1, past=7, images=3), count(model, tokens=1, past=7)
    assert step.flops.by_part["tower"] == 0
    assert step.flops.total - blind.flops.total == layers * 2 * 2 * 32 * 3 * positions


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        # sizes of Llama 7B and 65B (Touvron et al. 2023, table 2), a gated layer before every fourth of theirs, CLIP's
        # ViT-H/14, six layers of the perceiver (Laurençon et al. 2023): 9 and 80 billion
        ("9b", {}, 9),
        (
            "80b",
            {"hidden_size": 8192, "intermediate_size": 22016, "num_hidden_layers": 80} | {"num_attention_heads": 64},
            80,
        ),
    ],
)
def test_published_sizes(name: str, changed: dict[str, Any], said: int) -> None:
    config = {
        "model_type": "idefics",
        "additional_vocab_size": 2,
        "cross_layer_interval": 4,
        "qk_layer_norms": True,
        "use_resampler": True,
        "perceiver_config": {"qk_layer_norms_perceiver": True},
        "vision_config": {"embed_dim": 1280},
        **changed,
    }
    assert round(count(read_config(config, "config", name)).parameters.total / 1e9) == said


def test_layers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SourceError, match=r"num_hidden_layers is 4; it must be a multiple of cross_layer_interval, 3"):
        read_config({**PLAIN, "cross_layer_interval": 3}, "config", "model")
    with pytest.raises(SourceError, match=r"alpha_type is 'matrix'; it must be one of float, vector"):
        read_config({**PLAIN, "alpha_type": "matrix"}, "config", "model")
