"""Figures as people write them, and back: powers of 1000, of 1024, and the integers they stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.errors import SettingError
from assay.size import Size

SUFFIXES = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "B": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
LARGEST = 10**30  # a size beyond is a slip, not a question

_NUMBER = r"([0-9]+(?:_[0-9]+)*|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.([0-9]+))?\s*([A-Za-z]*)"

_SHORT = ("", "k", "M", "B", "T")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


def parse_size(text: str, name: str, least: int = 1) -> int:
    """The integer that `2048`, `131,072`, `8k`, `1.5M` or `128Ki` stands for.

    k, M, G or B, T are powers of 1000; Ki, Mi, Gi are powers of 1024. Raises SettingError naming `name`.
    """
    allowed = f"an integer of at least {least}, such as 2048, 8k (8,000) or 128Ki (131,072)"
    match = re.fullmatch(_NUMBER, text.strip(), re.ASCII) if len(text) < 100 else None
    if match is None or match[3] not in SUFFIXES:
        raise SettingError(f"{name} is {shorten(text)!r}; it must be {allowed}")
    whole, fraction, suffix = match[1].replace(",", "").replace("_", ""), match[2] or "", match[3]
    denominator: int = 10 ** len(fraction)
    value, rest = divmod(int(whole + fraction) * SUFFIXES[suffix], denominator)
    if rest or value < least:
        raise SettingError(f"{name} is {text.strip()}; it must be {allowed}")
    if value > LARGEST:
        raise SettingError(f"{name} is {shorten(text)}; it must be an integer of at most 10^30")
    return value


_DECIMAL = r"([0-9]{1,40}|[0-9]{1,3}(?:,[0-9]{3}){1,12})(\.[0-9]{1,20})?(?:[eE]([+-]?[0-9]{1,2}))?\s*([A-Za-z]*|%)"


def parse_number(text: str, name: str, percent: bool = False) -> int | float:
    """The number above 0 that `60000`, `60k`, `2.5` or `3.8e25` stands for, an int where it is whole.

    k, M, G or B, T are powers of 1000; with `percent`, 40% is 0.4. Raises SettingError naming `name`.
    """
    match = re.fullmatch(_DECIMAL, text.strip(), re.ASCII)
    known = {**SUFFIXES, **({"%": 1} if percent else {})}
    value, divisor = 0, 1
    if match is not None and match[4] in known:
        digits_behind = (match[2] or ".").removeprefix(".")
        power = int(match[3] or 0)
        value = int(match[1].replace(",", "") + digits_behind) * _tens(max(0, power)) * known[match[4]]
        divisor = _tens(len(digits_behind) + max(0, -power) + (2 if match[4] == "%" else 0))
    if match is None or not 0 < value <= LARGEST * divisor:
        example = "0.4 or 40%" if percent else "2.5, 60k or 3.8e25"
        raise SettingError(f"{name} is {shorten(text)!r}; it must be a number above 0, such as {example}")
    return value // divisor if value % divisor == 0 else value / divisor


def _tens(power: int) -> int:
    """10 to a power."""
    return int("1" + "0" * power)


def shorten(text: str, width: int = 60) -> str:
    """A text of one line, at most `width` long, every character printable."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= width else clean[: width - 1] + "…"


def digits(value: Size) -> str:
    """An exact figure with separators: 8,030,261,248."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def plural(value: Size, noun: str) -> str:
    """1 token, 2,048 tokens."""
    return f"{digits(value)} {noun}{'' if value == 1 else 's'}"


def plain(value: Size) -> str:
    """A decimal to four significant digits, an integer with separators."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _scaled(value: Size, base: int, names: Sequence[str]) -> tuple[str, str]:
    """Four significant digits and the prefix; a value beyond the last prefix in powers of ten."""
    if value < base:
        return (str(value) if isinstance(value, int) else f"{value:.4g}"), ""
    step, scaled = 0, float(value)
    while scaled >= base * (1 - 5e-5) and step < len(names):
        step, scaled = step + 1, scaled / base
    if step >= len(names):
        return f"{float(value):.3e}", ""
    decimals = 3 if scaled < 9.9995 else 2 if scaled < 99.995 else 1 if scaled < 999.95 else 0
    return f"{scaled:.{decimals}f}", names[step]


def short(value: Size) -> str:
    """A count: 8.030 B for 8,030,261,248."""
    number, prefix = _scaled(value, 1000, _SHORT)
    return f"{number} {prefix}".rstrip()


def flop(value: Size) -> str:
    """FLOPs: 16.08 GFLOP."""
    number, prefix = _scaled(value, 1000, _PREFIXES)
    return f"{number} {prefix}FLOP"


def decimal_bytes(value: Size) -> str:
    """Bytes in powers of 1000: 16.06 GB."""
    number, prefix = _scaled(value, 1000, _PREFIXES)
    return f"{number} {prefix}B"


def binary_bytes(value: Size) -> str:
    """Bytes in powers of 1024: 14.96 GiB."""
    number, prefix = _scaled(value, 1024, _BINARY)
    return f"{number} {prefix}B"


def share(part: Size, whole: Size) -> str:
    """A share: 6.7 %; nothing of nothing is no share."""
    if not whole:
        return ""
    percent = 100 * part / whole
    return f"{percent:.1f} %" if percent >= 0.05 or not part else "<0.1 %"


def ratio(a: Size, b: Size) -> str:
    """How many times b is in a: 0.998."""
    return f"{a / b:.3f}" if b else "–"


def times(a: Size, b: Size) -> str:
    """How many times b is in a, in words and to four digits: 4.530 times."""
    held = a / b
    return f"{held:#.4g} times" if held < 999.95 else f"{plain(held)} times"


def layer_ranges(indices: Sequence[int]) -> str:
    """0-2, 5, or every step: 0, 2, … 30."""
    if not indices:
        return ""
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    if step > 1 and len(indices) > 2 and list(indices) == list(range(indices[0], indices[-1] + 1, step)):
        return f"{indices[0]}, {indices[1]}, … {indices[-1]}"
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][-1] == index - 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ", ".join("–".join(map(str, run)) for run in runs)
