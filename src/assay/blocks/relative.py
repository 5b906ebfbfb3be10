"""Inkling's layer (Thinking Machines 2026): short convolutions of keys, values and every branch's output, a bias of the
distance that each token mixes from a bank of profiles, and experts whose shared ones share the router's softmax.

Axes: E width of a relative state, X distances of the bank, K columns of a convolution; y all experts, S shared ones,
z chosen and shared ones together.
"""

from __future__ import annotations

from typing import Any

from assay.blocks.attention import Attention
from assay.blocks.mlp import activate
from assay.blocks.stacks import Wrapped
from assay.records import dataclass
from assay.spec import Op, ops


def convolved(name: str, weight: str, axes: str) -> list[Op]:
    """A tensor plus its causal convolution, channel by channel."""
    made = ops("mixer", f"{name}c = conv({name}[b n {axes}], {weight}[{axes} K]) -> [b n {axes}]")
    return made + ops("mixer", f"{name} = add({name}c[b n {axes}], {name}[b n {axes}]) -> [b n {axes}]")


@dataclass(frozen=True)
class ProfiledAttention(Attention):
    """Attention with convolved keys and values and a bias of the distance that the query's token sets."""

    kernel: int = 4
    states: int = 1
    extent: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "K": self.kernel, "E": self.states, "X": self.extent}

    def project(self, x: str) -> list[Op]:
        """Queries, convolved keys and values, and the bias of each distance."""
        made = super().project(x) + convolved("k", "Ck", "g k") + convolved("v", "Cv", "g v")
        made += ops(
            "attention",
            f"rel = linear({x}[b n d], Wr_states[d g r E]) -> [b n g r E]",
            "rel = linear(rel[b n g r E], Bank[E X]) -> [b n g r X]",
        )
        if self.temper is None:
            return made
        form, floor, by = self.temper
        return made + ops("attention", "rel = temper(rel[b n g r X]) -> [b n g r X]", form=form, floor=floor, by=by)

    def attend(self) -> list[Op]:
        """The scores with the bias of each pair's distance."""
        scores, scale, *rest = super().attend()
        more = ops(
            "attention.scores",
            "bias = behind(rel[b n g r X]) -> [b n g r c]",
            "s = add(s[b g r n c], bias[b n g r c]) -> [b g r n c]",
        )
        return [scores, scale, *more, *rest]


@dataclass(frozen=True)
class Convolved:
    """A body whose output is convolved."""

    body: Any
    kernel: int
    tag: str = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.body.sizes(), "K": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return [*self.body.ops(x, y), *convolved(y, f"C{self.tag}", "d")]


@dataclass(frozen=True)
class ScaledOutput(Wrapped):
    """A feed-forward layer with a stored multiplier."""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return [*self.body.ops(x, y), *ops("mlp", f"{y} = mul({y}[b n d], Scale[]) -> [b n d]")]


@dataclass(frozen=True)
class SinkMoe:
    """Routed experts and shared ones, weighed together: the shared ones are a sink of the routing weights."""

    experts: int
    chosen: int
    width: int
    shared: int
    scale: float
    activation: str = "silu"

    tag = "m"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        own = {"e": self.experts, "a": self.chosen, "f": self.width, "S": self.shared}
        return {**own, "y": self.experts + self.shared, "z": self.chosen + self.shared}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return [*self.route(x), *self.routed(x, y), *self.common(x, y)]

    def route(self, x: str) -> list[Op]:
        """Indices `i[b n a]`, their weights `w[b n a]`, and those of the shared experts `h[b n S]`."""
        made = ops(
            "router",
            f"l = linear({x}[b n d], Wr[d y]) -> [b n y]",
            "lr = slice(l[b n y]) -> [b n e]",
            "ls = slice(l[b n y]) -> [b n S]",
            "m = sigmoid(lr[b n e]) -> [b n e]",
            "m = add(m[b n e], Cr[e]) -> [b n e]",
            "i = topk(m[b n e]) -> [b n a]",
            "w = take(lr[b n e], i[b n a]) -> [b n a]",
            "ws = concat(w[b n a], ls[b n S]) -> [b n z]",
            "ws = sigmoid(ws[b n z]) -> [b n z]",
            "ws = normalize(ws[b n z]) -> [b n z]",
        )
        made += ops("router", "ws = scale(ws[b n z]) -> [b n z]", by=self.scale)
        return made + ops(
            "router",
            "ws = mul(ws[b n z], Scale_router[]) -> [b n z]",
            "w = slice(ws[b n z]) -> [b n a]",
            "h = slice(ws[b n z]) -> [b n S]",
        )

    def routed(self, x: str, y: str) -> list[Op]:
        """The chosen experts' outputs, weighed and summed."""
        part, axes = "experts", "[b n a f]"
        made = ops(part, f"z = select({x}[b n d], Eg[e d f], i[b n a]) -> {axes}")
        made += ops(part, f"u = select({x}[b n d], Eu[e d f], i[b n a]) -> {axes}")
        made += activate(part, "z", "u", axes, self.activation)
        made += ops(part, f"u = select(u{axes}, Ed[e f d], i[b n a]) -> [b n a d]")
        return made + ops(part, f"{y} = combine(u[b n a d], w[b n a]) -> [b n d]")

    def common(self, x: str, y: str) -> list[Op]:
        """The shared experts, each weighed within."""
        part, axes = "experts", "[b n S f]"
        made = ops(part, f"z = linear({x}[b n d], Sg[S d f]) -> {axes}", f"u = linear({x}[b n d], Su[S d f]) -> {axes}")
        made += activate(part, "z", "u", axes, self.activation)
        made += ops(part, f"u = mul(u{axes}, h[b n S]) -> {axes}", f"o = linear(u{axes}, Sd[S f d]) -> [b n d]")
        return made + ops(part, f"{y} = add({y}[b n d], o[b n d]) -> [b n d]")
