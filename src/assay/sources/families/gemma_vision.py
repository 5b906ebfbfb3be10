"""Gemma 4 with its vision transformer: sandwiched layers over patches of any number, means of three by three."""

from __future__ import annotations

from assay.blocks import Mlp, Norm, Rope
from assay.blocks.images import CrossedPatches, NormedAttention
from assay.blocks.sounds import Clamped, bounds
from assay.blocks.stacks import Body
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, sandwich, under
from assay.sources.families.gemma_audio import POSITIONS, hearing
from assay.sources.families.multimodal import CLASSES, beside, text_of
from assay.spec import Sight, ops

LAYER = under(
    "encoder.layers.{i}.",
    {
        "Ga": "input_layernorm.weight",
        **{f"W{letter}": f"self_attn.{letter}_proj.linear.weight" for letter in "qkvo"},
        "Gqn": "self_attn.q_norm.weight",
        "Gkn": "self_attn.k_norm.weight",
        "Gpa": "post_attention_layernorm.weight",
        "Gm": "pre_feedforward_layernorm.weight",
        "Wg": "mlp.gate_proj.linear.weight",
        "Wu": "mlp.up_proj.linear.weight",
        "Wd": "mlp.down_proj.linear.weight",
        "Gpm": "post_feedforward_layernorm.weight",
    },
)
MATRICES = ("Wq", "Wk", "Wv", "Wo", "Wg", "Wu", "Wd")
GEMMA4 = under(
    "model.vision_tower.",
    {
        "Wpatch": "patch_embedder.input_proj.weight[d (i y z)]",
        "E_row": "patch_embedder.position_embedding_table[+1 P d]",
        "E_column": "patch_embedder.position_embedding_table[+1 P d]",
        "Std": "~std_scale",
        "Std_bias": "~std_bias",
        **LAYER,
        **bounds(LAYER),
    },
) | {"Wp1": "model.embed_vision.embedding_projection.weight"}


@family("gemma4", cls="Gemma4ForConditionalGeneration", names={}, classes=CLASSES)
def gemma4(c: Config) -> Multimodal:
    """Google 2026: a vision transformer and an encoder of sound, where the config has them."""
    c.skip("boi_token_id", "eoi_token_id", "boa_token_id", "eoa_token_index")
    c.child("text_config").skip("vocab_size_per_layer_input")  # of a table that some of them lack
    text = text_of(c, "gemma4_text", tied=True)
    whole = c.has("vision_config")
    heard = []
    if c.has("audio_config"):
        heard = [hearing(c.child("audio_config"), text[0].width, not whole)]
        asked = "--sounds" if whole else "--images"
        c.notes.append(f"each of {asked} is a sound of half a minute, {POSITIONS} tokens")
    else:
        c.inert("audio_config")
    if not whole:
        c.skip("vision_soft_tokens_per_image")
        return beside(c, text, heard)
    seen = c.child("vision_config")
    tokens = c.size("vision_soft_tokens_per_image", seen.size("default_output_length", 280))
    tower, squared = _seeing(seen, text[0].width)
    says = "of the size that the config asks for"
    sight = Sight(tokens=int(tokens), patches=squared, says=says, sounds=bool(heard))
    return beside(c, text, [tower, *heard], sight)


def _seeing(seen: Config, out: int) -> tuple[Tower, int]:
    """The tower, and how many patches it makes one token of."""
    seen.absent(hidden_size=768, intermediate_size=3072, num_hidden_layers=16, num_attention_heads=12)
    seen.skip("model_type", "rope_parameters", "max_position_embeddings", "attention_bias", "global_head_dim")
    seen.skip("image_seq_length", "video_seq_length")
    width, heads, eps = seen.size("hidden_size"), seen.size("num_attention_heads"), seen.positive("rms_norm_eps", 1e-6)
    groups = seen.size("num_key_value_heads", 12)
    seen.divides("num_attention_heads", heads, "num_key_value_heads", groups)
    norm, patch = Norm(eps=eps), seen.size("patch_size", 16)
    attention = NormedAttention(
        heads, groups, seen.size("head_dim", 64), qk_norm=norm, positions=Rope(style="axial"), scale=1.0, sees="all"
    )
    act = activation(seen, "hidden_activation", "gelu_pytorch_tanh")
    bodies: list[Body] = [attention, Mlp(seen.size("intermediate_size"), activation=act)]
    if seen.flag("use_clipped_linears", False):
        bodies = [Clamped(body, MATRICES) for body in bodies]
    layer = sandwich(bodies[0], bodies[1], norm)
    first = CrossedPatches(3, (patch, patch), width, bias=False, positions=seen.size("position_embedding_size", 10240))
    side = seen.size("pooling_kernel_size", 3)
    made = ops("tower", "y = columns(x[b n d]) -> [b o d q]", "y = mean(y[b o d q]) -> [b o d]")
    if seen.flag("standardize", False):
        made += ops("tower", "y = add(y[b o d], Std_bias[d]) -> [b o d]", "y = mul(y[b o d], Std[d]) -> [b o d]")
    made += Norm(affine="none", eps=eps).ops("y", "y", "projector", "b o d")
    made += ops("tower", "y = linear(y[b o d], Wp1[d j]) -> [b o j]")
    end = Drawn("projector", tuple(made), {"d": width, "q": side * side, "j": out})
    axes = {"n": "patches", "o": "image_tokens"}
    return Tower(first, (layer,) * depth(seen), (end,), width, axes, GEMMA4, called="vision"), side * side


@family("gemma4_unified", cls="Gemma4UnifiedForConditionalGeneration", names={}, classes=CLASSES)
def gemma4_unified(c: Config) -> Multimodal:
    """Google 2026: images and sounds without towers of their own, which no config here has."""
    c.inert("audio_config")
    c.inert("vision_config")
    c.skip("boi_token_id", "eoi_token_id", "boa_token_id", "eoa_token_index")
    return beside(c, text_of(c, "gemma4_unified_text", tied=True), [])
