"""The header of a .gguf file: metadata and tensor infos, read in pieces; the tensors behind it are not.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3. Read here by hand: the
package `gguf` maps whole files, needs NumPy, and trusts what a header claims.
"""

from __future__ import annotations

import os
import struct
from typing import IO, Any

from assay.errors import SourceError
from assay.records import replace
from assay.sources.checkpoints.blocks import BLOCKS
from assay.sources.checkpoints.held import Held
from assay.sources.shown import name as shown
from assay.sources.shown import short

MAGIC = b"GGUF"
LONGEST = 1 << 24  # bytes of a string: chat templates are some thousands
KEPT = 10_000  # elements of an array that are kept; of a longer one, and of strings, their number alone
MOST = 1 << 20  # tensors, and keys
MOST_DIMS = 8

# number of a type: (struct code, bytes)
_PLAIN = {
    0: ("B", 1),
    1: ("b", 1),
    2: ("H", 2),
    3: ("h", 2),
    4: ("I", 4),
    5: ("i", 4),
    6: ("f", 4),
    7: ("?", 1),
    10: ("Q", 8),
    11: ("q", 8),
    12: ("d", 8),
}
_STRING, _ARRAY = 8, 9


class Reader:
    """A file read from its beginning, never beyond its end."""

    def __init__(self, file: IO[bytes], where: str, size: int) -> None:
        self.file, self.where, self.size = file, where, size
        self.at = 0
        self.order = "<"

    def take(self, count: int, what: str) -> bytes:
        """The next bytes. Raises SourceError where the file ends before."""
        if count > self.size - self.at:
            raise SourceError(f"{self.where}: ends within {what}, at byte {self.at:,} of {self.size:,}")
        raw = self.file.read(count)
        if len(raw) != count:
            raise SourceError(f"{self.where}: ends within {what}, at byte {self.at:,}")
        self.at += count
        return raw

    def skip(self, count: int, what: str) -> None:
        """Pass over bytes. Raises SourceError where the file ends before."""
        if count > self.size - self.at:
            raise SourceError(f"{self.where}: ends within {what}, at byte {self.at:,} of {self.size:,}")
        self.file.seek(count, os.SEEK_CUR)
        self.at += count

    def number(self, code: str, what: str) -> Any:
        """A number by its struct code."""
        return struct.unpack(self.order + code, self.take(struct.calcsize(self.order + code), what))[0]

    def text(self, what: str) -> str:
        """A string: its length, then UTF-8. Raises SourceError."""
        length = self.number("Q", what)
        if length > LONGEST:
            raise SourceError(f"{self.where}: {what} claims {length:,} bytes of text; at most {LONGEST:,} are read")
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError:
            raise SourceError(f"{self.where}: {what} is no UTF-8") from None

    def value(self, sort: int, what: str) -> Any:
        """A value of metadata. Raises SourceError for a type that the format lacks."""
        if sort in _PLAIN:
            return self.number(_PLAIN[sort][0], what)
        if sort == _STRING:
            return self.text(what)
        if sort == _ARRAY:
            return self.array(what)
        raise SourceError(f"{self.where}: {what} is of type {sort}, which the format lacks")

    def array(self, what: str) -> Any:
        """An array: a list of numbers, or a Length where it is long or holds strings."""
        sort, count = self.number("I", what), self.number("Q", what)
        if count > self.size - self.at:
            raise SourceError(f"{self.where}: {what} claims {count:,} elements; the file ends before")
        if sort in _PLAIN:
            code, width = _PLAIN[sort]
            if count > KEPT:
                self.skip(count * width, what)
                return Length(count)
            return list(struct.unpack(f"{self.order}{count}{code}", self.take(count * width, what)))
        if sort == _STRING:
            for _ in range(count):
                self.skip(self.number("Q", what), what)
            return Length(count)
        raise SourceError(f"{self.where}: {what} is an array of type {sort}, which is not read")


class Length(int):
    """The length of an array whose elements were passed over."""


def read_gguf(path: str) -> tuple[list[Held], dict[str, Any]]:
    """The tensors of a file, their shapes as PyTorch has them, and its metadata. Raises SourceError in one line."""
    where = shown(path)
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            tensors, metadata = _read(Reader(file, where, size))
    except OSError as error:
        raise SourceError(f"{where}: cannot be read: {error.strerror or type(error).__name__}") from None
    return [replace(tensor, file=os.path.basename(path)) for tensor in tensors], metadata


def _read(r: Reader) -> tuple[list[Held], dict[str, Any]]:
    if r.take(4, "its first four bytes") != MAGIC:
        raise SourceError(f"{r.where}: does not begin with GGUF")
    version = r.number("I", "its version")
    if version in (2 << 24, 3 << 24):
        r.order, version = ">", version >> 24
    if version not in (2, 3):
        raise SourceError(f"{r.where}: GGUF version {version}; versions 2 and 3 are read")
    tensors, keys = r.number("Q", "its number of tensors"), r.number("Q", "its number of keys")
    for count, what in ((tensors, "tensors"), (keys, "keys")):
        if count > MOST:
            raise SourceError(f"{r.where}: claims {count:,} {what}; at most {MOST:,} are read")
    metadata: dict[str, Any] = {}
    for _ in range(keys):
        key = r.text("a key of the metadata")
        if key in metadata:
            raise SourceError(f"{r.where}: {shown(key)} stands twice; each key must stand once")
        metadata[key] = r.value(r.number("I", shown(key)), shown(key))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1) or alignment > 1 << 20:
        raise SourceError(f"{r.where}: general.alignment is {short(alignment)}; it must be a power of two")
    found = [_info(r) for _ in range(tensors)]
    _check_places(r, found, -(-r.at // alignment) * alignment)
    return [tensor for _, tensor in found], metadata


def _info(r: Reader) -> tuple[int, Held]:
    title = r.text("the name of a tensor")
    count = r.number("I", shown(title))
    if count > MOST_DIMS:
        raise SourceError(f"{r.where}: {shown(title)} claims {count:,} dimensions; at most {MOST_DIMS} are read")
    dims = [r.number("Q", shown(title)) for _ in range(count)]
    sort, offset = r.number("I", shown(title)), r.number("Q", shown(title))
    if sort not in BLOCKS:
        raise SourceError(f"{r.where}: {shown(title)} is of block type {sort}, which is not known")
    kind, each, width = BLOCKS[sort]
    tensor = Held(title, kind, tuple(reversed(dims)), 0)
    if any(extent < 1 for extent in dims) or tensor.elements >= 1 << 63:
        raise SourceError(f"{r.where}: {shown(title)} has shape {short(dims)}; it must hold at least 1 element a side")
    if dims and dims[0] % each:
        raise SourceError(
            f"{r.where}: {shown(title)} has rows of {dims[0]:,}, which blocks of {each} ({kind}) do not divide"
        )
    if not dims and each > 1:
        raise SourceError(f"{r.where}: {shown(title)} is one number and cannot be stored as {kind}")
    return offset, replace(tensor, bytes=tensor.elements // each * width)


def _check_places(r: Reader, found: list[tuple[int, Held]], begin: int) -> None:
    """Raise SourceError for tensors that overlap, end beyond the file or have the name of another."""
    names: set[str] = set()
    reached = 0
    for offset, tensor in sorted(found, key=lambda one: (one[0], one[1].bytes)):
        if tensor.name in names:
            raise SourceError(f"{r.where}: {shown(tensor.name)} stands twice; each tensor must stand once")
        names.add(tensor.name)
        if offset < reached:
            raise SourceError(f"{r.where}: {shown(tensor.name)} begins at byte {offset:,}, within the tensor before it")
        reached = offset + tensor.bytes
    if found and begin + reached > r.size:
        raise SourceError(f"{r.where}: the tensors end at byte {begin + reached:,} and the file at {r.size:,}")
