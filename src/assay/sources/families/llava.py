"""A finished vision transformer before a finished text model, with a projector between them (Liu et al. 2023, LLaVA).

Gemma 3, PaliGemma and Mistral 3 differ from LLaVA in what the projector does to neighbouring patches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.blocks import Attention, Mlp, Norm, Rope
from assay.blocks.towers import Drawn, Multimodal, Patches, Tower, Watched
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.clip import AS_MADE, VISION, alone, clip_vision, siglip_vision
from assay.sources.families.common import ACTIVATIONS, activation, depth, family, pre_norm, under
from assay.sources.families.multimodal import CLASSES, any_size, beside, placed, text_of
from assay.sources.families.vision import square
from assay.spec import Op, Sight, ops

PLACE = "model.vision_tower."
PIXTRAL = {
    "Wpatch": "patch_conv.weight[d i y z]",
    "Ge": "ln_pre.weight",
    **under(
        "transformer.layers.{i}.",
        {
            "Ga": "attention_norm.weight",
            **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkvo"},
            "Gm": "ffn_norm.weight",
            "Wg": "feed_forward.gate_proj.weight",
            "Wu": "feed_forward.up_proj.weight",
            "Wd": "feed_forward.down_proj.weight",
        },
    ),
}
TWO = under(
    "model.multi_modal_projector.",
    {
        "Wp1": "linear_1.weight",
        "Wp1_bias": "linear_1.bias",
        "Wp2": "linear_2.weight",
        "Gprojector": "projector_layernorm.weight",
    },
)
# the vision transformers of the class's own default
CLIP_LARGE: dict[str, Any] = {"hidden_size": 1024, "intermediate_size": 4096, "patch_size": 14, "image_size": 336}
CLIP_LARGE |= {"num_hidden_layers": 24, "num_attention_heads": 16}
SIGLIP_SO: dict[str, Any] = {"hidden_size": 1152, "intermediate_size": 4096, "patch_size": 14, "image_size": 224}
SIGLIP_SO |= {"num_hidden_layers": 27, "num_attention_heads": 16, "vision_use_head": False}
PIXTRAL_LARGE: dict[str, Any] = {"hidden_size": 1024, "intermediate_size": 4096, "patch_size": 14, "image_size": 1540}
PIXTRAL_LARGE |= {"num_hidden_layers": 24, "num_attention_heads": 16}
MISTRAL: dict[str, Any] = {"head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40}
MISTRAL |= {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 131072, "sliding_window": None}
MISTRAL |= {"rope_theta": 1e9, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072}
GEMMA: dict[str, Any] = {"hidden_size": 2048, "num_hidden_layers": 18, "intermediate_size": 16384}
GEMMA |= {"num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 257152}


def seen(c: Config, usual: str, whole: Mapping[str, Any], place: str = PLACE) -> Tower:
    """The vision transformer under `vision_config`, of one of the types that stand by themselves too."""
    inner = c.child("vision_config")
    if not c.has("vision_config"):
        inner.absent(**whole)
    inner.skip("vocab_size")
    kind = inner.word("model_type", usual, ("clip_vision_model", "siglip_vision_model", "pixtral"))
    if kind == "pixtral":
        return replace(pixtral_vision(inner), names=under(place, PIXTRAL))
    made = clip_vision(inner) if kind == "clip_vision_model" else siglip_vision(inner)
    return replace(made, names=under(place, VISION))


def pixtral_vision(c: Config) -> Tower:
    """Agrawal et al. 2024, arXiv:2410.07073: patches of any number, their rows and columns as rotations."""
    c.absent(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, patch_size=16)
    c.skip("rope_parameters", "rope_theta", "image_size")
    width, heads, norm, patch = (
        c.size("hidden_size"),
        c.size("num_attention_heads"),
        Norm(eps=1e-5),
        c.size("patch_size"),
    )
    each = c.divides("hidden_size", width, "num_attention_heads", heads)
    c.inert("head_dim", each)
    attention = Attention(heads, heads, each, positions=Rope(style="axial"), sees="all")
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c, default="gelu"))
    first = Patches(c.size("num_channels", 3), (patch, patch), width, bias=False, norm=norm)
    layers = (pre_norm(attention, mlp, norm),) * depth(c)
    return Tower(first, layers, (), width, {"n": "patches", "o": "image_tokens"}, called="vision")


@family("pixtral", cls="PixtralVisionModel", names=PIXTRAL, classes=(AS_MADE,))
def pixtral(c: Config) -> Tower:
    """The vision transformer by itself, for an image of the largest size that the config gives."""
    patches, _ = square(c, 1024, 16)
    c.notes.append("an image is as large as image_size says; a smaller one has fewer patches")
    return alone(replace(pixtral_vision(c), axes={"n": patches}), PIXTRAL)


def features(c: Config, usual: int | list[int]) -> int:
    """How many layers' outputs the projector reads: `vision_feature_layer` is one index, or a list of them."""
    value = c.data.get("vision_feature_layer", usual)
    c.skip("vision_feature_layer")
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(type(one) is int for one in listed):
        c.fail("vision_feature_layer", "an integer, or a list of them")
    return len(listed)


def kept(c: Config, tower: Tower, usual: str) -> tuple[Tower, str]:
    """The tower with the number of its positions that are projected, and the op that drops the first."""
    strategy = c.word("vision_feature_select_strategy", usual, ("default", "full"))
    length = tower.axes["n"]
    if isinstance(length, str):
        if strategy == "default":
            c.fail("vision_feature_select_strategy", "full where images may have any size")
        return tower, "y = rename(x[b n d]) -> [b o d]"
    left = int(length) - (1 if strategy == "default" else 0)
    at = f", at={int(length) - left}" if left < int(length) else ""
    return replace(tower, axes={**tower.axes, "o": left}), f"y = slice(x[b n d]{at}) -> [b o d]"


def watched(tower: Tower, drop: str, index: int | list[int]) -> tuple[Tower, str]:
    """The tower with the layer marked whose output is projected, and the op that reads it: not always the last."""
    (at,) = index if isinstance(index, list) else [index]
    layer = tower.depth + at if at < 0 else at - 1
    normed = any(op.name == "x" for end in tower.ends for op in end.ops())
    if not 0 <= layer < tower.depth or (layer == tower.depth - 1 and not normed):
        return tower, drop
    layers = list(tower.layers)
    layers[layer] = Watched(layers[layer].steps, "layer, projected")
    return replace(tower, layers=tuple(layers)), drop.replace("x[", "seen[")


def two(c: Config, width: int, out: int, many: int, drop: str, norm: Norm | None = None, bias: bool = True) -> Drawn:
    """Two matrices around an activation; `many` layers' outputs stand beside each other."""
    act = ACTIVATIONS[c.word("projector_hidden_act", "gelu", ACTIVATIONS)]
    one, other = (", Wp1_bias[j]", ", Wp2_bias[j]") if bias else ("", "")
    made: list[Op] = ops("tower", drop)
    if many > 1:
        made += ops("tower", "y = repeat(y[b o d], of=layers) -> [b o q d]")  # each of another layer
        if norm is not None:
            made += norm.ops("y", "y", "projector", "b o q d", "q d")
    weight = "q d" if many > 1 else "d"
    made += ops(
        "tower",
        f"y = linear(y[b o {weight}], Wp1[{weight} j]{one}) -> [b o j]",
        f"y = {act}(y[b o j]) -> [b o j]",
        f"y = linear(y[b o j], Wp2[j k]{other.replace('[j]', '[k]')}) -> [b o k]",
    )
    return Drawn("projector", tuple(made), {"d": width, "q": many, "j": out, "k": out})


def llava_like(
    c: Config, usual: str, whole: Mapping[str, Any], text: str, strategy: str = "default", either: bool = True
) -> Multimodal:
    """A tower, two matrices, a text model."""
    index = c.data.get("vision_feature_layer", -2)
    many = features(c, -2)
    tower, drop = watched(*kept(c, seen(c, usual, whole), strategy), index if many == 1 else -1)
    read = text_of(c, text, tied=False, either=either)
    bias = c.flag("multimodal_projector_bias", True)
    made = replace(tower, ends=(*tower.ends, two(c, tower.width, read[0].width, many, drop, bias=bias)))
    made = replace(made, names={**(made.names or {}), **TWO})
    c.skip("image_seq_length")
    return beside(c, read, [made], sight_of(c, made))


def sight_of(c: Config, tower: Tower, merged: int = 1) -> Sight:
    """What is seen: images of the one size, or of any."""
    if tower.axes["n"] == "patches":
        side = c.child("vision_config").size("patch_size", 16)
        return any_size(side * merged, merged * merged)
    return Sight()


@family("llava", cls="LlavaForConditionalGeneration", names={}, classes=CLASSES)
def llava(c: Config) -> Multimodal:
    """Liu et al. 2023, arXiv:2304.08485."""
    made = llava_like(c, "clip_vision_model", CLIP_LARGE, "llama")
    return replace(made, sight=replace(made.sight, token=placed(c, 32000).token))


CROPS = "an image is cut into several of the tower's size, and each is one of --images"


@family("llava_next", cls="LlavaNextForConditionalGeneration", names={}, classes=CLASSES)
def llava_next(c: Config) -> Multimodal:
    """Liu et al. 2024, LLaVA-NeXT: large images as several; a learned token ends a row of patches."""
    c.skip("image_grid_pinpoints", "use_image_newline_parameter")
    made = llava_like(c, "clip_vision_model", CLIP_LARGE, "llama", either=False)
    c.notes.append(CROPS)
    return ended(made)


@family("llava_onevision", cls="LlavaOnevisionForConditionalGeneration", names={}, classes=CLASSES)
def llava_onevision(c: Config) -> Multimodal:
    """Li et al. 2024, arXiv:2408.03326."""
    c.skip("image_grid_pinpoints", "vision_aspect_ratio", "use_image_newline_parameter", "image_aspect_ratio")
    whole = {**SIGLIP_SO, "intermediate_size": 4304, "image_size": 384, "num_hidden_layers": 26}
    made = llava_like(c, "siglip_vision_model", whole, "qwen2", "full")
    c.notes.append(CROPS)
    return ended(made)


def ended(made: Multimodal) -> Multimodal:
    """The same with a learned token of the text model's width."""
    (tower,) = made.towers
    newline = Drawn("newline", tuple(ops("tower", "y = view(Newline[d]) -> [d]")), {"d": made.width})
    names = {**(tower.names or {}), "Newline": "model.image_newline"}
    return replace(made, towers=(replace(tower, ends=(*tower.ends, newline), names=names),))


@family("vipllava", cls="VipLlavaForConditionalGeneration", names={}, classes=CLASSES)
def vipllava(c: Config) -> Multimodal:
    """Cai et al. 2023, arXiv:2312.00784: the outputs of several layers, normed together."""
    tower = seen(c, "clip_vision_model", CLIP_LARGE)
    tower = replace(tower, axes={**tower.axes, "o": int(tower.axes["n"]) - 1})
    drop = "y = slice(x[b n d], at=1) -> [b o d]"
    many = features(c, [-2, -5, -8, -11, 6])
    norm = Norm("layernorm", "gain+bias", c.positive("projector_layernorm_eps", 1e-5))
    read = text_of(c, "llama", tied=False)
    c.skip("image_seq_length")
    if many < 2:
        c.fail("vision_feature_layer", "a list of at least 2 indices for this model_type")
    made = replace(tower, ends=(*tower.ends, two(c, tower.width, read[0].width, many, drop, norm)))
    return beside(c, read, [replace(made, names={**(made.names or {}), **TWO})])


@family("paligemma", cls="PaliGemmaForConditionalGeneration", names={}, classes=CLASSES)
def paligemma(c: Config) -> Multimodal:
    """Beyer et al. 2024, arXiv:2407.07726: one matrix; the text model sees the whole prompt at once."""
    c.skip("vocab_size", "hidden_size", "num_hidden_layers", "_vocab_size")
    tower = seen(c, "siglip_vision_model", SIGLIP_SO)
    c.child("vision_config").skip("num_image_tokens", "projector_hidden_act")
    inner = c.child("text_config")
    inner.skip("use_bidirectional_attention", "num_image_tokens")
    inner.data = {key: value for key, value in inner.data.items() if key != "use_bidirectional_attention"}
    read = text_of(c, "gemma", tied=True, whole=GEMMA)
    out = c.size("projection_dim", 2048)
    if out != read[0].width:
        c.fail("projection_dim", f"{inner.path('hidden_size')}, {read[0].width}")
    lines = ops("tower", "y = linear(x[b n d], Wp1[d j], Wp1_bias[j]) -> [b n j]")
    names = {**(tower.names or {}), "Wp1": "model.multi_modal_projector.linear.weight"}
    end = Drawn("projector", tuple(lines), {"d": tower.width, "j": out})
    return beside(c, read, [replace(tower, ends=(*tower.ends, end), names=names)])


@family("gemma3", cls="Gemma3ForConditionalGeneration", names={}, classes=CLASSES)
def gemma3(c: Config) -> Multimodal:
    """Gemma Team 2025, arXiv:2503.19786: the mean of neighbouring patches, normed, through one matrix."""
    tower = seen(c, "siglip_vision_model", {})
    c.skip("boi_token_index", "eoi_token_index", "image_token_index")
    read = text_of(c, "gemma3_text", tied=True)
    return beside(c, read, [averaged(c, tower, read[0].width)])


def averaged(c: Config, tower: Tower, width: int, at: str = "model.multi_modal_projector.") -> Tower:
    """A tower behind which neighbouring patches are averaged, normed and projected to the width of the text."""
    tokens = c.size("mm_tokens_per_image", 256)
    rows = int(int(tower.axes["n"]) ** 0.5)
    side = rows // max(1, int(tokens**0.5))
    if side < 1:
        c.notes.append(f"an image has {rows * rows} patches, fewer than the {int(tokens)} tokens it is to make")
        side = 1
    out = (rows // side) ** 2
    norm = Norm(eps=c.child("vision_config").positive("layer_norm_eps", 1e-6), unit_offset=True)
    lines = [
        *ops("tower", "y = columns(x[b n d], order=squares) -> [b o d q]", "y = mean(y[b o d q]) -> [b o d]"),
        *norm.ops("y", "y", "projector", "b o d"),
        *ops("tower", "y = linear(y[b o d], Wp1[d j]) -> [b o j]"),
    ]
    names = under(at, {"Wp1": "mm_input_projection_weight[d j]", "Gprojector": "mm_soft_emb_norm.weight"})
    end = Drawn("projector", tuple(lines), {"d": tower.width, "q": side * side, "j": width})
    together = {**(tower.names or {}), **names}
    return replace(tower, axes={**tower.axes, "o": out}, ends=(*tower.ends, end), names=together)


@family("mistral3", cls="Mistral3ForConditionalGeneration", names={}, classes=CLASSES)
def mistral3(c: Config) -> Multimodal:
    """Mistral AI 2025: neighbouring patches merged by one matrix, then projected by two."""
    tower = seen(c, "pixtral", PIXTRAL_LARGE)
    if tower.axes["n"] != "patches":
        c.child("vision_config").fail("model_type", "pixtral for this model_type")
    read = text_of(c, "mistral", tied=True, whole=MISTRAL)
    inner, merge = c.child("text_config"), c.size("spatial_merge_size", 2)
    many = features(c, -1)
    if many != 1:
        c.fail("vision_feature_layer", "one index")
    norm = Norm(eps=inner.positive("rms_norm_eps", 1e-6))
    lines = [
        *norm.ops("x", "x", "projector"),
        *ops(
            "tower",
            "y = columns(x[b n d]) -> [b o d q]",
            "y = linear(y[b o d q], Wmerge[d q i]) -> [b o i]",
        ),
    ]
    end = two(
        c,
        tower.width,
        read[0].width,
        1,
        "y = view(y[b o d]) -> [b o d]",
        bias=c.flag("multimodal_projector_bias", False),
    )
    merged = Drawn("merger", tuple(lines), {"d": tower.width, "q": merge * merge, "i": tower.width})
    names = {**TWO, "Gprojector": "model.multi_modal_projector.norm.weight"}
    names["Wmerge"] = "model.multi_modal_projector.patch_merger.merging_layer.weight[i (d q)]"
    made = replace(tower, ends=(merged, end), names={**(tower.names or {}), **names})
    return beside(c, read, [made], sight_of(c, made, merge))
