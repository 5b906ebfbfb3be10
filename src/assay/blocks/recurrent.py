"""State-space models (Gu & Dao 2023; Dao & Gu 2024) and short convolutions: mixers with a state of fixed size.

Axes: G groups that share reads and writes, H heads of a group, Q their width, S the width of the state's other side,
I channels, N parallel heads of channels, R the rank of the time step, K the columns of the convolution.
"""

from __future__ import annotations

from assay.blocks.ends import Norm
from assay.records import dataclass
from assay.spec import Op, ops


def project(
    name: str, weight: str, axes: str, bias: str = "", source: str = "x[b n d]", each: str = "", into: str = ""
) -> list[Op]:
    """`name[b n each axes]` from a source, whose last axis is summed, or those of `into`; one matrix for `each`."""
    summed = into or source.rstrip("]").rpartition(" ")[2]
    rows = " ".join(filter(None, (each, axes)))
    shift = f", mixer.{bias}[{rows}]" if bias else ""
    matrix = " ".join(filter(None, (each, summed, axes)))
    return ops("mixer", f"{name} = linear({source}, mixer.{weight}[{matrix}]{shift}) -> [b n {rows}]")


def convolve(name: str, kernel: str, axes: str, bias: str = "", activation: str = "silu") -> list[Op]:
    """Each channel over the last K tokens, then an activation."""
    shift = f", mixer.{bias}[{axes}]" if bias else ""
    tensor = f"{name}[b n {axes}]"
    made = ops("mixer", f"{name} = conv({tensor}, mixer.{kernel}[{axes} K]{shift}) -> [b n {axes}]")
    return made + (ops("mixer", f"{name} = {activation}({tensor}) -> [b n {axes}]") if activation else [])


def gate(y: str, z: str, axes: str, activation: str = "silu") -> list[Op]:
    """`y` times the activation of z."""
    return ops(
        "mixer",
        f"{z} = {activation}({z}[b n {axes}]) -> [b n {axes}]",
        f"{y} = mul({y}[b n {axes}], {z}[b n {axes}]) -> [b n {axes}]",
    )


def skip(axes: str, heads: str) -> list[Op]:
    """o + D u: the input past the scan."""
    return ops(
        "mixer",
        f"u = mul(u[b n {axes}], mixer.D[{heads}]) -> [b n {axes}]",
        f"o = add(o[b n {axes}], u[b n {axes}]) -> [b n {axes}]",
    )


def step(axes: str) -> list[Op]:
    """The time step: softplus of what was projected, plus a bias."""
    return ops(
        "mixer",
        f"t = add(t[b n {axes}], mixer.Dt[{axes}]) -> [b n {axes}]",
        f"t = softplus(t[b n {axes}]) -> [b n {axes}]",
    )


def emit(y: str, axes: str, bias: bool) -> list[Op]:
    """Back to the model's width."""
    shift = ", mixer.Bo[d]" if bias else ""
    return ops("mixer", f"{y} = linear(o[b n {axes}], mixer.Wo[{axes} d]{shift}) -> [b n d]")


@dataclass(frozen=True)
class Mamba2:
    """State-space duality (Dao & Gu 2024, arXiv:2405.21060): a scalar decay a head, reads and writes by groups."""

    heads: int
    head_width: int
    state: int
    groups: int = 1
    kernel: int = 4
    conv_bias: bool = True
    bias: bool = False
    norm: Norm | None = Norm()  # of each group's gated output
    activation: str = "silu"
    least: float | None = None  # time step
    most: float | None = None

    part = "mixer"
    tag = "a"

    @property
    def output_bias(self) -> bool:
        """Whether the last projection has one."""
        return self.bias

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        each = self.heads // self.groups
        return {"G": self.groups, "H": each, "Q": self.head_width, "S": self.state, "K": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = self.project(x)
        for name, letter, axes in (("u", "x", "G H Q"), ("w", "B", "G S"), ("r", "C", "G S")):
            made += convolve(name, f"K{letter}", axes, f"L{letter}" if self.conv_bias else "", self.activation)
        made += step("G H")
        scanned = "u[b n G H Q], t[b n G H], w[b n G S], r[b n G S], mixer.A[G H]"
        line = f"o = scan({scanned}, state=('G', 'H', 'Q', 'S'), rule=mamba2) -> [b n G H Q]"
        made += ops("mixer", line, least=self.least, most=self.most)
        return made + skip("G H Q", "G H") + self.close() + emit(y, "G H Q", self.output_bias)

    def project(self, x: str) -> list[Op]:
        """Gate, input, writes, reads and time step."""
        made: list[Op] = []
        letters = (("z", "z", "G H Q"), ("u", "x", "G H Q"), ("w", "B", "G S"), ("r", "C", "G S"), ("t", "t", "G H"))
        for name, letter, axes in letters:
            made += project(name, f"W{letter}", axes, f"B{letter}" if self.bias else "", f"{x}[b n d]")
        return made

    def close(self) -> list[Op]:
        """The gate, and the norm behind it."""
        return gate("o", "z", "G H Q") + self.normed()

    def normed(self) -> list[Op]:
        """The norm of each group."""
        return [] if self.norm is None else self.norm.ops("o", "o", "mixer", "b n G H Q", "H Q", "G ")


@dataclass(frozen=True)
class ScaledMamba2(Mamba2):
    """The same with multipliers of what goes in and of what is projected (Falcon-H1, Zuo et al. 2025)."""

    scale_in: float = 1.0
    scales: tuple[float, ...] = (1.0,) * 5  # of gate, input, writes, reads, time step
    out_bias: bool = False
    norm_first: bool = True  # the norm stands before the gate

    @property
    def output_bias(self) -> bool:
        """Whether the last projection has one, which is a key of its own here."""
        return self.out_bias

    def project(self, x: str) -> list[Op]:
        """Gate, input, writes, reads and time step, each scaled."""
        made = ops("mixer", f"s = scale({x}[b n d]) -> [b n d]", by=self.scale_in)
        for op, by in zip(super().project("s"), self.scales, strict=True):
            axes = " ".join(op.axes)
            made += [op, *ops("mixer", f"{op.name} = scale({op.name}[{axes}]) -> [{axes}]", by=by)]
        return made

    def close(self) -> list[Op]:
        """The norm and the gate, in either order."""
        gated = gate("o", "z", "G H Q")
        return self.normed() + gated if self.norm_first else gated + self.normed()


@dataclass(frozen=True)
class Mamba:
    """Selective state spaces (Gu & Dao 2023, arXiv:2312.00752): a decay a channel and state element."""

    inner: int
    state: int
    rank: int
    kernel: int = 4
    conv_bias: bool = True
    bias: bool = False
    norms: Norm | None = None  # of the time step, writes and reads (Jamba)
    activation: str = "silu"
    heads: int | None = None  # parallel heads, each with matrices of its own for step, writes and reads (Zamba)

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {
            "N": self.heads,
            "I": self.inner // (self.heads or 1),
            "S": self.state,
            "R": self.rank,
            "K": self.kernel,
        }

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source, each = f"{x}[b n d]", "" if self.heads is None else "N"
        inner, lead = f"{each} I".strip(), f"{each} " if each else ""
        made = project("u", "Wx", inner, "Bx" if self.bias else "", source)
        made += project("z", "Wz", inner, "Bz" if self.bias else "", source)
        made += convolve("u", "Kx", inner, "Lx" if self.conv_bias else "", self.activation)
        for name, letter, axes in (("t", "t", "R"), ("w", "B", "S"), ("r", "C", "S")):
            made += project(name, f"W{letter}", axes, source=f"u[b n {inner}]", each=each)
            if self.norms is not None:
                made += self.norms.ops(name, name, f"mixer_{letter}", f"b n {lead}{axes}", axes)
        made += project("t", "Wdt", "I", "Bdt", f"t[b n {lead}R]", each=each)
        made += ops("mixer", f"t = softplus(t[b n {inner}]) -> [b n {inner}]")
        scanned = f"u[b n {inner}], t[b n {inner}], w[b n {lead}S], r[b n {lead}S], mixer.A[{inner} S]"
        state = (*inner.split(), "S")
        made += ops("mixer", f"o = scan({scanned}, state={state!r}, rule=mamba) -> [b n {inner}]")
        return made + skip(inner, inner) + gate("o", "z", inner) + emit(y, inner, self.bias)


@dataclass(frozen=True)
class ShortConv:
    """A gated short convolution (LFM2): in, gate, convolve, gate, out."""

    inner: int
    kernel: int
    bias: bool = False

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"I": self.inner, "K": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source = f"{x}[b n d]"
        made = []
        for name, letter in (("w", "B"), ("r", "C"), ("u", "x")):
            made += project(name, f"W{letter}", "I", f"B{letter}" if self.bias else "", source)
        made += ops("mixer", "o = mul(u[b n I], w[b n I]) -> [b n I]")
        made += convolve("o", "Kx", "I", "Lx" if self.bias else "", "")
        return made + ops("mixer", "o = mul(o[b n I], r[b n I]) -> [b n I]") + emit(y, "I", self.bias)
