"""Crossovers against those of articles, worked by hand; regimes against the costs they compare."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.readings.crossovers import COMPARISONS, Crossover, crossovers
from assay.readings.regimes import edges, regimes
from assay.readings.roots import bottom, first, lasting, least
from assay.report.algebra import quotient
from assay.spec import Model

PLAIN = {  # LLaMA 7B as the article has it: two matrices of 4d in the MLP, fp16
    "model_type": "gpt2",
    "n_embd": 4096,
    "n_layer": 32,
    "n_head": 32,
    "vocab_size": 32000,
    "n_positions": 2048,
    "torch_dtype": "float16",
}


def plain() -> Model:
    return assay.load(PLAIN)


def found(model: Model, **asked: Any) -> dict[tuple[str, str], Crossover]:
    return {(one.comparison.name, one.way): one for one in crossovers(model, **asked)}


def test_the_plain_block() -> None:
    """2d where attention with its projections equals the MLP, 4d without them, 6d against all weights of a layer."""
    made = found(plain())
    for way in ("prefill", "decode"):
        assert made["attention-mlp", way].at == 2 * 4096
        assert made["scores-mlp", way].at == 4 * 4096
        assert made["scores-layers", way].at == 6 * 4096
    assert made["matrix-hidden", "prefill"].at == 4 * 4096 // 32


def test_the_plain_block_in_letters() -> None:
    pytest.importorskip("sympy")
    made = found(plain())
    formulas = {name: quotient(made[name, "prefill"].formula) for name, way in made if way == "prefill"}
    assert formulas == {
        "attention-mlp": "2d",
        "scores-mlp": "4d",
        "scores-layers": "6d",
        "scores-weights": "V/(2L) + 6d",
        "matrix-hidden": "4d/h",
    }


def test_llama_3_8b() -> None:
    """28,628 tokens with the head for the last token, 57,255 for the mean of a causal prompt."""
    made = found(assay.load("llama-3-8b"))
    assert made["scores-weights", "decode"].at == 28_628
    assert made["scores-layers", "decode"].at == 4096 + 8 * 128 + 3 * 14336 // 2
    assert made["attention-mlp", "prefill"].at == 3 * 14336 // 2 - 4096 - 8 * 128
    assert made["matrix-hidden", "prefill"].at == 14336 // 32
    causal = found(assay.load("llama-3-8b"), convention="causal")
    assert causal["scores-weights", "prefill"].at == 57_255
    assert causal["scores-weights", "decode"].at == 28_628


@pytest.mark.parametrize(
    ("preset", "weights", "a_token"),
    [
        ("llama-3-8b", 2 * 8_030_261_248, 2 * 32 * 2 * 8 * 128),  # passed at 122,532 tokens
        ("llama-7b", 2 * 6_738_415_616, 2 * 32 * 2 * 4096),  # passed at 25,705
    ],
)
@pytest.mark.parametrize("batch", [1, 7])
def test_the_cache_passes_the_weights(preset: str, weights: int, a_token: int, batch: int) -> None:
    at = found(assay.load(preset), batch=batch, weights="fp16", cache="fp16")["cache-weights", "decode"].at
    assert at == -(-weights // (batch * a_token))


def test_a_window_never_lets_the_cache_pass_the_weights() -> None:
    made = found(assay.load("mistral-7b"))
    assert made["cache-weights", "decode"].at is None
    assert made["scores-mlp", "decode"].at is None
    assert made["scores-mlp", "prefill"].at == 3 * 14336 // 2  # dense: n x n, window or not


def slow(*names: object) -> list[Any]:
    """What only the whole run asks."""
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize(
    "preset", ["gpt-2", "t5-small", *slow("gemma-2-9b", "mixtral-8x7b", "deepseek-v3", "qwen3-next-80b-a3b")]
)
def test_the_exact_place_is_just_before_the_first_integer(preset: str) -> None:
    pytest.importorskip("sympy")
    solved = [one for one in crossovers(assay.load(preset)) if one.exact is not None]
    assert solved
    for one in solved:
        assert one.at is not None
        assert one.at - 1 < one.exact <= one.at


@pytest.mark.parametrize("convention", ["matmul", "causal", "scalar", "stable-softmax"])
def test_the_first_integer_is_the_first(convention: str) -> None:
    """By count, which knows nothing of crossovers."""
    model = assay.load("llama-3.2-1b")
    at = found(model, convention=convention)["attention-mlp", "prefill"].at
    assert at is not None
    parts = [assay.count(model, tokens=n, convention=convention).flops.by_part for n in (at - 1, at)]
    assert parts[0]["attention"] < parts[0]["mlp"]
    assert parts[1]["attention"] >= parts[1]["mlp"]


def test_what_has_no_scores() -> None:
    with pytest.raises(SettingError, match=r"^Mamba 130M has no attention scores; "):
        crossovers(assay.load("mamba-130m"))
    with pytest.raises(SettingError, match=r"^Mamba 130M has no attention to compare$"):
        regimes(assay.load("mamba-130m"), [100])


def test_images_cross_where_a_count_of_larger_ones_does() -> None:
    """2d = 96 positions: an image of 9 x 9 patches and a class token has 82, one of 10 x 10 has 101."""
    vit = {"model_type": "vit", "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3}
    vit |= {"intermediate_size": 192, "patch_size": 8}
    made = found(assay.load({**vit, "image_size": 32}))
    assert {key: one.at for key, one in made.items()} == {
        ("attention-mlp", "prefill"): 96,
        ("scores-mlp", "prefill"): 192,
        ("scores-layers", "prefill"): 288,
        ("matrix-hidden", "prefill"): 48,
    }
    for side, leads in ((72, "mlp"), (80, "attention")):
        parts = assay.count(assay.load({**vit, "image_size": side})).flops.by_part
        assert max(("mlp", "attention"), key=parts.__getitem__) == leads
    assert [one.compute for one in regimes(assay.load("vit-b-16"), [1535, 1536])] == ["MLP", "attention"]


CHUNKED = {  # three layers of chunks of 16 tokens for one that sees all
    "model_type": "llama4_text",
    "hidden_size": 32,
    "intermediate_size": 24,
    "intermediate_size_mlp": 40,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 50,
    "num_local_experts": 2,
    "attention_chunk_size": 16,
}
WINDOWED = {  # every other layer sees 16 tokens
    "model_type": "gemma2",
    "hidden_size": 32,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 50,
    "sliding_window": 16,
}


@pytest.mark.parametrize("way", ["prefill", "decode"])
@pytest.mark.parametrize("config", [CHUNKED, WINDOWED], ids=["chunks", "windows"])
@pytest.mark.parametrize("inner", [24, *slow(60, 96)])
def test_the_first_and_the_last_by_counting_at_every_length(config: dict[str, Any], way: str, inner: int) -> None:
    """With chunks a decode step's keys drop at each new one, and what has come goes again."""
    numpy = pytest.importorskip("numpy")
    widths = [key for key in config if key.startswith("intermediate_size")]
    model = assay.load({**config, **dict.fromkeys(widths, inner)})
    one = found(model, convention="causal")["attention-mlp", way]
    lengths = numpy.arange(1, 3000)
    asked = {"tokens": lengths} if way == "prefill" else {"tokens": 1, "past": lengths - 1}
    parts = assay.count(model, convention="causal", **asked).flops.by_part
    mlp = sum(parts.get(part, 0) for part in ("mlp", "experts", "router"))
    leads = [False, *(parts["attention"] >= mlp).tolist()]
    assert leads[-1]
    assert one.at == leads.index(True)
    assert one.lasting == len(leads) - leads[::-1].index(False)


@pytest.mark.slow
def test_chunks_take_turns() -> None:
    """A step of Llama 4 Scout: 36 layers see at most 8,192 tokens of their chunk, 12 layers see all."""
    one = found(assay.load("llama-4-scout"), convention="causal")["attention-mlp", "decode"]
    assert (one.at, one.lasting) == (55_304, 73_736)
    parts = [
        assay.count(assay.load("llama-4-scout"), tokens=1, past=n - 1, convention="causal").flops.by_part
        for n in (55_303, 55_304, 57_345, 73_735, 73_736, 73_737)
    ]
    mlp = [sum(part.get(name, 0) for name in ("mlp", "experts", "router")) for part in parts]
    leads = [part["attention"] >= other for part, other in zip(parts, mlp, strict=True)]
    assert leads == [False, True, False, False, True, True]


@pytest.mark.parametrize("preset", ["gemma-2-9b", "mistral-7b", *slow("llama-4-scout", "gpt-oss-20b", "whisper-tiny")])
def test_windows_and_chunks_have_formulas(preset: str) -> None:
    """What the equation says is nothing where the exact place is put in, and its letters are the model's."""
    pytest.importorskip("sympy")
    # bytes of weights in formats have no formula
    for one in crossovers(assay.load(preset), convention="causal", weights="bf16"):
        if one.at is None or one.at <= 2:
            continue
        assert one.exact is not None
        assert one.at - 1 < one.exact <= one.at
        values = {letter.symbol: letter.value for letter in one.legend}
        left = one.equation.xreplace({**values, **{s: one.exact for s in one.equation.free_symbols if str(s) == "n"}})
        assert left.expand() == 0


def test_lengths_are_not_asked_for() -> None:
    with pytest.raises(SettingError, match=r"^tokens cannot be set: crossovers are over all lengths$"):
        crossovers(assay.load("gpt-2"), tokens=5)
    with pytest.raises(SettingError, match=r"^past cannot be set: regimes are of the contexts that are given$"):
        regimes(assay.load("gpt-2"), [512], past=5)
    for wrong in (512, "512", None):
        with pytest.raises(SettingError, match=r"^contexts is .*; it must be integers, such as \[512, 8192\]$"):
            regimes(assay.load("gpt-2"), wrong)  # type: ignore[arg-type]


def test_sizes_are_integers() -> None:
    with pytest.raises(SettingError, match=r"^batch is many; crossovers are found for an integer$"):
        crossovers(assay.load("gpt-2"), batch="many")


@pytest.mark.parametrize("edge", [1, 2, 3, 1000, 4097])
def test_the_least_is_found(edge: int) -> None:
    assert least(lambda n: n >= edge) == edge


def test_what_never_comes_is_none() -> None:
    assert least(lambda n: False) is None
    assert first(lambda n: -1) is None
    assert lasting(lambda n: -1, None) is None


def test_what_dips_below_again() -> None:
    """(n - 4)(n - 9): above at 1, below from 5 to 8, above from 9 on; then one that falls back every 5."""
    assert first(lambda n: (n - 4) * (n - 9)) == 1
    assert lasting(lambda n: (n - 4) * (n - 9), 1) == 9
    assert bottom(lambda n: (n - 4) * (n - 9), 1, 100) in (6, 7)

    def turning(n: int) -> int:
        return n - 10 + 2 * ((n - 1) % 5)

    signs = [turning(n) >= 0 for n in range(1, 40)]
    assert first(turning, 5) == signs.index(True) + 1
    assert lasting(turning, first(turning, 5), 5) == 39 - signs[::-1].index(False) + 1


@pytest.mark.parametrize(
    ("tokens", "compute", "memory"),
    [(256, "MLP", "hidden"), (2048, "MLP", "scores"), (32768, "attention", "scores")],
)
def test_the_quadrants(tokens: int, compute: str, memory: str) -> None:
    """At 2,048 tokens scores of 32 heads are four times the hidden activations, though the MLP leads in FLOPs."""
    (made,) = regimes(assay.load({**PLAIN, "n_positions": 65536}), [tokens])
    assert (made.compute, made.memory) == (compute, memory)
    assert made.scores == 32 * 32 * tokens**2
    assert made.hidden == 32 * 4 * 4096 * tokens
    assert made.attention == 32 * (8 * tokens * 4096**2 + 4 * tokens**2 * 4096)
    assert made.mlp == 32 * 16 * tokens * 4096**2


def test_the_edges_of_the_quadrants() -> None:
    assert edges(plain()) == (2 * 4096, 4 * 4096 // 32)


def test_numbers_need_no_sympy() -> None:
    code = (
        "import sys; sys.modules['sympy'] = None\n"
        "import assay; from assay.readings.crossovers import crossovers\n"
        "print(*(one.at for one in crossovers(assay.load('gpt-2'))[:3]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1536 1536 3072\n"


def test_each_comparison_says_its_sides() -> None:
    assert len({(one.left, one.right) for one in COMPARISONS}) == len(COMPARISONS)
