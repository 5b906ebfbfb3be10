"""Descriptions in tests: what of two models must be equal where they are one architecture."""

from __future__ import annotations

from typing import Any

from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.descriptions import read_description
from assay.sources.huggingface import read_config
from assay.spec import Model

SMALLEST = """\
vocab = 1000
width = 64
layers = 6

[attention]
heads = 8
kv_heads = 2

[mlp]
width = 96
"""

# of most of the configs that a description is compared with
SIZES = {"vocab_size": 500, "hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 100}


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


IDLE = {"rope_theta", "partial_rotary_factor", "mrope_interleaved", "mrope_section"}  # said elsewhere, or of images


def constants(model: Model) -> set[tuple[Any, ...]]:
    """What changes values alone, op by op; a rotation's scaling without its order and the older word for its type."""
    found = set()
    for segment in model.segments:
        for key in segment.layers or (segment.name,):
            for op in segment.block.ops:
                for name, value in op.attrs:
                    if name == "scaling":
                        said = {"rope_type" if k == "type" else k: v for k, v in value if k not in IDLE}
                        value = tuple(sorted(said.items())) if said["rope_type"] != "default" else None
                    if name in ("groups", "keep_groups") and value == 1:  # one group of all experts
                        value = None
                    if value is not None:
                        found.add((key, op.name, op.kind, name, value))
    return found


def said(model: Model) -> set[tuple[Any, ...]]:
    """Which constants are said, whatever they are: but of windows and scalings, which are another release's or none."""
    found = {one[:4] for one in constants(model) if one[3] not in ("scaling", "window")}
    return {one for one in found if one[1:] != ("s", "scale", "by")}  # a scaling may change it


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


SAID = "layers width positions settings sight cls source_tokens source_positions source_stride".split()


def same(case: str, config: dict[str, Any], text: str) -> None:
    """Raise AssertionError unless a description is the model of a config; the model_type stands first in its name."""
    mine = described(text)
    theirs = read_config({"model_type": case.split(",")[0], **config}, "config.json", "theirs")
    assert structure(mine) == structure(theirs)
    assert ledger(mine) == ledger(theirs)
    assert figures(mine) == figures(theirs)
    for one in SAID:
        assert getattr(mine, one) == getattr(theirs, one), one
