"""A source encoded once, and a decoder whose layers attend to it beside their own past (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from assay.blocks.encoders import Encoder
from assay.blocks.ends import Embedding
from assay.blocks.stacks import Decoder, Ending
from assay.records import dataclass, replace
from assay.spec import Op, Segment, Sight, ops


@dataclass(frozen=True)
class EncoderDecoder:
    """An encoder over the source's positions, and a decoder over the target's tokens.

    In the table of names, `encoder.` and `decoder.` before a weight say whose it is; others are both's. `names` says
    where weights are stored, where it depends on more than the family.
    """

    encoder: Encoder
    decoder: Decoder
    source_tokens: int | None = None  # a default other than as many as the target's
    source_stride: int = 1  # tokens or frames of the source that one position of the encoder stands for
    source_extra: int = 0  # those that padding adds before they are divided
    names: Mapping[str, str] | None = None

    settings: ClassVar[tuple[str, ...]] = ("past", "source")
    sight: ClassVar[Sight | None] = None

    @property
    def width(self) -> int:
        """Of the decoder's residual stream."""
        return self.decoder.width

    @property
    def depth(self) -> int:
        """Layers of both."""
        return self.encoder.depth + self.decoder.depth

    @property
    def limit(self) -> int | None:
        """Rows of the target's position table."""
        return self.decoder.limit

    @property
    def trained(self) -> int | None:
        """The context that the config claims."""
        return self.decoder.trained

    @property
    def source_limit(self) -> int | None:
        """The longest source that the encoder's position table reaches."""
        rows = self.encoder.limit
        return None if rows is None else rows * self.source_stride

    def ending(self, head: Ending | None) -> Self:
        """The same layers with another end of the decoder, the names given from outside."""
        return replace(self, decoder=replace(self.decoder, head=head), names=None)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The encoder's segments over the sources that are encoded now and their m positions, then the decoder's."""
        names = names if self.names is None else self.names
        source = {"b": "encodings", "n": "m", "t": "m", "past": 0, "m": "frames"}
        made = [
            replace(segment, name=f"encoder {segment.name}", axes={**source, **segment.axes})
            for segment in self.encoder.segments(of(names, "encoder."))
        ]
        made += [
            replace(segment, name=f"decoder {segment.name}") for segment in self.decoder.segments(of(names, "decoder."))
        ]
        return tuple(made)


def of(names: Mapping[str, str], owner: str) -> dict[str, str]:
    """The names that are an owner's or nobody's."""
    own = {weight.removeprefix(owner): path for weight, path in names.items() if weight.startswith(owner)}
    return {**{w: path for w, path in names.items() if not w.startswith(("encoder.", "decoder."))}, **own}


@dataclass(frozen=True)
class SpareEmbedding(Embedding):
    """As an embedding, beside a second table of its size that is stored and never looked into."""

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        return [*super().ops(), *ops("embedding", "spare = idle(Espare[V d]) -> [V d]")]


@dataclass(frozen=True)
class Frames(Embedding):
    """Frames of `vocab` channels through two convolutions, the second at every other one (Radford et al. 2022, 2.2).

    Axes: m frames, n = m / 2 positions, j channels of a frame, i those between the convolutions, q the kernel.
    """

    kernel: int = 3

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"j": self.vocab, "i": self.width, "d": self.width, "q": self.kernel, "P": self.positions}

    def ops(self) -> list[Op]:
        """From `frames[b m j]` to `x[b n d]`."""
        return ops(
            "embedding",
            "x = columns(frames[b m j], pad=1) -> [b m j q]",
            "x = linear(x[b m j q], Wconv1[j q i], Wconv1_bias[i]) -> [b m i]",
            "x = gelu(x[b m i]) -> [b m i]",
            "x = columns(x[b m i], stride=2, pad=1) -> [b n i q]",
            "x = linear(x[b n i q], Wconv2[i q d], Wconv2_bias[d]) -> [b n d]",
            "x = gelu(x[b n d]) -> [b n d]",
            "p = gather(at[n], E_position[P d]) -> [n d]",
            "x = add(x[b n d], p[n d]) -> [b n d]",
        )
