"""The same architecture with other sizes: keys of a description or a config given anew before it is read.

A key is written with its tables: `width`, `attention.heads`, `layer.sparse.moe.experts`, `text_config.hidden_size`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import SettingError
from assay.records import replace
from assay.size import is_integer
from assay.sources.shown import name, short
from assay.spec import Model

Sizes = Mapping[str, int]


def said(sizes: Sizes) -> str:
    """width 4096, mlp.width 14336."""
    return ", ".join(f"{name(key)} {short(value)}" for key, value in sizes.items())


def titled(what: str, sizes: Sizes) -> str:
    """What a model, or the file behind it, is called with other sizes."""
    return f"{what} with {said(sizes)}" if sizes else what


def described(data: Mapping[str, Any], sizes: Sizes, where: str) -> dict[str, Any]:
    """A description with other sizes; a key that it leaves to its default may be given. Raises SettingError."""
    made = dict(data)
    for key, value in sizes.items():
        _check(key, value, where)
        *tables, last = key.split(".")
        held = made
        for table in tables:
            below = held.get(table, {})
            if not isinstance(below, dict):
                raise SettingError(f"{where}: {name(key)} cannot be set: {name(table)} is {short(below)}, not a table")
            held[table] = held = dict(below)
        if isinstance(held.get(last), dict | list):
            raise SettingError(f"{where}: {name(key)} cannot be set: it is no size")
        held[last] = value
    return made


def configured(data: Mapping[str, Any], sizes: Sizes, where: str) -> dict[str, Any]:
    """A config with other sizes, each in the place of an integer that it holds. Raises SettingError."""
    made = dict(data)
    for key, value in sizes.items():
        _check(key, value, where)
        *tables, last = key.split(".")
        held = made
        for table in tables:
            below = held.get(table)
            if not isinstance(below, dict):
                raise SettingError(f"{where}: {name(key)} cannot be set: there is no object {name(table)}")
            held[table] = held = dict(below)
        if not is_integer(held.get(last)):
            why = (
                f"it is {short(held[last])}, no integer" if last in held else f"there is no such key{_near(last, held)}"
            )
            raise SettingError(f"{where}: {name(key)} cannot be set: {why}")
        held[last] = value
    return made


def _check(key: object, value: object, where: str) -> None:
    if not isinstance(key, str) or not all(key.split(".")):
        raise SettingError(f"{where}: {short(key)} is no key; a key is a word such as width or attention.heads")
    if not is_integer(value) or value < 0:
        raise SettingError(f"{where}: {name(key)} cannot be set to {short(value)}; it must be an integer")


def _near(key: str, held: Mapping[str, Any]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, [known for known, value in held.items() if is_integer(value)], 1)
    return f"; did you mean {near[0]}?" if near else ""


def checked(model: Model, sizes: Sizes) -> Model:
    """The model, with a note of what is not as its source has it. Raises SettingError for a size that nobody read."""
    idle = [key for key in sizes if key in model.ignored]
    if idle:
        raise SettingError(f"{model.source}: {name(idle[0])} cannot be set: it changes no figure")
    if not sizes:
        return model
    return replace(
        model, name=titled(model.name, sizes), notes=(*model.notes, f"sizes set, not of the source: {said(sizes)}")
    )
