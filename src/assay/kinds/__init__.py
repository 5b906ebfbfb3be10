"""What an op means: one record a kind, a column a reading. A new kind edits one file of this folder."""

from assay.kinds import (
    collective,
    compress,
    contract,
    fused,
    keys,
    layout,
    pointwise,
    primitives,
    reduce,
    running,
    scan,
    state,
)
from assay.kinds.base import (
    KINDS,
    SORTS,
    Extent,
    Kind,
    Stepped,
    Visible,
    VisibleStepped,
    Work,
    check,
    kind_of,
    matrix_axes,
    register,
)

__all__ = [
    "KINDS",
    "SORTS",
    "Extent",
    "Kind",
    "Stepped",
    "Visible",
    "VisibleStepped",
    "Work",
    "check",
    "kind_of",
    "matrix_axes",
    "register",
]

# importing them registers their kinds
_REGISTERED = (collective, compress, contract, fused, keys, layout, pointwise, primitives, reduce, running, scan, state)
