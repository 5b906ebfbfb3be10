"""MobileNet-V5: convolutions of an image's rows and columns, and attention in which all heads share one key and value
(Qin et al. 2024, arXiv:2404.10518, the blocks of MobileNet-V4).

Each block stands in a residual stream `x[b y z d]` of a stage, and is given its sizes by itself.

Axes: y and z rows and columns of what comes in, u and w of what goes out, q and s of a kernel, o and p of a second;
d channels of what comes in, j of what goes out, f between them.
"""

from __future__ import annotations

from assay.blocks.attention import Attention, of_this_pass
from assay.blocks.ends import Norm
from assay.blocks.rewritten import over
from assay.records import dataclass
from assay.spec import Op, ops

ACTIVATION = "gelu_tanh"
PART = "tower"


def kernel(x: str, y: str, channels: str, cells: str = "q s", to: str = "y z", stride: int = 1) -> list[Op]:
    """`y[b to channels cells]`, what a kernel sees of `x[b y z channels]`; `to` are the rows and columns it makes."""
    (rows, columns), (down, across) = to.split(), cells.split()
    apart = f", stride={stride}" if stride > 1 else ""
    return ops(
        PART,
        f"{y} = columns({x}[b y z {channels}]{apart}) -> [b {rows} z {channels} {down}]",
        f"{y} = columns({y}[b {rows} z {channels} {down}]{apart}) -> [b {rows} {columns} {channels} {down} {across}]",
    )


def normed(norm: Norm, x: str, tag: str, axes: str, activation: str = "") -> list[Op]:
    """`x` normed over its channels, the last axis, and activated where an activation is named."""
    made = norm.ops(x, x, tag, axes, axes.split()[-1])
    return made + (ops(PART, f"{x} = {activation}({x}[{axes}]) -> [{axes}]") if activation else [])


def joined(y: str, skips: bool) -> list[Op]:
    """`y[b y z j]` added to the stream, or in its place where its shape is another."""
    if not skips:
        return []
    return ops(PART, f"{y} = rename({y}[b y z j]) -> [b y z d]", f"x = add(x[b y z d], {y}[b y z d]) -> [b y z d]")


@dataclass(frozen=True)
class Convolved:
    """A block of convolutions: `side` rows and columns of `width` channels come in, every `stride`-th goes out."""

    side: int
    width: int
    out: int
    inner: int  # channels between
    stride: int = 1
    norm: Norm = Norm(eps=1e-6)

    says = "convolution"  # its name in a report

    @property
    def skips(self) -> bool:
        """True where what goes out is added to what came in."""
        return self.stride == 1 and self.width == self.out

    @property
    def left(self) -> int:
        """Rows and columns of what goes out."""
        return -(-self.side // self.stride)

    @property
    def to(self) -> str:
        """The axes of rows and columns of what goes out."""
        return "u w" if self.stride > 1 else "y z"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        made: dict[str, int | None] = {"y": self.side, "z": self.side, "d": self.width, "j": self.out, "f": self.inner}
        return made | ({"u": self.left, "w": self.left} if self.stride > 1 else {})

    def project(self, x: str, y: str, to: str) -> list[Op]:
        """`y[b to j]` from `x[b to f]`, normed."""
        made = ops(PART, f"{y} = linear({x}[b {to} f], Wproj[f j]) -> [b {to} j]")
        return made + normed(self.norm, y, "proj", f"b {to} j")


@dataclass(frozen=True)
class EdgeResidual(Convolved):
    """A kernel over all channels to more of them, and a matrix back (Gupta & Akin 2020, fused inverted bottleneck)."""

    cells: int = 3

    says = "edges"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "q": self.cells, "s": self.cells}

    def ops(self) -> list[Op]:
        """From and to the stream."""
        to, y = self.to, "m" if self.skips else "x"
        made = kernel("x", "m", "d", to=to, stride=self.stride)
        made += ops(PART, f"m = linear(m[b {to} d q s], Wexp[d q s f]) -> [b {to} f]")
        made += normed(self.norm, "m", "exp", f"b {to} f", ACTIVATION)
        return made + self.project("m", y, to) + joined(y, self.skips)


@dataclass(frozen=True)
class InvertedResidual(Convolved):
    """A matrix to more channels and one back, with a kernel of each channel before, between, or neither; a gain.

    The kernel between has the stride where there is one.
    """

    start: int = 0  # rows and columns of the kernel before
    middle: int = 0  # of the one between
    gain: bool = True

    says = "inverted"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        own = {"q": self.start, "s": self.start} if self.start else {}
        between = {"o": self.middle, "p": self.middle} if self.middle else {}
        return {**super().sizes(), **own, **between}

    def ops(self) -> list[Op]:
        """From and to the stream."""
        to, y, made = self.to, "m" if self.skips else "x", []
        source = "x"
        if self.start:
            made += kernel("x", "m", "d")
            made += ops(PART, "m = linear(m[b y z d q s], Wstart[d q s]) -> [b y z d]")
            made += normed(self.norm, "m", "start", "b y z d")
            source = "m"
        made += ops(PART, f"m = linear({source}[b y z d], Wexp[d f]) -> [b y z f]")
        made += normed(self.norm, "m", "exp", "b y z f", ACTIVATION)
        if self.middle:
            made += kernel("m", "m", "f", "o p", to, self.stride)
            made += ops(PART, f"m = linear(m[b {to} f o p], Wmid[f o p]) -> [b {to} f]")
            made += normed(self.norm, "m", "mid", f"b {to} f", ACTIVATION)
        made += self.project("m", y, to)
        if self.gain:
            made += ops(PART, f"{y} = mul({y}[b {to} j], Gain[j]) -> [b {to} j]")
        return made + joined(y, self.skips)


@dataclass(frozen=True)
class MobileAttention(Attention):
    """Attention of every position to all, or to those that a kernel of each channel leaves, every `stride`-th.

    All heads share one key and one value (Shazeer 2019). Axes: n positions, m those that are keys, u and w their rows
    and columns.
    """

    side: int = 1
    width: int = 1
    stride: int = 1
    cells: int = 3
    norm: Norm = Norm(eps=1e-6)

    says = "attention"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        made = {**super().sizes(), "y": self.side, "z": self.side, "d": self.width, "n": self.side**2}
        if self.stride > 1:
            left = -(-self.side // self.stride)
            made |= {"u": left, "w": left, "m": left**2, "q": self.cells, "s": self.cells}
        return made

    def ops(self, x: str = "x", y: str = "x") -> list[Op]:
        """From and to the stream."""
        made = self.norm.ops(x, "a", "a", "b y z d")
        made += ops(PART, "xa = reshape(a[b y z d]) -> [b n d]")
        made += super().ops("xa", "m")
        return made + ops(
            PART,
            "m = mul(m[b n d], Gain[d]) -> [b n d]",
            "m = reshape(m[b n d]) -> [b y z d]",
            f"{y} = add({x}[b y z d], m[b y z d]) -> [b y z d]",
        )

    def project(self, x: str) -> list[Op]:
        """Queries of all positions; keys and values of those that are left."""
        if self.stride == 1:
            return super().project(x)
        made = self.projected("q", f"{x}[b n d]", "b n", "g r k")
        for name, axes in (("k", "g k"), ("v", "g v")):
            made += kernel("a", f"x{name}", "d", to="u w", stride=self.stride)
            made += ops(PART, f"x{name} = linear(x{name}[b u w d q s], D{name}[d q s]) -> [b u w d]")
            made += normed(self.norm, f"x{name}", name, "b u w d")
            made += ops(PART, f"x{name} = reshape(x{name}[b u w d]) -> [b m d]")
            made += self.projected(name, f"x{name}[b m d]", "b m", axes)
        return made

    def remember(self) -> list[Op]:
        """Nothing outlives the pass."""
        return of_this_pass() if self.stride == 1 else []

    def attend(self) -> list[Op]:
        """As within a sequence, over the positions that are keys."""
        made = super().attend()
        return made if self.stride == 1 else over(made, "c", "m")


@dataclass(frozen=True)
class Stem:
    """The first kernel, at every other row and column of the pixels, and its norm. Axes: i channels of a pixel."""

    side: int  # of an image
    width: int
    channels: int = 3
    norm: Norm = Norm(eps=1e-6)

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        left = -(-self.side // 2)
        sides = {"y": self.side, "z": self.side, "u": left, "w": left, "q": 3, "s": 3}
        return {**sides, "i": self.channels, "d": self.width}

    def ops(self) -> list[Op]:
        """From `pixels[b y z i]` to the stream."""
        made = kernel("pixels", "x", "i", to="u w", stride=2)
        made += ops(PART, "x = linear(x[b u w i q s], Wstem[i q s d], Wstem_bias[d]) -> [b u w d]")
        return made + normed(self.norm, "x", "stem", "b u w d", ACTIVATION)


@dataclass(frozen=True)
class Fusion:
    """The last two stages' channels together at the finer one's positions, two matrices, means of squares of positions.

    `near` and `far` are the rows and the channels of the two, `side` the rows of what is made. Axes: y and z rows and
    columns of the finer stage, u and w of the coarser, o and p how often each of these is taken; d, e and l their
    channels and both together; v and h rows and columns of what goes out.
    """

    near: tuple[int, int]
    far: tuple[int, int]
    inner: int
    out: int
    side: int
    norm: Norm = Norm(eps=1e-6)

    says = "fusion"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        (fine, d), (coarse, e) = self.near, self.far
        each, step = fine // coarse, fine // self.side
        made: dict[str, int | None] = {"y": fine, "z": fine, "d": d, "u": coarse, "w": coarse, "e": e, "l": d + e}
        made |= {"o": each, "p": each, "f": self.inner, "j": self.out}
        return made | {"v": self.side, "h": self.side, "q": step, "s": step}

    def ops(self) -> list[Op]:
        """From `near[b y z d]` and `far[b u w e]` to `x[b v h j]`."""
        step = self.near[0] // self.side
        made = ops(
            PART,
            "far = repeat(far[b u w e]) -> [b u w e o p]",
            "far = reshape(far[b u w e o p]) -> [b y z e]",
            "x = concat(near[b y z d], far[b y z e]) -> [b y z l]",
            "x = linear(x[b y z l], Wexp[l f]) -> [b y z f]",
        )
        made += normed(self.norm, "x", "exp", "b y z f", ACTIVATION)
        made += ops(PART, "x = linear(x[b y z f], Wproj[f j]) -> [b y z j]")
        made += normed(self.norm, "x", "proj", "b y z j")
        made += kernel("x", "x", "j", to="v h", stride=step)
        made += ops(PART, "x = mean(x[b v h j q s]) -> [b v h j]")
        return made + normed(self.norm, "x", "fused", "b v h j")
