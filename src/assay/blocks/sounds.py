"""Parts of models of sound: attention within windows, queries to a window, convolutions over time and pitch."""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.attention import CrossAttention, of_this_pass
from assay.blocks.conformer import Convolution, RelativeAttention
from assay.blocks.encoder_decoder import Frames
from assay.blocks.ends import Norm
from assay.blocks.stacks import Wrapped
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
class ChunkedAttention(RelativeAttention):
    """Attention of chunks of a sound to themselves and what is near, with a projection of the sines of each distance.

    Every query meets the `size` keys of its chunk and around it, which a mask narrows; `places` distances have sines.
    The factor of each number of a head is learned.
    """

    size: int = 1
    places: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "w": self.size, "e": self.places}

    def place(self) -> list[Op]:
        """Queries times the factors; keys times a constant, log2(1 + e)."""
        return ops(
            "attention",
            "factor = repeat(Factor[k]) -> [b k]",  # where there is a sound
            "factor = softplus(factor[b k]) -> [b k]",
            "q = scale(q[b n g r k]) -> [b n g r k]",
            "q = mul(q[b n g r k], factor[b k]) -> [b n g r k]",
            "k = scale(k[b n g k]) -> [b n g k]",
        )

    def remember(self) -> list[Op]:
        """Keys and values of the chunk and around it."""
        return of_this_pass("windows=w")

    def placed(self) -> list[Op]:
        """The sines are projected for each sound."""
        return ops(
            "attention",
            "sin = repeat(sines[e d]) -> [b e d]",
            "pos = linear(sin[b e d], Wpos[d g r k]) -> [b e g r k]",
            "bias = contract(q[b n g r k], pos[b e g r k]) -> [b g r n e]",
            "bias = take(bias[b g r n e], at[b g r n c]) -> [b g r n c]",
        )


BOUNDS = {"low": "input_min", "high": "input_max", "least": "output_min", "most": "output_max"}


@dataclass(frozen=True)
class Clamped(Wrapped):
    """A body whose matrices read and give numbers between stored bounds; those of `as_one` are stored as one."""

    matrices: tuple[str, ...]
    as_one: tuple[tuple[str, str], ...] = ()

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from `x`."""
        made: list[Op] = []
        for op in self.body.ops(x, y):
            weight = op.weights[0].name if op.weights else ""
            if weight not in self.matrices:
                made.append(op)
                continue
            called, (read, *others) = dict(self.as_one).get(weight, weight), op.inputs
            within = ops(op.part, f"within = clamp({read}, {called}_low[], {called}_high[]) -> [{' '.join(read.axes)}]")
            made += [*within, replace(op, inputs=(replace(read, name="within"), *others))]
            axes = f"[{' '.join(op.axes)}]"
            made += ops(op.part, f"{op.name} = clamp({op.name}{axes}, {called}_least[], {called}_most[]) -> {axes}")
        return made


def bounds(names: Mapping[str, str]) -> dict[str, str]:
    """The names of the bounds beside those of the matrices, each `linear` within what is clamped."""
    found: dict[str, str] = {}
    for weight, path in names.items():
        inner = path.partition(".linear.weight")
        if inner[1]:
            found |= {f"{weight}_{end}": f"~{inner[0]}.{name}[ ]" for end, name in BOUNDS.items()}
    return found


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


@dataclass(frozen=True)
class Subsampled:
    """Frames through two convolutions over time and pitch, each normed, and a matrix (Gemma 4).

    Axes: m, a, n times; j, h2, h3 pitches; i and l channels; q and r the kernel.
    """

    pitches: int
    channels: tuple[int, int]
    width: int
    norm: Norm

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        tones = {"j": self.pitches, "h2": self.pitches // 2, "h3": self.pitches // 4}
        return {**tones, "i": self.channels[0], "l": self.channels[1], "q": 3, "r": 3, "d": self.width}

    def ops(self) -> list[Op]:
        """From `frames[b m j]` to `x[b n d]`."""
        made = ops(
            "embedding",
            "x = columns(frames[b m j], stride=2) -> [b a j q]",
            "x = columns(x[b a j q], stride=2) -> [b a h2 q r]",
            "x = linear(x[b a h2 q r], Wplane1[q r i]) -> [b a h2 i]",
        )
        made += self.norm.ops("x", "x", "plane1", "b a h2 i", "i")
        made += ops(
            "embedding",
            "x = relu(x[b a h2 i]) -> [b a h2 i]",
            "x = columns(x[b a h2 i], stride=2) -> [b n h2 i q]",
            "x = columns(x[b n h2 i q], stride=2) -> [b n h3 i q r]",
            "x = linear(x[b n h3 i q r], Wplane2[i q r l]) -> [b n h3 l]",
        )
        made += self.norm.ops("x", "x", "plane2", "b n h3 l", "l")
        return made + ops(
            "embedding",
            "x = relu(x[b n h3 l]) -> [b n h3 l]",
            "x = linear(x[b n h3 l], Wflat[h3 l d]) -> [b n d]",
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


@dataclass(frozen=True)
class LimitedNorm(Norm):
    """A norm of what is no further from zero than a limit."""

    limit: float = 1e10

    def ops(self, x: str, y: str, tag: str, axes: str = "b n d", over: str = "d", shared: str = "") -> list[Op]:
        """As any norm, behind the limit."""
        within = ops("norm", f"{y} = clip({x}[{axes}]) -> [{axes}]", limit=self.limit)
        return [*within, *super().ops(y, y, tag, axes, over, shared)]


@dataclass(frozen=True)
class Strided:
    """Frames through two convolutions over time and pitch, each normed by what came so far, and a matrix (Gemma 3n).

    `kernels` and `strides` are of times and of pitches, for each. Axes: m, a, n times; j, h2, h3 pitches; i and l
    channels; q and r the first kernel, s and t the second.
    """

    times: tuple[int, int, int]
    pitches: tuple[int, int, int]
    channels: tuple[int, int]
    kernels: tuple[tuple[int, int], tuple[int, int]]
    strides: tuple[tuple[int, int], tuple[int, int]]
    width: int
    eps: float

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        cells = dict(zip("qrst", (*self.kernels[0], *self.kernels[1]), strict=True))
        tones = dict(zip(("j", "h2", "h3"), self.pitches, strict=True))
        times = {"m": self.times[0], "a": self.times[1]}
        return {**cells, **tones, **times, "i": self.channels[0], "l": self.channels[1], "d": self.width}

    def ops(self) -> list[Op]:
        """From `frames[b m j]` to `x[b n d]`."""
        (slow, high), (slower, higher) = self.strides
        made = ops(
            "embedding",
            f"x = columns(frames[b m j], stride={slow}) -> [b a j q]",
            f"x = columns(x[b a j q], stride={high}) -> [b a h2 q r]",
            "x = linear(x[b a h2 q r], Wplane1[q r i]) -> [b a h2 i]",
            f"x = running_norm(x[b a h2 i], Gplane1[i], along=a, over=('h2', 'i'), eps={self.eps}) -> [b a h2 i]",
            "x = relu(x[b a h2 i]) -> [b a h2 i]",
            f"x = columns(x[b a h2 i], stride={slower}) -> [b n h2 i s]",
            f"x = columns(x[b n h2 i s], stride={higher}) -> [b n h3 i s t]",
            "x = linear(x[b n h3 i s t], Wplane2[i s t l]) -> [b n h3 l]",
            f"x = running_norm(x[b n h3 l], Gplane2[l], along=n, over=('h3', 'l'), eps={self.eps}) -> [b n h3 l]",
        )
        return made + ops(
            "embedding",
            "x = relu(x[b n h3 l]) -> [b n h3 l]",
            "x = linear(x[b n h3 l], Wflat[h3 l d]) -> [b n d]",
        )
