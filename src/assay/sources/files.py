"""Files of this machine: what stands at a path, read whole and no more than a config can be."""

from __future__ import annotations

import os
import stat
import sys

from assay.errors import SourceError
from assay.sources.jsontext import LIMIT
from assay.sources.shown import name

CONFIG = "config.json"


def exists(path: str) -> bool:
    """True where anything stands at a path, a broken link too."""
    try:
        os.lstat(path)
    except (OSError, ValueError):  # ValueError: a zero byte, or a character that no path has
        return False
    return True


def locate(path: str) -> str:
    """The file to read: the path itself, or the config.json of a folder. Raises SourceError."""
    if not os.path.isdir(path):
        return path
    inside = os.path.join(path, CONFIG)
    if not exists(inside):
        raise SourceError(f"{name(path)}: a folder without a {CONFIG}; {_holds(path)}")
    if os.path.isdir(inside):
        raise SourceError(f"{name(inside)}: a folder; it must be a file")
    return inside


def holds_config(path: str) -> bool:
    """True for a file, or a folder with a config.json."""
    return not os.path.isdir(path) or exists(os.path.join(path, CONFIG))


def read(path: str) -> bytes:
    """The bytes of a file. Raises SourceError, in one line, for what is no regular file, too large or unreadable."""
    where = name(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{where}: {_sort(status.st_mode)}, not a file; - reads standard input")
        if status.st_size > LIMIT:
            raise SourceError(
                f"{where}: {status.st_size:,} bytes; a config is a few kilobytes, at most {LIMIT >> 20} MiB"
            )
        with open(path, "rb") as file:
            return file.read(LIMIT + 1)
    except FileNotFoundError:
        if os.path.islink(path):
            raise SourceError(f"{where}: a link to {name(os.readlink(path))}, where nothing is") from None
        raise SourceError(f"{where}: no such file") from None
    except OSError as error:
        raise SourceError(f"{where}: cannot be read: {error.strerror or type(error).__name__}") from None


def read_standard_input() -> bytes:
    """The bytes of standard input. Raises SourceError."""
    stream = sys.stdin
    if stream is None:
        raise SourceError("-: there is no standard input")
    try:
        raw = getattr(stream, "buffer", stream).read(LIMIT + 1)
    except (OSError, ValueError) as error:
        raise SourceError(f"standard input: cannot be read: {name(error)}") from None
    return raw.encode() if isinstance(raw, str) else bytes(raw)


def title(path: str) -> str:
    """What to call a model: its folder for a config.json, else the file without its ending."""
    folder, file = os.path.split(os.path.abspath(path))
    if file != CONFIG:
        return name(os.path.splitext(file)[0])
    above, parent = os.path.split(os.path.dirname(folder))
    repository = os.path.basename(above)
    if parent == "snapshots" and repository.startswith("models--"):  # of the hub's cache
        return name(repository.removeprefix("models--").replace("--", "/"))
    return name(os.path.basename(folder) or CONFIG)


def inside(folder: str) -> list[str]:
    """The names in a folder, [] for anything else."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _holds(folder: str) -> str:
    try:
        inside = sorted(os.listdir(folder))
    except OSError as error:
        return f"it cannot be listed: {error.strerror or type(error).__name__}"
    near = [entry for entry in inside if entry.endswith((".json", ".toml"))][:4]
    return f"it holds {', '.join(map(name, near))}: name one" if near else "it holds no other config either"


def _sort(mode: int) -> str:
    for is_sort, what in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if is_sort(mode):
            return what
    return "something else"
