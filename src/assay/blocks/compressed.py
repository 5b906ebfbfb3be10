"""Attention over a window of tokens and, beyond it, over entries that stand for whole windows (DeepSeek-AI 2026,
DeepSeek-V4). One head of keys, which are the values too, serves all query heads; the output goes through a matrix for
each group of heads.

Axes: G groups of query heads, r heads a group, v their width, l the queries' rank, P the width of a group's output;
R tokens an entry, Z the two halves of a value where windows overlap; j entries made now, y entries at hand, x keys
and entries together; I heads of the indexer, J their width, i and Y its entries made now and at hand, T entries
chosen.
"""

from __future__ import annotations

from assay.blocks.attention import Rope
from assay.blocks.ends import Norm
from assay.blocks.moe import Moe, Router
from assay.records import dataclass, replace
from assay.spec import Op, ops


@dataclass(frozen=True)
class Compressor:
    """One entry for every `rate` tokens; with an indexer, entries overlap and a query attends to the best `top`."""

    rate: int
    top: int | None = None
    index_heads: int | None = None
    index_width: int | None = None

    @property
    def overlaps(self) -> bool:
        """True where an entry is made of two windows."""
        return self.top is not None

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        halves = 2 if self.overlaps else 1
        return {"R": self.rate, "Z": halves, "T": self.top, "I": self.index_heads, "J": self.index_width}

    def entries(self, x: str, name: str, axes: tuple[str, str, str], norm: Norm, turn: Rope) -> list[Op]:
        """`name[b y v]`, all entries at hand; `axes` are those of a value, of entries made now and at hand."""
        v, new, held = axes
        z = f"Z {v}" if self.overlaps else v
        top = ", top=T" if self.overlaps and name == "c" else ""
        made = ops(
            "attention",
            f"{name}v = linear({x}[b n d], W{name}v[d {z}]) -> [b n {z}]",
            f"{name}g = linear({x}[b n d], W{name}g[d {z}]) -> [b n {z}]",
            f"{name} = pool({name}v[b n {z}], {name}g[b n {z}], P{name}[R {z}]) -> [b {new} {v}]",
        )
        made += norm.ops(name, name, name, f"b {new} {v}", v) + turn.ops(name, f"b {new} {v}")
        return made + ops("attention", f"{name} = collect({name}[b {new} {v}], rate=R{top}) -> [b {held} {v}]")

    def choose(self, x: str, norm: Norm, turn: Rope) -> list[Op]:
        """The entries that each query attends to."""
        made = self.entries(x, "ic", ("J", "i", "Y"), norm, turn)
        made += ops("attention", "iq = linear(l[b n l], Wiq[l I J]) -> [b n I J]") + turn.ops("iq", "b n I J")
        heads, width = self.index_heads or 1, self.index_width or 1
        return made + ops(
            "attention",
            "is = contract(iq[b n I J], ic[b Y J]) -> [b n I Y]",
            "is = relu(is[b n I Y]) -> [b n I Y]",
            f"is = scale(is[b n I Y], by={width**-0.5!r}) -> [b n I Y]",
            f"iw = linear({x}[b n d], Wiw[d I]) -> [b n I]",
            f"iw = scale(iw[b n I], by={heads**-0.5!r}) -> [b n I]",
            "it = contract(iw[b n I], is[b n I Y]) -> [b n Y]",
            "it = mask(it[b n Y]) -> [b n Y]",
            "chosen = topk(it[b n Y]) -> [b n T]",
        )


@dataclass(frozen=True)
class CompressedAttention:
    """Keys that are values, one head of them; `compressor` is None where a layer sees its window alone."""

    heads: int
    width: int
    query_rank: int
    window: int
    groups: int
    group_width: int
    norm: Norm
    positions: Rope
    compressor: Compressor | None = None

    part = "attention"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        mine: dict[str, int | None] = {
            "G": self.groups,
            "r": self.heads // self.groups,
            "v": self.width,
            "l": self.query_rank,
            "w": self.window,
            "P": self.group_width,
            "rot": self.positions.width,
        }
        return mine if self.compressor is None else {**mine, **self.compressor.sizes()}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = ops("attention", f"l = linear({x}[b n d], Wqa[d l]) -> [b n l]")
        made += self.norm.ops("l", "l", "qa", "b n l", "l")
        made += ops("attention", "q = linear(l[b n l], Wqb[l G r v]) -> [b n G r v]")
        made += Norm(affine="none", eps=self.norm.eps).ops("q", "q", "qb", "b n G r v", "v")
        made += self.positions.ops("q", "b n G r v")
        made += ops("attention", f"k = linear({x}[b n d], Wk[d v]) -> [b n v]")
        made += self.norm.ops("k", "k", "k", "b n v", "v") + self.positions.ops("k", "b n v")
        made += ops("attention", "k = append(k[b n v], window=w) -> [b c v]")
        return made + self.far(x) + self.attend() + self.emit(y)

    def far(self, x: str) -> list[Op]:
        """Entries behind the keys, `k[b x v]`, where there are any."""
        if self.compressor is None:
            return []
        made = self.compressor.entries(x, "c", ("v", "j", "y"), self.norm, self.positions)
        if self.compressor.overlaps:
            made += self.compressor.choose(x, self.norm, self.positions)
        return made + ops("attention", "k = concat(k[b c v], c[b y v]) -> [b x v]")

    def attend(self) -> list[Op]:
        """One softmax over keys, entries and a learned sink."""
        keys = "c" if self.compressor is None else "x"
        axes = f"[b G r n {keys}]"
        chosen = ", chosen[b n T]" if self.compressor is not None and self.compressor.overlaps else ""
        return ops(
            "attention.scores",
            f"s = contract(q[b n G r v], k[b {keys} v]) -> {axes}",
            f"s = scale(s{axes}) -> {axes}",
            f"s = mask(s{axes}{chosen}) -> {axes}",
            f"a = softmax(s{axes}, Sinks[G r]) -> {axes}",
            f"o = contract(a{axes}, k[b {keys} v]) -> [b n G r v]",
        )

    def emit(self, y: str) -> list[Op]:
        """The rotation of the values undone, a matrix for each group of heads, one for all."""
        back = replace(self.positions, style="last_back")
        return back.ops("o", "b n G r v") + ops(
            "attention",
            "o = linear(o[b n G r v], Woa[G r v P]) -> [b n G P]",
            f"{y} = linear(o[b n G P], Wo[G P d]) -> [b n d]",
        )


@dataclass(frozen=True)
class HashRouter(Router):
    """Experts fixed for each token id, by a table; the scores only weigh them (Roller et al. 2021)."""

    def ops(self, x: str, tag: str = "") -> list[Op]:
        """Indices `i[b n a]` and weights `w[b n a]`."""
        made = ops(
            "router",
            f"l = linear({x}[b n d], Wr{tag}[d e]) -> [b n e]",
            f"l = {self.scores}(l[b n e]) -> [b n e]",
            f"i = gather(ids[b n], Table{tag}[V a], index=True) -> [b n a]",
            "w = take(l[b n e], i[b n a]) -> [b n a]",
            "w = normalize(w[b n a]) -> [b n a]",
        )
        return made + ops("router", "w = scale(w[b n a]) -> [b n a]", by=self.scale)


@dataclass(frozen=True)
class TokenMoe(Moe):
    """Experts whose router may hold a table of the vocabulary."""

    vocab: int | None = None

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "V": self.vocab}
