"""Attention taken apart: by hand for one layer, and adding up for every preset under every convention."""

from __future__ import annotations

import pytest

import assay
from assay.readings.attention import split
from assay.readings.conventions import CONVENTIONS
from assay.readings.setting import setting
from assay.sources.presets import presets

D, H, N = 768, 12, 1024  # GPT-2's width, heads and longest pass


def test_gpt2_by_hand() -> None:
    model = assay.load("gpt-2", sizes={"layers": 1})
    found = split(model, setting(model, tokens=N, convention="stable-softmax"))
    assert found.projections == 4 * 2 * N * D * D
    assert found.scores == found.output == 2 * N * N * D
    assert found.softmax == 5 * H * N * N
    assert found.total == found.projections + found.scores + found.softmax + found.output


def test_layers_add_up() -> None:
    one, twelve = (assay.load("gpt-2", sizes={"layers": n}) for n in (1, 12))
    assert split(twelve, setting(twelve)).scores == 12 * split(one, setting(one)).scores


def test_cross_attention_has_scores_of_its_own() -> None:
    """One query against 40 source tokens and itself: 12 heads of 64, in 12 decoder layers; 40 x 40 in the encoder."""
    model = assay.load("t5-base")
    found = split(model, setting(model, tokens=1, source=40))
    pairs = 12 * (12 * (40 + 1) + 12 * 40 * 40)
    assert found.scores == found.output == 2 * 64 * pairs
    priced = split(model, setting(model, tokens=1, source=40, convention="stable-softmax"))
    assert priced.softmax == 5 * pairs, "the softmax over a source's keys is one, too"


def test_latent_attention_absorbed_scores_against_the_latent() -> None:
    """Each of 128 heads against a latent of 512 and a rotary part of 64; values are the latent's 512."""
    model = assay.load("deepseek-v3")
    found = split(model, setting(model, tokens=1, past=99, latent="absorbed"))
    assert found.scores == 61 * 128 * 100 * 2 * (512 + 64)
    assert found.output == 61 * 128 * 100 * 2 * 512


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_pieces_are_all_of_attention(convention: str) -> None:
    """Of every preset: what is taken apart is the part `attention`, and its core what the report calls scores."""
    for name, _ in presets():
        model = assay.load(name)
        counted = assay.count(model, tokens=64, convention=convention)
        found = split(model, counted.setting)
        assert found.total == counted.flops.by_part.get("attention", 0), name
        if not counted.flops.by_part.get("mixer"):
            assert found.scores + found.softmax + found.output == counted.flops.attention_scores, name


def test_a_model_without_attention_has_none() -> None:
    model = assay.load("mamba-130m")
    assert split(model, setting(model)).total == 0
