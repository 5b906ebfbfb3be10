"""Flamingo (Alayrac et al. 2022, arXiv:2204.14198) as Idefics has it: gated layers that look at images between those
of a finished text model, words beyond its vocabulary in tables of their own.

Axes: A words beyond the vocabulary, p tokens that are among them, l words of both; m and M positions of the images, now
and at hand, o their width.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.ends import VOCABULARY, Embedding, Head
from assay.blocks.images import ResamplingAttention
from assay.blocks.rewritten import begun
from assay.blocks.stacks import Decoder, Layer, Wrapped, layer_segments
from assay.records import dataclass
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class ChannelGated(Wrapped):
    """A body whose output has a learned factor for each channel, the tangent of a number."""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from `x`, both `[b n d]`."""
        part = "mlp" if self.tag == "m" else "attention"
        gated = ops(part, f"g = tanh(X{self.tag}[d]) -> [d]", f"{y} = mul({y}[b n d], g[d]) -> [b n d]")
        return [*self.body.ops(x, y), *gated]


@dataclass(frozen=True)
class NormedResampling(ResamplingAttention):
    """Few queries to what an image holds and to themselves, queries and keys normed head by head."""

    def norms(self) -> list[Op]:
        """Of the queries, and of the keys of both."""
        if self.qk_norm is None:
            return []
        made = self.qk_norm.ops("q", "q", "qn", "b n g r k", "k")
        return made + self.qk_norm.ops("k", "k", "kn", "b j g k", "k")


@dataclass(frozen=True)
class LookingLayer(Layer):
    """A layer that looks at images, its weights told from those of the layer behind it."""

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]` and `memory[b m o]`."""
        return begun(super().ops(), "look.")


@dataclass(frozen=True)
class WiderEmbedding(Embedding):
    """A table, and one of the words beyond it, in which no token is taken to stand."""

    more: int = 0

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "A": self.more or None, "p": 0}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        made = super().ops()
        return made + (ops("embedding", "z = gather(ids[b p], More[A d]) -> [b p d]") if self.more else [])


@dataclass(frozen=True)
class WiderHead(Head):
    """Logits of the vocabulary and of the words beyond it."""

    more: int = 0

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "A": self.more or None, "l": self.vocab + self.more}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t l]`, t of the n positions."""
        made = super().ops()
        if not self.more:
            return made
        table = "More[A d]" if self.tied else "Wmore[d A]"
        return made + ops(
            VOCABULARY,
            f"further = linear(y[b t d], {table}) -> [b t A]",
            "logits = concat(logits[b t V], further[b t A]) -> [b t l]",
        )


@dataclass(frozen=True)
class Flamingo(Decoder):
    """A decoder with layers between its own that read `tokens` of each image; they run where there is none, too.

    A token that has no image to look at still passes their matrices.
    """

    looking: tuple[LookingLayer, ...] = ()
    tokens: int = 1

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What occurs once, each distinct layer that looks at images, and each of the text's."""
        names = names if self.names is None else self.names
        first, *rest = super().segments(names)
        axes = {"m": ("images_now", self.tokens), "M": ("images_each", self.tokens)}
        return (first, *layer_segments(self.looking, self.width, names, axes), *rest)
