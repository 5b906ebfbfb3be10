"""Differential attention: the difference of two softmaxes, so that what both attend to cancels (Ye et al. 2024).

Axes: side the two softmaxes, y heads of keys and values on each side, w the values of both.
"""

from __future__ import annotations

from assay.blocks.attention import Rope
from assay.blocks.ends import Norm
from assay.records import dataclass
from assay.spec import Op, ops

MAPS, VALUES = "b side y r n c", "b c y v"


@dataclass(frozen=True)
class DifferentialAttention:
    """Heads in two sides, whose attentions are subtracted; values in two halves, read by both sides.

    A pair of heads, one of each side, shares a value twice as wide. Kernels have one width for keys and values, so
    both maps are computed once for each half of the values, as the public implementation does.
    """

    heads: int
    kv_heads: int  # even: half of them on each side
    head_width: int
    norm: Norm  # of a pair's output
    bias: str = ""  # which of q, k, v, o have one
    positions: Rope | None = None

    part = "attention"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {
            "h": self.heads,
            "g": self.kv_heads,
            "side": 2,
            "y": self.kv_heads // 2,
            "r": self.heads // self.kv_heads,
            "k": self.head_width,
            "v": self.head_width,
            "w": 2 * self.head_width,
            "rot": None if self.positions is None else self.positions.width,
        }

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made: list[Op] = []
        for name, axes in (("q", "side y r k"), ("k", "side y k"), ("v1", "y v"), ("v2", "y v")):
            bias = f", B{name}[{axes}]" if name[0] in self.bias else ""
            made += ops("attention", f"{name} = linear({x}[b n d], W{name}[d {axes}]{bias}) -> [b n {axes}]")
        if self.positions is not None:
            made += self.positions.ops("q", "b n side y r k") + self.positions.ops("k", "b n side y k")
        made += ops("attention", "k = append(k[b n side y k]) -> [b c side y k]")
        for half in "12":
            made += ops("attention", f"v{half} = append(v{half}[b n y v]) -> [{VALUES}]")
        made += ops("attention", "l = differential(Lq1[k], Lk1[k], Lq2[k], Lk2[k]) -> [side]")
        return made + self.attend("1") + self.attend("2") + self.emit(y)

    def attend(self, half: str) -> list[Op]:
        """One half of the values under both maps, and the difference of the sides."""
        made = ops(
            "attention.scores",
            f"s = contract(q[b n side y r k], k[b c side y k]) -> [{MAPS}]",
            f"s = scale(s[{MAPS}]) -> [{MAPS}]",
            f"s = mask(s[{MAPS}]) -> [{MAPS}]",
            f"p = softmax(s[{MAPS}]) -> [{MAPS}]",
            f"o{half} = contract(p[{MAPS}], v{half}[{VALUES}]) -> [b n side y r v]",
        )
        return made + ops("attention", f"o{half} = combine(o{half}[b n side y r v], l[side]) -> [b n y r v]")

    def emit(self, y: str) -> list[Op]:
        """The halves of a pair's value together, normed, and the output projection."""
        made = ops("attention", "o = concat(o1[b n y r v], o2[b n y r v]) -> [b n y r w]")
        made += self.norm.ops("o", "o", "o", "b n y r w", "w")
        made += ops("attention", "o = scale(o[b n y r w]) -> [b n y r w]", by="1 - lambda_init")
        bias = ", Bo[d]" if "o" in self.bias else ""
        return made + ops("attention", f"{y} = linear(o[b n y r w], Wo[y r w d]{bias}) -> [b n d]")
