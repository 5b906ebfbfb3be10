"""What a layer reads that no op makes, and how it reads positions that each text has of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from assay.errors import BuildError
from assay.execution.sites import Call
from assay.records import replace
from assay.spec import Segment
from assay.spec import Tensor as Operand

if TYPE_CHECKING:
    from assay.execution.module import Layer


def given(call: Call, name: str, axes: tuple[str, ...], layer: Layer) -> Tensor:
    """What no op makes: ids, positions, what the caller gave. Raises BuildError."""
    found = call.given.get(name)
    if found is not None:
        return found
    if name == "at":
        count = layer.weights.sizes.get(axes[0]) if len(axes) == 1 else None
        if count is not None and count != call.tokens:  # of an image, before or behind learned tokens
            return torch.arange(count, device=call.device)
        return call.distances() if axes == ("n", "c") else call.where()
    if name == "distance":  # from each query to each key
        return -call.distances()
    if name == "type":
        return torch.zeros_like(call.given["ids"])
    raise BuildError(f"{layer.where()} reads {name}[{' '.join(axes)}]: give it by that name")


def per_text(segment: Segment) -> Segment:
    """A segment whose positions at[n] are at[b n], and with them all that is made of them."""
    spread: set[str] = {"at"}
    made = []
    for op in segment.block.ops:
        inputs = tuple(
            Operand(t.name, ("b", *t.axes)) if t.name in spread and (t.name != "at" or t.axes == ("n",)) else t
            for t in op.inputs
        )
        wider = inputs != op.inputs and "b" not in op.axes
        if op.name != "at":
            (spread.add if wider else spread.discard)(op.name)
        made.append(replace(op, inputs=inputs, axes=("b", *op.axes) if wider else op.axes))
    ops = tuple(made)
    return segment if ops == segment.block.ops else replace(segment, block=replace(segment.block, ops=ops))
