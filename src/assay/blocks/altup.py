"""Several streams with alternating updates, and inputs of their own for each layer: Gemma 3n (Baykal et al. 2023,
arXiv:2301.13310).

Axes: Y layers, p the width of a layer's own input, U rows of its table; S streams, Q those beside the first, A and O
streams before and after a prediction, K one stream, R the rank of the learned residual, o the width behind a matrix
of a stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.ends import Embedding, Norm
from assay.blocks.shared_keys import PLAIN, LayerInput
from assay.blocks.stacks import Decoder, Layer, make_block
from assay.records import dataclass
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class LayerInputs(Embedding):
    """An embedding beside a table of every layer's own inputs; `streams` of them begin where that is above one."""

    layers: int = 1
    own: int | None = None  # width of a layer's own input
    rows: int | None = None  # of their table
    own_norm: Norm = PLAIN
    streams: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        mine = {"Y": self.layers, "p": self.own, "U": self.rows}
        return {**super().sizes(), **mine, **stream_sizes(self.streams), "o": self.width}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`, or `x[b n S d]` of several streams."""
        made = super().ops()
        if self.own is not None:
            made += self.inputs()
        if self.streams == 1:
            return made
        made += ops(
            "mlp",
            "size = rms(x[b n d]) -> [b n]",
            "xs = linear(x[b n d], Alt[Q d o]) -> [b n Q o]",
            "xs = rename(xs[b n Q o]) -> [b n Q d]",
        )
        return made + gathered("mlp")

    def inputs(self) -> list[Op]:
        """`own[b n Y p]`: a row of the table and a projection of the embedding."""
        made = ops(
            "embedding",
            "own = gather(ids[b n], El[U Y p]) -> [b n Y p]",
            f"own = scale(own[b n Y p], by={float(self.own or 1) ** 0.5!r}) -> [b n Y p]",
            "given = linear(x[b n d], Wl[d Y p]) -> [b n Y p]",
            f"given = scale(given[b n Y p], by={self.width**-0.5!r}) -> [b n Y p]",
        )
        made += self.own_norm.ops("given", "given", "li", "b n Y p", "p")
        return made + ops(
            "embedding",
            "own = add(given[b n Y p], own[b n Y p]) -> [b n Y p]",
            f"own = scale(own[b n Y p], by={2**-0.5!r}) -> [b n Y p]",
        )


def stream_sizes(streams: int) -> dict[str, int | None]:
    """Axis sizes of streams, and of those beside the first."""
    if streams == 1:
        return {}
    return {"S": streams, "A": streams, "O": streams, "Q": streams - 1, "K": 1}


def gathered(part: str) -> list[Op]:
    """`x[b n S d]`: the first stream, and the others `xs[b n Q d]` brought to its size."""
    return ops(
        part,
        "xs = rmsnorm(xs[b n Q d], over=d) -> [b n Q d]",
        "xs = mul(xs[b n Q d], size[b n]) -> [b n Q d]",
        "x1 = repeat(x[b n d]) -> [b n K d]",
        "x = concat(x1[b n K d], xs[b n Q d]) -> [b n S d]",
    )


@dataclass(frozen=True)
class AltupLayer(Layer):
    """Streams predicted from each other, the first one updated, the others corrected by what that changed.

    The first step holds attention, the second the feed-forward layer, both between norms; a low-rank residual stands
    beside attention, and the layer's own input is added to all streams but the first.
    """

    streams: int = 2
    rank: int = 1
    norm: Norm = PLAIN
    own: LayerInput = LayerInput(1, "gelu")

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), **stream_sizes(self.streams), "R": self.rank, **self.own.sizes()}

    def ops(self) -> list[Op]:
        """`x[b n S d]` from `x[b n S d]`."""
        attention, feed = (step.branches[0].body for step in self.steps)
        made = self.predict()
        made += self.norm.ops("x1", "xa", "a") + self.laurel() + attention.ops("xa", "ya")
        made += self.norm.ops("ya", "ya", "pa")
        made += ops("other", "z1 = add(x1[b n d], ya[b n d]) -> [b n d]")
        made += ops("other", "z1 = add(z1[b n d], lo[b n d]) -> [b n d]", "z1 = scale(z1[b n d]) -> [b n d]")
        made += self.norm.ops("z1", "xm", "m") + feed.ops("xm", "ym") + self.norm.ops("ym", "ym", "pm")
        made += ops("other", "z1 = add(z1[b n d], ym[b n d]) -> [b n d]")
        return made + self.correct() + self.add_own()

    def weigh(self, x: str) -> list[Op]:
        """How a token weighs the streams, `m[b n S]`."""
        made = self.norm.ops(x, "mr", "r") + ops("router", "mr = scale(mr[b n d]) -> [b n d]")
        return made + ops("router", "m = linear(mr[b n d], Wr[d S]) -> [b n S]", "m = tanh(m[b n S]) -> [b n S]")

    def predict(self) -> list[Op]:
        """Every stream as a sum of all; the first is `x1[b n d]`."""
        return [
            *ops("mlp", "x1 = first(x[b n S d]) -> [b n d]"),
            *self.weigh("x1"),
            *ops(
                "mlp",
                "co = linear(m[b n S], Wpre[S A O]) -> [b n A O]",
                "xs = rename(x[b n S d]) -> [b n A d]",
                "xp = contract(xs[b n A d], co[b n A O]) -> [b n O d]",
                "xp = rename(xp[b n O d]) -> [b n S d]",
                "x = add(xp[b n S d], x[b n S d]) -> [b n S d]",
                "x1 = first(x[b n S d]) -> [b n d]",
            ),
        ]

    def laurel(self) -> list[Op]:
        """A learned low-rank residual (Menghani et al. 2024, arXiv:2411.07501)."""
        made = ops("mlp", "lo = linear(xa[b n d], Wla[d R]) -> [b n R]", "lo = linear(lo[b n R], Wlb[R d]) -> [b n d]")
        made += self.norm.ops("lo", "lo", "la")
        return made + ops("other", "lo = add(xa[b n d], lo[b n d]) -> [b n d]")

    def correct(self) -> list[Op]:
        """Every stream with its share of what the first has become, `z1[b n d]`."""
        return self.weigh("z1") + ops(
            "mlp",
            "cc = linear(m[b n S], Wcor[S O]) -> [b n O]",
            "cc = rename(cc[b n O]) -> [b n S]",
            "news = add(z1[b n d], x1[b n d]) -> [b n d]",
            "news = mul(news[b n d], cc[b n S]) -> [b n S d]",
            "x = add(x[b n S d], news[b n S d]) -> [b n S d]",
        )

    def add_own(self) -> list[Op]:
        """The layer's own input, made with the first stream, added to the others."""
        made = ops("mlp", "x1 = first(x[b n S d]) -> [b n d]", "x1 = mul(x1[b n d], Rc[d]) -> [b n d]")
        made += self.own.ops("x1", "yl") + self.norm.ops("yl", "yl", "pl")
        return made + ops(
            "other",
            "rest = slice(x[b n S d]) -> [b n Q d]",
            "rest = add(rest[b n Q d], yl[b n d]) -> [b n Q d]",
            "x = view(x[b n S d]) -> [b n S d]",
        )


@dataclass(frozen=True)
class AltupDecoder(Decoder):
    """A decoder of several streams, whose mean goes on behind the last layer."""

    streams: int = 2

    def after_layers(self, names: Mapping[str, str]) -> list[Segment]:
        """The streams but the first projected back, brought to its size, and the mean of all."""
        made = ops(
            "embedding",
            "xs = slice(x[b n S d]) -> [b n Q d]",
            "xs = linear(xs[b n Q d], Unalt[Q d o]) -> [b n Q o]",
            "xs = rename(xs[b n Q o]) -> [b n Q d]",
            "x = first(x[b n S d]) -> [b n d]",
            "size = rms(x[b n d]) -> [b n]",
        )
        made += gathered("embedding") + ops("embedding", "x = mean(x[b n S d]) -> [b n d]")
        sizes = {**stream_sizes(self.streams), "d": self.width, "o": self.width}
        return [Segment("streams", make_block("streams", made, sizes, names))]
