"""A step of training walked through in part: as the whole one."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.studies.steps import Step, step

# --- one step, walked through in part ---

SAME = ("saved", "passing", "gradients", "inputs", "in flight")
FOLDED = "llama-3-8b gemma-2-9b mixtral-8x7b deepseek-v2-lite llama-4-scout t5-3b gpt-2 mamba-130m"
ASKED: list[dict[str, Any]] = [
    {},
    {"recompute": "layer"},
    {"recompute": "attention", "attention": "plain", "dropout": 0.1},
    {"precision": "autocast"},
    {"zero": 2, "accumulation": 2, "in_flight": 3},
    {"logits_chunk": 100, "policy": "ours"},
]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in ("gpt-2", "mamba-130m") else pytest.mark.slow) for n in FOLDED.split()]
)
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: ", ".join(map(str, asked.values())) or "plain")
def test_a_step_of_fewer_layers_is_the_same(name: str, asked: dict[str, Any]) -> None:
    model = assay.load(name)

    def peak(made: Step) -> int:
        return int(max(sum(size for part, size in m.parts.items() if part in SAME) for m in made.moments))

    folded, whole = (step(model, 2, 256, fold=fold, workspace=0, **asked) for fold in (True, False))
    every = {m.name: m.parts for m in whole.moments}
    assert len(folded.moments) < len(whole.moments)
    for moment in folded.moments:
        for part in SAME:
            assert moment.parts.get(part) == every[moment.name].get(part), (moment.name, part)
    assert peak(folded) == peak(whole)
    assert folded.saved == whole.saved
