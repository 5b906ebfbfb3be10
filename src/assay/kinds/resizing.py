"""What stands between sizes: which a kind ties to each other, and which it takes as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.spec import Op

PARTS = ("slice", "concat", "rope")  # the axis of a part and that of the whole: of a rotation what is turned of a head
WHOLE = ("reshape", "columns", "unfold", "distances", "offsets", "pool", "collect", "blocks")


def parts(op: Op) -> bool:
    """True where one axis is a part of another: only a common divisor keeps both whole."""
    return op.kind in PARTS


def whole(op: Op) -> bool:
    """True where sizes are products, strides or rates of others."""
    return op.kind in WHOLE


def turned(op: Op) -> str | None:
    """The attribute that says how much of an axis an op works on."""
    return "width" if op.kind == "rope" else None


def shared(name: str) -> bool:
    """True of an attribute that holds numbers for each turned pair, or shares the pairs out."""
    return name == "scaling"


def reshared(table: Any, pairs: int, left: int) -> Any:
    """The table of a rotation of fewer pairs: of a list for each of them the first, of sections less of each."""
    made = []
    for name, value in table or ():
        if isinstance(value, tuple) and len(value) == pairs:
            value = value[:left]
        elif isinstance(value, tuple) and sum(value) == pairs:
            ends = [sum(value[: at + 1]) * left // pairs for at in range(len(value))]
            value = tuple(end - start for start, end in zip([0, *ends], ends, strict=False))
        made.append((name, value))
    return tuple(made) if table else table


def chooses(op: Op) -> bool:
    """True where an axis is chosen from, and another holds the choices."""
    return op.kind == "topk"


def looks_up(op: Op) -> bool:
    """True where rows of a table are looked up."""
    return op.kind == "gather"


def is_index(name: str, ops: Iterable[Op]) -> bool:
    """True where some ops read what is called so as whole numbers that pick rows or values, and none does otherwise."""
    users = [op for op in ops if any(operand.name == name for operand in op.activations)]
    picked = (looks_up(op) or (op.kind in ("select", "take") and op.activations[-1].name == name) for op in users)
    return bool(users) and all(picked)
