"""The list of presets as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.readings.count import Count
from assay.report.table import WIDTH, Style, table
from assay.report.units import decimal_bytes, short, shorten
from assay.spec import Model

Listed = Sequence[tuple[str, Model, Count]]


GROUPS = ("decoders", "decoders with recurrent layers", "encoders", "encoder-decoders", "models of images")


def kind(model: Model) -> str:
    """What a model is: decoder, encoder, encoder-decoder or vision."""
    if model.sight is not None and model.sight.alone is not None:
        return "vision"
    return "encoder-decoder" if "source" in model.settings else "decoder" if "past" in model.settings else "encoder"


def _group(model: Model, counted: Count) -> str:
    """The heading that a preset stands under."""
    plain = {"decoder": 0, "encoder": 2, "encoder-decoder": 3, "vision": 4}[kind(model)]
    return GROUPS[1 if plain == 0 and counted.parameters.by_part.get("mixer") else plain]


def report(listed: Listed, style: Style) -> list[str]:
    """A row a preset, by kind: its name, what it is, its main sizes."""
    rows = [
        [
            name,
            shorten(model.family or "–", 20),
            short(counted.parameters.total),
            short(counted.parameters.active) if counted.parameters.active != counted.parameters.total else "",
            f"{model.layers:,}",
            f"{model.width:,}",
            f"{model.trained:,}" if model.trained else "–",
            decimal_bytes(counted.cache.marginal_bytes_per_token) if "past" in model.settings else "–",
        ]
        for name, model, counted in listed
    ]
    head = ["preset", "family", "parameters", "active", "layers", "width", "context", "cache/token"]
    align = "<<>>>>>>"
    if max(map(len, table(rows, align, head, indent="")), default=0) > WIDTH:  # no room for the family
        rows, head, align = [row[:1] + row[2:] for row in rows], head[:1] + head[2:], align[1:]
    first, *lines = table(rows, align, head, style, indent="")
    groups = [_group(model, counted) for _, model, counted in listed]
    made = [first]
    for title in GROUPS:
        own = [line for line, group in zip(lines, groups, strict=True) if group == title]
        made += ["", style.bold(title), *own] if own else []
    many = f"{len(rows)} presets" if len(rows) != 1 else "1 preset"
    return [*made, "", f"{many}; `assay NAME` prints a report"]


def document(version: str, listed: Listed) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "models": [
            {
                "preset": name,
                "name": model.name,
                "family": model.family,
                "kind": kind(model),
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
