"""BEiT: biases of distances in rows and columns, patches averaged."""

from __future__ import annotations

from assay.blocks import Layer, Mlp
from assay.blocks.stacks import Ending
from assay.blocks.towers import Drawn, Gained, Patches, Tower
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import BASE, Class, activation, depth, family, labels, pre_norm, under
from assay.sources.families.vision import grid, pair, patches_of, seeing
from assay.sources.families.vit import EMBEDDINGS, HARMLESS, IMAGES, PLAIN, defaults, norm_of, scored, standing
from assay.spec import ops

BEIT = {
    **EMBEDDINGS,
    "Mask": "embeddings.mask_token[1 1 d]",
    "Gmean": "pooler.layernorm.weight",
    **under(
        "layers.{i}.",
        {
            **PLAIN,
            "Rel": "relative_position_bias.relative_position_bias_table[u (g r)]",
            "La": "lambda_1",
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


def averaged_patches(c: Config, made: Tower, *lines: str) -> Ending:
    """The mean of the patches, normed, or the first token of what is normed."""
    norm, patches = norm_of(c), patches_of(made) - 1
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
    classes=(Class(BASE, "Model", averaged_patches), Class(IMAGES, "ForImageClassification", scored_patches)),
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
    return standing(start, made, BEIT | SHARED if shared else None)
