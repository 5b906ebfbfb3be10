"""JSON read strictly: what two readers could understand differently is refused, and so is what no config needs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from assay.errors import SourceError
from assay.sources.shown import name, short

LIMIT = 16 * 1024 * 1024  # bytes; the largest configs hold lists of labels or of quantized layers, some megabytes
DEPTH = 32  # levels of nesting
WANTED = "a config is one JSON object, {...}"

_SCALARS = {str, int, bool, type(None)}

_MAGIC = {  # files that people hand over by mistake, and some text that is no UTF-8
    b"GGUF": "a GGUF file",
    b"PK\x03\x04": "a zip archive, as PyTorch's checkpoints are",
    b"\x80\x02": "a pickle",
    b"\x1f\x8b": "compressed by gzip",
    b"\xff\xfe": "UTF-16; save it as UTF-8",
    b"\xfe\xff": "UTF-16; save it as UTF-8",
}


def parse(raw: bytes, where: str, wanted: str = WANTED, limit: int = LIMIT) -> dict[str, Any]:
    """The object that some bytes hold. Raises SourceError naming `where`, and line and column of what does not fit."""
    text = decode(raw, where, wanted, limit)
    try:
        found = json.loads(
            text,
            object_pairs_hook=lambda pairs: _table(pairs, where),
            parse_constant=lambda word: _constant(word, where, text),
            parse_float=lambda word: _number(word, where, text),
            parse_int=lambda word: _integer(word, where, text),
        )
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{where}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}; {_ends(text, error)}"
        ) from None
    except RecursionError:
        raise SourceError(_deep(where)) from None
    if not isinstance(found, dict):
        raise SourceError(f"{where}: holds {_kind(found)}; {wanted}")
    if text.count("{") + text.count("[") > DEPTH:
        _check_depth(found, where)
    return plain(found, where) if "Infinity" in text else found


def decode(raw: bytes, where: str, wanted: str = WANTED, limit: int = LIMIT) -> str:
    """The text of some bytes. Raises SourceError, saying what is `wanted`, for what is empty, too large or no UTF-8."""
    if len(raw) > limit:
        raise SourceError(f"{where}: larger than {limit >> 20} MiB; {wanted}, of a few kilobytes")
    if not raw.strip():
        raise SourceError(f"{where}: empty; {wanted}")
    for magic, what in _MAGIC.items():
        if raw.startswith(magic):
            raise SourceError(f"{where}: {what}; {wanted}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{where}: byte {error.start} is no UTF-8; {wanted}") from None
    if "\x00" in text:
        raise SourceError(f"{where}: binary, byte {text.index(chr(0))} is zero; {wanted}")
    return text


def plain(data: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """A dict from Python as JSON would hold it: keys are strings, tuples lists. Raises SourceError for other values.

    A number is finite; in a list, which may be a range, it may be infinite: published configs have such bounds.
    """
    return {
        str(key): value if type(value) in _SCALARS else _plain(value, where, str(key), 1) for key, value in data.items()
    }


def _plain(value: Any, where: str, path: str, depth: int) -> Any:
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, float):
        raise SourceError(f"{where}: {name(path)} is {value}; a number must be finite")
    if depth > DEPTH:
        raise SourceError(_deep(where))
    if isinstance(value, Mapping):
        return {str(key): _plain(held, where, f"{path}.{key}", depth + 1) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [held if _is_infinite(held) else _plain(held, where, path, depth + 1) for held in value]
    if type(value).__module__ == "torch":  # a dtype, before a config object writes it as a string
        return str(value).removeprefix("torch.")
    raise SourceError(f"{where}: {name(path)} is a {type(value).__name__}; it must be a value that JSON can hold")


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _table(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise SourceError(f"{where}: {name(twice)} stands twice in one object; each key must stand once")
    return made


def _constant(word: str, where: str, text: str) -> float:
    """Python's JSON has three words more: infinity is looked at where it stands, NaN is never a value."""
    if word == "NaN":
        raise SourceError(f"{where}: {_behind(word, text)}NaN is not JSON; a number must be finite")
    return float(word)


def _number(word: str, where: str, text: str) -> float:
    value = float(word)
    if math.isinf(value):
        shown = short(word)[1:-1]
        raise SourceError(f"{where}: {_behind(word, text)}{shown} is beyond any number that a config holds")
    return value


def _integer(word: str, where: str, text: str) -> int:
    if len(word) > 100:
        shown = f"an integer of {len(word)} digits"
        raise SourceError(f"{where}: {_behind(word, text)}{shown} is beyond any that a config holds")
    return int(word)


def _behind(word: str, text: str) -> str:
    """The key of a number as the reader of JSON met it, `key: `, or nothing for one in a list."""
    import re

    found = re.search(rf'"([^"\\\n]*)"\s*:\s*{re.escape(word)}(?![\w.])', text)
    return f"{name(found[1])}: " if found else ""


def _check_depth(found: dict[str, Any], where: str) -> None:
    """Refuse what nests deeper than any config, level by level, without recursion."""
    level: list[Any] = [found]
    for _ in range(DEPTH):
        level = [
            held
            for value in level
            for held in (value.values() if isinstance(value, dict) else value)
            if isinstance(held, dict | list)
        ]
        if not level:
            return
    raise SourceError(_deep(where))


def _deep(where: str) -> str:
    return f"{where}: nested deeper than {DEPTH} levels; a config is not"


def _ends(text: str, error: json.JSONDecodeError) -> str:
    if error.pos >= len(text.rstrip()):
        return "the text ends too early"
    return f"found {short(text[error.pos : error.pos + 20])}"


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")
