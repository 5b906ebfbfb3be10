"""Weights that layers would have if they made keys and values themselves: files written in training may hold them."""

from __future__ import annotations

from collections.abc import Iterator

from assay.kinds import kind_of
from assay.spec import Block, Model


def lent(model: Model) -> Iterator[tuple[str, int]]:
    """Published paths, `{i}` for the layer, and the layer: what makes keys elsewhere, where another's are used."""
    makers: dict[str, str] = {}  # by its path in the public implementation, the published one
    for segment in model.segments:
        for weight in _kept_of(segment.block):
            where = segment.block.weight(weight)
            if "{i}" in where.path:
                makers[where.path] = where.published or where.path
    for segment in model.segments:
        if any(kind_of(op).borrows for op in segment.block.ops):
            own = {segment.block.weight(w.name).path for op in segment.block.ops for w in op.weights}
            for path, published in makers.items():
                if path not in own:
                    for layer in segment.layers:
                        yield published, layer


def _kept_of(block: Block) -> set[str]:
    """Every weight before ops that keep something for the next pass: of what these read, of what that was made of."""
    behind: dict[str, set[str]] = {}
    found: set[str] = set()
    for op in block.ops:
        before = {w.name for w in op.weights}
        for tensor in op.activations:
            before |= behind.get(tensor.name, set())
        behind[op.name] = before
        if kind_of(op).state is not None:
            found |= before
    return found
