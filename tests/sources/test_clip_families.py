"""CLIP and SigLIP, whole and by halves, against the public implementation, tensor by tensor."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, flops_of, needs_library, runnable
from towers import SEEN, SMALL

from assay.errors import SourceError
from assay.readings.count import count
from assay.readings.training import training
from assay.sources.huggingface import read_config

READ = {**SMALL, "hidden_size": 24, "vocab_size": 50, "max_position_embeddings": 9}
PAIRS: dict[str, dict[str, Any]] = {
    "clip": {"model_type": "clip"},
    "clip, small": {"model_type": "clip", "projection_dim": 20, "text_config": READ, "vision_config": SEEN},
    "clip, old": {"model_type": "clip", "text_config_dict": READ, "vision_config_dict": SEEN, "text_config": None},
    "siglip": {"model_type": "siglip"},
    "siglip, small": {
        "model_type": "siglip",
        "text_config": {**READ, "projection_size": 32},
        "vision_config": {**SEEN, "vision_use_head": False},
    },
    "siglip2": {"model_type": "siglip2"},
    "siglip2, small": {
        "model_type": "siglip2",
        "text_config": {**READ, "projection_size": 32},
        "vision_config": {**SMALL, "num_patches": 36, "patch_size": 4},
    },
}
HALVES: dict[str, tuple[dict[str, Any], str, int]] = {  # the class, and tokens where its FLOPs are counted
    "clip_text_model": ({"model_type": "clip_text_model"}, "CLIPTextModel", 0),
    "clip_text_model, small": ({"model_type": "clip_text_model", **READ}, "AutoModel", 9),
    "clip_text_model, projected": (
        {"model_type": "clip_text_model", **READ, "projection_dim": 20}
        | {"architectures": ["CLIPTextModelWithProjection"]},
        "CLIPTextModelWithProjection",
        0,
    ),
    "siglip_text_model": ({"model_type": "siglip_text_model"}, "SiglipTextModel", 0),
    "siglip_text_model, small": (
        {"model_type": "siglip_text_model", **READ, "projection_size": 20},
        "SiglipTextModel",
        0,
    ),
    "siglip2_text_model": ({"model_type": "siglip2_text_model"}, "Siglip2TextModel", 0),
    "siglip2_text_model, small": ({"model_type": "siglip2_text_model", **READ}, "Siglip2TextModel", 0),
    "siglip_vision_model": ({"model_type": "siglip_vision_model"}, "AutoModel", 0),
    "siglip_vision_model, small": ({"model_type": "siglip_vision_model", **SEEN}, "AutoModel", 0),
    "siglip2_vision_model": ({"model_type": "siglip2_vision_model"}, "AutoModel", 0),
    "siglip2_vision_model, small": (
        {"model_type": "siglip2_vision_model", **SMALL, "patch_size": 4, "num_patches": 36, "vision_use_head": False},
        "AutoModel",
        0,
    ),
}


@needs_library
@pytest.mark.parametrize("case", HALVES)
def test_halves_by_themselves(case: str) -> None:
    check_against_library(HALVES[case][0], HALVES[case][2], auto=HALVES[case][1])


@needs_library
def test_flops_of_text_alone() -> None:
    import torch

    config, cls, _ = HALVES["siglip_text_model, small"]
    theirs = flops_of(runnable(config, cls), input_ids=torch.zeros((1, 9), dtype=torch.long))
    assert count(read_config(config, "config", "model"), tokens=9).flops.total == theirs


@needs_library
def test_training_reaches_both_halves() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    config = PAIRS["clip, small"]
    ours = training(read_config(config, "config", "model"), batch=2, tokens=9)
    model = runnable(config, "AutoModel").requires_grad_()
    with FlopCounterMode(display=False) as forward:
        told = model(input_ids=torch.zeros((2, 9), dtype=torch.long), pixel_values=torch.zeros(2, 3, *side(model)))
    with FlopCounterMode(display=False) as backward:
        told.logits_per_text.sum().backward()
    assert (ours.forward, ours.backward) == (forward.get_total_flops(), backward.get_total_flops())


def side(model: Any) -> tuple[int, int]:
    """Pixels of an image."""
    return (model.config.vision_config.image_size,) * 2


def test_images_of_any_shape_are_filled_up() -> None:
    """SigLIP 2: 36 positions, 48 numbers of a patch, three layers of 32; a resized table is no work."""
    ours = count(read_config(HALVES["siglip2_vision_model, small"][0], "config", "model"))
    layer = 4 * 36 * 32 * 32 + 2 * 36 * 36 * 32 + 2 * 36 * 32 * 40
    assert (ours.setting.tokens, ours.flops.total) == (36, 2 * (36 * 48 * 32 + 3 * layer))


@needs_library
@pytest.mark.parametrize("case", PAIRS)
def test_pairs_of_text_and_image(case: str) -> None:
    check_against_library(PAIRS[case], auto="AutoModel")


@needs_library
@pytest.mark.parametrize("case", ["clip, small", "clip, old"])
def test_flops_of_a_text_and_an_image(case: str) -> None:
    import torch

    config = PAIRS[case]
    ids, pixels = torch.zeros((1, 9), dtype=torch.long), torch.zeros((1, 3, 24, 24))
    ours = count(read_config(config, "config", "model"))
    assert ours.flops.total == flops_of(runnable(config, "AutoModel"), input_ids=ids, pixel_values=pixels)
    assert (ours.setting.tokens, ours.setting.images) == (9, 1)


def test_a_probe_that_sees_an_image() -> None:
    """SigLIP's head: 4 patches, keys and values 2 x 4 x 32 x 32; a query, an output, scores and values of one token."""
    config = {**PAIRS["siglip, small"], "vision_config": {**SEEN, "image_size": 20}}
    model = read_config(config, "config", "model")
    (row,) = (row for row in count(model).rows if row.name == "vision head")
    assert row.flops.total == 2 * (2 * 4 * 32 * 32 + 2 * 32 * 32 + 2 * 4 * 32 + 2 * 32 * 40)
    assert row.flops.by_part == {"tower": row.flops.total}
    assert count(model, images=0).flops.by_part["tower"] == 0


def test_keys_within_towers_are_named_whole() -> None:
    bad = {"model_type": "clip", "vision_config": {"hidden_size": 30}}
    with pytest.raises(SourceError, match=r"config: vision_config\.hidden_size is 30; it must be a multiple of vision"):
        read_config(bad, "config", "model")
    odd = {"model_type": "siglip", "text_config": {"hidden_size": 96}}
    with pytest.raises(SourceError, match=r"text_config\.projection_size is missing; it must be vision_config\."):
        read_config(odd, "config", "model")
    new = {"model_type": "siglip", "vision_config": {"use_rope": True}}
    with pytest.raises(SourceError, match=r"config: vision_config\.use_rope is true: not known for siglip"):
        read_config(new, "config", "model")
