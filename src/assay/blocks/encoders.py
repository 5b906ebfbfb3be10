"""Encoders, and encoders with a decoder that reads what they made (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.blocks.ends import Norm
from assay.blocks.stacks import Decoder
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class Encoder(Decoder):
    """Layers that see every token at once and keep nothing: no past can be asked of them."""

    settings: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class MaskedHead:
    """The head of a masked-language model: a dense layer, an activation, a norm, the vocabulary (Devlin et al. 2018)."""

    vocab: int
    width: int
    inner: int | None = None  # width of the dense layer where there is one
    activation: str = "gelu"
    norm: Norm | None = None
    tied: bool = True
    bias: bool = True
    dense_bias: bool = True
    final: Norm | None = None  # of the last layer's output

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"V": self.vocab, "d": self.width, "j": self.inner}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t V]`."""
        made = self.final.ops("x", "x", "f") if self.final is not None else []
        made += ops("head", "y = keep(x[b n d]) -> [b t d]")
        j = "d"
        if self.inner is not None:
            j = "j"
            shift = ", Bdense[j]" if self.dense_bias else ""
            made += ops("head", f"y = linear(y[b t d], Wdense[d j]{shift}) -> [b t j]")
            made += ops("head", f"y = {self.activation}(y[b t j]) -> [b t j]")
        if self.norm is not None:
            made += self.norm.ops("y", "y", "head", f"b t {j}", j)
        table = f"E[V {j}]" if self.tied else f"Wout[{j} V]"
        return made + ops("head", f"logits = linear(y[b t {j}], {table}{', Bout[V]' if self.bias else ''}) -> [b t V]")


@dataclass(frozen=True)
class Pooler:
    """The first token through a dense layer, and labels from it where there are any."""

    width: int
    labels: int | None = None
    dense: bool = True
    activation: str = "tanh"
    norm: Norm | None = None  # before, where the stack does not end in one

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"d": self.width, "j": self.width, "l": self.labels}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `y[b j]`, or `logits[b l]`."""
        made = self.norm.ops("x", "x", "f") if self.norm is not None else []
        made += ops("head", "y = first(x[b n d]) -> [b d]")
        if self.dense:
            made += ops("head", "y = linear(y[b d], Wpool[d j], Bpool[j]) -> [b j]")
            made += ops("head", f"y = {self.activation}(y[b j]) -> [b j]")
        j = "j" if self.dense else "d"
        if self.labels is not None:
            made += ops("head", f"logits = linear(y[b {j}], Wscore[{j} l], Bscore[l]) -> [b l]")
        return made


@dataclass(frozen=True)
class EncoderDecoder:
    """A source encoded once, and a decoder whose layers attend to it beside their own past.

    In the table of names, `encoder.` and `decoder.` before a weight say whose it is; others are both's.
    """

    encoder: Decoder
    decoder: Decoder
    source_tokens: int | None = None  # where the source is of a fixed length

    settings: ClassVar[tuple[str, ...]] = ("past", "source")

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

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The encoder's segments over the source's m tokens, then the decoder's."""
        source = {"n": "m", "t": "m", "past": 0}
        made = [
            replace(segment, name=f"encoder {segment.name}", axes=source)
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
