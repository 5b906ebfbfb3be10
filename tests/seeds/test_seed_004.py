"""Compute and memory of one block as a course session counts them, T tokens of width d, with its self-test.

Where the session errs the right figure stands with the reason. Its fault of extraction, digits printed twice, is none.
"""

from __future__ import annotations

from typing import Any

import pytest
from drawn import LLAMA3_8B, LLAMA3_70B, LLAMA_7B, block, draw, read

import assay
from assay.kinds import kind_of
from assay.readings.binding import bind
from assay.readings.count import Count, Flops, count
from assay.spec import Model


def classic(d: int, layers: int = 1, heads: int | None = None, vocab: int = 10) -> Model:
    """The session's model: multi-head attention and an MLP of two matrices with d_ff = 4 d."""
    return draw(layers=layers, d=d, heads=heads or max(1, d // 128), ff=4 * d, vocab=vocab, gated=False, tied=True)


def of_blocks(counted: Count) -> Flops:
    """All layers, without embedding and head."""
    total = Flops()
    for row in counted.rows:
        if row.layers:
            total = total + row.flops
    return total


def per_block(tokens: Any, d: int, heads: int | None = None, convention: str = "matmul") -> Flops:
    return of_blocks(count(classic(d, heads=heads), tokens=tokens, convention=convention))


def ratio(tokens: int, d: int) -> float:
    """Attention over MLP."""
    flops = per_block(tokens, d)
    return float(flops.by_part["attention"] / flops.by_part["mlp"])


# -- the two regimes -------------------------------------------------------------------------------------------------


def test_the_claimed_orders() -> None:
    """Attention ~ T^2 d, says the opening; it is 8 T d^2 + 4 T^2 d, 80 % projections at T = 2,048, d = 4,096."""
    flops = per_block(2048, 4096)
    assert f"{100 * (1 - flops.attention_scores / flops.by_part['attention']):.0f}" == "80"


@pytest.mark.parametrize(
    ("tokens", "d", "over"),
    [(2048, 4096, "1.600"), (4096, 4096, "1.333"), (2048, 8192, "1.778"), (4096, 8192, "1.600")],
)
def test_short_contexts_are_the_mlps(tokens: int, d: int, over: str) -> None:
    assert f"{1 / ratio(tokens, d):.3f}" == over


@pytest.mark.parametrize(
    ("tokens", "d", "over"),
    [
        (32_768, 4096, "2.500"),
        (128_000, 4096, "8.313"),
        (10**6, 4096, "61.535"),
        (32_768, 8192, "1.500"),
        (128_000, 8192, "4.406"),
        (10**6, 8192, "31.018"),
    ],
)
def test_long_contexts_are_attentions(tokens: int, d: int, over: str) -> None:
    assert ratio(tokens, d) == pytest.approx(float(over), abs=6e-4)


@pytest.mark.parametrize(("tokens", "most"), [(2048, 0.0018), (32_768, 0.0085)])
def test_matmuls_dominate_every_other_cost(tokens: int, most: float) -> None:
    """LLaMA-7B: norms, softmax, activations and rotation together are 0.1 to 0.8 % of the matmuls."""
    model = read(LLAMA_7B)
    matmul = count(model, tokens=tokens).flops.total
    beside = 0
    for segment in model.segments:
        extent = bind(segment.block, {"b": 1, "n": tokens, "t": tokens, "past": 0})
        for op in segment.block.ops:
            work = kind_of(op).work(op, extent)
            if "multiply_add" not in work:
                beside += segment.times * sum(work[sort] for sort in work if sort != "softmax")
    assert 0.0005 < beside / matmul < most


# -- FLOPs of a block, op by op --------------------------------------------------------------------------------------


def test_one_matmul() -> None:
    """(A, B) (B, C) costs 2 A B C. (The session calls a multiply-add one FLOP, but counts two everywhere.)"""
    assert count(block("z = contract(x[i j], y[j l]) -> [i l]", i=3, j=5, l=7), tokens=1).flops.total == 2 * 3 * 5 * 7


def test_table_of_attention_and_mlp() -> None:
    """6 T d^2, 2 T^2 d, 2 T^2 d, 2 T d^2, 8 T d^2, 8 T d^2 at T = 6, d = 8, h = 2."""
    t, d = 6, 8
    model = classic(d, heads=2)
    (layer,) = (s for s in model.segments if s.layers)
    extent = bind(layer.block, {"b": 1, "n": t, "t": t, "past": 0})
    cost = {}
    for op in layer.block.ops:
        cost[op.name, op.kind] = 2 * kind_of(op).work(op, extent).get("multiply_add", 0)
    assert cost["q", "linear"] + cost["k", "linear"] + cost["v", "linear"] == 6 * t * d * d
    assert cost["s", "contract"] == cost["o", "contract"] == 2 * t * t * d
    assert cost["ya", "linear"] == 2 * t * d * d
    assert cost["u", "linear"] == cost["ym", "linear"] == 8 * t * d * d
    flops = per_block(t, d, 2)
    assert flops.by_part["attention"] == 8 * t * d * d + 4 * t * t * d == 4224
    assert flops.by_part["mlp"] == 16 * t * d * d == 6144
    assert flops.total == 24 * t * d * d + 4 * t * t * d == 10_368


def test_what_is_linear_and_what_is_quadratic() -> None:
    """RoPE, mask and softmax are O(T^2) each, says the session. RoPE is O(T d); mask and softmax are O(h T^2)."""
    (layer,) = (s for s in read(LLAMA_7B).segments if s.layers)

    def work(kind: str, tokens: int) -> int:
        extent = bind(layer.block, {"b": 1, "n": tokens, "t": tokens, "past": 0})
        return sum(sum(kind_of(op).work(op, extent).values()) for op in layer.block.ops if op.kind == kind)

    assert work("rope", 2048) == 2 * work("rope", 1024) == 2048 * 2 * 4096 * 3
    assert work("mask", 2048) == 32 * 2048**2


def test_norms_and_biases_grow_with_the_tokens() -> None:
    """Theta(L d), says the session: so their parameters. Their FLOPs are Theta(L T d)."""
    model = draw(layers=2, d=64, heads=4, ff=256, vocab=10, gated=False, norm="layer", biases=True, tied=True)
    one, many = (count(model, tokens=t, convention="scalar") for t in (1, 100))
    assert one.parameters.by_part["norm"] == 5 * 2 * 64
    assert many.flops.by_part["norm"] == 100 * one.flops.by_part["norm"] > 0


@pytest.mark.parametrize(
    ("model", "tokens", "share"),
    [("gpt2", 1024, "37.2"), ("llama-7b", 2048, "1.9")],
)
def test_head_matters_only_in_small_models(model: str, tokens: int, share: str) -> None:
    made = read({"model_type": "gpt2"}) if model == "gpt2" else read(LLAMA_7B)
    counted = count(made, tokens=tokens)
    assert f"{100 * counted.flops.by_part['head'] / of_blocks(counted).total:.1f}" == share


# -- the crossover ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [64, 768, 4096])
def test_crossovers(d: int) -> None:
    """Attention with projections equals the MLP at T = 2 d; scores and values alone at 4 d (the heading's figure).

    The two terms 24 T d^2 and 4 T^2 d, which the summary says are equal between those, are equal at 6 d.
    """
    at = {times: per_block(times * d, d) for times in (2, 4, 6)}
    assert at[2].by_part["attention"] == at[2].by_part["mlp"]
    assert at[4].attention_scores == at[4].by_part["mlp"]
    assert 2 * at[6].attention_scores == at[6].total
    weights = {times: at[times].total - at[times].attention_scores for times in (2, 4)}
    assert weights[2] == 3 * at[2].attention_scores
    assert 2 * weights[4] == 3 * at[4].attention_scores


def test_crossovers_solved() -> None:
    sympy = pytest.importorskip("sympy")
    t = sympy.Symbol("T", positive=True, integer=True)
    flops = per_block(t, 4096)
    attention, mlp, scores = flops.by_part["attention"], flops.by_part["mlp"], flops.attention_scores
    # LLaMA-7B's width: 8,192 and 16,384, and 24,576 for the two terms of the sum
    assert sympy.solve(attention - mlp, t) == [8192]
    assert sympy.solve(scores - mlp, t) == [16_384]
    assert sympy.solve(scores - (flops.total - scores), t) == [24_576]


def test_real_llama_crosses_elsewhere() -> None:
    """With its gated MLP of 11,008 the same comparison gives 2.0 d, for 3 x 11,008 is 8.06 d."""
    sympy = pytest.importorskip("sympy")
    t = sympy.Symbol("T", positive=True, integer=True)
    flops = of_blocks(count(read(LLAMA_7B), tokens=t))
    (at,) = sympy.solve(flops.by_part["attention"] - flops.by_part["mlp"], t)
    assert at == (6 * 4096 * 11008 - 8 * 4096**2) // (4 * 4096) == 8320


def test_the_ratio_grows_linearly() -> None:
    """By a margin growing as T^2, says the session. The ratio it prints is 1/2 + T / (4 d): linear."""
    assert [ratio(t, 4096) for t in (32_768, 65_536)] == [2.5, 4.5]


# -- cache -----------------------------------------------------------------------------------------------------------


def cache(config: dict[str, Any], context: int, dtype: str = "fp16", batch: int = 1, **changed: Any) -> int:
    return int(count(read(config, **changed), batch, tokens=1, past=context - 1, cache=dtype).cache.bytes)


def test_cache_of_llama_7b() -> None:
    """2 L h d_h T batch bytes: 0.524 MB a token in fp16; 2, 17 and 67 GB at 4,096, 32,768 and 128,000."""
    assert cache(LLAMA_7B, 1) == 2 * 32 * 32 * 128 * 2 == 524_288
    assert f"{cache(LLAMA_7B, 1) / 1e6:.3f}" == "0.524"
    sizes = {t: cache(LLAMA_7B, t) for t in (4096, 32_768, 128_000)}
    assert sizes == {4096: 2_147_483_648, 32_768: 17_179_869_184, 128_000: 67_108_864_000}
    assert [f"{s / 1e9:.0f}" for s in sizes.values()] == ["2", "17", "67"]
    assert cache(LLAMA_7B, 100, batch=3) == 3 * cache(LLAMA_7B, 100)


def test_67_gb_is_not_larger_than_80() -> None:
    """The session says it exceeds a card's 80 GB. 67.1 GB fits (152,587 tokens do); with the weights it is 80.59."""
    assert cache(LLAMA_7B, 128_000) < 80 * 10**9
    assert cache(LLAMA_7B, 152_587) <= 80 * 10**9 < cache(LLAMA_7B, 152_588)
    weights = count(read(LLAMA_7B), tokens=1, weights="fp16").weight_bytes
    assert weights is not None
    assert weights + cache(LLAMA_7B, 128_000) == 80_585_695_232 > 80 * 10**9


def test_shared_heads_shrink_the_cache() -> None:
    """h of the formula is the number of cached heads: 8 of 32 quarter it."""
    assert cache(LLAMA3_8B, 1) == 131_072
    assert cache(LLAMA3_8B, 1, num_key_value_heads=32) == 4 * 131_072
    # and a latent of 512 + 64 an element a layer, for keys and values together
    assert cache({"model_type": "deepseek_v3"}, 1) == (512 + 64) * 61 * 2 == 70_272


def test_cache_is_linear_in_depth_and_width() -> None:
    """Linear in T, and quadratic in depth x width, says the summary; it is linear in each of L and d, per sequence."""
    one = cache(LLAMA_7B, 1)
    assert cache(LLAMA_7B, 1, num_hidden_layers=64) == 2 * one == 1_048_576
    assert cache(LLAMA_7B, 1, hidden_size=8192, num_attention_heads=64) == 2 * one
    assert cache(LLAMA_7B, 2) == 2 * one


def test_where_the_cache_passes_the_weights() -> None:
    """The dominant memory of long contexts: equal at 25,705.02 tokens for LLaMA-7B, at 122,532.06 for Llama 3 8B."""
    for config, at in ((LLAMA_7B, 25_706), (LLAMA3_8B, 122_533)):
        weights = count(read(config), tokens=1, weights="fp16").weight_bytes
        assert weights is not None
        assert cache(config, at - 1) <= weights < cache(config, at)


# -- activations -----------------------------------------------------------------------------------------------------


def elements(model: Model, tokens: int, name: str, kind: str) -> int:
    """Elements that one op of a layer writes."""
    (layer,) = (s for s in model.segments if s.layers)
    extent = bind(layer.block, {"b": 1, "n": tokens, "t": tokens, "past": 0})
    (op,) = (op for op in layer.block.ops if (op.name, op.kind) == (name, kind))
    return int(kind_of(op).writes(op, extent))


def test_scores_and_hidden_of_a_block() -> None:
    """h T^2 scores and 4 T d of the MLP, per sequence and block (the session says per token; each has T in it)."""
    model = classic(4096)
    for tokens, scores, hidden in (
        (512, 16_777_216, 16_777_216),
        (1024, 67_108_864, 33_554_432),
        (2048, 268_435_456, 67_108_864),
        (8192, 4_294_967_296, 268_435_456),
        (32_768, 68_719_476_736, 1_073_741_824),
    ):
        assert 2 * elements(model, tokens, "p", "softmax") == scores == 2 * 32 * tokens**2  # bytes of fp16
        assert 2 * elements(model, tokens, "u", "linear") == hidden == 2 * 4 * tokens * 4096
    # the grid of four puts the memory's crossover at 4 d; it is 4 d_h = 512: a factor h apart
    assert elements(model, 512, "p", "softmax") == elements(model, 512, "u", "linear")
    assert elements(model, 2048, "p", "softmax") == 134_217_728 == 4 * elements(model, 2048, "u", "linear")


def test_scores_of_32_heads_at_8192() -> None:
    """2e9 scores a block, 4 GB in fp16; across 32 blocks 137 GB = 128 GiB (printed as 128 GB)."""
    scores = elements(classic(4096), 8192, "p", "softmax")
    assert f"{scores:.0e}" == "2e+09"
    assert f"{2 * scores / 1e9:.0f}" == "4"
    assert 32 * 2 * scores == 137_438_953_472 == 128 * 2**30
    assert f"{32 * 2 * scores / 1e9:.0f}" == "137"


# -- LLaMA-7B --------------------------------------------------------------------------------------------------------


def test_mlp_width() -> None:
    """4 d = 16,384; two thirds are 10,922, rounded up to a multiple of 256: 11,008."""
    width = int(2 / 3 * 4 * 4096)
    assert (width, -(-width // 256) * 256) == (10_922, 11_008)


def test_worked_example_at_2048() -> None:
    flops = per_block(2048, 4096)
    projections = flops.by_part["attention"] - flops.attention_scores
    assert (f"{projections:.2e}", f"{flops.attention_scores:.2e}") == ("2.75e+11", "6.87e+10")
    assert f"{flops.by_part['attention']:.2e}" == "3.44e+11"  # printed 3.43: 343,597,383,680 cut off, not rounded
    assert flops.by_part["attention"] == 343_597_383_680
    assert f"{flops.by_part['mlp']:.2e}" == "5.50e+11"
    assert f"{flops.total:.2e}" == "8.93e+11"
    forward = of_blocks(count(classic(4096, layers=32), tokens=2048)).total
    assert forward == 32 * flops.total == 28_587_302_322_176
    assert f"{forward:.2e}" == "2.86e+13"
    assert f"{1 / ratio(2048, 4096):.1f}" == "1.6"


def test_worked_example_at_32768() -> None:
    flops = per_block(32_768, 4096)
    projections = flops.by_part["attention"] - flops.attention_scores
    printed = ["4.40e+12", "1.76e+13", "2.20e+13", "8.80e+12"]
    figures = [projections, flops.attention_scores, flops.by_part["attention"], flops.by_part["mlp"]]
    assert [f"{x:.2e}" for x in figures] == printed
    assert ratio(32_768, 4096) == 2.5


def test_preset_is_the_same_model() -> None:
    """The released LLaMA-7B, and the 8 cached heads of a 70B."""
    assert assay.count(assay.load("llama-7b"), tokens=1).parameters.total == 6_738_415_616
    cached = assay.count(assay.load("llama-2-70b"), tokens=1, past=2047, cache="int8").cache.bytes
    assert cached == 335_544_320 == 2048 * 163_840


# -- prefill and decode ----------------------------------------------------------------------------------------------


def test_prefill() -> None:
    """24 T d^2 + 4 T^2 d a block; 24 T d^2 + 2 T (T + 1) d where the masked half is skipped."""
    t, d = 100, 64
    assert per_block(t, d).total == 24 * t * d * d + 4 * t * t * d
    assert per_block(t, d, convention="causal").total == 24 * t * d * d + 2 * t * (t + 1) * d


def test_generated_token() -> None:
    """8 d^2 + 4 T d + 16 d^2 a block, T with the token itself; L blocks and the head are dropped."""
    d, t = 8, 6
    model = classic(d, layers=3, heads=2, vocab=50)
    counted = count(model, tokens=1, past=t - 1)
    assert of_blocks(counted).total == 3 * (24 * d * d + 4 * t * d) == 3 * 1728
    assert counted.flops.total == 3 * 1728 + 2 * 50 * d


def generated(model: Model, prompt: int, n: int) -> int:
    """N cached tokens after a prompt, blocks only, summed step by step."""
    return sum(of_blocks(count(model, tokens=1, past=prompt + i)).total for i in range(n))


def test_generating_n_tokens() -> None:
    """N (24 d^2 + 4 T d), says the session, but T grows: L [24 N d^2 + 4 d (N T_p + N (N + 1) / 2)].

    LLaMA-7B (d_ff = 4 d), 1,024 tokens after 2,048: between the printed form's ends.
    """
    model = classic(4096, layers=32)
    d, n, prompt = 4096, 1024, 2048
    total = generated(model, prompt, n)
    assert total == 32 * (24 * n * d * d + 4 * d * (n * prompt + n * (n + 1) // 2)) == 14_568_797_503_488
    ends = [n * of_blocks(count(model, tokens=1, past=t - 1)).total for t in (prompt, prompt + n)]
    assert ends == [14_293_651_161_088, 14_843_406_974_976]
    # without a cache every token runs the whole prefix again
    assert sum(of_blocks(count(model, tokens=prompt + i + 1)).total for i in range(n)) == 37_350_318_459_060_224


def test_generating_from_nothing_is_a_causal_prefill() -> None:
    model = classic(64)
    assert generated(model, 0, 50) == per_block(50, 64, convention="causal").total


# -- self-test -------------------------------------------------------------------------------------------------------


def test_self_test_a() -> None:
    """24 T d^2: weights (6 + 2 + 8 + 8). 4 T^2 d: activations with each other (2 + 2)."""
    t, d = 6, 8
    (layer,) = (s for s in classic(d, heads=2).segments if s.layers)
    extent = bind(layer.block, {"b": 1, "n": t, "t": t, "past": 0})
    cost = {True: 0, False: 0}
    for op in layer.block.ops:
        cost[bool(op.weights)] += 2 * kind_of(op).work(op, extent).get("multiply_add", 0)
    assert cost == {True: 24 * t * d * d, False: 4 * t * t * d}


def test_self_test_b() -> None:
    """GPT-2 small at 1,024: 2.13e11 in 12 blocks, the MLP dominates; at 8,192: 3.87e12, attention dominates.

    Its position table ends at 1,024, so the second is of a GPT-2 with a longer one.
    """
    short = count(read({"model_type": "gpt2"}), tokens=1024)
    blocks = of_blocks(short)
    assert blocks.total == 212_600_881_152
    assert short.flops.total == 291_648_307_200
    assert blocks.by_part["attention"] == 12 * 8_053_063_680
    assert f"{blocks.by_part['mlp'] / blocks.by_part['attention']:.4f}" == "1.2000"
    long = count(read({"model_type": "gpt2"}, n_positions=8192), tokens=8192)
    blocks = of_blocks(long)
    assert blocks.total == 3_865_470_566_400
    assert long.flops.total == 4_497_849_974_784
    assert f"{blocks.by_part['attention'] / blocks.by_part['mlp']:.4f}" == "3.1667"
    # crossovers 2 d = 1,536, 4 d = 3,072, 6 d = 4,608 lie between; with the causal half skipped
    skipped = {
        t: of_blocks(count(read({"model_type": "gpt2"}, n_positions=t), tokens=t, convention="causal"))
        for t in (1024, 8192)
    }
    assert {t: f.total for t, f in skipped.items()} == {1024: 193_292_402_688, 8192: 2_628_670_980_096}
    assert [f"{f.by_part['attention'] / f.by_part['mlp']:.4f}" for f in skipped.values()] == ["0.6668", "1.8335"]


def test_self_test_c() -> None:
    """LLaMA-7B at 4,096: 2 GB. LLaMA-70B at 32,768 with h = 64 as stated 85.9 GB; with its 8 cached heads 10.7."""
    assert f"{cache(LLAMA_7B, 4096) / 1e9:.0f}" == "2"
    assert cache(LLAMA3_70B, 32_768, num_key_value_heads=64) == 85_899_345_920 == 80 * 2**30
    assert cache(LLAMA3_70B, 32_768) == 10_737_418_240 == 10 * 2**30


def test_self_test_d() -> None:
    """The matrix of weights grows with h T^2, all else of a layer with T: four times against twice."""
    model = classic(4096)
    assert elements(model, 2048, "p", "softmax") == 4 * elements(model, 1024, "p", "softmax")
    for name in ("q", "ya", "u", "ym"):
        assert elements(model, 2048, name, "linear") == 2 * elements(model, 1024, name, "linear")


@pytest.mark.parametrize(
    ("context", "drawn", "real"),
    [
        (2048, 13_958_643_712, 14_287_896_576),
        (4096, 15_032_385_536, 15_361_638_400),
        (32_768, 30_064_771_072, 30_394_023_936),
    ],
)
def test_self_test_e(context: int, drawn: int, real: int) -> None:
    """Per token L (24 d^2 + 4 T d): one row of queries against T keys and values, so linear in T."""
    assert of_blocks(count(classic(4096, layers=32), tokens=1, past=context - 1)).total == drawn
    assert count(read(LLAMA_7B), tokens=1, past=context - 1).flops.total == real


def test_self_test_e_as_executed() -> None:
    """One token of LLaMA-7B behind a cache of 256, as the public implementation executes it: T = 257."""
    assert count(read(LLAMA_7B), tokens=1, past=256).flops.total == 13_348_896_768
