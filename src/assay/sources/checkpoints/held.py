"""What the headers of weight files say: tensors with their names, dtypes, shapes and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.records import dataclass, field


@dataclass(frozen=True)
class Held:
    """A tensor that a header lists. `shape` is None where only an index of names was at hand, `bytes` 0 then."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    bytes: int
    file: str = ""

    @property
    def elements(self) -> int:
        """Elements stored: of a packed tensor the integers that hold them."""
        total = 1
        for extent in self.shape or ():
            total *= extent
        return total if self.shape is not None else 0


@dataclass(frozen=True)
class Checkpoint:
    """What a file of weights, an index or a folder of them holds, from headers alone.

    `sort` is safetensors or gguf; `stated` is the number of bytes that an index names, None where none does.
    """

    where: str
    sort: str
    files: tuple[str, ...]
    tensors: tuple[Held, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    stated: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all tensors, headers and padding apart."""
        return sum(tensor.bytes for tensor in self.tensors) if self.shaped else (self.stated or 0)

    @property
    def shaped(self) -> bool:
        """True where headers were read, not only an index of names."""
        return all(tensor.shape is not None for tensor in self.tensors)
