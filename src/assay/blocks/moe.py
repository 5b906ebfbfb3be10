"""Mixture of experts: a router sends each token to a of e feed-forward layers (Shazeer et al. 2017; Fedus et al. 2021),
beside shared experts that every token passes (Dai et al. 2024).

Axes: s the width of shared experts, z the latent that routed ones read, where there is one.
"""

from __future__ import annotations

from typing import Literal

from assay.blocks.mlp import activate, feed_forward
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class Router:
    """How experts are chosen and weighed."""

    scores: Literal["softmax", "sigmoid", "softmax-of-chosen", "sigmoid-of-chosen", "near-softmax", "sqrtsoftplus"] = (
        "softmax"
    )
    bias: bool = False
    correction: bool = False  # a vector added for the choice alone, trained without gradient
    normalize: bool = False  # the chosen weights sum to one
    scale: float | None = None
    groups: int | None = None  # experts are chosen from the best groups only
    keep_groups: int | None = None
    judged: int | None = None  # by the sum of how many of its best experts a group is, 2 where None
    softcap: float | None = None
    jitter: float | None = None  # of near-softmax: how far from the best an expert may be

    def ops(self, x: str, tag: str = "") -> list[Op]:
        """Indices `i[b n a]` and weights `w[b n a]`; `tag` tells the weights of a layer's second router apart."""
        part = "router"
        bias = f", Br{tag}[e]" if self.bias else ""
        made = ops(part, f"l = linear({x}[b n d], Wr{tag}[d e]{bias}) -> [b n e]")
        if self.softcap is not None:
            made += ops(part, "l = softcap(l[b n e]) -> [b n e]", cap=self.softcap)
        if self.scores == "near-softmax":  # SparseMixer, Liu et al. 2023
            return made + ops(
                part,
                "i = topk(l[b n e]) -> [b n a]",
                f"w = near_softmax(l[b n e], i[b n a], jitter={self.jitter or 0.0!r}) -> [b n a]",
            )
        late = self.scores.endswith("-of-chosen")
        score = self.scores.removesuffix("-of-chosen")
        if not late:
            made += ops(part, f"l = {score}(l[b n e]) -> [b n e]")
        ranked = "l"
        if self.correction:
            ranked = "m"
            made += ops(part, f"m = add(l[b n e], Cr{tag}[e]) -> [b n e]")
        grouping = {"groups": self.groups, "keep_groups": self.keep_groups, "judged": self.judged}
        made += ops(part, f"i = topk({ranked}[b n e]) -> [b n a]", **grouping)
        made += ops(part, "w = take(l[b n e], i[b n a]) -> [b n a]")
        if late:
            made += ops(part, f"w = {score}(w[b n a]) -> [b n a]")
        if self.normalize:
            made += ops(part, "w = normalize(w[b n a]) -> [b n a]")
        if self.scale is not None:
            made += ops(part, "w = scale(w[b n a]) -> [b n a]", by=self.scale)
        return made


@dataclass(frozen=True)
class Moe:
    """Routed experts of width f, and a shared one of width s where there is one."""

    experts: int
    chosen: int
    width: int
    router: Router = Router()
    gated: bool = True
    activation: str = "silu"
    bias: str = ""  # which of g(ate), u(p), d(own) of the routed experts have one
    constants: tuple[tuple[str, float], ...] = ()  # of the activation
    weigh: Literal["output", "input"] = "output"  # what the router's weights multiply
    shared: int | None = None  # the shared experts' widths together; at 0 their gate alone is left
    shared_gate: bool = False  # a sigmoid of the token scales the shared output
    shared_bias: str = ""
    shared_activation: str | None = None  # the routed experts' by default
    scale: float | None = None  # of the sum of routed and shared experts
    output_bias: bool = False  # one vector for all experts

    part = "experts"
    tag = "m"
    within = "d"  # the axis that experts read and write

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"e": self.experts, "a": self.chosen, "f": self.width, "s": self.shared or None}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = [*self.router.ops(x), *self.routed(x, y), *self.common(x, y)]
        if self.scale is not None:
            made += ops("experts", f"{y} = scale({y}[b n d]) -> [b n d]", by=self.scale)
        if self.output_bias:
            made += ops("experts", f"{y} = add({y}[b n d], By[d]) -> [b n d]")
        return made

    def routed(self, x: str, y: str) -> list[Op]:
        """The chosen experts' outputs, weighed and summed."""
        part, axes, index = "experts", "[b n a f]", "i[b n a]"

        def shift(weight: str, letter: str, width: str) -> str:
            return f", {weight}_bias[e {width}]" if letter in self.bias else ""

        made, source, d = [], f"{x}[b n {self.within}]", self.within
        if self.weigh == "input":
            made, source = ops(part, f"m = mul({source}, w[b n a]) -> [b n a {d}]"), f"m[b n a {d}]"
        if self.gated:
            made += ops(part, f"z = select({source}, Eg[e {d} f]{shift('Eg', 'g', 'f')}, {index}) -> {axes}")
        made += ops(part, f"u = select({source}, Eu[e {d} f]{shift('Eu', 'u', 'f')}, {index}) -> {axes}")
        made += activate(part, "z" if self.gated else "", "u", axes, self.activation, **dict(self.constants))
        made += ops(part, f"u = select(u{axes}, Ed[e f {d}]{shift('Ed', 'd', d)}, {index}) -> [b n a {d}]")
        if self.weigh == "input":
            return made + ops(part, f"{y} = sum(u[b n a {d}]) -> [b n {d}]")
        return made + ops(part, f"{y} = combine(u[b n a {d}], w[b n a]) -> [b n {d}]")

    def common(self, x: str, y: str) -> list[Op]:
        """The experts that every token passes."""
        if self.shared is None:
            return []
        gate: list[Op] = []
        if self.shared_gate:
            gate = ops("router", f"z = linear({x}[b n d], Ws[d]) -> [b n]", "z = sigmoid(z[b n]) -> [b n]")
        if self.shared == 0:
            return gate
        activation = self.shared_activation or self.activation
        constants = self.constants if activation == self.activation else ()
        made = feed_forward(
            "experts", x, "o", "Sg Su Sd", "s", self.gated, activation, self.shared_bias, constants=constants
        )
        if self.shared_gate:
            made += gate
            made += ops("experts", "o = mul(o[b n d], z[b n]) -> [b n d]")
        return made + ops("experts", f"{y} = add({y}[b n d], o[b n d]) -> [b n d]")


@dataclass(frozen=True)
class LatentMoe(Moe):
    """Routed experts that read and write a narrower latent, between two projections of all of them (Nemotron 3)."""

    latent: int = 1
    latent_bias: bool = False

    within = "z"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "z": self.latent}

    def routed(self, x: str, y: str) -> list[Op]:
        """Down to the latent, the experts, and up again."""
        down, up = (", Blin[z]", ", Blup[d]") if self.latent_bias else ("", "")
        return [
            *ops("experts", f"lx = linear({x}[b n d], Wlin[d z]{down}) -> [b n z]"),
            *super().routed("lx", "ly"),
            *ops("experts", f"{y} = linear(ly[b n z], Wlup[z d]{up}) -> [b n d]"),
        ]
