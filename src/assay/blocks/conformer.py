"""The conformer (Gulati et al. 2020, arXiv:2005.08100): half an MLP, attention, a convolution, half an MLP; and what
stands before and behind its layers in an encoder of sound that shortens its sequence.

Axes: j what a frame holds, i channels of a convolution, q columns of its kernel, U rows of the table of distances.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from assay.blocks.attention import Attention
from assay.blocks.encoders import Encoder
from assay.blocks.ends import Embedding, Norm
from assay.blocks.mlp import Mlp, feed_forward
from assay.blocks.stacks import make_block
from assay.records import dataclass, replace
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class Feed(Mlp):
    """One of several MLPs of a layer, told apart by what follows the m of their `tag`."""

    tag: str = "m1"

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        names = " ".join(letter + self.tag[1:] for letter in ("Wg", "Wu", "Wd"))
        return feed_forward("mlp", x, y, names, "f", self.gated, self.activation, self.bias, self.inner)


@dataclass(frozen=True)
class RelativeAttention(Attention):
    """Attention whose scores hold where keys stand: by a projection of sines and two biases of the queries
    (Dai et al. 2019, arXiv:1901.02860, 3.3), or by a learned vector of each clipped distance (Shaw et al. 2018).
    """

    by: Literal["sines", "distances"] = "sines"
    rows: int | None = None  # of the table of distances

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "U": self.rows}

    def placed(self) -> list[Op]:
        """`bias[b g r n c]`, what a score holds of where its key stands."""
        axes = "[b g r n c]"
        if self.by == "distances":
            return ops(
                "attention",
                "dist = gather(at[n c], Distance[U k]) -> [n c k]",
                f"bias = contract(q[b n g r k], dist[n c k]) -> {axes}",
            )
        return ops(
            "attention",
            "off = offsets(at[n]) -> [e]",
            "sin = repeat(off[e]) -> [e d]",
            "pos = linear(sin[e d], Wpos[d g r k]) -> [e g r k]",
            "qv = add(q[b n g r k], Biasv[g r k]) -> [b n g r k]",
            "bias = contract(qv[b n g r k], pos[e g r k]) -> [b g r n e]",
            f"bias = take(bias[b g r n e], at{axes}) -> {axes}",
            "q = add(q[b n g r k], Biasu[g r k]) -> [b n g r k]",
        )

    def attend(self) -> list[Op]:
        """softmax((q k + q position) / sqrt(k)) v."""
        axes, before = "[b g r n c]", self.placed()
        made = super().attend()
        at = next(index for index, op in enumerate(made) if op.name == "s") + 1
        summed = ops("attention.scores", f"s = add(s{axes}, bias{axes}) -> {axes}")
        return [*before, *made[:at], *summed, *made[at:]]


@dataclass(frozen=True)
class Convolution:
    """A gated matrix, a kernel of each channel over its neighbours, a norm, an activation, a matrix."""

    width: int
    kernel: int
    activation: str = "silu"
    norm: Norm | None = None  # over the channels; by stored statistics where None

    part = "mixer"
    tag = "conv"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"i": self.width, "q": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        part, axes = "mixer", "[b n i]"
        made = ops(
            part,
            f"u = linear({x}[b n d], Wua[d i]) -> {axes}",
            f"z = linear({x}[b n d], Wub[d i]) -> {axes}",
            f"z = sigmoid(z{axes}) -> {axes}",
            f"u = mul(u{axes}, z{axes}) -> {axes}",
            f"w = unfold(u{axes}) -> [b n i q]",
            f"u = linear(w[b n i q], Wk1[i q]) -> {axes}",
        )
        if self.norm is not None:
            made += self.norm.ops("u", "u", "w", "b n i", "i")
        else:
            made += ops("norm", f"u = batchnorm(u{axes}, Gw[i], Bw[i], Mean[i], Var[i], Seen[]) -> {axes}")
        made += ops(part, f"u = {self.activation}(u{axes}) -> {axes}")
        return made + ops(part, f"{y} = linear(u{axes}, Wpoint[i d]) -> [b n d]")


@dataclass(frozen=True)
class Features(Embedding):
    """Frames of `vocab` features, normed and projected to the model's width."""

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"j": self.vocab, "d": self.width}

    def ops(self) -> list[Op]:
        """From `frames[b n j]` to `x[b n d]`."""
        norm = self.norm or Norm("layernorm", "gain+bias")
        made = norm.ops("frames", "x", "e", "b n j", "j")
        return made + ops("embedding", "x = linear(x[b n j], Win[j d], Win_bias[d]) -> [b n d]")


@dataclass(frozen=True)
class Adapting(Attention):
    """The adapter's attention."""

    own: str = "adapt."


@dataclass(frozen=True)
class Adapter:
    """A shorter sequence: gated convolutions with a stride before attention and beside it, an MLP."""

    attention: Adapting
    mlp: Mlp
    norm: Norm
    kernel: int
    stride: int

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        width = self.attention.heads * self.attention.head_width
        return {**self.attention.sizes(), **self.mlp.sizes(), "q": self.kernel, "i": width}

    def shorten(self, name: str, weight: str) -> list[Op]:
        """`name[b n i]` from the normed frames `x[b m d]`."""
        made = self.norm.ops("x", name, weight, "b m d")
        made += ops("attention", f"{name} = columns({name}[b m d], stride={self.stride}) -> [b n d q]")
        for half in "ab":
            made += ops(
                "attention",
                f"{name}{half} = linear({name}[b n d q], W{weight}{half}[d q i], W{weight}{half}_bias[i]) -> [b n i]",
            )
        return made + ops(
            "attention",
            f"{name}b = sigmoid({name}b[b n i]) -> [b n i]",
            f"{name} = mul({name}a[b n i], {name}b[b n i]) -> [b n i]",
            f"{name} = rename({name}[b n i]) -> [b n d]",
        )

    def ops(self) -> list[Op]:
        """`x[b n d]` from frames `x[b m d]`."""
        made = [*self.shorten("r", "res"), *self.shorten("xa", "sub"), *self.attention.ops("xa", "y")]
        made += ops("other", "y = add(y[b n d], r[b n d]) -> [b n d]")
        made += self.norm.ops("y", "xm", "m")
        made += self.mlp.ops("xm", "ym")
        return made + ops("other", "x = add(y[b n d], ym[b n d]) -> [b n d]")


@dataclass(frozen=True)
class SoundEncoder(Encoder):
    """Layers over frames, half an MLP, and an adapter to fewer positions; a norm last."""

    bridge: Feed = Feed(1)
    adapter: Adapter | None = None
    norm: Norm = Norm()

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What sees frames, and what sees the positions that are left."""
        frames = {"n": "frames", "t": "frames"} if self.adapter is not None else {}
        made = [replace(segment, axes=frames) for segment in super().segments(names)]
        between = [*self.norm.ops("x", "x", "f"), *self.bridge.ops("x", "y")]
        between += ops("other", "x = add(x[b n d], y[b n d], scale=0.5) -> [b n d]")
        sizes = {**self.bridge.sizes(), "d": self.width}
        made.append(Segment("bridge", make_block("bridge", between, sizes, names), axes=frames))
        if self.adapter is not None:
            sizes = {**self.adapter.sizes(), "d": self.width}
            made.append(Segment("adapter", make_block("adapter", self.adapter.ops(), sizes, names)))
        last = make_block("norm", self.norm.ops("x", "x", "last"), {"d": self.width}, names)
        return (*made, Segment("norm", last))
