"""The comparing helper itself, and the plainest families."""

from __future__ import annotations

import pytest
from execution.families import CAUSAL
from execution.twins import agree, same_logits, torch

PLAIN = {name: CAUSAL[name] for name in ("gpt2", "llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe")}


def test_wrong_logits_are_told() -> None:
    right = torch.linspace(-1, 1, 30).reshape(1, 3, 10)
    agree(right.clone(), right)
    with pytest.raises(AssertionError, match="differ by"):
        agree(right + 3e-5, right)
    with pytest.raises(AssertionError, match="next to zero"):
        agree(right * 0, right * 0)
    with pytest.raises(AssertionError, match="against"):
        agree(right[:, :2], right)


@pytest.mark.parametrize("model_type", PLAIN)
def test_logits(model_type: str) -> None:
    same_logits({"model_type": model_type, **PLAIN[model_type]})
