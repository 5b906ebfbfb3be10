"""Qwen's models of text and images: a vision transformer over patches of any number, merged two by two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.blocks import Attention, Layer, Mlp, Norm, Rope
from assay.blocks.rewritten import begun
from assay.blocks.stacks import Body
from assay.blocks.towers import Drawn, Multimodal, Patches, Tower, Windowed
from assay.sources.config import Config
from assay.sources.families import FAMILIES
from assay.sources.families.common import activation, by_kind, depth, family, pre_norm, under
from assay.sources.families.multimodal import CLASSES, any_size, beside, read_inner, text_of
from assay.spec import Op, Sight, ops

PACKED = {
    **{f"W{name}": f"attn.qkv.weight[+({axes}) d]" for name, axes in (("q", "g r k"), ("k", "g k"), ("v", "g v"))},
    **{f"B{name}": f"attn.qkv.bias[+({axes})]" for name, axes in (("q", "g r k"), ("k", "g k"), ("v", "g v"))},
    "Wo": "attn.proj.weight",
}
VISUAL = under(
    "model.visual.",
    {
        "Wpatch": "patch_embed.proj.weight[d i u y z]",
        "Wpatch_bias": "patch_embed.proj.bias",
        "E_position": "pos_embed.weight",
        **under("blocks.{i}.", {**PACKED, "Ga": "norm1.weight", "Gm": "norm2.weight"}),
    },
)
QWEN2 = VISUAL | under(
    "model.visual.",
    {
        "Wu": "blocks.{i}.mlp.fc1.weight",
        "Wd": "blocks.{i}.mlp.fc2.weight",
        "Gmerge": "merger.ln_q.weight",
        "Wm1": "merger.mlp.0.weight[f (q d)]",
        "Wm2": "merger.mlp.2.weight",
    },
)
QWEN25 = QWEN2 | under(
    "model.visual.blocks.{i}.mlp.",
    {"Wg": "gate_proj.weight", "Wu": "up_proj.weight", "Wd": "down_proj.weight"},
)
QWEN3 = VISUAL | under(
    "model.visual.",
    {
        "Wu": "blocks.{i}.mlp.linear_fc1.weight",
        "Wd": "blocks.{i}.mlp.linear_fc2.weight",
        "Gmerge": "merger.norm.weight",
        "Wm1": "merger.linear_fc1.weight[f (q d)]",
        "Wm2": "merger.linear_fc2.weight",
        "deep.Gmerge": "deepstack_merger_list.{i}.norm.weight",
        "deep.Wm1": "deepstack_merger_list.{i}.linear_fc1.weight[f (q d)]",
        "deep.Wm2": "deepstack_merger_list.{i}.linear_fc2.weight",
    },
)
# the classes' own values of the text models
_WORDS = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("vocab_size", "max_position_embeddings", "rope_theta"),
)


def sizes(*values: float, **more: Any) -> dict[str, Any]:
    """Values of a class under the keys that all of these have, and those it has besides."""
    return {**dict(zip(_WORDS, values, strict=True)), **more}


_TEXT2 = sizes(8192, 29568, 80, 64, 8, 152064, 32768, 1e6, rms_norm_eps=1e-5, max_window_layers=80)
_TEXT3 = sizes(4096, 22016, 32, 32, 32, 151936, 128000, 5e5)
_MOE = {"moe_intermediate_size": 1408, "num_experts": 60, "num_experts_per_tok": 4, "norm_topk_prob": True}
_TEXT3_MOE = sizes(2048, 5632, 24, 16, 16, 151936, 128000, 5e5, **_MOE)
READ_AS = {
    "qwen2_vl_text": ("qwen2", _TEXT2),
    "qwen2_5_vl_text": ("qwen2", _TEXT2),
    "qwen3_vl_text": ("qwen3", _TEXT3),
    "qwen3_vl_moe_text": ("qwen3_moe", _TEXT3_MOE),
}
HARMLESS = ("tokens_per_second", "vision_token_id", "image_token_id", "video_token_id")


def merged(norm: Norm, act: str, over: str = "d") -> list[Op]:
    """q neighbours as one vector through two matrices; the norm is of each, or of all at once (over "q d")."""
    made = norm.ops("x", "x", "merge") if over == "d" else []
    made += ops("tower", "y = columns(x[b n d]) -> [b o d q]")
    if over != "d":
        made += norm.ops("y", "y", "merge", "b o d q", "q d")
    return made + ops(
        "tower",
        "y = linear(y[b o d q], Wm1[q d f], Wm1_bias[f]) -> [b o f]",
        f"y = {act}(y[b o f]) -> [b o f]",
        "y = linear(y[b o f], Wm2[f j], Wm2_bias[j]) -> [b o j]",
    )


def merger(name: str, made: list[Op], width: int, out: int, squared: int, at: tuple[int, ...] = ()) -> Drawn:
    """A merger with the sizes of its axes."""
    return Drawn(name, tuple(made), {"d": width, "q": squared, "f": squared * width, "j": out}, at)


def start(c: Config, width: int, **changes: Any) -> tuple[Patches, Sight, int]:
    """Patches of two frames each, what is seen, and how many patches are merged."""
    c.rename(in_chans="in_channels")
    patch, merge = c.size("patch_size"), c.size("spatial_merge_size", 2)
    c.inert("spatial_patch_size", int(patch))
    c.skip("model_type", "rope_parameters", *HARMLESS)
    kernel = (c.size("temporal_patch_size", 2), patch, patch)
    made = Patches(c.size("in_channels", 3), kernel, width, **changes)
    return made, any_size(patch * merge, merge * merge), merge * merge


def tower(first: Patches, layers: tuple[Layer, ...], ends: list[Drawn], names: dict[str, str]) -> Tower:
    """A tower over as many patches as an image has."""
    axes = {"n": "patches", "o": "image_tokens"}
    return Tower(first, layers, tuple(ends), first.width, axes, names, called="vision")


def turned(c: Config, width: int) -> Attention:
    """Attention with the places of patches as rotations."""
    heads = c.size("num_heads", 16)
    each = c.divides("hidden_size", width, "num_heads", heads)
    return Attention(heads, heads, each, bias="qkvo", positions=Rope(style="axial"), sees="all")


def qwen2_visual(c: Config) -> tuple[Tower, Sight]:
    """Wang et al. 2024, arXiv:2409.12191: `embed_dim` wide, `hidden_size` what the text model is."""
    c.absent(depth=32, embed_dim=1280, hidden_size=3584, hidden_act="quick_gelu", num_heads=16, patch_size=14)
    width, out, norm = c.size("embed_dim"), c.size("hidden_size"), Norm("layernorm", "gain+bias", 1e-6)
    first, sight, squared = start(c, width, bias=False)
    heads = c.size("num_heads")
    attention = Attention(
        heads,
        heads,
        c.divides("embed_dim", width, "num_heads", heads),
        bias="qkvo",
        positions=Rope(style="axial"),
        sees="all",
    )
    mlp = Mlp(width * c.size("mlp_ratio", 4), gated=False, activation=activation(c), bias="ud")
    layers = (pre_norm(attention, mlp, norm),) * depth(c, key="depth")
    end = merger("merger", merged(norm, "gelu"), width, out, squared)
    return tower(first, layers, [end], QWEN2), sight


def qwen25_visual(c: Config) -> tuple[Tower, Sight]:
    """Bai et al. 2025, arXiv:2502.13923: RMSNorm, gates, and windows in all layers but a few."""
    c.absent(depth=32, hidden_size=3584, hidden_act="silu", intermediate_size=3420, num_heads=16, patch_size=14)
    c.absent(window_size=112, out_hidden_size=3584, fullatt_block_indexes=[7, 15, 23, 31])
    width, out, norm = c.size("hidden_size"), c.size("out_hidden_size"), Norm(eps=1e-6)
    first, sight, squared = start(c, width, bias=False)
    side = c.size("window_size") // (c.size("spatial_merge_size", 2) * c.size("patch_size"))
    if side < 1:
        c.fail("window_size", "at least spatial_merge_size x patch_size pixels")
    layers = depth(c, key="depth")
    full = c.sequence("fullatt_block_indexes", lambda v: type(v) is int and v >= 0, "indices of layers") or []
    attention = turned(c, width)
    near = Windowed(
        attention.heads,
        attention.heads,
        attention.head_width,
        bias="qkvo",
        positions=Rope(style="axial"),
        patches=side * side * squared,
    )
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c), bias="gud")

    def layer(kind: str) -> Layer:
        body: Body = attention if kind == "full" else near
        return pre_norm(body, mlp, norm, kind)

    kinds = ["full" if i in full else "windowed" for i in range(layers)]
    end = merger("merger", merged(norm, "gelu"), width, out, squared)
    return tower(first, by_kind(kinds, layer), [end], QWEN25), sight


def qwen3_visual(c: Config, deep: bool = True) -> tuple[Tower, Sight]:
    """Bai et al. 2025, arXiv:2511.21631: learned places, and layers on the way that are merged for the text as well."""
    c.absent(depth=27, hidden_size=1152, hidden_act="gelu_pytorch_tanh", intermediate_size=4304, num_heads=16)
    c.absent(patch_size=16, out_hidden_size=3584, num_position_embeddings=2304)
    width, out, norm = c.size("hidden_size"), c.size("out_hidden_size"), Norm("layernorm", "gain+bias", 1e-6)
    rows = c.size("num_position_embeddings")
    first, sight, squared = start(c, width, positions=rows)
    layers = depth(c, key="depth")
    ends = [merger("merger", merged(norm, "gelu"), width, out, squared)]
    places = c.sequence("deepstack_visual_indexes", lambda v: type(v) is int and v >= 0, "indices of layers")
    if deep:
        count = 3 if places is None and "deepstack_visual_indexes" not in c.data else len(places or [])
        every = begun(merged(norm, "gelu", "q d"), "deep.")
        ends += [merger("deepstack", every, width, out, squared, tuple(range(count)))] if count else []
    elif places:
        c.fail("deepstack_visual_indexes", "an empty list for this model_type")
    mlp = Mlp(c.size("intermediate_size"), gated=False, activation=activation(c), bias="ud")
    return tower(first, (pre_norm(turned(c, width), mlp, norm),) * layers, ends, QWEN3), sight


def older(c: Config, reader: Callable[[Config], tuple[Tower, Sight]], usual: str) -> Multimodal:
    """Files from before the text model had a config of its own hold its keys beside the tower's."""
    seen, sight = reader(c.child("vision_config"))
    c.skip(*HARMLESS)
    inner = c.child("text_config") if c.has("text_config") else c
    if inner.has("head_dim"):  # the text model has no use for one, where its layer elsewhere has
        inner.absent(**READ_AS[usual][1])
        inner.inert("head_dim", inner.size("hidden_size") // inner.size("num_attention_heads"))
    if c.has("text_config"):
        text = text_of(c, usual, tied=False, read_as=READ_AS, either=True)
    else:
        to, values = READ_AS[usual]
        c.absent(**values)
        text = read_inner(c, c, FAMILIES[to])
    return beside(c, text, [seen], sight)


@family("qwen2_vl", cls="Qwen2VLForConditionalGeneration", names={}, classes=CLASSES)
def qwen2_vl(c: Config) -> Multimodal:
    """Wang et al. 2024, arXiv:2409.12191: Qwen2 beside a vision transformer that sees images of any size."""
    return older(c, qwen2_visual, "qwen2_vl_text")


@family("qwen2_5_vl", cls="Qwen2_5_VLForConditionalGeneration", names={}, classes=CLASSES)
def qwen2_5_vl(c: Config) -> Multimodal:
    """Bai et al. 2025, arXiv:2502.13923: the same with windows."""
    return older(c, qwen25_visual, "qwen2_5_vl_text")


@family("qwen3_vl", cls="Qwen3VLForConditionalGeneration", names={}, classes=CLASSES)
def qwen3_vl(c: Config) -> Multimodal:
    """Qwen3 beside a vision transformer, three of whose layers are added to the text model's first ones."""
    seen, sight = qwen3_visual(c.child("vision_config"))
    return beside(c, text_of(c, "qwen3_vl_text", tied=False, read_as=READ_AS), [seen], sight)


@family("qwen3_vl_moe", cls="Qwen3VLMoeForConditionalGeneration", names={}, classes=CLASSES)
def qwen3_vl_moe(c: Config) -> Multimodal:
    """The same with experts."""
    seen, sight = qwen3_visual(c.child("vision_config"))
    return beside(c, text_of(c, "qwen3_vl_moe_text", tied=False, read_as=READ_AS), [seen], sight)


@family("qwen3_5", cls="Qwen3_5ForConditionalGeneration", names={}, classes=CLASSES)
def qwen3_5(c: Config) -> Multimodal:
    """Qwen3.5's gated delta rule beside the vision transformer of Qwen3-VL, merged once."""
    seen, sight = qwen3_visual(c.child("vision_config"), deep=False)
    return beside(c, text_of(c, "qwen3_5_text", tied=False), [seen], sight)


@family("qwen3_5_moe", cls="Qwen3_5MoeForConditionalGeneration", names={}, classes=CLASSES)
def qwen3_5_moe(c: Config) -> Multimodal:
    """The same with experts."""
    seen, sight = qwen3_visual(c.child("vision_config"), deep=False)
    return beside(c, text_of(c, "qwen3_5_moe_text", tied=False), [seen], sight)
