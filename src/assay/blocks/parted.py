"""Attention whose weights stand in parts, one for each device that it was trained on: queries, values, keys of some
heads together (Nijkamp et al. 2022).

Axes: p parts, y heads of a part.
"""

from __future__ import annotations

from functools import lru_cache

from assay.blocks.attention import Attention
from assay.records import dataclass, replace
from assay.spec import Axes, Op, Tensor


@dataclass(frozen=True)
class PartedAttention(Attention):
    """As many heads in each of the parts; each has a key of its own."""

    parts: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes; g is p times y."""
        return {**super().sizes(), "p": self.parts, "y": self.kv_heads // self.parts}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return [_parted(op) for op in super().ops(x, y)]

    def project(self, x: str) -> list[Op]:
        """Queries, values and keys, as they are stored."""
        made = super().project(x)
        return sorted(made, key=lambda op: "qvk".index(op.name))


@lru_cache(maxsize=4096)
def _parted(op: Op) -> Op:
    """The same op with the heads in parts."""

    def axes(named: Axes) -> Axes:
        return tuple(part for axis in named for part in (("p", "y") if axis == "g" else (axis,)))

    return replace(op, inputs=tuple(Tensor(t.name, axes(t.axes)) for t in op.inputs), axes=axes(op.axes))
