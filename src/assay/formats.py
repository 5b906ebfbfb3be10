"""How weights are stored: bits of an element, and the tensors that stand for one matrix in a quantized format.

A format is written as data, one piece a stored tensor, in terms of the matrix's outputs `o` and inputs `i`:

    weight:fp8[o i] weight_scale_inv:fp32[o/128 i/128]

A quotient counts the last part of a block as one, as files do.
"""

from __future__ import annotations

from functools import lru_cache

from assay.errors import NotationError
from assay.records import dataclass
from assay.size import Size, ceil_div, floor_div, product, remainder

BITS = {
    "fp64": 64,
    "fp32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "int8": 8,
    "fp6": 6,
    "fp4": 4,
    "int4": 4,
    "int2": 2,
}
_STORED = {**BITS, "uint8": 8, "int32": 32, "int64": 64}  # of pieces


def bytes_of(elements: Size, name: str) -> Size:
    """Bytes of so many elements; a last part of a byte counts as one."""
    bits = _STORED[name]
    if bits % 8 == 0:
        return elements * (bits // 8)
    return floor_div(elements, 8) * bits + ceil_div(remainder(elements, 8) * bits, 8)


@dataclass(frozen=True)
class Piece:
    """A stored tensor: how its name ends where a plain one says `weight`, its dtype, its dimensions."""

    suffix: str
    dtype: str
    dims: tuple[str, ...]

    def shape(self, outputs: Size, inputs: Size) -> tuple[Size, ...]:
        """Its shape for a matrix of so many outputs and inputs."""
        return tuple(_extent(dim, outputs, inputs) for dim in self.dims)

    def bytes(self, outputs: Size, inputs: Size) -> Size:
        """Bytes of it, for one matrix."""
        return bytes_of(product(self.shape(outputs, inputs)), self.dtype)


def _extent(dim: str, outputs: Size, inputs: Size) -> Size:
    """`o`, `i`, `oi` for their product, `i*4/32` for a packed dimension, or a number."""
    axes, extent, per = _parsed(dim)
    for axis in axes:
        extent = extent * (outputs if axis == "o" else inputs)
    return extent if per == 1 else ceil_div(extent, per)


@lru_cache(maxsize=256)
def _parsed(dim: str) -> tuple[str, Size, int]:
    """The axes of a dimension, what they are multiplied and divided by."""
    whole, _, per = dim.partition("/")
    axes, _, times = ("", "", dim) if dim.isdigit() else whole.partition("*")
    if axes.strip("oi"):
        raise NotationError(f"the dimension {dim!r} of a format has an axis that is neither o nor i")
    return axes, int(times or 1), int(per or 1)


@dataclass(frozen=True)
class Format:
    """A way to store a matrix. `says` is what a report calls it."""

    says: str
    pieces: tuple[Piece, ...]

    def bytes(self, outputs: Size, inputs: Size) -> Size:
        """Bytes of one matrix, its scales and tables with it."""
        return sum((piece.bytes(outputs, inputs) for piece in self.pieces), start=0)


@lru_cache(maxsize=256)
def make(says: str, text: str) -> Format:
    """The format that a text describes: `suffix:dtype[dims] suffix:dtype[dims] ...`."""
    pieces = []
    for piece in text.split("]")[:-1]:
        head, _, dims = piece.partition("[")
        suffix, _, kept = head.strip().partition(":")
        pieces.append(Piece(suffix, kept, tuple(dims.split())))
    return Format(says, tuple(pieces))


@dataclass(frozen=True)
class Rule:
    """Modules whose names fit a regular expression, and the format of their matrices: None leaves them as they are.

    A rule of one `layer` has `{i}` in place of its number. Names lack what wraps the text model: no leading `model.`.
    """

    names: str
    format: Format | None = None
    layer: int | None = None
    numbered: bool = False  # the expression itself may tell layers apart by their numbers

    def fits(self, module: str, layer: int) -> bool:
        """True for a module, named with {i} for its layer and {e} for an expert."""
        named = module if self.layer is not None else module.replace("{i}", str(layer)).replace("{e}", "0")
        return _fits(self.names, named)


@lru_cache(maxsize=1 << 14)
def _fits(names: str, module: str) -> bool:
    import re

    return re.fullmatch(names, module) is not None


@dataclass(frozen=True)
class Scheme:
    """Which matrices of a model are stored in which format: the first rule that fits, else the default.

    `parts` are the parts of a model that hold such matrices, `buffers` is the dtype of stored buffers where it is not
    that of everything else. `total` is the bytes of all tensors, where headers of the files themselves say so and not
    a rule, and `elements` is how many they hold. `unknown` says why no bytes can be told, where no format is known.
    """

    says: str
    rules: tuple[Rule, ...] = ()
    default: Format | None = None
    parts: tuple[str, ...] = ("attention", "mixer", "mlp", "experts", "tower")
    buffers: str | None = None
    total: int | None = None
    elements: int | None = None
    unknown: str = ""
