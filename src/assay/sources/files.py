"""Files of this machine: what stands at a path, read whole and no more than a config can be."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

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


def locate(path: str) -> Path:
    """The file to read: the path itself, or the config.json of a folder. Raises SourceError."""
    found = Path(path)
    if not _is_folder(found):
        return found
    inside = found / CONFIG
    if not exists(str(inside)):
        raise SourceError(f"{name(path)}: a folder without a {CONFIG}; {_holds(found)}")
    if _is_folder(inside):
        raise SourceError(f"{name(inside)}: a folder; it must be a file")
    return inside


def holds_config(path: str) -> bool:
    """True for a file, or a folder with a config.json."""
    found = Path(path)
    return not _is_folder(found) or exists(str(found / CONFIG))


def read(path: Path) -> bytes:
    """The bytes of a file. Raises SourceError, in one line, for what is no regular file, too large or unreadable."""
    where = name(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{where}: {_sort(status.st_mode)}, not a file; - reads standard input")
        if status.st_size > LIMIT:
            raise SourceError(
                f"{where}: {status.st_size:,} bytes; a config is a few kilobytes, at most {LIMIT >> 20} MiB"
            )
        with path.open("rb") as file:
            return file.read(LIMIT + 1)
    except FileNotFoundError:
        if path.is_symlink():
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


def title(path: Path) -> str:
    """What to call a model: its folder for a config.json, else the file without its ending."""
    if path.name != CONFIG:
        return name(path.stem)
    folder = path.absolute().parent
    if folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--"):  # of the hub's cache
        return name(folder.parents[1].name.removeprefix("models--").replace("--", "/"))
    return name(folder.name or CONFIG)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _holds(folder: Path) -> str:
    try:
        inside = sorted(entry.name for entry in folder.iterdir())
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
