"""Sizes that single layers have of their own, and the layers whose keys and values others use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from assay.sources.config import Config, Read

Own = tuple[tuple[str, Any], ...]


def per_layer(c: Config, layers: int, allowed: Collection[str]) -> list[Own] | None:
    """What `per_layer_config` says of each layer, under the `allowed` keys; None where it is absent or null."""
    table = c.table("per_layer_config")
    if table is None:
        return None
    given = {key.lstrip("0") or "0": value for key, value in table.items()}
    for key, value in given.items():
        if not key.isdigit() or int(key) >= layers or not isinstance(value, dict) or set(value) - set(allowed):
            c.fail(
                "per_layer_config", f"an object of layers, 0 to {layers - 1}, of objects with keys {', '.join(allowed)}"
            )
    of = c.path("per_layer_config")
    return [
        tuple(sorted((name, Read(size, f"{of}.*.{name}") if type(size) is int else size) for name, size in own.items()))
        for own in (given.get(str(i), {}) for i in range(layers))
    ]


def overlaid(c: Config, own: Own) -> Config:
    """The config as a layer with sizes of its own sees it; what is read of it counts as read."""
    if not own:
        return c
    inner = Config({**c.data, **dict(own)}, c.where, c.prefix)
    inner.used, inner.written = c.used, c.written
    inner.given = (*c.given, *dict(own))
    inner.among(c)
    return inner


def reusing(c: Config, kinds: Sequence[str], default: int, key: str = "num_kv_shared_layers") -> list[bool]:
    """Which layers use the keys and values of the last layer of their kind that has its own: the last so many."""
    n = len(kinds)
    shared = c.size(key, default, least=0)
    if shared > n:
        c.fail(key, f"at most num_hidden_layers, {n}")
    first = n - shared
    if shared and not set(kinds[first:]) <= set(kinds[:first]):
        c.fail(key, "so few that every kind of layer that shares is among those that do not")
    return [i >= first for i in range(n)]
