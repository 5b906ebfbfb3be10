"""What masks of encoders let through, by brute force; work by hand; what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from encoder_configs import BLOCKS, LATENTS, RELATIVE, SMALL, named, read, small

from assay.errors import SettingError, SourceError
from assay.readings.count import count


def masked_difference(config: dict[str, Any], tokens: int) -> int:
    """FLOPs of attention that a mask leaves out."""
    flops = count(read(config), batch=2, tokens=tokens).flops
    total, visible = flops.total, flops.visible_total
    assert isinstance(total, int)
    assert isinstance(visible, int)
    return total - visible


@pytest.mark.parametrize("tokens", [1, 3, 4, 7, 8, 30, 31])
def test_windows_to_both_sides(tokens: int) -> None:
    """Pairs of tokens further apart than half the window, one by one: two of three layers have one."""
    config = {"model_type": "modernbert", **SMALL, "local_attention": 6, "pad_token_id": 0}
    hidden = sum(abs(i - j) > 3 for i in range(tokens) for j in range(tokens))
    assert masked_difference(config, tokens) == 2 * 2 * (2 * 2 * 32) * hidden


@pytest.mark.parametrize("tokens", [1, 5, 9, 30])
def test_windows_of_each_layer(tokens: int) -> None:
    config = {"model_type": "longformer", **SMALL, "attention_window": [2, 4, 8]}
    hidden = sum(abs(i - j) > half for half in (1, 2, 4) for i in range(tokens) for j in range(tokens))
    assert masked_difference(config, tokens) == 2 * (2 * 2 * 32) * hidden


def test_longformer_by_hand() -> None:
    """d 32, f 48, V 96, n 10: four matrices, the MLP and all pairs in each of three layers; the head."""
    config = {"model_type": "longformer", **SMALL, "attention_window": 4}
    layer = 2 * 10 * (4 * 32 * 32 + 2 * 32 * 48) + 4 * 10 * 10 * 32
    assert count(read(config), tokens=10).flops.total == 3 * layer + 2 * 10 * (32 * 32 + 32 * 96)


@pytest.mark.parametrize("blocks", [3, 7, 8, 12])
def test_blocks_at_random(blocks: int) -> None:
    """BigBird's blocks of 2 tokens and 1 at random, block by block; 5 + 2 of them are too few for a pattern."""
    config = {"model_type": "big_bird", **SMALL, "block_size": 2, "num_random_blocks": 1}
    seen = []
    for i in range(blocks):
        if blocks <= 7 or i in (0, blocks - 1):
            seen.append(blocks)
        else:
            fixed = {0, blocks - 1, i - 1, i, i + 1}
            seen.append(len(fixed) + 1)
    hidden = (blocks * blocks - sum(seen)) * 4
    assert masked_difference(config, 2 * blocks) == 2 * 3 * (2 * 2 * 32) * hidden


def test_scores_of_positions_reach_as_far_as_tokens() -> None:
    """DeBERTa's first version projects 2 n relative positions, at most twice the reach: here n 5 and 9, reach 6."""
    config = {"model_type": "deberta", **SMALL, **RELATIVE, "max_relative_positions": 6, "position_biased_input": False}
    plain = {"model_type": "deberta", **SMALL, "position_biased_input": False}
    for n, near in ((5, 10), (9, 12)):
        more = count(read(config), tokens=n).flops.total - count(read(plain), tokens=n).flops.total
        assert more == 3 * 2 * (2 * near * 32 * 32 + 2 * n * near * 32)


@pytest.mark.parametrize(
    ("model_type", "more", "rows"),
    [
        ("bert", {}, 40),
        ("roberta", {}, 38),  # pad_token_id 1: the first position is 2
        ("xlm-roberta", {"pad_token_id": 3}, 36),
        ("mpnet", {"pad_token_id": 7}, 38),  # whatever the padding is
        ("distilbert", {}, 40),
        ("nystromformer", {}, 40),
        ("yoso", {}, 40),
    ],
)
def test_position_tables_end(model_type: str, more: dict[str, Any], rows: int) -> None:
    model = read(small(model_type, **more))
    assert count(model).setting.tokens == rows
    with pytest.raises(SettingError, match=f"is {rows + 1}; model has a learned position table of {rows}"):
        count(model, tokens=rows + 1)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "modernbert", **SMALL},
        {"model_type": "roberta", **SMALL},
        {"model_type": "albert", **SMALL, "embedding_size": 16},
    ],
    ids=named,
)
def test_nothing_is_kept(config: dict[str, Any]) -> None:
    model = read(config)
    cache = count(model, tokens=9).cache
    assert (cache.bytes, cache.marginal_bytes_per_token, cache.fixed_bytes) == (0, 0, 0)
    with pytest.raises(SettingError, match="past is 5; model keeps nothing between passes, so it must be 0"):
        count(model, tokens=3, past=5)


def test_rotary_positions_have_no_end() -> None:
    assert count(read({"model_type": "modernbert", **SMALL}), tokens=1000).parameters.total > 0


def test_latents_read_tokens_once() -> None:
    """A token more costs a key, a value, scores and values of 6 latents; logits are of all 16 rows."""
    few, more = (count(read(LATENTS), tokens=n) for n in (9, 10))
    assert more.flops.total - few.flops.total == 2 * (2 * 32 * 32 + 2 * 6 * 32)
    assert few.flops.by_part["head"] == 2 * 16 * 32 * 40
    assert few.flops.visible_total == few.flops.total
    with pytest.raises(SettingError, match="position table of 16 rows"):
        count(read(LATENTS), tokens=17)
    with pytest.raises(SourceError, match=r"qk_channels is 24; it must be d_latents, 48"):
        read({**LATENTS, "qk_channels": 24})


def test_shared_layers_are_stored_once_and_run_each_time() -> None:
    """ALBERT, d 32, j 16, f 48, V 96: one layer stored, run three times."""
    made = count(read(small("albert")), tokens=10)
    stored = 4 * (32 * 32 + 32) + (2 * 32 * 48 + 48 + 32)
    assert made.parameters.by_part["attention"] + made.parameters.by_part["mlp"] == stored
    layer = 2 * 10 * (4 * 32 * 32 + 2 * 32 * 48) + 4 * 10 * 10 * 32
    assert made.flops.total == 3 * layer + 2 * 10 * (16 * 32 + 32 * 16 + 16 * 96)


def test_untied_head_is_no_embedding() -> None:
    tied, untied = (count(read(small("bert", tie_word_embeddings=kept)), tokens=1).parameters for kept in (True, False))
    assert tied.embedding == untied.embedding == (96 + 40 + 2) * 32
    assert untied.total - tied.total == 96 * 32 + 96  # the matrix, and a second bias that is stored beside it


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (small("bert", is_decoder=True), "config: is_decoder is true; it must be false or null"),
        (
            small("bert", position_embedding_type="relative_key"),
            "position_embedding_type is 'relative_key'; it",
        ),
        (small("bert", type_vocab_size=0), "type_vocab_size is 0; it must be an integer of at least 1"),
        (small("bert", num_attention_heads=5), "hidden_size is 32; it must be a multiple of num_attention_heads, 5"),
        (small("bert", hidden_act="mish"), "hidden_act is 'mish'; it must be one of"),
        (small("bert", wings=2), "wings is 2: not known for bert"),
        (small("roberta", max_position_embeddings=2), "max_position_embeddings is 2; it must be above 2, pad_token_id"),
        (small("albert", num_hidden_groups=9), "num_hidden_groups is 9; it must be at most num_hidden_layers, 3"),
        (small("deberta-v2", pos_att_type=["p2p"]), "pos_att_type is .* it must be null or a list of c2p and p2c"),
        (small("deberta-v2", conv_kernel_size=4), "conv_kernel_size is 4; it must be 0 or odd"),
        (small("deberta-v2", norm_rel_ebd="layer_norm"), "norm_rel_ebd asks for a norm of relative positions"),
        (small("deberta", talking_head=True), "talking_head is true; it must be false or null"),
        (small("longformer", attention_window=[2, 4]), "attention_window has 2 items; it must be a list of 3 items"),
        (small("longformer", attention_window=3), "attention_window is 3; it must be an even integer of at least 2"),
        (small("nystromformer", num_landmarks=4), "segment_means_seq_len is 11; it must be 4 or null"),
        (small("yoso", use_expectation=False), "use_expectation is false; it must be true or null"),
        (small("squeezebert", q_groups=3), "hidden_size is 32; it must be a multiple of q_groups, 3"),
        (small("convbert", conv_kernel_size=8), "conv_kernel_size is 8; it must be odd"),
        (
            small("mobilebert", use_bottleneck_attention=True),
            "key_query_shared_bottleneck is .* the opposite",
        ),
        (small("fnet", use_tpu_fourier_optimizations=True), "use_tpu_fourier_optimizations is true; it must be false"),
        (small("rembert", tie_word_embeddings=True), "tie_word_embeddings is true; it must be false"),
        (small("new", layer_norm_type="rms_norm"), "layer_norm_type is 'rms_norm'; it must be 'layer_norm' or null"),
        (
            small("bert", architectures=["BertLMHeadModel"]),
            "names BertLMHeadModel, which is not described",
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else None,
)
def test_refusals_name_key_and_value(config: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read(config)


def test_class_can_be_asked_for() -> None:
    config = small("bert", architectures=["BertForSequenceClassification"], id2label={"0": "a", "1": "b", "2": "c"})
    assert read(config).cls == "BertForSequenceClassification"
    masked = read(config, "masked")
    assert masked.cls == "BertForMaskedLM"
    assert read(config, "BertForMaskedLM").segments == masked.segments
    base = count(read(config, "base"), tokens=1).parameters
    assert count(read(config), tokens=1).parameters.total - base.total == 3 * 32 + 3
    with pytest.raises(SettingError, match="class is 'causal'; bert has masked \\(BertForMaskedLM\\), base"):
        read(config, "causal")


def test_a_funnel_that_is_not_described() -> None:
    for key, value in (("separate_cls", False), ("attention_type", "factorized"), ("block_repeats", [1, 2])):
        with pytest.raises(SourceError, match=f"{key} (is|has)"):
            read({"model_type": "funnel", **BLOCKS, key: value})
