"""Sparse attention: an indexer scores every visible key with small heads of its own, and each query attends to the
best `top` of them (DeepSeek-AI 2025, DeepSeek-V3.2; several layers may share one choice, arXiv:2603.12201).

Axes: I heads of the indexer, J their width, y the indexer's keys at hand, T keys chosen, L two low ranks side by
side; z, p, o, l as in latent attention.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from assay.blocks.attention import Attention, Rope
from assay.blocks.ends import Norm
from assay.blocks.latent import Latent
from assay.records import dataclass, defaults_of
from assay.spec import Op, ops

Sparse = TypeVar("Sparse", bound="SparseLatent")
INDEX_NORM = Norm("layernorm", "gain+bias", 1e-6)


@dataclass(frozen=True)
class Indexer:
    """relu(q k) of small heads, weighed by the token and summed: one score for each pair of tokens."""

    heads: int
    width: int
    rotary: Rope | None = None  # whose width is set
    norm: Norm = INDEX_NORM  # of its keys

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"I": self.heads, "J": self.width, "rot": None if self.rotary is None else self.rotary.width}

    def ops(self, x: str, source: str, axis: str) -> list[Op]:
        """The choice `chosen[b n T]`, from `x[b n d]` and what its queries are made of, `source` of width `axis`."""
        part = "attention"
        made = ops(part, f"iq = linear({source}[b n {axis}], Wiq[{axis} I J]) -> [b n I J]")
        made += ops(part, f"ik = linear({x}[b n d], Wik[d J]) -> [b n J]")
        made += self.norm.ops("ik", "ik", "ik", "b n J", "J")
        if self.rotary is not None:
            made += self.rotary.ops("iq", "b n I J") + self.rotary.ops("ik", "b n J")
        return made + ops(
            part,
            "ik = append(ik[b n J]) -> [b y J]",
            "is = contract(iq[b n I J], ik[b y J]) -> [b n I y]",
            "is = scale(is[b n I y]) -> [b n I y]",
            "is = relu(is[b n I y]) -> [b n I y]",
            f"iw = linear({x}[b n d], Wiw[d I]) -> [b n I]",
            f"iw = scale(iw[b n I], by={self.heads**-0.5!r}) -> [b n I]",
            "it = contract(iw[b n I], is[b n I y]) -> [b n y]",
            "it = mask(it[b n y]) -> [b n y]",
            "chosen = topk(it[b n y]) -> [b n T]",
        )


@dataclass(frozen=True)
class SparseLatent(Latent):
    """Latent attention to the keys that an indexer chose, or within a window.

    Where `top` is set and `indexer` is None, the choice of an earlier layer is used again.
    """

    indexer: Indexer | None = None
    top: int | None = None
    window: int | None = None
    rotary_norm: Norm | None = None  # of the rotary key
    grown: tuple[float, float] | None = None  # multipliers of the queries' rank and of the latent
    gate: Literal["element", "head"] | None = None  # of the heads' outputs
    sinks: bool = False

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        mine = {} if self.indexer is None else self.indexer.sizes()
        return {**super().sizes(), "T": self.top, "w": self.window, **mine}

    def queries(self, x: str) -> list[Op]:
        """Queries, after their rank has grown."""
        made = super().queries(x)
        if self.grown is None:
            return made
        at = next(i for i, op in enumerate(made) if op.name == "q")
        return [*made[:at], *ops("attention", "l = scale(l[b n l]) -> [b n l]", by=self.grown[0]), *made[at:]]

    def keep(self) -> list[Op]:
        """The norm of the rotary key, the choice of keys, and what is kept."""
        made: list[Op] = []
        if self.grown is not None:
            made += ops("attention", "z = scale(z[b n z]) -> [b n z]", by=self.grown[1])
        if self.rotary_norm is not None:
            made += self.rotary_norm.ops("kp", "kp", "kp", "b n p", "p")
        return made + super().keep()

    def limit(self) -> str:
        """The best few of all keys, or the last few."""
        return ", top=T" if self.top is not None else ", window=w" if self.window is not None else ""

    def sight(self) -> str:
        """Which of the keys at hand are seen: those that were chosen, where a choice is made."""
        return ", chosen[b n T]" if self.top is not None else ""

    def sink(self) -> str:
        """A learned term of each head's sum, where there is one."""
        return ", Sinks[h]" if self.sinks else ""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = super().ops(x, y)
        if self.indexer is None:
            return made
        at = next(i for i, op in enumerate(made) if op.kind == "append")
        return [*made[:at], *self.indexer.ops(x, "l", "l"), *made[at:]]

    def emit(self, x: str, y: str) -> list[Op]:
        """The gate, where there is one, and the output projection."""
        if self.gate is None:
            return super().emit(x, y)
        axes = "h v" if self.gate == "element" else "h"
        gate = ops(
            "attention",
            f"g = linear({x}[b n d], Wgate[d {axes}]) -> [b n {axes}]",
            f"g = sigmoid(g[b n {axes}]) -> [b n {axes}]",
            f"o = mul(o[b n h v], g[b n {axes}]) -> [b n h v]",
        )
        return gate + super().emit(x, y)


@dataclass(frozen=True)
class FusedGateLatent(SparseLatent):
    """Queries and a gate of the outputs, made of the queries' rank with and without its norm side by side (A.X K2).

    Axes: L both ranks together.
    """

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "L": 2 * (self.query_rank or 0)}

    def queries(self, x: str) -> list[Op]:
        """Queries and the gate."""
        bias = ", Bqa[l]" if "a" in self.bias else ""
        made = ops("attention", f"lr = linear({x}[b n d], Wqa[d l]{bias}) -> [b n l]")
        made += (self.norm or Norm(affine="none")).ops("lr", "l", "qa", "b n l", "l")
        made += ops(
            "attention",
            "lb = concat(l[b n l], lr[b n l]) -> [b n L]",
            "q = linear(lb[b n L], Wqb[L h k]) -> [b n h k]",
            "g = linear(lb[b n L], Wgate[L h v]) -> [b n h v]",
            "qo = slice(q[b n h k]) -> [b n h o]",
            "qp = slice(q[b n h k]) -> [b n h p]",
        )
        return made + (self.positions.ops("qp", "b n h p") if self.positions is not None else [])

    def emit(self, x: str, y: str) -> list[Op]:
        """The gated outputs and the output projection."""
        gate = ops("attention", "g = sigmoid(g[b n h v]) -> [b n h v]", "o = mul(o[b n h v], g[b n h v]) -> [b n h v]")
        return gate + Latent.emit(self, x, y)


def sparsely(kind: type[Sparse], base: Latent, **more: Any) -> Sparse:
    """The same latent attention as another kind of it."""
    return kind(**{name: getattr(base, name) for name in defaults_of(type(base))}, **more)


@dataclass(frozen=True)
class GatedInput:
    """A body that reads its input times a low-rank sigmoid gate of it. Axes: R the rank of the gate."""

    body: Any
    rank: int
    tag: str = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.body.sizes(), "R": self.rank}

    def absorbed(self) -> GatedInput:
        """The same with latent attention run the other way."""
        other = getattr(self.body, "absorbed", None)
        return self if other is None else GatedInput(other(), self.rank, self.tag)

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        gate, t = f"i{self.tag}", self.tag
        gated = ops(
            "norm",
            f"{gate} = linear({x}[b n d], W{t}_in[d R]) -> [b n R]",
            f"{gate} = silu({gate}[b n R]) -> [b n R]",
            f"{gate} = linear({gate}[b n R], W{t}_out[R d]) -> [b n d]",
            f"{gate} = sigmoid({gate}[b n d]) -> [b n d]",
            f"{gate} = mul({x}[b n d], {gate}[b n d]) -> [b n d]",
        )
        return [*gated, *self.body.ops(gate, y)]


@dataclass(frozen=True)
class BlockSparseAttention(Attention):
    """Grouped queries that attend to the best blocks of keys, their own block always among them (MiniMax M3).

    Axes: I heads of the indexer, J their width, y its keys at hand, N keys in a block, T blocks chosen.
    """

    index_heads: int = 1
    index_width: int = 1
    block: int = 1
    blocks: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        mine = {"I": self.index_heads, "J": self.index_width, "N": self.block, "T": self.blocks}
        return {**super().sizes(), **mine}

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values, and the choice of blocks."""
        return super().project(x) + self.choose(x)

    def remember(self) -> list[Op]:
        """Keys and values behind those of earlier passes."""
        return ops(
            "attention",
            "k = append(k[b n g k], top=T, block=N) -> [b c g k]",
            "v = append(v[b n g v], top=T, block=N) -> [b c g v]",
        )

    def choose(self, x: str) -> list[Op]:
        """The largest score of each block, and the blocks with the largest."""
        assert self.qk_norm is not None
        assert isinstance(self.positions, Rope)
        made = ops("attention", f"iq = linear({x}[b n d], Wiq[d I J]) -> [b n I J]")
        made += self.qk_norm.ops("iq", "iq", "iq", "b n I J", "J") + self.positions.ops("iq", "b n I J")
        made += ops("attention", f"ik = linear({x}[b n d], Wik[d J]) -> [b n J]")
        made += self.qk_norm.ops("ik", "ik", "ik", "b n J", "J") + self.positions.ops("ik", "b n J")
        return made + ops(
            "attention",
            "ik = append(ik[b n J]) -> [b y J]",
            "is = contract(iq[b n I J], ik[b y J]) -> [b n I y]",
            "is = mask(is[b n I y]) -> [b n I y]",
            "chosen = topk(is[b n I y]) -> [b n I T]",
        )
