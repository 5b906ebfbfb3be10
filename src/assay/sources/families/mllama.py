"""Llama 3.2 Vision: some layers of the text model attend to the tiles of images and to nothing else, and are skipped
where there are none (Llama 3 Team 2024, 7).
"""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Embedding, Head, Layer, Mlp, Norm
from assay.blocks.images import CROSS, ImageAttention, LookingDecoder, TanhGated
from assay.blocks.stacks import Branch, Step
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import (
    CAUSAL,
    Class,
    activation,
    by_kind,
    depth,
    family,
    heads,
    no_own_width,
    pre_norm,
    rms,
    rope,
    under,
)
from assay.sources.families.dense import LLAMA
from assay.sources.families.multimodal import base, moved
from assay.sources.families.vision import square
from assay.spec import Sight, ops

SELF = "self-attention"
GENERATION = "image-text"
ASPECTS = 8  # ratios of the sides, where the config lists none
INDICES = [3, 7, 15, 23, 30]

TEXT = LLAMA | under(
    "model.layers.{i}.",
    {
        **{f"cross.W{letter}": f"cross_attn.{letter}_proj.weight" for letter in "qkvo"},
        "Gcqn": "cross_attn.q_norm.weight",
        "Gckn": "cross_attn.k_norm.weight",
        "Gc": "input_layernorm.weight",
        "Xc": "cross_attn_attn_gate[1]",
        "Xm": "cross_attn_mlp_gate[1]",
    },
)
_LAYER = {
    "Ga": "input_layernorm.weight",
    **{f"W{letter}": f"self_attn.{letter}_proj.weight" for letter in "qkvo"},
    "Gm": "post_attention_layernorm.weight",
    "Wu": "mlp.fc1.weight",
    "Wd": "mlp.fc2.weight",
    "Xa": "gate_attn[1]",
    "Xm": "gate_ffn[1]",
}
VISION = under(
    "model.vision_model.",
    {
        "Wpatch": "patch_embedding.weight[d i y z]",
        "Cls": "class_embedding",
        "Pre": "pre_tile_positional_embedding.embedding.weight[A tiled]",
        "Xpre": "pre_tile_positional_embedding.gate[1]",
        "E_position": "gated_positional_embedding.embedding",
        "Xposition": "gated_positional_embedding.gate[1]",
        "Tiles": "gated_positional_embedding.tile_embedding.weight[A placed]",
        "Ge": "layernorm_pre.weight",
        "Gf": "layernorm_post.weight",
        "Post": "post_tile_positional_embedding.embedding.weight[A tiled]",
        "Xpost": "post_tile_positional_embedding.gate[1]",
    },
)
NEAR = VISION | under("model.vision_model.transformer.layers.{i}.", _LAYER)
FAR = (
    VISION
    | under("model.vision_model.global_transformer.layers.{i}.", _LAYER)
    | {"Wp1": "model.multi_modal_projector.weight[j (s d)]", "Wp1_bias": "model.multi_modal_projector.bias"}
)


def text(c: Config, seen: int) -> LookingDecoder:
    """Llama's layers, and between them those that look at images, of `seen` tokens each."""
    c.absent(vocab_size=128256, hidden_size=4096, num_hidden_layers=40, num_attention_heads=32)
    c.absent(num_key_value_heads=8, intermediate_size=14336, max_position_embeddings=131072, rms_norm_eps=1e-5)
    c.absent(cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38])
    c.skip("model_type")
    width, h, norm, rows = c.size("hidden_size"), heads(c, c.size("hidden_size")), rms(c), c.size("vocab_size")
    listed = c.sequence("cross_attention_layers", lambda v: type(v) is int and v >= 0, "indices of layers") or []
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c))
    no_own_width(c, width, h)
    own = Attention(*h, positions=rope(c, h.width, 5e5))
    cross = ImageAttention(*h, norm=norm)

    def layer(kind: str) -> Layer:
        if kind == SELF:
            return pre_norm(own, mlp, norm, kind)
        return Layer((Step((Branch(TanhGated(cross), norm),)), Step((Branch(TanhGated(mlp), norm),))), kind)

    kinds = [CROSS if i in listed else SELF for i in range(depth(c))]
    tied = c.flag("tie_word_embeddings", False)
    if tied:
        c.fail("tie_word_embeddings", "false: the head lacks the rows of images")
    return LookingDecoder(
        Embedding(rows + 8, width),  # images have tokens beyond the vocabulary
        by_kind(kinds, layer),
        Head(rows, width, norm=norm),
        trained=c.maybe("max_position_embeddings"),
        tokens=seen,
    )


def start(c: Config, width: int, kernel: tuple[int, int], tiles: int, patches: int, norm: Norm) -> Drawn:
    """Tiles as patches, with what tells tiles and patches apart."""
    aspects = len(c.sequence("supported_aspect_ratios", lambda v: isinstance(v, list), "pairs") or [0] * ASPECTS) + 1
    made = ops(
        "embedding",
        "x = linear(pixels[b p i y z], Wpatch[i y z d]) -> [b p d]",
        "e = gather(tile[b p], Pre[R d]) -> [b p d]",
        "g = tanh(Xpre[]) -> []",
        "e = mul(e[b p d], g[]) -> [b p d]",
        "x = add(x[b p d], e[b p d]) -> [b p d]",
        "first = repeat(Cls[d]) -> [b tile d]",
        "x = concat(first[b tile d], x[b p d]) -> [b s d]",
        "e = gather(at[s], E_position[P d]) -> [s d]",
        "g = tanh(Xposition[]) -> []",
        "e = mul(e[s d], g[]) -> [s d]",
        "x = add(x[b s d], e[s d]) -> [b s d]",
        "e = gather(tile[b s], Tiles[T d]) -> [b s d]",
        "e = mul(e[b s d], g[]) -> [b s d]",
        "x = add(x[b s d], e[b s d]) -> [b s d]",
    )
    made += norm.ops("x", "x", "e", "b s d")
    made += ops("embedding", "x = slice(x[b s d]) -> [b n d]")  # filled up to a multiple of eight
    rows = patches + 1
    sizes = {"d": width, "i": c.size("num_channels", 3), "y": kernel[0], "z": kernel[1], "p": tiles * patches}
    sizes |= {"tile": tiles, "s": tiles * rows, "P": rows, "R": aspects * tiles, "T": aspects * tiles * rows}
    sizes |= {"A": aspects, "tiled": tiles * width, "placed": tiles * rows * width}
    return Drawn("embedding", tuple(made), sizes)


def vision(c: Config, out: int) -> tuple[tuple[Tower, Tower], int]:
    """Layers, a norm, layers with gates, and a matrix that reads the last and some on the way; tokens of an image."""
    c.absent(hidden_size=1280, num_hidden_layers=32, num_global_layers=8, attention_heads=16, intermediate_size=5120)
    c.absent(image_size=448, patch_size=14, max_num_tiles=4, intermediate_layers_indices=INDICES, hidden_act="gelu")
    c.skip("model_type", "tie_word_embeddings")
    width, h, norm = c.size("hidden_size"), c.size("attention_heads"), Norm("layernorm", "gain+bias", 1e-5)
    attention = Attention(h, h, c.divides("hidden_size", width, "attention_heads", h), sees="all")
    mlp = Mlp(c.size("intermediate_size"), gated=False, activation=activation(c), bias="ud")
    patches, kernel = square(c)
    tiles, rows = int(c.size("max_num_tiles")), patches + 1
    filled, tokens = tiles * (rows + -rows % 8), tiles * rows
    first = start(c, width, kernel, tiles, patches, norm)
    near = Tower(first, (pre_norm(attention, mlp, norm),) * depth(c), (), width, {"n": filled}, NEAR, called="vision")
    listed = c.sequence("intermediate_layers_indices", lambda v: type(v) is int and v >= 0, "indices of layers") or []
    sources = 1 + len(listed)
    given = c.size("vision_output_dim", sources * width)
    if given != sources * width:
        c.fail("vision_output_dim", f"{sources} x hidden_size, {sources * width}")
    after = (
        *norm.ops("x", "x", "f"),
        *ops(
            "embedding",
            "e = gather(tile[b n], Post[R d]) -> [b n d]",
            "g = tanh(Xpost[]) -> []",
            "e = mul(e[b n d], g[]) -> [b n d]",
            "x = add(x[b n d], e[b n d]) -> [b n d]",
        ),
    )
    middle = Drawn("embedding", after, {key: first.axes[key] for key in ("d", "R", "A", "tiled")})
    lines = ops(
        "tower",
        "y = slice(x[b n d]) -> [b o d]",
        "y = repeat(y[b o d]) -> [b o s d]",
        "y = linear(y[b o s d], Wp1[s d j], Wp1_bias[j]) -> [b o j]",
    )
    end = Drawn("projector", tuple(lines), {"d": width, "s": sources, "j": out})
    gated = (pre_norm(TanhGated(attention), TanhGated(mlp), norm),) * depth(c, key="num_global_layers")
    far = Tower(middle, gated, (end,), width, {"n": filled, "o": tokens}, FAR, called="vision global")
    return (near, far), tokens


def both(c: Config, made: Multimodal) -> Multimodal:
    """The text model and the tower."""
    return replace(made, names={**moved(TEXT)})


def alone(c: Config, made: Multimodal) -> Decoder:
    """The text model by itself, where no layer finds an image to look at."""
    return replace(made.text, names=TEXT)


@family(
    "mllama",
    cls="MllamaForCausalLM",
    names={},
    classes=(
        Class(CAUSAL, "ForCausalLM", alone),
        Class(GENERATION, "ForConditionalGeneration", both),
        Class("base", "Model", base),
    ),
)
def mllama(c: Config) -> Multimodal:
    """Text alone unless the class says more: what a config names that has no class is the causal language model."""
    inner, seen = c.child("text_config"), c.child("vision_config")
    towers, tokens = vision(seen, inner.size("hidden_size", 4096))
    c.inert("tie_word_embeddings", False)
    made = text(inner, tokens)
    parts = tuple(replace(tower, part="tower") for tower in towers)
    return Multimodal(made, parts, Sight(), moved(TEXT))
