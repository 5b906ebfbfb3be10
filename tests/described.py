"""Descriptions in tests: what of two models must be equal where they are one architecture."""

from __future__ import annotations

from typing import Any

from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.descriptions import read_description
from assay.spec import Model


def described(text: str) -> Model:
    return read_description(text, "mine.toml", "mine")


def structure(model: Model) -> dict[int | str, list[tuple[Any, ...]]]:
    """The ops of every layer with their operands and parts, without the constants that change values alone."""
    return {
        key: [(op.name, op.kind, op.inputs, op.axes, op.part) for op in segment.block.ops]
        for segment in model.segments
        for key in (segment.layers or (segment.name,))
    }


def ledger(model: Model) -> set[tuple[Any, ...]]:
    """Path, shape, layers and buffer of every stored tensor."""
    return {(entry.path, entry.shape, entry.layers, entry.buffer) for entry in tensors(model)}


def figures(model: Model) -> list[tuple[Any, ...]]:
    """Parameters, FLOPs and cache in several settings and conventions."""
    past = 0 if "past" not in model.settings else 300 if model.positions is None else 10
    settings: list[dict[str, Any]] = [
        {"tokens": 1},
        {"tokens": 50, "past": past},
        {"tokens": 50, "past": past, "convention": "scalar"},
        {"tokens": 50, "past": past, "convention": "causal", "batch": 3},
    ]
    counted = [count(model, cache="bf16", **setting) for setting in settings]
    return [(one.parameters, one.flops, one.cache) for one in counted]
