"""Recurrences with a state of fixed size from linear attention and gated linear recurrent networks.

Axes: J heads, S the width of a key, Q of a value, I channels, O as many once more (for a square matrix), o the model's
width once more, K the columns of the convolution, B and U the block of a chunked form.
"""

from __future__ import annotations

from assay.blocks.ends import Norm
from assay.blocks.recurrent import convolve, emit, gate, project
from assay.records import dataclass
from assay.spec import Op, ops


@dataclass(frozen=True)
class Lightning:
    """Lightning attention (Qin et al. 2024, arXiv:2405.17381): linear attention, each head with a decay of its own.

    Checkpoints store the decays, and tables of them for a block of the chunked form.
    """

    heads: int
    width: int
    block: int = 256
    norm: Norm = Norm()  # of all heads' outputs at once
    activation: str = "silu"

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"J": self.heads, "S": self.width, "Q": self.width, "B": self.block, "U": self.block}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source = f"{x}[b n d]"
        made: list[Op] = []
        for name, axes in (("q", "J S"), ("k", "J S"), ("v", "J Q")):
            made += project(name, f"W{name}", axes, source=source)
            made += ops("mixer", f"{name} = {self.activation}({name}[b n {axes}]) -> [b n {axes}]")
        decays = "mixer.Slope[J], mixer.Past[J B], mixer.Rest[J B], mixer.Within[J B U]"
        scanned = f"q[b n J S], k[b n J S], v[b n J Q], {decays}"
        made += ops("mixer", f"o = scan({scanned}, state=('J', 'S', 'Q'), rule=linear) -> [b n J Q]")
        made += self.norm.ops("o", "o", "mixer", "b n J Q", "J Q") + project("z", "Wz", "J Q", source=source)
        return made + gate("o", "z", "J Q", "sigmoid") + emit(y, "J Q", False)


@dataclass(frozen=True)
class GatedLru:
    """The real-gated linear recurrent unit (De et al. 2024, arXiv:2402.19427, section 2.4) in its recurrent block."""

    inner: int
    heads: int  # blocks of the gates' matrices
    kernel: int = 4
    activation: str = "gelu_tanh"

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        each = self.inner // self.heads
        return {"J": self.heads, "I": each, "O": each, "K": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = project("z", "Wz", "J I", "Bz", f"{x}[b n d]")
        made += project("u", "Wx", "J I", "Bx", f"{x}[b n d]") + convolve("u", "Kx", "J I", "Lx", "")
        for name, letter in (("i", "i"), ("r", "r")):
            made += project(name, f"W{letter}", "O", f"B{letter}", "u[b n J I]", "J")
            made += ops(
                "mixer",
                f"{name} = sigmoid({name}[b n J O]) -> [b n J O]",
                f"{name} = rename({name}[b n J O]) -> [b n J I]",
            )
        made += ops("mixer", "u = mul(u[b n J I], i[b n J I]) -> [b n J I]")
        # the state is the output: it is updated, and read for nothing else
        scanned = "u[b n J I], r[b n J I], mixer.A[J I]"
        made += ops("mixer", f"o = scan({scanned}, state=('J', 'I'), reads=0, rule=lru, power=8.0) -> [b n J I]")
        return made + gate("o", "z", "J I", self.activation) + emit(y, "J I", True)


@dataclass(frozen=True)
class MatrixLstm:
    """The mLSTM of xLSTM (Beck et al. 2024, arXiv:2405.04517): a matrix of values by keys over a sum of keys."""

    heads: int
    key_width: int
    value_width: int
    cap: float | None = 15.0  # of the gates
    bias: bool = False
    norm: Norm = Norm("layernorm")  # of each head's output
    eps: float = 1e-6  # of the normalizer

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"J": self.heads, "S": self.key_width, "Q": self.value_width}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made: list[Op] = []
        for name, axes in (("q", "J S"), ("k", "J S"), ("v", "J Q"), ("z", "J Q")):
            made += project(name, f"W{name}", axes, f"B{name}" if self.bias else "", f"{x}[b n d]")
        for name in "if":
            made += project(name, f"W{name}", "J", f"B{name}", f"{x}[b n d]")
            if self.cap is not None:
                made += ops("mixer", f"{name} = softcap({name}[b n J]) -> [b n J]", cap=self.cap)
        gates, scale = "i[b n J], f[b n J]", self.key_width**-0.5
        read, held = "q[b n J S], k[b n J S]", f"{gates}, m[b n J]"
        made += ops("mixer", f"m = peak({gates}, state=J, start=0.0) -> [b n J]")
        line = f"o = scan({read}, v[b n J Q], {held}, state=('J', 'S', 'Q'), rule=mlstm) -> [b n J Q]"
        made += ops("mixer", line, scale=scale)
        line = f"s = scan({read}, {held}, state=('J', 'S'), rule=mlstm) -> [b n J]"
        made += ops("mixer", line, scale=scale, eps=self.eps)
        made += ops("mixer", "o = div(o[b n J Q], s[b n J]) -> [b n J Q]")
        made += self.norm.ops("o", "o", "mixer", "b n J Q", "Q", "J ")
        return made + gate("o", "z", "J Q", "sigmoid") + emit(y, "J Q", self.bias)


def mixed(part: str, letters: str, x: str) -> list[Op]:
    """`x{letter}` for each letter: a mixture of the token and the one before, by channel."""
    made = ops(part, f"s = shift({x}[b n d]) -> [b n d]")
    for letter in letters:
        made += ops(part, f"x{letter} = lerp({x}[b n d], s[b n d], {part}.M{letter}[d]) -> [b n d]")
    return made


@dataclass(frozen=True)
class Rwkv:
    """RWKV-4's mixer of tokens (Peng et al. 2023, arXiv:2305.13048): weighted sums of values and of weights, a channel
    each, beside the largest exponent so far.
    """

    inner: int

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"I": self.inner}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = mixed("mixer", "kvr", x)
        for name in "kvr":
            made += project(name, f"W{name}", "I", source=f"x{name}[b n d]")
        decays = "mixer.Decay[I], mixer.First[I]"
        made += ops(
            "mixer",
            "r = sigmoid(r[b n I]) -> [b n I]",
            "m = peak(k[b n I], mixer.Decay[I], state=I, start=-1e38) -> [b n I]",
            f"o = scan(k[b n I], v[b n I], m[b n I], {decays}, state=I, rule=wkv) -> [b n I]",
            f"e = scan(k[b n I], m[b n I], {decays}, state=I, rule=wkv) -> [b n I]",
            "o = div(o[b n I], e[b n I]) -> [b n I]",
            "o = mul(o[b n I], r[b n I]) -> [b n I]",
        )
        return made + emit(y, "I", False)


@dataclass(frozen=True)
class RwkvMlp:
    """RWKV-4's feed-forward layer: it sees the token before, and a gate scales its output."""

    inner: int
    width: int  # of the model: o, for the gate's square matrix

    part = "mlp"
    tag = "m"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"f": self.inner, "o": self.width}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = mixed("mlp", "kr", x)
        return made + ops(
            "mlp",
            "k = linear(xk[b n d], mlp.Wk[d f]) -> [b n f]",
            "k = relu2(k[b n f]) -> [b n f]",
            "v = linear(k[b n f], mlp.Wv[f d]) -> [b n d]",
            "r = linear(xr[b n d], mlp.Wr[d o]) -> [b n o]",
            "r = rename(r[b n o]) -> [b n d]",
            "r = sigmoid(r[b n d]) -> [b n d]",
            f"{y} = mul(v[b n d], r[b n d]) -> [b n d]",
        )
