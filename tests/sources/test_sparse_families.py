"""Sparse attention, shared keys and values, several streams, further tokens: against the public implementation, hand
sums and masks drawn cell by cell.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from library import built, check_against_library, differences, needs_library, our_ledger, their_flops, their_ledger

import assay
from assay.cli import main
from assay.errors import SettingError, SourceError
from assay.readings.count import Count, count
from assay.readings.generate import generate
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config
from assay.spec import Model

IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LATENT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 4,
    "v_head_dim": 20,
    "index_topk": 4,
    "index_head_dim": 8,
    "index_n_heads": 2,
    **IDS,
}
GLM = {
    **LATENT,
    "model_type": "glm_moe_dsa",
    "index_topk_freq": 3,
    "index_skip_topk_offset": 2,
    "first_k_dense_replace": 2,
}
V32 = {
    **LATENT,
    "model_type": "deepseek_v32",
    "n_group": 2,
    "topk_group": 1,
    "attention_bias": True,
    "n_shared_experts": 2,
}
AXK2 = {**LATENT, "model_type": "axk2", "gated_norm_rank": 3, "attention_bias": True}
HY4 = {**LATENT, "model_type": "hy_v4", "hc_mult": 3}
DOTS3 = {
    **LATENT,
    "model_type": "dots3_note_text",
    "head_dim": 16,
    "sliding_window": 5,
    "swa_num_attention_heads": 2,
    "swa_num_key_value_heads": 2,
    "swa_kv_lora_rank": 20,
    "swa_q_lora_rank": 28,
    "swa_head_dim": 16,
    "swa_qk_nope_head_dim": 10,
    "swa_v_head_dim": 6,
}
SPARSE, HEAVY, SLIDING = "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"
V4 = {
    **IDS,
    "model_type": "deepseek_v4",
    "vocab_size": 99,
    "hidden_size": 64,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "head_dim": 32,
    "q_lora_rank": 24,
    "num_experts_per_tok": 2,
    "n_routed_experts": 8,
    "o_groups": 2,
    "o_lora_rank": 12,
    "index_n_heads": 2,
    "index_head_dim": 16,
    "index_topk": 3,
    "sliding_window": 8,
    "layer_types": [SLIDING, SPARSE, HEAVY, SPARSE, SLIDING],
    "compress_rates": {SPARSE: 4, HEAVY: 16},
    "hc_mult": 3,
    "num_hash_layers": 2,
    "partial_rotary_factor": 0.25,
}
LONGCAT = {
    **IDS,
    "model_type": "longcat_flash",
    "vocab_size": 99,
    "hidden_size": 64,
    "ffn_hidden_size": 96,
    "expert_ffn_hidden_size": 32,
    "num_layers": 3,
    "num_attention_heads": 4,
    "n_routed_experts": 8,
    "moe_topk": 2,
    "zero_expert_num": 3,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 4,
    "v_head_dim": 20,
}
M3 = {
    **IDS,
    "model_type": "minimax_m3_vl_text",
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 24,
    "dense_intermediate_size": 80,
    "shared_intermediate_size": 20,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "rotary_dim": 4,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_block_size": 4,
    "index_topk_blocks": 2,
    "layer_types": ["full_attention", "minimax_m3_sparse"] * 2,
    "mlp_layer_types": ["dense", "dense", "sparse", "sparse"],
}
TURNS = ["sliding_attention", "full_attention"] * 3
GEMMA: dict[str, Any] = {
    **IDS,
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "sliding_window": 4,
}
GEMMA3N = {
    **GEMMA,
    "model_type": "gemma3n_text",
    "vocab_size_per_layer_input": 77,
    "intermediate_size": [96, 80, 96, 96, 72, 96],
    "hidden_size_per_layer_input": 10,
    "altup_num_inputs": 3,
    "num_kv_shared_layers": 2,
    "laurel_rank": 5,
    "layer_types": TURNS,
    "activation_sparsity_pattern": [0.9, 0.0, 0.0, 0.0, 0.5, 0.0],
}
GEMMA4 = {
    **GEMMA,
    "model_type": "gemma4_text",
    "vocab_size_per_layer_input": 77,
    "global_head_dim": 20,
    "hidden_size_per_layer_input": 10,
    "num_kv_shared_layers": 2,
    "layer_types": TURNS,
    "use_double_wide_mlp": True,
}
GEMMA4_EXPERTS = {
    **GEMMA,
    "model_type": "gemma4_text",
    "global_head_dim": 20,
    "hidden_size_per_layer_input": 0,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
    "enable_moe_block": True,
    "num_experts": 8,
    "top_k_experts": 3,
    "moe_intermediate_size": 24,
    "attention_bias": True,
}
GEMMA4_UNIFIED = {
    **GEMMA,
    "model_type": "gemma4_unified_text",
    "global_head_dim": 20,
    "num_kv_shared_layers": 2,
    "layer_types": TURNS,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
}
ASSISTANT = {
    "model_type": "gemma4_unified_assistant",
    "backbone_hidden_size": 40,
    "text_config": {**GEMMA4_UNIFIED, "num_kv_shared_layers": 6},
}
INKLING: dict[str, Any] = {
    **IDS,
    "vocab_size": 99,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "swa_num_attention_heads": 6,
    "swa_num_key_value_heads": 3,
    "swa_head_dim": 10,
    "sliding_window_size": 5,
    "d_rel": 7,
    "rel_extent": 9,
    "log_scaling_n_floor": 20,
    "conv_kernel_size": 3,
    "moe_intermediate_size": 24,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
}
INKLING1 = {
    **INKLING,
    "model_type": "inkling_text",
    "num_hidden_layers": 6,
    "mlp_layer_types": ["dense"] + ["sparse"] * 5,
    "intermediate_size": 80,
    "n_shared_experts": 2,
    "local_layer_ids": [0, 2, 3],
}
INKLING2 = {
    **INKLING,
    "model_type": "inkling2_text",
    "num_hidden_layers": 7,
    "unpadded_vocab_size": 90,
    "n_layers_per_attn_res_block": 3,
    "layer_types": ["hybrid", "hybrid_sliding"] * 3 + ["hybrid"],
}
INKLING2_LOOP = {
    **INKLING2,
    "model_type": "inkling2_loop_text",
    "num_hidden_layers": 8,
    "n_layers_per_attn_res_block": 2,
    "loop_layer_index_start": 2,
    "loop_layer_index_end": 6,
    "loop_num_passes": 3,
    "loop_gate_rank": 5,
    "layer_types": [
        *("hybrid_sliding", "hybrid", "hybrid_sliding", "hybrid_sliding"),
        *("hybrid", "hybrid", "hybrid_sliding", "hybrid"),
    ],
}
TROCR = {
    **IDS,
    "model_type": "trocr",
    "vocab_size": 99,
    "d_model": 64,
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 80,
    "max_position_embeddings": 40,
    "cross_attention_hidden_size": 48,
}
MOSHI = {
    "model_type": "moshi",
    "vocab_size": 99,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "ffn_dim": 80,
    "head_dim": 12,
    "sliding_window": 20,
}
XLM = {
    **IDS,
    "model_type": "xlm",
    "vocab_size": 99,
    "emb_dim": 64,
    "n_layers": 3,
    "n_heads": 4,
    "n_langs": 3,
    "max_position_embeddings": 40,
}
XLNET = {**IDS, "model_type": "xlnet", "vocab_size": 99, "d_model": 64, "n_layer": 3, "n_head": 4, "d_inner": 80}
FLAUBERT = {**XLM, "model_type": "flaubert", "pre_norm": True, "n_langs": 1, "gelu_activation": False}

# every option turned, with the tokens of a FLOP count where the library's own is the architecture's: it runs every
# expert of Gemma 4 and LongCat on every token, and sums the scores of V4's indexer element by element
VARIED: dict[str, tuple[dict[str, Any], int]] = {
    "deepseek_v32": (V32, 13),
    "glm_moe_dsa": (GLM, 13),
    "glm_moe_dsa, a pattern": ({**GLM, "index_topk_pattern": "FSFFSS"}, 13),
    "axk2": (AXK2, 13),
    "axk2, groups": ({**AXK2, "n_group": 2, "topk_group": 1, "moe_layer_freq": 2}, 13),
    "hy_v4": (HY4, 13),
    "dots3_note_text": (DOTS3, 13),
    "deepseek_v4": (V4, 0),
    "longcat_flash": (LONGCAT, 0),
    "minimax_m3_vl_text": (M3, 13),
    "gemma3n_text": (GEMMA3N, 13),
    "gemma4_text": (GEMMA4, 13),
    "gemma4_text, experts": (GEMMA4_EXPERTS, 0),
    "gemma4_unified_text": (GEMMA4_UNIFIED, 13),
    "gemma4_unified_assistant": (ASSISTANT, 0),
    "inkling_text": (INKLING1, 0),
    "inkling2_text": (INKLING2, 0),
    "inkling2_text, a window first": ({**INKLING2, "layer_types": ["hybrid_sliding", "hybrid"] * 3 + ["hybrid"]}, 0),
    "inkling2_loop_text": (INKLING2_LOOP, 0),
    "trocr": (TROCR, 13),
    "trocr, sines": (
        {**TROCR, "use_learned_position_embeddings": False, "layernorm_embedding": False, "scale_embedding": True},
        13,
    ),
    "moshi": (MOSHI, 13),
    "xlm": (XLM, 13),
    "xlnet": (XLNET, 13),
}

# classes' own defaults, all of one size at least of a real model
DEFAULTS = (
    "axk2 deepseek_v32 deepseek_v4 dots3_note_text gemma3n_text gemma4_text gemma4_unified_assistant "
    "gemma4_unified_text glm_moe_dsa hy_v4 inkling_text inkling2_text inkling2_loop_text longcat_flash "
    "minimax_m3_vl_text trocr xlm xlnet"
).split()


def model(config: dict[str, Any], **changed: Any) -> Model:
    return read_config({**config, **changed}, "config", "model")


def counted(config: dict[str, Any], tokens: int, past: int = 0, **changed: Any) -> Count:
    return count(model(config, **changed), tokens=tokens, past=past, cache="bf16")


# -- the public implementation ---------------------------------------------------------------------------------------


@needs_library
@pytest.mark.parametrize("name", VARIED)
def test_varied_config_equals_the_library(name: str) -> None:
    config, tokens = VARIED[name]
    check_against_library(config, tokens)


@needs_library
def test_flaubert_equals_the_library() -> None:
    check_against_library(FLAUBERT, auto="AutoModelForMaskedLM")


@needs_library
@pytest.mark.slow
@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_equal_the_library(name: str) -> None:
    check_against_library({"model_type": name})


@needs_library
@pytest.mark.parametrize(
    ("role", "auto"),
    [
        ("base", "AutoModel"),
        ("sequence-classification", "AutoModelForSequenceClassification"),
        ("token-classification", "AutoModelForTokenClassification"),
    ],
)
@pytest.mark.parametrize("config", [XLM, FLAUBERT], ids=["xlm", "flaubert"])
def test_classes_of_xlm(config: dict[str, Any], role: str, auto: str) -> None:
    ours = read_config(config, "config", "model", cls=role)
    assert differences(our_ledger(ours), their_ledger(built(config, auto))) == []


# -- what the mask lets through, cell by cell ------------------------------------------------------------------------

SETTINGS = [(1, 0), (7, 0), (13, 0), (40, 0), (1, 3), (1, 40), (5, 2), (6, 30), (33, 17)]


def causal(t: int) -> int:
    return t + 1


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_an_indexer(n: int, past: int) -> None:
    """Scores of 6 layers: 4 heads of 16 + 20 to min(t + 1, 4) keys; 2 indexers of 2 heads of 8 and a sum over heads."""
    flops = counted(GLM, n, past).flops
    dense, chosen = n * (n + past), sum(min(t + 1, 4) for t in range(past, past + n))
    seen = sum(map(causal, range(past, past + n)))
    indexers = [segment.layers for segment in model(GLM).segments if "full index" in segment.name]
    assert sorted(i for layers in indexers for i in layers) == [0, 1, 4]
    left_out = 6 * 2 * 4 * (16 + 20) * (dense - chosen) + 3 * 2 * (2 * 8 + 2) * (dense - seen)
    assert flops.total - flops.visible_total == left_out


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_absorbed_latents(n: int, past: int) -> None:
    """Absorbed, a head attends to the latent of 16 and the rotary key of 4, and reads the latent."""
    flops = count(model(GLM), tokens=n, past=past, latent="absorbed").flops
    dense, chosen = n * (n + past), sum(min(t + 1, 4) for t in range(past, past + n))
    seen = sum(map(causal, range(past, past + n)))
    left_out = 6 * 2 * 4 * (16 + 4 + 16) * (dense - chosen) + 3 * 2 * (2 * 8 + 2) * (dense - seen)
    assert flops.total - flops.visible_total == left_out


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_blocks(n: int, past: int) -> None:
    """Two blocks of 4: a query's own so far, and the best of those before."""

    def seen(t: int) -> int:
        return t + 1 if t // 4 < 2 else 4 + t % 4 + 1

    flops = counted(M3, n, past).flops
    dense = n * (n + past)
    all_seen = sum(map(causal, range(past, past + n)))
    best = sum(map(seen, range(past, past + n)))
    score = 2 * 2 * 4 * 12  # keys and values of 4 heads of 12
    indexer = 2 * 2 * 8
    assert flops.total - flops.visible_total == 2 * (score + indexer) * (dense - all_seen) + 2 * score * (dense - best)


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_entries(n: int, past: int) -> None:
    """DeepSeek-V4: a window of 8, entries of 4 tokens of which 3 are attended to, entries of 16 tokens."""
    flops = counted(V4, n, past).flops
    queries = range(past, past + n)
    window = n * (n + min(past, 7)) - sum(min(t + 1, 8) for t in queries)
    held = {rate: (past + n) // rate for rate in (4, 16)}
    ready = {rate: [(t + 1) // rate for t in queries] for rate in (4, 16)}
    score = 2 * 2 * 4 * 32
    left_out = 5 * score * window
    left_out += 2 * score * (n * held[4] - sum(min(r, 3) for r in ready[4]))
    left_out += 2 * 2 * (2 * 16 + 2) * (n * held[4] - sum(ready[4]))  # the indexer sees every entry that is full
    left_out += score * (n * held[16] - sum(ready[16]))
    assert flops.total - flops.visible_total == left_out


@pytest.mark.parametrize(("n", "past"), SETTINGS)
@pytest.mark.parametrize("window", [None, 3, 9])
def test_visible_pairs_of_a_mask_of_values(n: int, past: int, window: int | None) -> None:
    """Doge: of at most `window` keys the best 5, in 3 layers of 4 heads of 16."""
    sizes = {"hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = {"model_type": "doge", "vocab_size": 99, "keep_window_size": 5, "sliding_window": window, **sizes}
    flops = counted(config, n, past).flops
    keys = n + (past if window is None else min(past, window - 1))
    seen = sum(min(t + 1, window or t + 1, 5) for t in range(past, past + n))
    assert flops.total - flops.visible_total == 3 * 2 * 2 * 4 * 16 * (n * keys - seen)


@pytest.mark.parametrize("config", [GLM, DOTS3, V4, M3, GEMMA4], ids=lambda config: str(config["model_type"]))
def test_generated_tokens_step_by_step(config: dict[str, Any]) -> None:
    found = generate(model(config), 50, tokens=7, past=6)
    steps = [counted(config, 1, 13 + i).flops for i in range(50)]
    again = [counted(config, 14 + i).flops for i in range(50)]
    assert found.steps.total == sum(step.total for step in steps)
    assert found.steps.visible_total == sum(step.visible_total for step in steps)
    assert found.again.total == sum(step.total for step in again)
    assert found.again.visible_total == sum(step.visible_total for step in again)


# -- what is kept ----------------------------------------------------------------------------------------------------


def test_indexer_keys_are_cached() -> None:
    """6 layers keep a latent of 16 and a rotary key of 4; 3 of them an indexer's key of 8."""
    cache = counted(GLM, 10, 20).cache
    assert cache.bytes == 2 * 30 * (6 * 20 + 3 * 8)
    assert cache.marginal_bytes_per_token == 2 * (6 * 20 + 3 * 8)
    assert cache.fixed_bytes == 0


def test_windowed_latents_are_dropped() -> None:
    """dots3: layers 0, 1 and 5 keep 16 + 4 and an indexer's 8; four windowed ones 20 + 6 of at most 5 tokens."""
    assert counted(DOTS3, 3, 0).cache.bytes == 2 * 3 * (3 * 28 + 3 * 26)
    assert counted(DOTS3, 3, 30).cache.bytes == 2 * (33 * 3 * 28 + 5 * 3 * 26)


def test_shared_keys_are_kept_once() -> None:
    """Gemma 4: layers 0 to 3 keep keys and values of 2 heads, windowed ones of 12, full ones of 20; 4 and 5 nothing."""
    assert counted(GEMMA4, 10, 20).cache.bytes == 2 * 2 * 2 * (2 * 4 * 12 + 2 * 30 * 20)
    assert counted(ASSISTANT, 10, 20).cache.bytes == 0
    kept = {segment.name: count(segment.block, tokens=3, b=1).cache.bytes for segment in model(GEMMA4).segments}
    assert [name for name, held in kept.items() if held] == ["sliding", "full"]


@pytest.mark.parametrize("held", [1, 3, 4, 17, 64, 100])
def test_entries_and_open_windows_are_kept(held: int) -> None:
    """DeepSeek-V4, whose keys are its values: in elements, 5 windows of 8 x 32; entries, and what is not yet one."""
    half = 2 * 2  # values and gates, of two halves where windows overlap
    sparse = (held // 4) * (32 + 16) + half * (held % 4) * (32 + 16) + 2 * min(held // 4, 1) * 4 * (32 + 16)
    heavy = (held // 16) * 32 + 2 * (held % 16) * 32
    elements = 5 * min(held, 8) * 32 + 2 * sparse + heavy
    assert counted(V4, held).cache.bytes == 2 * elements
    assert counted(V4, 1, held - 1).cache.bytes == 2 * elements


def test_a_token_adds_a_part_of_an_entry() -> None:
    """Beyond the window one token in 4 leaves an entry of 32 + 16 in 2 layers, one in 16 one of 32 in another."""
    assert counted(V4, 100).cache.marginal_bytes_per_token == 2 * (2 * (32 + 16) // 4 + 32 // 16)


def test_a_window_is_a_hundredth_of_its_tokens() -> None:
    """Widths that a rate does not divide give a decimal, and that is all that may be one."""
    cache = counted(V4, 100, compress_rates={SPARSE: 5, HEAVY: 16}).cache
    assert cache.marginal_bytes_per_token == pytest.approx(2 * (2 * 48 / 5 + 2))
    assert isinstance(cache.bytes, int)


def test_scores_of_the_indexer_are_no_attention_scores() -> None:
    """6 layers of 4 heads of 16 + 20, all pairs of 10 tokens."""
    assert counted(GLM, 10).flops.attention_scores == 6 * 2 * 4 * (16 + 20) * 100


def test_v4_counts_by_hand() -> None:
    """What the library counts at 13 tokens beside its own sum over the indexer's heads: see the truth of V4."""
    n, d = 13, 64
    attention = 2 * n * (d * 24 + 24 * 4 * 32 + d * 32 + 4 * 32 * 12 + 2 * 12 * d) + 2 * 2 * 4 * 32 * n * n
    streams = 2 * n * (3 * d * (2 * 3 + 9) + 9 * d)
    experts = 2 * n * (d * 8 + (2 + 1) * 3 * d * 32)
    entries = 13 // 4
    sparse = 2 * n * (2 * d * 2 * 32 + 2 * d * 2 * 16 + 24 * 2 * 16 + d * 2)
    sparse += 2 * n * entries * (2 * 16 + 2) + 2 * 2 * 4 * 32 * n * entries
    heavy = 2 * n * 2 * d * 32
    ends = 2 * n * (3 * d * 3 + d * 99)
    assert counted(V4, n).flops.total == 5 * (attention + 2 * streams + experts) + 2 * sparse + heavy + ends


PADDED = 2 * 2 * 3  # the library's convolution runs 2 tokens too many over 3 columns


@needs_library
def test_inkling_counts_but_for_padding() -> None:
    """Convolved are keys and values, 3 layers of 2 x 3 x 10 and 3 of 2 x 2 x 12, and both branches' outputs."""
    channels = 3 * 2 * 30 + 3 * 2 * 24 + 6 * 2 * 64
    assert counted(INKLING1, 13).flops.total == their_flops(INKLING1, 13) - PADDED * channels


@needs_library
def test_inkling2_counts_but_for_padding() -> None:
    """The library sums the taps of 4 full layers' keys and values element by element, and pads the others."""
    channels = 3 * 2 * 30 + 7 * 2 * 64
    taps = 4 * 2 * 2 * 13 * 24 * 3
    assert counted(INKLING2, 13).flops.total == their_flops(INKLING2, 13) - PADDED * channels + taps


@needs_library
def test_loops_count_each_pass() -> None:
    """8 layers, four of which run three times: 8 visits of windowed layers and 8 of full ones."""
    channels = 8 * 2 * 30 + 16 * 2 * 64
    taps = 8 * 2 * 2 * 13 * 24 * 3
    assert counted(INKLING2_LOOP, 13).flops.total == their_flops(INKLING2_LOOP, 13) - PADDED * channels + taps


def test_loops_keep_keys_of_each_pass() -> None:
    """As many caches as visits: 8 windows of 5 and 8 layers of all."""
    columns = 3 * (8 * 2 * 30 + 8 * 2 * 24 + 16 * 2 * 64)
    assert counted(INKLING2_LOOP, 10, 20).cache.bytes == 2 * (columns + 8 * 5 * 2 * 30 + 8 * 30 * 2 * 24)


def test_convolution_columns_are_kept() -> None:
    """3 columns of each channel, whatever the context; keys and values of 3 windows of 5 and 3 layers of all."""
    columns = 3 * (3 * 2 * 30 + 3 * 2 * 24 + 6 * 2 * 64)
    cache = counted(INKLING1, 10, 20).cache
    assert cache.fixed_bytes == 2 * columns
    assert cache.bytes == 2 * (columns + 3 * 5 * 2 * 30 + 3 * 30 * 2 * 24)


def test_longcat_counts_by_hand() -> None:
    """A layer: two latent attentions, two dense layers, two of eight experts and a router over eleven."""
    n, d = 13, 64
    attention = d * 24 + 24 * 4 * 16 + d * 20 + 16 * 4 * (12 + 20) + 4 * 20 * d
    layer = 2 * n * (2 * attention + 2 * 3 * d * 96 + d * 11 + 2 * 3 * d * 32) + 2 * 2 * 4 * (16 + 20) * n * n
    assert counted(LONGCAT, n).flops.total == 3 * layer + 2 * n * d * 99


def test_longcat_says_what_nobody_uses() -> None:
    (note,) = (note for note in model(LONGCAT).notes if "give back" in note)
    assert f"{2 * 3 * 32 * 64:,} elements a layer" in note


# -- modules for further tokens --------------------------------------------------------------------------------------

V3 = {
    key: value
    for key, value in {**LATENT, "model_type": "deepseek_v3", "n_group": 2, "topk_group": 1}.items()
    if not key.startswith("index")
}


def test_further_tokens_by_hand() -> None:
    """One more sparse layer, a projection of 2 d, three norms, the embedding and the head once more."""
    plain, more = (
        model(V3, num_nextn_predict_layers=2),
        read_config({**V3, "num_nextn_predict_layers": 2}, "c", "m", mtp=True),
    )
    a, b = count(plain, tokens=13), count(more, tokens=13)
    sparse = next(segment for segment in plain.segments if segment.name == "experts")
    row = next(row for row in a.rows if row.name == "experts")
    own = row.parameters.total // len(sparse.layers)
    assert b.parameters.total - a.parameters.total == 2 * (own + 2 * 64 * 64 + 3 * 64 + 2 * 99 * 64)
    work = row.flops.total // len(sparse.layers) + 2 * 13 * (2 * 64 * 64 + 64 * 99)
    assert b.flops.total - a.flops.total == 2 * work
    assert more.layers == plain.layers == 6
    paths = {entry.path: entry.layers for entry in tensors(more)}
    assert paths["model.layers.{i}.eh_proj.weight"] == (6, 7)


def test_further_tokens_of_published_models() -> None:
    """DeepSeek-V3's files hold 680,571,043,840 elements in fp8 and 3,918,786,560 in bf16 (model card: 685B)."""
    config = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    found = count(read_config(config, "config", "model", mtp=True), tokens=1).parameters.total
    assert found == 680_571_043_840 + 3_918_786_560


def test_glm_counts_its_module() -> None:
    """GLM-4.5 (arXiv:2508.06471, table 1): 355B with its module and without word embeddings and output layer."""
    config = {
        "model_type": "glm4_moe",
        "hidden_size": 5120,
        "num_hidden_layers": 92,
        "first_k_dense_replace": 3,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12288,
        "n_routed_experts": 160,
        "moe_intermediate_size": 1536,
        "num_experts_per_tok": 8,
        "use_qk_norm": True,
        "attention_bias": True,
        "num_nextn_predict_layers": 1,
    }
    found = count(read_config(config, "config", "model", mtp=True), tokens=1).parameters
    assert round(found.non_embedding / 1e9) == 355
    assert found.active - found.embedding - found.head == pytest.approx(32e9, rel=0.0187)


def test_a_module_has_a_cache_of_its_own() -> None:
    a = count(model(V3), tokens=8, cache="bf16").cache
    b = count(read_config({**V3, "num_nextn_predict_layers": 1}, "c", "m", mtp=True), tokens=8, cache="bf16").cache
    assert b.bytes - a.bytes == 2 * 8 * 20


def test_no_module_is_an_error() -> None:
    with pytest.raises(SourceError, match="num_nextn_predict_layers is missing; it must be an integer of at least 1"):
        read_config(V3, "config", "model", mtp=True)
    with pytest.raises(SettingError, match="llama is described without modules for further tokens"):
        read_config({"model_type": "llama"}, "config", "model", mtp=True)
    with pytest.raises(SettingError, match="described without modules"):
        read_config({**V3, "num_nextn_predict_layers": 1}, "config", "model", cls="base", mtp=True)


def test_further_tokens_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the library and by the command; a description has none."""
    config = {**V3, "num_nextn_predict_layers": 1}
    found = assay.count(assay.load(config, mtp=True), tokens=8).parameters.total
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    assert main([str(file), "--mtp", "--tokens", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["total"] == found
    with pytest.raises(SettingError, match="is a description, which has no modules for further tokens"):
        assay.load("gpt-2", mtp=True)


# -- bad input -------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (V32, {"q_lora_rank": None}, "q_lora_rank is null; it must be an integer of at least 1"),
    (V32, {"index_head_dim": 2}, "index_head_dim is 2; it must be at least qk_rope_head_dim, 4"),
    (V32, {"layer_types": ["full_attention"] * 6}, "it must be a list of indexed_attention"),
    (GLM, {"indexer_types": ["shared"] * 6}, "it must be a list that begins with full"),
    (GLM, {"index_topk_pattern": "FSX"}, "it must be 6 letters F or S, the first F"),
    (AXK2, {"n_group": 2}, "topk_group is missing; it must be set where n_group is"),
    (DOTS3, {"per_layer_config": {"9": {}}}, "it must be an object of layers, 0 to 5"),
    (V4, {"o_groups": 3}, "num_attention_heads is 4; it must be a multiple of o_groups, 3"),
    (V4, {"layer_types": [SLIDING]}, "it must be a list of 5 items"),
    (V4, {"index_head_dim": 4}, "index_head_dim is 4; it must be at least the 8 elements that are rotated"),
    (V4, {"layer_types": None, "compress_ratios": [3] * 5}, "it must be a list of 0, 4 or 128"),
    (LONGCAT, {"num_hidden_layers": 5}, "num_hidden_layers is 5; it must be twice num_layers, 6"),
    (LONGCAT, {"qk_head_dim": 5}, "it must be qk_nope_head_dim \\+ qk_rope_head_dim, 16"),
    (M3, {"rotary_dim": 13}, "rotary_dim is 13; it must be at most head_dim, 12"),
    (M3, {"index_local_blocks": 0}, "what a query sees depends on the text"),
    (GEMMA3N, {"num_kv_shared_layers": 7}, "num_kv_shared_layers is 7; it must be at most num_hidden_layers, 6"),
    (GEMMA3N, {"num_kv_shared_layers": 5}, "every kind of layer that shares is among those that do not"),
    (GEMMA3N, {"intermediate_size": [1, 2]}, "intermediate_size has 2 items"),
    (GEMMA4, {"use_bidirectional_attention": "all"}, "it must be one of vision"),
    (GEMMA4_EXPERTS, {"top_k_experts": 9}, "top_k_experts is 9; it must be at most num_experts, 8"),
    (INKLING1, {"num_experts_per_tok": 9}, "num_experts_per_tok is 9; it must be at most n_routed_experts, 8"),
    (INKLING1, {"local_layer_ids": [9]}, "it must be a list of integers from 0 to 5"),
    (INKLING2_LOOP, {"loop_layer_index_start": 3}, "it must be a multiple of n_layers_per_attn_res_block, 2"),
    (INKLING2_LOOP, {"loop_layer_index_end": 10}, "it must be above 2, at most num_hidden_layers, 8"),
    (INKLING2_LOOP, {"loop_num_passes": 1}, "loop_num_passes is 1; it must be an integer of at least 2"),
    (MOSHI, {"ffn_dim": 81}, "ffn_dim is 81; it must be even"),
    (XLM, {"causal": True}, "causal is true; it must be false or null"),
    (XLNET, {"d_head": 3}, "d_head is 3; it must be d_model / n_head, 16"),
]


@pytest.mark.parametrize(("config", "changed", "says"), WRONG, ids=[says[:40] for _, _, says in WRONG])
def test_wrong_values(config: dict[str, Any], changed: dict[str, Any], says: str) -> None:
    with pytest.raises(SourceError, match=says):
        model(config, **changed)


def test_last_layer_of_gemma4_is_full() -> None:
    """The public implementation reads it so, and a note says it."""
    kinds = ["sliding_attention"] * 6
    found = model(GEMMA4, layer_types=kinds, num_kv_shared_layers=0)
    assert any("last layer is read as full attention" in note for note in found.notes)
    assert found.segments[2].layers == (5,)
