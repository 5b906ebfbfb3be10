"""Each convention against sums by hand, and against the others."""

from __future__ import annotations

import pytest
from drawn import LLAMA3_8B, draw, read
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import SettingError
from assay.kinds import SORTS
from assay.readings.conventions import CONVENTIONS, convention
from assay.readings.count import count

MODEL = draw(
    layers=4,
    d=12,
    heads=3,
    ff=20,
    vocab=50,
    experts=6,
    chosen=2,
    expert_ff=7,
    moe=lambda i: i == 3,
    window=lambda i: 9 if i == 1 else None,
    chunk=lambda i: 7 if i == 2 else None,
)


def test_prices_are_of_sorts_that_exist() -> None:
    for made in CONVENTIONS.values():
        assert made.prices.keys() <= SORTS.keys()
        assert made.says
        assert made.source
    assert CONVENTIONS["scalar"].prices.keys() == SORTS.keys() - {"softmax"}  # its parts are counted


def test_unknown_convention() -> None:
    with pytest.raises(SettingError, match=r"convention is 'macs'; known: matmul, causal, scalar, stable-softmax"):
        convention("macs")


def test_prices() -> None:
    work = {"multiply_add": 100, "start": 10, "add": 3, "exp": 5, "compare": 2, "softmax": 7}
    priced = {name: made.flops(work) for name, made in CONVENTIONS.items()}
    assert priced == {"matmul": 200, "causal": 200, "scalar": 200 - 10 + 3 + 5 + 2, "stable-softmax": 235}


@given(batch=st.integers(1, 4), tokens=st.integers(1, 60), past=st.integers(0, 60))
def test_how_conventions_stand_to_each_other(batch: int, tokens: int, past: int) -> None:
    by = {name: count(MODEL, batch, tokens, past, convention=name).flops for name in CONVENTIONS}
    assert by["causal"].total == by["matmul"].visible_total <= by["matmul"].total
    assert by["causal"].visible_total == by["causal"].total
    elements = sum(
        batch * 3 * tokens * (tokens + min(past, limit - 1)) for limit in (10**9, 9, 7, 10**9)
    )  # a head's scores
    assert by["stable-softmax"].total - by["matmul"].total == 5 * elements
    for flops in by.values():
        assert sum(flops.by_part.values()) == flops.total
        assert flops.attention_scores <= flops.by_part["attention"]


@given(tokens=st.integers(1, 40), past=st.integers(0, 40))
def test_decode_steps_add_up_to_the_visible_prefill(tokens: int, past: int) -> None:
    """One token at a time, dense, sees what the causal prefill sees; a chunk's cache is read whole all the same."""
    windowed = draw(layers=2, d=12, heads=3, ff=20, vocab=50, window=lambda i: 9 if i else None)
    steps = sum(count(windowed, tokens=1, past=past + i).flops.total for i in range(tokens))
    assert steps == count(windowed, tokens=tokens, past=past, convention="causal").flops.total


def test_scalar_of_a_whole_model_by_hand() -> None:
    """Llama's layer, dense, every operation one: 2 k - 1 a dot product, 4 d + 3 a norm, 3 a rotated element."""
    n, d, heads, kv, width, ff, vocab, layers = 7, 16, 4, 2, 4, 24, 30, 3
    config = {
        **LLAMA3_8B,
        "hidden_size": d,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": ff,
        "vocab_size": vocab,
    }
    flops = count(read(config), tokens=n, convention="scalar").flops
    norm = n * (4 * d + 3)
    projections = n * (heads + 2 * kv) * width * (2 * d - 1) + n * d * (2 * heads * width - 1)
    rotation = 3 * n * (heads + kv) * width
    scores = heads * n * n
    core = scores * (2 * width - 1) + 2 * scores + 3 * scores - heads * n + heads * n * width * (2 * n - 1)
    mlp = 2 * n * ff * (2 * d - 1) + 5 * n * ff + n * d * (2 * ff - 1)
    assert flops.by_part == {
        "embedding": 0,
        "norm": (2 * layers + 1) * norm,
        "attention": layers * (projections + rotation + core),
        "mlp": layers * mlp,
        "other": layers * 2 * n * d,
        "head": n * vocab * (2 * d - 1),
    }
    assert flops.attention_scores == layers * core
