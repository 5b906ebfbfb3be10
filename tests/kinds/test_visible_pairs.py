"""Visible pairs against masks drawn cell by cell, and a context cut into pieces against the whole."""

from __future__ import annotations

import pytest
from drawn import block, draw
from hypothesis import given
from hypothesis import strategies as st

from assay.kinds.base import triangle
from assay.kinds.keys import all_pairs, band_pairs, random_pairs
from assay.kinds.keys import block_pairs as blocks_of_a_pass
from assay.kinds.state import block_pairs, causal_pairs, chunk_pairs, prefix_pairs, window_pairs
from assay.readings.binding import bind
from assay.readings.count import count

lengths = st.integers(0, 60)
limits = st.integers(1, 70)


def mask(n: int, past: int, window: int | None = None, chunk: int | None = None) -> int:
    """Cells (query, key) that the mask leaves open: query i stands at past + i and sees no key after itself."""
    open_cells = 0
    for at in range(past, past + n):
        for key in range(past + n):
            causal = key <= at
            near = window is None or key > at - window
            together = chunk is None or key // chunk == at // chunk
            open_cells += causal and near and together
    return open_cells


@given(n=lengths, past=lengths)
def test_causal(n: int, past: int) -> None:
    assert causal_pairs(n, past) == mask(n, past)


@given(n=lengths, past=lengths)
def test_prefix(n: int, past: int) -> None:
    """All of the first pass see each other."""
    assert prefix_pairs(n, past) == (n * n if past == 0 else mask(n, past))


@given(n=lengths, past=lengths, window=limits)
def test_window(n: int, past: int, window: int) -> None:
    assert window_pairs(n, past, window) == mask(n, past, window=window)


@given(n=lengths, past=lengths, chunk=limits)
def test_chunk(n: int, past: int, chunk: int) -> None:
    assert chunk_pairs(n, past, chunk) == mask(n, past, chunk=chunk)


@given(n=st.integers(1, 60), reach=lengths)
def test_band(n: int, reach: int) -> None:
    """An encoder's local attention looks to both sides."""
    near = sum(abs(a - b) <= reach for a in range(n) for b in range(n))
    assert band_pairs(n, reach) == near


@given(n=st.integers(1, 60), past=lengths, a=limits, b=st.integers(1, 9))
def test_pairs_beside_each_querys_own(n: int, past: int, a: int, b: int) -> None:
    """Without its own key each query has one key less."""
    assert causal_pairs(n, past, 0) == causal_pairs(n, past) - n
    assert window_pairs(n, past, a, 0) == window_pairs(n, past, a) - n
    assert prefix_pairs(n, past, 0) == prefix_pairs(n, past) - n
    assert chunk_pairs(n, past, a, 0) == chunk_pairs(n, past, a) - n
    assert block_pairs(n, past, a, b, 0) == block_pairs(n, past, a, b) - n
    assert all_pairs(n, 0) == all_pairs(n) - n
    assert band_pairs(n, a, 0) == band_pairs(n, a) - n
    assert blocks_of_a_pass(n, a, b, 0) == blocks_of_a_pass(n, a, b) - n
    assert random_pairs(n, b, 1, 0) == random_pairs(n, b, 1) - n


def test_triangle() -> None:
    assert [triangle(m) for m in range(6)] == [0, 1, 3, 6, 10, 15]
    assert triangle(10**25) == sum((10**25, 10**50)) // 2


@pytest.mark.parametrize("window", [1, 2, 7, 128])
def test_keys_at_hand_and_kept(window: int) -> None:
    """A window of w has at most w - 1 earlier keys at hand beside the tokens now; a step then reads w of them."""
    made = block("k0 = append(k[n d], window=w) -> [c d]", d=1, w=window)
    (op,) = made.ops
    for n in (1, 3, 50):
        for past in (0, 1, 6, 200):
            extent = bind(made, {"b": 1, "n": n, "t": n, "past": past})
            assert extent.sizes["c"] == n + min(past, window - 1)
            assert count(made, tokens=n, past=past, cache="int8").cache.bytes == min(n + past, window)
    assert op.attr("window") == "w"


# -- a context in pieces ---------------------------------------------------------------------------------------------

SHAPES = {"full": {}, "window": {"window": 9}, "chunk": {"chunk": 9}}
cuts = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@pytest.mark.parametrize("shape", SHAPES)
@given(pieces=cuts, past=lengths)
def test_pieces_add_up_to_the_whole(shape: str, pieces: list[int], past: int) -> None:
    """n1 tokens, then n2 behind them, and so on: the visible pairs of the whole."""
    limit = ", ".join(f"{k}={v}" for k, v in SHAPES[shape].items())
    text = f"k0 = append(k[n d]{', ' + limit if limit else ''}) -> [c d]\ns = contract(q[n d], k0[c d]) -> [n c]"
    made = block(text, d=1)
    done, total = past, 0
    for n in pieces:
        total += count(made, tokens=n, past=done, convention="causal").flops.total
        done += n
    whole = count(made, tokens=sum(pieces), past=past, convention="causal").flops.total
    assert total == whole == 2 * mask(sum(pieces), past, **SHAPES[shape])


@given(pieces=cuts)
def test_a_prefill_in_pieces_costs_the_same_model(pieces: list[int]) -> None:
    """Full, windowed and chunked layers, projections, experts and head together, where masked pairs are skipped."""
    model = draw(
        layers=4,
        d=12,
        heads=3,
        ff=20,
        vocab=50,
        window=lambda i: 9 if i == 1 else None,
        chunk=lambda i: 7 if i == 2 else None,
        experts=4,
        chosen=2,
        expert_ff=8,
        moe=lambda i: i == 3,
    )
    done, total = 0, 0
    for n in pieces:
        total += count(model, tokens=n, past=done, convention="causal").flops.total
        done += n
    assert total == count(model, tokens=done, convention="causal").flops.total


@given(n=st.integers(1, 80), past=lengths, window=limits)
def test_dense_and_visible_of_a_window(n: int, past: int, window: int) -> None:
    """Dense is what a masking kernel does, n x keys at hand; a decode step sees every key it has."""
    made = block("k0 = append(k[n d], window=w) -> [c d]\ns = contract(q[n d], k0[c d]) -> [n c]", d=1, w=window)
    flops = count(made, tokens=n, past=past).flops
    assert flops.total == 2 * n * (n + min(past, window - 1))
    assert flops.visible_total == 2 * mask(n, past, window=window) <= flops.total
    step = count(made, tokens=1, past=past).flops
    assert step.total == step.visible_total == 2 * min(past + 1, window)
