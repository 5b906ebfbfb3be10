"""Towers: what a model sees or hears, run by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from assay.errors import BuildError
from assay.readings.setting import Setting, setting
from assay.spec import Axes, Model, Segment

BATCHES = ("images", "sounds")  # what the batch of a tower is
OWN = ("x", "at")  # what a tower's first block may read besides


class Tower:
    """The segments of a tower; its layers where they run, else why they do not."""

    def __init__(self, batch: str) -> None:
        self.batch = batch
        self.segments: list[Segment] = []
        self.layers: list[Any] = []
        self.refused: str | None = None
        self.why: str | None = None  # the reason alone

    def setting(self, model: Model, batch: int, positions: int) -> Setting:
        """One image or sound for each of a batch; of any size where the tower takes that."""
        asked: dict[str, Any] = {self.batch: 1}
        if model.sight is not None and model.sight.tokens is not None:
            asked["image_tokens"] = positions // model.sight.patches
        return setting(model, batch=batch, tokens=1, **asked)


def towers(model: Model) -> dict[str, Tower]:
    """The towers of a model by the name of what they read, such as pixels."""
    found: dict[str, Tower] = {}
    made: set[str] = set()
    tower: Tower | None = None
    anew: list[Segment] = []  # such as learned queries, which are of the tower that reads them
    for segment in model.segments:
        batch = segment.axes.get("b")
        if batch not in BATCHES:
            continue
        begins, here = tower is not None, set[str]()
        for op in segment.block.ops:
            for operand in op.activations:
                if operand.name in here:
                    continue
                begins = begins and operand.name in OWN and operand.name not in made
                if operand.name not in made and operand.name not in OWN and operand.name not in found:
                    tower = found[operand.name] = Tower(str(batch))
            here.add(op.name)
        made |= here
        anew.append(segment)
        if tower is not None and not begins:
            tower.segments += anew
            anew = []
    if tower is not None:
        tower.segments += anew
    return {name: tower for name, tower in found.items() if tower.segments}


def positions_of(segment: Segment, axis: str, length: int) -> int:
    """How many positions a tower of any size makes of what is so long: a stride leaves a part of them."""
    said = segment.axes.get(axis)
    return length // said[1] if isinstance(said, tuple) and isinstance(said[1], int) else length


def places(model: Model, tokens: Tensor, name: str, seen: Tensor) -> Tensor:
    """Where in a text what a tower made stands, [b n]. Raises BuildError where there are not as many places."""
    where = tokens == (None if model.sight is None else model.sight.token)
    count, (many, each) = seen.shape[0] * seen.shape[1], seen.shape[:2]
    if not tokens.is_meta and int(where.sum()) != count:
        token = None if model.sight is None else model.sight.token
        raise BuildError(
            f"{int(where.sum())} tokens are {token}, which {name} stand in the places of; "
            f"there are to be {count}, {each} for each of {many}"
        )
    return where


def cut(seen: Tensor, axes: Axes, sizes: Mapping[str, int]) -> Tensor:
    """Images `[b i rows columns]` as patches `[b p i y z]`, row by row; what is in patches already as it is.

    Raises BuildError for anything else.
    """
    if seen.dim() == len(axes):
        return seen
    if seen.dim() != 4 or axes[2:] != ("i", "y", "z"):
        raise BuildError(f"an image has the axes {' '.join(axes)}; {seen.dim()} are given")
    high, wide = sizes["y"], sizes["z"]
    rows, columns = seen.shape[2] // high, seen.shape[3] // wide
    whole = seen[:, :, : rows * high, : columns * wide]
    return whole.unflatten(3, (columns, wide)).unflatten(2, (rows, high)).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
