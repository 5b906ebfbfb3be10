"""Decoders turned into encoders by their configs, as models of embeddings are: nothing is kept, all is seen."""

from __future__ import annotations

from typing import Any

import pytest
from library import check_against_library

import assay

WIDTHS: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2Model"], "num_hidden_layers": 3, **WIDTHS}
MISTRAL = {"model_type": "mistral", "num_hidden_layers": 2, "sliding_window": 3, **WIDTHS}
GEMMA3 = {
    "model_type": "gemma3_text",
    "architectures": ["Gemma3TextModel"],
    "num_hidden_layers": 6,
    "head_dim": 16,
    "sliding_window": 8,
    **WIDTHS,
}


def pairs(n: int, reach: int) -> int:
    """Of n tokens, those within reach of each other, themselves among them."""
    return sum(abs(i - j) <= reach for i in range(n) for j in range(n))


def scores(model: assay.Model, n: int) -> tuple[int, int]:
    counted = assay.count(model, tokens=n, convention="causal")
    return counted.flops.attention_scores, assay.count(model, tokens=n).flops.attention_scores


@pytest.mark.parametrize(
    "config", [{**QWEN2, "is_causal": False}, {**GEMMA3, "use_bidirectional_attention": True}], ids=["qwen2", "gemma3"]
)
def test_against_the_library(config: dict[str, Any]) -> None:
    check_against_library(config, 20, auto="AutoModel")


def test_nothing_is_kept() -> None:
    plain, turned = assay.load(QWEN2), assay.load({**QWEN2, "is_causal": False})
    assert assay.count(plain, tokens=9).parameters == assay.count(turned, tokens=9).parameters
    assert assay.count(plain, tokens=9).flops.total == assay.count(turned, tokens=9).flops.total
    assert assay.count(turned, tokens=9).cache.bytes == 0
    assert assay.load({**QWEN2, "is_causal": True}).segments == plain.segments
    with pytest.raises(assay.SettingError, match=r"past is 4; .* keeps nothing between passes"):
        assay.count(turned, tokens=1, past=4)


def test_what_is_seen() -> None:
    # 2 products of 2 FLOPs over 16 values of each of 4 heads for every pair
    each = 2 * 2 * 4 * 16
    assert scores(assay.load({**QWEN2, "is_causal": False}), 9) == (3 * each * 81, 3 * each * 81)
    # a window of 3 keys reaches 3 to either side, as the library's mask does
    assert scores(assay.load({**MISTRAL, "is_causal": False}), 9)[0] == 2 * each * pairs(9, 3)
    # five layers whose window of 8 lies half before and half behind a token, and a full one
    both = assay.load({**GEMMA3, "use_bidirectional_attention": True})
    assert scores(both, 20)[0] == each * (5 * pairs(20, 4) + 400)


def test_layers_with_a_direction() -> None:
    scan = {"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 1, "vocab_size": 50, "is_causal": False}
    with pytest.raises(assay.SourceError, match="config: is_causal is false; it must be true or null for model_type"):
        assay.load(scan)
    with pytest.raises(assay.SourceError, match="is_causal is 0; it must be true or false"):
        assay.load({**QWEN2, "is_causal": 0})
