"""What stands between sizes: which a kind ties to each other, and which it takes as they are."""

from __future__ import annotations

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


def chooses(op: Op) -> bool:
    """True where an axis is chosen from, and another holds the choices."""
    return op.kind == "topk"


def looks_up(op: Op) -> bool:
    """True where rows of a table are looked up."""
    return op.kind == "gather"
