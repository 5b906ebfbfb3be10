"""Closed sums against loops: every figure of a generation equals the passes counted one by one."""

from __future__ import annotations

from random import Random

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from assay.blocks import Attention, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Step
from assay.blocks.moe import Moe
from assay.errors import KindError, SettingError
from assay.readings.conventions import CONVENTIONS
from assay.readings.count import Cache, Flops, count
from assay.readings.generate import generate, polynomial
from assay.sources import load
from assay.spec import Model


def model(*limits: dict[str, int], positions: int | None = None) -> Model:
    """A small decoder, a layer for each of `limits`: a window, a chunk, or neither."""
    norm = Norm()
    layers = tuple(
        Layer(
            (
                Step((Branch(Attention(4, 2, 3, window=limit.get("window"), chunk=limit.get("chunk")), norm),)),
                Step((Branch(Moe(4, 2, 5) if i % 2 else Mlp(7), norm),)),
            ),
            f"layer {i}",
        )
        for i, limit in enumerate(limits)
    )
    decoder = Decoder(Embedding(11, 6, positions=positions), layers, Head(11, 6, norm=norm))
    return Model("small", decoder.segments({}), layers=len(layers), width=6, positions=positions)


limits = st.one_of(
    st.just({}),
    st.builds(lambda w: {"window": w}, st.integers(1, 12)),
    st.builds(lambda c: {"chunk": c}, st.integers(1, 12)),
)


@given(
    st.lists(limits, min_size=1, max_size=2),
    st.integers(1, 30),
    st.integers(1, 20),
    st.integers(0, 20),
    st.integers(1, 3),
    st.sampled_from(["all", "last"]),
    st.sampled_from(list(CONVENTIONS)),
)
def test_every_figure_equals_the_passes_counted_one_by_one(
    drawn: list[dict[str, int]], new: int, tokens: int, past: int, batch: int, logits: str, convention: str
) -> None:
    small = model(*drawn)
    made = generate(small, new, batch=batch, tokens=tokens, past=past, logits=logits, convention=convention)

    def flops(tokens: int, past: int) -> Flops:
        return count(small, batch, tokens, past, logits=logits, convention=convention).flops

    end = past + tokens
    assert made.prefill == flops(tokens, past)
    assert made.restart == flops(end, 0)
    assert made.steps == sum((flops(1, end + i) for i in range(new)), start=Flops())
    assert made.again == sum((flops(end + i + 1, 0) for i in range(new)), start=Flops())
    assert made.cache == count(small, batch, 1, end + new - 1).cache
    assert made.total == made.prefill.total + made.steps.total
    assert made.uncached_total == made.restart.total + made.again.total


def test_article_on_prefill_and_decode() -> None:
    """Attention scores of N cached steps behind T tokens: 4 d (N T + N (N + 1) / 2), for a model of 4 heads of 3."""
    n, t, d = 2048, 2048, 4 * 3
    steps = generate(model({}), n, tokens=t).steps
    assert steps.attention_scores == 4 * d * (n * t + n * (n + 1) // 2)


@pytest.mark.parametrize("new", [10**6, 10**25])
@pytest.mark.parametrize("convention", list(CONVENTIONS))
def test_any_number_of_tokens_is_one_sum(new: int, convention: str) -> None:
    """Sums over ever longer runs differ by what the last pass costs: telescoped, so no loop is needed to check."""
    small = model({"window": 4096}, {"chunk": 8192}, {})
    longer = generate(small, new + 1, tokens=1000, convention=convention)
    made = generate(small, new, tokens=1000, convention=convention)
    end = 1000 + new
    assert longer.steps.total - made.steps.total == count(small, 1, 1, end, convention=convention).flops.total
    assert longer.again.total - made.again.total == count(small, 1, end + 1, convention=convention).flops.total


def test_what_generates_nothing_is_refused() -> None:
    with pytest.raises(
        SettingError, match=r"past \+ tokens \+ generate is 0 \+ 8 \+ 9 = 17; small has a learned .* of 16 rows"
    ):
        generate(model({}, positions=16), 9, tokens=8)
    assert generate(model({}, positions=16), 8, tokens=8).new == 8
    symbol = sympy.Symbol("N", positive=True, integer=True)
    with pytest.raises(SettingError, match="generate takes integers"):
        generate(model({}), symbol)


def test_a_sum_that_is_no_polynomial_is_refused() -> None:
    with pytest.raises(KindError, match="no closed sum is known"):
        polynomial(lambda m: Flops(m**3, m**3), 1, 100)


def test_nothing_held_by_a_model_without_layers_of_attention() -> None:
    assert generate(model(), 5, tokens=3).cache == Cache()


@pytest.mark.parametrize("latent", ["expanded", "absorbed"])
@pytest.mark.parametrize("convention", list(CONVENTIONS))
@pytest.mark.parametrize("name", ["deepseek-v2-lite", "gpt-oss-20b", "llama-4-scout", "gpt-2", "mpt-7b"])
def test_known_models_step_by_step(name: str, convention: str, latent: str) -> None:
    """Latent attention either way, windows with sinks, chunks of 8,192, learned positions, ALiBi."""
    known = load(name)
    tokens = {"llama-4-scout": 8190, "gpt-oss-20b": 126}.get(name, 3)
    asked = {"convention": convention, "latent": latent, "logits": "last"}
    made = generate(known, 6, tokens=tokens, **asked)
    each = [(count(known, 1, 1, tokens + i, **asked), count(known, 1, tokens + i + 1, **asked)) for i in range(6)]
    assert made.steps == sum((step.flops for step, _ in each), start=Flops())
    assert made.again == sum((full.flops for _, full in each), start=Flops())
    assert made.cache == each[-1][0].cache


def test_a_position_table_leaves_room_for_what_is_generated() -> None:
    """2,048 tokens where there is no table; else what the table has left, and what is asked for stays as it is."""
    table = load({"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 2, "vocab_size": 50, "n_positions": 100})
    assert generate(table, 30) == generate(table, 30, tokens=70)
    assert generate(table, 30, past=5, tokens=20).new == 30
    with pytest.raises(SettingError, match=r"learned position table of 100 rows"):
        generate(table, 30, tokens=71)
    with pytest.raises(SettingError, match=r"learned position table of 100 rows"):
        generate(table, 100)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", ["deepseek-v2-lite", "gpt-oss-20b", "llama-4-scout", "gpt-2"])
def test_arrays_as_ints(name: str, exact: bool) -> None:
    """Every figure of many generations at once, floats and integers that stay exact, beside each by itself."""
    numpy = pytest.importorskip("numpy")
    known, random = load(name), Random(name)
    room = known.positions or 30_000
    rows = [{"tokens": random.choice((1, 2, random.randint(1, room // 3))), "past": 0} for _ in range(30)]
    for place, row in enumerate(rows):
        row |= {"past": random.randint(0, room // 3) if place % 3 else 0, "batch": random.choice((1, 3))}
        row["new"] = random.randint(1, 6) if place % 2 else random.randint(1, room // 3)
    arrays = {key: numpy.array([row[key] for row in rows], dtype=object if exact else float) for key in rows[0]}
    made = generate(known, **arrays)
    for place, row in enumerate(rows):
        alone = generate(known, **row)
        pairs = [(made.total, alone.total), (made.cache.bytes, alone.cache.bytes), (made.new, row["new"])]
        for passes in ("prefill", "steps", "restart", "again"):
            many, one = getattr(made, passes), getattr(alone, passes)
            pairs += [(many.total, one.total), (many.visible_total, one.visible_total)]
            pairs += [(many.by_part[part], size) for part, size in one.by_part.items()]
        for found, right in pairs:
            told = found[place] if hasattr(found, "dtype") else found
            assert told == (right if exact or right < 2**53 else pytest.approx(right, rel=1e-14))
