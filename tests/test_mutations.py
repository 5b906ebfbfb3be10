"""Each size of ten configs moved by one step, against the public implementation built live.

No figure is stored here or in the package: what is compared is made anew by both sides. Every tensor, the total, and
the FLOPs of a short prefill must follow each size; a size that is read and not used would show.
"""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, needs_library

from assay.readings.count import count
from assay.sources.huggingface import read_config

pytestmark = needs_library

Config = dict[str, Any]

GROUPED: Config = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
STEPS: Config = {  # the next valid value of each size
    "vocab_size": 65,
    "hidden_size": 40,
    "intermediate_size": 49,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}
HEADED = {**STEPS, "hidden_size": 33, "num_attention_heads": 6, "head_dim": 10}

# a small config of each, and where each of its sizes goes next
CASES: dict[str, tuple[Config, Config]] = {
    "llama": (GROUPED, {**STEPS, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    "gpt2": (
        {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40},
        {"vocab_size": 65, "n_embd": 36, "n_layer": 3, "n_head": 8, "n_positions": 41, "n_inner": 50},
    ),
    "opt": (
        {
            "vocab_size": 64,
            "hidden_size": 32,
            "ffn_dim": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 40,
            "word_embed_proj_dim": 32,
        },
        {
            "vocab_size": 65,
            "ffn_dim": 49,
            "num_hidden_layers": 3,
            "num_attention_heads": 8,
            "max_position_embeddings": 41,
            "word_embed_proj_dim": 31,
        },
    ),
    "gpt_neox": (
        {k: v for k, v in GROUPED.items() if k != "num_key_value_heads"},
        {k: v for k, v in STEPS.items() if k != "num_key_value_heads"},
    ),
    "qwen3": ({**GROUPED, "head_dim": 8}, HEADED),
    "gemma2": ({**GROUPED, "head_dim": 8, "sliding_window": 5}, {**STEPS, "head_dim": 10, "sliding_window": 6}),
    "olmo2": (GROUPED, STEPS),
    "mixtral": (
        {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
        {**STEPS, "num_local_experts": 5, "num_experts_per_tok": 3},
    ),
    "qwen2_moe": (
        {
            **GROUPED,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "shared_expert_intermediate_size": 40,
            "decoder_sparse_step": 1,
        },
        {
            **{k: v for k, v in STEPS.items() if k != "intermediate_size"},
            "num_experts": 5,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 25,
            "shared_expert_intermediate_size": 41,
            "decoder_sparse_step": 2,
        },
    ),
    "gpt_oss": (
        {**GROUPED, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5},
        {**HEADED, "num_local_experts": 5, "num_experts_per_tok": 3, "sliding_window": 6},
    ),
}

MOVES = [(family, key) for family, (_, steps) in CASES.items() for key in steps]


def figures(config: Config) -> tuple[int, ...]:
    """Parameters, bytes of cache, visible FLOPs and scalar work: how a width is split into heads changes the last."""
    model = read_config(config, "config", "model")
    causal, scalar = (count(model, tokens=12, convention=name) for name in ("causal", "scalar"))
    return causal.parameters.total, causal.cache.bytes, causal.flops.total, scalar.flops.total


@pytest.mark.parametrize("family", CASES)
def test_the_small_config(family: str) -> None:
    check_against_library({"model_type": family, **CASES[family][0]}, tokens=12)


@pytest.mark.parametrize(("family", "key"), MOVES)
def test_one_size_moved(family: str, key: str) -> None:
    config, steps = CASES[family]
    before = {"model_type": family, **config}
    after = {**before, key: steps[key]}
    check_against_library(after, tokens=12)
    assert figures(after) != figures(before)


def test_there_are_ten() -> None:
    assert len(CASES) == 10
    assert all(steps.items() - config.items() == steps.items() for config, steps in CASES.values())
