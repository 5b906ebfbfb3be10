"""Attention over grouped heads. Multi-head, grouped-query and multi-query attention differ by two sizes:
g key/value heads serve r query heads each (Vaswani et al. 2017; Shazeer 2019; Ainslie et al. 2023).

Axes: u buckets of a learned bias of the distance.
"""

from __future__ import annotations

from typing import Any, Literal

from assay.blocks.ends import Norm
from assay.blocks.rewritten import over
from assay.records import dataclass, replace
from assay.size import Size
from assay.spec import Axes, Block, Op, Tensor, ops

# how queries grow with their position: by the logarithm of how many floors are below it, or below the next one, by that
# of the share of a floor beyond it, or as a power of the share
Temper = Literal["log", "next_log", "excess_log", "power", "lengths"]


@dataclass(frozen=True)
class Rope:
    """Rotary positions (Su et al. 2021) on the first `width` elements of a head, all of them by default."""

    width: int | None = None
    theta: float | None = None
    scaling: Any = None  # the config's table, kept for execution
    # how pairs are laid out, where not halves; `backward`: turned the other way; `axial`: by rows and columns
    style: str | None = None

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
class Alibi:
    """Scores that fall with the distance, by a slope of the head (Press et al. 2022)."""

    by: float | None = None  # times this
    rounded: bool | None = None  # slopes and products to bfloat16, whatever the model's dtype

    def ops(self, axes: str) -> list[Op]:
        """Scores `s` less their distances."""
        return ops("attention.scores", f"s = alibi(s{axes}) -> {axes}", by=self.by, rounded=self.rounded)


@dataclass(frozen=True)
class Attention:
    """Projections, positions, the cache, scores, softmax, values, output projection: each a list of ops."""

    heads: int
    kv_heads: int
    head_width: int
    value_width: int | None = None  # the query/key width by default
    bias: str = ""  # which of q, k, v, o and the gate z have one
    qk_norm: Norm | None = None
    qk_norm_over: Literal["head", "heads", "full"] = "head"  # one gain a head width, one a head, or all heads at once
    positions: Rope | Alibi | Literal["alibi"] | None = None
    window: int | None = None
    keep_all: bool = False  # keys that have left the window stay at hand, masked
    chunk: int | None = None
    scale: float | None = None  # of the scores; 1 / sqrt(head width) where None
    softcap: float | None = None
    norm_late: bool = False  # queries and keys are normed after their rotation
    temper: tuple[Temper, float, float] | None = None  # (form, floor, by): queries grow with their position
    value_scale: float | None = None
    clip: float | None = None  # of q, k and v
    sinks: bool = False
    out_norm: Norm | None = None  # of all heads' outputs at once
    gate: Literal["element", "head"] | None = None
    gate_bias: bool = False  # one a head
    gate_activation: str = "sigmoid"
    sees: Literal["past", "all"] = "past"  # causal with a cache, or every token of the same pass
    reach: int | None = None  # where all are seen: how far a token sees to either side
    relative: int | None = None  # buckets of a learned bias of the distance, one a head (T5)
    # the distance from which all are in the last of them; None where no buckets of distances tell them apart
    relative_far: int | None = 128
    relative_here: bool = True  # this layer holds the table, and does not only use it

    part = "attention"
    tag = "a"
    own = ""  # what the names of its weights begin with

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
            "reach": self.reach,
            "u": self.relative,
        }

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return [*self.project(x), *self.place(), *self.remember(), *self.attend(), *self.emit(x, y)]

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values."""
        made = self.projected("q", f"{x}[b n d]", "b n", "g r k")
        made += self.projected("k", f"{x}[b n d]", "b n", "g k")
        made += self.projected("v", f"{x}[b n d]", "b n", "g v")
        if self.value_scale is not None:
            made += ops("attention", "v = scale(v[b n g v]) -> [b n g v]", by=self.value_scale)
        return made

    def projected(self, name: str, source: str, tokens: str, axes: str, width: str = "d") -> list[Op]:
        """One of q, k, v from a source of a width."""
        bias = f", {self.own}B{name}[{axes}]" if name in self.bias else ""
        weight = f"{self.own}W{name}[{width} {axes}]"
        return ops("attention", f"{name} = linear({source}, {weight}{bias}) -> [{tokens} {axes}]")

    def place(self) -> list[Op]:
        """Norms of queries and keys, limits, positions."""
        if self.norm_late:
            made = [*self.limit(), *self.turn(), *self.norms()]
        else:
            made = [*self.norms(), *self.limit(), *self.turn()]
        if self.temper is not None:
            form, floor, by = self.temper
            made += ops("attention", "q = temper(q[b n g r k]) -> [b n g r k]", form=form, floor=floor, by=by)
        return made

    def norms(self) -> list[Op]:
        """Norms of queries and keys."""
        made: list[Op] = []
        if self.qk_norm is None:
            return made
        for name, axes in (("q", "g r k"), ("k", "g k")):
            over = axes if self.qk_norm_over == "full" else "k"
            shared = axes.removesuffix("k") if self.qk_norm_over == "heads" else ""
            made += self.qk_norm.ops(name, name, f"{name}n", f"b n {axes}", over, shared)
        return made

    def turn(self) -> list[Op]:
        """Queries and keys rotated to their positions."""
        if not isinstance(self.positions, Rope):
            return []
        return [*self.positions.ops("q", "b n g r k"), *self.positions.ops("k", "b n g k")]

    def limit(self) -> list[Op]:
        """Queries, keys and values no further from zero than the limit."""
        made: list[Op] = []
        if self.clip is None:
            return made
        for name, axes in (("q", "g r k"), ("k", "g k"), ("v", "g v")):
            made += ops("attention", f"{name} = clip({name}[b n {axes}]) -> [b n {axes}]", limit=self.clip)
        return made

    def remember(self) -> list[Op]:
        """Keys and values behind those of earlier passes."""
        if self.sees == "all":
            return of_this_pass("reach=reach" if self.reach is not None else "")
        return ops(
            "attention",
            f"k = append(k[b n g k]{self.held()}) -> [b c g k]",
            f"v = append(v[b n g v]{self.held()}) -> [b c g v]",
        )

    def held(self) -> str:
        """How much stays in sight of what earlier passes made, as attributes of `append`."""
        if self.window is not None:
            return ", near=w" if self.keep_all else ", window=w"
        return ", chunk=chunk" if self.chunk is not None else ""

    def attend(self) -> list[Op]:
        """softmax(q k / sqrt(k) + B) v."""
        part, axes = "attention.scores", "[b g r n c]"
        made = ops(part, f"s = contract(q[b n g r k], k[b c g k]) -> {axes}")
        if self.scale != 1:
            made += ops(part, f"s = scale(s{axes}) -> {axes}", by=self.scale)
        if self.softcap is not None:
            made += ops(part, f"s = softcap(s{axes}) -> {axes}", cap=self.softcap)
        if self.relative is not None:
            if self.relative_here:
                both = True if self.sees == "all" else None
                buckets = {} if self.relative_far is None else {"far": self.relative_far, "both": both}
                made += ops("embedding", "rel = gather(at[n c], Rel[u g r]) -> [n c g r]", **buckets)
            made += ops(part, f"s = add(s{axes}, rel[n c g r]) -> {axes}")
        if self.positions == "alibi" or isinstance(self.positions, Alibi):
            made += (self.positions if isinstance(self.positions, Alibi) else Alibi()).ops(axes)
        else:
            made += ops(part, f"s = mask(s{axes}) -> {axes}")
        made += ops(part, f"p = softmax(s{axes}{', Sinks[g r]' if self.sinks else ''}) -> {axes}")
        return made + ops(part, f"o = contract(p{axes}, v[b c g v]) -> [b n g r v]")

    def emit(self, x: str, y: str) -> list[Op]:
        """The norm and the gate of the heads' outputs, where there is one, and the output projection."""
        made: list[Op] = []
        if self.out_norm is not None:
            made += self.out_norm.ops("o", "o", "on", "b n g r v", "g r v")
        if self.gate is not None:
            axes = "g r v" if self.gate == "element" else "g r"
            bias = f", Bz[{axes}]" if "z" in self.bias else ", Bz[g r]" if self.gate_bias else ""
            made += ops(
                "attention",
                f"z = linear({x}[b n d], Wz[d {axes}]{bias}) -> [b n {axes}]",
                f"z = {self.gate_activation}(z[b n {axes}]) -> [b n {axes}]",
                f"o = mul(o[b n g r v], z[b n {axes}]) -> [b n g r v]",
            )
        bias = f", {self.own}Bo[d]" if "o" in self.bias else ""
        return made + ops("attention", f"{y} = linear(o[b n g r v], {self.own}Wo[g r v d]{bias}) -> [b n d]")


@dataclass(frozen=True)
class CrossAttention(Attention):
    """Queries of the target, keys and values of the source's memory, made once (Vaswani et al. 2017, 3.2.3)."""

    memory: int | None = None  # width of the memory where it is not the target's

    tag = "c"
    own = "cross."

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "o": self.memory}

    def project(self, x: str) -> list[Op]:
        """Queries from the target, keys and values from `memory[b m d]`."""
        made = self.projected("q", f"{x}[b n d]", "b n", "g r k")
        width = "d" if self.memory is None else "o"
        made += self.projected("k", f"memory[b m {width}]", "b m", "g k", width)
        return made + self.projected("v", f"memory[b m {width}]", "b m", "g v", width)

    def place(self) -> list[Op]:
        """No positions: the target's and the source's have nothing to do with each other."""
        return []

    def remember(self) -> list[Op]:
        """Keys and values of the source, which later passes read and do not make."""
        return ops("attention", "k = hold(k[b m g k]) -> [b M g k]", "v = hold(v[b m g v]) -> [b M g v]")

    def attend(self) -> list[Op]:
        """As within a sequence, over the source's positions."""
        return over(super().attend(), "c", "M")


def of_this_pass(mask: str = "", queries: str = "n", keys: str = "c") -> list[Op]:
    """Keys and values of the same pass, which nothing keeps, as far as a mask lets queries see them."""
    given = f", {mask}" if mask else ""
    return ops(
        "attention",
        f"k = keys(k[b {queries} g k]{given}) -> [b {keys} g k]",
        f"v = keys(v[b {queries} g v]{given}) -> [b {keys} g v]",
    )


def alone(qk_width: Size, v_width: Size, heads: Size | None = None) -> Block:
    """One attention as articles cost it, every token seen by every token: softmax(q k / sqrt(k) + B) v.

    No projections and no batch; `heads` of them side by side where given. Axes: n tokens, c = n keys, k, v, h.
    """
    names = {"n": "n", "c": "c", "k": "k", "v": "v"} | ({} if heads is None else {"g": "h"})

    def only(axes: Axes) -> Axes:
        return tuple(names[axis] for axis in axes if axis in names)

    made = ops("attention", "k = keys(k[b n g k]) -> [b c g k]", "v = keys(v[b n g v]) -> [b c g v]")
    made += Attention(1, 1, 1).attend()
    found = tuple(
        replace(op, inputs=tuple(Tensor(t.name, only(t.axes)) for t in op.inputs), axes=only(op.axes)) for op in made
    )
    return Block("attention", found, {"k": qk_width, "v": v_width} | ({} if heads is None else {"h": heads}))
