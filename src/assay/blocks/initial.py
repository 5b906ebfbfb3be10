"""Layers that read the embeddings again beside the stream, and attention less what points along its own value.

Axes: o the two shares of a mix, j words narrower than the model, V rows of the table of values.
"""

from __future__ import annotations

from assay.blocks.attention import Attention
from assay.blocks.ends import VOCABULARY, Embedding, Norm
from assay.blocks.stacks import Wrapped
from assay.records import dataclass
from assay.spec import Op, ops

PLAIN = Norm(affine="none")


@dataclass(frozen=True)
class ValuedEmbedding(Embedding):
    """Narrow word vectors through one matrix, normed; beside them a second table, of values of some layers."""

    groups: int = 1
    value_width: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "g": self.groups, "v": self.value_width}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`, the same as `x0`, and `values[b n g v]`."""
        norm = self.norm or PLAIN
        return [
            *ops(
                "embedding",
                "x = gather(ids[b n], E[V j]) -> [b n j]",
                "x = linear(x[b n j], Ein[j d]) -> [b n d]",
            ),
            *norm.ops("x", "x", "e"),
            *ops(
                "embedding",
                "x0 = view(x[b n d]) -> [b n d]",
                "values = gather(ids[b n], E_value[V g v]) -> [b n g v]",
            ),
        ]


@dataclass(frozen=True)
class ExclusiveAttention(Attention):
    """Attention whose outputs lose a learned share of what points along the token's own value; values may be added."""

    valued: bool = False

    def remember(self) -> list[Op]:
        """Keys and values of the pass, with the table's values where this layer adds them."""
        made = ops("attention", "v = add(v[b n g v], values[b n g v]) -> [b n g v]") if self.valued else []
        made += PLAIN.ops("v", "own", "own", "b n g v", "v")
        made += ops("attention", "own = scale(own[b n g v]) -> [b n g v]", by=float(self.head_width) ** -0.5)
        return [*made, *super().remember()]

    def emit(self, x: str, y: str) -> list[Op]:
        """The heads' outputs without that share, then the gate and the output projection."""
        made = ops(
            "attention",
            "along = mul(o[b n g r v], own[b n g v]) -> [b n g r v]",
            "along = sum(along[b n g r v]) -> [b n g r]",
            "share = tanh(Share[g r]) -> [g r]",
            "along = mul(along[b n g r], share[g r]) -> [b n g r]",
            "along = mul(along[b n g r], own[b n g v]) -> [b n g r v]",
            "along = scale(along[b n g r v]) -> [b n g r v]",
            "o = add(o[b n g r v], along[b n g r v]) -> [b n g r v]",
        )
        return [*made, *super().emit(x, y)]


@dataclass(frozen=True)
class Mixed(Wrapped):
    """A body that reads a normed mix of the stream and of the embeddings, their shares learned."""

    norm: Norm = PLAIN

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "o": 2}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]` and `x0[b n d]`."""
        made = ops(
            "other",
            "shares = view(Mix[o]) -> [o]",
            "share = first(shares[o]) -> []",
            f"mix = mul({x}[b n d], share[]) -> [b n d]",
            "share = first(shares[o]) -> []",
            "early = mul(x0[b n d], share[]) -> [b n d]",
            "mix = add(mix[b n d], early[b n d]) -> [b n d]",
        )
        return [*made, *self.norm.ops("mix", "mix", self.tag), *self.body.ops("mix", y)]


@dataclass(frozen=True)
class FactoredHead:
    """The embedding the other way: to the words' width, then the vocabulary."""

    vocab: int
    width: int
    narrow: int
    tied: bool = True

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"V": self.vocab, "d": self.width, "j": self.narrow}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t V]`."""
        down, table = ("Ein[j d]", "E[V j]") if self.tied else ("Wnarrow[j d]", "Wout[j V]")
        return [
            *ops("head", "y = keep(x[b n d]) -> [b t d]", f"y = linear(y[b t d], {down}) -> [b t j]"),
            *ops(VOCABULARY, f"logits = linear(y[b t j], {table}) -> [b t V]"),
        ]
