"""Weight files by their headers alone: a .safetensors or .gguf file, an index of several, or a folder of them."""

from __future__ import annotations

import os
import re

from assay.errors import SourceError
from assay.sources.checkpoints.gguf import read_gguf
from assay.sources.checkpoints.gguf_names import Speller
from assay.sources.checkpoints.held import Checkpoint, Held
from assay.sources.checkpoints.safetensors import LARGEST_HEADER, read_safetensors
from assay.sources.jsontext import parse
from assay.sources.shown import name as shown
from assay.sources.shown import short

__all__ = ["Checkpoint", "Held", "read_checkpoint", "speller"]

INDEX = ".safetensors.index.json"
WANTED = "an index of weight files is one JSON object"
# heads, widths of their keys and of the part with positions, and of their values, where both come of a latent
_LATENT = ("attention.head_count", "attention.key_length_mla", "rope.dimension_count", "attention.value_length_mla")
_SPLIT = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")


def read_checkpoint(path: str) -> Checkpoint:
    """What the headers below a path say; no weight is read. Raises SourceError in one line."""
    if os.path.isdir(path):
        return _folder(path)
    if path.endswith(".gguf"):
        return _gguf(_parts(path))
    if path.endswith(INDEX):
        return _index(path)
    if path.endswith(".safetensors"):
        tensors, metadata = read_safetensors(path)
        return Checkpoint(shown(path), "safetensors", (path,), tuple(tensors), metadata)
    if not os.path.lexists(path):
        raise SourceError(f"{shown(path)}: no such file or folder")
    raise SourceError(f"{shown(path)}: ends in none of .safetensors, {INDEX} and .gguf, and is no folder of such files")


def speller(held: Checkpoint) -> Speller | None:
    """How a checkpoint's format spells published tensors, None where it keeps them."""
    if held.sort != "gguf":
        return None
    architecture = held.metadata.get("general.architecture")
    name = architecture if isinstance(architecture, str) else ""
    found = (held.metadata.get(f"{name}.{key}") for key in _LATENT)
    heads, keys, turned, values = (value if type(value) is int else 0 for value in found)
    four = any(tensor.name.endswith("post_attention_norm.weight") for tensor in held.tensors)
    return Speller(name, four, (heads, keys - turned, values) if heads and values else None)


def _folder(path: str) -> Checkpoint:
    try:
        inside = sorted(os.listdir(path))
    except OSError as error:
        raise SourceError(f"{shown(path)}: cannot be listed: {error.strerror or type(error).__name__}") from None
    indices = [entry for entry in inside if entry.endswith(INDEX)]
    if len(indices) == 1:
        return _index(os.path.join(path, indices[0]))
    for ending in (".safetensors", ".gguf"):
        files = [os.path.join(path, entry) for entry in inside if entry.endswith(ending)]
        if ending == ".gguf" and len({_SPLIT.sub(r"\1", file) for file in files}) > 1:
            raise SourceError(f"{shown(path)}: holds several models in GGUF, {short(os.path.basename(files[0]))}, ...")
        if files:
            return _together(path, files) if ending == ".safetensors" else _gguf(_parts(files[0]), path)
    raise SourceError(f"{shown(path)}: a folder without weight files: no .safetensors and no .gguf")


def _together(path: str, files: list[str], stated: int | None = None) -> Checkpoint:
    found: dict[str, Held] = {}
    metadata: dict[str, object] = {}
    for file in files:
        tensors, said = read_safetensors(file)
        metadata |= said
        for tensor in tensors:
            if tensor.name in found:
                raise SourceError(f"{shown(file)}: {shown(tensor.name)} stands in {found[tensor.name].file} too")
            found[tensor.name] = tensor
    return Checkpoint(shown(path), "safetensors", tuple(files), tuple(found.values()), metadata, stated)


def _index(path: str) -> Checkpoint:
    """An index and the files that it names; where none of them is there, its names alone."""
    where = shown(path)
    try:
        if os.path.getsize(path) > LARGEST_HEADER:
            raise SourceError(f"{where}: larger than {LARGEST_HEADER:,} bytes; {WANTED}")
        with open(path, "rb") as file:
            raw = file.read(LARGEST_HEADER)
    except OSError as error:
        raise SourceError(f"{where}: cannot be read: {error.strerror or type(error).__name__}") from None
    table = parse(raw, where, WANTED, LARGEST_HEADER)
    places, metadata = table.get("weight_map"), table.get("metadata") or {}
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise SourceError(f"{where}: weight_map is {short(places)}; it must be an object of tensors and their files")
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    if stated is not None and (isinstance(stated, bool) or not isinstance(stated, int | float) or stated < 0):
        raise SourceError(f"{where}: total_size is {short(stated)}; it must be a number of bytes")
    files = sorted(set(places.values()))
    for file in files:
        if os.path.basename(file) != file or file in ("", ".", ".."):
            raise SourceError(f"{where}: weight_map names {short(file)}; it must be a file beside the index")
    beside = {file: os.path.join(os.path.dirname(path), file) for file in files}
    there = [file for file in files if os.path.exists(beside[file])]
    total = None if stated is None else int(stated)
    if not there:
        names = tuple(Held(title, "unknown", None, 0, file) for title, file in places.items())
        return Checkpoint(where, "safetensors", (), names, metadata, total)
    if len(there) < len(files):
        lost = next(file for file in files if file not in there)
        raise SourceError(f"{where}: {shown(lost)} is not there, and {len(there)} of {len(files)} files are")
    read = _together(path, list(beside.values()), total)
    _agree(where, places, read)
    return read


def _agree(where: str, places: dict[str, str], read: Checkpoint) -> None:
    found = {tensor.name: tensor.file for tensor in read.tensors}
    for title in (*places, *found):
        if places.get(title) != found.get(title):
            held = f"stands in {shown(found[title])}" if title in found else "stands in none of the files"
            said = f"is in {shown(places[title])} by the index" if title in places else "is not in the index"
            raise SourceError(f"{where}: {shown(title)} {said} and {held}")


def _parts(path: str) -> list[str]:
    """A file, or all that it was split into. Raises SourceError for one that is not there."""
    split = _SPLIT.fullmatch(os.path.basename(path))
    if split is None:
        return [path]
    count = int(split[3])
    files = [
        os.path.join(os.path.dirname(path), f"{split[1]}-{number:05d}-of-{split[3]}.gguf")
        for number in range(1, count + 1)
    ]
    for file in files:
        if not os.path.exists(file):
            raise SourceError(f"{shown(file)}: is not there, one of {count} files that the model was split into")
    return files


def _gguf(files: list[str], path: str | None = None) -> Checkpoint:
    found: dict[str, Held] = {}
    first: dict[str, object] = {}
    for file in files:
        tensors, metadata = read_gguf(file)
        first = first or metadata
        for tensor in tensors:
            if tensor.name in found:
                raise SourceError(f"{shown(file)}: {shown(tensor.name)} stands in {found[tensor.name].file} too")
            found[tensor.name] = tensor
    return Checkpoint(shown(path or files[0]), "gguf", tuple(files), tuple(found.values()), first)
