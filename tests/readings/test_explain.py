"""Formulas from ops against formulas typed from papers, as polynomials; and what a derivation holds."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.readings.explain import Derivation, derive
from assay.records import replace
from assay.report.algebra import write
from assay.sources.huggingface import read_config

sympy = pytest.importorskip("sympy")

SIZES = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 101}
GROUPED = {**SIZES, "intermediate_size": 80, "num_key_value_heads": 2}
LLAMA = {"model_type": "llama", **GROUPED}
GPT2 = {"model_type": "gpt2", "n_embd": 48, "n_layer": 3, "n_head": 4, "vocab_size": 101, "n_positions": 2048}
MISTRAL = {"model_type": "mistral", **GROUPED, "sliding_window": 64}
MIXTRAL = {"model_type": "mixtral", **GROUPED, "num_local_experts": 6, "num_experts_per_tok": 2}
QWEN3 = {"model_type": "qwen3", **GROUPED, "head_dim": 20}
GEMMA2 = {"model_type": "gemma2", **GROUPED, "num_hidden_layers": 4, "head_dim": 20, "sliding_window": 64}
FALCON = {"model_type": "falcon", **SIZES, "alibi": False}
GPTJ = {"model_type": "gptj", "n_embd": 48, "n_layer": 3, "n_head": 4, "vocab_size": 101, "rotary_dim": 4}
BERT = {"model_type": "bert", **SIZES, "intermediate_size": 192}
VIT = {
    "model_type": "vit",
    **{k: v for k, v in SIZES.items() if k != "vocab_size"},
    "intermediate_size": 192,
    "image_size": 32,
    "patch_size": 8,
}
T5 = {
    "model_type": "t5",
    "d_model": 48,
    "d_ff": 80,
    "d_kv": 20,
    "num_heads": 4,
    "num_layers": 3,
    "num_decoder_layers": 5,
    "vocab_size": 101,
}
DEEPSEEK = {
    "model_type": "deepseek_v3",
    **SIZES,
    "q_lora_rank": 22,
    "kv_lora_rank": 14,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6,
    "v_head_dim": 9,
    "n_routed_experts": 16,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "moe_intermediate_size": 18,
    "first_k_dense_replace": 0,
    "n_group": 1,
    "topk_group": 1,
}
MAMBA2 = {
    "model_type": "mamba2",
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "vocab_size": 101,
    "state_size": 7,
    "expand": 2,
    "num_heads": 12,
    "head_dim": 8,
    "n_groups": 3,
    "conv_kernel": 5,
    "use_conv_bias": True,
    "use_bias": False,
    "tie_word_embeddings": True,
}

# typed from the papers, in their terms; nothing of the tool's own
TYPED: dict[str, tuple[dict[str, Any], str, dict[str, Any], str]] = {
    # Vaswani et al. 2017, Radford et al. 2019, Kaplan et al. 2020, table 1: four d x d and two d x 4d, with biases
    "GPT-2": (GPT2, "parameters", {}, "L*(12*d**2 + 13*d) + V*d + P*d + 2*d"),
    "GPT-2 forward": (GPT2, "flops", {}, "L*(24*n*d**2 + 4*n**2*d) + 2*n*V*d"),
    "GPT-2, a token": (GPT2, "flops", {"tokens": 1, "past": 99}, "L*(24*d**2 + 4*c*d) + 2*V*d"),
    # one dot product of length d costs 2d - 1, a softmax row of n costs 3n - 1, a scale and a mask one each
    "attention, each operation": (
        GPT2,
        "flops",
        {"part": "attention.scores", "convention": "scalar"},
        "L*h*(n**2*(2*d/h - 1) + n**2 + n**2 + (3*n**2 - n) + n*d/h*(2*n - 1))",
    ),
    # Touvron et al. 2023, Ainslie et al. 2023: three matrices in the MLP, g heads of keys and values
    "Llama": (LLAMA, "parameters", {}, "L*(2*d**2 + 2*d*g*k + 3*d*f + 2*d) + 2*V*d + d"),
    "Llama forward": (LLAMA, "flops", {}, "L*(4*n*d**2 + 4*n*d*g*k + 6*n*d*f + 4*n**2*d) + 2*n*V*d"),
    "Llama causal": (
        LLAMA,
        "flops",
        {"convention": "causal"},
        "L*(4*n*d**2 + 4*n*d*g*k + 6*n*d*f + 4*d*n*(n + 1)/2) + 2*n*V*d",
    ),
    "Llama cache": (LLAMA, "cache", {"batch": 3}, "2 * 2*L*g*k*n*b"),
    # Jiang et al. 2023: token i sees min(i, w) tokens
    "Mistral causal": (
        MISTRAL,
        "flops",
        {"convention": "causal"},
        "L*(4*n*d**2 + 4*n*d*g*k + 6*n*d*f + 4*d*(w*(w + 1)/2 + (n - w)*w)) + 2*n*V*d",
    ),
    "Mistral cache": (MISTRAL, "cache", {"past": 500}, "2 * 2*L*g*k*w"),
    # Jiang et al. 2024: two of eight experts and a router of d x e
    "Mixtral": (MIXTRAL, "parameters", {}, "L*(2*d**2 + 2*d*g*k + d*e + 3*e*d*f + 2*d) + 2*V*d + d"),
    "Mixtral forward": (MIXTRAL, "flops", {}, "L*(4*n*d**2 + 4*n*d*g*k + 2*n*d*e + 6*n*a*d*f + 4*n**2*d) + 2*n*V*d"),
    # DeepSeek-AI 2024, section 2.1: W_DQ, W_UQ and W_QR, W_DKV, W_KR, W_UK, W_UV, W_O
    "DeepSeek-V3": (
        DEEPSEEK,
        "parameters",
        {},
        "L*(d*l + l*h*k + d*z + d*p + z*h*o + z*h*v + h*v*d + d*e + 3*e*d*f + 3*d*s + 2*d + l + z) + 2*V*d + d",
    ),
    "DeepSeek-V3 cache": (DEEPSEEK, "cache", {}, "2*L*n*(z + p)"),
    "DeepSeek-V3 absorbed": (
        DEEPSEEK,
        "flops",
        {"part": "attention.scores", "latent": "absorbed", "tokens": 1, "past": 99},
        "L*h*(2*c*(z + p) + 2*c*z)",
    ),
    # Yang et al. 2025: a head width of its own, norms of queries and keys
    "Qwen3": (QWEN3, "parameters", {}, "L*(2*d*h*k + 2*d*g*k + 3*d*f + 2*d + 2*k) + 2*V*d + d"),
    # Gemma Team 2024: every other layer sees w tokens; four norms
    "Gemma 2": (GEMMA2, "parameters", {}, "(L_1 + L_2)*(2*d*h*k + 2*d*g*k + 3*d*f + 4*d) + V*d + d"),
    "Gemma 2, a token": (
        GEMMA2,
        "flops",
        {"tokens": 1, "past": 999},
        "(L_1 + L_2)*(4*d*h*k + 4*d*g*k + 6*d*f) + L_1*4*w*h*k + L_2*4*c*h*k + 2*V*d",
    ),
    # Penedo et al. 2023, Shazeer 2019: one head of keys and values, attention and MLP side by side behind one norm
    "Falcon": (FALCON, "parameters", {}, "L*(2*d**2 + 2*d*k + 8*d**2 + 2*d) + V*d + 2*d"),
    # Wang & Komatsuzaki 2021: side by side too, biases in the MLP and the head alone
    "GPT-J": (GPTJ, "parameters", {}, "L*(4*d**2 + 8*d**2 + 5*d + 2*d) + 2*V*d + V + 2*d"),
    # Devlin et al. 2018, Dosovitskiy et al. 2020: the same block, every token sees every token
    "BERT": (BERT, "parameters", {"part": "layer"}, "L*(12*d**2 + 13*d)"),
    "BERT forward": (BERT, "flops", {"part": "layer"}, "L*(24*n*d**2 + 4*n**2*d)"),
    "ViT": (VIT, "parameters", {"part": "layer"}, "L*(12*d**2 + 13*d)"),
    # Raffel et al. 2020: no biases; the first layer of each half holds a table of u distances for its h heads
    "T5": (
        T5,
        "parameters",
        {},
        "(L_1 + 1)*(4*d*h*k + 2*d*f + 2*d) + (L_2 + 1)*(8*d*h*k + 2*d*f + 3*d) + 2*u*h + V*d + 2*d",
    ),
    "T5 forward": (
        T5,
        "flops",
        {"source": 70},
        "(L_1 + 1)*(8*m*d*h*k + 4*m**2*h*k + 4*m*d*f) + 2*n*V*d + (L_2 + 1)*CROSSED",
    ),
    # Dao & Gu 2024: one projection to gate, input, writes, reads and steps; a kernel over input, writes and reads
    "Mamba-2": (
        MAMBA2,
        "parameters",
        {},
        "L*(d*(2*G*H*Q + 2*G*S + G*H) + (G*H*Q + 2*G*S)*(K + 1) + 3*G*H + G*H*Q + G*H*Q*d + d) + V*d + d",
    ),
    "Mamba-2 states": (MAMBA2, "cache", {}, "L*(2*K*(G*H*Q + 2*G*S) + 4*G*H*Q*S)"),
}


def derivation(config: dict[str, Any], figure: str, asked: dict[str, Any]) -> Derivation:
    model = read_config(config, "config", "model")
    given = {"tokens": 200, **asked} if figure != "parameters" and config is not VIT else asked
    return derive(replace(model, dtype="bf16"), figure, **given)


# a decoder's layer: to its own tokens, then to the source's, then the MLP
CROSSED = "(8*n*d*h*k + 4*n**2*h*k + 4*n*d*h*k + 4*m*d*h*k + 4*n*m*h*k + 4*n*d*f)"


def typed(made: Derivation, text: str) -> Any:
    """A formula written down, in the derivation's letters."""
    return sympy.sympify(
        text.replace("CROSSED", CROSSED), locals={letter.symbol.name: letter.symbol for letter in made.legend}
    )


@pytest.mark.parametrize("name", TYPED)
def test_closed_forms_are_those_of_papers(name: str) -> None:
    config, figure, asked, text = TYPED[name]
    made = derivation(config, figure, asked)
    assert sympy.expand(made.closed - typed(made, text)) == 0, f"{made.closed} is not {text}"


def test_a_wrong_formula_is_seen() -> None:
    made = derivation(GPT2, "parameters", {})
    assert sympy.expand(made.closed - typed(made, "L*(12*d**2 + 12*d) + V*d + P*d + 2*d")) != 0


def test_ten_families_are_typed() -> None:
    assert len({config["model_type"] for config, *_ in TYPED.values()}) >= 10


# the closed form of one layer, as it is printed
PRINTED = {
    ("GPT-2", "attention"): "8nd² + 4n²d",
    ("GPT-2", "mlp"): "16nd²",
    ("GPT-2", "layer"): "24nd² + 4n²d",
    ("Llama", "attention"): "4nd² + 4ndgk + 4n²d",
    ("Llama", "mlp"): "6ndf",
}
CONFIGS = {"GPT-2": GPT2, "Llama": LLAMA}


@pytest.mark.parametrize(("name", "part"), PRINTED)
def test_closed_forms_are_printed_as_the_field_writes_them(name: str, part: str) -> None:
    made = derivation(CONFIGS[name], "flops", {"part": part})
    assert write(made.stages[0].closed) == PRINTED[name, part]


def test_steps_sum_to_the_figure() -> None:
    model = assay.load("gpt-2")
    made = derive(model, "flops", tokens=100)
    for stage in made.stages:
        assert stage.value == sum(step.value for part in stage.parts for step in part.steps)
    assert (
        made.number == sum(stage.times * stage.value for stage in made.stages) == assay.count(model, 1, 100).flops.total
    )


def test_letters_say_where_they_came_from() -> None:
    made = derivation(LLAMA, "flops", {})
    origins = {letter.symbol.name: letter.origin for letter in made.legend}
    assert origins["d"] == "hidden_size"
    assert origins["g"] == "num_key_value_heads"
    assert origins["f"] == "intermediate_size"
    assert origins["L"] == "num_hidden_layers"


def test_one_letter_for_two_sizes_is_numbered() -> None:
    made = derivation({**DEEPSEEK, "first_k_dense_replace": 1, "intermediate_size": 70}, "parameters", {})
    widths = {letter.symbol.name: letter.value for letter in made.legend if letter.symbol.name.startswith("f")}
    assert widths == {"f_1": 70, "f_2": 18}


def test_other_sizes_by_letter() -> None:
    made = derivation(GPT2, "parameters", {"part": "mlp"})
    assert made.at() == made.number == 3 * (8 * 48**2 + 5 * 48)
    assert made.at(d=10, f=30) == 3 * (2 * 10 * 30 + 10 + 30)
    with pytest.raises(SettingError, match=r"^x is no letter of this formula; its letters: d, f, L$"):
        made.at(x=1)
    for wrong in (0, -1, 1.5, "10", True):
        with pytest.raises(SettingError, match=r"^d is .*; it must be an integer of at least 1$"):
            made.at(d=wrong)  # type: ignore[arg-type]


def test_bounds_are_those_that_hold() -> None:
    near = derivation(MISTRAL, "flops", {"convention": "causal", "tokens": 50})
    far = derivation(MISTRAL, "flops", {"convention": "causal", "tokens": 500})
    assert [(str(one.low), str(one.high)) for one in near.bounds] == [("n", "w")]
    assert [(str(one.low), str(one.high)) for one in far.bounds] == [("w", "n")]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"figure": "speed"}, "^figure is 'speed'; known: parameters, flops, cache, activations$"),
        ({"part": ["mlp"]}, r"^part is \['mlp'\]; it must be the name of a part, such as attention$"),
        ({"part": "brain"}, "^part is 'brain'; GPT-2 has embedding, norm, attention, attention.scores, "),
        ({"part": "mlp", "figure": "cache"}, "^mlp of GPT-2 adds nothing to cache in this setting$"),
    ],
)
def test_what_cannot_be_derived_is_said(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        assay.explain(assay.load("gpt-2"), **asked)


def test_encoders_keep_nothing() -> None:
    with pytest.raises(SettingError, match=r"has no cache in this setting$"):
        assay.explain(assay.load("bert-base"), "cache")


def test_a_block_of_ones_own() -> None:
    block = assay.block("y = linear(x[b n d], W[d f]) -> [b n f]", d=8, f=3)
    assert write(assay.explain(block, "parameters").closed) == "df"


def test_open_sizes_of_a_block_are_given() -> None:
    block = assay.block("y = linear(x[b n d], W[d f]) -> [b n f]", d=8)
    assert assay.explain(block, "parameters", f=3).number == 24
    with pytest.raises(SettingError, match=r"^a model has no open sizes; f cannot be set; what can: batch, tokens, "):
        assay.explain(assay.load("gpt-2"), "parameters", f=3)


@pytest.mark.parametrize("tokens", [sympy.Symbol("n", positive=True, integer=True)])
def test_sizes_are_integers(tokens: Any) -> None:
    with pytest.raises(SettingError, match=r"^tokens is n; it must be an integer here: formulas have a letter for it"):
        assay.explain(assay.load("llama-3-8b"), tokens=tokens)


def test_a_derivation_is_named_shortly() -> None:
    made = assay.explain(assay.load("gpt-2"), "flops", "mlp", tokens=1)
    assert repr(made) == "<mlp, flops of GPT-2: 113,246,208>"


def test_a_part_comes_before_a_kind_of_layer_of_its_name() -> None:
    made = derivation(DEEPSEEK, "parameters", {"part": "experts"})
    assert [stage.name for stage in made.stages] == ["experts"]
    assert [part.part for part in made.stages[0].parts] == ["experts"]
    assert write(made.stages[0].closed) == "3edf + 3ds"
