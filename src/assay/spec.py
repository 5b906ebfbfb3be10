"""What a model is: ops over named axes, in blocks, in segments, in a model; and the notation they are written in.

    q = linear(x[b n d], Wq[d g r k]) -> [b n g r k]
    s = contract(q[b n g r k], k[b c g k]) -> [b g r n c]

One op a line: a name, a kind, its operands with their axes, attributes, the axes of the result.
A name whose last part begins with a capital is a weight. A heading such as `attention:` says which part of
the model the ops below it belong to; `attention.scores` is a part of `attention`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from assay.errors import NotationError, no_model
from assay.records import dataclass, field, replace
from assay.size import Size

if TYPE_CHECKING:
    from assay.formats import Format, Scheme

Axes = tuple[str, ...]
Attrs = tuple[tuple[str, Any], ...]
# what an axis of a segment is; a tuple of such tuples is their sum
Place: TypeAlias = Size | str | tuple[str, int] | tuple[str, int, int] | tuple[tuple[str, int], ...]

# How the field writes the axes. A block may name others: the docstring of its module, or its own, says what they are.
AXES = {
    "b": "batch",
    "n": "tokens processed now",
    "c": "keys at hand",
    "t": "positions that get logits",
    "d": "model width",
    "h": "query heads",
    "g": "key/value heads",
    "r": "query heads per key/value head",
    "k": "query/key head width",
    "v": "value head width",
    "f": "MLP inner width",
    "e": "experts",
    "a": "experts chosen per token",
    "V": "vocabulary",
    "P": "position table",
    "m": "source tokens encoded now",
    "M": "source tokens at hand",
}


@dataclass(frozen=True)
class Tensor:
    """An operand: a name and its axes. Weights and activations differ by the first letter alone."""

    name: str
    axes: Axes

    @property
    def is_weight(self) -> bool:
        """True where the last part of the name begins with a capital."""
        return self.name.rpartition(".")[2][0].isupper()

    def __str__(self) -> str:
        return f"{self.name}[{' '.join(self.axes)}]"


@dataclass(frozen=True)
class Op:
    """One line of the notation: `name = kind(inputs, attrs) -> [axes]`, and the part it belongs to."""

    name: str
    kind: str
    inputs: tuple[Tensor, ...]
    axes: Axes
    attrs: Attrs = ()
    part: str = "other"
    again: str = ""  # with what it runs again in the backward pass, "" where what is kept of it stays
    activations: tuple[Tensor, ...] = field(init=False, repr=False, compare=False)
    weights: tuple[Tensor, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the operands once: every reading asks."""
        object.__setattr__(self, "activations", tuple(t for t in self.inputs if not t.is_weight))
        object.__setattr__(self, "weights", tuple(t for t in self.inputs if t.is_weight))

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or `default`."""
        for key, value in self.attrs:
            if key == name:
                return value
        return default

    def __str__(self) -> str:
        operands = [str(t) for t in self.inputs] + [f"{k}={_literal(v)}" for k, v in self.attrs]
        return f"{self.name} = {self.kind}({', '.join(operands)}) -> [{' '.join(self.axes)}]"


@dataclass(frozen=True)
class Weight:
    """A stored tensor behind a weight of the notation.

    `path` is its name in the public implementation, `{i}` the layer: two weights with one path are one tensor;
    `{g r}` stands for an index of these axes: one tensor for each, which lacks them.
    `layout` is its stored shape as axes, `(h k)` a product, `+` before the dimension along which several weights
    of one path lie behind each other, `(g + r k)` where they do so for each g, a number a literal size; None for
    the layout that the kind implies.
    `published` is its name in published files, where that is another or they keep it apart from what lies in one tensor
    with it in the implementation, `{i-1}` the layer before; `published_layout` its shape there where that is another.
    `format` is how it is stored there, None for the model's dtype. `frozen` is a parameter that training leaves alone.
    """

    path: str
    layout: str | None = None
    buffer: bool = False
    published: str | None = None
    format: Format | None = None
    published_layout: str | None = None
    frozen: bool = False


@dataclass(frozen=True)
class Block:
    """Ops in order, the sizes of their axes, and where their weights are stored.

    `sizes` holds ints (or arrays or symbols) for the architecture's axes; the axes of a setting
    (batch, tokens, keys at hand) are bound when the block is read. `origins` names the config key of an axis.
    """

    name: str
    ops: tuple[Op, ...]
    sizes: Mapping[str, Size]
    stored: Mapping[str, Weight] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def weight(self, name: str) -> Weight:
        """Where a weight is stored; its own name in this block where nothing says more."""
        return self.stored.get(name) or Weight(f"{self.name}.{name}")

    def axes(self) -> set[str]:
        """Every axis of its ops, and every size that an attribute names."""
        named = {axis for op in self.ops for tensor in op.inputs for axis in tensor.axes}
        named |= {axis for op in self.ops for axis in op.axes}
        return named | {value for op in self.ops for _, value in op.attrs if isinstance(value, str)}

    def resize(self, **sizes: Size) -> Block:
        """The same ops with other sizes."""
        return replace(self, sizes={**self.sizes, **sizes})

    def __str__(self) -> str:
        lines, part = [], None
        for op in self.ops:
            if op.part != part:
                part = op.part
                lines.append(f"{part}:")
            lines.append(f"  {op}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Segment:
    """A block and the layers that it stands for: `layers` are their indices, () for what occurs once.

    `axes` gives axes of the block other values than the setting does: a number, the name of another axis of the
    setting (an encoder's n is the source's m), or such a name and how often it is taken, perhaps of what is left where
    it is divided, or several of these added. `absorbed` is the other way to run latent attention.
    """

    name: str
    block: Block
    layers: tuple[int, ...] = ()
    axes: Mapping[str, Place] = field(default_factory=dict)
    absorbed: Block | None = None
    passes: int = 1  # how often each layer runs, where a model goes through its layers several times
    turns: tuple[int, ...] = ()  # at which turns these are, where segments behind each other take turns

    @property
    def copies(self) -> int:
        """How often its layers' weights are stored."""
        return len(self.layers) or 1

    @property
    def times(self) -> int:
        """How often the block runs."""
        return self.copies * self.passes

    def __str__(self) -> str:
        often = f" × {self.times}" if self.times > 1 else ""
        return "\n".join([self.name + often, *(f"  {line}" for line in str(self.block).splitlines())])


@dataclass(frozen=True)
class Sight:
    """What a model sees or hears: images, or stretches of sound, each passing its towers by itself.

    `images` is how many there are where nothing is said. Where an image may have any size, `tokens` is how many one
    makes where nothing is said, `says` of what size that is, and `patches` how many the tower sees for each of them.
    `alone` is the positions of an image in a model without text, whose tokens these are. `sounds` where sounds are
    counted apart from images. `token` is the id of the tokens in whose places of a text stands what a tower makes,
    where the text model reads that as it reads words.
    """

    images: int = 0
    tokens: int | None = None
    patches: int = 1
    alone: int | None = None
    says: str = ""
    sounds: bool = False
    token: int | None = None


@dataclass(frozen=True)
class Model:
    """A model: its segments in order and what a report says of it. Printed, it is written out in the notation."""

    name: str
    segments: tuple[Segment, ...] = field(repr=False)
    family: str = ""
    cls: str = ""
    source: str = ""
    layers: int = 0
    width: int = 0
    depths: tuple[tuple[str, int], ...] = ()  # config keys that say how many layers there are, with what they say
    unsaid: tuple[str, ...] = ()  # keys of sizes that the file lacks: the values are those of its class
    positions: int | None = None  # rows of a learned position table: a hard limit on past + tokens
    trained: int | None = None  # the context the config claims: going beyond is worth a note
    dtype: str | None = None  # of the weights, where the config says
    deviation: float | None = None  # of the normal distribution that weights are drawn from, where the config says
    starts: tuple[tuple[str, float], ...] = ()  # the same of tensors whose names end so
    quantization: Mapping[str, Any] | None = None
    scheme: Scheme | None = None  # what `quantization` says, where it says something
    settings: tuple[str, ...] = ("past",)  # which of past, source, images can be asked of it
    source_tokens: int | None = None  # a default other than as many as the target's
    source_positions: int | None = None  # the longest source that the encoder's position table reaches
    source_stride: int = 1  # tokens or frames of the source for each position of the encoder
    source_extra: int = 0  # those that padding adds before they are divided
    sight: Sight | None = None  # where `images` is one of the settings
    ignored: tuple[str, ...] = ()  # keys of the config that nobody used
    allowed: tuple[str, ...] = ()  # those of them that might change a figure, and were let through
    notes: tuple[str, ...] = ()
    stretch: int = 1  # how many layers run again together, where whole layers do

    def __str__(self) -> str:
        return "\n\n".join([self.name, *map(str, self.segments)])


def carried(segments: Iterable[Segment]) -> frozenset[str]:
    """Names that some block reads and does not make before: what is carried from layer to layer."""
    found = {"x"}
    for segment in segments:
        made: set[str] = set()
        for op in segment.block.ops:
            found |= {operand.name for operand in op.activations} - made
            made.add(op.name)
    return frozenset(found)


def check_model(value: object) -> None:
    """Raises SettingError for what is no Model, with what makes one of it."""
    if not isinstance(value, Model):
        raise no_model(value)


def _literal(value: object) -> str:
    return value if isinstance(value, str) and _is_bare(value) else repr(value)


# plain string methods: compiling regular expressions would cost a short command more than reading its model does


def _is_axis(text: str) -> bool:
    return text.isidentifier() and text.isascii()


def _is_name(text: str) -> bool:
    return all(map(_is_axis, text.split(".")))


def _is_bare(text: str) -> bool:
    """True for a word that stands for itself as the value of an attribute."""
    return _is_name(text) and text not in ("True", "False", "None")


def _bracketed(text: str) -> tuple[str, str] | None:
    """`name[axes]` taken apart, or None."""
    name, bracket, rest = text.partition("[")
    name = name.strip()
    if not bracket or rest[-1:] != "]" or "[" in rest or "]" in rest[:-1] or not _is_name(name):
        return None
    return name, rest[:-1]


def _axes(text: str, line: str) -> Axes:
    names = tuple(text.split())
    for name in names:
        if not _is_axis(name):
            raise NotationError(f"{name!r} is no axis name in {line.strip()!r}; axes are words such as b, n, d")
    if len(set(names)) != len(names):
        raise NotationError(f"[{text}] names an axis twice in {line.strip()!r}")
    return names


def _split(args: str) -> list[str]:
    """Split at commas that stand outside brackets and quotes."""
    pieces, depth, quote, start = [], 0, "", 0
    for i, ch in enumerate(args):
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "'\"":
            quote = ch
        elif ch in "[({":
            depth += 1
        elif ch in "])}":
            depth -= 1
        elif ch == "," and not depth:
            pieces.append(args[start:i])
            start = i + 1
    return [*pieces, args[start:]]


def _value(text: str, line: str) -> Any:
    if _is_bare(text):
        return text
    from ast import literal_eval  # few lines hold a literal

    try:
        value = literal_eval(text)
        value = tuple(value) if isinstance(value, list) else value
        hash(value)  # ops are looked up
        return value
    except (ValueError, SyntaxError, TypeError):
        raise NotationError(f"{text!r} is no name, number or literal in {line.strip()!r}") from None


def _sides(line: str) -> tuple[str, str, str, str] | None:
    """(name, kind, arguments, axes) of a line, or None where it has another form."""
    call, arrow, axes = line.strip().rpartition("->")
    name, equals, call = call.partition("=")
    kind, parenthesis, arguments = call.strip().partition("(")
    name, kind, axes = name.strip(), kind.strip(), axes.strip()
    formed = arrow and equals and parenthesis and arguments[-1:] == ")" and axes[:1] == "[" and axes[-1:] == "]"
    if not formed or not _is_name(name) or not _is_axis(kind) or kind != kind.lower():
        return None
    return name, kind, arguments[:-1], axes[1:-1]


@lru_cache(maxsize=4096)
def parse(line: str, part: str = "other") -> Op:
    """One line of the notation as an Op. Raises NotationError."""
    sides = _sides(line)
    if sides is None:
        raise NotationError(f"{line.strip()!r} is no op; write name = kind(x[a b], W[b c]) -> [a c]")
    name, kind, arguments, axes = sides
    inputs: list[Tensor] = []
    attrs: list[tuple[str, Any]] = []
    for piece in filter(None, map(str.strip, _split(arguments))):
        key, equals, value = piece.partition("=")
        if tensor := _bracketed(piece):
            inputs.append(Tensor(tensor[0], _axes(tensor[1], line)))
        elif equals and _is_axis(key.strip()):
            attrs.append((key.strip(), _value(value.strip(), line)))
        else:
            raise NotationError(f"{piece!r} is neither x[axes] nor key=value in {line.strip()!r}")
    return Op(name, kind, tuple(inputs), _axes(axes, line), tuple(attrs), part)


def ops(part: str, *lines: str, **attrs: Any) -> list[Op]:
    """The ops of some lines, all of one part; `attrs` that are not None are added to each."""
    if len(lines) == 1 and not attrs:
        return [parse(lines[0], part)]
    return [*_written(lines, part, tuple(attrs.items()))]


@lru_cache(maxsize=4096)
def _written(lines: tuple[str, ...], part: str, attrs: Attrs) -> tuple[Op, ...]:
    given = tuple((k, v) for k, v in attrs if v is not None)
    made = (parse(line, part) for line in lines)
    return tuple(replace(op, attrs=op.attrs + given) if given else op for op in made)


def parse_lines(text: str) -> tuple[Op, ...]:
    """The ops of a text with part headings, blank lines and # comments. Raises NotationError."""
    part, found = "other", []
    for raw in text.splitlines():
        line = raw.split("#")[0].strip()
        if not line:
            continue
        if line.endswith(":") and _is_name(line[:-1]):
            part = line[:-1]
        else:
            found.append(parse(line, part))
    if not found:
        raise NotationError("the block has no ops; write one a line: name = kind(x[a b], W[b c]) -> [a c]")
    check_names(found)
    return tuple(found)


def check_names(found: Iterable[Op]) -> None:
    """Every use of a name has the axes of its last definition. Raises NotationError."""
    known: dict[str, Axes] = {}
    for op in found:
        for tensor in op.inputs:
            if known.setdefault(tensor.name, tensor.axes) != tensor.axes:
                was = Tensor(tensor.name, known[tensor.name])
                raise NotationError(f"{tensor} in {str(op)!r} was {was} before")
        known[op.name] = op.axes
