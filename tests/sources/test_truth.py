"""Every recorded config of a known family against the public implementation's figures, to the unit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError
from assay.readings.count import Count, count
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config
from assay.spec import Model

TRUTH = Path(__file__).resolve().parents[3] / "shared" / "truth"

# configs of known families that are refused, with the reason
REFUSED: dict[str, str] = {
    # the class's own default: without a number of chosen experts no token has a way through the layer
    "default--deepseek_v2": "num_experts_per_tok is null; it must be an integer of at least 1",
}

# recorded figures that are not the architecture's: (config, figure) -> ours, with the hand sum beside it
CORRECTED: dict[tuple[str, str], int] = {
    # the correction of AFMoE's router is named mlp.expert_bias: 31 layers of 64 are the router's, not the dense MLP's
    ("default--afmoe", "parameters of mlp"): 3 * 2048 * 6144,
    ("default--afmoe", "parameters of router"): 31 * (2048 * 64 + 64),
    # JetMoE's experts are named mlp.input_linear and mlp.output_linear; its attention has a router of its own
    ("default--jetmoe", "parameters of mlp"): 0,
    ("default--jetmoe", "parameters of experts"): 12 * (8 * 3 * 2048 * 5632 + 2048),
    ("default--jetmoe", "parameters of router"): 12 * 2 * 2048 * 8,
    ("default--jetmoe", "parameters of attention"): 12 * (8 * 2 * 2048 * 2048 + 2 * 2048 * 2048 + 2048),
}


def recorded() -> Iterator[str]:
    """Names of the recorded configs of known families that the library could build."""
    if not TRUTH.is_dir():
        return
    for name, figures in json.loads((TRUTH / "truth.json").read_text()).items():
        if figures.get("built") and figures["model_type"] in FAMILIES:
            yield name


@lru_cache(maxsize=1)
def truth() -> dict[str, Any]:
    """The recorded figures by the config's name."""
    found: dict[str, Any] = json.loads((TRUTH / "truth.json").read_text())
    return found


def config(name: str) -> dict[str, Any]:
    """A recorded config.json."""
    found: dict[str, Any] = json.loads((TRUTH / "configs" / f"{name}.json").read_text())
    return found


def test_truth_is_there() -> None:
    if not TRUTH.is_dir():
        pytest.skip(f"{TRUTH} is absent: the recorded configs are not part of the project")
    assert len(list(recorded())) > 20


def test_tables_name_recorded_configs() -> None:
    if not TRUTH.is_dir():
        pytest.skip(f"{TRUTH} is absent: the recorded configs are not part of the project")
    assert set(REFUSED) | {name for name, _ in CORRECTED} <= set(recorded())


def figures(name: str, model: Model) -> Iterator[tuple[str, int, int]]:
    """(figure, ours, theirs) of everything that was recorded of a config."""
    said = truth()[name]

    def row(figure: str, ours: object, theirs: int) -> tuple[str, int, int]:
        assert isinstance(ours, int), f"{figure} is {ours!r}, no integer"
        return figure, ours, CORRECTED.get((name, figure), theirs)

    def counted(tokens: int, past: int = 0) -> Count:
        return count(model, tokens=tokens, past=past, cache="bf16")

    one = counted(1).parameters
    yield row("parameters", one.total, said["params"])
    yield row("buffers", one.buffers, said.get("buffers", 0))
    groups = {part: n for part, n in said["params_by_group"].items() if n}
    if not groups.keys() & {"ssm_conv", "other"}:
        ours = {part: n for part, n in one.by_part.items() if n}
        for part in sorted(groups.keys() | ours.keys()):
            yield row(f"parameters of {part}", ours.get(part, 0), groups.get(part, 0))
    if said.get("flops_clean"):
        for n, flops in said.get("flops", {}).items():
            yield row(f"flops[{n}]", counted(int(n)).flops.total, flops)
        if said.get("flops_decode_1tok_ctx256"):
            yield row("flops of a decode step", counted(1, 256).flops.total, said["flops_decode_1tok_ctx256"])
    for n, elements in (said.get("cache_read_elems") or {}).items():
        yield row(f"cache[{n}]", counted(int(n)).cache.bytes, 2 * elements)


@pytest.mark.parametrize("name", list(recorded()))
def test_recorded_figures(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(AssayError, match=REFUSED[name]):
            read_config(config(name), name, name)
        return
    model = read_config(config(name), name, name)
    off = [
        f"{figure}: ours {ours}, recorded {theirs}" for figure, ours, theirs in figures(name, model) if ours != theirs
    ]
    assert not off, "\n".join(off)
