"""Well-known models by name: descriptions that come with the package, each with the source of its facts."""

from __future__ import annotations

import os
from typing import Any

from assay.errors import UnknownModel
from assay.sources.descriptions import parse, read_table
from assay.spec import Model

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "presets")


def presets() -> list[tuple[str, str]]:
    """(name, path) of every preset, sorted by name."""
    names = (file.removesuffix(".toml") for file in os.listdir(FOLDER) if file.endswith(".toml"))
    return [(name, os.path.join(FOLDER, f"{name}.toml")) for name in sorted(names)]


def is_preset(name: str) -> bool:
    """True where a preset has the name; no folder is listed."""
    plain = not {"/", "\\", os.sep} & set(name) and not name.startswith(".")
    return plain and os.path.isfile(os.path.join(FOLDER, f"{name}.toml"))


def table(name: str) -> dict[str, Any]:
    """The tables of a preset. Raises UnknownModel with the nearest names."""
    if not is_preset(name):
        import difflib

        near = difflib.get_close_matches(name, [known for known, _ in presets()], 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`assay models` lists them"
        raise UnknownModel(f"{name!r} is no preset; {hint}")
    with open(os.path.join(FOLDER, f"{name}.toml"), encoding="utf-8") as file:
        return parse(file.read(), f"{name}.toml")


def read_preset(name: str) -> Model:
    """The model of a preset. Raises UnknownModel."""
    return read_table(table(name), f"{name}.toml", name)
