"""SigLIP's encoder, squares of patches as one vector, two matrices, a text model: Aya Vision, Command A, LFM2-VL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.blocks import Decoder, Head, Norm
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.clip import VISION2, siglip2_vision
from assay.sources.families.common import ACTIVATIONS, Names, family, under
from assay.sources.families.llava import CROPS, PLACE, features, kept, seen, watched
from assay.sources.families.multimodal import CLASSES, beside, placed, text_of
from assay.sources.families.vision import patches_of
from assay.spec import Op, Sight, ops

GATED = under(
    "model.multi_modal_projector.",
    {
        "Gmerge": "layernorm.weight",
        "Wup": "linear_1.weight[+j (q d)]",
        "Wup_bias": "linear_1.bias[+j]",
        "Wgate": "linear_1.weight[+j (q d)]",
        "Wgate_bias": "linear_1.bias[+j]",
        "Wp2": "linear_2.weight",
    },
)
PLAIN = under(
    "model.multi_modal_projector.",
    {"Gmerge": "layer_norm.weight", "Wp1": "linear_1.weight[j (q d)]", "Wp2": "linear_2.weight"},
)
AYA: dict[str, Any] = {"hidden_size": 1152, "intermediate_size": 4304, "patch_size": 14, "image_size": 384}
AYA |= {"num_hidden_layers": 26, "num_attention_heads": 14, "vision_use_head": False}
COMMAND: dict[str, Any] = {"hidden_size": 1152, "intermediate_size": 3072, "image_size": 512}
COMMAND |= {"num_hidden_layers": 27, "num_attention_heads": 12}
# how an image is cut into tiles, and what a tile may be
TILES = """
    do_image_splitting encoder_patch_size max_num_patches max_pixels_tolerance max_tiles min_image_tokens min_tiles
    tile_size use_image_special_tokens use_thumbnail vision_feature_layer vision_feature_select_strategy
    image_token_index
""".split()


def merged(norm: Norm | None, made: list[Op], drop: str = "y = rename(x[b n d]) -> [b p d]") -> list[Op]:
    """Squares of patches side by side, normed where there is a norm, and what is made of them."""
    start = ops("tower", drop, "y = columns(y[b p d], order=squares) -> [b o d q]")
    return [*start, *(norm.ops("y", "y", "merge", "b o d q", "q d") if norm is not None else []), *made]


def unscaled(text: Decoder, names: Names) -> tuple[Decoder, Names]:
    """The text model whose logits are as the head makes them: within these classes they are not scaled."""
    head = text.head
    return (replace(text, head=replace(head, scale=None)) if isinstance(head, Head) else text), names


def gated(c: Config, tower: Tower, whole: int | None, norm: Norm | None, drop: str) -> Multimodal:
    """Two matrices around a gate; the first one's columns are both what is gated and the gate."""
    c.inert("alignment_activation_fn", "SwiGLU")
    text = unscaled(*text_of(c, "cohere2", tied=True))
    out = text[0].width
    inner, side = c.size("alignment_intermediate_size", whole or out), c.size("downsample_factor", 2)
    if inner % 2:
        c.fail("alignment_intermediate_size", "an even integer")
    patches = patches_of(tower, "o")
    rows = int(patches**0.5)
    if rows % side:
        c.notes.append(f"{rows} rows of patches are no multiple of {side}: such a tower has weights and cannot run")
    if rows < side:
        c.fail("downsample_factor", f"at most {rows}, the rows of patches")
    lines = ops(
        "tower",
        "u = linear(y[b o d q], Wup[d q j], Wup_bias[j]) -> [b o j]",
        "z = linear(y[b o d q], Wgate[d q j], Wgate_bias[j]) -> [b o j]",
        "z = silu(z[b o j]) -> [b o j]",
        "y = mul(u[b o j], z[b o j]) -> [b o j]",
        "y = linear(y[b o j], Wp2[j k], Wp2_bias[k]) -> [b o k]",
    )
    sizes = {"d": tower.width, "p": patches, "q": side * side, "j": inner // 2, "k": out}
    end = Drawn("projector", tuple(merged(norm, lines, drop)), sizes)
    axes = {**tower.axes, "o": (rows // side) ** 2}
    c.notes.append(CROPS)
    made = replace(tower, ends=(*tower.ends, end), axes=axes, names={**(tower.names or {}), **GATED})
    return beside(c, text, [made], placed(c, 255036))


def siglip(c: Config, whole: Mapping[str, Any]) -> Tower:
    """The tower, of whatever type whose images are all of one size."""
    tower = seen(c, "siglip_vision_model", whole)
    if tower.axes["n"] == "patches":
        c.child("vision_config").fail("model_type", "a tower whose images are all of one size")
    return tower


@family("aya_vision", cls="AyaVisionForConditionalGeneration", names={}, classes=CLASSES)
def aya_vision(c: Config) -> Multimodal:
    """Dash et al. 2025, arXiv:2505.08751."""
    if features(c, -1) != 1:
        c.fail("vision_feature_layer", "one index")
    c.skip("max_splits_per_img", "image_token_index")
    norm = Norm("layernorm", "gain+bias", c.positive("adapter_layer_norm_eps", 1e-6))
    tower, drop = watched(*kept(c, siglip(c, AYA), "full"), c.data.get("vision_feature_layer", -1))
    return gated(c, tower, None, norm, drop.replace("[b o d]", "[b p d]"))


@family("cohere2_vision", cls="Cohere2VisionForConditionalGeneration", names={}, classes=CLASSES)
def cohere2_vision(c: Config) -> Multimodal:
    """Cohere 2025, Command A Vision: Aya's without a norm."""
    tower = siglip(c, COMMAND)
    tower = replace(tower, axes={**tower.axes, "o": tower.axes["n"]})
    return gated(c, tower, 36864, None, "y = rename(x[b n d]) -> [b p d]")


@family("lfm2_vl", cls="Lfm2VlForConditionalGeneration", names={}, classes=CLASSES, harmless=TILES)
def lfm2_vl(c: Config) -> Multimodal:
    """Amini et al. 2025, arXiv:2511.23404: SigLIP 2's encoder over images of any shape."""
    c.rename(tie_embedding="tie_word_embeddings")
    inner = c.child("vision_config")
    inner.word("model_type", "siglip2_vision_model", ("siglip2_vision_model",))
    tower = siglip2_vision(inner)
    text = text_of(c, "lfm2", tied=True)
    out, side = text[0].width, c.size("downsample_factor", 2)
    act = ACTIVATIONS[c.word("projector_hidden_act", "gelu", ACTIVATIONS)]
    one, other = (", Wp1_bias[j]", ", Wp2_bias[k]") if c.flag("projector_bias", True) else ("", "")
    lines = ops(
        "tower",
        f"y = linear(y[b o d q], Wp1[d q j]{one}) -> [b o j]",
        f"y = {act}(y[b o j]) -> [b o j]",
        f"y = linear(y[b o j], Wp2[j k]{other}) -> [b o k]",
    )
    norm = Norm("layernorm", "gain+bias", 1e-5) if c.flag("projector_use_layernorm", True) else None
    sizes = {"d": tower.width, "q": side * side, "j": c.size("projector_hidden_size", 2560), "k": out}
    end = Drawn("projector", tuple(merged(norm, lines)), sizes)
    axes = {"n": "patches", "p": "patches", "o": "image_tokens"}
    made = replace(tower, ends=(*tower.ends, end), axes=axes, names=under(PLACE, VISION2) | PLAIN)
    c.notes.append(CROPS)
    tokens = int(c.size("max_image_tokens", 256))
    return beside(c, text, [made], Sight(tokens=tokens, patches=side * side, says="the most that a tile may make"))
