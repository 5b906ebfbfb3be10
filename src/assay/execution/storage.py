"""Where weights lie: one parameter for each stored tensor, by its published name, seen along the axes of the notation.

A weight of the notation is a view of what is stored: a part of it along one dimension, its dimensions taken apart,
put in another order and together again. What is not needed of that is not done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Protocol

import torch
from torch import Tensor, nn

from assay.errors import BuildError
from assay.readings.tensors import Entry, dimensions, tensors
from assay.records import dataclass, replace
from assay.spec import Axes, Block, Model, Segment, Weight
from assay.spec import Tensor as Operand

Getter = Callable[[], Tensor]
Change = Callable[[Tensor], Tensor]

_EACH = re.compile(r"\{(?!i(?:-1)?\})([^{}]+)\}")  # axes in a path: one tensor for each index of them


@dataclass(frozen=True)
class Place:
    """A stored dimension of one weight: its axes; where several weights share it, what is before the part that is
    the weight's own, how long they are together, where it begins and how long it is.
    """

    axes: Axes
    before: Axes = ()
    whole: int = 0
    start: int = 0
    length: int = 0

    @property
    def shared(self) -> bool:
        """True where it holds more than this weight."""
        return self.whole != self.length


def names(entry: Entry) -> Iterator[tuple[str, int | None]]:
    """Every stored tensor of an entry: its name, and the layer it belongs to."""
    for layer in entry.layers or (None,):
        path = entry.path if layer is None else entry.path.replace("{i}", str(layer))
        copies = entry.times // max(1, len(entry.layers))
        for index in range(copies):
            yield _EACH.sub(str(index), path), layer


class Tree(nn.Module):  # type: ignore[misc]
    """Modules that do nothing but name what is stored: `model.layers.0.self_attn.q_proj.weight`."""

    def hold(self, name: str, tensor: Tensor, *, parameter: bool, frozen: bool = False) -> None:
        """Keep a tensor under a dotted name."""
        owner, leaf = self.owner(name)
        if parameter:
            owner.register_parameter(leaf, nn.Parameter(tensor, requires_grad=not frozen))
        else:
            owner.register_buffer(leaf, tensor)

    def owner(self, name: str) -> tuple[nn.Module, str]:
        """The module that holds, or is to hold, what has this name; and its name there."""
        *path, leaf = name.split(".")
        owner: nn.Module = self
        for part in path:
            child = owner._modules.get(part)
            if child is None:
                child = Tree()
                owner._modules[part] = child  # add_module would refuse names that nn.Module has itself: type, half
            owner = child
        return owner, leaf

    def getter(self, name: str) -> Getter:
        """What is stored under a name, at the time of asking: a parameter may be replaced."""
        owner, leaf = self.owner(name)
        kept = owner._parameters if leaf in owner._parameters else owner._buffers

        def get() -> Tensor:
            return kept[leaf]

        return get


class Shelf(Protocol):
    """What holds tensors by their names: a model, or files."""

    def getter(self, name: str) -> Getter:
        """How to get a tensor when it is asked for."""


def allocate(root: Tree, model: Model, dtype: torch.dtype, device: torch.device) -> None:
    """An empty tensor for each that the description stores; tables of indices hold integers."""
    whole = {
        segment.block.weight(weight.name).path
        for segment in model.segments
        for op in segment.block.ops
        if op.kind == "gather" and op.attr("index")
        for weight in op.weights
    }
    for entry in tensors(model):
        shape = tuple(int(size) for size in entry.shape)
        kept = torch.int64 if entry.path in whole else dtype
        for name, _ in names(entry):
            root.hold(
                name, torch.empty(shape, dtype=kept, device=device), parameter=not entry.buffer, frozen=entry.frozen
            )


class Weights:
    """The weights of a block as they are stored: which of them share a tensor, and in which order."""

    def __init__(self, segment: Segment, block: Block, sizes: dict[str, int]) -> None:
        self.segment, self.block, self.sizes = segment, block, sizes
        self.pieces: dict[str, list[tuple[str, int]]] = {}
        self.dims: dict[str, tuple[str, ...]] = {}
        for op in block.ops:
            for weight in op.weights:
                if weight.name in self.dims:
                    continue
                where = block.weight(weight.name)
                self.dims[weight.name] = dims = dimensions(op, weight, where.layout)
                for dim in dims:
                    if "+" in dim:
                        _, own = _taken_apart(dim)
                        self.pieces.setdefault(where.path, []).append((weight.name, self.extent(own)))

    def extent(self, axes: Axes) -> int:
        """How long a dimension of some axes is; a number stands for itself."""
        return prod(int(axis) if axis.isdigit() else self.sizes[axis] for axis in axes)

    def places(self, weight: str) -> list[Place]:
        """The dimensions of a weight's stored tensor."""
        made = []
        pieces = self.pieces.get(self.block.weight(weight).path, [])
        for dim in self.dims[weight]:
            before, own = _taken_apart(dim)
            if "+" not in dim:
                made.append(Place(own))
                continue
            start = 0
            for name, length in pieces:
                if name == weight:
                    break
                start += length
            made.append(Place(own, before, sum(length for _, length in pieces), start, self.extent(own)))
        return made

    def each(self, weight: str) -> Axes:
        """The axes for each index of which there is a tensor of its own."""
        return tuple(axis for found in _EACH.findall(self.block.weight(weight).path) for axis in found.split())

    def stored(self, root: Shelf, weight: str, layer: int | None) -> Getter:
        """What holds a weight; where there is a tensor for each head or expert, all of them behind each other."""
        parts = [root.getter(name) for name in self.names(weight, layer)]
        return _stack(parts) if self.each(weight) else parts[0]

    def names(self, weight: str, layer: int | None) -> list[str]:
        """What the tensors are called that hold a weight."""
        path = numbered(self.block.weight(weight).path, layer)
        each = self.each(weight)
        return [_EACH.sub(str(j), path) for j in range(self.extent(each))] if each else [path]

    def shapes(self, weight: str, layer: int | None) -> list[tuple[str, tuple[int, ...]]]:
        """The same with the shape of each."""
        each = self.each(weight)
        kept = [place for place in self.places(weight) if not each or not set(place.axes) <= set(each)]
        shape = tuple(self.extent(p.before) * (p.whole if p.before or p.shared else self.extent(p.axes)) for p in kept)
        return [(name, shape) for name in self.names(weight, layer)]

    def published(self) -> Weights:
        """The same weights as published files hold them."""
        stored: dict[str, Weight] = {}
        for op in self.block.ops:
            for weight in op.weights:
                where = self.block.weight(weight.name)
                path = where.published or where.path
                each = {axis for found in _EACH.findall(path) for axis in found.split()}
                dims = dimensions(op, weight, where.published_layout or where.layout)
                layout = " ".join(dim for dim in dims if dim not in each)
                stored.setdefault(weight.name, Weight(path, layout, where.buffer))
        return Weights(self.segment, replace(self.block, stored=stored), self.sizes)

    def view(self, root: Shelf, weight: Operand, layer: int | None, groups: Sequence[Axes]) -> Getter:
        """A weight with one dimension for each group of axes, made of what is stored whenever it is asked for."""
        each = self.each(weight.name)
        stored = self.stored(root, weight.name, layer)
        places = ([Place(each)] if each else []) + [
            place for place in self.places(weight.name) if not each or not set(place.axes) <= set(each)
        ]
        changes = _changes(places, [tuple(group) for group in groups], self.extent, str(weight))
        if not changes:
            return stored
        if len(changes) == 1:
            (change,) = changes
            return lambda: change(stored())

        def get() -> Tensor:
            tensor = stored()
            for change in changes:
                tensor = change(tensor)
            return tensor

        return get


def numbered(path: str, layer: int | None) -> str:
    """A path with the number of its layer, or of the one before."""
    return path if layer is None else path.replace("{i}", str(layer)).replace("{i-1}", str(layer - 1))


def _stack(parts: list[Getter]) -> Getter:
    return lambda: torch.stack([part() for part in parts])


def _taken_apart(dim: str) -> tuple[Axes, Axes]:
    """The axes of a stored dimension: what is before a +, and the weight's own."""
    before, plus, own = dim.replace("(", " ").replace(")", " ").partition("+")
    return (tuple(before.split()), tuple(own.split())) if plus else ((), tuple(before.split()))


def _changes(places: list[Place], groups: list[Axes], extent: Callable[[Axes], int], what: str) -> list[Change]:
    """How to come from what is stored to the groups asked for, in as few steps as it takes."""
    changes: list[Change] = []
    held: list[Axes] = []
    for place in places:
        at = len(held)
        if place.before:
            changes.append(_unflatten(at, (extent(place.before), place.whole)))
            held.append(place.before)
            at += 1
        if place.shared or place.before:
            changes.append(_narrow(at, place.start, place.length))
        held.append(place.axes)
    if held == groups:
        return changes
    used = {axis for axes in groups for axis in axes}
    held = [tuple(a for a in axes if a in used or not (a.isdigit() or extent((a,)) == 1)) for axes in held]
    if sum(map(len, held)) != sum(map(len, groups)):
        error = BuildError(f"{what} is stored along {held}, which is not what it is used along: {groups}")
        error.why = "a table is stored by rows and columns and used by positions, and how these follow is not described"
        raise error
    filled = [axes for axes in held if axes]
    if filled == groups:
        return [*changes, _reshape([extent(axes) for axes in groups])]
    if len(filled) == len(held) and sorted(filled) == sorted(groups):
        return [*changes, _permute([held.index(group) for group in groups])]
    flat = [axis for axes in held for axis in axes]
    wanted = [axis for group in groups for axis in group]
    changes.append(_reshape([extent((axis,)) for axis in flat]))
    if flat != wanted:
        changes.append(_permute([flat.index(axis) for axis in wanted]))
    if [(axis,) for axis in wanted] != groups:
        changes.append(_reshape([extent(group) for group in groups]))
    return changes


def _unflatten(dim: int, sizes: tuple[int, ...]) -> Change:
    return lambda tensor: tensor.unflatten(dim, sizes)


def _narrow(dim: int, start: int, length: int) -> Change:
    return lambda tensor: tensor.narrow(dim, start, length)


def _reshape(sizes: list[int]) -> Change:
    return lambda tensor: tensor.reshape(sizes)


def _permute(order: list[int]) -> Change:
    return lambda tensor: tensor.permute(order)
