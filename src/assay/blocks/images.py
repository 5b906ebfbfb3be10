"""Parts of models of images: windows that fill an image up, places by row and column, layers that look at images.

Axes: m the patches of windows that are filled up, or of the images that text attends to, M these at hand; y rows and z
columns of a window or a patch, i channels, U distances of rows and columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from assay.blocks.attention import Attention, CrossAttention
from assay.blocks.ends import Norm
from assay.blocks.mlp import Mlp, feed_forward
from assay.blocks.rewritten import over
from assay.blocks.stacks import Decoder, Wrapped
from assay.blocks.towers import Patches, Windowed
from assay.records import dataclass, replace
from assay.spec import Op, Segment, ops

CROSS = "cross-attention"  # layers that look at images, in a report


@dataclass(frozen=True)
class TanhGated(Wrapped):
    """A body whose output has a learned factor, the tangent of a number."""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from `x`, both `[b n d]`."""
        part = "mlp" if self.tag == "m" else "attention"
        gated = ops(part, f"g = tanh(X{self.tag}[]) -> []", f"{y} = mul({y}[b n d], g[]) -> [b n d]")
        return [*self.body.ops(x, y), *gated]


@dataclass(frozen=True)
class ImageAttention(CrossAttention):
    """Attention to images, queries and keys normed head by head."""

    norm: Norm = Norm()

    def place(self) -> list[Op]:
        """The norms."""
        return [*self.norm.ops("q", "q", "cqn", "b n g r k", "k"), *self.norm.ops("k", "k", "ckn", "b m g k", "k")]


@dataclass(frozen=True)
class ResamplingAttention(Attention):
    """Few queries to what an image holds, normed, and to themselves (Alayrac et al. 2022, the perceiver resampler).

    Axes: m positions of the image, j these and the queries.
    """

    norm: Norm = Norm()

    def project(self, x: str) -> list[Op]:
        """Queries of `x[b n d]`, keys and values of `memory[b m d]` and of `x`."""
        made = self.norm.ops("memory", "seen", "seen", "b m d")
        made += ops("attention", f"seen = concat(seen[b m d], {x}[b n d]) -> [b j d]")
        made += self.projected("q", f"{x}[b n d]", "b n", "g r k")
        made += self.projected("k", "seen[b j d]", "b j", "g k")
        return made + self.projected("v", "seen[b j d]", "b j", "g v")

    def remember(self) -> list[Op]:
        """Nothing outlives the pass."""
        return []

    def attend(self) -> list[Op]:
        """As within a sequence, over the image's positions and the queries."""
        return over(super().attend(), "c", "j")


@dataclass(frozen=True)
class LookingDecoder(Decoder):
    """A decoder whose layers of one kind run for sequences that have images, and read `tokens` of each of these."""

    tokens: int = 1

    settings: ClassVar[tuple[str, ...]] = ("past",)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What occurs once, and each distinct layer; those that look at images with their batch and their keys."""
        axes = {"b": "seeing", "m": ("images_now", self.tokens), "M": ("images_each", self.tokens)}
        made = super().segments(names)
        return tuple(replace(one, axes=axes) if one.name == CROSS else one for one in made)


@dataclass(frozen=True)
class CrossedPatches(Patches):
    """Patches with a learned vector for their column and one for their row."""

    def ops(self) -> list[Op]:
        """From `pixels` to `x[b n d]`."""
        return ops(
            "embedding",
            "x = linear(pixels[b n i y z], Wpatch[i y z d]) -> [b n d]",
            "row = gather(at[n], E_row[P d]) -> [n d]",
            "column = gather(at[n], E_column[P d]) -> [n d]",
            "x = add(x[b n d], row[n d], column[n d]) -> [b n d]",
        )


@dataclass(frozen=True)
class NormedAttention(Attention):
    """Attention whose values are normed as well, without a gain."""

    def norms(self) -> list[Op]:
        """Norms of queries, keys and values."""
        eps = None if self.qk_norm is None else self.qk_norm.eps
        return [*super().norms(), *Norm(affine="none", eps=eps).ops("v", "v", "vn", "b n g v", "v")]


@dataclass(frozen=True)
class FilledWindows(Windowed):
    """Attention within windows of an image that is filled up to whole ones, with learned biases of rows and columns.

    `patches` are a window's, `padded` those of all windows together; without windows both are the image's.
    """

    padded: int = 1
    side: int = 1  # of a window
    places: bool = True

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        rows = 2 * self.side - 1 if self.places else None
        return {**super().sizes(), "m": self.padded, "y": self.side, "z": self.side, "U": rows}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = [*ops("attention", f"x0 = slice({x}[b n d]) -> [b m d]"), *over(super().ops("x0", "y0"), "n", "m")]
        return [*made, *ops("attention", f"{y} = slice(y0[b m d]) -> [b n d]")]

    def attend(self) -> list[Op]:
        """Scores with a bias of the row and one of the column, each a product with the query."""
        made = super().attend()
        if not self.places:
            return made
        part, axes = "attention.scores", "[b g r n c]"
        biases = ops(
            part,
            "rows = gather(at[n y], Rows[U k]) -> [n y k]",
            "columns = gather(at[n z], Columns[U k]) -> [n z k]",
            "sy = contract(q[b n g r k], rows[n y k]) -> [b g r n y]",
            "sz = contract(q[b n g r k], columns[n z k]) -> [b g r n z]",
            "sy = slice(sy[b g r n y]) -> [b g r n c]",  # each key's row and column among them
            "sz = slice(sz[b g r n z]) -> [b g r n c]",
            f"s = add(s{axes}, sy{axes}, sz{axes}) -> {axes}",
        )
        return [*made[:2], *biases, *made[2:]]


@dataclass(frozen=True)
class PrefixedMlp(Mlp):
    """A gated layer with a bias on all three matrices, which are named by other letters."""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return feed_forward("mlp", x, y, "Zg Zu Zd", "f", True, self.activation, "gud")
