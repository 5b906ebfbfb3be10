"""Attention with relative positions as keys of their own (Dai et al. 2019; XLNet, Yang et al. 2019), and
cross-attention that is stored and not run.

Axes: u distances of the tokens to each other, t the two sides of a segment.
"""

from __future__ import annotations

from assay.blocks.attention import Attention, CrossAttention
from assay.blocks.ends import Embedding
from assay.blocks.stacks import Layer
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class DistanceAttention(Attention):
    """Queries with one bias for content and one for distances, scored against the keys of both."""

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "two": 2}

    def place(self) -> list[Op]:
        """The queries of both sorts, and keys of distances made of sines and cosines."""
        return ops(
            "attention",
            "qr = add(q[b n g r k], Bdistance[g r k]) -> [b n g r k]",
            "q = add(q[b n g r k], Bcontent[g r k]) -> [b n g r k]",
            "far = distances(sines[n d], tokens=n, limit=n) -> [u d]",
            "kr = linear(far[u d], Wdistance[d g r k]) -> [u g r k]",
            "idle_q = idle(Bsegment[g r k]) -> [g r k]",
            "idle_s = idle(Segment[two g r k]) -> [two g r k]",
        )

    def attend(self) -> list[Op]:
        """softmax((q k + q' k' shifted to the pairs' distances) / sqrt(k)) v."""
        scores, *rest = super().attend()
        more = ops(
            "attention.scores",
            "d = contract(qr[b n g r k], kr[u g r k]) -> [b g r n u]",
            "d = rename(d[b g r n u]) -> [b g r n c]",
            "s = add(s[b g r n c], d[b g r n c]) -> [b g r n c]",
        )
        return [scores, *more, *rest]


@dataclass(frozen=True)
class MaskedEmbedding(Embedding):
    """An embedding beside a vector for tokens to be predicted, which only training reads."""

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        return super().ops() + ops("embedding", "unused = idle(E_mask[d]) -> [d]")


@dataclass(frozen=True)
class IdleCrossLayer(Layer):
    """A layer that stores the weights of cross-attention and of its norm, in a class that is given no source."""

    cross: CrossAttention = CrossAttention(1, 1, 1)
    source: int = 1  # width of what it would read

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes: x is the source's width."""
        return {**super().sizes(), "x": self.source}

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`, and weights that nothing reads."""
        made = super().ops()
        for name, axes in {"q": "d g r k", "k": "x g k", "v": "x g v", "o": "g r v d"}.items():
            made += ops("attention", f"idle_{name} = idle(cross.W{name}[{axes}]) -> [{axes}]")
            if name in self.cross.bias:
                out = "d" if name == "o" else axes[2:]
                made += ops("attention", f"idle_b{name} = idle(cross.B{name}[{out}]) -> [{out}]")
        return made + ops("norm", *(f"idle_{name} = idle(cross.{name}a[d]) -> [d]" for name in ("G", "B")))
