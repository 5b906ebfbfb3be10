"""Mixture of attention heads (Zhang et al. 2022): a token picks the query and output projections that it passes."""

from __future__ import annotations

from assay.blocks.attention import Rope
from assay.blocks.moe import Router
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class ExpertAttention:
    """Each of the `chosen` of `experts` gives g query heads; all of them attend to the g shared key/value heads."""

    experts: int
    chosen: int
    heads: int
    head_width: int
    positions: Rope | None = None
    router: Router = Router("softmax-of-chosen")
    output_bias: bool = False

    part = "attention"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        rope = self.positions
        return {
            "e": self.experts,
            "a": self.chosen,
            "g": self.heads,
            "k": self.head_width,
            "v": self.head_width,
            "rot": rope.width if rope is not None else None,
        }

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        part, axes = "attention.scores", "[b a g n c]"
        made = [*self.router.ops(x, "q")]
        made += ops(
            "attention",
            f"q = select({x}[b n d], Eq[e d g k], i[b n a]) -> [b n a g k]",
            f"k = linear({x}[b n d], Wk[d g k]) -> [b n g k]",
            f"v = linear({x}[b n d], Wv[d g v]) -> [b n g v]",
        )
        if self.positions is not None:
            made += [*self.positions.ops("q", "b n a g k"), *self.positions.ops("k", "b n g k")]
        made += ops("attention", "k = append(k[b n g k]) -> [b c g k]", "v = append(v[b n g v]) -> [b c g v]")
        made += ops(
            part,
            f"s = contract(q[b n a g k], k[b c g k]) -> {axes}",
            f"s = scale(s{axes}) -> {axes}",
            f"s = mask(s{axes}) -> {axes}",
            f"p = softmax(s{axes}) -> {axes}",
            f"o = contract(p{axes}, v[b c g v]) -> [b n a g v]",
        )
        made += ops(
            "attention",
            "o = select(o[b n a g v], Eo[e g v d], i[b n a]) -> [b n a d]",
            f"{y} = combine(o[b n a d], w[b n a]) -> [b n d]",
        )
        bias = ops("attention", f"{y} = add({y}[b n d], Bo[d]) -> [b n d]")
        return made + bias if self.output_bias else made
