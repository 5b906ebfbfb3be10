"""Vision transformers and models with towers against the public implementation, tensor by tensor."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, flops_of, needs_library, runnable

from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}


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


SEEN = {**SMALL, "image_size": 24, "patch_size": 8}
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


TEXT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT |= {"num_key_value_heads": 2, "vocab_size": 90}
QWEN: dict[str, Any] = {"depth": 3, "hidden_size": 32, "num_heads": 4, "out_hidden_size": 32, "intermediate_size": 40}
QWEN |= {"patch_size": 4, "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 2]}
LLAMA = {**TEXT, "model_type": "llama"}
EYE = {**SMALL, "model_type": "clip_vision_model", "image_size": 24, "patch_size": 8}
GENERATES = "AutoModelForImageTextToText"
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
DELTA = {"linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
TOWERS: dict[str, dict[str, Any]] = {
    "qwen2_vl": {"model_type": "qwen2_vl"},
    "qwen2_vl, small": {
        "model_type": "qwen2_vl",
        "text_config": {**TEXT, "tie_word_embeddings": True},
        "vision_config": {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 3},
    },
    "qwen2_5_vl": {"model_type": "qwen2_5_vl"},
    "qwen2_5_vl, small": {
        "model_type": "qwen2_5_vl",
        "text_config": TEXT,
        "vision_config": {
            "depth": 3,
            "hidden_size": 32,
            "num_heads": 4,
            "out_hidden_size": 32,
            "intermediate_size": 40,
            "fullatt_block_indexes": [1],
            "patch_size": 4,
            "window_size": 16,
        },
    },
    "qwen3_vl": {"model_type": "qwen3_vl"},
    "qwen3_vl, small": {
        "model_type": "qwen3_vl",
        "text_config": {**TEXT, "head_dim": 12, "attention_bias": True},
        "vision_config": QWEN,
        "tie_word_embeddings": True,
    },
    "qwen3_vl_moe": {"model_type": "qwen3_vl_moe"},
    "qwen3_vl_moe, small": {
        "model_type": "qwen3_vl_moe",
        "text_config": {**TEXT, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
        "vision_config": {**QWEN, "temporal_patch_size": 1, "spatial_merge_size": 3},
    },
    "llava": {"model_type": "llava"},
    "llava, small": {"model_type": "llava", "text_config": LLAMA, "vision_config": EYE},
    "llava, layers": {
        "model_type": "llava",
        "text_config": {**LLAMA, "model_type": "mistral", "tie_word_embeddings": True},
        "vision_config": {**EYE, "model_type": "siglip_vision_model", "vision_use_head": True},
        "vision_feature_layer": [-1, 0],
        "vision_feature_select_strategy": "full",
        "multimodal_projector_bias": False,
    },
    "llava, pixtral": {
        "model_type": "llava",
        "text_config": LLAMA,
        "vision_config": {**SMALL, "model_type": "pixtral", "patch_size": 8},
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "full",
    },
    "llava_next": {"model_type": "llava_next"},
    "llava_next, small": {"model_type": "llava_next", "text_config": LLAMA, "vision_config": EYE},
    "llava_onevision": {"model_type": "llava_onevision"},
    "llava_onevision, small": {
        "model_type": "llava_onevision",
        "text_config": {**TEXT, "model_type": "qwen2"},
        "vision_config": {**EYE, "model_type": "siglip_vision_model", "vision_use_head": False},
    },
    "vipllava": {"model_type": "vipllava"},
    "vipllava, small": {
        "model_type": "vipllava",
        "text_config": LLAMA,
        "vision_config": EYE,
        "vision_feature_layer": [-1, 0, 1],
    },
    "paligemma": {"model_type": "paligemma"},
    "paligemma, small": {
        "model_type": "paligemma",
        "text_config": {**TEXT, "head_dim": 8, "model_type": "gemma2"},
        "vision_config": {**EYE, "model_type": "siglip_vision_model"},
        "projection_dim": 32,
    },
    "gemma3": {"model_type": "gemma3"},
    "gemma3, small": {
        "model_type": "gemma3",
        "text_config": {**TEXT, "head_dim": 8},
        "vision_config": {**EYE, "model_type": "siglip_vision_model", "image_size": 48, "vision_use_head": False},
        "mm_tokens_per_image": 9,
    },
    "mistral3": {"model_type": "mistral3"},
    "mistral3, small": {
        "model_type": "mistral3",
        "text_config": {**TEXT, "model_type": "ministral3", "head_dim": 12},
        "vision_config": {**SMALL, "model_type": "pixtral", "patch_size": 8},
        "spatial_merge_size": 3,
        "multimodal_projector_bias": True,
        "tie_word_embeddings": False,
    },
    "glm4v": {"model_type": "glm4v"},
    "glm4v, small": {
        "model_type": "glm4v",
        "text_config": TEXT,
        "vision_config": {
            "depth": 2,
            "hidden_size": 32,
            "num_heads": 2,
            "out_hidden_size": 32,
            "intermediate_size": 40,
            "image_size": 30,
            "attention_bias": True,
            "patch_size": 4,
        },
    },
    "glm4v_moe": {"model_type": "glm4v_moe"},
    "glm4v_moe, small": {
        "model_type": "glm4v_moe",
        "text_config": {**TEXT, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
        "vision_config": {"depth": 2, "hidden_size": 32, "num_heads": 2, "out_hidden_size": 32, "image_size": 56},
    },
    "kimi_k25": {"model_type": "kimi_k25"},
    "kimi_k25, small": {
        "model_type": "kimi_k25",
        "text_config": {**TEXT, "num_key_value_heads": 4, "kv_lora_rank": 8, "q_lora_rank": 12, "n_routed_experts": 8}
        | {"qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "moe_intermediate_size": 12, "n_group": 2}
        | {"num_experts_per_tok": 2, "topk_group": 1, "first_k_dense_replace": 1},
        "vision_config": {**SMALL, "pos_emb_height": 6, "pos_emb_width": 5, "patch_size": 4},
        "projection_hidden_size": 32,
        "tie_word_embeddings": False,
    },
    "llama4, small": {
        "model_type": "llama4",
        "text_config": {**TEXT, "head_dim": 8, "intermediate_size_mlp": 40, "num_local_experts": 4},
        "vision_config": {**SMALL, "intermediate_size": 128, "image_size": 32, "patch_size": 8}
        | {"projector_input_dim": 24, "projector_output_dim": 24, "vision_output_dim": 24},
    },
    "idefics2": {"model_type": "idefics2"},
    "idefics2, small": {
        "model_type": "idefics2",
        "text_config": {**TEXT, "model_type": "mistral"},
        "vision_config": {**SMALL, "image_size": 48, "patch_size": 8},
        "perceiver_config": {"hidden_size": 32, "resampler_n_latents": 5, "resampler_depth": 2}
        | {"resampler_n_heads": 6, "resampler_head_dim": 6, "num_key_value_heads": 3},
    },
    "idefics3": {"model_type": "idefics3"},
    "idefics3, small": {
        "model_type": "idefics3",
        "text_config": LLAMA,
        "vision_config": {**SMALL, "image_size": 48, "patch_size": 8},
        "scale_factor": 3,
    },
    "smolvlm": {"model_type": "smolvlm"},
    "internvl": {"model_type": "internvl"},
    "internvl, small": {
        "model_type": "internvl",
        "text_config": {**TEXT, "model_type": "qwen3", "head_dim": 8},
        "vision_config": {**SMALL, "image_size": [32, 32], "patch_size": [8, 8], "use_qk_norm": True}
        | {"attention_bias": True, "norm_type": "rms_norm", "use_mask_token": True, "use_mean_pooling": False},
    },
    "gemma4": {"model_type": "gemma4"},
    "gemma4_unified": {"model_type": "gemma4_unified"},
    "gemma4, small": {
        "model_type": "gemma4",
        "text_config": {**TEXT, "head_dim": 8, "hidden_size_per_layer_input": 0, "num_hidden_layers": 6},
        "vision_config": {**SMALL, "num_key_value_heads": 2, "head_dim": 12, "patch_size": 4, "pooling_kernel_size": 2}
        | {"position_embedding_size": 20, "standardize": True},
    },
    # Aya Vision's own defaults have 14 heads in a width of 1,152, which neither reads
    "aya_vision, small": {
        "model_type": "aya_vision",
        "text_config": {**TEXT, "model_type": "cohere2", "head_dim": 8},
        "vision_config": {**EYE, "model_type": "siglip_vision_model", "image_size": 32},
        "alignment_intermediate_size": 44,
    },
    "cohere2_vision": {"model_type": "cohere2_vision"},
    "cohere2_vision, small": {
        "model_type": "cohere2_vision",
        "text_config": {**TEXT, "model_type": "cohere2"},
        "vision_config": {**EYE, "model_type": "siglip_vision_model", "image_size": 64, "vision_use_head": False},
        "alignment_intermediate_size": 44,
        "downsample_factor": 4,
    },
    "lfm2_vl": {"model_type": "lfm2_vl"},
    "lfm2_vl, small": {
        "model_type": "lfm2_vl",
        "text_config": {**TEXT, "model_type": "lfm2", "layer_types": ["conv", "full_attention"]},
        "vision_config": {**SMALL, "model_type": "siglip2_vision_model", "num_patches": 64, "patch_size": 8}
        | {"vision_use_head": False},
        "projector_hidden_size": 20,
        "projector_use_layernorm": False,
        "projector_bias": False,
    },
    "got_ocr2": {"model_type": "got_ocr2"},
    "got_ocr2, small": {
        "model_type": "got_ocr2",
        "text_config": {**TEXT, "model_type": "qwen2"},
        "vision_config": {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 40}
        | {"patch_size": 4, "window_size": 4, "global_attn_indexes": [1], "mlp_dim": 24, "output_channels": 12},
    },
    "qwen3_5, small": {
        "model_type": "qwen3_5",
        "text_config": {**TEXT, **DELTA, "head_dim": 16, "num_hidden_layers": 4},
        "vision_config": {**QWEN, "deepstack_visual_indexes": []},
    },
    "qwen3_5_moe, small": {
        "model_type": "qwen3_5_moe",
        "text_config": {**TEXT, **DELTA, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2}
        | {"moe_intermediate_size": 24, "shared_expert_intermediate_size": 20},
        "vision_config": {**QWEN, "deepstack_visual_indexes": []},
    },
}


@needs_library
@pytest.mark.parametrize("case", TOWERS)
def test_text_models_with_towers(case: str) -> None:
    check_against_library(TOWERS[case], auto=GENERATES)


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


@needs_library
@pytest.mark.parametrize("case", ["qwen2_vl, small", "qwen3_vl, small"])
def test_base_models_lack_a_head(case: str) -> None:
    stem = {"qwen2_vl": "Qwen2VL", "qwen3_vl": "Qwen3VL"}[TOWERS[case]["model_type"]]
    check_against_library({**TOWERS[case], "architectures": [f"{stem}Model"]}, auto="AutoModel")


@needs_library
@pytest.mark.parametrize(
    "case", ["qwen2_vl, small", "qwen2_5_vl, small", "qwen3_vl, small", "qwen3_5, small", "glm4v, small"]
)
def test_flops_of_towers_of_any_size(case: str) -> None:
    """8 x 12 patches, merged two by two into 24 tokens; windows of 4 x 4 patches are whole."""
    import torch

    config = TOWERS[case]
    ours = count(read_config(config, "config", "model"), tokens=30, images=1, image_tokens=24)

    visual = runnable(config, GENERATES).model.visual
    first = visual.patch_embed
    patches = torch.zeros((96, first.in_channels * first.temporal_patch_size * first.patch_size**2))
    assert ours.flops.by_part["tower"] == flops_of(visual, patches, grid_thw=torch.tensor([[1, 8, 12]]))


PIXELS = {  # height and width, and the tokens that these make where any size may be
    "llava, small": (24, 24, None),
    "llava, layers": (24, 24, None),
    "llava, pixtral": (24, 32, 12),
    "vipllava, small": (24, 24, None),
    "paligemma, small": (24, 24, None),
    "gemma3, small": (48, 48, None),
    "mistral3, small": (24, 48, 2),
    "llama4, small": (32, 32, None),
    "got_ocr2, small": (40, 40, None),
    "idefics2, small": (48, 48, None),
    "idefics3, small": (48, 48, None),
    "internvl, small": (32, 32, None),
    "aya_vision, small": (32, 32, None),
    "cohere2_vision, small": (64, 64, None),
}


@needs_library
@pytest.mark.parametrize("case", PIXELS)
def test_flops_of_towers_and_projectors(case: str) -> None:
    import torch

    height, width, tokens = PIXELS[case]
    sizes = {"image_sizes": torch.tensor([[height, width]])} if tokens else {}
    shape = (1, 1, 3, height, width) if case.startswith("idefics") else (1, 3, height, width)
    whole = runnable(TOWERS[case], GENERATES)
    sees = getattr(whole, "model", whole).get_image_features
    model = read_config(TOWERS[case], "config", "model")
    ours = count(model, tokens=30, images=1, image_tokens=tokens or None)
    # Llama 4's last matrix is called elsewhere: 4 tokens from 24 to 32
    behind = 2 * 4 * 24 * 32 if case.startswith("llama4") else 0
    assert ours.flops.by_part["tower"] == flops_of(sees, pixel_values=torch.ones(shape), **sizes) + behind


@needs_library
def test_flops_of_a_tower_whose_places_are_resized() -> None:
    """LFM2-VL: 8 x 12 patches make 24 tokens; the library resizes 64 places of 32 as a product of matrices."""
    import torch

    config = TOWERS["lfm2_vl, small"]
    ours = count(read_config(config, "config", "model"), tokens=30, images=1, image_tokens=24)
    seen = {"spatial_shapes": torch.tensor([[8, 12]]), "pixel_attention_mask": torch.ones((1, 96))}
    sees = runnable(config, GENERATES).model.get_image_features
    theirs = flops_of(sees, pixel_values=torch.zeros((1, 96, 3 * 8 * 8)), **seen)
    assert ours.flops.by_part["tower"] == theirs - 2 * 96 * 64 * 32


def test_towers_that_cannot_run_say_so() -> None:
    small = TOWERS["aya_vision, small"]
    odd = {**small, "vision_config": {**small["vision_config"], "image_size": 40}}
    assert any("5 rows of patches are no multiple of 2" in note for note in read_config(odd, "config", "model").notes)
    with pytest.raises(SourceError, match=r"config: alignment_intermediate_size is 45; it must be an even integer"):
        read_config({**small, "alignment_intermediate_size": 45}, "config", "model")
    with pytest.raises(SourceError, match=r"config: downsample_factor is 9; it must be at most 4, the rows of patches"):
        read_config({**small, "downsample_factor": 9}, "config", "model")
    with pytest.raises(SourceError, match=r"config: vision_feature_layer is \[0, 1\]; it must be one index"):
        read_config({**small, "vision_feature_layer": [0, 1]}, "config", "model")


def test_images_of_any_size_are_a_setting() -> None:
    """1,024 x 1,024 pixels where nothing is said: 32 x 32 tokens of Qwen3-VL, each of 32 x 32 pixels."""
    model = read_config(TOWERS["qwen3_vl"], "config", "model")
    bare, seen = count(model), count(model, images=2)
    assert (bare.setting.images, bare.flops.by_part["tower"]) == (0, 0)
    assert seen.setting.image_tokens == 1024
    assert seen.flops.by_part["tower"] == 2 * count(model, images=1, image_tokens=1024).flops.by_part["tower"]
    assert {part: n for part, n in seen.flops.by_part.items() if part != "tower"} == {
        part: n for part, n in bare.flops.by_part.items() if part != "tower"
    }
    assert seen.flops.attention_scores == bare.flops.attention_scores
    assert count(model, tokens=1, past=2048, images=2).flops.by_part["tower"] == 0  # seen in an earlier pass
    assert seen.parameters == bare.parameters
    with pytest.raises(SettingError, match="image tokens is 5; model has no tower"):
        count(read_config({"model_type": "qwen3"}, "config", "model"), image_tokens=5)


def test_gemma4_tower_by_hand() -> None:
    """6 tokens of 2 x 2 patches of 3 x 4 x 4 numbers: 24 positions, three layers, a matrix to the text's width.

    The library pools with a product of one-hot vectors, which is no work of the architecture.
    """
    ours = count(read_config(TOWERS["gemma4, small"], "config", "model"), images=1, image_tokens=6)
    n, d, k, f = 24, 32, 12, 40
    projections = d * 4 * k + 2 * d * 2 * k + 4 * k * d
    layer = 2 * n * (projections + 3 * d * f) + 2 * 2 * n * n * 4 * k
    assert ours.flops.by_part["tower"] == 2 * n * 48 * d + 3 * layer + 2 * 6 * d * 32


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
    check_against_library(WHOLE, auto=GENERATES)
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
    theirs = flops_of(runnable(TILES, GENERATES), use_cache=False, **seen)
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


@pytest.mark.parametrize(("model_type", "own"), [("mistral3", True), ("internvl", True), ("gemma3", False)])
def test_a_head_that_only_the_outer_class_shares_is_told(model_type: str, own: bool) -> None:
    """Mistral's and Qwen's own classes have a head of their own; Gemma's has none."""
    data = {"model_type": model_type, "text_config": {"vocab_size": 90, "hidden_size": 64}}
    model, said = read_config(data, "config", "model"), "a head of its own, 5,760 parameters more"
    assert any(said in note for note in model.notes) is own
    for tied in (True, False):
        told = read_config({**data, "tie_word_embeddings": tied}, "config", "model")
        assert not any(said in note for note in told.notes)
        more = count(told, tokens=1).parameters.total - count(model, tokens=1).parameters.total
        assert more == (0 if tied else 90 * 64)


# text models of their class's own sizes that have towers, but for those that need one to be asked for
WITH_TOWERS = [name for name, family in FAMILIES.items() if family.read.__annotations__["return"] == "Multimodal"]
OWN_SIZES = sorted({*WITH_TOWERS} - {"aya_vision", "gemma4", "gemma4_unified", "mllama"})


@pytest.mark.parametrize("model_type", OWN_SIZES)
@pytest.mark.parametrize("convention", ["matmul", "scalar"])
def test_towers_cost_nothing_where_nothing_is_seen(model_type: str, convention: str) -> None:
    """Without an image or a sound, and in each step behind the pass that has them."""
    model = read_config({"model_type": model_type}, "config", "model")
    assert model.sight is not None
    heard: dict[str, Any] = {"sounds": 2} if model.sight.sounds else {}

    def spent(**asked: Any) -> int:
        return int(count(model, convention=convention, **asked).flops.by_part.get("tower", 0))

    assert spent(tokens=60, images=2, **heard) > 0
    if not model.sight.images:
        assert spent(tokens=60) == 0
    if "past" in model.settings:
        assert spent(tokens=1, past=60, images=2, **heard) == 0
