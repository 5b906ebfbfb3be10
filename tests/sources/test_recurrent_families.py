"""State-space, linear-attention and short-convolution families against the public implementation and hand sums.

Tensors are compared by name, for default configs and for small ones with every option turned. The public
implementation scans a prefill in padded chunks, or token by token without a matmul, so FLOPs of mixers are summed by
hand in the recurrent form; a decode step of it is counted while it runs, and what its counter does not see or sees
twice is said beside it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library import built, check_against_library, flops_of, needs_library, runnable

from assay.errors import SourceError
from assay.readings.count import Flops, count
from assay.readings.generate import generate
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config

D, V, L = 32, 96, 4
SIZES: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": D,
    "num_hidden_layers": L,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
HEADS = {**SIZES, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24}
EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
FULL, SCAN = "full_attention", "linear_attention"
MIXED = [SCAN, FULL, SCAN, SCAN]
LATENT = {
    **HEADS,
    "num_key_value_heads": 4,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 5,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 12,
    "n_shared_experts": 2,
    "n_group": 4,
    "topk_group": 2,
    "mlp_layer_types": ["dense", "sparse", "sparse", "dense"],
}


@dataclass(frozen=True)
class Case:
    """A small config, and by hand, for all its layers together: FLOPs of its mixers for one token, elements of its
    float32 states, of states in the cache's dtype, and of keys and values for one token.

    `unseen` is what the counter of a decode step leaves out of ours: what runs element by element, less the one
    column more that a convolution is run for.
    """

    model_type: str
    differs: dict[str, Any]
    mixer: int
    state: int
    columns: int
    keys: int = 0
    unseen: int | None = None
    base: dict[str, Any] = field(default_factory=lambda: HEADS)

    @property
    def config(self) -> dict[str, Any]:
        """As a config.json holds it."""
        return {"model_type": self.model_type, **self.base, **self.differs}


def mamba(layers: int, inner: int, s: int, r: int, k: int, heads: int = 1) -> dict[str, Any]:
    """Gu & Dao 2023: input and gate, convolution, step/write/read, step back up, scan, out; an update is unseen."""
    projections = D * 2 * inner + inner // heads * (r + 2 * s) * heads + r * inner + inner * D
    return {
        "mixer": layers * (2 * projections + 2 * inner * k + 4 * inner * s),
        "state": layers * inner * s,
        "columns": layers * inner * k,
        "unseen": layers * (2 * inner * s - 2 * inner * k),
    }


def mamba2(layers: int, h: int, q: int, s: int, g: int, k: int) -> dict[str, Any]:
    """Dao & Gu 2024: one projection in, a convolution over input, writes and reads, scan, out; an update is unseen."""
    inner, mixed = h * q, h * q + 2 * g * s
    return {
        "mixer": layers * (2 * D * (inner + mixed + h) + 2 * mixed * k + 4 * inner * s + 2 * inner * D),
        "state": layers * inner * s,
        "columns": layers * mixed * k,
        "unseen": layers * (2 * inner * s - 2 * mixed * k),
    }


def delta(layers: int, j: int, h: int, s: int, q: int, k: int) -> dict[str, Any]:
    """Yang et al. 2024: q, k, v, gate, write strength, decay; an update and two reads of h s q, none of them seen."""
    mixed = 2 * j * s + h * q
    return {
        "mixer": layers * (2 * D * (mixed + h * q + 2 * h) + 2 * mixed * k + 6 * h * s * q + 2 * h * q * D),
        "state": layers * h * s * q,
        "columns": layers * mixed * k,
        "unseen": layers * (6 * h * s * q - 2 * mixed * k),
    }


def kimi(layers: int, j: int, s: int, k: int, rank: int | None) -> dict[str, Any]:
    """Kimi Team 2025: the same with a decay a channel; decay and gate through a rank, or a matrix each."""
    wide = j * s
    gates = 2 * (D * wide if rank is None else D * rank + rank * wide)
    return {
        "mixer": layers * (2 * (D * (3 * wide + j) + gates + wide * D) + 2 * 3 * wide * k + 6 * wide * s),
        "state": layers * wide * s,
        "columns": layers * 3 * wide * k,
        "unseen": layers * (6 * wide * s - 2 * 3 * wide * k),
    }


def short(layers: int, k: int) -> dict[str, Any]:
    """LFM2: three projections, a convolution, one out."""
    return {
        "mixer": layers * (2 * D * 3 * D + 2 * D * k + 2 * D * D),
        "state": 0,
        "columns": layers * D * k,
        "unseen": -layers * 2 * D * k,
    }


_MAMBA = {"state_size": 6, "expand": 3, "conv_kernel": 3, "time_step_rank": 5}
_BAMBA = {"mamba_n_heads": 6, "mamba_n_groups": 2, "mamba_d_state": 7, "mamba_d_conv": 3, "mamba_expand": 3}
_KEYS = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 5,
    "linear_value_head_dim": 7,
    "linear_conv_kernel_dim": 3,
}
_NEMOTRON = {
    "layers_block_type": ["mamba", "attention", "moe", "mlp", "mamba"],
    "num_hidden_layers": 5,
    "head_dim": 12,
    "mamba_num_heads": 6,
    "mamba_head_dim": 5,
    "ssm_state_size": 7,
    "n_groups": 2,
    "conv_kernel": 3,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 12,
    "moe_shared_expert_intermediate_size": 20,
    "n_group": 4,
    "topk_group": 2,
}
_ZAMBA = {"layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "num_key_value_heads": 4, "mamba_d_conv": 3}

CASES: tuple[Case, ...] = (
    Case("mamba", {**_MAMBA, "use_bias": True}, **mamba(4, 96, 6, 5, 3), base=SIZES),
    Case("mamba", {"use_conv_bias": False, "tie_word_embeddings": False}, **mamba(4, 64, 16, 2, 4), base=SIZES),
    Case("falcon_mamba", {**_MAMBA, "use_bias": True}, **mamba(4, 96, 6, 5, 3), base=SIZES),
    Case(
        "mamba2",
        {**_MAMBA, "num_heads": 6, "head_dim": 16, "n_groups": 2, "use_bias": True, "chunk_size": 4},
        **mamba2(4, 6, 16, 6, 2, 3),
        base=SIZES,
    ),
    Case(
        "jamba",
        {
            "num_experts": 5,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "mamba_d_state": 6,
            "mamba_d_conv": 3,
            "mamba_expand": 3,
            "mamba_dt_rank": 5,
            "mamba_proj_bias": True,
        },
        **mamba(2, 96, 6, 5, 3),
        keys=2 * 2 * 2 * 8,
    ),
    Case(
        "jamba", {"num_experts": 1, "num_experts_per_tok": 1, "num_hidden_layers": 5}, **mamba(4, 64, 16, 2, 4), keys=32
    ),
    Case(
        "bamba",
        {**_BAMBA, "attn_layer_indices": [1, 3], "mamba_proj_bias": True, "attention_bias": True, "mlp_bias": True},
        **mamba2(2, 6, 16, 7, 2, 3),
        keys=2 * 2 * 2 * 8,
    ),
    Case(
        "granitemoehybrid",
        {
            **_BAMBA,
            "layer_types": ["mamba", "attention", "mamba", "mamba"],
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 20,
            "position_embedding_type": "rope",
            "attention_bias": True,
            "residual_multiplier": 0.2,
            "logits_scaling": 8.0,
        },
        **mamba2(3, 6, 16, 7, 2, 3),
        keys=32,
    ),
    Case(
        "granitemoehybrid",
        {**_BAMBA, "num_local_experts": 0, "num_experts_per_tok": 0, "layer_types": MIXED, "tie_word_embeddings": True},
        **mamba2(3, 6, 16, 7, 2, 3),
        keys=32,
    ),
    Case(
        "falcon_h1",
        {
            **_BAMBA,
            "mamba_d_ssm": 48,
            "mamba_rms_norm": True,
            "projectors_bias": True,
            "mamba_proj_bias": True,
            "mlp_bias": True,
            "attention_bias": True,
            "mlp_multipliers": [0.5, 2.0],
            "ssm_multipliers": [1.0, 2.0, 3.0, 4.0, 5.0],
            "key_multiplier": 0.5,
            "embedding_multiplier": 5.0,
        },
        **mamba2(4, 6, 8, 7, 2, 3),
        keys=4 * 32,
    ),
    Case("falcon_h1", {**_BAMBA, "mamba_d_ssm": None, "mamba_expand": 3}, **mamba2(4, 6, 16, 7, 2, 3), keys=4 * 32),
    Case("nemotron_h", _NEMOTRON, **mamba2(2, 6, 5, 7, 2, 3), keys=2 * 2 * 12),
    Case(
        "nemotron_h",
        {**_NEMOTRON, "moe_latent_size": 10, "use_bias": True, "mlp_bias": True, "use_conv_bias": False},
        **mamba2(2, 6, 5, 7, 2, 3),
        keys=2 * 2 * 12,
    ),
    Case(
        "zamba",
        {
            **_ZAMBA,
            "n_mamba_heads": 2,
            "mamba_d_state": 6,
            "mamba_expand": 3,
            "mamba_dt_rank": 5,
            "mamba_proj_bias": True,
            "num_key_value_heads": 2,
        },
        **mamba(4, 96, 6, 2 * 5 // 2, 3, heads=2),
        keys=2 * 2 * 2 * 16,
    ),
    Case(
        "zamba2",
        {
            **_ZAMBA,
            "n_mamba_heads": 6,
            "mamba_ngroups": 2,
            "mamba_d_state": 7,
            "mamba_expand": 3,
            "num_mem_blocks": 2,
            "adapter_rank": 3,
            "use_shared_attention_adapter": True,
            "use_mem_rope": True,
            "add_bias_linear": True,
        },
        **mamba2(4, 6, 16, 7, 2, 3),
        keys=2 * 2 * 4 * 16,
    ),
    Case(
        "zamba2",
        {**_ZAMBA, "n_mamba_heads": 4, "adapter_rank": 3, "num_key_value_heads": 2, "intermediate_size": None},
        **mamba2(4, 4, 16, 64, 1, 3),
        keys=2 * 2 * 2 * 16,
    ),
    Case(
        "qwen3_next",
        {
            **_KEYS,
            **EXPERTS,
            "shared_expert_intermediate_size": 20,
            "head_dim": 12,
            "layer_types": MIXED,
            "mlp_only_layers": [3],
            "attention_bias": True,
        },
        **delta(3, 2, 6, 5, 7, 3),
        keys=2 * 2 * 12,
    ),
    Case("qwen3_5_text", {**_KEYS, "full_attention_interval": 2, "head_dim": 12}, **delta(2, 2, 6, 5, 7, 3), keys=96),
    Case(
        "qwen3_5_moe_text",
        {**_KEYS, **EXPERTS, "shared_expert_intermediate_size": 20, "head_dim": 12, "attention_bias": True},
        **delta(3, 2, 6, 5, 7, 3),
        keys=48,
    ),
    Case(
        "lara_mini",
        {
            **_KEYS,
            **EXPERTS,
            "shared_expert_intermediate_size": 20,
            "head_dim": 12,
            "layer_types": [SCAN, "sliding_attention", SCAN, FULL],
            "sliding_window": 50,
        },
        **delta(2, 2, 6, 5, 7, 3),
        keys=2 * 2 * 2 * 12,
    ),
    Case(
        "olmo_hybrid", {**_KEYS, "attention_bias": True, "linear_num_key_heads": 6}, **delta(3, 6, 6, 5, 7, 3), keys=32
    ),
    Case("olmo_hybrid", {"num_hidden_layers": 3}, **delta(2, 4, 4, 6, 12, 4), keys=32),
    Case(
        "kimi_linear",
        {"linear_head_dim": 6, "linear_num_heads": 3, "linear_conv_kernel_dim": 3, "layer_types": MIXED},
        **kimi(3, 3, 6, 3, 6),
        keys=10 + 4,
        base=LATENT,
    ),
    Case(
        "bailing_hybrid",
        {"head_dim": 6, "short_conv_kernel_size": 3, "layer_group_size": 2, "attention_bias": True, "q_lora_rank": 9},
        **kimi(2, 4, 6, 3, None),
        keys=2 * (10 + 4),
        base=LATENT,
    ),
    Case("lfm2", {"conv_bias": True, "full_attn_idxs": [1, 3], "block_multiple_of": 8}, **short(2, 3), keys=64),
    Case(
        "lfm2",
        {"layer_types": ["conv", FULL, "conv", "conv"], "block_auto_adjust_ff_dim": False},
        **short(3, 3),
        keys=32,
    ),
    Case(
        "lfm2_moe",
        {**EXPERTS, "layer_types": ["conv", FULL, "conv", "conv"], "num_dense_layers": 1, "conv_L_cache": 4},
        **short(3, 4),
        keys=32,
    ),
    Case(
        "lfm2_moe",
        {**EXPERTS, "layer_types": [FULL, "conv"] * 2, "use_expert_bias": False, "conv_bias": True},
        **short(2, 3),
        keys=64,
    ),
    Case(
        "lfm3",
        {
            "layer_types": ["conv", "sliding_attention", FULL, "conv"],
            "head_dim": 12,
            "attention_bias": True,
            "sliding_window": 64,
        },
        **short(2, 7),
        keys=96,
    ),
    Case("lfm3", {"use_sandwich_norm": False, "use_attention_gate": False, "head_dim": 12}, **short(3, 7), keys=48),
    # Qin et al. 2024: q, k, v and a gate, the product of keys and values added to the state, the state read
    Case(
        "minimax",
        {"num_local_experts": 5, "head_dim": 6, "block_size": 8, "layer_types": MIXED, "linear_attn_alpha_factor": 3.5},
        mixer=3 * (2 * D * 4 * 24 + 4 * 4 * 6 * 6 + 2 * 24 * D),
        state=3 * 4 * 6 * 6,
        columns=0,
        keys=2 * 2 * 6,
        unseen=0,
    ),
    # De et al. 2024: two branches in, a convolution, two block-diagonal gates, the state updated, out; neither the
    # convolution of a step nor the update runs as a matmul
    Case(
        "recurrent_gemma",
        {
            "lru_width": 48,
            "conv1d_width": 3,
            "attention_window_size": 64,
            "attention_bias": True,
            "num_key_value_heads": 1,
        },
        mixer=3 * (2 * D * 2 * 48 + 2 * 48 * 3 + 2 * 2 * 48 * 12 + 2 * 48 + 2 * 48 * D),
        state=3 * 48,
        columns=3 * 48 * 3,
        keys=2 * 8,
        unseen=3 * (2 * 48 * 3 + 2 * 48),
    ),
    # Peng et al. 2023: k, v and r in, numerator and denominator each updated and read, out; a feed-forward layer that
    # is no mixer; the largest exponent is a third state, the token before is kept for both
    Case(
        "rwkv",
        {"intermediate_size": 24},
        mixer=4 * (2 * 3 * D * D + 2 * (2 + 2) * D + 2 * D * D),
        state=4 * 3 * D,
        columns=4 * 2 * D,
        unseen=4 * 2 * (2 + 2) * D,
        base=SIZES,
    ),
    # Beck et al. 2024: q, k, v, the output gate, two gates a head; matrix and normalizer each updated and read, of
    # which a step of the library does not see the normalizer's update
    Case(
        "xlstm",
        {"num_heads": 4},
        mixer=4 * (2 * 128 * (2 * 64 + 2 * 128 + 8) + 4 * 4 * (16 * 32 + 16) + 2 * 128 * 128),
        state=4 * 4 * (16 * 32 + 16 + 1),
        columns=0,
        unseen=4 * 4 * 2 * 16,
        base={**SIZES, "hidden_size": 128},
    ),
    *(
        Case(
            "xlstm",
            {"num_heads": 4, "weight_mode": mode, "use_bias": bias, "ffn_round_up_to_multiple_of": 8},
            mixer=4 * (2 * D * (2 * 16 + 2 * 32 + 8) + 4 * 4 * (4 * 8 + 4) + 2 * 32 * D),
            state=4 * 4 * (4 * 8 + 4 + 1),
            columns=0,
            base=SIZES,
        )
        for mode, bias in (("single", False), ("single", True), ("fused", True))
    ),
)
NAMES = [f"{case.model_type}-{index}" for index, case in enumerate(CASES)]
# ZAYA's convolutions are a part of its attention: they are held by themselves below
ZAYA: dict[str, Any] = {
    "model_type": "zaya",
    **{key: value for key, value in HEADS.items() if key != "intermediate_size"},
    "num_experts": 5,
    "moe_intermediate_size": 12,
    "head_dim": 6,
    "cca_time0": 3,
    "cca_time1": 2,
    "router_hidden_size": 7,
    "attention_bias": True,
    "layer_types": ["hybrid", "hybrid_sliding", "hybrid", "hybrid"],
    "sliding_window": 64,
    "lm_head_bias": True,
    "tie_word_embeddings": False,
}
DEFAULTS = [*sorted({case.model_type for case in CASES} - {"lfm2_moe"}), "zaya"]


# -- tensors ---------------------------------------------------------------------------------------------------------


def check_buffers(config: dict[str, Any]) -> None:
    """What checkpoints store beside parameters, shape by shape."""
    theirs = built(config)
    parameters = {name for name, _ in theirs.named_parameters(remove_duplicate=False)}
    stored = [tuple(t.shape) for name, t in theirs.state_dict().items() if name not in parameters]
    ours = [e.shape for e in tensors(read_config(config, "config", "model")) if e.buffer for _ in range(e.times)]
    assert sorted(ours) == sorted(stored)


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_defaults_of_the_config_class(model_type: str) -> None:
    check_against_library({"model_type": model_type})


@needs_library
@pytest.mark.parametrize("config", [*(case.config for case in CASES), ZAYA], ids=[*NAMES, "zaya"])
def test_every_option(config: dict[str, Any]) -> None:
    check_against_library(config)
    check_buffers(config)


# -- work and states, by hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize(("batch", "tokens", "past"), [(1, 7, 0), (3, 7, 0), (2, 1, 11), (1, 4, 9)])
def test_mixers_by_hand(case: Case, batch: int, tokens: int, past: int) -> None:
    """A token costs the same whatever the context, in any convention of matmuls."""
    counted = count(read_config(case.config, "config", "model"), batch, tokens, past)
    assert counted.flops.by_part["mixer"] == batch * tokens * case.mixer
    assert counted.flops.visible_total <= counted.flops.total


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize(("batch", "tokens", "past"), [(1, 7, 0), (3, 1, 11)])
def test_states_by_hand(case: Case, batch: int, tokens: int, past: int) -> None:
    """Recurrent states in float32, columns of convolutions as the cache, keys and values beside them."""
    kept = count(read_config(case.config, "config", "model"), batch, tokens, past, cache="bf16").cache
    assert kept.fixed_bytes == batch * (4 * case.state + 2 * case.columns)
    assert kept.bytes == kept.fixed_bytes + batch * (tokens + past) * 2 * case.keys
    assert kept.marginal_bytes_per_token == 2 * case.keys
    halved = count(read_config(case.config, "config", "model"), batch, tokens, past, cache="bf16", state="bf16").cache
    assert halved.fixed_bytes == batch * 2 * (case.state + case.columns)


def test_zaya_by_hand() -> None:
    """Two convolutions over queries and keys, half the values of the token before, a router of four matrices."""
    n, past, d, h, g, k, k0, k1, e, f, r = 5, 9, D, 4, 2, 6, 3, 2, 5, 12, 7
    wide = (h + g) * k
    attention = 2 * n * d * (h * k + g * k + g * k) + 2 * n * wide * k0 + 2 * n * wide * k * k1 + 2 * n * h * k * d
    scores = 2 * 2 * n * (n + past) * h * k
    router = 2 * n * (d * r + 2 * r * r + r * (e + 1))
    counted = count(read_config(ZAYA, "config", "model"), 1, n, past, cache="bf16")
    assert counted.flops.by_part["attention"] == 4 * (attention + scores)
    assert counted.flops.by_part["router"] == 4 * router
    assert counted.flops.by_part["experts"] == 4 * 2 * 3 * n * d * f
    # one column less than each kernel has, and half of the values once
    assert counted.cache.fixed_bytes == 2 * 4 * (wide * (k0 - 1 + k1 - 1) + g * k // 2)
    assert counted.cache.marginal_bytes_per_token == 2 * 4 * 2 * g * k


@needs_library
def test_a_decode_step_of_zaya() -> None:
    """The library keeps columns before the first convolution alone, so it runs that once more for the second."""
    ours = count(read_config(ZAYA, "config", "model"), 1, 1, 6).flops.total
    assert their_step(ZAYA, 6) - ours == 4 * 2 * 36 * 3


def their_step(config: dict[str, Any], past: int) -> int:
    """2 per multiply-add of one token behind a cache, counted by PyTorch while the library's model runs."""
    import torch
    import transformers

    model = runnable(config)
    prompt, token = torch.zeros((1, past), dtype=torch.long), torch.zeros((1, 1), dtype=torch.long)
    held: dict[str, Any] = {}
    if config["model_type"] == "recurrent_gemma":  # it keeps states in its modules and gives no cache back
        held = {"cache": transformers.DynamicCache(config=model.config)}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        kept = model(input_ids=prompt, use_cache=True, **held)
    held |= {name: kept[name] for name in ("cache", "state") if kept.get(name) is not None}
    assert held, "no cache to take a step behind"
    return flops_of(model, input_ids=token, use_cache=True, **held)


STEPS = [(case, name) for case, name in zip(CASES, NAMES, strict=True) if case.unseen is not None]


@needs_library
@pytest.mark.parametrize("case", [case for case, _ in STEPS], ids=[name for _, name in STEPS])
def test_a_decode_step_of_the_library(case: Case) -> None:
    ours = count(read_config(case.config, "config", "model"), 1, 1, 6).flops.total
    assert ours - their_step(case.config, 6) == case.unseen


# -- generation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [*(case.config for case in CASES), ZAYA], ids=[*NAMES, "zaya"])
@settings(max_examples=5)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 9), st.sampled_from(["matmul", "causal", "scalar"]))
def test_generation_equals_its_passes(
    config: dict[str, Any], new: int, tokens: int, past: int, convention: str
) -> None:
    model = read_config(config, "config", "model")
    made = generate(model, new, batch=2, tokens=tokens, past=past, convention=convention)

    def flops(tokens: int, past: int) -> Flops:
        return count(model, 2, tokens, past, convention=convention).flops

    end = past + tokens
    assert made.prefill == flops(tokens, past)
    assert made.steps == sum((flops(1, end + i) for i in range(new)), start=Flops())
    assert made.again == sum((flops(end + i + 1, 0) for i in range(new)), start=Flops())
    assert made.cache == count(model, 2, 1, end + new - 1).cache


# -- what does not fit -----------------------------------------------------------------------------------------------

BAD: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("mamba", {"time_step_rank": "some"}, "time_step_rank is 'some'; it must be an integer of at least 1"),
    ("mamba", {"ssm_cfg": {"layer": "Mamba2"}}, "ssm_cfg is .*; it must be {} or null for this model_type"),
    ("mamba2", {"num_heads": 100}, "num_heads is 100; it must be expand x hidden_size / head_dim: 8192 / 64"),
    ("mamba2", {"n_groups": 7}, "num_heads is 128; it must be a multiple of n_groups, 7"),
    ("jamba", {"attn_layer_offset": 8}, "attn_layer_offset is 8; it must be less than attn_layer_period, 8"),
    ("jamba", {"num_experts_per_tok": 17}, "num_experts_per_tok is 17; it must be at most num_experts, 16"),
    ("bamba", {"attn_layer_indices": [32]}, "attn_layer_indices is .32.; it must be a list of indices of layers"),
    ("bamba", {"mamba_d_head": 63}, "mamba_d_head is 63; it must be the inner width, 8192, divided by mamba_n_heads"),
    ("granitemoehybrid", {"layer_types": ["conv"] * 32}, "layer_types is .*; it must be a list of 32 items, each one"),
    ("granitemoehybrid", {"position_embedding_type": "alibi"}, "position_embedding_type is 'alibi'; it must be one of"),
    ("falcon_h1", {"mlp_multipliers": [1.0]}, "mlp_multipliers has 1 items; it must be a list of 2 items"),
    ("falcon_h1", {"mamba_n_heads": 100}, "mamba_n_heads is 100; it must be a divisor of the inner width, 1024"),
    ("nemotron_h", {"hybrid_override_pattern": "MX"}, "hybrid_override_pattern is 'MX'; it must be a letter for each"),
    ("nemotron_h", {"num_hidden_layers": 5}, "num_hidden_layers is 5; it must be 4 or null for this model_type"),
    ("nemotron_h", {"attention_bias": True}, "attention_bias is true; it must be false or null for this model_type"),
    ("zamba", {"n_mamba_heads": 3}, "n_mamba_heads is 3; it must be a divisor of the inner width, 7424"),
    ("zamba2", {"num_hidden_layers": 10}, "layer_types is missing; it must be a list of 10 items"),
    ("zamba2", {"hybrid_layer_ids": [6, 12]}, r"hybrid_layer_ids is \[6, 12\]; it must be \[6, 12, 18, 24, 30, 36, 42"),
    (
        "zamba2",
        {"num_key_value_heads": 8, "use_shared_attention_adapter": True},
        "num_key_value_heads is 8; it must be",
    ),
    ("qwen3_next", {"linear_num_value_heads": 24}, "linear_num_value_heads is 24; it must be a multiple of"),
    ("qwen3_5_text", {"attn_output_gate": False}, "attn_output_gate is false; it must be true or null"),
    (
        "olmo_hybrid",
        {"layer_types": [SCAN] * 32},
        "layer_types is .*; it must be a list with at least one full_attention",
    ),
    ("kimi_linear", {"linear_attn_config": {"kda_layers": [1]}}, "linear_attn_config.kda_layers is .1.; it must be"),
    ("bailing_hybrid", {"layer_group_size": 0}, "layer_group_size is 0; it must be an integer of at least 1"),
    ("lfm2", {"block_dim": 1024}, "block_dim is 1024; it must be 2560 or null for this model_type"),
    ("lfm2", {"block_ffn_dim_multiplier": -1.0}, "block_ffn_dim_multiplier is -1.0; it must be a number above 0"),
    ("lfm2_moe", {}, "layer_types is missing; it must be a list of 32 items"),
    ("minimax", {"block_size": 0}, "block_size is 0; it must be an integer of at least 1"),
    ("recurrent_gemma", {"intermediate_size": 7681}, "intermediate_size is 7681; it must be an even number"),
    ("recurrent_gemma", {"block_types": []}, r"block_types is \[\]; it must be a list with at least one item"),
    ("recurrent_gemma", {"lru_width": 2561}, "num_attention_heads is 10; it must be a divisor of lru_width, 2561"),
    ("rwkv", {"attention_hidden_size": 2048}, "attention_hidden_size is 2048; it must be hidden_size, 4096"),
    ("xlstm", {"num_heads": 7}, "num_heads is 7; it must be a divisor of hidden_size x qk_dim_factor, 2048"),
    ("xlstm", {"weight_mode": "both"}, "weight_mode is 'both'; it must be one of fused, single"),
    ("zaya", {"num_key_value_heads": 1}, "num_key_value_heads is 1; it must be an even number"),
    ("zaya", {"num_experts_per_tok": 2}, "num_experts_per_tok is 2; it must be 1 or null for this model_type"),
)


@pytest.mark.parametrize(("model_type", "keys", "said"), BAD, ids=[f"{t}-{next(iter(k), '')}" for t, k, _ in BAD])
def test_bad_values_are_named(model_type: str, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=f"^config: .*{said}"):
        read_config({"model_type": model_type, **keys}, "config", "model")


def test_a_pattern_and_a_list_are_one_model() -> None:
    """Nemotron-H's letters, and the table that Kimi's first checkpoints hold, which counts layers from one."""
    listed = {"model_type": "nemotron_h", **HEADS, **_NEMOTRON}
    letters = {key: value for key, value in listed.items() if key != "layers_block_type"}
    assert (
        read_config(listed, "c", "m").segments
        == read_config({**letters, "hybrid_override_pattern": "M*E-M"}, "c", "m").segments
    )
    kimi_like = {"model_type": "kimi_linear", **LATENT}
    table = {
        "full_attn_layers": [2],
        "kda_layers": [1, 3, 4],
        "head_dim": 6,
        "num_heads": 3,
        "short_conv_kernel_size": 3,
    }
    flat = {"linear_head_dim": 6, "linear_num_heads": 3, "linear_conv_kernel_dim": 3, "layer_types": MIXED}
    one, other = ({**kimi_like, **more} for more in ({"linear_attn_config": table}, flat))
    assert read_config(one, "c", "m").segments == read_config(other, "c", "m").segments


# -- published checkpoints -------------------------------------------------------------------------------------------

LETTERS = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
# what the published files of these models hold besides defaults, keys of their first implementations among them
CHECKPOINTS: tuple[tuple[str, dict[str, Any], int], ...] = (
    (
        "falcon_mamba",
        {
            "hidden_size": 4096,
            "expand": 16,
            "intermediate_size": 8192,
            "num_hidden_layers": 64,
            "time_step_rank": 256,
            "vocab_size": 65024,
            "tie_word_embeddings": False,
        },
        7_272_665_088,
    ),
    (
        "nemotron_h",
        {
            "hidden_size": 4480,
            "hybrid_override_pattern": LETTERS,
            "num_hidden_layers": 56,
            "intermediate_size": 15680,
            "mamba_head_dim": 80,
            "num_attention_heads": 40,
            "rms_norm_eps": 1e-5,
        },
        8_888_227_328,
    ),
    (
        "lfm2",
        {
            "hidden_size": 2048,
            "num_hidden_layers": 16,
            "block_dim": 2048,
            "block_ff_dim": 12288,
            "block_use_swiglu": True,
            "conv_dim": 2048,
            "full_attn_idxs": [2, 5, 8, 10, 12, 14],
            "num_heads": 32,
            "use_pos_enc": True,
        },
        1_170_340_608,
    ),
    (
        "falcon_h1",
        {
            "hidden_size": 1024,
            "intermediate_size": 2048,
            "num_hidden_layers": 36,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 64,
            "mamba_d_head": 64,
            "mamba_d_ssm": 1536,
            "mamba_d_state": 128,
            "mamba_n_heads": 24,
            "mamba_norm_before_gate": False,
            "mamba_use_mlp": True,
            "vocab_size": 32784,
        },
        521_411_104,
    ),
)


@pytest.mark.parametrize(("model_type", "keys", "total"), CHECKPOINTS, ids=[row[0] for row in CHECKPOINTS])
def test_published_checkpoints(model_type: str, keys: dict[str, Any], total: int) -> None:
    """Parameters as the repositories' own tensor headers sum to."""
    assert count(read_config({"model_type": model_type, **keys}, "config", "model")).parameters.total == total


def test_the_first_words_of_minimax() -> None:
    """MiniMax-Text-01 under its own type: 456 B parameters, 45.9 B of them active without the embeddings."""
    keys = {
        "model_type": "minimax_text_01",
        "attn_type_list": [int((i + 1) % 8 == 0) for i in range(80)],
        "head_dim": 128,
        "hidden_size": 6144,
        "intermediate_size": 9216,
        "layernorm_mlp_alpha": 3.55,
        "num_attention_heads": 64,
        "num_hidden_layers": 80,
        "num_local_experts": 32,
        "postnorm": True,
        "rotary_dim": 64,
        "shared_intermediate_size": 0,
        "vocab_size": 200064,
    }
    weights = count(read_config(keys, "config", "model")).parameters
    assert round(weights.total / 1e9) == 456
    assert round((weights.active - weights.embedding - weights.head) / 1e8) == 459
