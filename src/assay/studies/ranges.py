"""Many values of a size in one word: lists, ranges, and sizes that follow from others.

    1,8,64             these
    1k:1M              from 1,000 on, doubling, up to 1,000,000
    1k:1M:x10          ten times as much each time
    1k:1M:20           20 values, evenly spaced on a logarithmic scale
    0:100k:+10k        from 0 on by 10,000
    512,1k:8k          a list of any of these
    4*width            as many times another size that is swept; width/64, 3.5*width, width

Both ends of a range are always in it. A comma separates values, so 131,072 is written 131072 or 128Ki.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from assay.errors import SettingError
from assay.report.units import parse_size, shorten
from assay.size import is_integer

MOST = 10**8  # values of one size: beyond, a sweep would take hours
FORMS = "a list such as 1,8, a range such as 1k:1M, 1k:1M:20 (that many), 1k:1M:x4 or 0:100k:+10k, or both"

Values = Sequence[int]  # a tuple, or a range where that says the same


def values(given: object, name: str, least: int = 1, between: int | None = None) -> Values:
    """The sizes that a word, an int, or an iterable of ints stands for, in order, each once.

    `between` is how many values a range has that says nothing of its steps, spaced evenly on a logarithmic scale; it
    doubles where that is None. Raises SettingError naming `name`.
    """
    if isinstance(given, str):
        pieces = [_piece(piece, given, name, least, between) for piece in given.split(",")]
        found = pieces[0] if len(pieces) == 1 else tuple(value for piece in pieces for value in piece)
    else:
        found = _held(given, name, least)
    _few(len(found), name)
    return found if isinstance(found, range) else tuple(dict.fromkeys(found))


def _held(given: object, name: str, least: int) -> Values:
    """Integers that a program gives."""
    listed: Any = getattr(given, "tolist", lambda: given)()  # an array's own ints
    if isinstance(listed, float) or not isinstance(listed, Iterable):
        listed = [listed]
    found = listed if isinstance(listed, range) else tuple(int(v) if _whole(v) else v for v in listed)
    if not found:
        raise SettingError(f"{name} has no values")
    ends = (found[0], found[-1]) if isinstance(found, range) else found
    for value in ends:
        if not is_integer(value) or value < least:
            raise SettingError(f"{name} holds {shorten(repr(value))}; each must be an integer of at least {least}")
    return found


def _whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def _piece(text: str, whole: str, name: str, least: int, between: int | None) -> Values:
    """One value or one range."""
    parts = [part.strip() for part in text.split(":")]
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise SettingError(f"{name} is {shorten(whole)!r}; it must be {FORMS}")
    if len(parts) == 1:
        if re.fullmatch(r"0[0-9]+", parts[0]):
            raise SettingError(f"{name} is {shorten(whole)}; a comma separates values: write {whole.replace(',', '')}")
        return (parse_size(parts[0], name, least),)
    first, last = (parse_size(part, name, least) for part in parts[:2])
    if first > last:
        raise SettingError(f"{name} is {shorten(text)}; a range begins at the smaller end")
    return _range(first, last, parts[2] if len(parts) == 3 else "", name, between)


def _range(first: int, last: int, step: str, name: str, between: int | None) -> Values:
    if step.startswith("+"):
        by = parse_size(step[1:], f"the step of {name}")
        _few(1 - (first - last) // by, name)
        steps = range(first, last + 1, by)
        return steps if steps[-1] == last else (*steps, last)
    if first == 0:
        raise SettingError(f"{name} begins at 0, where no factor leads on; write 0:{last}:+STEP")
    if (not step and between is None) or step.startswith(("x", "*")):
        return _multiplied(first, last, _factor(step, name))
    many = between if not step else parse_size(step, f"how many values of {name}", 2)
    assert many is not None
    _few(many, name)
    return _spaced(first, last, many)


def _few(many: int, name: str) -> None:
    if many > MOST:
        raise SettingError(f"{name} has {many:,} values; a sweep takes at most {MOST:,} of one size")


def _factor(step: str, name: str) -> Fraction:
    """What each value is times the one before; 2 where nothing is said."""
    if not step:
        return Fraction(2)
    found = _fraction(step[1:])
    if found is None or found < Fraction(101, 100):
        raise SettingError(f"{name} goes on by {shorten(step)}; the factor must be a number of at least 1.01")
    return found


def _multiplied(first: int, last: int, factor: Fraction) -> Values:
    found, at = [], Fraction(first)
    while at < last:
        found.append(round(at))
        at *= factor
    return (*found, last)


def _spaced(first: int, last: int, many: int) -> Values:
    """So many values, evenly spaced on a logarithmic scale and rounded; fewer where integers lie too close."""
    from math import exp, log

    low, high = log(first), log(last)
    inner = (round(exp(low + (high - low) * i / (many - 1))) for i in range(1, many - 1))
    return (first, *(min(max(value, first), last) for value in inner), last)


def _fraction(text: str) -> Fraction | None:
    """A decimal such as 3.5, exactly."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text.strip()) is None:
        return None
    return Fraction(text.strip())


_KEY = r"[A-Za-z_][A-Za-z0-9_.+-]*"


def dependent(text: str) -> tuple[str, Fraction] | None:
    """(key, factor) of a size that follows from another, such as 4*width, width*4, width/64, width; None for others."""
    compact = text.replace(" ", "")
    for form in (rf"(?P<n>[0-9.]+)\*(?P<key>{_KEY})", rf"(?P<key>{_KEY})(?:(?P<op>[*/])(?P<n>[0-9.]+))?"):
        found = re.fullmatch(form, compact)
        if found:
            factor = Fraction(1) if found["n"] is None else _fraction(found["n"])
            if not factor:
                return None
            return found["key"], 1 / factor if found.groupdict().get("op") == "/" else factor
    return None


def followed(sizes: Mapping[str, int], rules: Mapping[str, tuple[str, Fraction]]) -> dict[str, int]:
    """Sizes, and those that follow from them. Raises SettingError for what does not divide or is not swept."""
    found = dict(sizes)
    left = dict(rules)
    while left:
        ready = [key for key, (other, _) in left.items() if other in found]
        if not ready:
            key, (other, _) = next(iter(left.items()))
            raise SettingError(f"{key} follows from {other}, which is not set; set {', '.join(sizes) or 'it'} too")
        for key in ready:
            other, factor = left.pop(key)
            value = found[other] * factor
            if value.denominator != 1:
                raise SettingError(f"{key} is {factor} times {other}, {found[other]}: no integer")
            found[key] = int(value)
    return {key: found[key] for key in (*sizes, *rules)}
