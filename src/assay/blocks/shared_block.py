"""Zamba's layers: a transformer block stored once runs before some of the state-space layers (Glorioso et al. 2024).

It reads the residual stream beside the embeddings (D = 2 d), and what it gives is added to what its state-space layer
reads, not to the stream. Low-rank additions of rank A are all that its uses have of their own.

Axes: o the model's width once more.
"""

from __future__ import annotations

from assay.blocks.attention import Attention
from assay.blocks.ends import Embedding, Norm
from assay.blocks.mlp import activate
from assay.blocks.rewritten import begun
from assay.blocks.stacks import Body
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class KeptEmbedding(Embedding):
    """An embedding whose result later layers read again, as `x0`."""

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`, and `x0[b n d]` of the same elements."""
        return super().ops() + ops("embedding", "x0 = view(x[b n d]) -> [b n d]")


@dataclass(frozen=True)
class SharedAttention(Attention):
    """Attention whose queries, keys and values are made of both streams, `[b n D]`."""

    own: str = "shared0."
    adapters: str = ""  # the use, where queries, keys and values have low-rank additions

    def projected(self, name: str, source: str, tokens: str, axes: str, width: str = "D") -> list[Op]:
        """One of q, k, v from both streams, and the addition of this use."""
        both, out = source.replace("[b n d]", f"[b n {width}]"), f"[{tokens} {axes}]"
        made = ops("attention", f"{name} = linear({both}, {self.own}W{name}[{width} {axes}]) -> {out}")
        if self.adapters:
            made += ops(
                "attention",
                f"l = linear({both}, {self.adapters}L{name}[{width} A]) -> [b n A]",
                f"l{name} = linear(l[b n A], {self.adapters}M{name}[A {axes}]) -> {out}",
                f"{name} = add({name}{out}, l{name}{out}) -> {out}",
            )
        return made


@dataclass(frozen=True)
class SharedMlp:
    """The gated feed-forward layer of a shared block, with the low-rank additions of a use."""

    width: int
    activation: str = "gelu"
    bias: bool = False
    own: str = "shared0."
    adapters: str = ""  # the use, where gate and up matrix have an addition

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made: list[Op] = []
        if self.adapters:
            made += ops("mlp", f"l = linear({x}[b n d], {self.adapters}Lf[d A]) -> [b n A]")
        for name, letter in (("z", "g"), ("u", "u")):
            weight = f"{self.own}W{letter}"
            shift = f", {weight}_bias[f]" if self.bias else ""
            made += ops("mlp", f"{name} = linear({x}[b n d], {weight}[d f]{shift}) -> [b n f]")
            if self.adapters:
                added = f"l{name} = linear(l[b n A], {self.adapters}M{letter}[A f]) -> [b n f]"
                made += ops("mlp", added, f"{name} = add({name}[b n f], l{name}[b n f]) -> [b n f]")
        made += activate("mlp", "z", "u", "[b n f]", self.activation)
        shift = f", {self.own}Wd_bias[d]" if self.bias else ""
        return made + ops("mlp", f"{y} = linear(u[b n f], {self.own}Wd[f d]{shift}) -> [b n d]")


@dataclass(frozen=True)
class SharedBlock:
    """A shared block, a projection of its output, and the mixer that reads that beside the stream.

    `own` begins the names of the block's weights; those of the mixer begin with `hybrid.`, for a layer without a
    shared block keeps them elsewhere.
    """

    attention: SharedAttention
    mlp: SharedMlp
    mixer: Body
    norm: Norm
    width: int
    rank: int | None = None  # of the additions

    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes; o is d once more, for a square matrix."""
        mine = {"D": 2 * self.width, "o": self.width, "f": self.mlp.width, "A": self.rank}
        return {**self.attention.sizes(), **self.mixer.sizes(), **mine}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]` and the embeddings `x0[b n d]`."""
        made = ops("attention", f"xx = concat({x}[b n d], x0[b n d]) -> [b n D]")
        made += begun(self.norm.ops("xx", "xx", "a", "b n D", "D"), self.attention.own)
        made += self.attention.ops("xx", "ya")
        made += begun(self.norm.ops("ya", "ya", "m"), self.attention.own)
        made += self.mlp.ops("ya", "ym")
        made += ops("other", "yl = linear(ym[b n d], hybrid.Wlink[d o]) -> [b n o]")
        made += ops("other", "yl = rename(yl[b n o]) -> [b n d]", f"xm = add({x}[b n d], yl[b n d]) -> [b n d]")
        return made + begun(self.norm.ops("xm", "xm", "a") + self.mixer.ops("xm", y), "hybrid.")
