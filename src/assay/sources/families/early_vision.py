"""Fuyu, which gives patches to its text model as they are, and GIT, a vision transformer before a small decoder."""

from __future__ import annotations

from assay.blocks import Attention, Branch, Decoder, Embedding, Final, Head, Layer, Mlp, Norm, Step
from assay.blocks.towers import Drawn, Multimodal, Patches, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families import FAMILIES
from assay.sources.families.clip import VISION, clip_vision
from assay.sources.families.common import BASE, CAUSAL, Class, activation, depth, family, under
from assay.sources.families.encoders import LAYER
from assay.sources.families.multimodal import any_size, base, beside, moved, read_inner, text_of
from assay.spec import Sight, ops

FUYU = {"Wpatch": "model.vision_embed_tokens.weight[d (i y z)]", "Wpatch_bias": "model.vision_embed_tokens.bias"}
CLASSES = (Class(CAUSAL, "ForCausalLM", lambda c, made: made.text.head), Class(BASE, "Model", base))


@family("fuyu", cls="FuyuForCausalLM", names={}, classes=CLASSES)
def fuyu(c: Config) -> Multimodal:
    """Adept 2023: a patch of any image is a token of Persimmon's, through one matrix."""
    c.skip("image_size")
    patch, channels = c.size("patch_size", 30), c.size("num_channels", 3)
    if c.has("text_config") or "hidden_size" not in c.data:
        text = text_of(c, "persimmon", tied=False, whole={"vocab_size": 262144})
    else:
        text = read_inner(c, c, FAMILIES["persimmon"])
    first = Patches(channels, (patch, patch), text[0].width)
    axes = {"n": "patches", "o": "image_tokens"}
    return beside(c, text, [Tower(first, (), (), text[0].width, axes, FUYU, called="vision")], any_size(patch, 1))


GIT = {
    "E": "git.embeddings.word_embeddings.weight",
    "E_position": "git.embeddings.position_embeddings.weight",
    "Ge": "git.embeddings.LayerNorm.weight",
    "Wout": "output.weight",
    **under("git.encoder.layer.{i}.", LAYER),
}
EYE = under("git.image_encoder.vision_model.", VISION) | under(
    "git.visual_projection.visual_projection.", {"Wp1": "0.weight", "Gprojector": "1.weight"}
)


def headless(c: Config, made: Multimodal) -> Multimodal:
    """The model without its head, under names of its own."""

    def bare(names: dict[str, str]) -> dict[str, str]:
        return moved(names, "", "git.")

    towers = tuple(replace(tower, names=bare(dict(tower.names or {}))) for tower in made.towers)
    return replace(made, text=made.text.ending(Final(made.width)), towers=towers, names=bare(GIT))


@family(
    "git",
    cls="GitForCausalLM",
    names={},
    harmless=("classifier_dropout",),
    classes=(Class(CAUSAL, "ForCausalLM", lambda c, made: made.text.head), Class(BASE, "Model", headless)),
)
def git(c: Config) -> Multimodal:
    """Wang et al. 2022, arXiv:2205.14100: CLIP's encoder, one matrix and a norm, norms behind each sum."""
    c.absent(vocab_size=30522, hidden_size=768, num_hidden_layers=6, num_attention_heads=12, intermediate_size=3072)
    c.absent(max_position_embeddings=1024, hidden_act="gelu")
    c.inert("num_image_with_embedding")
    c.inert("position_embedding_type", "absolute")
    seen = c.child("vision_config")
    seen.absent(patch_size=16)
    tower = clip_vision(seen)
    width, rows, heads = c.size("hidden_size"), c.size("vocab_size"), c.size("num_attention_heads")
    norm = Norm("layernorm", "gain+bias", c.positive("layer_norm_eps", 1e-12))
    behind = Norm("layernorm", "gain+bias", 1e-5)
    made = (
        *Norm("layernorm", "gain+bias", seen.positive("layer_norm_eps", 1e-5)).ops("x", "x", "f"),
        *ops("tower", "y = linear(x[b n d], Wp1[d j], Wp1_bias[j]) -> [b n j]"),
        *behind.ops("y", "y", "projector", "b n j", "j"),
    )
    end = Drawn("projector", made, {"d": tower.width, "j": width})
    attention = Attention(heads, heads, c.divides("hidden_size", width, "num_attention_heads", heads), bias="qkvo")
    mlp = Mlp(c.size("intermediate_size"), gated=False, activation=activation(c), bias="ud")
    layer = Layer((Step((Branch(attention),), after=norm), Step((Branch(mlp),), after=norm)))
    longest = c.size("max_position_embeddings")
    text = Decoder(
        Embedding(rows, width, positions=longest, norm=norm),
        (layer,) * depth(c),
        Head(rows, width, c.flag("tie_word_embeddings", False), bias=True),
        trained=longest,
    )
    part = replace(tower, ends=(end,), names=EYE, part="tower")
    return Multimodal(text, (part,), Sight(), {**GIT, "Bout": "output.bias"})
