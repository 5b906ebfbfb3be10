"""Vision transformers against the public implementation, tensor by tensor."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, flops_of, needs_library, runnable
from towers import SMALL

from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.sources.huggingface import read_config

BEIT = {"model_type": "beit", **SMALL, "image_size": 32, "patch_size": 8}
VISION: dict[str, tuple[dict[str, Any], str]] = {
    "vit": ({"model_type": "vit"}, "AutoModel"),
    "vit, small": ({"model_type": "vit", **SMALL, "qkv_bias": False, "pooler_output_size": 12}, "AutoModel"),
    "vit, sides": ({"model_type": "vit", **SMALL, "image_size": [32, 48], "patch_size": [8, 16]}, "AutoModel"),
    "vit, labels": (
        {"model_type": "vit", **SMALL, "architectures": ["ViTForImageClassification"], "num_labels": 7},
        "AutoModelForImageClassification",
    ),
    "deit": ({"model_type": "deit"}, "AutoModel"),
    "deit, small": ({"model_type": "deit", **SMALL, "num_channels": 1, "image_size": 30, "patch_size": 4}, "AutoModel"),
    "dinov2": ({"model_type": "dinov2"}, "AutoModel"),
    "dinov2, gated": (
        {"model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"use_swiglu_ffn": True, "use_mask_token": False, "mlp_ratio": 3},
        "AutoModel",
    ),
    "dinov2, labels": (
        {"model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"architectures": ["Dinov2ForImageClassification"], "num_labels": 5},
        "AutoModelForImageClassification",
    ),
    "clip_vision_model": ({"model_type": "clip_vision_model"}, "AutoModel"),
    "clip_vision_model, small": (
        {"model_type": "clip_vision_model", **SMALL, "image_size": 24, "patch_size": 8},
        "AutoModel",
    ),
    "clip_vision_model, projected": (
        {"model_type": "clip_vision_model", **SMALL, "image_size": 24, "patch_size": 8, "projection_dim": 20}
        | {"architectures": ["CLIPVisionModelWithProjection"]},
        "CLIPVisionModelWithProjection",
    ),
    "siglip_vision_model, small": (
        {"model_type": "siglip_vision_model", **SMALL, "image_size": 24, "patch_size": 8, "vision_use_head": False},
        "AutoModel",
    ),
    "pixtral": ({"model_type": "pixtral"}, "AutoModel"),
    "pixtral, small": ({"model_type": "pixtral", **SMALL, "image_size": 36, "patch_size": 8}, "AutoModel"),
    "vit_msn": ({"model_type": "vit_msn"}, "AutoModel"),
    "vit_msn, small": ({"model_type": "vit_msn", **SMALL, "qkv_bias": False}, "AutoModel"),
    "vit_msn, labels": (
        {"model_type": "vit_msn", **SMALL, "architectures": ["ViTMSNForImageClassification"], "num_labels": 7},
        "AutoModelForImageClassification",
    ),
    "deit, labels": (
        {"model_type": "deit", **SMALL, "architectures": ["DeiTForImageClassification"], "num_labels": 7},
        "AutoModelForImageClassification",
    ),
    "deit, taught": (
        {"model_type": "deit", **SMALL, "architectures": ["DeiTForImageClassificationWithTeacher"], "num_labels": 7},
        "DeiTForImageClassificationWithTeacher",
    ),
    "dinov2_with_registers": ({"model_type": "dinov2_with_registers"}, "AutoModel"),
    "dinov2_with_registers, gated": (
        {"model_type": "dinov2_with_registers", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"use_swiglu_ffn": True, "num_register_tokens": 3},
        "AutoModel",
    ),
    "dinov2_with_registers, labels": (
        {"model_type": "dinov2_with_registers", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"architectures": ["Dinov2WithRegistersForImageClassification"], "num_labels": 5},
        "AutoModelForImageClassification",
    ),
    "dinov3_vit": ({"model_type": "dinov3_vit"}, "AutoModel"),
    "dinov3_vit, gated": (
        {"model_type": "dinov3_vit", **SMALL, "use_gated_mlp": True, "num_register_tokens": 4, "key_bias": True},
        "AutoModel",
    ),
    "dinov3_vit, bare": (
        {"model_type": "dinov3_vit", **SMALL, "mlp_bias": False, "query_bias": False, "proj_bias": False},
        "AutoModel",
    ),
    "beit": ({"model_type": "beit"}, "AutoModel"),
    "beit, small": ({**BEIT, "use_relative_position_bias": True, "use_mask_token": True}, "AutoModel"),
    "beit, first": (
        {**BEIT, "layer_scale_init_value": 0.0, "use_mean_pooling": False, "use_absolute_position_embeddings": True}
        | {"use_shared_relative_position_bias": True},
        "AutoModel",
    ),
    "beit, labels": (
        {**BEIT, "use_shared_relative_position_bias": True, "num_labels": 5}
        | {"architectures": ["BeitForImageClassification"]},
        "AutoModelForImageClassification",
    ),
}


@needs_library
@pytest.mark.parametrize("case", VISION)
def test_vision_transformers(case: str) -> None:
    check_against_library(VISION[case][0], auto=VISION[case][1])


@needs_library
@pytest.mark.parametrize("case", [case for case in VISION if "," in case])
def test_flops_of_an_image(case: str) -> None:
    import torch

    config, auto = VISION[case]
    height, width = config.get("image_size", 224), config.get("image_size", 224)
    if isinstance(height, list):
        height, width = height
    pixels = torch.zeros((1, config.get("num_channels", 3), height, width))
    architecture = config.get("architectures", [auto])[0]
    theirs = flops_of(runnable(config, architecture), pixel_values=pixels)
    assert count(read_config(config, "config", "model")).flops.total == theirs


def test_an_image_is_the_setting_of_a_vision_model() -> None:
    """197 positions an image: 14 x 14 patches and a token; tokens asked for say nothing."""
    model = read_config({"model_type": "vit"}, "config", "model")
    one, four = count(model), count(model, images=4, tokens=5)
    assert (one.setting.tokens, one.setting.images) == (197, 1)
    assert (four.setting.tokens, four.flops.total) == (4 * 197, 4 * one.flops.total)
    assert count(model, batch=4).flops.total == four.flops.total
    assert one.cache.bytes == 0
    with pytest.raises(SettingError, match=r"image tokens is 3; model has a tower whose images are all of one size"):
        count(model, image_tokens=3)
    with pytest.raises(SettingError, match=r"past is 1; model keeps nothing between passes"):
        count(model, past=1)


def test_sides_of_images_are_checked() -> None:
    with pytest.raises(SourceError, match=r"config: patch_size is 300; it must be no larger than image_size"):
        read_config({"model_type": "vit", "patch_size": 300}, "config", "model")
    with pytest.raises(SourceError, match=r"config: image_size has 3 items; it must be a list of 2 items"):
        read_config({"model_type": "vit", "image_size": [3, 224, 224]}, "config", "model")


def test_biases_of_distances_are_of_one_sort() -> None:
    both = {**BEIT, "use_relative_position_bias": True, "use_shared_relative_position_bias": True}
    with pytest.raises(SourceError, match=r"use_shared_relative_position_bias is true; it must be false where every"):
        read_config(both, "config", "model")
