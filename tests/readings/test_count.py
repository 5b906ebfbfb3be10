"""The count itself: settings and their refusals, what adds, and what is counted once."""

from __future__ import annotations

from typing import Any

import pytest
from drawn import LLAMA3_8B, block, draw, read

from assay.errors import SettingError, SizeError
from assay.readings.count import Cache, Count, Flops, Parameters, count
from assay.spec import Model

MODEL = draw(layers=3, d=12, heads=6, kv=2, ff=20, vocab=50)
GPT2 = {"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 2, "vocab_size": 50, "n_positions": 100}


# -- settings --------------------------------------------------------------------------------------------------------


def test_defaults() -> None:
    asked = count(MODEL).setting
    assert (asked.batch, asked.tokens, asked.past, asked.context) == (1, 2048, 0, 2048)
    assert (asked.convention, asked.logits, asked.weights, asked.cache) == ("matmul", "all", "bf16", "bf16")


def test_tokens_are_cut_to_a_position_table() -> None:
    model = read(GPT2)
    assert count(model).setting.tokens == 100
    assert count(model, tokens=40, past=60).setting.context == 100
    with pytest.raises(SettingError, match=r"past \+ tokens is 101; model has a learned position table of 100 rows"):
        count(model, tokens=41, past=60)


def test_context_is_past_and_present() -> None:
    assert count(MODEL, tokens=1, context=500).setting.past == 499
    assert count(MODEL, context=500).setting.tokens == 500
    numpy = pytest.importorskip("numpy")
    assert count(MODEL, context=numpy.array([500, 5000])).setting.tokens.tolist() == [500, 2048]
    assert count(MODEL, tokens=1, context=500) == count(MODEL, tokens=1, past=499)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"past": 1, "context": 2}, SettingError, "past and context cannot both be given"),
        ({"tokens": 9, "context": 8}, SettingError, "context is 8; .* at least the 9 tokens"),
        ({"logits": "first"}, SettingError, "logits is 'first'; known: all, last"),
        ({"convention": "macs"}, SettingError, "convention is 'macs'; known: matmul, causal"),
        ({"convention": ["matmul"]}, SettingError, r"convention is \['matmul'\]; known: matmul, causal"),
        ({"weights": "fp5"}, SettingError, "weights is 'fp5'; known: .*bf16"),
        ({"cache": "fp5"}, SettingError, "cache is 'fp5'; known"),
        ({"state": "fp5"}, SettingError, "state is 'fp5'; known"),
        ({"latent": "both"}, SettingError, "latent is 'both'; known: expanded, absorbed"),
        ({"source": 5}, SettingError, "source is 5; drawn has no encoder"),
        ({"images": 2}, SettingError, "images is 2; drawn has no tower"),
        ({"batch": 0}, SizeError, "batch is 0; it must be an integer of at least 1"),
        ({"tokens": -1}, SizeError, "tokens is -1"),
        ({"past": -1}, SizeError, "past is -1; it must be an integer of at least 0"),
        ({"tokens": 1.5}, SizeError, "tokens is 1.5"),
        ({"tokens": "many"}, SizeError, "tokens is 'many'"),
        (
            {"d": 5},
            SettingError,
            "a model has no open sizes; d cannot be set; what can: batch, tokens, past, .*, latent$",
        ),
    ],
)
def test_settings_that_are_refused(asked: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        count(MODEL, **asked)


def test_arrays_are_refused_as_ints_are() -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(SettingError, match="images is 2; drawn has no tower"):
        count(MODEL, images=numpy.array([1, 2]))
    with pytest.raises(SettingError, match="a learned position table of 100 rows"):
        count(read(GPT2), tokens=numpy.array([10, 101]))


def test_what_is_no_model() -> None:
    with pytest.raises(SettingError, match=r"a model or a block is needed, not a dict; assay\.load reads it"):
        count({"model_type": "llama"})  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"not the name 'llama-3-8b'; assay\.load reads it"):
        count("llama-3-8b")  # type: ignore[arg-type]


def test_an_open_axis_is_asked_for() -> None:
    made = block("y = linear(x[n d], W[d f]) -> [n f]", d=3)
    with pytest.raises(SizeError, match=r"axis f .*has no size; give it one, f="):
        count(made, tokens=2)
    assert count(made, tokens=2, f=5).flops.total == 2 * 2 * 3 * 5


# -- what is counted -------------------------------------------------------------------------------------------------


def test_logits_of_the_last_position() -> None:
    every, last = (count(MODEL, 2, 9, logits=logits).flops for logits in ("all", "last"))
    assert every.total - last.total == 2 * 2 * 8 * 12 * 50
    assert every.by_part["attention"] == last.by_part["attention"]


@pytest.mark.parametrize(("dtype", "bits"), [("fp32", 32), ("bf16", 16), ("fp8", 8), ("int4", 4)])
def test_bytes(dtype: str, bits: int) -> None:
    of = count(MODEL, tokens=10, weights=dtype, cache=dtype)
    assert of.weight_bytes is not None
    assert of.weight_bytes * 8 == of.parameters.total * bits
    assert of.cache.bytes * 8 == 3 * 10 * 2 * 2 * 2 * bits  # layers, tokens, keys and values, heads of 2


@pytest.mark.parametrize(
    ("weights", "kept"), [("fp64", "fp64"), ("fp32", "fp32"), ("fp16", "fp16"), ("fp8", "bf16"), ("int4", "bf16")]
)
def test_a_cache_is_kept_in_the_dtype_of_weights_of_16_bits_or_more(weights: str, kept: str) -> None:
    assert count(MODEL, tokens=1, weights=weights).setting.cache == kept
    assert count(MODEL, tokens=1, weights=weights, cache="fp8").setting.cache == "fp8"


def test_the_config_says_the_dtype() -> None:
    for given, kept in (({"dtype": "float32"}, "fp32"), ({"torch_dtype": "float16"}, "fp16"), ({}, "bf16")):
        assert count(read({**LLAMA3_8B, **given}), tokens=1).setting.weights == kept


def test_rows_add_up() -> None:
    mixed = draw(layers=4, d=12, heads=6, ff=20, vocab=50, window=lambda i: 5 if i % 2 else None)
    of = count(mixed, 2, 30, convention="scalar")
    assert [row.layers for row in of.rows] == [(), (0, 2), (1, 3), ()]
    assert sum((row.parameters for row in of.rows), start=Parameters()) == of.parameters
    assert sum((row.flops for row in of.rows), start=Flops()) == of.flops
    assert sum((row.cache for row in of.rows), start=Cache()) == of.cache
    for figures in (of.flops.by_part, of.parameters.by_part):
        assert sum(figures.values()) in (of.flops.total, of.parameters.total)


def test_counts_add() -> None:
    a, b = count(MODEL, tokens=5), count(MODEL, tokens=7)
    both = a + b
    assert both.flops.total == a.flops.total + b.flops.total
    assert both.cache.bytes == a.cache.bytes + b.cache.bytes
    assert both.parameters.total == 2 * a.parameters.total
    assert sum((a, b), start=Count()).flops == both.flops


def test_only_a_sum_over_one_setting_has_figures_per_token() -> None:
    a = count(MODEL, tokens=5)
    assert (a + a).flops_per_token == 2 * a.flops_per_token  # twice the layers
    assert (Count() + a).flops_per_token == (a + Count()).flops_per_token == a.flops_per_token
    assert (a + count(MODEL, tokens=5, weights="fp8")).flops_per_token == 2 * a.flops_per_token
    others: list[dict[str, Any]] = [{"tokens": 7}, {"past": 1}, {"batch": 2}, {"convention": "causal"}]
    for other in others:
        both = a + count(MODEL, **{"tokens": 5, **other})
        for mixed in (both, both + a, a + both, Count() + both):
            with pytest.raises(SettingError, match="counts of several settings were added"):
                _ = mixed.flops_per_token


def test_a_sum_over_arrays_has_figures_per_token() -> None:
    numpy = pytest.importorskip("numpy")
    tokens = numpy.array([1, 5])
    one, same, other = (count(MODEL, tokens=t) for t in (tokens, tokens.copy(), tokens + 1))
    assert ((one + same).flops_per_token == 2 * one.flops_per_token).all()
    with pytest.raises(SettingError, match="counts of several settings were added"):
        _ = (one + other).flops_per_token


def test_per_token_is_an_int_where_it_divides() -> None:
    assert count(MODEL, tokens=8).flops_per_token * 8 == count(MODEL, tokens=8).flops.total
    assert type(count(MODEL, tokens=8).flops_per_token) is int
    odd = count(MODEL, tokens=4, convention="causal")  # 10 pairs of 4 queries
    assert odd.flops_per_token == odd.flops.total / 4


def test_growth_of_a_cache_is_what_one_more_token_adds() -> None:
    model = draw(
        layers=3,
        d=12,
        heads=6,
        ff=20,
        vocab=50,
        window=lambda i: 5 if i == 1 else None,
        chunk=lambda i: 8 if i else None,
    )
    for past in (0, 2, 3, 4, 6, 7, 20):
        now, then = (count(model, tokens=1, past=p).cache for p in (past, past + 1))
        assert now.marginal_bytes_per_token == then.bytes - now.bytes
        assert (
            count(model, 3, 1, past).cache.marginal_bytes_per_token == now.marginal_bytes_per_token
        )  # of one sequence


def test_shared_weights_stand_once() -> None:
    twice = block("y = linear(x[n d], W[d f]) -> [n f]\nz = linear(x[n d], W[d f]) -> [n f]", d=3, f=5)
    of = count(twice, tokens=2)
    assert of.parameters.total == 15
    assert of.flops.total == 2 * (2 * 2 * 15)


def test_blocks_and_models_are_counted_alike() -> None:
    (layer,) = (s for s in MODEL.segments if s.layers)
    alone = count(layer.block, 2, 9)
    (row,) = (r for r in count(MODEL, 2, 9).rows if r.layers)
    assert isinstance(MODEL, Model)
    assert row.flops == alone.flops.times(3)
    assert row.cache == alone.cache.times(3)


def test_only_the_untied_matrix_of_a_head_is_taken_from_the_rest() -> None:
    """A tied masked-language head keeps its dense layer, norm and bias; an untied head's bias stays too."""
    tied = read({"model_type": "bert", "vocab_size": 50, "hidden_size": 8, "num_attention_heads": 2})
    parameters = count(tied, tokens=4).parameters
    # the head: 8 x 8 + 8 of the dense layer, 2 x 8 of the norm, 50 of the bias
    assert (parameters.by_part["head"], parameters.head) == (64 + 8 + 16 + 50, 0)
    assert parameters.non_embedding == parameters.total - parameters.embedding
    untied = read({"model_type": "phi", "vocab_size": 50, "hidden_size": 64})
    parameters = count(untied, tokens=4).parameters
    assert (parameters.by_part["head"], parameters.head) == (50 * 64 + 50, 50 * 64)
    assert parameters.non_embedding == parameters.total - parameters.embedding - 50 * 64
