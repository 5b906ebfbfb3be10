"""Vision transformers: patches of an image as tokens, an encoder, a pooled token or labels."""

from __future__ import annotations

from assay.blocks import Final, Mlp, Norm
from assay.blocks.encoders import Pooler
from assay.blocks.images import PrefixedMlp
from assay.blocks.stacks import Ending
from assay.blocks.towers import Drawn, Gained, Patches, Tower
from assay.sources.config import Config
from assay.sources.families.common import BASE, Class, Names, activation, depth, family, labels, pre_norm, under
from assay.sources.families.vision import grid, plain, seeing
from assay.spec import Op, Sight, ops

IMAGES = "image-classification"

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
VIT = EMBEDDINGS | under(
    "layers.{i}.",
    {
        "Ga": "layernorm_before.weight",
        **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkvo"},
        "Gm": "layernorm_after.weight",
        "Wu": "mlp.fc1.weight",
        "Wd": "mlp.fc2.weight",
    },
)
DINO = EMBEDDINGS | under(
    "encoder.layer.{i}.",
    {
        "Ga": "norm1.weight",
        **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkvo"},
        "La": "layer_scale1.lambda1",
        "Gm": "norm2.weight",
        "Wu": "mlp.fc1.weight",
        "Wd": "mlp.fc2.weight",
        "Zg": "mlp.gate_proj.weight",
        "Zu": "mlp.up_proj.weight",
        "Zd": "mlp.down_proj.weight",
        "Lm": "layer_scale2.lambda1",
    },
)
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


def averaged(c: Config, made: Tower) -> Ending:
    """The first token beside the mean of all others, to labels."""
    made_ops: tuple[Op, ...] = (
        *norm_of(c).ops("x", "x", "f"),
        *ops(
            "head",
            "y = first(x[b n d]) -> [b d]",
            "z = mean(x[b n d]) -> [b d]",
            "y = concat(y[b d], z[b d]) -> [b s]",
            "logits = linear(y[b s], Wscore[s l], Bscore[l]) -> [b l]",
        ),
    )
    return Drawn("head", made_ops, {"d": made.width, "s": 2 * made.width, "l": labels(c)})


def scored(base: str, names: Names) -> dict[str, str]:
    """The names of a classifier around the model."""
    return {**under(base, names), "Wscore": "classifier.weight"}


def vision(c: Config, tokens: tuple[tuple[str, int], ...]) -> Tower:
    """A vision transformer in the words of ViT's config."""
    width, layers = c.size("hidden_size"), depth(c)
    patches, kernel = grid(c)
    extra = sum(many for _, many in tokens)
    start = Patches(c.size("num_channels"), kernel, width, patches, tokens, positions=patches + extra)
    attention = seeing(c, "qkvo" if c.flag("qkv_bias", True) else "o")
    sight = Sight(images=1, alone=start.length)
    return Tower(start, (plain(c, norm_of(c), attention),) * layers, (), width, {"n": start.length}, sight=sight)


def defaults(c: Config) -> None:
    """ViT-B/16's sizes."""
    c.absent(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
    c.absent(hidden_act="gelu", image_size=224, patch_size=16, num_channels=3)


@family(
    "vit",
    cls="ViTModel",
    names=VIT,
    harmless=HARMLESS,
    classes=(
        Class(BASE, "Model", pooled),
        Class(IMAGES, "ForImageClassification", labelled, scored("vit.", VIT)),
    ),
)
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
        Class(BASE, "Model", pooled),
        Class(IMAGES, "ForImageClassification", labelled, scored("deit.", VIT)),
    ),
)
def deit(c: Config) -> Tower:
    """Touvron et al. 2021, arXiv:2012.12877: a second learned token, which learns from a teacher."""
    defaults(c)
    return vision(c, (("Cls", 1), ("Dist", 1)))


def dino(c: Config, registers: int) -> Tower:
    """A layer whose branches have a gain for each channel; registers behind the positions (Darcet et al. 2024)."""
    c.absent(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, hidden_act="gelu", layer_norm_eps=1e-6)
    c.absent(image_size=224, num_channels=3)
    width, layers, norm = c.size("hidden_size"), depth(c), norm_of(c)
    ratio, gated = c.size("mlp_ratio", 4), c.flag("use_swiglu_ffn", False)
    inner = (int(width * ratio * 2 / 3) + 7) // 8 * 8 if gated else width * ratio
    act = activation(c)
    mlp = PrefixedMlp(inner) if gated else Mlp(inner, gated=False, activation=act, bias="ud")
    attention = seeing(c, "qkvo" if c.flag("qkv_bias", True) else "o")
    c.skip("layerscale_value", "apply_layernorm", "interpolate_antialias", "interpolate_offset")
    patches, kernel = grid(c)
    start = Patches(
        c.size("num_channels"),
        kernel,
        width,
        patches,
        (("Cls", 1),),
        (("Reg", registers),) if registers else (),
        positions=patches + 1,
        spare=("Mask",) if c.flag("use_mask_token", True) else (),
    )
    layer = pre_norm(Gained(attention), Gained(mlp), norm)
    sight = Sight(images=1, alone=start.length)
    return Tower(start, (layer,) * layers, (), width, {"n": start.length}, sight=sight)


@family(
    "dinov2",
    cls="Dinov2Model",
    names=DINO,
    harmless=HARMLESS,
    classes=(
        Class(BASE, "Model", bare),
        Class(IMAGES, "ForImageClassification", averaged, scored("dinov2.", DINO)),
    ),
)
def dinov2(c: Config) -> Tower:
    """Oquab et al. 2023, arXiv:2304.07193."""
    c.absent(patch_size=14)
    return dino(c, 0)
