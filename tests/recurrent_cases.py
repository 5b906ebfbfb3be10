"""Small configs of recurrent families, each with the work and states of its mixers summed by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
NEMOTRON = {
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
    Case("nemotron_h", NEMOTRON, **mamba2(2, 6, 5, 7, 2, 3), keys=2 * 2 * 12),
    Case(
        "nemotron_h",
        {**NEMOTRON, "moe_latent_size": 10, "use_bias": True, "mlp_bias": True, "use_conv_bias": False},
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
# ZAYA's convolutions are a part of its attention: they are held by themselves
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
