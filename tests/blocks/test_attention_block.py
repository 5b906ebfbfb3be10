"""Attention's variants by hand: weights, FLOPs, scalar work and what is kept, each beside its closed form."""

from __future__ import annotations

from typing import Any

import pytest

from assay.blocks import Attention, Norm, Rope
from assay.kinds import check
from assay.readings.count import Count, count
from assay.spec import Block

D, H, G, K, N, PAST, B = 40, 6, 2, 5, 11, 13, 3
C = N + PAST


def built(**more: Any) -> Block:
    attention = Attention(**{"heads": H, "kv_heads": G, "head_width": K, **more})
    made = tuple(attention.ops("x", "y"))
    check(made)
    return Block("a", made, {a: s for a, s in attention.sizes().items() if s is not None} | {"d": D})


def counted(convention: str = "matmul", past: int = PAST, **more: Any) -> Count:
    return count(built(**more), B, N, past, convention=convention)


def weights(**more: Any) -> int:
    return int(counted(**more).parameters.total)


PLAIN = D * H * K + 2 * D * G * K + H * K * D  # q, k and v, o


def test_grouped_queries() -> None:
    of = counted()
    assert of.parameters.total == PLAIN
    assert of.flops.by_part == {"attention": 2 * B * N * PLAIN + 2 * B * H * N * C * 2 * K}
    assert of.flops.attention_scores == 2 * B * H * N * C * 2 * K
    assert of.cache.bytes == 2 * B * C * 2 * G * K  # bf16, keys and values
    assert of.cache.marginal_bytes_per_token == 2 * 2 * G * K


@pytest.mark.parametrize(("groups", "keys"), [(6, 6), (3, 3), (1, 1)])
def test_groups_change_keys_and_values_alone(groups: int, keys: int) -> None:
    of = counted(kv_heads=groups)
    assert of.parameters.total == 2 * D * H * K + 2 * D * keys * K
    assert of.flops.attention_scores == counted().flops.attention_scores
    assert of.cache.bytes == 2 * B * C * 2 * keys * K


def test_value_width_of_its_own() -> None:
    of = counted(value_width=7)
    assert of.parameters.total == D * H * K + D * G * K + D * G * 7 + H * 7 * D
    assert of.flops.attention_scores == 2 * B * H * N * C * (K + 7)
    assert of.cache.bytes == 2 * B * C * G * (K + 7)


@pytest.mark.parametrize(
    ("letters", "more"),
    [("q", H * K), ("k", G * K), ("v", G * K), ("o", D), ("qkv", (H + 2 * G) * K), ("qkvo", (H + 2 * G) * K + D)],
)
def test_biases(letters: str, more: int) -> None:
    assert weights(bias=letters) - PLAIN == more
    added = counted("scalar", bias=letters).flops.total - counted("scalar").flops.total
    assert added == B * N * more  # one addition a result
    assert counted(bias=letters).flops.total == counted().flops.total


@pytest.mark.parametrize(
    ("over", "gains", "rows"),
    [("head", 2 * K, H + G), ("heads", (H + G) * K, H + G), ("full", (H + G) * K, 2)],
)
def test_qk_norm(over: str, gains: int, rows: int) -> None:
    """One gain for all heads, one a head, or one norm of all heads at once: 4 an element, 3 a row."""
    of: dict[str, Any] = {"qk_norm": Norm(), "qk_norm_over": over}
    assert counted(**of).parameters.by_part["norm"] == gains
    assert counted("scalar", **of).flops.by_part["norm"] == B * N * (4 * (H + G) * K + 3 * rows)


@pytest.mark.parametrize(("width", "turned"), [(None, K), (2, 2)])
def test_rotary(width: int | None, turned: int) -> None:
    of = counted("scalar", positions=Rope(width))
    assert of.flops.total - counted("scalar").flops.total == 3 * B * N * (H + G) * turned
    assert of.parameters.total == PLAIN


@pytest.mark.parametrize(
    ("more", "a_score"),
    [
        ({"positions": "alibi"}, 1),  # a multiplication beside the addition
        ({"softcap": 50.0}, 3),  # divided, tanh, multiplied
        ({"scale": 0.25}, 0),  # another number
        ({"scale": 1}, -1),  # nothing to multiply with
    ],
)
def test_work_on_scores(more: dict[str, Any], a_score: int) -> None:
    extra = counted("scalar", **more).flops.total - counted("scalar").flops.total
    assert extra == a_score * B * H * N * C


def test_clip() -> None:
    extra = counted("scalar", clip=8.0).flops.total - counted("scalar").flops.total
    assert extra == 2 * B * N * (H + 2 * G) * K


def test_sinks() -> None:
    """One number a head: an exponential and an addition more in each row."""
    assert weights(sinks=True) - PLAIN == H
    extra = counted("scalar", sinks=True).flops.total - counted("scalar").flops.total
    assert extra == 2 * B * H * N


@pytest.mark.parametrize(("gate", "width"), [("element", H * K), ("head", H)])
def test_gates(gate: str, width: int) -> None:
    of = counted(gate=gate)
    assert of.parameters.total - PLAIN == D * width
    assert of.flops.total - counted().flops.total == 2 * B * N * D * width
    scalar = counted("scalar", gate=gate).flops.total - counted("scalar").flops.total
    assert scalar == B * N * (width * (2 * D - 1) + 4 * width + H * K)  # the sigmoid of four, the product


@pytest.mark.parametrize("window", [1, 5, 13, 14, 100])
def test_window(window: int) -> None:
    of = counted(window=window)
    at_hand = N + min(PAST, window - 1)
    assert of.flops.attention_scores == 2 * B * H * N * at_hand * 2 * K
    pairs = sum(min(PAST + i + 1, window) for i in range(N))
    assert counted("causal", window=window).flops.attention_scores == 2 * B * H * pairs * 2 * K
    assert of.cache.bytes == 2 * B * min(C, window) * 2 * G * K
    assert of.cache.marginal_bytes_per_token == (0 if window <= C else 2 * 2 * G * K)


@pytest.mark.parametrize("chunk", [1, 4, 13, 100])
def test_chunk(chunk: int) -> None:
    pairs = sum((PAST + i) % chunk + 1 for i in range(N))
    assert counted("causal", chunk=chunk).flops.attention_scores == 2 * B * H * pairs * 2 * K
    assert counted(chunk=chunk).cache.bytes == 2 * B * min(C, chunk) * 2 * G * K


def test_stable_softmax_adds_five_a_score() -> None:
    assert counted("stable-softmax").flops.total - counted().flops.total == 5 * B * H * N * C


def test_all_tokens_seen() -> None:
    """An encoder keeps nothing, and no pair is masked."""
    of = count(built(sees="all"), B, N)
    assert of.cache.bytes == 0
    assert of.flops.total == of.flops.visible_total
    assert of.flops.attention_scores == 2 * B * H * N * N * 2 * K
