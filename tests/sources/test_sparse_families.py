"""Sparse attention, shared keys and values, several streams: against the public implementation and hand sums."""

from __future__ import annotations

from typing import Any

import pytest
from library import built, check_against_library, differences, needs_library, our_ledger, their_flops, their_ledger
from sparse_configs import (
    ASSISTANT,
    AXK2,
    DOTS3,
    FLAUBERT,
    GEMMA3N,
    GEMMA4,
    GEMMA4_EXPERTS,
    GLM,
    HEAVY,
    INKLING1,
    INKLING2,
    INKLING2_LOOP,
    LONGCAT,
    M3,
    MOSHI,
    SLIDING,
    SPARSE,
    V4,
    V32,
    VARIED,
    XLM,
    XLNET,
    counted,
    model,
)

from assay.errors import SourceError
from assay.readings.count import count
from assay.sources.huggingface import read_config

# classes' own defaults, all of one size at least of a real model
DEFAULTS = (
    "axk2 deepseek_v32 deepseek_v4 dots3_note_text gemma3n_text gemma4_text gemma4_unified_assistant "
    "gemma4_unified_text glm_moe_dsa hy_v4 inkling_text inkling2_text inkling2_loop_text longcat_flash "
    "minimax_m3_vl_text trocr xlm xlnet"
).split()


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
