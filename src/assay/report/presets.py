"""The list of presets as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.readings.count import Count
from assay.report.table import WIDTH, Style, table
from assay.report.units import decimal_bytes, short, shorten
from assay.spec import Model

Listed = Sequence[tuple[str, Model, Count]]


def report(listed: Listed, style: Style) -> list[str]:
    """A row a preset: its name, what it is, its main sizes."""
    rows = [
        [
            name,
            shorten(model.family or "–", 20),
            short(counted.parameters.total),
            short(counted.parameters.active) if counted.parameters.active != counted.parameters.total else "",
            f"{model.layers:,}",
            f"{model.width:,}",
            f"{model.trained:,}" if model.trained else "–",
            decimal_bytes(counted.cache.marginal_bytes_per_token),
        ]
        for name, model, counted in listed
    ]
    head = ["preset", "family", "parameters", "active", "layers", "width", "context", "cache/token"]
    align = "<<>>>>>>"
    if max(map(len, table(rows, align, head, indent="")), default=0) > WIDTH:  # no room for the family
        rows, head, align = [row[:1] + row[2:] for row in rows], head[:1] + head[2:], align[1:]
    return [*table(rows, align, head, style, indent=""), "", f"{len(rows)} presets; `assay NAME` prints a report"]


def document(version: str, listed: Listed) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "models": [
            {
                "preset": name,
                "name": model.name,
                "family": model.family,
                "source": model.source,
                "parameters": {"total": counted.parameters.total, "active": counted.parameters.active},
                "layers": model.layers,
                "width": model.width,
                "context": model.trained,
                "marginal_cache_bytes_per_token": counted.cache.marginal_bytes_per_token,
            }
            for name, model, counted in listed
        ],
    }
