"""The checkers themselves must be seen to fail."""

from __future__ import annotations

import pytest
from library import check_against_library, differences, needs_library

pytestmark = needs_library

SMALL = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def test_differences_name_what_is_missing_and_what_is_off() -> None:
    ours = {"a": ((2, 3), 1), "b": ((4,), 2)}
    theirs = {"a": ((3, 2), 1), "c": ((4,), 2)}
    assert [line.split(":")[0] for line in differences(ours, theirs)] == ["a", "b", "c"]
    assert differences(ours, ours) == []


def test_check_passes_on_a_right_reading() -> None:
    check_against_library(SMALL, tokens=8)


def test_check_fails_on_a_wrong_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    import library

    theirs = library.built({**SMALL, "intermediate_size": 49})
    monkeypatch.setattr(library, "built", lambda config, auto: theirs)
    wrong = r"mlp\.down_proj\.weight: ours \(\(32, 48\), 3\), theirs \(\(32, 49\), 3\)"
    with pytest.raises(AssertionError, match=wrong):
        check_against_library(SMALL)


def test_flops_check_fails_on_a_wrong_count(monkeypatch: pytest.MonkeyPatch) -> None:
    import library

    monkeypatch.setattr(library, "their_flops", lambda *_: 1)
    with pytest.raises(AssertionError, match=r"FLOPs: ours \d+, theirs 1$"):
        check_against_library(SMALL, tokens=8)
