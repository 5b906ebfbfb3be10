"""Parts of models of sound: attention within windows, queries to a window, convolutions over time and pitch."""

from __future__ import annotations

from assay.blocks.attention import CrossAttention, of_this_pass
from assay.blocks.conformer import Convolution, RelativeAttention
from assay.blocks.encoder_decoder import Frames
from assay.blocks.ends import Norm
from assay.records import dataclass, replace
from assay.spec import Op, Tensor, ops


@dataclass(frozen=True)
class NearAttention(RelativeAttention):
    """Attention within windows of a sound, with a learned vector of each distance."""

    size: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "w": self.size}

    def remember(self) -> list[Op]:
        """Keys and values of the window."""
        return of_this_pass("windows=w")


@dataclass(frozen=True)
class BiasedConvolution(Convolution):
    """A convolution whose matrices have biases."""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = []
        for op in super().ops(x, y):
            name = op.weights[0].name if op.weights else ""
            if name in ("Wua", "Wub", "Wpoint"):
                op = replace(op, inputs=(*op.inputs, Tensor(f"{name}_bias", (op.axes[-1],))))
            made.append(op)
        return made


@dataclass(frozen=True)
class WindowQueries(CrossAttention):
    """Queries to the positions of a window of `size`, `source` wide."""

    size: int = 1
    source: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "e": self.source}

    def project(self, x: str) -> list[Op]:
        """Queries from the queries, keys and values from `memory[b m e]`."""
        made = self.projected("q", f"{x}[b n d]", "b n", "g r k")
        for name, axes in (("k", "g k"), ("v", "g v")):
            line = f"{name} = linear(memory[b m e], cross.W{name}[e {axes}], cross.B{name}[{axes}]) -> [b m {axes}]"
            made += ops("attention", line)
        return made

    def remember(self) -> list[Op]:
        """Keys and values of the window."""
        return of_this_pass(f"windows={self.size}", "m", "M")


@dataclass(frozen=True)
class NamedNorm(Norm):
    """A norm behind a sum, named apart from others of its layer."""

    named: str = ""

    def ops(self, x: str, y: str, tag: str, axes: str = "b n d", over: str = "d", shared: str = "") -> list[Op]:
        """As any norm."""
        return super().ops(x, y, self.named, axes, over, shared)


@dataclass(frozen=True)
class UnplacedFrames(Frames):
    """The two convolutions without a table of positions."""

    def ops(self) -> list[Op]:
        """From `frames[b m j]` to `x[b n d]`."""
        return super().ops()[:-2]


@dataclass(frozen=True)
class Planes:
    """Chunks of frames through three convolutions over time and pitch, each at every other one of both.

    Axes: a, e, l times of the chunks together; j, h2, h3, h4 pitches; i, i2, i3 channels; q and r the kernel.
    """

    pitches: int
    channels: int
    chunk: int  # frames
    chunks: int
    width: int

    @property
    def length(self) -> int:
        """Positions of all chunks together."""
        return self.chunks * self.after(self.chunk)[-1]

    @staticmethod
    def after(length: int) -> tuple[int, ...]:
        """What each of the convolutions leaves of a side."""
        one = (length + 1) // 2
        two = (one + 1) // 2
        return one, two, (two + 1) // 2

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        times, tones = self.after(self.chunk), self.after(self.pitches)
        return {
            **{name: self.chunks * n for name, n in zip(("a", "e"), times, strict=False)},
            **dict(zip(("h2", "h3", "h4"), tones, strict=True)),
            "m": self.chunk * self.chunks,
            "j": self.pitches,
            "d": self.width,
            "q": 3,
            "r": 3,
            "i": self.channels,
            "i2": self.channels,
            "i3": self.channels,
        }

    def ops(self) -> list[Op]:
        """From `frames[b m j]` to `x[b n d]`."""
        made = convolved("frames[b m j]", "a h2", "", "i", 1) + convolved("x[b a h2 i]", "e h3", "i", "i2", 2)
        made += convolved("x[b e h3 i2]", "n h4", "i2", "i3", 3)
        return made + ops(
            "embedding",
            "x = linear(x[b n h4 i3], Wflat[i3 h4 d]) -> [b n d]",
            "x = sinusoid(x[b n d]) -> [b n d]",
        )


def convolved(source: str, to: str, read: str, made: str, index: int) -> list[Op]:
    """One convolution over two axes, with a stride of two along both."""
    name, _, axes = source.removesuffix("]").partition("[")
    time, tone = to.split()
    was = axes.split()
    first = f"b {time} {' '.join(was[2:])} q"
    second = f"b {time} {tone} {' '.join(was[3:])} q r".replace("  ", " ")
    kernel = f"{read} q r {made}".strip()
    return ops(
        "embedding",
        f"x = columns({name}[{axes}], stride=2) -> [{first}]",
        f"x = columns(x[{first}], stride=2) -> [{second}]",
        f"x = linear(x[{second}], Wplane{index}[{kernel}], Wplane{index}_bias[{made}]) -> [b {time} {tone} {made}]",
        f"x = gelu(x[b {time} {tone} {made}]) -> [b {time} {tone} {made}]",
    )
