"""GOT-OCR 2.0: the image encoder of SAM (Kirillov et al. 2023), convolutions that halve it twice, a small Qwen2."""

from __future__ import annotations

from typing import Any

from assay.blocks import Layer, Mlp, Norm
from assay.blocks.images import FilledWindows
from assay.blocks.towers import Drawn, Multimodal, Patches, Tower
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, pre_norm, under
from assay.sources.families.multimodal import CLASSES, beside, text_of
from assay.sources.families.qwen_vl import PACKED
from assay.sources.families.vision import square
from assay.spec import ops

SAM = under(
    "model.vision_tower.",
    {
        "Wpatch": "patch_embed.projection.weight[d i y z]",
        "Wpatch_bias": "patch_embed.projection.bias",
        "E_position": "pos_embed[1 rows columns d]",
        **under(
            "layers.{i}.",
            {
                **PACKED,
                "Rows": "attn.rel_pos_h",
                "Columns": "attn.rel_pos_w",
                "Ga": "layer_norm1.weight",
                "Gm": "layer_norm2.weight",
                "Wu": "mlp.lin1.weight",
                "Wd": "mlp.lin2.weight",
            },
        ),
        "Wneck1": "neck.conv1.weight[j d 1 1]",
        "Gneck": "neck.layer_norm1.weight",
        "Wneck2": "neck.conv2.weight[k j r s]",
        "Gafter": "neck.layer_norm2.weight",
    },
) | under(
    "model.multi_modal_projector.",
    {
        "Wdown1": "conv_upsampler1.weight[e k r s]",
        "Wdown2": "conv_upsampler2.weight[l e r s]",
        "Wp1": "multimodal_projector.weight",
        "Wp1_bias": "multimodal_projector.bias",
    },
)
_TEXT: dict[str, Any] = {"vocab_size": 151860, "hidden_size": 1024, "intermediate_size": 2816}
_TEXT |= {"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "rope_theta": 1e6}
_TEXT |= {"max_position_embeddings": 32768, "max_window_layers": 21}


def sam(c: Config) -> tuple[Patches, tuple[Layer, ...], int]:
    """Start, layers, and patches of a side."""
    c.absent(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, image_size=1024, patch_size=16)
    c.absent(window_size=14, global_attn_indexes=[2, 5, 8, 11], mlp_dim=3072)
    c.skip("model_type")
    width, heads = c.size("hidden_size"), c.size("num_attention_heads")
    norm = Norm("layernorm", "gain+bias", c.positive("layer_norm_eps", 1e-6))
    patches, kernel = square(c)
    side, window = c.size("image_size") // kernel[0], c.size("window_size", least=0)
    table = patches if c.flag("use_abs_pos", True) else None
    first = Patches(c.size("num_channels", 3), kernel, width, patches, positions=table, sides=(side, side))
    each = c.divides("hidden_size", width, "num_attention_heads", heads)
    bias, places = "qkvo" if c.flag("qkv_bias", True) else "o", c.flag("use_rel_pos", True)
    mlp = Mlp(c.size("mlp_dim"), gated=False, activation=activation(c, default="gelu"), bias="ud")
    full = c.sequence("global_attn_indexes", lambda v: type(v) is int and v >= 0, "indices of layers") or []

    def layer(kind: str) -> Layer:
        reach = window if kind == "windowed" else side
        rows = (side + reach - 1) // reach * reach  # whole windows
        attention = FilledWindows(
            heads, heads, each, bias=bias, patches=reach * reach, padded=rows * rows, side=reach, places=places
        )
        return pre_norm(attention, mlp, norm, kind)

    kinds = ["full" if i in full or not window else "windowed" for i in range(depth(c))]
    return first, by_kind(kinds, layer), side


@family("got_ocr2", cls="GotOcr2ForConditionalGeneration", names={}, classes=CLASSES)
def got_ocr2(c: Config) -> Multimodal:
    """Wei et al. 2024, arXiv:2409.01704."""
    c.skip("image_seq_length")
    seen = c.child("vision_config")
    first, layers, side = sam(seen)
    out, text = seen.size("output_channels", 256), text_of(c, "qwen2", tied=True, whole=_TEXT)
    norm, half = Norm("layernorm", "gain+bias", 1e-6), (side + 1) // 2
    tokens = ((half + 1) // 2) ** 2
    lines = (
        *ops("tower", "x = linear(x[b n d], Wneck1[d j]) -> [b n j]"),
        *norm.ops("x", "x", "neck", "b n j", "j"),
        *ops("tower", *convolved("n", "n", "j", "k", "Wneck2")),
        *norm.ops("x", "x", "after", "b n k", "k"),
        *ops("tower", *convolved("n", "m", "k", "e", "Wdown1"), *convolved("m", "o", "e", "l", "Wdown2")),
        *ops("tower", "x = linear(x[b o l], Wp1[l p], Wp1_bias[p]) -> [b o p]"),
    )
    sizes = {"d": first.width, "j": out, "k": out, "r": 3, "s": 3, "m": half * half, "e": 2 * out}
    end = Drawn("projector", lines, {**sizes, "l": text[0].width, "p": text[0].width})
    axes = {"n": first.length, "o": tokens}
    return beside(c, text, [Tower(first, layers, (end,), first.width, axes, SAM, called="vision")])


def convolved(source: str, to: str, read: str, made: str, weight: str) -> tuple[str, ...]:
    """A convolution of three by three over the positions of an image."""
    stride = "" if source == to else ", stride=4"
    return (
        f"x = columns(x[b {source} {read}]{stride}) -> [b {to} {read} r]",
        f"x = columns(x[b {to} {read} r]) -> [b {to} {read} r s]",
        f"x = linear(x[b {to} {read} r s], {weight}[{read} r s {made}]) -> [b {to} {made}]",
    )
