"""What the table of a stretched rotation leaves to other keys, and what it changes besides the rotation."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

from assay.blocks import Rope
from assay.records import replace
from assay.sources.config import Config

LENGTH, ORIGINAL = "max_position_embeddings", "original_max_position_embeddings"
PLAIN = ("default", "linear", "proportional")  # the same at any length


def word(table: Mapping[str, Any]) -> Any:
    """The type of a scaling, under today's key or the older one."""
    return table.get("rope_type", table.get("type", "default"))


def stretched(table: Mapping[str, Any], kind: str, longest: int | None, original: int | None = None) -> dict[str, Any]:
    """What is added to the table of a scaling of a kind: the context behind it, and before it where it is known."""
    if kind in PLAIN:
        return {}
    made: dict[str, Any] = {"rope_type": kind}
    if original is not None:
        made[ORIGINAL] = int(original)
    if LENGTH not in table and longest is not None:
        made[LENGTH] = int(longest)
    return made


def within(positions: Rope, longest: int | None) -> Rope:
    """A rotation whose scaling knows the context of its model."""
    table = dict(positions.scaling or ())
    more = stretched(table, word(table), longest)
    return replace(positions, scaling=tuple((table | more).items())) if more else positions


def grown(table: Config, width: int) -> float | None:
    """The scale of scores where the table of a scaling changes it (Peng et al. 2023, YaRN, eq. 22), else None.

    Raises SourceError.
    """
    share, factor = table.number("mscale_all_dim"), table.number("factor")
    if not share or word(table.data) == "default":
        return None
    by = 0.1 * share * log(factor) + 1.0 if factor is not None and factor > 1 else 1.0
    return by * by / sqrt(width)
