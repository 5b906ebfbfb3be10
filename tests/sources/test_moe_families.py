"""Families with experts against the public implementation: tensor by tensor, and FLOPs of small configs."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library, needs_library, their_flops

from assay.errors import SourceError
from assay.readings.count import count
from assay.sources.huggingface import read_config

SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
KINDS = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
MIXED = ["sparse", "dense", "sparse", "dense"]
GROUPS = {
    "n_group": 4,
    "topk_group": 2,
    "num_experts_per_tok": 3,
    "norm_topk_prob": False,
    "routed_scaling_factor": 2.5,
}

# the config class's defaults alone; those that the library cannot build of it are not here
DEFAULTS = (
    "afmoe",
    "aria_text",
    "beam",
    "cohere2_moe",
    "doge",
    "ernie4_5_moe",
    "exaone_moe",
    "flex_olmo",
    "flint",
    "glm4_moe",
    "gpt_oss",
    "granitemoe",
    "granitemoe_swa",
    "granitemoeshared",
    "hy_v3",
    "jetmoe",
    "kolibri1",
    "laguna",
    "llama4_text",
    "mellum",
    "mimo_v2_flash",
    "minimax_m2",
    "mixtral",
    "olmoe",
    "phimoe",
    "qwen2_moe",
    "qwen3_moe",
    "sarvam_moe",
    "solar_open",
)

# small configs with every option turned: (model_type, what differs from SIZES)
VARIED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mixtral", {"num_experts_per_tok": 3, "num_local_experts": 5, "head_dim": 12, "sliding_window": 4}),
    ("mixtral", {"num_experts": 3, "tie_word_embeddings": True, "num_key_value_heads": 4, "hidden_act": "gelu"}),
    ("phimoe", {"num_local_experts": 5, "attention_bias": True, "lm_head_bias": True, "sliding_window": 4}),
    ("minimax_m2", {"num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 16, "rotary_dim": 8}),
    (
        "olmoe",
        {"num_experts": 5, "num_experts_per_tok": 2, "attention_bias": True, "clip_qkv": 3.0, "norm_topk_prob": True},
    ),
    ("flex_olmo", {"num_experts": 5, "num_experts_per_tok": 2, "attention_bias": True, "norm_topk_prob": True}),
    (
        "gpt_oss",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 4, "layer_types": KINDS},
    ),
    (
        "gpt_oss",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "attention_bias": False, "tie_word_embeddings": True},
    ),
    (
        "aria_text",
        {"moe_num_experts": 5, "moe_topk": 3, "moe_num_shared_experts": 3, "attention_bias": True, "mlp_bias": True},
    ),
    ("aria_text", {"moe_num_experts": 4, "head_dim": 12, "hidden_act": "gelu"}),
    (
        "qwen2_moe",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "shared_expert_intermediate_size": 20,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [3],
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 2,
            "qkv_bias": False,
            "norm_topk_prob": True,
        },
    ),
    (
        "qwen3_moe",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [1],
            "use_sliding_window": True,
            "sliding_window": 4,
            "attention_bias": True,
            "head_dim": 12,
        },
    ),
    ("qwen3_moe", {"num_experts": 0}),
    (
        "flint",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "shared_expert_intermediate_size": 20,
            "mlp_only_layers": [2],
            "head_dim": 12,
            "attention_bias": True,
            "sliding_window": 4,
        },
    ),
    (
        "mellum",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "head_dim": 12,
            "attention_bias": True,
            "layer_types": KINDS,
            "mlp_layer_types": MIXED,
            "sliding_window": 4,
        },
    ),
    ("granitemoe", {"num_local_experts": 5, "attention_bias": True, "residual_multiplier": 0.2, "logits_scaling": 8.0}),
    ("granitemoeshared", {"num_local_experts": 5, "shared_intermediate_size": 20, "embedding_multiplier": 12.0}),
    (
        "granitemoe_swa",
        {
            "num_local_experts": 5,
            "shared_intermediate_size": 20,
            "attention_bias": True,
            "sliding_window": 4,
            "layer_rope_theta": [0, 10000.0, 500.0, 0],
        },
    ),
    (
        "glm4_moe",
        {
            **GROUPS,
            "n_routed_experts": 8,
            "n_shared_experts": 2,
            "moe_intermediate_size": 12,
            "first_k_dense_replace": 2,
            "attention_bias": True,
            "use_qk_norm": True,
            "head_dim": 12,
        },
    ),
    (
        "sarvam_moe",
        {
            **GROUPS,
            "num_experts": 8,
            "num_shared_experts": 2,
            "moe_intermediate_size": 12,
            "first_k_dense_replace": 2,
            "use_qkv_bias": True,
            "use_qk_norm": False,
            "head_dim": 12,
        },
    ),
    (
        "solar_open",
        {**GROUPS, "n_routed_experts": 8, "moe_intermediate_size": 12, "attention_bias": True, "head_dim": 12},
    ),
    (
        "dots1",
        {
            **GROUPS,
            "n_routed_experts": 8,
            "n_shared_experts": 2,
            "moe_intermediate_size": 12,
            "first_k_dense_replace": 1,
            "attention_bias": True,
            "head_dim": 12,
            "sliding_window": 4,
            "max_window_layers": 2,
        },
    ),
    (
        "exaone_moe",
        {
            **GROUPS,
            "num_experts": 8,
            "num_shared_experts": 2,
            "moe_intermediate_size": 12,
            "mlp_layer_types": MIXED,
            "head_dim": 12,
            "sliding_window": 4,
            "sliding_window_pattern": 3,
        },
    ),
    ("exaone_moe", {"num_experts": 8, "moe_intermediate_size": 12, "first_k_dense_replace": 3, "layer_types": KINDS}),
    (
        "kolibri1",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "shared_expert_intermediate_size": 20,
            "head_dim": 12,
            "layer_types": KINDS,
            "sliding_window": 4,
            "norm_topk_prob": True,
        },
    ),
    (
        "mimo_v2_flash",
        {
            **GROUPS,
            "n_routed_experts": 8,
            "moe_intermediate_size": 12,
            "mlp_layer_types": MIXED,
            "layer_types": KINDS,
            "sliding_window": 4,
            "head_dim": 12,
            "v_head_dim": 8,
            "attention_bias": True,
            "attention_value_scale": None,
        },
    ),
    (
        "ernie4_5_moe",
        {
            "moe_num_experts": 5,
            "moe_k": 2,
            "moe_num_shared_experts": 3,
            "moe_intermediate_size": 12,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": 2,
            "moe_layer_interval": 2,
            "use_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    ("ernie4_5_moe", {"num_experts": 5, "num_experts_per_tok": 2, "moe_num_shared_experts": 0, "head_dim": 12}),
    (
        "hy_v3",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "num_shared_experts": 2,
            "moe_intermediate_size": 12,
            "mlp_layer_types": MIXED,
            "attention_bias": True,
            "mlp_bias": True,
            "head_dim": 12,
        },
    ),
    ("hunyuan_v1_moe", {"num_experts": 5, "moe_topk": [1, 2, 3, 2], "attention_bias": True, "head_dim": 12}),
    (
        "afmoe",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "num_shared_experts": 3,
            "moe_intermediate_size": 12,
            "num_dense_layers": 2,
            "head_dim": 12,
            "global_attn_every_n_layers": 2,
            "sliding_window": 4,
            "mup_enabled": True,
            "attention_bias": True,
        },
    ),
    (
        "laguna",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
            "shared_expert_intermediate_size": 20,
            "num_attention_heads_per_layer": [4, 2, 6, 4],
            "layer_types": KINDS,
            "mlp_layer_types": MIXED,
            "sliding_window": 4,
            "head_dim": 12,
            "gating": "per-element",
            "attention_bias": True,
            "moe_router_logit_softcapping": 5.0,
        },
    ),
    ("laguna", {"num_experts": 5, "num_experts_per_tok": 2, "gating": "per-head", "head_dim": 12}),
    (
        "beam",
        {
            "num_experts": 8,
            "num_experts_per_tok": 3,
            "n_group": 4,
            "topk_group": 2,
            "moe_intermediate_size": 12,
            "layer_types": KINDS,
            "mlp_layer_types": MIXED,
            "sliding_window": 4,
            "head_dim": 12,
            "attention_bias": True,
            "final_logit_softcapping": None,
        },
    ),
    (
        "cohere2_moe",
        {
            "num_experts": 5,
            "num_experts_per_tok": 3,
            "num_shared_experts": 2,
            "shared_expert_combination_strategy": "sum",
            "expert_selection_fn": "sigmoid",
            "first_k_dense_replace": 2,
            "prefix_dense_intermediate_size": 40,
            "prefix_dense_sliding_window_pattern": 2,
            "sliding_window_pattern": 2,
            "sliding_window": 4,
            "rms_norm_eps": 1e-6,
            "head_dim": 12,
            "attention_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    (
        "cohere2_moe",
        {"num_experts": 5, "num_shared_experts": 1, "mlp_layer_types": MIXED, "layer_types": KINDS, "head_dim": 12},
    ),
    ("doge", {"attention_bias": True, "mlp_bias": True, "keep_window_size": 4, "tie_word_embeddings": True}),
    ("doge", {"is_moe": True, "num_experts": 17, "num_experts_per_tok": 3, "norm_topk_prob": True, "mlp_bias": True}),
    ("jetmoe", {"num_local_experts": 5, "num_experts_per_tok": 3, "kv_channels": 12, "tie_word_embeddings": False}),
)

LLAMA4: dict[str, Any] = {
    "model_type": "llama4_text",
    **SIZES,
    "intermediate_size_mlp": 40,
    "num_local_experts": 5,
    "num_experts_per_tok": 2,
    "head_dim": 12,
    "interleave_moe_layer_step": 2,
    "attention_chunk_size": 4,
    "no_rope_layers": [1, 0, 1, 1],
    "use_qk_norm": False,
    "attention_bias": True,
}


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
