"""Layers that keep whole numbers beside their weights, and the range of each activation (Kim et al. 2021, I-BERT).

None of them is used where the model runs on real numbers; checkpoints store them.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.blocks.encoders import Tables
from assay.blocks.stacks import Layer
from assay.records import dataclass
from assay.spec import Op, ops

BOUNDS = ("Low", "High", "Step")  # of a range


def rounded(made: Sequence[Op]) -> list[Op]:
    """Of each matrix and bias its whole numbers, and of a matrix the step of each output; of a table one step."""
    found = []
    for op in made:
        if op.kind not in ("linear", "gather"):
            continue
        for weight in op.weights:
            axes = " ".join(weight.axes)
            found.append((op.part, f"{weight.name}_whole", axes))
            if op.kind == "gather":
                found.append((op.part, f"{weight.name}_step", ""))
            elif weight is op.weights[0]:
                kept = [axis for axis in weight.axes if axis in op.axes]
                found.append((op.part, f"{weight.name}_step", " ".join(kept)))
    return [op for part, name, axes in found for op in _idle(part, name, axes)]


def ranged(ranges: int, shifts: int, at: str = "") -> list[Op]:
    """The bounds and the step of so many activations, the shift of so many norms; `at` tells places apart."""
    names = [f"{bound}{at}{index}" for index in range(ranges) for bound in BOUNDS]
    names += [f"Shift{at}{index}" for index in range(shifts)]
    return [op for name in names for op in _idle("other", name, "")]


def _idle(part: str, name: str, axes: str) -> list[Op]:
    return ops(part, f"idle = idle({name}[{axes}]) -> [{axes}]")


@dataclass(frozen=True)
class RoundedTables(Tables):
    """The tables, with their whole numbers."""

    ranges: int = 0
    shifts: int = 0

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        made = super().ops()
        return [*made, *rounded(made), *ranged(self.ranges, self.shifts, "e")]


@dataclass(frozen=True)
class RoundedLayer(Layer):
    """The layer, with its matrices' whole numbers."""

    ranges: int = 0
    shifts: int = 0

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        made = super().ops()
        return [*made, *rounded(made), *ranged(self.ranges, self.shifts)]
