"""Layers that use the keys and values of an earlier layer again, inputs of their own for each layer, and alternating
updates of several streams: Gemma 3n and Gemma 4 (Google DeepMind 2025; Baykal et al. 2023, arXiv:2301.13310).

Axes: Y layers, p the width of a layer's own input, U rows of its table; S streams, Q those beside the first, A and O
streams before and after a prediction, K one stream, R the rank of the learned residual.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.attention import Attention, Rope
from assay.blocks.ends import Embedding, Norm
from assay.blocks.mlp import Mlp
from assay.blocks.moe import Moe
from assay.blocks.stacks import Decoder, Layer, make_block
from assay.records import dataclass
from assay.spec import Op, Segment, ops

PLAIN = Norm(affine="none")


@dataclass(frozen=True)
class SharedKeysAttention(Attention):
    """Attention that may read an earlier layer's keys and values, or make values of its keys."""

    reuses: bool = False
    keys_are_values: bool = False  # one projection for both
    value_norm: Norm = PLAIN
    lends: str = ""  # what later layers call its keys and values, or this layer those of an earlier one

    def project(self, x: str) -> list[Op]:
        """Queries; keys and values where this layer makes them."""
        made = self.projected("q", f"{x}[b n d]", "b n", "g r k")
        if self.reuses:
            return made
        made += self.projected("k", f"{x}[b n d]", "b n", "g k")
        if self.keys_are_values:
            return made + ops("attention", "v = rename(k[b n g k]) -> [b n g v]")
        return made + self.projected("v", f"{x}[b n d]", "b n", "g v")

    def norms(self) -> list[Op]:
        """Norms of queries, keys and values."""
        assert self.qk_norm is not None
        made = self.qk_norm.ops("q", "q", "qn", "b n g r k", "k")
        if self.reuses:
            return made
        made += self.qk_norm.ops("k", "k", "kn", "b n g k", "k")
        return made + self.value_norm.ops("v", "v", "vn", "b n g v", "v")

    def turn(self) -> list[Op]:
        """Queries rotated, and keys where this layer makes them."""
        if not isinstance(self.positions, Rope):
            return []
        made = self.positions.ops("q", "b n g r k")
        return made if self.reuses else made + self.positions.ops("k", "b n g k")

    def remember(self) -> list[Op]:
        """Keys and values behind those of earlier passes; those that an earlier layer keeps."""
        keys, values = f"keys{self.lends}", f"values{self.lends}"
        if self.reuses:
            return ops(
                "attention",
                f"k = reuse({keys}[b n g k]{self.held()}) -> [b c g k]",
                f"v = reuse({values}[b n g v]{self.held()}) -> [b c g v]",
            )
        made = super().remember()
        if not self.lends:
            return made
        lent = (f"{keys} = view(k[b c g k]) -> [b c g k]", f"{values} = view(v[b c g v]) -> [b c g v]")
        return made + ops("attention", *lent)


@dataclass(frozen=True)
class SparsifiedMlp(Mlp):
    """A feed-forward layer whose gate keeps only what stands out of its row."""

    share: float = 0.95  # of a normal distribution that is cut off

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = super().ops(x, y)
        at = next(i for i, op in enumerate(made) if op.name == "z") + 1
        return [*made[:at], *ops("mlp", "z = sparsify(z[b n f]) -> [b n f]", share=self.share), *made[at:]]


@dataclass(frozen=True)
class LayerInput:
    """A gate of the stream times the layer's own input of this token, one of `own[b n Y p]`, projected back."""

    width: int
    activation: str
    layers: int = 1

    part = "mlp"
    tag = "l"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"p": self.width, "Y": self.layers}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return ops(
            "mlp",
            f"e = linear({x}[b n d], Wli[d p]) -> [b n p]",
            f"e = {self.activation}(e[b n p]) -> [b n p]",
            "mine = first(own[b n Y p], at=layer) -> [b n p]",
            "e = mul(e[b n p], mine[b n p]) -> [b n p]",
            f"{y} = linear(e[b n p], Wlo[p d]) -> [b n d]",
        )


@dataclass(frozen=True)
class BesideMoe(Moe):
    """Experts beside a dense layer, each with norms of its own; the router reads a scaled norm of the stream.

    Axes: F the dense layer's width.
    """

    dense: int = 1
    norm: Norm = PLAIN
    model: int = 1  # the stream's width

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "F": self.dense}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = self.norm.ops(x, "xm", "m") + self.beside("xm", "yd") + self.norm.ops("yd", "yd", "pm1")
        made += self.choose(x) + self.norm.ops(x, "xe", "m2") + self.routed("xe", "ye")
        made += self.norm.ops("ye", "ye", "pm2")
        return made + ops("other", f"{y} = add(yd[b n d], ye[b n d]) -> [b n d]")

    def beside(self, x: str, y: str) -> list[Op]:
        """The dense layer."""
        return ops(
            "mlp",
            f"z = linear({x}[b n d], Wg[d F]) -> [b n F]",
            f"u = linear({x}[b n d], Wu[d F]) -> [b n F]",
            f"z = {self.activation}(z[b n F]) -> [b n F]",
            "u = mul(z[b n F], u[b n F]) -> [b n F]",
            f"{y} = linear(u[b n F], Wd[F d]) -> [b n d]",
        )

    def choose(self, x: str) -> list[Op]:
        """Indices `i[b n a]` and weights `w[b n a]`."""
        made = PLAIN.ops(x, "xr", "r") + ops("router", "xr = mul(xr[b n d], Sr[d]) -> [b n d]")
        return made + ops(
            "router",
            f"xr = scale(xr[b n d], by={self.model**-0.5!r}) -> [b n d]",
            "l = linear(xr[b n d], Wr[d e]) -> [b n e]",
            "l = softmax(l[b n e]) -> [b n e]",
            "i = topk(l[b n e]) -> [b n a]",
            "w = take(l[b n e], i[b n a]) -> [b n a]",
            "w = normalize(w[b n a]) -> [b n a]",
            "we = take(Se[e], i[b n a]) -> [b n a]",
            "w = mul(w[b n a], we[b n a]) -> [b n a]",
        )


@dataclass(frozen=True)
class ScaledLayer(Layer):
    """A layer whose output is multiplied by a stored number."""

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        return super().ops() + ops("other", "x = mul(x[b n d], Scalar[]) -> [b n d]")


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


@dataclass(frozen=True)
class ProjectedInput(Embedding):
    """What an assistant reads: an embedding and a state of the main model, D wide together, brought to its width."""

    given: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"d": self.width, "D": 2 * self.given}

    def ops(self) -> list[Op]:
        """From `given[b n D]` to `x[b n d]`."""
        return ops("other", "x = linear(given[b n D], Wpre[D d]) -> [b n d]")


@dataclass(frozen=True)
class AssistantDecoder(Decoder):
    """A decoder that hands a state back to the main model. Axes: o the main model's width."""

    given: int = 1

    def after_layers(self, names: Mapping[str, str]) -> list[Segment]:
        """The state for the main model, made of what the head reads."""
        made = ops("other", "state = linear(x[b n d], Wpost[d o]) -> [b n o]")
        return [Segment("state", make_block("state", made, {"d": self.width, "o": self.given}, names))]
