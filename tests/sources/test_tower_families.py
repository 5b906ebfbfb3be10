"""Text models with towers of images against the public implementation, tensor by tensor."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, flops_of, needs_library, runnable
from towers import SEEN, SEES, SMALL, TEXT

from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config

QWEN: dict[str, Any] = {"depth": 3, "hidden_size": 32, "num_heads": 4, "out_hidden_size": 32, "intermediate_size": 40}
QWEN |= {"patch_size": 4, "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 2]}
LLAMA = {**TEXT, "model_type": "llama"}
EYE = {**SEEN, "model_type": "clip_vision_model"}


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
    check_against_library(TOWERS[case], auto=SEES)


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

    visual = runnable(config, SEES).model.visual
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
    whole = runnable(TOWERS[case], SEES)
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
    sees = runnable(config, SEES).model.get_image_features
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
