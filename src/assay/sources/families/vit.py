"""Vision transformers: patches of an image as tokens, an encoder, a pooled token or labels."""

from __future__ import annotations

from assay.blocks import Final, Layer, Mlp, Norm, Rope
from assay.blocks.encoders import Pooler
from assay.blocks.images import PrefixedMlp
from assay.blocks.stacks import Ending
from assay.blocks.towers import Drawn, Gained, Patches, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import BASE, Class, Names, activation, depth, family, labels, pre_norm, under
from assay.sources.families.vision import grid, pair, plain, seeing
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
DINO3 = under(
    "model.layer.{i}.",
    {
        "Ga": "norm1.weight",
        **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkvo"},
        "La": "layer_scale1.lambda1",
        "Gm": "norm2.weight",
        "Wg": "mlp.gate_proj.weight",
        "Wu": "mlp.up_proj.weight",
        "Wd": "mlp.down_proj.weight",
        "Lm": "layer_scale2.lambda1",
    },
) | {
    **EMBEDDINGS,
    "Mask": "embeddings.mask_token[1 1 d]",
    "Wpatch": "embeddings.patch_embeddings.weight[d i y z]",
    "Wpatch_bias": "embeddings.patch_embeddings.bias",
    "Gf": "norm.weight",
}
BEIT = {
    **EMBEDDINGS,
    "Mask": "embeddings.mask_token[1 1 d]",
    "Gmean": "pooler.layernorm.weight",
    **under(
        "layers.{i}.",
        {
            "Ga": "layernorm_before.weight",
            **{f"W{letter}": f"attention.{letter}_proj.weight" for letter in "qkvo"},
            "Rel": "relative_position_bias.relative_position_bias_table[u (g r)]",
            "La": "lambda_1",
            "Gm": "layernorm_after.weight",
            "Wu": "mlp.fc1.weight",
            "Wd": "mlp.fc2.weight",
            "Lm": "lambda_2",
        },
    ),
}
SHARED = {"Rel": "shared_position_bias.relative_position_bias_table[u (g r)]"}
# heads for maps of an image, of another class
_MAPS = """
    vocab_size pool_scales use_auxiliary_head auxiliary_loss_weight auxiliary_channels auxiliary_num_convs
    auxiliary_concat_input semantic_loss_ignore_index add_fpn
""".split()
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
            "z = slice(x[b n d], at=1) -> [b p d]",
            "z = mean(z[b p d]) -> [b d]",
            "y = concat(y[b d], z[b d]) -> [b s]",
            "logits = linear(y[b s], Wscore[s l], Bscore[l]) -> [b l]",
        ),
    )
    patches = int(made.axes["n"]) - 1
    return Drawn("head", made_ops, {"d": made.width, "p": patches, "s": 2 * made.width, "l": labels(c)})


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


TAUGHT = {"Wscore": "cls_classifier.weight", "Wtaught": "distillation_classifier.weight"}


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
        Class(
            "image-classification-with-teacher",
            "ForImageClassificationWithTeacher",
            taught,
            {**under("deit.", VIT), **TAUGHT},
        ),
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


@family(
    "vit_msn",
    cls="ViTMSNModel",
    names=VIT,
    harmless=HARMLESS,
    classes=(
        Class(BASE, "Model", bare),
        Class(IMAGES, "ForImageClassification", labelled, scored("vit.", VIT)),
    ),
)
def vit_msn(c: Config) -> Tower:
    """Assran et al. 2022, arXiv:2204.07141: ViT, taught to give masked images the same vector."""
    c.absent(layer_norm_eps=1e-6)
    defaults(c)
    return vision(c, (("Cls", 1),))


@family(
    "dinov2_with_registers",
    cls="Dinov2WithRegistersModel",
    names=DINO,
    harmless=HARMLESS,
    classes=(
        Class(BASE, "Model", bare),
        Class(IMAGES, "ForImageClassification", averaged, scored("dinov2_with_registers.", DINO)),
    ),
)
def dinov2_with_registers(c: Config) -> Tower:
    """Darcet et al. 2024, arXiv:2309.16588: tokens of no place, in which a model may keep what it finds."""
    c.absent(patch_size=16)
    c.inert("use_mask_token", True)  # it is always stored
    return dino(c, c.size("num_register_tokens", 4, least=0))


@family("dinov3_vit", cls="DINOv3ViTModel", names=DINO3, harmless=HARMLESS, classes=(Class(BASE, "Model", bare),))
def dinov3_vit(c: Config) -> Tower:
    """Siméoni et al. 2025, arXiv:2508.10104: rows and columns as rotations, which the first tokens have none of."""
    c.absent(hidden_size=384, intermediate_size=1536, num_hidden_layers=12, num_attention_heads=6, hidden_act="gelu")
    c.absent(image_size=224, patch_size=16, num_channels=3, layer_norm_eps=1e-5)
    c.skip("rope_theta", "layerscale_value", "apply_layernorm", "return_class_token")
    c.skip("pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale")  # of training
    width, layers, norm = c.size("hidden_size"), depth(c), norm_of(c)
    usual = {"query_bias": True, "key_bias": False, "value_bias": True, "proj_bias": True}
    bias = "".join(x for x, key in zip("qkvo", usual, strict=True) if c.flag(key, usual[key]))
    attention = replace(seeing(c, bias), positions=Rope(theta=c.positive("rope_theta", 100.0), style="axial"))
    gated, act = c.flag("use_gated_mlp", False), activation(c)
    mlp = Mlp(c.size("intermediate_size"), gated=gated, activation=act, bias="gud" if c.flag("mlp_bias", True) else "")
    registers = c.size("num_register_tokens", 0, least=0)
    patches, kernel = grid(c)
    tokens = (("Cls", 1), *((("Reg", registers),) if registers else ()))
    start = Patches(c.size("num_channels"), kernel, width, patches, tokens, spare=("Mask",))
    layer = pre_norm(Gained(attention), Gained(mlp), norm)
    sight = Sight(images=1, alone=start.length)
    return Tower(start, (layer,) * layers, (), width, {"n": start.length}, sight=sight)


def averaged_patches(c: Config, made: Tower, *lines: str) -> Ending:
    """The mean of the patches, normed, or the first token of what is normed."""
    norm, patches = norm_of(c), int(made.axes["n"]) - 1
    if c.flag("use_mean_pooling", True):
        pooled = ops("head", "y = slice(x[b n d], at=1) -> [b p d]", "y = mean(y[b p d]) -> [b d]")
        pooled += norm.ops("y", "y", "mean", "b d")
    else:
        pooled = [*norm.ops("x", "x", "f"), *ops("head", "y = first(x[b n d]) -> [b d]")]
    sizes = {"d": made.width, "p": patches, "l": labels(c) if lines else None}
    return Drawn("head", (*pooled, *ops("head", *lines)), sizes)


def scored_patches(c: Config, made: Tower) -> Tower:
    """The same to labels; the model has names of its own within the classifier."""
    end = averaged_patches(c, made, "logits = linear(y[b d], Wscore[d l], Bscore[l]) -> [b l]")
    return replace(made, ends=(end,), names=scored("beit.", made.names or BEIT))


@family(
    "beit",
    cls="BeitModel",
    names=BEIT,
    harmless=(*HARMLESS, *_MAPS),
    classes=(
        Class(BASE, "Model", averaged_patches),
        Class(IMAGES, "ForImageClassification", scored_patches),
    ),
)
def beit(c: Config) -> Tower:
    """Bao et al. 2022, arXiv:2106.08254: a bias of each distance in rows and columns, and three of the first token."""
    defaults(c)
    width, layers, norm, flat = c.size("hidden_size"), depth(c), norm_of(c), seeing(c, "qvo")
    patches, kernel = grid(c)
    rows, columns = (side // step for side, step in zip(pair(c, "image_size"), kernel, strict=True))
    own, shared = c.flag("use_relative_position_bias", False), c.flag("use_shared_relative_position_bias", False)
    if own and shared:
        c.fail("use_shared_relative_position_bias", "false where every layer has a bias of its own")
    distances = (2 * rows - 1) * (2 * columns - 1) + 3 if own or shared else None
    mlp = Mlp(c.size("intermediate_size"), gated=False, activation=activation(c), bias="ud")
    gained = (c.number("layer_scale_init_value", 0.1) or 0) > 0

    def layer(holds: bool) -> Layer:
        attention = replace(flat, relative=distances, relative_here=holds, relative_far=None)
        return pre_norm(Gained(attention), Gained(mlp), norm) if gained else pre_norm(attention, mlp, norm)

    start = Patches(
        c.size("num_channels"),
        kernel,
        width,
        patches,
        (("Cls", 1),),
        positions=patches + 1 if c.flag("use_absolute_position_embeddings", False) else None,
        spare=("Mask",) if c.flag("use_mask_token", False) else (),
    )
    made = tuple(layer(own or i == 0) for i in range(layers))
    sight = Sight(images=1, alone=start.length)
    names = BEIT | SHARED if shared else None
    return Tower(start, made, (), width, {"n": start.length}, sight=sight, names=names)
