"""A decoder whose attention sees its own tokens and the source's at once, and an encoder that sees images too
(Zhang et al. 2025, T5Gemma 2).

Axes: y keys of the target and the source together.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.attention import Attention
from assay.blocks.encoder_decoder import EncoderDecoder
from assay.blocks.ends import Embedding
from assay.blocks.rewritten import over
from assay.blocks.towers import Tower
from assay.records import dataclass, replace
from assay.spec import Op, Segment, Sight, ops


@dataclass(frozen=True)
class MergedAttention(Attention):
    """One softmax over the keys of the target's tokens and of the source's, all made by the same matrices."""

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values of the target; keys and values of the source, once."""
        made = super().project(x)
        made += ops(
            "attention",
            "km = linear(memory[b m d], Wk[d g k]) -> [b m g k]",
            "vm = linear(memory[b m d], Wv[d g v]) -> [b m g v]",
        )
        return made + (self.qk_norm.ops("km", "km", "kn", "b m g k", "k") if self.qk_norm is not None else [])

    def remember(self) -> list[Op]:
        """The target's behind those of earlier passes, and the source's, which are kept."""
        return [
            *super().remember(),
            *ops(
                "attention",
                "km = hold(km[b m g k]) -> [b M g k]",
                "vm = hold(vm[b m g v]) -> [b M g v]",
                "k = concat(k[b c g k], km[b M g k]) -> [b y g k]",
                "v = concat(v[b c g v], vm[b M g v]) -> [b y g v]",
            ),
        ]

    def attend(self) -> list[Op]:
        """As within a sequence, over both."""
        return over(super().attend(), "c", "y")


@dataclass(frozen=True)
class MarkedEmbedding(Embedding):
    """Words, one of which, the end of an image, has a vector of its own beside the table."""

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        return [*super().ops(), *ops("embedding", "end = idle(Eoi[d]) -> [d]")]


@dataclass(frozen=True)
class SeeingEncoderDecoder(EncoderDecoder):
    """An encoder and a decoder with a tower, whose outputs stand in the place of some of the source's tokens."""

    tower: Tower | None = None
    settings: tuple[str, ...] = ("past", "source", "images")  # type: ignore[misc]
    sight: Sight | None = Sight()  # type: ignore[misc]

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The tower's segments, then both halves'."""
        seen = () if self.tower is None else replace(self.tower, part="tower").segments({})
        return (*seen, *super().segments(names))
