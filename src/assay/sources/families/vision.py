"""What readers of vision transformers share: sides of images and patches, the plain layer, its attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from assay.blocks import Attention, Layer, Mlp, Norm
from assay.blocks.stacks import Body
from assay.sources.config import Config
from assay.sources.families.common import activation, pre_norm

if TYPE_CHECKING:
    from assay.blocks.towers import Tower

LARGEST_SIDE = 100_000  # pixels


def pair(c: Config, key: str, default: int | None = None) -> tuple[int, int]:
    """Height and width: one integer for both, or a list of two."""
    if isinstance(c.data.get(key), list):
        found = c.sequence(key, lambda v: type(v) is int and 0 < v <= LARGEST_SIDE, "an integer of at least 1", 2)
        assert found is not None
        return found[0], found[1]
    side = c.size(key, default, most=LARGEST_SIDE)
    return side, side


def grid(c: Config, image: int | None = None, patch: int | None = None) -> tuple[int, tuple[int, int]]:
    """Patches of an image of the config's size, and the sides of one. Raises SourceError where none fits."""
    sides, kernel = pair(c, "image_size", image), pair(c, "patch_size", patch)
    rows, columns = (side // step for side, step in zip(sides, kernel, strict=True))
    if rows * columns < 1:
        c.fail("patch_size", "no larger than image_size")
    return rows * columns, kernel


def patches_of(tower: Tower, axis: str = "n") -> int:
    """How many positions an image has in a tower that sees images of one size."""
    return cast(int, tower.axes[axis])


def square(c: Config, image: int | None = None, patch: int | None = None) -> tuple[int, tuple[int, int]]:
    """The same where a config class knows squares alone."""
    side, step = (c.size(key, n, most=LARGEST_SIDE) for key, n in (("image_size", image), ("patch_size", patch)))
    if step > side:
        c.fail("patch_size", "no larger than image_size")
    rows = side // step
    return rows * rows, (step, step)


def seeing(c: Config, bias: str, heads_key: str = "num_attention_heads", width_key: str = "hidden_size") -> Attention:
    """Attention in which every position sees every other."""
    width, heads = c.size(width_key), c.size(heads_key)
    return Attention(heads, heads, c.divides(width_key, width, heads_key, heads), bias=bias, sees="all")


def plain(c: Config, norm: Norm, attention: Body, gated: bool = False) -> Layer:
    """The pre-norm layer of Dosovitskiy et al. 2021, with biases everywhere."""
    mlp = Mlp(c.size("intermediate_size"), gated=gated, activation=activation(c), bias="gud")
    return pre_norm(attention, mlp, norm)
