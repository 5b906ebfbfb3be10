"""Towers: encoders of images or sound, by themselves or beside a model of text.

A tower's batch is the images; what an image's positions are is fixed by its size, or a setting where it may have any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, Self

from assay.blocks.attention import Attention, of_this_pass
from assay.blocks.ends import Norm
from assay.blocks.mlp import Mlp
from assay.blocks.rewritten import as_part, begun, over
from assay.blocks.stacks import Decoder, Ending, Layer, Wrapped, layer_segments, make_block
from assay.records import dataclass, replace
from assay.size import Size
from assay.spec import Block, Op, Segment, Sight, ops

IMAGE = {"p": "patches", "n": "patches", "o": "image_tokens"}  # positions of a tower that sees images of any size


class Start(Protocol):
    """What makes a tower's first activations from an image or a sound."""

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""

    def ops(self) -> list[Op]:
        """`x[b n d]` from pixels or frames."""


@dataclass(frozen=True)
class Patches:
    """Square patches through one matrix, learned tokens before them, learned positions (Dosovitskiy et al. 2021).

    The matrix is stored as the kernel of a convolution whose stride is its size. `kernel` is frames (where there are
    any), rows and columns of a patch. Axes: p patches, n positions, i channels, u frames, y rows, z columns.
    """

    channels: int
    kernel: tuple[int, ...]
    width: int
    patches: int | None = None  # of an image, where all are of one size
    tokens: tuple[tuple[str, int], ...] = ()  # learned ones, and how many rows each table has
    late: tuple[tuple[str, int], ...] = ()  # the same, behind the positions
    bias: bool = True
    positions: int | None = None  # rows of a learned table
    sides: tuple[int, int] | None = None  # rows and columns of an image, where the table is stored by both
    before: Norm | None = None  # of the patches, before their positions
    norm: Norm | None = None
    spare: tuple[str, ...] = ()  # vectors that are stored for training alone

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        rows = {f"n_{name}": many for name, many in (*self.tokens, *self.late)}
        sides = dict(zip(("u", "y", "z")[-len(self.kernel) :], self.kernel, strict=True))
        given = {"d": self.width, "i": self.channels, "p": self.patches, "P": self.positions}
        early = sum(many for _, many in self.tokens)
        between = None if self.patches is None or not (self.tokens and self.late) else self.patches + early
        table = dict(zip(("rows", "columns"), self.sides or (), strict=False))
        return {**given, **sides, **rows, **table, "m": between}

    @property
    def length(self) -> int:
        """Positions of an image of the one size."""
        return (self.patches or 0) + sum(many for _, many in (*self.tokens, *self.late))

    def ops(self) -> list[Op]:
        """From `pixels` to `x[b n d]`."""
        inner = " ".join(("i", *("u", "y", "z")[-len(self.kernel) :]))
        axis = "p" if self.tokens or self.late else "n"
        shift = ", Wpatch_bias[d]" if self.bias else ""
        made = ops("embedding", f"x = linear(pixels[b {axis} {inner}], Wpatch[{inner} d]{shift}) -> [b {axis} d]")
        if self.before is not None:
            made += self.before.ops("x", "x", "patch", f"b {axis} d")
        middle = "m" if self.tokens and self.late else "n" if self.tokens else axis
        made += prepend(self.tokens, axis, middle)
        if self.positions is not None:
            made += ops("embedding", f"e = gather(at[{middle}], E_position[P d]) -> [{middle} d]")
            made += ops("embedding", f"x = add(x[b {middle} d], e[{middle} d]) -> [b {middle} d]")
        made += self.registers(middle)
        if self.norm is not None:
            made += self.norm.ops("x", "x", "e")
        return made + [op for name in self.spare for op in ops("embedding", f"spare = view({name}[d]) -> [d]")]

    def registers(self, middle: str) -> list[Op]:
        """The late tokens: behind the early ones, before the patches."""
        if not self.tokens or not self.late:
            return prepend(self.late, middle, "n")
        early = [f"c_{name} = slice(x[b {middle} d]) -> [b n_{name} d]" for name, _ in self.tokens]
        held = [f"c_{name}[b n_{name} d]" for name, _ in self.tokens]
        patches = ops("embedding", *early, f"x = slice(x[b {middle} d]) -> [b p d]")
        return patches + prepend(self.late, "p", "n", held)


def prepend(tokens: tuple[tuple[str, int], ...], axis: str, made: str, held: Sequence[str] = ()) -> list[Op]:
    """Learned tokens before those of `x[b axis d]`, behind others that are `held`; a table of one row is a vector."""
    if not tokens:
        return []
    lines, terms = [], [*held]
    for name, many in tokens:
        rows = f"n_{name}"
        lines.append(f"c_{name} = repeat({name}[{f'{rows} ' if many > 1 else ''}d]) -> [b {rows} d]")
        terms.append(f"c_{name}[b {rows} d]")
    return ops("embedding", *lines, f"x = concat({', '.join(terms)}, x[b {axis} d]) -> [b {made} d]")


@dataclass(frozen=True)
class Drawn:
    """A block of ops that stands once in a tower, or once for each of `at`: a projector, a neck."""

    segment: str
    made: tuple[Op, ...]
    axes: Mapping[str, int | None]
    at: tuple[int, ...] = ()

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return dict(self.axes)

    def ops(self) -> list[Op]:
        """As they were given."""
        return list(self.made)


def drawn(segment: str, *lines: str, at: tuple[int, ...] = (), **sizes: int | None) -> Drawn:
    """Lines of the notation as a block of a tower."""
    return Drawn(segment, tuple(ops("tower", *lines)), sizes, at)


@dataclass(frozen=True)
class Causal(Attention):
    """Attention to earlier tokens of the same pass, of which nothing is kept."""

    def remember(self) -> list[Op]:
        """Keys and values of this pass."""
        return of_this_pass("causal=True")


@dataclass(frozen=True)
class Recent(Attention):
    """Attention to the `last` tokens of the same pass so far, of which nothing is kept; to all of them where None."""

    last: int | None = None

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "w": self.last}

    def remember(self) -> list[Op]:
        """Keys and values of this pass."""
        return of_this_pass("causal=True" if self.last is None else "last=w")


@dataclass(frozen=True)
class Windowed(Attention):
    """Attention within windows of an image, each by itself."""

    patches: int = 1  # of a window

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "w": self.patches}

    def remember(self) -> list[Op]:
        """Keys and values of the window."""
        return of_this_pass("windows=w")


@dataclass(frozen=True)
class Probe:
    """One learned query that attends to all positions, and an MLP behind it (Zhai et al. 2023, SigLIP)."""

    heads: int
    width: int
    mlp: Mlp
    norm: Norm

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        k = self.width // self.heads
        return {"d": self.width, "g": self.heads, "r": 1, "k": k, "v": k, "f": self.mlp.width, "m": 1}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `y[b d]`."""
        attention = Attention(self.heads, self.heads, self.width // self.heads, bias="qkvo", sees="all")
        made = ops("head", "probe = repeat(Probe[d]) -> [b m d]")
        made += attention.projected("q", "probe[b m d]", "b m", "g r k")
        made += attention.projected("k", "x[b n d]", "b n", "g k") + attention.projected("v", "x[b n d]", "b n", "g v")
        made += of_this_pass()
        behind = [*attention.attend(), *attention.emit("x", "y"), *self.norm.ops("y", "z", "p")]
        behind += [*self.mlp.ops("z", "z"), *ops("other", "y = add(y[b n d], z[b n d]) -> [b n d]")]
        made += over(behind, "n", "m")
        return begun([*made, *ops("head", "y = first(y[b m d]) -> [b d]")], "probe.")


@dataclass(frozen=True)
class Gained(Wrapped):
    """A body whose output has a learned gain for each channel (Touvron et al. 2021, layer scale)."""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from `x`, both `[b n d]`."""
        return [*self.body.ops(x, y), *ops("other", f"{y} = mul({y}[b n d], L{self.tag}[d]) -> [b n d]")]


@dataclass(frozen=True)
class Watched(Layer):
    """A layer whose output is read by more than the next one: what stands behind the tower reads it as `seen`."""

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`, the same as `seen[b n d]`."""
        return [*super().ops(), *ops("other", "seen = view(x[b n d]) -> [b n d]")]


@dataclass(frozen=True)
class Tower:
    """An encoder of images or sound: its start, its layers, what stands behind them.

    `axes` gives its positions: n, and p patches or o tokens of the text model where they differ. `called` is before
    the names of its segments, `part` that of everything in it where it stands beside a text model.
    """

    start: Start
    layers: tuple[Layer, ...]
    ends: tuple[Ending, ...]
    width: int
    axes: Mapping[str, Size | str]
    names: Mapping[str, str] | None = None
    called: str = ""
    part: str | None = None
    sight: Sight | None = None

    settings: ClassVar[tuple[str, ...]] = ("images",)
    limit: ClassVar[int | None] = None
    trained: ClassVar[int | None] = None
    source_tokens: ClassVar[int | None] = None
    source_limit: ClassVar[int | None] = None
    source_stride: ClassVar[int] = 1
    source_extra: ClassVar[int] = 0

    @property
    def depth(self) -> int:
        """How many layers."""
        return len(self.layers)

    def ending(self, head: Ending | None) -> Self:
        """The same layers with another end, its names given from outside."""
        return replace(self, ends=() if head is None else (head,), names=None)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The start, each distinct layer with its indices, and each end."""
        names = names if self.names is None else self.names
        length = self.axes["n"]
        axes = {"b": "images", "past": 0, "t": length, **self.axes}
        sizes = self.start.sizes()
        made = [Segment("embedding", make_block("embedding", self.start.ops(), sizes, names), axes=axes)]
        made += layer_segments(self.layers, self.width, names, axes)
        for end in self.ends:
            block = make_block(end.segment, end.ops(), {"d": self.width, **end.sizes()}, names)
            made.append(Segment(end.segment, block, getattr(end, "at", ()), axes))
        return tuple(self._own(segment) for segment in made)

    def _own(self, segment: Segment) -> Segment:
        name = f"{self.called} {segment.name}".strip()
        return replace(segment, name=name, block=self._whole(replace(segment.block, name=name)))

    def _whole(self, block: Block) -> Block:
        """All of it one part of the model, where it is one."""
        if self.part is None:
            return block
        return replace(block, ops=tuple(as_part(block.ops, self.part)))


@dataclass(frozen=True)
class Multimodal:
    """A model of text with towers beside it, whose outputs stand in the place of some of its tokens.

    `after` follows the text model: what compares both, where they are compared.
    """

    text: Decoder
    towers: tuple[Tower, ...]
    sight: Sight
    names: Mapping[str, str] | None = None
    after: tuple[Drawn, ...] = ()
    bare: str = ""  # what the names of all weights lose where the class is the base of another

    source_tokens: ClassVar[int | None] = None
    source_limit: ClassVar[int | None] = None
    source_stride: ClassVar[int] = 1
    source_extra: ClassVar[int] = 0

    @property
    def settings(self) -> tuple[str, ...]:
        """What the text model can be asked, images, and sounds where they are counted apart."""
        return (*self.text.settings, "images", *(("sounds",) if self.sight.sounds else ()))

    @property
    def width(self) -> int:
        """Of the text model."""
        return self.text.width

    @property
    def depth(self) -> int:
        """Of the text model."""
        return self.text.depth

    @property
    def limit(self) -> int | None:
        """Rows of the text model's position table."""
        return self.text.limit

    @property
    def trained(self) -> int | None:
        """The context that the config claims."""
        return self.text.trained

    def ending(self, head: Ending | None) -> Self:
        """The same with another end of the text model, its names given from outside."""
        return replace(self, text=self.text.ending(head), names=None)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The towers' segments, the text model's, and what compares them."""
        names = names if self.names is None else self.names
        made = [segment for tower in self.towers for segment in tower.segments({})]
        made += self.text.segments(names)
        for one in self.after:
            made.append(
                Segment(one.segment, make_block(one.segment, one.ops(), one.sizes(), names), axes={"z": "images"})
            )
        return tuple(made)
