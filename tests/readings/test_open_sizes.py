"""Axes that a block leaves open are named where it is read; a model leaves none open, and says what can be set."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import assay

ASKED: dict[str, dict[str, Any]] = {  # what a function needs beside its model
    "train": {"tokens": 10**9},
    "regimes": {"contexts": [8]},
    "sharded": {"plan": assay.Plan()},
}
READINGS = [
    name
    for name in assay.__all__
    if inspect.isfunction(found := getattr(assay, name))
    and any(
        p.name in ("sizes", "asked") and p.kind is p.VAR_KEYWORD for p in inspect.signature(found).parameters.values()
    )
    and next(iter(inspect.signature(found).parameters)) == "model"
]


def test_every_reading_of_a_model_or_a_block_is_found() -> None:
    named = {"build", "count", "draw", "explain", "memory", "states", "tensors", "train", "training", "training_memory"}
    assert named <= set(READINGS)


@pytest.mark.parametrize("name", READINGS)
def test_a_model_has_no_open_sizes(name: str) -> None:
    if name == "build":
        pytest.importorskip("torch")
    if name == "explain":
        pytest.importorskip("sympy")
    reading: Callable[..., Any] = getattr(assay, name)
    with pytest.raises(assay.SettingError, match=r"^a model has no open sizes; widht cannot be set(; what can: |$)"):
        reading(assay.load("gpt-2"), widht=3, **ASKED.get(name, {}))
