"""Families with experts against the public implementation: tensor by tensor, and FLOPs of small configs."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, needs_library, their_flops
from moe_configs import DEFAULTS, KINDS, LLAMA4, MIXED, SIZES, VARIED

from assay.errors import SourceError
from assay.readings.count import count
from assay.sources.huggingface import read_config


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_defaults(model_type: str) -> None:
    check_against_library({"model_type": model_type})


@needs_library
@pytest.mark.parametrize(("model_type", "differs"), VARIED, ids=[f"{t}-{i}" for i, (t, _) in enumerate(VARIED)])
def test_every_option(model_type: str, differs: dict[str, Any]) -> None:
    check_against_library({"model_type": model_type, **SIZES, **differs}, tokens=8)


@needs_library
@pytest.mark.parametrize("differs", [{}, {"moe_layers": [0, 3], "layer_types": None, "attention_chunk_size": None}])
def test_llama4_tensors(differs: dict[str, Any]) -> None:
    check_against_library({**LLAMA4, **differs})


def test_llama4_flops_are_those_of_the_chosen_experts() -> None:
    """The library runs all five experts on every token; a sum by hand of what the two chosen ones do."""
    n, d, h, g, k, f = 8, 32, 4, 2, 12, 24
    attention = 2 * n * d * (2 * h * k + 2 * g * k) + 2 * n * n * h * 2 * k
    dense = 2 * 3 * n * d * 40
    mixture = 2 * n * d * 5 + 2 * 3 * n * d * f * (1 + 2)  # the router; one shared expert and two chosen
    counted = count(read_config(LLAMA4, "config", "model"), tokens=n).flops
    assert counted.total == 4 * attention + 2 * dense + 2 * mixture + 2 * n * d * 96


@needs_library
def test_llama4_library_runs_every_expert() -> None:
    """Why its own count is no witness: it exceeds ours by the three experts that no token passes."""
    n, d, f = 8, 32, 24
    counted = count(read_config(LLAMA4, "config", "model"), tokens=n).flops
    assert their_flops(LLAMA4, n) - counted.total == 2 * (2 * 3 * n * d * f * 3)


BAD: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("mixtral", {"num_experts_per_tok": 9}, "num_experts_per_tok is 9; it must be at most num_local_experts, 8"),
    ("mixtral", {"num_experts": 4, "num_local_experts": 5}, "num_experts is 4 and num_local_experts is 5"),
    ("mixtral", {"num_local_experts": None}, "num_local_experts is null; it must be an integer of at least 1"),
    ("phimoe", {"num_experts_per_tok": 1}, "num_experts_per_tok is 1; it must be 2 for this model_type"),
    ("minimax_m2", {"rotary_dim": 256}, "rotary_dim is 256; it must be at most the width of a head, 128"),
    ("olmoe", {"clip_qkv": -1}, "clip_qkv is -1; it must be a number above 0"),
    ("qwen2_moe", {"layer_types": ["sliding_attention"] * 24}, "use_sliding_window is missing; it must be true where"),
    ("qwen3_moe", {"mlp_only_layers": [-1]}, r"mlp_only_layers is \[-1\]; it must be a list of indices of layers"),
    ("granitemoe_swa", {"layer_rope_theta": [1] * 3}, "layer_rope_theta has 3 items; it must be a list of 32 items"),
    ("glm4_moe", {"head_dim": 64, "n_group": 3}, "n_routed_experts is 128; it must be a multiple of n_group, 3"),
    ("glm4_moe", {"head_dim": 64, "topk_group": 2}, "topk_group is 2; it must be at most n_group, 1"),
    ("glm4_moe", {"head_dim": 64, "n_group": 128}, "n_group is 128; it must be a split into groups of at least 2"),
    ("dots1", {}, "n_routed_experts is missing; it must be an integer of at least 1"),
    ("exaone_moe", {"sliding_window_pattern": "LXG"}, "sliding_window_pattern is 'LXG'; it must be"),
    ("mimo_v2_flash", {"num_attention_heads": 4}, "num_attention_heads is 4; it must be a multiple of swa_num_key_"),
    ("mimo_v2_flash", {"add_full_attention_sink_bias": True}, "add_full_attention_sink_bias is true; it must be false"),
    ("solar_open", {"scoring_func": "softmax"}, "scoring_func is 'softmax'; it must be 'sigmoid'"),
    ("hunyuan_v1_moe", {"moe_topk": [2] * 32}, "moe_topk is .*; it must be a list of 32 items, each an integer from 1"),
    ("laguna", {"gating": False}, "gating is false; it must be true, per-head or per-element"),
    ("laguna", {"num_attention_heads_per_layer": [9] * 40}, "a positive multiple of num_key_value_heads, 8"),
    ("afmoe", {"score_func": "softmax"}, "score_func is 'softmax'; it must be 'sigmoid' or null for this model_type"),
    ("cohere2_moe", {"expert_selection_fn": "top"}, "expert_selection_fn is 'top'; it must be one of sigmoid, softmax"),
    ("llama4_text", {"no_rope_layers": [2] * 48}, "no_rope_layers is .*; it must be a list of 48 items, each 0 or 1"),
    ("jetmoe", {"shared_experts": 1}, "shared_experts is 1: not known for jetmoe, and might change the model"),
)


@pytest.mark.parametrize(("model_type", "keys", "said"), BAD, ids=[f"{t}-{next(iter(k), '')}" for t, k, _ in BAD])
def test_bad_values_are_named(model_type: str, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=f"^config: .*{said}"):
        read_config({"model_type": model_type, **keys}, "config", "model")


def test_older_names_of_one_architecture() -> None:
    """MiMo's own file says by bits, numbers and bases of windowed layers what the library's class derives."""
    today = dict(next(differs for family, differs in VARIED if family == "mimo_v2_flash"))
    older = {k: v for k, v in today.items() if k not in ("layer_types", "mlp_layer_types", "sliding_window")}
    older |= {
        "hybrid_layer_pattern": [int(kind == "sliding_attention") for kind in KINDS],
        "moe_layer_freq": [int(kind == "sparse") for kind in MIXED],
        "sliding_window_size": 3,
        "swa_num_key_value_heads": 4,
        "swa_head_dim": 12,
        "add_swa_attention_sink_bias": True,
    }
    one, other = (
        count(read_config({"model_type": "mimo_v2_flash", **SIZES, **differs}, "config", "model"), tokens=1, past=9)
        for differs in (today, older)
    )
    assert (one.parameters, one.flops, one.cache) == (other.parameters, other.flops, other.cache)


def test_letters_are_a_pattern() -> None:
    """K-EXAONE's letters: L a window, G none, in turn; the last layer has none."""
    small = {"model_type": "exaone_moe", **SIZES, "num_hidden_layers": 7, "sliding_window_pattern": "LLG"}
    kinds: dict[str, set[int]] = {s.name.split(",")[0]: set() for s in read_config(small, "config", "model").segments}
    for segment in read_config(small, "config", "model").segments:
        kinds[segment.name.split(",")[0]] |= set(segment.layers)
    assert kinds["full"] == {2, 5, 6}
    assert kinds["sliding"] == {0, 1, 3, 4}
