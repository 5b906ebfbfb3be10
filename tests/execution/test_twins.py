"""The comparing helper itself, and the plainest families."""

from __future__ import annotations

from typing import Any

import pytest
from execution.twins import agree, same_logits, torch

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 101,
}
PLAIN: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 101},
    "llama": SMALL,
    "mistral": SMALL | {"sliding_window": 5},
    "qwen2": SMALL,
    "qwen3": SMALL | {"head_dim": 16},
    "mixtral": SMALL | {"num_local_experts": 4},
    "qwen3_moe": SMALL | {"head_dim": 8, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
}


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
