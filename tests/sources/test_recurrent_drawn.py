"""Configs of recurrent families drawn at random against the public implementation, tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from library import check_against_library, needs_library

pytestmark = [
    pytest.mark.slow,
    needs_library,
]

DRAWS = 20
FULL, SCAN = "full_attention", "linear_attention"
Config = dict[str, Any]


def ends(r: Random, layers: int) -> Config:
    """What every config has."""
    return {
        "vocab_size": r.randint(5, 90),
        "num_hidden_layers": layers,
        "tie_word_embeddings": r.random() < 0.5,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def heads(r: Random, width: int = 0) -> Config:
    """A width, and heads that divide it."""
    kv = r.choice([1, 2, 3])
    query = kv * r.choice([1, 2])
    return {
        "hidden_size": query * 2 * (width or r.randint(2, 8)),
        "num_attention_heads": query,
        "num_key_value_heads": kv,
        "intermediate_size": 2 * r.randint(3, 20),
    }


def flags(r: Random, *keys: str) -> Config:
    """Switches, each on or off."""
    return {key: r.random() < 0.5 for key in keys}


def pattern(r: Random, layers: int, *kinds: str) -> list[str]:
    """A kind for each layer, every kind among them."""
    made = [*kinds, *(r.choice(kinds) for _ in range(layers - len(kinds)))]
    r.shuffle(made)
    return made


def experts(r: Random, many: str = "num_experts") -> Config:
    e = r.randint(2, 6)
    return {many: e, "num_experts_per_tok": r.randint(1, e), "moe_intermediate_size": r.randint(3, 9)}


def mamba(r: Random) -> Config:
    return {
        **ends(r, r.randint(1, 4)),
        **flags(r, "use_bias", "use_conv_bias"),
        "hidden_size": r.randint(4, 40),
        "state_size": r.randint(2, 9),
        "expand": r.randint(1, 3),
        "conv_kernel": r.randint(2, 5),
        "time_step_rank": r.choice(["auto", r.randint(1, 7)]),
    }


def mamba2(r: Random) -> Config:
    groups, each, width = r.randint(1, 3), r.randint(1, 3), 2 * r.randint(1, 5)
    expand = r.choice([1, 2])
    sizes = {"n_groups": groups, "num_heads": groups * each, "head_dim": width, "expand": expand}
    return {**mamba(r), **sizes, "hidden_size": groups * each * width // expand}


def scan_sizes(r: Random, width: int) -> Config:
    """Mamba-2 under Bamba's keys."""
    expand = r.choice([1, 2])
    count = r.choice([n for n in range(1, 7) if expand * width % n == 0])
    return {
        "mamba_expand": expand,
        "mamba_n_heads": count,
        "mamba_n_groups": r.choice([n for n in range(1, count + 1) if count % n == 0]),
        "mamba_d_state": r.randint(2, 9),
        "mamba_d_conv": r.randint(2, 5),
        **flags(r, "mamba_conv_bias", "mamba_proj_bias"),
    }


def jamba(r: Random) -> Config:
    attend, sparse, e = r.randint(1, 3), r.randint(1, 3), r.randint(1, 5)
    return {
        **ends(r, r.randint(1, 6)),
        **heads(r),
        **flags(r, "mamba_conv_bias", "mamba_proj_bias"),
        "num_experts": e,
        "num_experts_per_tok": r.randint(1, e),
        "attn_layer_period": attend,
        "attn_layer_offset": r.randrange(attend),
        "expert_layer_period": sparse,
        "expert_layer_offset": r.randrange(sparse),
        "mamba_d_state": r.randint(2, 9),
        "mamba_d_conv": r.randint(2, 5),
        "mamba_expand": r.randint(1, 3),
        "mamba_dt_rank": r.choice(["auto", r.randint(1, 7)]),
    }


def bamba(r: Random) -> Config:
    layers, sizes = r.randint(1, 5), heads(r)
    return {
        **ends(r, layers),
        **sizes,
        **scan_sizes(r, sizes["hidden_size"]),
        **flags(r, "attention_bias", "mlp_bias"),
        "attn_layer_indices": r.choice([None, [r.randrange(layers)]]),
    }


def granite(r: Random) -> Config:
    layers, sizes, e = r.randint(2, 5), heads(r), r.choice([0, 3, 5])
    return {
        **ends(r, layers),
        **sizes,
        **scan_sizes(r, sizes["hidden_size"]),
        **flags(r, "attention_bias"),
        "layer_types": pattern(r, layers, "mamba", "attention"),
        "num_local_experts": e,
        "num_experts_per_tok": min(e, 2),
        "shared_intermediate_size": r.randint(3, 20),
        "position_embedding_type": r.choice([None, "rope"]),
    }


def falcon_h1(r: Random) -> Config:
    sizes = heads(r)
    scan = scan_sizes(r, sizes["hidden_size"])
    inner = r.choice([None, scan["mamba_n_heads"] * r.randint(1, 6)])
    more = flags(r, "attention_bias", "mlp_bias", "projectors_bias", "mamba_rms_norm", "mamba_norm_before_gate")
    return {**ends(r, r.randint(1, 4)), **sizes, **scan, **more, "mamba_d_ssm": inner}


def nemotron(r: Random) -> Config:
    layers, groups = r.randint(4, 7), r.randint(1, 3)
    return {
        **ends(r, layers),
        **heads(r),
        **flags(r, "use_bias", "mlp_bias", "use_conv_bias"),
        **experts(r, "n_routed_experts"),
        "layers_block_type": pattern(r, layers, "mamba", "attention", "mlp", "moe"),
        "head_dim": r.randint(2, 9),
        "mamba_num_heads": groups * r.randint(1, 3),
        "mamba_head_dim": r.randint(1, 6),
        "n_groups": groups,
        "ssm_state_size": r.randint(2, 9),
        "conv_kernel": r.randint(2, 5),
        "moe_shared_expert_intermediate_size": r.randint(3, 20),
        "moe_latent_size": r.choice([None, r.randint(2, 9)]),
        "tie_word_embeddings": False,
    }


def zamba(r: Random) -> Config:
    layers, sizes, parallel = r.randint(3, 6), heads(r), r.choice([1, 2])
    return {
        **ends(r, layers),
        **sizes,
        **flags(r, "mamba_conv_bias", "mamba_proj_bias"),
        "layers_block_type": pattern(r, layers, "mamba", "hybrid", "hybrid"),  # one use alone, the library cannot tie
        "n_mamba_heads": parallel,
        "mamba_expand": 2,
        "mamba_d_state": r.randint(2, 9),
        "mamba_d_conv": r.randint(2, 5),
        "mamba_dt_rank": r.randint(1, 7),
        "attention_head_dim": r.choice([None, r.randint(2, 9)]),
        "tie_word_embeddings": True,
    }


def zamba2(r: Random) -> Config:
    layers, sizes, adapted = r.randint(3, 8), heads(r), r.random() < 0.5
    scan = scan_sizes(r, sizes["hidden_size"])
    if adapted:
        sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    return {
        **ends(r, layers),
        **sizes,
        **flags(r, "add_bias_linear", "use_mem_rope"),
        "use_shared_attention_adapter": adapted,
        "layers_block_type": pattern(r, layers, "mamba", "hybrid", "hybrid"),
        "num_mem_blocks": r.choice([1, 2]),
        "adapter_rank": r.randint(1, 6),
        "mamba_expand": scan["mamba_expand"],
        "n_mamba_heads": scan["mamba_n_heads"],
        "mamba_ngroups": scan["mamba_n_groups"],
        "mamba_d_state": scan["mamba_d_state"],
        "mamba_d_conv": scan["mamba_d_conv"],
        "tie_word_embeddings": True,
    }


def delta_sizes(r: Random) -> Config:
    keys = r.randint(1, 3)
    return {
        "linear_num_key_heads": keys,
        "linear_num_value_heads": keys * r.randint(1, 3),
        "linear_key_head_dim": r.randint(2, 7),
        "linear_value_head_dim": r.randint(2, 7),
        "linear_conv_kernel_dim": r.randint(2, 5),
    }


def qwen(r: Random, sparse: bool = False) -> Config:
    layers = r.randint(2, 6)
    made = {
        **ends(r, layers),
        **heads(r),
        **delta_sizes(r),
        **flags(r, "attention_bias"),
        "head_dim": 4 * r.randint(1, 4),
    }
    made |= r.choice([{"layer_types": pattern(r, layers, FULL, SCAN)}, {"full_attention_interval": r.randint(1, 3)}])
    if sparse:
        made |= {**experts(r), "shared_expert_intermediate_size": r.randint(3, 20)}
    return made


def qwen3_next(r: Random) -> Config:
    made = qwen(r, sparse=True)
    return {**made, "decoder_sparse_step": r.randint(1, 2), "mlp_only_layers": [r.randrange(made["num_hidden_layers"])]}


def olmo_hybrid(r: Random) -> Config:
    layers = r.randint(2, 6)
    sizes = {**heads(r), **flags(r, "attention_bias"), "layer_types": pattern(r, layers, FULL, SCAN)}
    return {**ends(r, layers), **sizes, **delta_sizes(r)}


def latent(r: Random) -> Config:
    layers, count, e = r.randint(2, 5), r.randint(1, 4), r.choice([4, 8])
    return {
        **ends(r, layers),
        "tie_word_embeddings": False,
        "hidden_size": 4 * r.randint(1, 9),
        "num_attention_heads": count,
        "num_key_value_heads": count,
        "intermediate_size": r.randint(3, 20),
        "kv_lora_rank": r.randint(2, 9),
        "q_lora_rank": r.choice([None, r.randint(2, 9)]),
        "qk_nope_head_dim": r.randint(2, 7),
        "qk_rope_head_dim": 2 * r.randint(1, 3),
        "v_head_dim": r.randint(2, 7),
        "num_local_experts": e,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": r.randint(3, 9),
        "n_shared_experts": r.randint(1, 3),
        "n_group": 2,
        "topk_group": r.choice([1, 2]),
        "layer_types": pattern(r, layers, FULL, SCAN),
        "mlp_layer_types": [r.choice(["dense", "sparse"]) for _ in range(layers)],
        **flags(r, "attention_bias"),
    }


def kimi_linear(r: Random) -> Config:
    scan = {"linear_head_dim": r.randint(2, 7), "linear_num_heads": r.randint(1, 4)}
    return {**latent(r), **scan, "linear_conv_kernel_dim": r.randint(2, 5)}


def bailing(r: Random) -> Config:
    return {**latent(r), "head_dim": r.randint(2, 7), "short_conv_kernel_size": r.randint(2, 5)}


def lfm2(r: Random) -> Config:
    layers = r.randint(2, 6)
    return {
        **ends(r, layers),
        **heads(r),
        **flags(r, "conv_bias", "block_auto_adjust_ff_dim"),
        "layer_types": pattern(r, layers, FULL, "conv"),
        "conv_L_cache": r.randint(2, 5),
        "block_multiple_of": r.choice([1, 8, 256]),
        "block_ffn_dim_multiplier": r.choice([0.7, 1.0, 1.3]),
    }


def lfm2_moe(r: Random) -> Config:
    layers = r.randint(2, 6)
    made = {**ends(r, layers), **heads(r), **experts(r), **flags(r, "conv_bias", "use_expert_bias", "norm_topk_prob")}
    more = {"num_dense_layers": r.randint(0, layers), "conv_L_cache": r.randint(2, 5)}
    return {**made, **more, "layer_types": pattern(r, layers, FULL, "conv")}


def lfm3(r: Random) -> Config:
    layers = r.randint(3, 7)
    more = flags(r, "conv_bias", "use_sandwich_norm", "use_attention_gate", "attention_bias")
    kinds = pattern(r, layers, FULL, "conv", "sliding_attention")
    return {**ends(r, layers), **heads(r), **more, "head_dim": 4 * r.randint(1, 4), "layer_types": kinds}


def minimax(r: Random) -> Config:
    layers, e = r.randint(2, 5), r.randint(2, 6)
    return {
        **ends(r, layers),
        **heads(r),
        "head_dim": r.choice([None, 2 * r.randint(1, 6)]),
        "num_local_experts": e,
        "num_experts_per_tok": r.randint(1, e),
        "layer_types": pattern(r, layers, FULL, SCAN),
        "block_size": r.randint(2, 9),
    }


def recurrent_gemma(r: Random) -> Config:
    sizes = heads(r)
    return {
        **ends(r, r.randint(1, 6)),
        **sizes,
        **flags(r, "attention_bias"),
        "head_dim": 2 * r.randint(1, 9),
        "lru_width": r.choice([None, sizes["num_attention_heads"] * r.randint(2, 9)]),
        "conv1d_width": r.randint(2, 5),
        "block_types": [r.choice(["recurrent", "attention"]) for _ in range(r.randint(1, 4))],
    }


def rwkv(r: Random) -> Config:
    return {**ends(r, r.randint(1, 4)), "hidden_size": r.randint(4, 40), "intermediate_size": r.randint(3, 40)}


def xlstm(r: Random) -> Config:
    count = r.randint(1, 4)
    return {
        **ends(r, r.randint(1, 4)),
        **flags(r, "use_bias"),
        "tie_word_embeddings": False,
        "num_heads": count,
        "hidden_size": 4 * count * r.randint(1, 6),
        "qk_dim_factor": r.choice([0.5, 1.0]),
        "v_dim_factor": r.choice([0.5, 1.0]),
        "ffn_proj_factor": r.choice([1.3, 2.667]),
        "ffn_round_up_to_multiple_of": r.choice([1, 8, 64]),
        "weight_mode": r.choice(["single", "fused"]),
    }


def zaya(r: Random) -> Config:
    layers, kv = r.randint(1, 4), r.choice([2, 4])
    return {
        **ends(r, layers),
        **flags(r, "attention_bias", "lm_head_bias"),
        "hidden_size": r.randint(4, 40),
        "num_key_value_heads": kv,
        "num_attention_heads": kv * r.randint(1, 3),
        "head_dim": 4 * r.randint(1, 3),
        "num_experts": r.randint(2, 6),
        "moe_intermediate_size": r.randint(3, 9),
        "cca_time0": r.randint(2, 4),
        "cca_time1": r.randint(2, 4),
        "router_hidden_size": r.randint(2, 9),
        "layer_types": [r.choice(["hybrid", "hybrid_sliding"]) for _ in range(layers)],
        "sliding_window": 8,
    }


FAMILIES: dict[str, Callable[[Random], Config]] = {
    "mamba": mamba,
    "falcon_mamba": mamba,
    "mamba2": mamba2,
    "jamba": jamba,
    "bamba": bamba,
    "granitemoehybrid": granite,
    "falcon_h1": falcon_h1,
    "nemotron_h": nemotron,
    "zamba": zamba,
    "zamba2": zamba2,
    "qwen3_next": qwen3_next,
    "qwen3_5_text": qwen,
    "qwen3_5_moe_text": lambda r: qwen(r, sparse=True),
    "olmo_hybrid": olmo_hybrid,
    "kimi_linear": kimi_linear,
    "bailing_hybrid": bailing,
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "lfm3": lfm3,
    "minimax": minimax,
    "recurrent_gemma": recurrent_gemma,
    "rwkv": rwkv,
    "xlstm": xlstm,
    "zaya": zaya,
}


@pytest.mark.parametrize("model_type", FAMILIES)
def test_drawn_configs(model_type: str) -> None:
    random = Random(model_type)
    for _ in range(DRAWS):
        config = {"model_type": model_type, **FAMILIES[model_type](random)}
        try:
            check_against_library(config)
        except Exception as error:
            raise AssertionError(f"{config}: {error}") from error
