"""Small weight files for tests, written byte by byte: what a reader must take, and what it must refuse."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

Tensors = dict[str, tuple[str, tuple[int, ...], int]]  # name -> dtype, shape, bytes


def safetensors(path: Path, tensors: Tensors, **metadata: str) -> Path:
    """A .safetensors file whose data are zeros."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    return raw_safetensors(path, json.dumps(header).encode(), at)


def raw_safetensors(path: Path, header: bytes, data: int = 0, length: int | None = None) -> Path:
    """A file with this header, `length` what it claims of it."""
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + bytes(data))
    return path


def text(value: str) -> bytes:
    """A string of GGUF."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(item: Any) -> bytes:
    """A value of GGUF's metadata with its type before it."""
    if isinstance(item, bool):
        return struct.pack("<I?", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + text(item)
    inner = b"".join(value(one)[4:] for one in item)
    return struct.pack("<I", 9) + value(item[0])[:4] + struct.pack("<Q", len(item)) + inner


def gguf(
    path: Path,
    metadata: dict[str, Any],
    tensors: dict[str, tuple[int, tuple[int, ...], int]],
    version: int = 3,
    short: int = 0,
) -> Path:
    """A .gguf file: name -> block type, shape as PyTorch has it, bytes; `short` of so many bytes at its end."""
    made = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    made += b"".join(text(key) + value(item) for key, item in metadata.items())
    at = 0
    for name, (sort, shape, size) in tensors.items():
        dims = tuple(reversed(shape))
        made += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, sort, at)
        at += -(-size // 32) * 32
    made += bytes(-len(made) % 32 + at)
    path.write_bytes(made[: len(made) - short])
    return path
