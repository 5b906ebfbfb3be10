"""Training runs: articles' and papers' figures, sums by hand, arrays and symbols, and one line for what cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from drawn import draw
from samples import samples
from trained_models import LLAMA, SMALL, TRILLION, WEIGHTS, small

import assay
from assay.errors import KindError
from assay.hardware import chip
from assay.readings.laws import law

# -- an article's estimate: Llama 3 8B on 15 T tokens at 8k ------------------------------------------------------------


def test_days_of_llama3_with_attention_over_all_pairs() -> None:
    """3 x 19,304,284,160 FLOPs a token."""
    run = assay.train(LLAMA, tokens=15 * TRILLION, context=8192, peak_flops=989e12, mfu=0.35)
    assert run.flops == 3 * 19_304_284_160 * 15 * TRILLION == 868_692_787_200 * TRILLION
    assert run.flops_per_token == 57_912_852_480
    assert run.on is not None
    assert f"{run.on.gpu_days:,.0f}" == "29,046"
    half = assay.train(LLAMA, tokens=15 * TRILLION, context=8192, peak_flops=989e12, mfu=0.5).on
    assert half is not None
    assert f"{half.gpu_days:,.0f}" == "20,332"
    # masked pairs left out it is 12.5 % less; the article takes the mean context as 4,096 and not 4,096.5
    assert f"{run.flops / run.visible:.6f}" == "1.125151"


@pytest.mark.parametrize(("mfu", "days"), [(0.35, "25,815"), (0.5, "18,071")])
def test_days_of_llama3_over_visible_pairs(mfu: float, days: str) -> None:
    """The article prints 18,070, from 772,056,023,040 x 10^12 FLOPs: half a token of context less."""
    run = assay.train(
        LLAMA, tokens=15 * TRILLION, context=8192, peak_flops=989e12, mfu=mfu, convention="causal", gpus=4
    )
    assert run.flops == run.visible == 772_067_819_520 * TRILLION
    assert run.on is not None
    assert f"{run.on.gpu_days:,.0f}" == days
    assert run.on.days == run.on.gpu_days / 4
    less = 3 * 2 * 2 * 32 * 4096 // 2 * 15 * TRILLION  # half a key for each query, 2 FLOPs twice in each of 32 layers
    assert run.flops - less == 772_056_023_040 * TRILLION


def test_6nd_beside_it() -> None:
    run = assay.train(LLAMA, tokens=15 * TRILLION, context=8192)
    six = next(one for one in run.published if one.name == "6ND")
    assert six.value == 6 * 8_030_261_248 * 15 * TRILLION
    assert f"{six.ours / six.value:.4f}" == "1.2020"
    assert run.on is None


# -- what papers print, and the difference -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "printed", "layers", "d", "above"),
    [
        ("gpt-3-175b", 3.14e23, 96, 12288, "1.027"),
        ("gpt-3-13b", 2.31e22, 40, 5120, "1.064"),
        ("gpt-3-1.3b", 2.38e21, 24, 2048, "1.149"),
    ],
)
def test_gpt3_table_d1(preset: str, printed: float, layers: int, d: int, above: str) -> None:
    """Brown et al. 2020 count 6 for each of all parameters and no attention: it adds 12 L c d a token, and positions,
    norms and biases, which multiply nothing, take away their six.
    """
    model = assay.load(preset)
    tokens, c = 300 * 10**9, 2048
    run = assay.train(model, tokens=tokens, context=c)
    n = assay.count(model, tokens=1).parameters.total
    idle = n - 12 * layers * d * d - 50257 * d
    assert run.flops == 6 * tokens * (n - idle) + 12 * layers * c * d * tokens
    six = next(one for one in run.published if one.name == "6ND")
    assert six.value == pytest.approx(printed, rel=0.006)
    assert f"{run.flops / six.value:.3f}" == above


def test_palm_540b() -> None:
    """Chowdhery et al. 2022: 238.3 k tokens a second on 6,144 TPU v4, 46.2 % with attention over all pairs, 45.7 % of
    6 N. Counted op by op it is the same: the table is the head, and norms have 0.0005 % of the parameters.
    """
    model = assay.load("palm-540b")
    run = assay.train(
        model, tokens=780 * 10**9, context=2048, gpu="tpu-v4", gpus=6144, tokens_per_second=238_300, recompute="layer"
    )
    assert run.on is not None
    assert f"{run.on.mfu:.1%}" == "46.2%"
    six, palm = (next(one for one in run.published if one.name == name) for name in ("6ND", "PaLM"))
    assert f"{run.on.mfu * six.value / run.flops:.1%}" == "45.7%"
    assert palm.value / run.flops == pytest.approx(1, abs=1e-5)
    assert run.flops_per_token / 1e12 == pytest.approx(3.28, abs=0.005)
    # they recompute some of it, 4.10 TFLOP a token, 57.8 %; a whole forward pass of the layers would be
    assert run.hardware_flops / run.tokens / 1e12 == pytest.approx(4.36, abs=0.005)
    assert f"{run.on.hfu:.1%}" == "61.5%"


def test_chinchilla() -> None:
    """Hoffmann et al. 2022: 70 B parameters on 1.4 T tokens for Gopher's 5.76e23 FLOPs, by 6ND 5.9e23.

    Counted, 6 for each of 64.4 B weights of layers and 0.26 B of the head, and 12 L c d of attention, 4.0 % of it; the
    70 B have 5.4 B of relative positions more. Their formula has the table as a second head and 3 h c of softmax.
    """
    model = draw(layers=80, d=8192, heads=64, ff=4 * 8192, vocab=32_000, gated=False, tied=True)
    run = assay.train(model, tokens=14 * 10**11, context=2048)
    weights = 80 * 12 * 8192**2 + 32_000 * 8192
    assert run.flops == 14 * 10**11 * (6 * weights + 12 * 80 * 2048 * 8192)
    theirs = next(one for one in run.published if one.name == "Chinchilla")
    assert theirs.value / run.flops == pytest.approx(1.0041, abs=1e-4)  # (2 V d + 3 L h c) / 134.7e9
    assert run.flops / 5.76e23 == pytest.approx(0.98, abs=0.01)


def test_llama3_405b() -> None:
    """Grattafiori et al. 2024 print 3.8e25 for 15.6 T tokens: 6 N D without attention.

    The input table multiplies nothing, 0.5 % of N; attention over visible pairs at 8,192 adds 4.2 %, over all 8.4 %.
    """
    model = assay.load("llama-3.1-405b")
    run = assay.train(model, tokens=156 * 10**11, context=8192, gpu="h100", gpus=16384, mfu=0.41)
    six = next(one for one in run.published if one.name == "6ND")
    assert f"{six.value:.1e}" == "3.8e+25"
    p = assay.count(model, tokens=1).parameters
    norms = (2 * 126 + 1) * 16384
    visible = 6 * (p.total - p.embedding - norms) + 12 * 126 * 16384 * 8193 // 2
    assert run.visible == visible * run.tokens
    assert f"{run.visible / six.value:.3f} {run.flops / six.value:.3f}" == "1.036 1.078"
    assert run.on is not None
    assert 60 < run.on.days < 75  # they say 54 days of the longest stage; dense FLOPs are 4 % more than visible ones


def test_llama_65b_days() -> None:
    """Touvron et al. 2023: 1.4 T tokens, 2,048 A100 at 380 tokens a second each, about 21 days."""
    run = assay.train(
        assay.load("llama-65b"), tokens=14 * 10**11, context=2048, gpu="a100", gpus=2048, tokens_per_second=380 * 2048
    )
    assert run.on is not None
    assert f"{run.on.days:.1f}" == "20.8"
    assert f"{run.on.mfu:.0%}" == "49%"


def test_bloom_counts_recomputation() -> None:
    """BigScience's 149.77 TFLOP/s of 384 A100 are hardware FLOPs: a fourth pass over the layers is in them."""
    step = 2048 * 2048
    run = assay.train(
        assay.load("bloom-176b"),
        tokens=step,
        context=2048,
        gpu="a100",
        gpus=384,
        tokens_per_second=step / 104.7,
        recompute="layer",
    )
    assert run.on is not None
    assert run.hardware_flops / 104.7 / 384 / 1e12 == pytest.approx(149.77, rel=0.01)
    assert run.on.hfu == pytest.approx(149.77 / 312, rel=0.01)
    head = 6 * 250_880 * 14336 * step  # is not computed again
    assert 3 * (run.hardware_flops - head) == 4 * (run.flops - head)


# -- sums by hand ------------------------------------------------------------------------------------------------------


def test_a_small_model_by_hand() -> None:
    run = assay.train(SMALL, tokens=80, context=8)
    assert run.flops == 10 * small(8)
    assert run.backward == 2 * run.forward
    assert run.flops_per_token == small(8) // 8
    assert run.mean_context == 8
    assert run.again == 0
    assert assay.train(SMALL, tokens=81, context=8).flops == small(8) * 81 / 8


def test_recomputation_by_hand() -> None:
    head = 2 * 32 * 100
    scores = 2 * 2 * 2 * 8 * 8 * 32  # of 8 tokens, forward
    layer = assay.train(SMALL, tokens=8, context=8, recompute="layer")
    assert layer.again == small(8) // 3 - 8 * head
    assert layer.hardware_flops == small(8) + layer.again
    core = assay.train(SMALL, tokens=8, context=8, recompute="attention")
    assert core.again == scores
    assert assay.train(SMALL, tokens=8, context=8, recompute=2).again == layer.again  # in stretches of 2 layers


@pytest.mark.parametrize("how", ["none", "attention", "layer", 4])
def test_what_runs_again_is_what_a_step_runs_again(how: str | int) -> None:
    model = assay.load("mixtral-8x7b")
    run = assay.train(model, tokens=2048, context=2048, recompute=how)
    step = assay.training_memory(model, tokens=2048, recompute=how, attention="plain")
    assert (run.forward, run.backward, run.again) == (step.work.forward, step.work.backward, step.work.again)


@pytest.mark.parametrize(
    "lengths", [[4, 4, 16], {4: 2, 16: 1}, iter((16, 4, 4)), {16: 1, 4: 2}], ids=["list", "counts", "any", "order"]
)
def test_packed_sequences_see_themselves(lengths: Any) -> None:
    """Attention by the sum of squares: 4 + 4 + 16 tokens are no sequence of 24."""
    run = assay.train(SMALL, tokens=240, lengths=lengths)
    assert run.flops == 10 * (2 * small(4) + small(16))
    assert run.mean_context == (2 * 4 * 4 + 16 * 16) / 24 == 12
    as_one = assay.train(SMALL, tokens=240, context=12)
    assert run.flops == as_one.flops  # FLOPs are linear in the mean context
    palm = [next(one.value for one in each.published if one.name == "PaLM") for each in (run, as_one)]
    assert palm[0] == palm[1]
    assert assay.train(SMALL, tokens=240, context=24).flops > run.flops


def test_visible_pairs_of_packed_sequences() -> None:
    """n (n + 1) / 2 of each: 10, 10 and 136."""
    run = assay.train(SMALL, tokens=24, lengths=[4, 4, 16], convention="causal")
    assert run.flops == run.visible == 6 * WEIGHTS * 24 + 3 * 2 * 2 * 2 * 156 * 32


def test_energy_and_price() -> None:
    run = assay.train(SMALL, tokens=8000, context=8, peak_flops=1e9, mfu=0.5, gpus=4, price=2, power=300, pue=1.5)
    on = run.on
    assert on is not None
    seconds = 1000 * small(8) / (4 * 1e9 * 0.5)
    assert on.seconds == pytest.approx(seconds)
    assert on.tokens_per_second == pytest.approx(8000 / seconds)
    assert on.energy == pytest.approx(300 * 1.5 * 4 * seconds)
    assert on.cost == pytest.approx(2 * 4 * seconds / 3600)
    assert (on.gpu_days, on.gpu_hours) == (pytest.approx(4 * seconds / 86400), pytest.approx(4 * seconds / 3600))
    assert (on.measured, on.dtype, on.chip) == (False, "given", None)


def test_a_chip_gives_its_peak_and_power() -> None:
    on = assay.train(SMALL, tokens=8000, context=8, gpu="h100", mfu=0.5).on
    assert on is not None
    assert (on.peak, on.power, on.dtype) == (989_400_000_000_000, 700, "bf16")
    eight = assay.train(SMALL, tokens=8000, context=8, gpu=chip("h100"), mfu=0.5, dtype="fp8").on
    assert eight is not None
    assert eight.peak == 1_978_900_000_000_000
    old = assay.train(SMALL, tokens=8000, context=8, gpu="v100", mfu=0.5).on
    assert old is not None
    assert (old.dtype, old.peak) == ("fp16", 125_000_000_000_000)


def test_mfu_is_that_of_the_other_function() -> None:
    run = assay.train(LLAMA, tokens=1000, context=8192, gpu="h100", gpus=8, tokens_per_second=60_000)
    used = assay.mfu(LLAMA, tokens_per_second=60_000, peak_flops=989.4e12, gpus=8, context=8192)
    assert run.on is not None
    assert run.on.mfu == pytest.approx(used.value, rel=1e-12)
    assert run.on.hfu == run.on.mfu
    assert run.on.measured


# -- arrays and symbols ------------------------------------------------------------------------------------------------


def test_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    tokens, contexts, shares = numpy.array([800, 1600]), numpy.array([8, 16]), numpy.array([0.25, 0.5])
    run = assay.train(SMALL, tokens=tokens, context=contexts, gpu="a100", mfu=shares, price=1, step_tokens=80)
    for i in range(2):
        one = assay.train(
            SMALL, tokens=int(tokens[i]), context=int(contexts[i]), gpu="a100", mfu=shares[i], price=1, step_tokens=80
        )
        assert run.on is not None
        assert one.on is not None
        assert (run.flops[i], run.visible[i], run.update[i]) == (one.flops, one.visible, one.update)
        assert run.on.gpu_days[i] == pytest.approx(one.on.gpu_days)
        assert run.on.cost[i] == pytest.approx(one.on.cost)
    with pytest.raises(assay.SizeError, match=r"mfu is .*1\.5.*; it must be a fraction above 0 and at most 1"):
        assay.train(SMALL, tokens=8, context=8, gpu="a100", mfu=numpy.array([0.5, 1.5]))


def test_symbols() -> None:
    sympy = pytest.importorskip("sympy")
    c, tokens = sympy.symbols("c D", integer=True, positive=True)
    run = assay.train(SMALL, tokens=tokens, context=c)
    assert sympy.expand(run.flops) == 6 * WEIGHTS * tokens + 768 * c * tokens  # 3 x 2 x 2 x 2 x 32
    spent = sympy.Symbol("C", positive=True)
    assert law("besiroglu").optimum(spent).parameters.subs(spent, 1e24) == pytest.approx(
        law("besiroglu").optimum(1e24).parameters
    )


# -- what cannot be ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"mfu": -0.1}, "SizeError", "mfu is -0.1; it must be a fraction above 0 and at most 1"),
        ({"mfu": 40}, "SizeError", "mfu is 40; it must be a fraction above 0 and at most 1; 40 % is 0.4"),
        ({"mfu": True}, "SizeError", "mfu is True; it must be a fraction"),
        ({"mfu": 0.4, "gpus": 0}, "SizeError", "gpus is 0; it must be an integer of at least 1"),
        ({"mfu": 0.4, "gpu": "h1"}, "HardwareError", "no GPU or other chip is called 'h1'; did you mean h100"),
        ({"mfu": 0.4, "dtype": "fp4"}, "HardwareError", "NVIDIA H100 SXM5 80 GB has no products in fp4"),
        ({"mfu": 0.4, "dtype": "fp5"}, "SettingError", "dtype is 'fp5'; known: fp64"),
        ({}, "SettingError", "a run needs mfu.* none is given"),
        ({"mfu": 0.4, "tokens_per_second": 1}, "SettingError", "a run needs mfu.* both are given"),
        ({"tokens_per_second": 10**6}, "SettingError", "tokens_per_second is 1,000,000, .* % of the peak of all"),
        ({"mfu": 0.4, "peak_flops": 1e15}, "SettingError", "gpu and peak_flops are two ways"),
        ({"mfu": 0.4, "gpu": None}, "SettingError", "mfu needs a chip"),
        ({"gpu": None, "price": 2}, "SettingError", "price needs a chip"),
        ({"gpu": None, "gpus": 8}, "SettingError", "gpus needs a chip"),
        ({"gpu": None, "pue": 1.2}, "SettingError", "pue needs a chip"),
        ({"gpu": 5, "mfu": 0.4}, "HardwareError", "no GPU or other chip is called '5'"),
        ({"gpu": None, "peak_flops": 1e15, "mfu": 0.4, "dtype": "f"}, "SettingError", "dtype is 'f'; known: fp64"),
        (  # 0.9 x 0.889 of it over visible pairs, and 1.31 times that: 105 %
            {"mfu": 0.9, "recompute": "layer", "context": 8192},
            "SettingError",
            "mfu is 0.9; with what is computed again that is 105 % of the peak of all these machines",
        ),
        (
            {"tokens_per_second": 15_000, "recompute": "layer", "context": 8192},
            "SettingError",
            "tokens_per_second is 15,000; with what is computed again that is 103 % of the peak",
        ),
        ({"mfu": 0.4, "pue": 0.9}, "SettingError", "pue is 0.9; .* at least 1"),
        ({"mfu": 0.4, "price": 0}, "SizeError", "price is 0; it must be a finite number above 0"),
        ({"mfu": 0.4, "tokens": 0}, "SizeError", "tokens is 0; it must be an integer of at least 1"),
        ({"mfu": 0.4, "context": 0}, "SizeError", "context is 0; it must be an integer of at least 1"),
        (
            {"mfu": 0.4, "recompute": "all"},
            "SettingError",
            "recompute is 'all'; known: none, attention, layer, or a number of layers, 1 or more",
        ),
        ({"mfu": 0.4, "lengths": []}, "SettingError", "lengths are empty"),
        ({"mfu": 0.4, "lengths": {0: 1}}, "SizeError", "a length is 0; it must be an integer of at least 1"),
        ({"mfu": 0.4, "lengths": [8], "context": 8}, "SettingError", "lengths are those of sequences"),
        ({"mfu": 0.4, "budget": 1e20}, "SettingError", "give one of tokens, budget"),
        ({"mfu": 0.4, "tokens": None}, "SettingError", "give one of tokens, budget"),
        ({"tokens": None, "budget": 5, "mfu": 0.4}, "SettingError", "the budget does not pay for one token"),
        ({"tokens": None, "gpu_days": 5, "gpu": None}, "SettingError", "gpu_days needs a gpu"),
        ({"mfu": 0.4, "step_tokens": 5, "optimizer": "adafactor"}, "SettingError", "a step of adafactor are not known"),
        ({"mfu": 0.4, "step_tokens": 10**30}, "SettingError", "step_tokens is 10{30}; the whole run has"),
        ({"mfu": 0.4, "step_tokens": 5, "optimizer": "x"}, "SettingError", "optimizer is 'x'; known: sgd"),
        ({"mfu": 0.4, "optimizer": "x"}, "SettingError", "optimizer is 'x'; known: sgd"),
        ({"mfu": 0.4, "recompute": float("inf")}, "SettingError", "recompute is inf; known: none, attention, layer"),
        ({"mfu": 0.4, "convention": "scalar"}, "SettingError", "a backward pass is known in matmul and causal"),
        ({"mfu": 0.4, "width": 5}, "SettingError", "a model has no open sizes; width cannot be set"),
    ],
)
def test_what_cannot_be(asked: dict[str, Any], error: str, said: str) -> None:
    with pytest.raises(getattr(assay, error), match=said):
        assay.train(LLAMA, **{"tokens": 10**9, "gpu": "h100", **asked})


def test_no_such_law() -> None:
    with pytest.raises(assay.SettingError, match="law is 'moore'; known: hoffmann-1"):
        law("moore")
    with pytest.raises(assay.SizeError, match="budget is -1; it must be a finite number above 0"):
        law("kaplan").optimum(-1)


# without a head that pools, nothing compares what the tower makes: there is no such pair
TRAINABLE = {"siglip": {"model_type": "siglip", "vision_config": {"num_hidden_layers": 2}}}


@pytest.mark.parametrize("model_type", sorted(samples()))
def test_every_family_trains(model_type: str) -> None:
    """What a step costs is known of kinds too of which nobody knows what they keep."""
    model = assay.load(TRAINABLE.get(model_type) or samples()[model_type][0].config)
    length = assay.count(model, tokens=8).setting.tokens  # what looks at images alone has its own
    run = assay.train(model, tokens=length, context=length, recompute="layer")
    assert 0 < run.again <= run.forward
    try:
        step = assay.training(model, tokens=8)
    except KindError:
        return
    assert (run.forward, run.backward) == (step.forward, step.backward)
