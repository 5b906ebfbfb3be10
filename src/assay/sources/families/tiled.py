"""Models of text and images that cut an image into tiles of one size: Llama 4, Idefics 3, SmolVLM, InternVL.

A tile is what `--images` counts.
"""

from __future__ import annotations

from typing import Any

from assay.blocks import Mlp, Norm, Rope
from assay.blocks.towers import Drawn, Gained, Multimodal, Patches, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.clip import VISION, siglip_vision
from assay.sources.families.common import ACTIVATIONS, activation, depth, family, pre_norm, under
from assay.sources.families.llava import CROPS, features
from assay.sources.families.multimodal import CLASSES, beside, moved, placed, text_of
from assay.sources.families.vision import grid, plain, seeing, square
from assay.spec import ops

LLAMA4 = under(
    "vision_model.",
    {
        "Wpatch": "patch_embedding.linear.weight[d (i y z)]",
        "Cls": "class_embedding",
        "E_position": "positional_embedding_vlm",
        "Ge": "layernorm_pre.weight",
        **under(
            "model.layers.{i}.",
            {
                "Ga": "input_layernorm.weight",
                **{f"W{letter}": f"self_attn.{letter}_proj.weight" for letter in "qkvo"},
                "Gm": "post_attention_layernorm.weight",
                "Wu": "mlp.fc1.weight",
                "Wd": "mlp.fc2.weight",
            },
        ),
        "Gf": "layernorm_post.weight",
        "Wp1": "vision_adapter.mlp.fc1.weight",
        "Wp2": "vision_adapter.mlp.fc2.weight",
    },
) | {"Wp3": "multi_modal_projector.linear_1.weight"}


def shuffled(c: Config, ratio: float) -> int:
    """How many neighbours a side become one, where that is told as the ratio of the sides."""
    side = round(1 / ratio)
    if ratio > 1 or abs(side * ratio - 1) > 1e-9:
        c.fail("pixel_shuffle_ratio" if "pixel_shuffle_ratio" in c.data else "downsample_ratio", "1 over an integer")
    return side


@family("llama4", cls="Llama4ForConditionalGeneration", names={}, classes=CLASSES[:1])
def llama4(c: Config) -> Multimodal:
    """Meta 2025: tiles of one size, four patches as a token through two matrices, and one to the text's width."""
    seen = c.child("vision_config")
    seen.absent(hidden_size=768, num_hidden_layers=34, num_attention_heads=16, intermediate_size=5632)
    seen.absent(image_size=448, patch_size=14, vision_output_dim=7680, hidden_act="gelu")
    seen.skip("model_type", "rope_theta", "rope_parameters", "projector_dropout", "vision_feature_layer")
    seen.inert("vision_feature_select_strategy", "default")
    seen.inert("multi_modal_projector_bias", False)
    c.skip("boi_token_index", "eoi_token_index", "image_token_index")
    width, norm = seen.size("hidden_size"), Norm("layernorm", "gain+bias", 1e-5)
    patches, kernel = square(seen)
    channels, tokens = seen.size("num_channels", 3), (("Cls", 1),)
    first = Patches(channels, kernel, width, patches, tokens, bias=False, positions=patches + 1, norm=norm)
    attention = replace(seeing(seen, "qkvo"), positions=Rope(style="axial"))
    layers = (plain(seen, norm, attention),) * depth(seen)
    side = shuffled(seen, seen.positive("pixel_shuffle_ratio", 0.5))
    text = text_of(c, "llama4_text", tied=None, either=True)
    end = _adapted(c, seen, norm, {"q": side * side, "p": patches, "r": text[0].width})
    axes = {"n": first.length, "o": patches // side**2}
    tower = Tower(first, layers, (end,), width, axes, LLAMA4, called="vision")
    c.notes.append(CROPS)
    own = moved(moved(text[1], "language_model.model."), "language_model.lm_head.", "lm_head.")
    return replace(beside(c, text, [tower]), names=own)


def _adapted(c: Config, seen: Config, norm: Norm, sizes: dict[str, int]) -> Drawn:
    """Four patches as a token, of which each matrix takes as much as it is wide."""
    width, inner, given = seen.size("hidden_size"), seen.size("intermediate_size"), seen.size("vision_output_dim")
    middle, out = seen.size("projector_input_dim", 4096), seen.size("projector_output_dim", 4096)
    if (sizes["q"] * width, middle, out) != (inner, out, given):  # the class's own sizes are of this kind
        c.notes.append("the projector's matrices do not fit what they read: such a tower has weights and cannot run")
    lines = (
        *norm.ops("x", "x", "f"),
        *ops(
            "tower",
            "y = slice(x[b n d]) -> [b p d]",
            "y = columns(y[b p d]) -> [b o d q]",
            "y = slice(y[b o d q]) -> [b o d f]",
            "z = first(y[b o d f]) -> [b o f]",
            "z = linear(z[b o f], Wp1[f j]) -> [b o j]",
            "z = gelu(z[b o j]) -> [b o j]",
            "z = slice(z[b o j]) -> [b o k]",
            "z = linear(z[b o k], Wp2[k l]) -> [b o l]",
            "z = gelu(z[b o l]) -> [b o l]",
            "z = slice(z[b o l]) -> [b o s]",
            "z = linear(z[b o s], Wp3[s r]) -> [b o r]",
        ),
    )
    return Drawn("projector", lines, {**sizes, "d": width, "f": inner, "j": middle, "k": out, "l": out, "s": given})


def connected(c: Config, defaults: dict[str, Any]) -> Multimodal:
    """SigLIP's encoder without its head, neighbours as one vector, one matrix."""
    seen = c.child("vision_config")
    seen.absent(**defaults)
    seen.inert("vision_use_head", False)
    seen.absent(vision_use_head=False)
    seen.skip("max_image_size", "size", "use_base_siglip", "tie_word_embeddings")
    tower = siglip_vision(seen)
    side = c.size("scale_factor", 2)
    patches = int(tower.axes["n"])
    inner = c.child("text_config")
    inner.skip("perceiver_config", "pixel_shuffle_factor")  # of Idefics 2, and the tower's factor once more
    inner.inert("use_resampler", False)
    inner.inert("qk_layer_norms", False)
    text = text_of(c, "llama", tied=False, whole={"rms_norm_eps": 1e-5})
    made = ops(
        "tower",
        "y = columns(x[b n d], order=squares) -> [b o d q]",
        "y = linear(y[b o d q], Wp1[d q j]) -> [b o j]",
    )
    end = Drawn("projector", tuple(made), {"d": tower.width, "q": side * side, "j": text[0].width})
    names = {**under("model.vision_model.", VISION), "Wp1": "model.connector.modality_projection.proj.weight[j (q d)]"}
    axes = {**tower.axes, "o": patches // side**2}
    c.notes.append(CROPS)
    c.skip("image_seq_len")
    tower = replace(tower, ends=(*tower.ends, end), names=names, axes=axes)
    return replace(beside(c, text, [tower], placed(c, 128257)), names=moved(text[1], "model.text_model."))


IDEFICS: dict[str, Any] = {"hidden_size": 1152, "intermediate_size": 3072, "num_hidden_layers": 12}
IDEFICS |= {"num_attention_heads": 16, "image_size": 224, "patch_size": 32}


@family("idefics3", cls="Idefics3ForConditionalGeneration", names={}, classes=CLASSES)
def idefics3(c: Config) -> Multimodal:
    """Laurençon et al. 2024, arXiv:2408.12637."""
    return connected(c, IDEFICS)


@family("smolvlm", cls="SmolVLMForConditionalGeneration", names={}, classes=CLASSES)
def smolvlm(c: Config) -> Multimodal:
    """Marafioti et al. 2025, arXiv:2504.05299."""
    return connected(c, IDEFICS)


INTERN = under(
    "model.vision_tower.",
    {
        "Cls": "embeddings.cls_token[1 1 d]",
        "Mask": "embeddings.mask_token[1 1 d]",
        "E_position": "embeddings.position_embeddings[1 P d]",
        "Wpatch": "embeddings.patch_embeddings.projection.weight[d i y z]",
        "Wpatch_bias": "embeddings.patch_embeddings.projection.bias",
        **under(
            "encoder.layer.{i}.",
            {
                "Ga": "layernorm_before.weight",
                **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkv"},
                "Gqn": "attention.q_norm.weight",
                "Gkn": "attention.k_norm.weight",
                "Wo": "attention.projection_layer.weight",
                "La": "lambda_1",
                "Gm": "layernorm_after.weight",
                "Wu": "mlp.fc1.weight",
                "Wd": "mlp.fc2.weight",
                "Lm": "lambda_2",
            },
        ),
        "Gf": "layernorm.weight",
    },
) | under(
    "model.multi_modal_projector.",
    {"Gmerge": "layer_norm.weight", "Wp1": "linear_1.weight[j (q d)]", "Wp2": "linear_2.weight"},
)


@family("internvl", cls="InternVLForConditionalGeneration", names={}, classes=CLASSES)
def internvl(c: Config) -> Multimodal:
    """Zhu et al. 2025, arXiv:2504.10479, as the public implementation names it."""
    seen = c.child("vision_config")
    seen.absent(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    seen.absent(hidden_act="gelu", image_size=[448, 448], patch_size=[14, 14])
    seen.skip("model_type", "layer_scale_init_value", "projection_dropout")
    width, eps = seen.size("hidden_size"), seen.positive("layer_norm_eps", 1e-6)
    centred = seen.word("norm_type", "layer_norm", ("layer_norm", "rms_norm")) == "layer_norm"
    norm = Norm("layernorm", "gain+bias", eps) if centred else Norm(eps=eps)
    patches, kernel = grid(seen)
    table = patches + 1 if seen.flag("use_absolute_position_embeddings", True) else None
    spare = ("Mask",) if seen.flag("use_mask_token", False) else ()
    first = Patches(seen.size("num_channels", 3), kernel, width, patches, (("Cls", 1),), positions=table, spare=spare)
    qk = Norm(eps=1e-6) if seen.flag("use_qk_norm", False) else None
    bias = "qkvo" if seen.flag("attention_bias", False) else "o"
    attention = replace(seeing(seen, bias), qk_norm=qk, qk_norm_over="full")
    mlp = Mlp(seen.size("intermediate_size"), gated=False, activation=activation(seen), bias="ud")
    layers = (pre_norm(Gained(attention), Gained(mlp), norm),) * depth(seen)
    side = shuffled(c, c.positive("downsample_ratio", 0.5))
    if features(c, -1) != 1:
        c.fail("vision_feature_layer", "one index")
    c.inert("vision_feature_select_strategy", "default")
    text = text_of(c, "qwen2", tied=True)
    end = _merged(c, seen, {"d": width, "q": side * side, "p": patches, "j": text[0].width, "k": text[0].width})
    c.skip("image_seq_length")
    c.notes.append(CROPS)
    axes = {"n": first.length, "o": patches // side**2}
    tower = Tower(first, layers, (end,), width, axes, INTERN, called="vision")
    return beside(c, text, [tower], placed(c, 151667))


def _merged(c: Config, seen: Config, sizes: dict[str, int]) -> Drawn:
    """Neighbours' patches as one vector, normed, through two matrices."""
    eps = seen.positive("layer_norm_eps", 1e-6)
    act = ACTIVATIONS[c.word("projector_hidden_act", "gelu", ACTIVATIONS)]
    made = [] if seen.flag("use_mean_pooling", True) else Norm("layernorm", "gain+bias", eps).ops("x", "x", "f")
    made += ops(
        "tower",
        "y = slice(x[b n d], at=1) -> [b p d]",
        "y = columns(y[b p d], order=squares) -> [b o d q]",
    )
    made += Norm("layernorm", "gain+bias", 1e-5).ops("y", "y", "merge", "b o d q", "q d")
    made += ops(
        "tower",
        "y = linear(y[b o d q], Wp1[q d j], Wp1_bias[j]) -> [b o j]",
        f"y = {act}(y[b o j]) -> [b o j]",
        "y = linear(y[b o j], Wp2[j k], Wp2_bias[k]) -> [b o k]",
    )
    return Drawn("projector", tuple(made), sizes)
