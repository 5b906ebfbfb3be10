"""Disentangled attention (He et al. 2020, DeBERTa): scores of contents, and of contents with relative positions.

Axes: U rows of the table of relative positions, u those in use; K columns of the convolution, D what it gives.
"""

from __future__ import annotations

from assay.blocks.attention import Attention
from assay.blocks.encoders import Tables
from assay.blocks.ends import Norm
from assay.blocks.stacks import Layer
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class Distances(Tables):
    """The same with vectors of relative positions, which every layer's attention reads: `span` to either side."""

    span: int | None = None
    span_norm: Norm | None = None

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "U": None if self.span is None else 2 * self.span}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`, and `rel[U d]`."""
        made = super().ops()
        if self.span is not None:
            made += ops("embedding", "rel = gather(at[U], E_relative[U d]) -> [U d]")
            if self.span_norm is not None:
                made += self.span_norm.ops("rel", "rel", "rel", "U d")
        return made


@dataclass(frozen=True)
class Disentangled(Attention):
    """Contents score each other and, by `terms`, positions: content-to-position c2p, position-to-content p2c.

    `shared` projects positions by the contents' own matrices; `near` leaves out distances that no two tokens have.
    """

    terms: tuple[str, ...] = ("c2p", "p2c")
    span: int = 1
    shared: bool = False
    near: bool = False
    far: int | None = None  # up to where distances are told apart, where they are in buckets

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "U": 2 * self.span, "u": None if self.near else 2 * self.span, "span": self.span}

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values, and the positions' queries and keys."""
        picked = "distances(rel[U d], tokens=n, limit=span)" if self.near else "rename(rel[U d])"
        made = super().project(x) + ops("attention", f"at = {picked} -> [u d]")
        # with shared matrices the implementation makes both, whichever is read
        for name, term, axes in (("k", "c2p", "g k"), ("q", "p2c", "g r k")):
            weight = name if self.shared else f"p{name}"
            bias = f", B{weight}[{axes}]" if weight in ("k", "q", "pq") or not self.near else ""
            if self.shared or term in self.terms:
                made += ops("attention", f"p{name} = linear(at[u d], W{weight}[d {axes}]{bias}) -> [u {axes}]")
        return made

    def attend(self) -> list[Op]:
        """softmax(c2c + c2p + p2c) v."""
        content, scale, *rest = super().attend()
        made, scores = [content], "[b g r n c]"
        far = "" if self.far is None else f", far={self.far}"
        if "c2p" in self.terms:
            made += ops(
                "attention",
                "cp = contract(q[b n g r k], pk[u g k]) -> [b g r n u]",
                f"cp = take(cp[b g r n u], distance[n c], centred=True{far}) -> {scores}",
            )
        if "p2c" in self.terms:
            made += ops(
                "attention",
                "pc = contract(k[b c g k], pq[u g r k]) -> [b g r c u]",
                f"pc = take(pc[b g r c u], distance[n c], centred=True{far}) -> {scores}",
            )
        added = [f"{name}{scores}" for name, term in (("cp", "c2p"), ("pc", "p2c")) if term in self.terms]
        if added:
            made += ops("attention", f"s = add(s{scores}, {', '.join(added)}) -> {scores}")
        by = (self.head_width * (1 + len(added))) ** -0.5
        return [*made, *ops(scale.part, f"s = scale(s{scores}, by={by!r}) -> {scores}"), *rest]


@dataclass(frozen=True)
class Convolved(Layer):
    """A layer, and beside it a convolution over neighbours of what the layer reads, added and normed (DeBERTa-v2)."""

    width: int = 1
    kernel: int = 3
    activation: str = "tanh"
    norm: Norm = Norm()

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        made = ops("mixer", "h = view(x[b n d]) -> [b n d]") + super().ops()
        made += ops(
            "mixer",
            "h = unfold(h[b n d]) -> [b n d K]",
            "h = linear(h[b n d K], Wconv[D d K], Wconv_bias[D]) -> [b n D]",
            "h = rename(h[b n D]) -> [b n d]",
            f"h = {self.activation}(h[b n d]) -> [b n d]",
            "x = add(x[b n d], h[b n d]) -> [b n d]",
        )
        return made + self.norm.ops("x", "x", "conv")

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "K": self.kernel, "D": self.width}
