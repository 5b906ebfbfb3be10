"""The ledger: every stored tensor with its path, shape, and how often it occurs."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

from assay.errors import NotationError
from assay.formats import Format
from assay.kinds import Extent, kind_of, matrix_axes
from assay.kinds.base import dimensions_of
from assay.readings.binding import as_model, bind, placed
from assay.records import dataclass, replace
from assay.size import Size, product
from assay.spec import Axes, Block, Model, Op, Segment, Tensor, Weight

# the axes of a setting: any value will do, weights do not depend on it
_ANY = {"b": 1, "n": 1, "t": 1, "past": 0, "m": 1, "M": 1}

_EACH = re.compile(r"\{(?!i(?:-1)?\})([^{}]+)\}")  # axes in a path: one tensor for each index of them


@dataclass(frozen=True)
class Stored:
    """A tensor of published files before any quantization: its name, `{i}` and `{e}` as in an entry's path, and shape.

    `{i-1}` is the layer before.

    `times` is how often it occurs in a layer; `matrices` (times outputs x inputs) is how many matrices one holds,
    (0, 0, 0) where it is none. `format` is what one matrix is stored in, None for the dtype of everything else.
    """

    path: str
    shape: tuple[Size, ...]
    times: Size = 1
    matrices: tuple[Size, Size, Size] = (0, 0, 0)
    format: Format | None = None
    along: int = 0  # the dimension in which several lie behind each other, where they do

    @property
    def elements(self) -> Size:
        """Of one occurrence."""
        return product(self.shape)


@dataclass(frozen=True)
class Entry:
    """A stored tensor: `path` with `{i}` for the layer and `{g r}` for each index of these axes, its shape,
    which weights of the notation lie in it,
    how often it occurs, the layers, and the part of the model it belongs to.
    `checkpoint` is how published files keep it: as it is, or in several tensors. `frozen` is one that is not trained.
    """

    path: str
    shape: tuple[Size, ...]
    dims: tuple[str, ...]
    weights: tuple[str, ...]
    times: int
    layers: tuple[int, ...]
    part: str
    buffer: bool = False
    checkpoint: tuple[Stored, ...] = ()
    frozen: bool = False

    @property
    def elements(self) -> Size:
        """Of one occurrence."""
        return product(self.shape)


def of_layer(path: str, layer: int | str) -> str:
    """A path with the number of the layer in it."""
    return path.replace("{i}", str(layer)).replace("{i-1}", str(int(layer) - 1) if layer != "" else "")


def tensors(model: Model | Block, **sizes: object) -> tuple[Entry, ...]:
    """Every stored tensor of a model, in the order of first use, shared ones once.

    A block's too, with `sizes` for axes that it leaves open. Raises SizeError, SettingError.
    """
    whole = as_model(model, sizes)
    made: dict[tuple[str, str], Entry] = {}
    seen: set[str] = set()
    for segment in whole.segments:
        extent = bind(segment.block, placed(segment, _ANY))
        found: dict[str, Entry] = {}
        for op in segment.block.ops:
            for weight in op.weights:
                _add(found, segment, op, weight, extent)
        for path, entry in found.items():
            if "{i}" not in path:
                if path in seen:
                    continue
                seen.add(path)
            made[segment.name + "/" + str(segment.layers), path] = entry
    return tuple(_joined(list(made.values())))


def _joined(entries: list[Entry]) -> list[Entry]:
    """The same with what published files pack of several entries under the first of them, none under the others."""
    first: dict[tuple[str, tuple[int, ...]], int] = {}
    for index, entry in enumerate(entries):
        for stored in entry.checkpoint:
            at = first.setdefault((stored.path, entry.layers), index)
            if at != index:
                holder = entries[at]
                pieces = tuple(_with(one, stored) if one.path == stored.path else one for one in holder.checkpoint)
                entries[at] = replace(holder, checkpoint=pieces)
                left = tuple(one for one in entries[index].checkpoint if one.path != stored.path)
                entries[index] = replace(entries[index], checkpoint=left)
    return entries


def _with(one: Stored, other: Stored) -> Stored:
    """Rows of two tensors behind each other in one, and so in its matrix."""
    (count, outputs, inputs), (_, more, _) = one.matrices, other.matrices
    shape = list(one.shape)
    shape[one.along] = shape[one.along] + other.shape[one.along]
    return replace(one, shape=tuple(shape), matrices=(count, outputs + more, inputs))


class Place:
    """Where a weight lies, before its axes have sizes: stored dimensions, `each` of which axes there is a tensor for,
    dimensions in published files, and the axes of the matrices that one of these holds (how many, outputs, inputs).
    """

    __slots__ = ("dims", "each", "matrices", "published")

    def __init__(self, op: Op, weight: Tensor, where: Weight) -> None:
        self.dims = dimensions(op, weight, where.layout)
        self.each = _each(where.path)
        each = _each(where.published or where.path)
        layout = where.published_layout or where.layout
        self.published = (each, tuple(dim for dim in dimensions(op, weight, layout) if dim not in each))
        axes = matrix_axes(op, weight)
        self.matrices: tuple[Axes, Axes, Axes] | None = None
        if axes is not None:
            outputs, inputs = (tuple(axis for axis in side if axis not in each) for side in axes)
            several = tuple(a for a in weight.axes if a not in (*axes[0], *axes[1], *each))
            self.matrices = several, outputs, inputs


def _place(op: Op, weight: Tensor, where: Weight) -> Place:
    """The place of a weight, found once for all layers that are alike but for sizes."""
    key = op, weight.name, where.path, where.layout, where.published, where.published_layout
    place = _PLACES.get(key)
    if place is None:
        if len(_PLACES) >= 4096:
            _PLACES.clear()
        place = _PLACES[key] = Place(op, weight, where)
    return place


_PLACES: dict[tuple[Op, str, str, str | None, str | None, str | None], Place] = {}


def _add(found: dict[str, Entry], segment: Segment, op: Op, weight: Tensor, extent: Extent) -> None:
    where = segment.block.weight(weight.name)
    place = _place(op, weight, where)
    dims = place.dims
    shape = _shape(dims, extent)
    known = found.get(where.path)
    if known is not None:
        if weight.name in known.weights:
            return
        shape = _behind(known, dims, shape)
        dims, weights = known.dims, (*known.weights, weight.name)
    else:
        weights = (weight.name,)
    layered = "{i}" in where.path
    each = extent(place.each)
    found[where.path] = Entry(
        where.path,
        shape,
        dims,
        weights,
        (segment.copies if layered else 1) * each,
        segment.layers if layered else (),
        known.part if known is not None else op.part.partition(".")[0],
        where.buffer,
        _published(known.checkpoint if known is not None else (), place, where, extent),
        where.frozen,
    )


def _published(known: tuple[Stored, ...], place: Place, where: Weight, extent: Extent) -> tuple[Stored, ...]:
    """What published files keep of an entry, with one weight more: in a tensor of its own, or behind another."""
    path = where.published or where.path
    each, dims = place.published
    matrices: tuple[Size, Size, Size] = (0, 0, 0)
    if place.matrices is not None:
        several, outputs, inputs = place.matrices
        matrices = (extent(several), extent(outputs), extent(inputs))
    along = next((i for i, dim in enumerate(dims) if "+" in dim), 0)
    made = Stored(path, _shape(dims, extent), extent(each), matrices, where.format, along)
    for index, other in enumerate(known):
        if other.path == path:  # behind each other in one tensor, and in one matrix with more outputs
            count, outputs, inputs = other.matrices
            marked = [i for i, dim in enumerate(dims) if "+" in dim]
            shape = tuple(
                a + b if i in marked else a for i, (a, b) in enumerate(zip(other.shape, made.shape, strict=True))
            )
            together = replace(other, shape=shape, matrices=(count, outputs + matrices[1], inputs))
            return (*known[:index], together, *known[index + 1 :])
    return (*known, made)


def _behind(known: Entry, dims: tuple[str, ...], shape: tuple[Size, ...]) -> tuple[Size, ...]:
    """The shape of two weights of one path, the second behind the first along the dimension marked +."""
    marked = [i for i, dim in enumerate(dims) if "+" in dim]
    if len(marked) != 1 or len(shape) != len(known.shape):
        raise NotationError(
            f"{known.path} holds several weights; mark with + the dimension they lie behind each other in"
        )
    return tuple(a + b if i == marked[0] else a for i, (a, b) in enumerate(zip(known.shape, shape, strict=True)))


def dimensions(op: Op, weight: Tensor, layout: str | None) -> tuple[str, ...]:
    """The stored dimensions of a weight as the layout says, else as its kind implies."""
    return kind_of(op).layout(op, weight.axes) if layout is None else dimensions_of(layout)


@lru_cache(maxsize=4096)
def _each(path: str) -> tuple[str, ...]:
    """The axes that a path has an index of."""
    return tuple(" ".join(_EACH.findall(path)).split())


def _shape(dims: tuple[str, ...], extent: Extent) -> tuple[Size, ...]:
    """The sizes of stored dimensions."""
    shape = []
    for dim in dims:
        number, axes = _factors(dim)
        shape.append(number * extent(axes))
    return tuple(shape)


@lru_cache(maxsize=4096)
def _factors(dim: str) -> tuple[int, Axes]:
    """The numbers in a stored dimension, multiplied, and its axes."""
    names = dim.replace("+", " ").strip(" ()").split()
    numbers = [int(name) for name in names if name.isdigit()]
    return prod(numbers), tuple(name for name in names if not name.isdigit())
