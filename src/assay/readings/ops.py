"""Op by op: what each computes, its shapes, parameters, FLOPs, and the bytes it moves."""

from __future__ import annotations

from collections.abc import Mapping

from assay.kinds import Extent, Visible, kind_of, matrix_axes
from assay.readings.binding import bind, identity, placed
from assay.readings.conventions import Convention
from assay.readings.conventions import convention as convention_of
from assay.readings.dtypes import bytes_of
from assay.readings.setting import Setting
from assay.readings.tensors import tensors
from assay.readings.words import word
from assay.records import dataclass
from assay.size import Size, ceil_div, minimum
from assay.spec import Block, Model, Op, Segment


@dataclass(frozen=True)
class Operand:
    """A tensor of an op: its axes and their sizes."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[Size, ...]
    weight: bool = False


@dataclass(frozen=True)
class OpRow:
    """One run of an op in one layer.

    `parameters` are those that no earlier op holds, of this layer alone; `shared` says that an earlier op holds some.
    Bytes are *modelled*: each op reads its operands once and writes its result once, nothing is fused, and a view
    moves nothing. Of a table the rows looked up are read, of routed experts those that can be chosen.
    """

    op: Op
    inputs: tuple[Operand, ...]
    output: Operand
    parameters: Size
    buffers: Size
    shared: bool
    flops: Size
    weight_bytes: Size
    read_bytes: Size
    written_bytes: Size

    @property
    def moved(self) -> Size:
        """All bytes read and written."""
        return self.weight_bytes + self.read_bytes + self.written_bytes

    @property
    def intensity(self) -> float | None:
        """FLOPs for each byte moved; None where nothing moves."""
        return self.flops / self.moved if self.moved else None


@dataclass(frozen=True)
class Listing:
    """The ops of one distinct block: how often it runs, its layers, the sizes of its axes and what these are called.

    `parameters` and `flops` are of all its layers together.
    """

    name: str
    layers: tuple[int, ...]
    times: int
    sizes: Mapping[str, Size]
    rows: tuple[OpRow, ...]
    parameters: Size
    flops: Size
    says: Mapping[str, str]


def list_ops(model: Model, asked: Setting) -> tuple[Listing, ...]:
    """Every op of every distinct block, in order; FLOPs under the setting's convention."""
    prices = convention_of(asked.convention)
    seen: set[str] = set()
    average = average_bytes(model) if asked.quantized else None
    return tuple(_listing(segment, asked, prices, seen, average) for segment in model.segments)


def _listing(
    segment: Segment, asked: Setting, prices: Convention, seen: set[str], average: tuple[int, int] | None
) -> Listing:
    block = segment.absorbed if segment.absorbed is not None and asked.latent == "absorbed" else segment.block
    extent = bind(block, placed(segment, asked.sizes()))
    spent = Visible(extent.sizes).shared_with(extent) if prices.visible else extent
    kept = {op.name for op in block.ops if kind_of(op).storage == "state"}  # read back in the cache's dtype
    here: set[str] = set()
    rows = []
    parameters: Size = 0
    for op in block.ops:
        new, buffers, shared = own_weights(segment, block, op, extent, (here, seen))
        parameters = parameters + sum((elements * times for elements, times in new), start=0)
        held = sum((elements for elements, _ in new), start=0)
        flops = prices.flops(kind_of(op).work(op, spent))
        weighs = weighed(op, block, extent, asked, average)
        rows.append(_row(op, extent, asked, kept, (held, buffers, shared), flops, weighs))
    used = {axis for op in block.ops for axis in (*op.axes, *(a for t in op.inputs for a in t.axes))}
    return Listing(
        segment.name,
        segment.layers,
        segment.times,
        {axis: size for axis, size in extent.sizes.items() if axis in used},
        tuple(rows),
        parameters,
        segment.times * sum((row.flops for row in rows), start=0),
        {axis: said for axis in extent.sizes if axis in used and (said := word(axis, block))},
    )


def own_weights(
    segment: Segment, block: Block, op: Op, extent: Extent, held: tuple[set[str], set[str]]
) -> tuple[list[tuple[Size, int]], Size, bool]:
    """The op's weights that no earlier op holds, each with how many layers have one of their own; buffers; shared."""
    here, seen = held
    new: list[tuple[Size, int]] = []
    buffers: Size = 0
    shared = False
    for weight in op.weights:
        where = block.weight(weight.name)
        layered = "{i}" in where.path
        key, known = identity(weight.name, where), here if layered else seen
        if key in known:
            shared = True
            continue
        known.add(key)
        elements = extent(weight.axes)
        if where.buffer:
            buffers = buffers + elements
        else:
            new.append((elements, segment.copies if layered else 1))
    return new, buffers, shared


def _row(
    op: Op,
    extent: Extent,
    asked: Setting,
    kept: set[str],
    held: tuple[Size, Size, bool],
    flops: Size,
    weighs: Size,
) -> OpRow:
    kind = kind_of(op)
    passed = activation_dtype(asked)
    reads = kind.reads(op, extent)
    cached = minimum(reads, sum((extent(t.axes) for t in op.activations if t.name in kept), start=0))
    if kind.storage == "state":
        cached = 0
    return OpRow(
        op,
        tuple(Operand(t.name, t.axes, tuple(extent.sizes[a] for a in t.axes), t.is_weight) for t in op.inputs),
        Operand(op.name, op.axes, tuple(extent.sizes[a] for a in op.axes)),
        *held,
        flops,
        weighs,
        bytes_of(reads - cached, passed) + bytes_of(cached, asked.cache),
        bytes_of(kind.writes(op, extent), asked.cache if kind.storage == "state" else passed),
    )


def average_bytes(model: Model) -> tuple[int, int] | None:
    """Bytes and elements of all weights, where headers of files say what all of them weigh and no rule says more."""
    total = model.scheme.total if model.scheme is not None else None
    if total is None:
        return None
    return total, sum(entry.times * entry.elements for entry in tensors(model))


def weighed(op: Op, block: Block, extent: Extent, asked: Setting, average: tuple[int, int] | None = None) -> Size:
    """Bytes of weights that one run reads: of a quantized matrix, its share of what the format keeps."""
    read = kind_of(op).weighs(op, extent)
    if average is not None:
        return ceil_div(read * average[0], average[1])
    formats = [block.weight(weight.name).format for weight in op.weights] if asked.quantized else []
    if not any(formats):
        return bytes_of(read, asked.weights)
    held = [extent(weight.axes) for weight in op.weights]
    stored: Size = 0
    for weight, kept, elements in zip(op.weights, formats, held, strict=True):
        axes = matrix_axes(op, weight)
        if kept is None or axes is None:
            stored = stored + bytes_of(elements, asked.weights)
            continue
        several = extent(axis for axis in weight.axes if axis not in (*axes[0], *axes[1]))
        stored = stored + several * kept.bytes(extent(axes[0]), extent(axes[1]))
    return ceil_div(read * stored, sum(held))


def activation_dtype(asked: Setting) -> str:
    """What activations are computed in: the weights' dtype, bf16 where that is no format to compute in."""
    return asked.weights if asked.weights in ("bf16", "fp16", "fp32", "fp64") else "bf16"
