"""The catalogue: chips by name, read when they are asked for."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from assay.errors import HardwareError
from assay.hardware.chip import Chip, Source

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chips")
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "int8", "fp4", "int4")  # that rates are of
FIGURES = ("memory", "bandwidth", "rates", "interconnect", "power")
_MAKERS = (
    "nvidia",
    "tesla",
    "geforce",
    "amd",
    "instinct",
    "google",
    "cloud",
    "aws",
    "intel",
)  # words left out of names


def chip(name: str) -> Chip:
    """The chip of a name: as it is listed, as people say it, or as PyTorch's device properties have it.

    Raises HardwareError with the nearest names.
    """
    wanted = _plain(str(name))
    for listed in _names():
        if _plain(listed) == wanted:
            return read(listed)
    for one in chips():
        if any(_plain(alias) == wanted for alias in one.aliases):
            return one
    raise HardwareError(f"no GPU or other chip is called {str(name)[:60]!r}{_near(wanted)}")


def chips() -> tuple[Chip, ...]:
    """Every chip, sorted by name."""
    return tuple(read(name) for name in _names())


@lru_cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(file.removesuffix(".toml") for file in os.listdir(FOLDER) if file.endswith(".toml")))


@lru_cache
def read(name: str) -> Chip:
    """The chip of a file of the catalogue."""
    import tomllib

    with open(os.path.join(FOLDER, f"{name}.toml"), "rb") as file:
        return made(name, tomllib.load(file))


def made(name: str, data: dict[str, Any]) -> Chip:
    """A chip from the tables of its file. Raises HardwareError for a figure without a source."""
    sources = tuple(
        Source(source["title"], source["address"], tuple(source["gives"]), source.get("copy"))
        for source in data.pop("sources", ())
    )
    given = {figure for source in sources for figure in source.gives}
    for figure in FIGURES:
        if figure in data and figure not in given:
            raise HardwareError(f"{name}.toml: {figure} has no source")
    aliases, unverified = tuple(data.pop("aliases", ())), tuple(data.pop("unverified", ()))
    return Chip(name=name, sources=sources, aliases=aliases, unverified=unverified, **data)


def _plain(name: str) -> str:
    """A name without what people write differently: case, blanks, hyphens, makers."""
    words = name.casefold().replace("-", " ").replace("_", " ").split()
    return "".join(word for word in words if word not in _MAKERS) or "".join(words)


def _near(wanted: str) -> str:
    import difflib

    known = {_plain(said): one.name for one in chips() for said in (one.name, *one.aliases)}
    close = difflib.get_close_matches(wanted[:100], known, 5, 0.5)
    close = close or [said for said in known if wanted and said[0] == wanted[0]]
    near = list(dict.fromkeys(known[said] for said in close))[:3]
    return f"; did you mean {' or '.join(near)}?" if near else "; `assay gpus` lists them"
