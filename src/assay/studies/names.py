"""Columns by their names, by groups of them, and by the ends of their names."""

from __future__ import annotations

from collections.abc import Collection

from assay.errors import SettingError

MOST = 12  # columns that a message names
WHOLE = 2**53  # below which a float64 holds every integer


def whole_name(name: str, columns: Collection[str]) -> str:
    """A column by its name or by the end of it. Raises SettingError."""
    found = [name] if name in columns else _ending(name, columns)
    if len(found) == 1:
        return found[0]
    raise _unknown(name, columns, found)


def chosen(wanted: Collection[str] | None, columns: Collection[str]) -> list[str]:
    """The columns that are wanted, all where that is None: whole names, groups such as `flops`, or ends of names.

    Raises SettingError for what is no column.
    """
    if wanted is None:
        return list(columns)
    found: dict[str, None] = {}
    for name in wanted:
        some = named(name, columns)
        if not some:
            raise _unknown(name, columns, _ending(name, columns))
        found |= dict.fromkeys(some)
    return list(found)


def named(name: str, columns: Collection[str]) -> list[str]:
    """What one word names, [] where that is nothing, or more than one thing."""
    if name in columns:
        return [name]
    group = [column for column in columns if column.startswith(f"{name}.")]
    if group:
        return group
    ends = _ending(name, columns)
    return ends if len(ends) == 1 else []


def _ending(name: str, columns: Collection[str]) -> list[str]:
    """Columns that end so; a size that is set comes first, then a setting, before figures."""
    found = [column for column in columns if column.endswith(f".{name}")]
    return next(([first] for first in (f"set.{name}", f"setting.{name}") if first in found), found)


def _unknown(name: str, columns: Collection[str], ends: list[str]) -> SettingError:
    if ends:
        return SettingError(f"{name} is the end of several columns: {', '.join(ends)}")
    from difflib import get_close_matches

    near = get_close_matches(name, [*columns, *(column.rpartition(".")[2] for column in columns)], 3)
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else _some(columns)
    return SettingError(f"{name or 'nothing'} is no column of this sweep; {hint}")


def _some(columns: Collection[str]) -> str:
    """The first columns, and how many more there are."""
    first, more = list(columns)[:MOST], len(columns) - MOST
    return f"known: {', '.join(first)}{f' and {more} more' if more > 0 else ''}"
