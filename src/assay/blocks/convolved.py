"""ZAYA's layer: attention whose queries and keys pass two convolutions, whose values come half of the token before
(compressed convolutional attention, Figliolia et al. 2025, arXiv:2510.04476), and a router that hands its state on.

Axes beside those of attention: K and T the columns of the convolutions, o a head's width once more, y half of the
key/value heads, R the router's width, U as much once more, Z the experts and the choice of none.
"""

from __future__ import annotations

from assay.blocks.attention import Attention
from assay.blocks.ends import Embedding, Norm
from assay.blocks.moe import Moe
from assay.blocks.stacks import Step
from assay.records import dataclass, replace
from assay.spec import Op, ops


@dataclass(frozen=True)
class ScaledEmbedding(Embedding):
    """An embedding that is shifted and scaled, each channel by its own."""

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        return super().ops() + ops("other", *affine("x", "Embedded"))


@dataclass(frozen=True)
class ConvolvedAttention(Attention):
    """Grouped heads, their queries and keys convolved over a few tokens, channel by channel and then within a head."""

    columns: int = 2
    head_columns: int = 2

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        mine = {"K": self.columns, "T": self.head_columns, "o": self.head_width, "y": self.kv_heads // 2}
        return {**super().sizes(), **mine}

    def project(self, x: str) -> list[Op]:
        """Queries and keys: projected, convolved, and added to the means of what was projected; values."""
        made = self.projected("q", f"{x}[b n d]", "b n", "g r k") + self.projected("k", f"{x}[b n d]", "b n", "g k")
        made += ops(
            "attention",
            "qr = add(q[b n g r k], k[b n g k]) -> [b n g r k]",
            "qr = scale(qr[b n g r k], by=0.5) -> [b n g r k]",
            "kr = sum(qr[b n g r k]) -> [b n g k]",
        )
        made += ops("attention", "kr = scale(kr[b n g k]) -> [b n g k]", by=self.kv_heads / self.heads)
        for name, heads in (("q", "g r"), ("k", "g")):
            axes, wide = f"b n {heads} k", f"b n {heads} o"
            inner, outer = f"K{name}[{heads} k K], L{name}[{heads} k]", f"C{name}[{heads} o k T], D{name}[{heads} o]"
            made += ops(  # before the first token the first gives its bias, which the second sees
                "attention",
                f"{name} = conv({name}[{axes}], {inner}, held=past) -> [{axes}]",
                f"{name} = conv({name}[{axes}], {outer}, held=past, before=L{name}) -> [{wide}]",
                f"{name} = rename({name}[{wide}]) -> [{axes}]",
                f"{name} = add({name}[{axes}], {name}r[{axes}]) -> [{axes}]",
            )
        made += self.projected("v", f"{x}[b n d]", "b n", "y v") + self.projected("p", f"{x}[b n d]", "b n", "y v")
        before = ", before=Bp" if "p" in self.bias else ""
        return made + ops(
            "attention",
            f"p = shift(p[b n y v]{before}) -> [b n y v]",
            "v = concat(v[b n y v], p[b n y v]) -> [b n g v]",
        )

    def norms(self) -> list[Op]:
        """Queries and keys of one length, keys times a temperature of the head."""
        made = super().norms()
        return made + ops("attention", "k = mul(k[b n g k], Temper[g]) -> [b n g k]")


@dataclass(frozen=True)
class AffineStep(Step):
    """A branch and the residual stream, each shifted and scaled, channel by channel, before they are added."""

    def ops(self, index: int) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        (branch,) = self.branches
        tag = branch.body.tag
        made, source, target = [], "x", f"y{tag}"
        if branch.before is not None:
            made, source = branch.before.ops("x", f"x{tag}", tag), f"x{tag}"
        made += branch.body.ops(source, target)
        return made + ops(
            "other",
            *affine(target, f"Branch{index}"),
            *affine("x", f"Stream{index}"),
            f"x = add(x[b n d], {target}[b n d]) -> [b n d]",
        )


def affine(x: str, weight: str) -> tuple[str, str]:
    """(x + shift) times scale."""
    return (
        f"{x} = add({x}[b n d], {weight}_shift[d]) -> [b n d]",
        f"{x} = mul({x}[b n d], {weight}_scale[d]) -> [b n d]",
    )


def with_none(op: Op) -> Op:
    """The same where an index may choose no expert."""
    return replace(op, attrs=(*op.attrs, ("none", True))) if op.kind == "select" else op


@dataclass(frozen=True)
class CarryingMoe(Moe):
    """Experts behind a router of three matrices, which adds what the router of the layer before made; one choice is
    none. Work is counted as if each token passed an expert.
    """

    router_width: int = 256
    norm: Norm = Norm()
    first: bool = False  # no layer before

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        mine = {"R": self.router_width, "U": self.router_width, "Z": self.experts + 1}
        return {**super().sizes(), **mine}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]` and the router's state `rs[b n R]` of the layer before."""
        return [*self.route(x), *(with_none(op) for op in self.routed(x, y))]

    def route(self, x: str) -> list[Op]:
        """Indices `i[b n a]` and weights `w[b n a]`."""
        part = "router"
        made = ops(part, f"l = linear({x}[b n d], router.Wdown[d R], router.Bdown[R]) -> [b n R]")
        if not self.first:
            made += ops(
                part,
                "rs = mul(rs[b n R], router.Carry[R]) -> [b n R]",
                "l = add(l[b n R], rs[b n R]) -> [b n R]",
            )
        made += ops(part, "rs = view(l[b n R]) -> [b n R]") + self.norm.ops("l", "l", "router", "b n R", "R")
        for name in "12":
            made += ops(
                part,
                f"u = linear(l[b n R], router.Fc{name}[R U], router.B{name}[U]) -> [b n U]",
                "u = gelu(u[b n U]) -> [b n U]",
                "l = rename(u[b n U]) -> [b n R]",
            )
        return made + ops(
            part,
            "l = linear(l[b n R], router.Wout[R Z]) -> [b n Z]",
            "l = softmax(l[b n Z]) -> [b n Z]",
            "m = add(l[b n Z], router.Balance[Z]) -> [b n Z]",
            "i = topk(m[b n Z]) -> [b n a]",
            "w = take(l[b n Z], i[b n a]) -> [b n a]",
        )
