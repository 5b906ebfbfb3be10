"""Mixers of tokens with a state of fixed size: state-space models, the gated delta rule, short convolutions.

Axes: H heads of the scan, Q their width, S the width of the state's other side, G groups that share reads and writes,
J key heads, I channels, R the rank of the time step, K the columns of the convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.blocks.ends import Norm
from assay.spec import Op, ops


def project(name: str, weight: str, axes: str, bias: str = "", source: str = "x[b n d]") -> list[Op]:
    """`name[b n axes]` from a source; its last axis is summed."""
    into, rows = source.rstrip("]").rpartition(" ")[2], axes
    shift = f", mixer.{bias}[{rows}]" if bias else ""
    return ops("mixer", f"{name} = linear({source}, mixer.{weight}[{into} {rows}]{shift}) -> [b n {rows}]")


def convolve(name: str, kernel: str, axes: str, bias: str = "", activation: str = "silu") -> list[Op]:
    """Each channel over the last K tokens, then an activation."""
    shift = f", mixer.{bias}[{axes}]" if bias else ""
    tensor = f"{name}[b n {axes}]"
    made = ops("mixer", f"{name} = conv({tensor}, mixer.{kernel}[{axes} K]{shift}) -> [b n {axes}]")
    return made + (ops("mixer", f"{name} = {activation}({tensor}) -> [b n {axes}]") if activation else [])


def gate(y: str, z: str, axes: str) -> list[Op]:
    """`y` times silu(z)."""
    return ops(
        "mixer",
        f"{z} = silu({z}[b n {axes}]) -> [b n {axes}]",
        f"{y} = mul({y}[b n {axes}], {z}[b n {axes}]) -> [b n {axes}]",
    )


def skip(axes: str, heads: str) -> list[Op]:
    """o + D u: the input past the scan."""
    return ops(
        "mixer",
        f"u = mul(u[b n {axes}], mixer.D[{heads}]) -> [b n {axes}]",
        f"o = add(o[b n {axes}], u[b n {axes}]) -> [b n {axes}]",
    )


def emit(y: str, axes: str, bias: bool) -> list[Op]:
    """Back to the model's width."""
    shift = ", mixer.Bo[d]" if bias else ""
    return ops("mixer", f"{y} = linear(o[b n {axes}], mixer.Wo[{axes} d]{shift}) -> [b n d]")


@dataclass(frozen=True)
class Mamba2:
    """State-space duality (Dao & Gu 2024, arXiv:2405.21060): a scalar decay a head, reads and writes shared by groups."""

    heads: int
    head_width: int
    state: int
    groups: int = 1
    kernel: int = 4
    conv_bias: bool = True
    bias: bool = False
    norm: Norm | None = Norm()  # of the gated output
    activation: str = "silu"

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"H": self.heads, "Q": self.head_width, "S": self.state, "G": self.groups, "K": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source = f"{x}[b n d]"
        made = []
        for name, letter, axes in (
            ("z", "z", "H Q"),
            ("u", "x", "H Q"),
            ("w", "B", "G S"),
            ("r", "C", "G S"),
            ("t", "t", "H"),
        ):
            made += project(name, f"W{letter}", axes, f"B{letter}" if self.bias else "", source)
        for name, letter, axes in (("u", "x", "H Q"), ("w", "B", "G S"), ("r", "C", "G S")):
            made += convolve(name, f"K{letter}", axes, f"L{letter}" if self.conv_bias else "", self.activation)
        made += ops("mixer", "t = add(t[b n H], mixer.Dt[H]) -> [b n H]", "t = softplus(t[b n H]) -> [b n H]")
        scanned = "u[b n H Q], t[b n H], w[b n G S], r[b n G S], mixer.A[H]"
        made += ops("mixer", f"o = scan({scanned}, state=('H', 'Q', 'S')) -> [b n H Q]")
        made += skip("H Q", "H") + gate("o", "z", "H Q")
        if self.norm is not None:
            made += self.norm.ops("o", "o", "mixer", "b n H Q", "H Q")
        return made + emit(y, "H Q", self.bias)


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

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"I": self.inner, "S": self.state, "R": self.rank, "K": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source = f"{x}[b n d]"
        made = project("u", "Wx", "I", "Bx" if self.bias else "", source)
        made += project("z", "Wz", "I", "Bz" if self.bias else "", source)
        made += convolve("u", "Kx", "I", "Lx" if self.conv_bias else "", self.activation)
        for name, letter, axes in (("t", "t", "R"), ("w", "B", "S"), ("r", "C", "S")):
            made += project(name, f"W{letter}", axes, source="u[b n I]")
            if self.norms is not None:
                made += self.norms.ops(name, name, f"mixer_{letter}", f"b n {axes}", axes)
        made += project("t", "Wdt", "I", "Bdt", "t[b n R]") + ops("mixer", "t = softplus(t[b n I]) -> [b n I]")
        scanned = "u[b n I], t[b n I], w[b n S], r[b n S], mixer.A[I S]"
        made += ops("mixer", f"o = scan({scanned}, state=('I', 'S')) -> [b n I]")
        return made + skip("I", "I") + gate("o", "z", "I") + emit(y, "I", self.bias)


@dataclass(frozen=True)
class GatedDelta:
    """The gated delta rule (Yang et al. 2024, arXiv:2412.06464): each token corrects what the state holds for its key,
    so it reads the state once to write and once to answer.
    """

    key_heads: int
    value_heads: int
    key_width: int
    value_width: int
    kernel: int = 4
    norm: Norm | None = Norm()  # of each head's output

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {
            "J": self.key_heads,
            "H": self.value_heads,
            "S": self.key_width,
            "Q": self.value_width,
            "K": self.kernel,
        }

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source = f"{x}[b n d]"
        made = []
        for name, axes in (("q", "J S"), ("k", "J S"), ("v", "H Q")):
            made += project(name, f"W{name}", axes, source=source) + convolve(name, f"K{name}", axes)
        made += project("z", "Wz", "H Q", source=source)
        made += project("w", "Wb", "H", source=source) + ops("mixer", "w = sigmoid(w[b n H]) -> [b n H]")
        made += project("t", "Wa", "H", source=source)
        made += ops("mixer", "t = add(t[b n H], mixer.Dt[H]) -> [b n H]", "t = softplus(t[b n H]) -> [b n H]")
        scanned = "q[b n J S], k[b n J S], v[b n H Q], w[b n H], t[b n H], mixer.A[H]"
        made += ops("mixer", f"o = scan({scanned}, state=('H', 'S', 'Q'), reads=2) -> [b n H Q]")
        if self.norm is not None:
            made += self.norm.ops("o", "o", "mixer", "b n H Q", "Q")
        return made + gate("o", "z", "H Q") + emit(y, "H Q", False)


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
