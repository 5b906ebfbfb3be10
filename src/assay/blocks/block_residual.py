"""Inkling 2's layer (Thinking Machines 2026): every branch attends, with learned queries, to the states at which blocks
of layers ended and to the sum since; keys and values are convolved, in full layers with taps that the token sets.

Axes: u and um states at hand, u0 and um0 those of blocks; t3 the three inputs of full attention; E width of a relative
state, X distances of the bank, K columns of a convolution; y the keys and one sink.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.attention import Temper
from assay.blocks.ends import Head, Norm
from assay.blocks.moe import Moe
from assay.blocks.stacks import Decoder, Layer, make_block
from assay.records import dataclass, replace
from assay.spec import Op, Segment, ops

PLAIN = Norm(affine="none")


@dataclass(frozen=True)
class FilledHead(Head):
    """A head whose matrix published files fill up to `rows`, U."""

    rows: int = 0

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "U": self.rows}


def attend_states(part: str, x: str, y: str, weight: str, states: str, width: int, several: bool = False) -> list[Op]:
    """`y[b n d]`, or `y[b n t d]` of three queries, from the blocks' states and `x[b n d]`; `states` is their axis."""
    u, t = states, "t3 " if several else ""
    made = ops(part, f"last = repeat({x}[b n d]) -> [b n one d]")
    made += ops(part, f"held = concat(blocks[b n {u}0 d], last[b n one d]) -> [b n {u} d]")
    made += PLAIN.ops("held", "held", "held", f"b n {u} d", "d")
    return made + ops(
        part,
        f"q = linear(held[b n {u} d], {weight}[{t}d]) -> [b n {t}{u}]",
        f"q = scale(q[b n {t}{u}], by={width**-0.5!r}) -> [b n {t}{u}]",
        f"q = softmax(q[b n {t}{u}], over={u}) -> [b n {t}{u}]",
        f"{y} = contract(q[b n {t}{u}], held[b n {u} d]) -> [b n {t}d]",
    )


@dataclass(frozen=True)
class StateAttention:
    """Attention with a sink that the token sets, convolved keys and values, a bias from a bank, and a gate."""

    heads: int
    groups: int
    width: int
    kernel: int
    states: int
    extent: int
    limits: tuple[float, float]  # of queries and keys, and of relative states
    norm: Norm
    window: int | None = None
    dynamic: bool = False  # the token sets the taps beside the stored ones
    temper: tuple[Temper, float, float] | None = None

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        own = {"g": self.groups, "r": self.heads // self.groups, "k": self.width, "v": self.width, "w": self.window}
        return {**own, "K": self.kernel, "E": self.states, "X": self.extent, "sink": 1}

    def bounded(self, name: str, axes: str, weight: str, limit: float) -> list[Op]:
        """A learned scale, a limit of each head's length, and growth with the position."""
        last = axes.rpartition(" ")[2]
        made = ops("norm", f"{name} = mul({name}[b n {axes}], {weight}[{axes}]) -> [b n {axes}]")
        line = f"{name} = shorten({name}[b n {axes}], over={last}) -> [b n {axes}]"
        made += ops("norm", line, limit=limit, eps=1e-6)
        if self.temper is None:
            return made
        form, floor, by = self.temper
        return made + ops(
            "attention", f"{name} = temper({name}[b n {axes}]) -> [b n {axes}]", form=form, floor=floor, by=by
        )

    def kept(self, name: str, source: str, axes: str) -> list[Op]:
        """Keys or values, convolved."""
        stored = f"{'D' if self.dynamic else 'C'}{name}"
        made = ops("attention", f"{name} = linear({source}[b n d], W{name}[d {axes}]) -> [b n {axes}]")
        if self.dynamic:
            made += ops(
                "mixer",
                f"taps = linear({source}[b n d], W{name}_taps[d g K]) -> [b n g K]",
            )
        more, sums = (", taps[b n g K], order=back", 2) if self.dynamic else ("", 1)
        made += ops("mixer", f"c = conv({name}[b n {axes}], {stored}[{axes} K]{more}) -> [b n {axes}]")
        made += ops("mixer", f"{name} = add({name}[b n {axes}], c[b n {axes}]) -> [b n {axes}]")
        by = (sums * self.kernel + 1) ** -0.5
        return made + ops("mixer", f"{name} = scale({name}[b n {axes}]) -> [b n {axes}]", by=by)

    def ops(self, x: str, xk: str, xv: str, y: str) -> list[Op]:
        """`y[b n d]` from the inputs of queries, keys and values, each `[b n d]`."""
        made = ops("attention", f"q = linear({x}[b n d], Wq[d g r k]) -> [b n g r k]")
        made += self.bounded("q", "g r k", "Sq", self.limits[0])
        made += self.kept("k", xk, "g k")
        made += ops("norm", "k = shorten(k[b n g k], over=k) -> [b n g k]", limit=self.limits[0], eps=1e-6)
        made += self.kept("v", xv, "g v") + replace(PLAIN, eps=self.norm.eps).ops("v", "v", "v", "b n g v", "v")
        made += ops("attention", f"rel = linear({x}[b n d], Wr_states[d g r E]) -> [b n g r E]")
        made += self.bounded("rel", "g r E", "Sr", self.limits[1])
        made += ops("attention", "rel = linear(rel[b n g r E], Bank[E X]) -> [b n g r X]")
        limit = "" if self.window is None else ", window=w"
        made += ops(
            "attention",
            f"k = append(k[b n g k]{limit}) -> [b c g k]",
            f"v = append(v[b n g v]{limit}) -> [b c g v]",
            f"sink = linear({x}[b n d], Wsink[d g r]) -> [b n g r]",
            "sink = repeat(sink[b n g r]) -> [b g r n sink]",
        )
        made += ops(
            "attention.scores",
            "s = contract(q[b n g r k], k[b c g k]) -> [b g r n c]",
            "s = scale(s[b g r n c]) -> [b g r n c]",
            "bias = behind(rel[b n g r X]) -> [b n g r c]",
            "s = add(s[b g r n c], bias[b n g r c]) -> [b g r n c]",
            "s = mask(s[b g r n c]) -> [b g r n c]",
            "p = concat(s[b g r n c], sink[b g r n sink]) -> [b g r n y]",
            "p = softmax(p[b g r n y]) -> [b g r n y]",
            "p = slice(p[b g r n y]) -> [b g r n c]",
            "o = contract(p[b g r n c], v[b c g v]) -> [b n g r v]",
        )
        return made + ops(
            "attention",
            f"z = linear({x}[b n d], Wz[d g r v]) -> [b n g r v]",
            "z = sigmoid(z[b n g r v]) -> [b n g r v]",
            "o = mul(o[b n g r v], z[b n g r v]) -> [b n g r v]",
            f"{y} = linear(o[b n g r v], Wo[g r v d]) -> [b n d]",
        )


@dataclass(frozen=True)
class StateLayer(Layer):
    """One layer; `blocks` have ended before it. At a boundary what came before is one more of them."""

    mixer: StateAttention | None = None
    experts: Moe | None = None
    norm: Norm = PLAIN
    blocks: int = 0
    first: bool = False  # attention reads the stream as it is
    boundary: bool = False
    width: int = 1

    def structure(self) -> StateLayer:
        """The same layer behind no block: how many states there are changes no op."""
        return replace(self, kind="", blocks=0)

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes: u states for attention, um for the experts, those of blocks u0 and um0."""
        assert self.mixer is not None
        assert self.experts is not None
        later = self.blocks + self.boundary
        own = {"u": self.blocks + 1, "u0": self.blocks, "um": later + 1, "um0": later, "one": 1, "t3": 3}
        return {**self.mixer.sizes(), **self.experts.sizes(), **own}

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        assert self.mixer is not None
        assert self.experts is not None
        made = self.inputs(self.mixer.dynamic)
        made += self.mixer.ops("xq", "xk", "xv", "ya") + self.convolve("ya", "Ca")
        if self.boundary:
            made += self.end() + ops("other", "x = view(ya[b n d]) -> [b n d]")
        else:
            made += ops("other", "x = add(x[b n d], ya[b n d]) -> [b n d]")
        made += self.feed() + self.norm.ops("xm", "xm", "m")
        made += self.experts.ops("xm", "ym") + self.convolve("ym", "Cm")
        return made + ops("other", "x = add(x[b n d], ym[b n d]) -> [b n d]")

    def end(self) -> list[Op]:
        """The stream as one more of the states at which blocks ended."""
        if self.first:
            return ops("other", "blocks = repeat(x[b n d]) -> [b n um0 d]")
        return ops(
            "other",
            "ended = repeat(x[b n d]) -> [b n one d]",
            "blocks = concat(blocks[b n u0 d], ended[b n one d]) -> [b n um0 d]",
        )

    def feed(self) -> list[Op]:
        """What the experts read, before its norm."""
        return attend_states("mlp", "x", "xm", "Qm", "um", self.width)

    def inputs(self, several: bool) -> list[Op]:
        """What queries, keys and values are made of: three sums of states with a norm each, or one."""
        if not several:
            made = [] if self.first else attend_states("attention", "x", "xi", "Qa", "u", self.width)
            made += self.norm.ops("x" if self.first else "xi", "xq", "a")
            return made + ops("other", *(f"x{name} = view(xq[b n d]) -> [b n d]" for name in "kv"))
        made = [] if self.first else attend_states("attention", "x", "xi", "Q3", "u", self.width, several=True)
        for at, name in enumerate("qkv"):
            source = "x"
            if not self.first:
                made += ops("attention", f"x{name} = first(xi[b n t3 d], at={at}) -> [b n d]")
                source = f"x{name}"
            made += self.norm.ops(source, f"x{name}", f"a{name}")
        return made

    def convolve(self, name: str, weight: str) -> list[Op]:
        """A branch's output plus its causal convolution."""
        assert self.mixer is not None
        return ops(
            "mixer",
            f"c = conv({name}[b n d], {weight}[d K]) -> [b n d]",
            f"{name} = add({name}[b n d], c[b n d]) -> [b n d]",
            f"{name} = scale({name}[b n d], by={(self.mixer.kernel + 1) ** -0.5!r}) -> [b n d]",
        )


@dataclass(frozen=True)
class StateDecoder(Decoder):
    """A decoder whose last state is attended to together with those of all blocks."""

    blocks: int = 0

    def after_layers(self, names: Mapping[str, str]) -> list[Segment]:
        """The last sum of states."""
        made = attend_states("other", "x", "x", "Qf", "u", self.width)
        sizes = {"u": self.blocks + 1, "u0": self.blocks, "one": 1, "d": self.width}
        return [Segment("states", make_block("states", made, sizes, names))]
