"""Vision transformers: patches of an image as tokens, an encoder, a pooled token or labels."""

from __future__ import annotations

from collections.abc import Callable

from assay.blocks import Final, Layer, Norm
from assay.blocks.encoders import Pooler
from assay.blocks.stacks import Ending
from assay.blocks.towers import Drawn, Patches, Tower
from assay.sources.config import Config
from assay.sources.families.common import BASE, Class, Names, activation, depth, family, labels, under
from assay.sources.families.vision import grid, plain, seeing
from assay.spec import Op, Sight, ops

IMAGES, TAUGHT = "image-classification", "image-classification-with-teacher"

EMBEDDINGS = {
    "Cls": "embeddings.cls_token[1 1 d]",
    "Dist": "embeddings.distillation_token[1 1 d]",
    "Reg": "embeddings.register_tokens[1 n_Reg d]",
    "Mask": "embeddings.mask_token[1 d]",
    "E_position": "embeddings.position_embeddings[1 P d]",
    "Wpatch": "embeddings.patch_embeddings.projection.weight[d i y z]",
    "Wpatch_bias": "embeddings.patch_embeddings.projection.bias",
    "Gf": "layernorm.weight",
    "Wpool": "pooler.dense.weight",
}
# of a layer
MATRICES = {
    **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkvo"},
    "Wu": "mlp.fc1.weight",
    "Wd": "mlp.fc2.weight",
}
PLAIN = {**MATRICES, "Ga": "layernorm_before.weight", "Gm": "layernorm_after.weight"}
VIT = EMBEDDINGS | under("layers.{i}.", PLAIN)
# the masked images of another class, the stages of a backbone
HARMLESS = ("encoder_stride", "mask_ratio", "out_features", "out_indices", "stage_names", "reshape_hidden_states")


def norm_of(c: Config) -> Norm:
    """LayerNorm with the config's eps."""
    return Norm("layernorm", "gain+bias", c.positive("layer_norm_eps", 1e-12))


def pooled(c: Config, made: Tower) -> Ending:
    """The first token through a dense layer."""
    width = c.maybe("pooler_output_size") or made.width
    act = activation(c, "pooler_act", "tanh")
    return Pooler(made.width, norm=norm_of(c), inner=width, activation=act)


def labelled(c: Config, made: Tower) -> Ending:
    """The first token to labels."""
    c.skip("pooler_output_size", "pooler_act")
    return Pooler(made.width, labels(c), dense=False, norm=norm_of(c))


def bare(c: Config, made: Tower) -> Ending:
    """The last norm alone."""
    return Final(made.width, norm=norm_of(c))


def taught(c: Config, made: Tower) -> Ending:
    """The first token and the one that learned from a teacher, each to labels; the mean of both."""
    c.skip("pooler_output_size", "pooler_act")
    made_ops: tuple[Op, ...] = (
        *norm_of(c).ops("x", "x", "f"),
        *ops(
            "head",
            "y = first(x[b n d]) -> [b d]",
            "logits = linear(y[b d], Wscore[d l], Bscore[l]) -> [b l]",
            "z = first(x[b n d], at=1) -> [b d]",
            "taught = linear(z[b d], Wtaught[d l], Wtaught_bias[l]) -> [b l]",
            "logits = add(logits[b l], taught[b l]) -> [b l]",
            "logits = scale(logits[b l], by=0.5) -> [b l]",
        ),
    )
    return Drawn("head", made_ops, {"d": made.width, "l": labels(c)})


TEACHER = {"Wscore": "cls_classifier.weight", "Wtaught": "distillation_classifier.weight"}


def scored(base: str, names: Names) -> dict[str, str]:
    """The names of a classifier around the model."""
    return {**under(base, names), "Wscore": "classifier.weight"}


End = Callable[[Config, Tower], Ending]


def ending(base: End, images: End, within: str, names: Names) -> tuple[Class, Class]:
    """The model by itself, and with labels of images, where it stands within `within`."""
    return Class(BASE, "Model", base), Class(IMAGES, "ForImageClassification", images, scored(within, names))


def standing(start: Patches, layers: tuple[Layer, ...], names: Names | None = None) -> Tower:
    """A tower by itself, whose images are all of one size."""
    sight = Sight(images=1, alone=start.length)
    return Tower(start, layers, (), start.width, {"n": start.length}, sight=sight, names=names)


def vision(c: Config, tokens: tuple[tuple[str, int], ...]) -> Tower:
    """A vision transformer in the words of ViT's config."""
    width, layers = c.size("hidden_size"), depth(c)
    patches, kernel = grid(c)
    extra = sum(many for _, many in tokens)
    start = Patches(c.size("num_channels"), kernel, width, patches, tokens, positions=patches + extra)
    attention = seeing(c, "qkvo" if c.flag("qkv_bias", True) else "o")
    return standing(start, (plain(c, norm_of(c), attention),) * layers)


def defaults(c: Config) -> None:
    """ViT-B/16's sizes."""
    c.absent(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
    c.absent(hidden_act="gelu", image_size=224, patch_size=16, num_channels=3)


@family("vit", cls="ViTModel", names=VIT, harmless=HARMLESS, classes=ending(pooled, labelled, "vit.", VIT))
def vit(c: Config) -> Tower:
    """Dosovitskiy et al. 2021, arXiv:2010.11929."""
    defaults(c)
    return vision(c, (("Cls", 1),))


@family(
    "deit",
    cls="DeiTModel",
    names=VIT,
    harmless=HARMLESS,
    classes=(
        *ending(pooled, labelled, "deit.", VIT),
        Class(TAUGHT, "ForImageClassificationWithTeacher", taught, {**under("deit.", VIT), **TEACHER}),
    ),
)
def deit(c: Config) -> Tower:
    """Touvron et al. 2021, arXiv:2012.12877: a second learned token, which learns from a teacher."""
    defaults(c)
    return vision(c, (("Cls", 1), ("Dist", 1)))


@family("vit_msn", cls="ViTMSNModel", names=VIT, harmless=HARMLESS, classes=ending(bare, labelled, "vit.", VIT))
def vit_msn(c: Config) -> Tower:
    """Assran et al. 2022, arXiv:2204.07141: ViT, taught to give masked images the same vector."""
    c.absent(layer_norm_eps=1e-6)
    defaults(c)
    return vision(c, (("Cls", 1),))
