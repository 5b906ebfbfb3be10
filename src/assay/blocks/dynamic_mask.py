"""Doge's parts: attention with a mask made of the values, and experts found by two short keys.

Axes: z heads of the mask, ka and kb the two sets of keys that an expert is found by.
"""

from __future__ import annotations

from assay.blocks.attention import Attention
from assay.blocks.mlp import activate, feed_forward
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class DynamicMask(Attention):
    """Every key/value head adds exp(A softplus(Wt v)) of each key to its scores; the `keep` largest stay in sight."""

    keep: int | None = None
    mask_bias: bool = False

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes; z is g under another name."""
        return {**super().sizes(), "z": self.kv_heads, "T": self.keep}

    def held(self) -> str:
        """Each query sees the best few."""
        return super().held() + (", top=T" if self.keep is not None else "")

    def attend(self) -> list[Op]:
        """softmax(q k / sqrt(k) + m) v."""
        part, axes = "attention.scores", "[b g r n c]"
        bias = ", Bt[z]" if self.mask_bias else ""
        made = ops(
            "attention",
            f"m = linear(v[b c g v], Wt[g v z]{bias}) -> [b c z]",
            "m = softplus(m[b c z]) -> [b c z]",
            "m = mul(m[b c z], At[z]) -> [b c z]",
            "m = exp(m[b c z]) -> [b c z]",
            "m = rename(m[b c z]) -> [b c g]",
        )
        made += ops(part, f"s = contract(q[b n g r k], k[b c g k]) -> {axes}")
        made += ops(part, f"s = scale(s{axes}) -> {axes}", by=self.scale)
        made += ops(part, f"s = mask(s{axes}, m[b c g]) -> {axes}", keep=self.keep)
        made += ops(part, f"p = softmax(s{axes}) -> {axes}")
        return made + ops(part, f"o = contract(p{axes}, v[b c g v]) -> [b n g r v]")


@dataclass(frozen=True)
class ProductKeys:
    """Experts of one hidden element each (He 2024), found by the best sums of two scores; a dense MLP beside them.

    `keys` of each half make keys x keys candidates, at most as many as there are experts (Lample et al. 2019).
    """

    experts: int
    chosen: int
    keys: int
    width: int
    activation: str = "silu"
    normalize: bool = False
    bias: str = ""  # of the dense MLP

    part = "experts"
    tag = "m"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes: ka and kb are the keys of the two halves."""
        return {"e": self.experts, "a": self.chosen, "ka": self.keys, "kb": self.keys, "f": self.width}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = ops(
            "router",
            f"l = linear({x}[b n d], Wrx[d ka]) -> [b n ka]",
            f"m = linear({x}[b n d], Wrz[d kb]) -> [b n kb]",
            "l = add(l[b n ka], m[b n kb]) -> [b n ka kb]",
            "i = topk(l[b n ka kb]) -> [b n a]",
            "w = take(l[b n ka kb], i[b n a]) -> [b n a]",
            "w = softmax(w[b n a]) -> [b n a]",
        )
        if self.normalize:
            made += ops("router", "w = normalize(w[b n a]) -> [b n a]")
        made += ops("experts", f"u = select({x}[b n d], Eu[e d], i[b n a]) -> [b n a]")
        made += activate("experts", "", "u", "[b n a]", self.activation)
        made += ops(
            "experts",
            "u = mul(u[b n a], w[b n a]) -> [b n a]",
            "o = select(u[b n a], Ed[e d], i[b n a]) -> [b n a d]",
            "o = sum(o[b n a d]) -> [b n d]",
        )
        made += feed_forward("experts", x, y, "Wg Wu Wd", "f", True, self.activation, self.bias)
        return made + ops("experts", f"{y} = add({y}[b n d], o[b n d]) -> [b n d]")
