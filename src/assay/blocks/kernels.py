"""Encoders' attention with something else in the softmax's place or beside it, over the same projections.

Axes: K columns of the convolution.
"""

from __future__ import annotations

from assay.blocks.attention import Attention, Rope
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class Turned(Attention):
    """Values rotated to their positions, as queries and keys are (RoFormer, an option)."""

    def turn(self) -> list[Op]:
        """Queries, keys and values rotated."""
        made = super().turn()
        return made + self.positions.ops("v", "b n g v") if isinstance(self.positions, Rope) else made


@dataclass(frozen=True)
class Expected(Attention):
    """The chance that query and key share a code of `code` hashes, (1 - acos(q k) / pi)^code (Zeng et al. 2021)."""

    code: int = 9

    def attend(self) -> list[Op]:
        """Chances in the place of a softmax."""
        axes = "[b g r n c]"
        (chances,) = ops("attention.scores", f"p = collision(s{axes}) -> {axes}", code=self.code)
        return [chances if op.kind == "softmax" else op for op in super().attend()]


@dataclass(frozen=True)
class Nystrom(Attention):
    """Beside attention, each head's values convolved along the tokens with a kernel of its own (Xiong et al. 2021)."""

    kernel: int = 65

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "K": self.kernel}

    def attend(self) -> list[Op]:
        """softmax(q k) v, plus the convolution of v."""
        return super().attend() + ops(
            "attention",
            "w = unfold(v[b c g v]) -> [b c g v K]",
            "w = linear(w[b c g v K], Wmix[g r K]) -> [b c g r v]",
            "w = rename(w[b c g r v]) -> [b n g r v]",
            "o = add(o[b n g r v], w[b n g r v]) -> [b n g r v]",
        )
