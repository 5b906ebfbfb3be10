"""Kimi K2.5: the vision transformer of Kimi-VL beside DeepSeek's latent attention."""

from __future__ import annotations

from assay.blocks import Mlp, Norm, Rope
from assay.blocks.towers import Drawn, Multimodal, Patches, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, pre_norm, under
from assay.sources.families.multimodal import CLASSES, any_size, beside, text_of
from assay.sources.families.vision import seeing
from assay.spec import ops

KIMI = under(
    "model.vision_tower.",
    {
        "Wpatch": "patch_embed.proj.weight[d i y z]",
        "Wpatch_bias": "patch_embed.proj.bias",
        "E_position": "patch_embed.pos_emb.position_embeddings[rows columns d]",
        **under(
            "layers.{i}.",
            {
                "Ga": "norm1.weight",
                **{f"W{letter}": f"attn.{letter}_proj.weight" for letter in "qkv"},
                "Wo": "attn.proj.weight",
                "Gm": "norm2.weight",
                "Wu": "mlp.fc1.weight",
                "Wd": "mlp.fc2.weight",
            },
        ),
        "Gf": "final_layernorm.weight",
    },
) | under(
    "model.mm_projector.",
    {"Gmerge": "pre_norm.weight", "Wp1": "in_proj.weight[f (q d)]", "Wp2": "out_proj.weight"},
)
OLD = {
    "vt_hidden_size": "hidden_size",
    "vt_intermediate_size": "intermediate_size",
    "vt_num_attention_heads": "num_attention_heads",
    "vt_num_hidden_layers": "num_hidden_layers",
    "init_pos_emb_height": "pos_emb_height",
    "init_pos_emb_width": "pos_emb_width",
    "init_pos_emb_time": "pos_emb_time",
}

MERGED = (
    "y = columns(x[b n d]) -> [b o d q]",
    "y = linear(y[b o d q], Wp1[q d f], Wp1_bias[f]) -> [b o f]",
    "y = gelu(y[b o f]) -> [b o f]",
    "y = linear(y[b o f], Wp2[f j], Wp2_bias[j]) -> [b o j]",
)


@family(
    "kimi_k25",
    cls="Kimi_K25ForConditionalGeneration",
    also=("KimiK25ForConditionalGeneration",),
    names={},
    harmless=("use_unified_vision_chunk", "video_placeholder"),
    classes=CLASSES,
)
def kimi_k25(c: Config) -> Multimodal:
    """Kimi Team 2026: patches of any number with learned places and rotations, merged two by two."""
    seen = c.child("vision_config")
    seen.rename(**OLD)
    seen.absent(hidden_size=1152, intermediate_size=4304, num_attention_heads=16, num_hidden_layers=27, patch_size=14)
    seen.skip("model_type", "rope_parameters", "pos_emb_time", "pos_emb_type", "projector_ln_eps", "video_attn_type")
    for key, value in (
        ("merge_type", "sd2_tpool"),
        ("mm_projector_type", "patchmerger"),
        ("projector_hidden_act", "gelu"),
    ):
        seen.inert(key, value)
    width, patch = seen.size("hidden_size"), seen.size("patch_size")
    norm = Norm("layernorm", "gain+bias", 1e-5)
    rows, columns = seen.size("pos_emb_height", 64), seen.size("pos_emb_width", 64)
    first = Patches(3, (patch, patch), width, positions=rows * columns, sides=(rows, columns))
    attention = replace(seeing(seen, "qkvo"), positions=Rope(style="axial"))
    act = activation(seen, default="gelu_pytorch_tanh")
    mlp = Mlp(seen.size("intermediate_size"), gated=False, activation=act, bias="ud")
    layers = (pre_norm(attention, mlp, norm),) * depth(seen)
    listed = seen.sequence("merge_kernel_size", lambda v: type(v) is int and v > 0, "an integer of at least 1", 2)
    kernel = listed or [2, 2]
    squared = kernel[0] * kernel[1]
    text = text_of(c, "deepseek_v3", tied=True)
    seen.inert("text_hidden_size", int(text[0].width))
    seen.inert("mm_hidden_size", int(width))
    c.inert("projection_hidden_size", int(width))
    c.skip("projection_layer_norm_eps")
    lines = (*norm.ops("x", "x", "f"), *norm.ops("x", "x", "merge"), *ops("tower", *MERGED))
    end = Drawn("projector", lines, {"d": width, "q": squared, "f": squared * width, "j": text[0].width})
    axes = {"n": "patches", "o": "image_tokens"}
    tower = Tower(first, layers, (end,), width, axes, KIMI, called="vision")
    return beside(c, text, [tower], any_size(patch * kernel[0], squared))
