"""Tensors as a tape knows them: storages, what is seen of them along axes, dtypes and what two of them make."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from assay.formats import bytes_of
from assay.records import dataclass
from assay.size import Size
from assay.spec import Axes

CACHE, STATES = "cache", "states"
MADE, INPUT, WEIGHT, BEFORE = "activations", "inputs", "weights", "before"  # where storages are from; an earlier pass
FLAG, INDEX, COUNT = "bool", "int64", "int32"  # what is true or false, an index, how many
WIDTHS = {FLAG: 1, INDEX: 8, COUNT: 4, "complex64": 8}  # bytes of an element
# which functions autocast runs in float32, of those that appear here (PyTorch's autocast op reference, of CUDA)
AUTOCAST_TO_FLOAT32 = {
    "cpu": frozenset({"loss"}),
    "cuda": frozenset({"exp", "layer_norm", "pow", "rsqrt", "softmax", "softplus", "sum", "loss"}),
}
RANKS = (FLAG, INDEX, "fp8", "bf16", "fp16", "fp32", "fp64", "complex64")  # of two that meet the later one stays


class Store:
    """What tensors lie in: its bytes, where it is from, and which ops had it kept, the first of them first.

    `passing` says of each whether what kept it is gone with the op; `shared` storages live as long as the pass;
    `maker` is the op that made it, `key` what tells a parameter from others. `born` and `read` are the tape's clock
    when it was made and when it was last read; what is `held` is there for the next pass, or was for this one. `grad`:
    what was made has a gradient that is a tensor of its own.
    """

    __slots__ = ("born", "bytes", "grad", "held", "keepers", "key", "maker", "origin", "read", "shared")

    def __init__(self, held: Size, origin: str = MADE, maker: Any = None, key: Hashable = None) -> None:
        self.bytes = held
        self.origin = origin
        self.maker = maker
        self.key = key
        self.keepers: list[tuple[Hashable, bool]] = []
        self.shared = False
        self.grad = False
        self.held = ""
        self.born = self.read = 0


@dataclass(frozen=True)
class Keeping:
    """How keys, values and states are kept for later passes: in `dtype`, states in `state`.

    `grown`: a pass copies what is kept behind each other into a new tensor; else room for all of it was made before.
    `copied`: so does the first, which has nothing to put its keys behind.
    """

    dtype: str
    state: str = "fp32"
    grown: bool = True
    copied: bool = False


WIDE = {"bf16": "fp32", "fp16": "fp32"}  # what sums over elements of a dtype are held in


def promoted(values: Iterable[Value]) -> str:
    """The dtype of what is computed from several tensors: one without axes counts only beside others without."""
    values = tuple(values)
    return max((v.dtype for v in [v for v in values if v.axes] or values), key=RANKS.index)


def width_of(dtype: str) -> Size:
    """Bytes of an element."""
    known = WIDTHS.get(dtype)
    return bytes_of(1, dtype) if known is None else known


class Value:
    """A tensor: axes in order, how far apart elements lie, the storage, whether it needs a gradient, its dtype.

    An axis that is the same all along lies 0 apart.
    """

    __slots__ = ("axes", "dtype", "grad", "store", "strides")

    def __init__(self, axes: Axes, strides: tuple[int, ...], store: Store, grad: bool, dtype: str) -> None:
        self.axes = axes
        self.strides = strides
        self.store = store
        self.grad = grad
        self.dtype = dtype

    def seen(self, axes: Axes, strides: tuple[int, ...]) -> Value:
        """The same storage along other axes."""
        return Value(axes, strides, self.store, self.grad, self.dtype)

    def called(self, axes: Axes) -> Value:
        """The same under other names."""
        return self.seen(axes, self.strides)


def evenly(sizes: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """How far apart elements lie along dimensions of other sizes, None where they do not lie evenly."""
    if 0 in sizes or not sizes:
        return None
    made = [0] * len(wanted)
    at, base, held, given = len(wanted) - 1, strides[-1], 1, 1
    for dim in range(len(sizes) - 1, -1, -1):
        held *= sizes[dim]
        if dim and (sizes[dim - 1] == 1 or strides[dim - 1] == held * base):
            continue
        while at >= 0 and (given < held or wanted[at] == 1):
            made[at] = given * base
            given *= wanted[at]
            at -= 1
        if given != held:
            return None
        if dim:
            base, held, given = strides[dim - 1], 1, 1
    return tuple(made) if at == -1 else None
