"""Encoder layers that save: grouped projections, bottlenecks, convolutions and Fourier transforms beside attention.

Axes: G groups of channels, I what each reads, O what it gives; K columns of a kernel, e heads that are convolved, z
these and those that attend; s the narrow stream; W a word and its neighbours, j narrow words or a head's dense layer.
"""

from __future__ import annotations

from assay.blocks.attention import Attention
from assay.blocks.encoders import MaskedHead, Tables
from assay.blocks.ends import VOCABULARY, Norm
from assay.blocks.rewritten import as_part
from assay.blocks.stacks import Layer
from assay.records import dataclass
from assay.spec import Op, ops


def grouped(part: str, y: str, x: str, axes: tuple[str, str], tag: str, weight: str, bias: str) -> list[Op]:
    """`y[b n out]` from `x[b n into]`, `axes` being (into, out): each of G groups of channels has its own matrix."""
    into, out = axes
    return ops(
        part,
        f"{y} = reshape({x}[b n {into}]) -> [b n G{tag} I{tag}]",
        f"{y} = linear({y}[b n G{tag} I{tag}], {weight}[G{tag} I{tag} O{tag}], {bias}[G{tag} O{tag}])"
        f" -> [b n G{tag} O{tag}]",
        f"{y} = reshape({y}[b n G{tag} O{tag}]) -> [b n {out}]",
    )


def group_sizes(tag: str, groups: int, into: int, out: int) -> dict[str, int | None]:
    """The axes of a grouped projection."""
    return {f"G{tag}": groups, f"I{tag}": into // groups, f"O{tag}": out // groups}


@dataclass(frozen=True)
class GroupedAttention(Attention):
    """Every projection in groups of channels (SqueezeBERT, Iandola et al. 2020)."""

    channels: int = 1
    groups: tuple[int, int, int, int] = (1, 1, 1, 1)  # of queries, keys, values and the output

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        found = super().sizes()
        for tag, groups in zip("qkvo", self.groups, strict=True):
            found |= group_sizes(tag, groups, self.channels, self.channels)
        return found

    def projected(self, name: str, source: str, tokens: str, axes: str, width: str = "d") -> list[Op]:
        """One of q, k, v."""
        return grouped("attention", name, source.partition("[")[0], (width, axes), name, f"W{name}", f"B{name}")

    def emit(self, x: str, y: str) -> list[Op]:
        """The output projection."""
        return grouped("attention", y, "o", ("g r v", "d"), "o", "Wo", "Bo")


@dataclass(frozen=True)
class GroupedMlp:
    """A feed-forward layer of two matrices, each in groups of channels."""

    width: int
    inner: int
    groups: tuple[int, int]
    activation: str = "gelu"

    part = "mlp"
    tag = "m"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        up = group_sizes("up", self.groups[0], self.width, self.inner)
        return {"f": self.inner, **up, **group_sizes("down", self.groups[1], self.inner, self.width)}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = grouped("mlp", "u", x, ("d", "f"), "up", "Wu", "Wu_bias")
        made += ops("mlp", f"u = {self.activation}(u[b n f]) -> [b n f]")
        return made + grouped("mlp", y, "u", ("f", "d"), "down", "Wd", "Wd_bias")


@dataclass(frozen=True)
class MixedAttention(Attention):
    """Half the width attends, half is convolved with kernels that each position makes (ConvBERT, Jiang et al. 2020)."""

    kernel: int = 9

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "K": self.kernel, "e": self.heads, "z": 2 * self.heads}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = self.project(x) + self.convolve(x) + self.remember() + self.attend()
        made += ops(
            "attention",
            "o = reshape(o[b n g r v]) -> [b n e v]",
            "o = concat(o[b n e v], u[b n e v]) -> [b n z v]",
            f"{y} = linear(o[b n z v], Wo[z v d], Bo[d]) -> [b n d]",
        )
        return made

    def convolve(self, x: str) -> list[Op]:
        """`u[b n e v]`: neighbours weighed by a softmax over kernels made of keys convolved and queries."""
        return ops(
            "attention",
            f"m = unfold({x}[b n d]) -> [b n d K]",
            "m = linear(m[b n d K], Wdepth[d K]) -> [b n d]",
            "m = linear(m[b n d], Wpoint[d g r k], Wpoint_bias[g r k]) -> [b n g r k]",
            "m = mul(m[b n g r k], q[b n g r k]) -> [b n g r k]",
            "m = linear(m[b n g r k], Wkernel[g r k e K], Wkernel_bias[e K]) -> [b n e K]",
            "m = softmax(m[b n e K], over=K) -> [b n e K]",
            f"u = linear({x}[b n d], Wnear[d e v], Wnear_bias[e v]) -> [b n e v]",
            "u = unfold(u[b n e v]) -> [b n e v K]",
            "u = contract(u[b n e v K], m[b n e K]) -> [b n e v]",
        )


@dataclass(frozen=True)
class Fourier:
    """The real part of a Fourier transform over tokens and channels (FNet, Lee-Thorp et al. 2021)."""

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """No axes of its own."""
        return {}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return ops("mixer", f"{y} = fourier({x}[b n d]) -> [b n d]")


@dataclass(frozen=True)
class Affine(Norm):
    """A gain and a bias where others norm (MobileBERT's "no norm", Sun et al. 2020)."""

    def ops(self, x: str, y: str, tag: str, axes: str = "b n d", over: str = "d", shared: str = "") -> list[Op]:
        """`y` = gain times `x` plus bias, over the axes `over`."""
        return ops(
            "norm",
            f"{y} = mul({x}[{axes}], G{tag}[{over}]) -> [{axes}]",
            f"{y} = add({y}[{axes}], B{tag}[{over}]) -> [{axes}]",
        )


@dataclass(frozen=True)
class Trigrams(Tables):
    """Words and their neighbours to either side through one matrix, then the tables (MobileBERT)."""

    neighbours: int = 3

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "W": self.neighbours}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        rest = Tables(self.vocab, self.width, norm=self.norm, tables=self.tables).ops()[1:]
        return [
            *ops(
                "embedding",
                "x = gather(ids[b n], E[V j]) -> [b n j]",
                "x = unfold(x[b n j], order=back) -> [b n j W]",
                "x = linear(x[b n j W], Ein[W j d], Ein_bias[d]) -> [b n d]",
            ),
            *rest,
        ]


@dataclass(frozen=True)
class Bottlenecked(Layer):
    """MobileBERT's layer: narrow through attention and `stacked` feed-forward layers, wide between layers.

    `narrow` None leaves the bottleneck out. Where queries and keys have a bottleneck of their `own`, values are wide;
    else all three read the narrow input.
    """

    heads: int = 1
    head_width: int = 1
    narrow: int | None = None
    inner: int = 1
    stacked: int = 1
    own: bool = True
    activation: str = "relu"
    norm: Norm = Norm()

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"g": self.heads, "r": 1, "k": self.head_width, "v": self.head_width, "s": self.narrow, "f": self.inner}

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        s = "d" if self.narrow is None else "s"
        made = self.squeeze(s)
        made += self.attention("a", "x", s, "d", s) if self.own and s == "s" else self.attention("y", "y", s, s, s)
        for index in range(self.stacked):
            last = index == self.stacked - 1
            made += self.feed_forward("" if last else str(index), s)
        if s == "s":
            made += ops("other", "h = linear(y[b n s], Wwide[s d], Wwide_bias[d]) -> [b n d]")
            made += ops("other", "x = add(h[b n d], x[b n d]) -> [b n d]") + self.norm.ops("x", "x", "wide")
        else:
            made += ops("other", "x = view(y[b n d]) -> [b n d]")
        return made

    def squeeze(self, s: str) -> list[Op]:
        """`y`, the narrow stream, and `a`, what queries and keys read."""
        if s == "d":
            return ops("other", "y = view(x[b n d]) -> [b n d]")
        made: list[Op] = []
        for name, tag in (("y", "in"), ("a", "qk"))[: 2 if self.own else 1]:
            made += ops("other", f"{name} = linear(x[b n d], W{tag}[d s], W{tag}_bias[s]) -> [b n s]")
            made += self.norm.ops(name, name, tag, "b n s", "s")
        return made

    def attention(self, reads: str, wide: str, d: str, e: str, s: str) -> list[Op]:
        """`y[b n s]` = norm(y + attention), queries and keys from `reads`, values from `wide`."""
        whole = Attention(self.heads, self.heads, self.head_width, sees="all")
        made = ops(
            "attention",
            f"q = linear({reads}[b n {d}], Wq[{d} g r k], Bq[g r k]) -> [b n g r k]",
            f"k = linear({reads}[b n {d}], Wk[{d} g k], Bk[g k]) -> [b n g k]",
            f"v = linear({wide}[b n {e}], Wv[{e} g v], Bv[g v]) -> [b n g v]",
        )
        made += whole.remember() + whole.attend()
        made += ops(
            "attention",
            f"o = linear(o[b n g r v], Wo[g r v {s}], Bo[{s}]) -> [b n {s}]",
            f"y = add(o[b n {s}], y[b n {s}]) -> [b n {s}]",
        )
        return made + self.norm.ops("y", "y", "t0", f"b n {s}", s)

    def feed_forward(self, tag: str, s: str) -> list[Op]:
        """`y[b n s]` = norm(y + feed-forward)."""
        made = ops(
            "mlp",
            f"u = linear(y[b n {s}], Wu{tag}[{s} f], Wu{tag}_bias[f]) -> [b n f]",
            f"u = {self.activation}(u[b n f]) -> [b n f]",
            f"u = linear(u[b n f], Wd{tag}[f {s}], Wd{tag}_bias[{s}]) -> [b n {s}]",
            f"y = add(u[b n {s}], y[b n {s}]) -> [b n {s}]",
        )
        return made + self.norm.ops("y", "y", f"t1{tag}", f"b n {s}", s)


@dataclass(frozen=True)
class SplitHead(MaskedHead):
    """A masked-language head whose matrix is the narrow table of words, and further rows (MobileBERT)."""

    narrow: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "s": self.narrow, "rest": self.width - self.narrow}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t V]`."""
        made = ops(
            "head",
            "y = keep(x[b n d]) -> [b t d]",
            "y = linear(y[b t d], Wdense[d j], Bdense[j]) -> [b t j]",
            f"y = {self.activation}(y[b t j]) -> [b t j]",
        )
        if self.norm is not None:
            made += as_part(self.norm.ops("y", "y", "head", "b t j", "j"), "head")
        table = "E[V s]" if self.tied else "Wout[s V]"
        made += ops("head", "first = slice(y[b t j]) -> [b t s]", "last = slice(y[b t j]) -> [b t rest]")
        made += ops(VOCABULARY, f"logits = linear(first[b t s], {table}, Bout[V]) -> [b t V]")
        made += ops(
            "head",
            "more = linear(last[b t rest], Wrest[rest V]) -> [b t V]",
            "logits = add(logits[b t V], more[b t V]) -> [b t V]",
        )
        return made + (ops("head", "spare = idle(Bspare[V]) -> [V]") if self.spare else [])
