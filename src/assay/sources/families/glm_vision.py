"""GLM's models of text and images: a vision transformer over patches of any number, merged through a gated layer."""

from __future__ import annotations

from typing import Any

from assay.blocks import Attention, Mlp, Norm, Rope
from assay.blocks.mlp import feed_forward
from assay.blocks.rewritten import begun, over
from assay.blocks.towers import Drawn, Multimodal, Patches, Tower
from assay.sources.config import Config
from assay.sources.families import FAMILIES
from assay.sources.families.common import activation, depth, family, pre_norm, under
from assay.sources.families.dense import biased
from assay.sources.families.multimodal import CLASSES, any_size, beside, read_inner, text_of
from assay.sources.families.qwen_vl import PACKED
from assay.sources.families.vision import square
from assay.spec import Op, Sight, ops

GLM = under(
    "model.visual.",
    {
        "Wpatch": "patch_embed.proj.weight[d i u y z]",
        "Wpatch_bias": "patch_embed.proj.bias",
        "Gpatch": "post_conv_layernorm.weight",
        "E_position": "embeddings.position_embedding.weight",
        **under(
            "blocks.{i}.",
            {
                **PACKED,
                "Ga": "norm1.weight",
                "Gm": "norm2.weight",
                "Wg": "mlp.gate_proj.weight",
                "Wu": "mlp.up_proj.weight",
                "Wd": "mlp.down_proj.weight",
            },
        ),
        "Gf": "post_layernorm.weight",
        "Wdown": "downsample.weight[j d y z]",
        "Wdown_bias": "downsample.bias",
        "Wproject": "merger.proj.weight",
        "Gmerge": "merger.post_projection_norm.weight",
        "merge.Wg": "merger.gate_proj.weight",
        "merge.Wu": "merger.up_proj.weight",
        "merge.Wd": "merger.down_proj.weight",
    },
)
_GLM4: dict[str, Any] = {"hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40}
_GLM4 |= {"num_attention_heads": 32, "num_key_value_heads": 2, "vocab_size": 151552, "rms_norm_eps": 1e-5}
_GLM4 |= {"max_position_embeddings": 32768, "attention_bias": True}
_MOE: dict[str, Any] = {"hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46}
_MOE |= {"num_attention_heads": 96, "num_key_value_heads": 8, "vocab_size": 151424, "rms_norm_eps": 1e-5}
_MOE |= {"max_position_embeddings": 65536, "attention_bias": True, "moe_intermediate_size": 1408}
_MOE |= {"num_experts_per_tok": 8, "n_routed_experts": 128, "n_shared_experts": 1, "first_k_dense_replace": 1}
READ_AS = {"glm4v_text": ("glm4", _GLM4), "glm4v_moe_text": ("glm4_moe", _MOE)}
IDS = ("image_start_token_id", "image_end_token_id", "video_start_token_id", "video_end_token_id")


def merger(c: Config, width: int, out: int, side: int, norm: Norm) -> Drawn:
    """A norm, a convolution over the neighbours, a matrix, a gated layer."""
    inner = c.size("intermediate_size", 13696)
    gated = begun(feed_forward("tower", "y", "y", "Wg Wu Wd", "f", True, activation(c), ""), "merge.")
    made: list[Op] = [
        *norm.ops("x", "x", "f"),
        *ops(
            "tower",
            "y = columns(x[b n d]) -> [b o d q]",
            "y = linear(y[b o d q], Wdown[d q j], Wdown_bias[j]) -> [b o j]",
            "y = linear(y[b o j], Wproject[j k]) -> [b o k]",
        ),
        *Norm("layernorm", "gain+bias", 1e-5).ops("y", "y", "merge", "b o k", "k"),
        *ops("tower", "y = gelu(y[b o k]) -> [b o k]"),
        *over(over(gated, "n", "o"), "d", "k"),
    ]
    sizes = {"d": width, "q": side * side, "y": side, "z": side, "j": out, "k": out, "f": inner}
    return Drawn("merger", tuple(made), sizes)


def glm_visual(c: Config) -> tuple[Tower, Sight]:
    """GLM-V Team 2025, arXiv:2507.01006."""
    c.absent(depth=24, hidden_size=1536, num_heads=12, image_size=336, patch_size=14, out_hidden_size=4096)
    c.skip("model_type", "rope_parameters", "hidden_dropout_prob")
    width, heads, out = c.size("hidden_size"), c.size("num_heads"), c.size("out_hidden_size")
    norm, side = Norm(eps=c.positive("rms_norm_eps", 1e-5)), c.size("spatial_merge_size", 2)
    rows, kernel = square(c)
    first = Patches(
        c.size("in_channels", 3),
        (c.size("temporal_patch_size", 2), *kernel),
        width,
        positions=rows,
        before=norm,
    )
    bias = biased(c, "attention_bias", "qkv")
    each = c.divides("hidden_size", width, "num_heads", heads)
    attention = Attention(heads, heads, each, bias=bias, positions=Rope(style="axial"), sees="all")
    layers = (pre_norm(attention, Mlp(out, activation=activation(c)), norm),) * depth(c, key="depth")
    end = merger(c, width, out, side, norm)
    axes = {"n": "patches", "o": "image_tokens"}
    return Tower(first, layers, (end,), width, axes, GLM, called="vision"), any_size(kernel[0] * side, side * side)


def glm(c: Config, usual: str) -> Multimodal:
    """Files from before the text model had a config of its own hold its keys beside the tower's."""
    seen, sight = glm_visual(c.child("vision_config"))
    c.skip(*IDS)
    _, values = READ_AS[usual]
    inner = c.child("text_config") if c.has("text_config") or "hidden_size" not in c.data else c
    inner.absent(**values)
    inner.inert("use_qk_norm", False)
    if not inner.has("head_dim"):  # both readers have a width of their own
        width, heads = inner.size("hidden_size"), inner.size("num_attention_heads")
        inner.data = {**inner.data, "head_dim": width // heads}
    if inner is not c:
        text = text_of(c, usual, tied=False, read_as=READ_AS, either=True)
    else:
        text = read_inner(c, c, FAMILIES[READ_AS[usual][0]])
    return beside(c, text, [seen], sight)


@family("glm4v", cls="Glm4vForConditionalGeneration", names={}, classes=CLASSES)
def glm4v(c: Config) -> Multimodal:
    """GLM-V Team 2025, arXiv:2507.01006: GLM-4's sandwiched layer beside the tower."""
    return glm(c, "glm4v_text")


@family("glm4v_moe", cls="Glm4vMoeForConditionalGeneration", names={}, classes=CLASSES)
def glm4v_moe(c: Config) -> Multimodal:
    """GLM-4.5V: the mixture of GLM-4.5 beside the tower."""
    return glm(c, "glm4v_moe_text")
