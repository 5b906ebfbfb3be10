"""Well-known models by name: descriptions that come with the package, each with the source of its facts."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
        raise UnknownModel(f"{name!r} is no preset{_near(name)}")
    with open(os.path.join(FOLDER, f"{name}.toml"), encoding="utf-8") as file:
        return parse(file.read(), f"{name}.toml")


def find(words: Sequence[str]) -> list[str]:
    """The names of the presets that every word is found in: in the name, the title, the family, or as the kind.

    Raises UnknownModel with the nearest names where there are none.
    """
    names = [name for name, _ in presets()]
    if not words:
        return names
    found = [name for name in names if _fits(name, words)]
    if not found:
        raise UnknownModel(
            f"no preset has {' and '.join(map(repr, words))} in its name, family or kind{_near(words[0])}"
        )
    return found


def _fits(name: str, words: Sequence[str]) -> bool:
    data = table(name)
    names = data.get("names", "")
    family = names.get("like", "") if isinstance(names, dict) else names
    kind = data.get("kind", "encoder-decoder" if "encoder" in data or "decoder" in data else "decoder")
    said = (name, data["name"].casefold(), family.casefold())
    return all(word == kind or any(word in text for text in said) for word in map(str.casefold, words))


def _near(word: str) -> str:
    import difflib

    near = difflib.get_close_matches(word.casefold(), [known for known, _ in presets()], 3)
    return f"; did you mean {' or '.join(near)}?" if near else "; `assay models` lists them"


def read_preset(name: str, cls: str | None = None) -> Model:
    """The model of a preset, read as a class. Raises UnknownModel, SettingError."""
    return read_table(table(name), f"{name}.toml", name, cls)
