"""Attention over grouped heads. Multi-head, grouped-query and multi-query attention differ by two sizes:
g key/value heads serve r query heads each (Vaswani et al. 2017; Shazeer 2019; Ainslie et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from assay.blocks.ends import Norm
from assay.spec import Op, ops


@dataclass(frozen=True)
class Rope:
    """Rotary positions (Su et al. 2021) on the first `width` elements of a head, all of them by default."""

    width: int | None = None
    theta: float | None = None
    scaling: Any = None  # the config's table, kept for execution
    style: str | None = None  # how pairs are laid out, where not halves

    def ops(self, x: str, axes: str) -> list[Op]:
        """Rotate `x` in place."""
        width = "" if self.width is None else ", width=rot"
        return ops(
            "attention",
            f"{x} = rope({x}[{axes}]{width}) -> [{axes}]",
            theta=self.theta,
            scaling=self.scaling,
            style=self.style,
        )


@dataclass(frozen=True)
class Attention:
    """Projections, positions, the cache, scores, softmax, values, output projection: each a list of ops."""

    heads: int
    kv_heads: int
    head_width: int
    value_width: int | None = None  # the query/key width by default
    bias: str = ""  # which of q, k, v, o have one
    qk_norm: Norm | None = None
    qk_norm_over: Literal["head", "heads", "full"] = "head"  # one gain a head width, one a head, or all heads at once
    positions: Rope | Literal["alibi"] | None = None
    window: int | None = None
    chunk: int | None = None
    scale: float | None = None  # of the scores; 1 / sqrt(head width) where None
    softcap: float | None = None
    clip: float | None = None  # of q, k and v
    sinks: bool = False
    gate: Literal["element", "head"] | None = None
    rows: str = "d"  # axis of the input: a decoder's width

    part = "attention"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        rope = self.positions
        return {
            "h": self.heads,
            "g": self.kv_heads,
            "r": self.heads // self.kv_heads,
            "k": self.head_width,
            "v": self.value_width or self.head_width,
            "w": self.window,
            "chunk": self.chunk,
            "rot": rope.width if isinstance(rope, Rope) else None,
        }

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return [*self.project(x), *self.place(), *self.remember(), *self.attend(), *self.emit(x, y)]

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values."""
        made = []
        for name, axes in (("q", "g r k"), ("k", "g k"), ("v", "g v")):
            bias = f", B{name}[{axes}]" if name in self.bias else ""
            made += ops("attention", f"{name} = linear({x}[b n d], W{name}[d {axes}]{bias}) -> [b n {axes}]")
        if self.clip is not None:
            for name, axes in (("q", "g r k"), ("k", "g k"), ("v", "g v")):
                made += ops("attention", f"{name} = clip({name}[b n {axes}]) -> [b n {axes}]", limit=self.clip)
        return made

    def place(self) -> list[Op]:
        """Norms of queries and keys, then their positions."""
        made = []
        for name, axes in (("q", "g r k"), ("k", "g k")):
            if self.qk_norm is not None:
                over = axes if self.qk_norm_over == "full" else "k"
                shared = axes.removesuffix("k") if self.qk_norm_over == "heads" else ""
                made += self.qk_norm.ops(name, name, f"{name}n", f"b n {axes}", over, shared)
            if isinstance(self.positions, Rope):
                made += self.positions.ops(name, f"b n {axes}")
        return made

    def remember(self) -> list[Op]:
        """Keys and values behind those of earlier passes."""
        limit = ", window=w" if self.window is not None else ", chunk=chunk" if self.chunk is not None else ""
        return ops(
            "attention",
            f"k = append(k[b n g k]{limit}) -> [b c g k]",
            f"v = append(v[b n g v]{limit}) -> [b c g v]",
        )

    def attend(self) -> list[Op]:
        """softmax(q k / sqrt(k) + B) v."""
        part, axes = "attention.scores", "[b g r n c]"
        made = ops(part, f"s = contract(q[b n g r k], k[b c g k]) -> {axes}")
        made += ops(part, f"s = scale(s{axes}) -> {axes}", by=self.scale)
        if self.softcap is not None:
            made += ops(part, f"s = softcap(s{axes}) -> {axes}", cap=self.softcap)
        made += ops(part, f"s = {'alibi' if self.positions == 'alibi' else 'mask'}(s{axes}) -> {axes}")
        made += ops(part, f"p = softmax(s{axes}{', Sinks[g r]' if self.sinks else ''}) -> {axes}")
        return made + ops(part, f"o = contract(p{axes}, v[b c g v]) -> [b n g r v]")

    def emit(self, x: str, y: str) -> list[Op]:
        """The gate of the heads' outputs, where there is one, and the output projection."""
        made: list[Op] = []
        if self.gate is not None:
            axes = "g r v" if self.gate == "element" else "g r"
            made += ops(
                "attention",
                f"z = linear({x}[b n d], Wz[d {axes}]) -> [b n {axes}]",
                f"z = sigmoid(z[b n {axes}]) -> [b n {axes}]",
                f"o = mul(o[b n g r v], z[b n {axes}]) -> [b n g r v]",
            )
        bias = ", Bo[d]" if "o" in self.bias else ""
        return made + ops("attention", f"{y} = linear(o[b n g r v], Wo[g r v d]{bias}) -> [b n d]")
