"""The header of a .safetensors file: eight bytes of length, a JSON object, and no more is read.

The format: https://github.com/huggingface/safetensors#format. Tensors lie behind each other without gaps, which is
checked: a header that lies about its file is refused in one line.
"""

from __future__ import annotations

import os
from typing import Any

from assay.errors import SourceError
from assay.records import replace
from assay.sources.checkpoints.held import Held
from assay.sources.jsontext import parse
from assay.sources.shown import name as shown
from assay.sources.shown import short

LARGEST_HEADER = 100_000_000  # what the reference reader allows
WANTED = "the header of a safetensors file is one JSON object"

BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}


def read_safetensors(path: str) -> tuple[list[Held], dict[str, Any]]:
    """The tensors of a file in the order of its header, and its metadata. Raises SourceError in one line."""
    where = shown(path)
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8:
                raise SourceError(f"{where}: {size} bytes; a safetensors file begins with the 8 of its header's length")
            if length > min(size - 8, LARGEST_HEADER):
                limit = f"it holds {size - 8:,} more" if length > size - 8 else f"at most {LARGEST_HEADER:,} are read"
                raise SourceError(f"{where}: the header claims {length:,} bytes; {limit}")
            raw = file.read(length)
    except OSError as error:
        raise SourceError(f"{where}: cannot be read: {error.strerror or type(error).__name__}") from None
    if len(raw) != length:
        raise SourceError(f"{where}: ends within its header")
    tensors, metadata = _tensors(parse(raw, where, WANTED, LARGEST_HEADER), where, size - 8 - length)
    return [replace(tensor, file=os.path.basename(path)) for tensor in tensors], metadata


def _tensors(header: dict[str, Any], where: str, room: int) -> tuple[list[Held], dict[str, Any]]:
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise SourceError(f"{where}: __metadata__ is {short(metadata)}; it must be an object")
    found: list[tuple[int, int, Held]] = []
    for title, entry in header.items():
        found.append(_tensor(title, entry, where))
    reached = 0
    for begin, end, tensor in sorted(found, key=lambda one: one[:2]):
        if begin != reached:
            fault = "overlaps the tensor before it" if begin < reached else "leaves a gap before it"
            raise SourceError(f"{where}: {shown(tensor.name)} begins at byte {begin:,}, which {fault}, at {reached:,}")
        reached = end
    if reached != room:
        raise SourceError(f"{where}: the tensors take {reached:,} bytes and the file holds {room:,} of them")
    return [tensor for _, _, tensor in found], metadata


def _tensor(title: str, entry: Any, where: str) -> tuple[int, int, Held]:
    def fail(key: str, allowed: str) -> SourceError:
        held = short(entry.get(key)) if isinstance(entry, dict) and key in entry else "missing"
        return SourceError(f"{where}: {shown(title)}: {key} is {held}; it must be {allowed}")

    if not isinstance(entry, dict):
        raise SourceError(f"{where}: {shown(title)} is {short(entry)}; it must be an object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise fail("dtype", f"one of {', '.join(BITS)}")
    if not isinstance(shape, list) or not all(map(_natural, shape)):
        raise fail("shape", "a list of integers of at least 0")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_natural, offsets)):
        raise fail("data_offsets", "two integers of at least 0")
    tensor = Held(title, dtype, tuple(shape), 0)
    bits = tensor.elements * BITS[dtype]
    begin, end = offsets
    if bits % 8 or end - begin != bits // 8:
        raise SourceError(
            f"{where}: {shown(title)}: {dtype} of shape {short(shape)} takes {short(-(-bits // 8))} bytes, "
            f"and data_offsets {short(offsets)} leave it {short(end - begin)}"
        )
    return begin, end, replace(tensor, bytes=end - begin)


def _natural(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
