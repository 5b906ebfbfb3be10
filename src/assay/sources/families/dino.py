"""DINOv2 and DINOv3: a gain for each channel of a branch, registers, patches averaged."""

from __future__ import annotations

from assay.blocks import Mlp, Rope
from assay.blocks.images import PrefixedMlp
from assay.blocks.stacks import Ending
from assay.blocks.towers import Drawn, Gained, Patches, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import BASE, Class, activation, depth, family, labels, pre_norm, under
from assay.sources.families.vision import grid, patches_of, seeing
from assay.sources.families.vit import EMBEDDINGS, HARMLESS, MATRICES, bare, ending, norm_of, standing
from assay.spec import Op, ops

SCALED = {
    **MATRICES,
    "Ga": "norm1.weight",
    "La": "layer_scale1.lambda1",
    "Gm": "norm2.weight",
    "Lm": "layer_scale2.lambda1",
}
DINO = EMBEDDINGS | under(
    "encoder.layer.{i}.",
    SCALED | {"Zg": "mlp.gate_proj.weight", "Zu": "mlp.up_proj.weight", "Zd": "mlp.down_proj.weight"},
)
DINO3 = {
    **EMBEDDINGS,
    **under(
        "model.layer.{i}.",
        SCALED | {"Wg": "mlp.gate_proj.weight", "Wu": "mlp.up_proj.weight", "Wd": "mlp.down_proj.weight"},
    ),
    "Mask": "embeddings.mask_token[1 1 d]",
    "Wpatch": "embeddings.patch_embeddings.weight[d i y z]",
    "Wpatch_bias": "embeddings.patch_embeddings.bias",
    "Gf": "norm.weight",
}


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
    patches = patches_of(made) - 1
    return Drawn("head", made_ops, {"d": made.width, "p": patches, "s": 2 * made.width, "l": labels(c)})


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
    return standing(start, (pre_norm(Gained(attention), Gained(mlp), norm),) * layers)


@family("dinov2", cls="Dinov2Model", names=DINO, harmless=HARMLESS, classes=ending(bare, averaged, "dinov2.", DINO))
def dinov2(c: Config) -> Tower:
    """Oquab et al. 2023, arXiv:2304.07193."""
    c.absent(patch_size=14)
    return dino(c, 0)


@family(
    "dinov2_with_registers",
    cls="Dinov2WithRegistersModel",
    names=DINO,
    harmless=HARMLESS,
    classes=ending(bare, averaged, "dinov2_with_registers.", DINO),
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
    return standing(start, (pre_norm(Gained(attention), Gained(mlp), norm),) * layers)
