"""Idefics: Llama's layers with gated ones between them that look at images, CLIP's encoder, a perceiver or none."""

from __future__ import annotations

from assay.blocks import Attention, Branch, Mlp, Norm, Step
from assay.blocks.attention import CrossAttention
from assay.blocks.flamingo import ChannelGated, Flamingo, LookingLayer, NormedResampling, WiderEmbedding, WiderHead
from assay.blocks.images import CROSS, ImageAttention, TanhGated
from assay.blocks.towers import Drawn, Multimodal, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.clip import VISION, clip_vision
from assay.sources.families.common import BASE, CAUSAL, Class, activation, depth, family, pre_norm, rms, rope, under
from assay.sources.families.dense import LLAMA
from assay.sources.families.multimodal import base
from assay.spec import Sight, ops

TEXT = {
    **LLAMA,
    "More": "model.embed_tokens.additional_embedding.weight",
    "Wmore": "lm_head.additional_fc.weight",
    **under(
        "model.gated_cross_attn_layers.{i}.",
        {
            "look.Gc": "input_layernorm.weight",
            **{f"look.cross.W{letter}": f"cross_attn.{letter}_proj.weight" for letter in "qkvo"},
            "look.Gcqn": "cross_attn.q_layer_norm.weight",
            "look.Gckn": "cross_attn.k_layer_norm.weight",
            "look.Gm": "post_attention_layernorm.weight",
            "look.Wg": "mlp.gate_proj.weight",
            "look.Wu": "mlp.up_proj.weight",
            "look.Wd": "mlp.down_proj.weight",
        },
    ),
}
GATES = {"look.Xc": "alpha_cross_attn", "look.Xm": "alpha_dense"}
LATENTS = under(
    "model.perceiver_resampler.",
    {
        "Latent": "latents",
        **under(
            "blocks.{i}.",
            {
                "Gseen": "0.context_layer_norm.weight",
                "Ga": "0.latents_layer_norm.weight",
                "Gqn": "0.q_layer_norm.weight",
                "Gkn": "0.k_layer_norm.weight",
                **{f"W{letter}": f"0.{letter}_proj.weight" for letter in "qkv"},
                "Wo": "0.output_proj.weight",
                "Gm": "1.ln.weight",
                "Wu": "1.fc.weight",
                "Wd": "1.c_proj.weight",
            },
        ),
        "Gf": "layer_norm.weight",
    },
)
FROZEN = "text_layers text_module_exceptions lm_head vision_layers vision_module_exceptions".split()


def seeing(c: Config) -> Tower:
    """CLIP's encoder, under names of its own."""
    c.rename(embed_dim="hidden_size")
    c.absent(hidden_size=768, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=16)
    c.absent(patch_size=14, hidden_act="gelu")
    c.skip("vision_model_name")
    return replace(clip_vision(c), names=under("model.vision_model.", VISION))


def resampler(c: Config, width: int, seen: int) -> Tower:
    """Learned vectors that attend to an image in each of a few layers, as wide as its encoder."""
    c.skip("model_type", "use_resampler")
    norm = Norm("layernorm", "gain+bias", 1e-5)
    latents, heads = c.size("resampler_n_latents", 64), c.size("resampler_n_heads", 16)
    attention = NormedResampling(
        heads,
        heads,
        c.size("resampler_head_dim", 96),
        qk_norm=norm if c.flag("qk_layer_norms_perceiver", False) else None,
        norm=norm,
        sees="all",
    )
    layer = pre_norm(attention, Mlp(4 * width, gated=False, activation="relu"), norm)
    made = ops("embedding", "x = gather(at[n], Latent[Q d]) -> [n d]", "x = repeat(x[n d]) -> [b n d]")
    start = Drawn("embedding", tuple(made), {"d": width, "Q": latents})
    end = Drawn("norm", tuple(norm.ops("x", "x", "f")), {"d": width})
    axes = {"n": latents, "m": seen, "j": seen + latents}
    return Tower(start, (layer,) * depth(c, 6, "resampler_depth"), (end,), width, axes, LATENTS, called="resampler")


def text(c: Config, seen: int, wide: int) -> Flamingo:
    """Llama's layers, before every so many of them one that looks at the images, `seen` positions of `wide` each."""
    c.absent(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_attention_heads=32)
    c.absent(num_hidden_layers=32, max_position_embeddings=2048)
    width, heads, norm, n = c.size("hidden_size"), c.size("num_attention_heads"), rms(c), depth(c)
    each = c.divides("hidden_size", width, "num_attention_heads", heads)
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c))
    layer = pre_norm(Attention(heads, heads, each, positions=rope(c, each)), mlp, norm)
    cross: CrossAttention = CrossAttention(heads, heads, each, memory=wide)
    if c.flag("qk_layer_norms", False):
        cross = ImageAttention(heads, heads, each, memory=wide, norm=norm)
    gate = ChannelGated if c.word("alpha_type", "float", ("float", "vector")) == "vector" else TanhGated
    steps = (Step((Branch(gate(cross), norm),)), Step((Branch(gate(mlp), norm),)))
    looks = c.divides("num_hidden_layers", n, "cross_layer_interval", c.size("cross_layer_interval", 1))
    rows, more = c.size("vocab_size"), c.size("additional_vocab_size", 0, least=0)
    return Flamingo(
        WiderEmbedding(rows, width, more=more),
        (layer,) * n,
        WiderHead(rows, width, c.flag("tie_word_embeddings", False), norm=norm, more=more),
        trained=c.maybe("max_position_embeddings"),
        looking=(LookingLayer(steps, CROSS),) * looks,
        tokens=seen,
    )


@family(
    "idefics",
    cls="IdeficsForVisionText2Text",
    names={},
    harmless=("cross_layer_activation_function", "ffn_dim", "word_embed_proj_dim", "max_new_tokens"),
    classes=(
        Class(CAUSAL, "ForVisionText2Text", lambda c, made: made.text.head),
        Class(BASE, "Model", base),
    ),
)
def idefics(c: Config) -> Multimodal:
    """Laurençon et al. 2023, arXiv:2306.16527: Flamingo's arrangement around a Llama."""
    c.skip("alpha_initializer", "alphas_initializer_range", *(f"freeze_{what}" for what in FROZEN))
    towers = [seeing(c.child("vision_config"))]
    wide, seen = towers[0].width, int(towers[0].axes["n"])
    few = c.child("perceiver_config")
    if c.flag("use_resampler", False):
        towers.append(resampler(few, wide, seen))
        seen = int(towers[1].axes["n"])
    else:
        few.skip(*few.data)
    made = text(c, seen, wide)
    vector = c.data.get("alpha_type") == "vector"
    gates = {weight: f"{name}[{'1 1 d' if vector else '1'}]" for weight, name in GATES.items()}
    names = {**TEXT, **under("model.gated_cross_attn_layers.{i}.", gates)}
    return Multimodal(made, tuple(replace(tower, part="tower") for tower in towers), Sight(), names)
