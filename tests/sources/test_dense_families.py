"""Dense decoders against the public implementation: default configs, and small ones with every option turned."""

from __future__ import annotations

from typing import Any

import pytest
from library import built, check_against_library, differences, needs_library, our_ledger, their_ledger

from assay.errors import SourceError
from assay.kinds import check
from assay.readings.count import count
from assay.sources.huggingface import read_config
from assay.spec import Model

# sizes that are all different, so that none can stand in for another
SMALL: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 40,
    "intermediate_size": 56,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
ALL_KV = {"num_key_value_heads": None}  # as many key/value heads as query heads
WIDE = {"head_dim": 12}  # heads whose width is not hidden_size / num_attention_heads
MIXED = {"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]}

# the library cannot build the default config of these: it stumbles over the null that it holds for a derived size
DERIVED: dict[str, dict[str, int]] = {
    "hunyuan_v1_dense": {"head_dim": 128},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 48},
}

DEFAULTS = """
    llama iquestcoder exaone internlm3 arcee ernie4_5 seed_oss smollm3 glm glm4 mistral ministral3 cwm qwen2 qwen3
    apertus apertus1p5_text gemma gemma2 vaultgemma gemma3_text olmo olmo2 olmo3 exaone4 granite granite_swa hyperclovax
    cohere cohere2 diffllama
    modernbert-decoder hrm_text
""".split()

OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "llama": (
        {**WIDE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "hidden_act": "gelu"},
        {"num_key_value_heads": None, "rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"hidden_act": "xielu"},
    ),
    "iquestcoder": ({**WIDE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},),
    "exaone": (
        {"num_layers": 3, "num_hidden_layers": 3, "activation_function": "relu", **WIDE},
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    ),
    "internlm3": (
        {"qkv_bias": True, "bias": True, "tie_word_embeddings": True},
        {**WIDE},
        {"head_dim": None},
    ),
    "arcee": ({**WIDE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},),
    "ernie4_5": ({**WIDE, "use_bias": True, "tie_word_embeddings": False}, {"head_dim": None}),
    "seed_oss": (
        {**WIDE, "attention_bias": False, "attention_out_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
        {"head_dim": None},
    ),
    "smollm3": (
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False, "no_rope_layers": [0, 1, 1, 0]},
        {"use_sliding_window": True, "sliding_window": 3, "no_rope_layer_interval": 2},
    ),
    "glm": ({**WIDE, "attention_bias": False, "partial_rotary_factor": 0.25, "tie_word_embeddings": True},),
    "glm4": ({**WIDE, "attention_bias": False, "partial_rotary_factor": 0.25, "tie_word_embeddings": True},),
    "mistral": ({**WIDE, "sliding_window": 3, "tie_word_embeddings": True}, {"sliding_window": None}),
    "ministral": ({**WIDE, **MIXED, "sliding_window": 3, "tie_word_embeddings": True}, {**WIDE, "sliding_window": 5}),
    "ministral3": ({**WIDE, "sliding_window": 3, "tie_word_embeddings": True}, {"sliding_window": None}),
    "cwm": (
        {**WIDE, **MIXED, "sliding_window": 3, "mlp_bias": True, "tie_word_embeddings": True},
        {"num_hidden_layers": 5, "sliding_window": 2},
    ),
    "qwen2": (
        {"use_sliding_window": True, "max_window_layers": 1, "sliding_window": 3, "tie_word_embeddings": True},
        {**MIXED, **WIDE, "use_sliding_window": True, "sliding_window": 3},
    ),
    "qwen3": (
        {**WIDE, "attention_bias": True, "tie_word_embeddings": True},
        {"use_sliding_window": True, "max_window_layers": 2, "sliding_window": 3, "head_dim": 8},
    ),
    "hunyuan_v1_dense": ({**WIDE, "attention_bias": True, "tie_word_embeddings": True}, {"head_dim": 8}),
    "apertus": ({**WIDE, "attention_bias": True, "tie_word_embeddings": True}, {"hidden_act": "relu2"}),
    "apertus1p5_text": (
        {"attention_bias": True, "output_vocab_size": 70},
        {"output_vocab_size": 96, "tie_word_embeddings": True},
    ),
    "gemma": ({**WIDE, "attention_bias": True, "tie_word_embeddings": False}, {**WIDE, "hidden_act": "gelu"}),
    "gemma2": (
        {**WIDE, "attention_bias": True, "tie_word_embeddings": False, "sliding_window": 3, "query_pre_attn_scalar": 9},
        {**WIDE, **MIXED, "sliding_window": 3, "attn_logit_softcapping": None, "final_logit_softcapping": None},
    ),
    "vaultgemma": (
        {**WIDE, "attention_bias": True, "tie_word_embeddings": False, "sliding_window": 3},
        {**WIDE, **MIXED, "sliding_window": 3, "attn_logit_softcapping": None, "final_logit_softcapping": None},
    ),
    "gemma3_text": (
        {
            **WIDE,
            "attention_bias": True,
            "tie_word_embeddings": False,
            "sliding_window": 3,
            "sliding_window_pattern": 2,
        },
        {**WIDE, **MIXED, "sliding_window": 3, "final_logit_softcapping": 30.0, "rope_local_base_freq": 5e3},
    ),
    "olmo": ({"attention_bias": True, "clip_qkv": 0.5, "tie_word_embeddings": True}, {"num_key_value_heads": None}),
    "olmo2": ({"attention_bias": True, "tie_word_embeddings": True}, {"num_key_value_heads": None}),
    "olmo3": (
        {"attention_bias": True, "tie_word_embeddings": True, "sliding_window": 3},
        {**MIXED, "sliding_window": 3},
    ),
    "exaone4": (
        {**WIDE, "tie_word_embeddings": True, "sliding_window": 3, "sliding_window_pattern": 2},
        {**MIXED, "sliding_window": 3},
        {"sliding_window": None, "layer_types": ["full_attention"] * 4},
    ),
    "granite": (
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "attention_multiplier": 0.5},
        {"embedding_multiplier": 12.0, "logits_scaling": 8.0, "residual_multiplier": 0.2},
    ),
    "granite_swa": (
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False, "sliding_window": 3},
        {**MIXED, "sliding_window": 3, "layer_rope_theta": [0, 1e4, 0.0, 5e5], "residual_multiplier": 0.2},
    ),
    "hyperclovax": (
        {**WIDE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "attention_multiplier": 0.5},
        {"use_post_norm": False, "logits_scaling": 0.5, "residual_multiplier": 0.2, "embedding_multiplier": 2.0},
    ),
    "cohere": (
        {"attention_bias": True, "use_qk_norm": True, "tie_word_embeddings": False, "logit_scale": 0.5},
        {"num_key_value_heads": None},
    ),
    "cohere2": (
        {"attention_bias": True, "tie_word_embeddings": False, "sliding_window": 3, "sliding_window_pattern": 2},
        {**MIXED, "sliding_window": 3},
    ),
    "diffllama": ({**WIDE, "attention_bias": True, "tie_word_embeddings": True}, {"num_key_value_heads": None}),
    "modernbert-decoder": (
        {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True, **ALL_KV},
        {**MIXED, **ALL_KV, "local_attention": 6, "tie_word_embeddings": False, "decoder_bias": False},
        {**ALL_KV, "global_attn_every_n_layers": 2, "local_attention": 6},
    ),
    "hrm_text": (
        {**WIDE, **ALL_KV, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
        {**WIDE, **ALL_KV, "H_cycles": 3, "L_cycles": 1, "num_layers_per_stack": 2, "num_hidden_layers": 12},
    ),
    "nemotron": (
        {**WIDE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "partial_rotary_factor": 0.25},
        {"hidden_act": "relu"},
    ),
}

CASES = [pytest.param(name, i, id=f"{name}-{i}") for name, options in OPTIONS.items() for i in range(len(options))]


def small(model_type: str, option: int = 0, **changes: Any) -> dict[str, Any]:
    """The small config of a type with one of its options, and changes."""
    return {"model_type": model_type, **SMALL, **OPTIONS[model_type][option], **changes}


def read(config: dict[str, Any]) -> Model:
    """The model of a config."""
    return read_config(config, "config.json", "model")


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_default_config_equals_the_library(model_type: str) -> None:
    check_against_library({"model_type": model_type})


@needs_library
@pytest.mark.parametrize("model_type", DERIVED)
def test_default_config_derives_what_the_library_must_be_told(model_type: str) -> None:
    config = {"model_type": model_type}
    theirs = built({**config, **DERIVED[model_type]})
    assert differences(our_ledger(read(config)), their_ledger(theirs)) == []


@needs_library
@pytest.mark.parametrize(("model_type", "option"), CASES)
def test_small_config_equals_the_library(model_type: str, option: int) -> None:
    check_against_library(small(model_type, option), tokens=8)


@pytest.mark.parametrize(("model_type", "option"), CASES)
def test_every_op_fits_its_kind(model_type: str, option: int) -> None:
    for segment in read(small(model_type, option)).segments:
        check(segment.block.ops)


def test_every_type_has_options_and_a_default() -> None:
    assert set(OPTIONS) == {*DEFAULTS, *DERIVED}


@pytest.mark.parametrize("model_type", OPTIONS)
def test_unknown_key_is_refused_by_name(model_type: str) -> None:
    with pytest.raises(SourceError, match=rf"^config\.json: wings\b.* not known for {model_type}, "):
        read(small(model_type, wings=2))


@pytest.mark.parametrize("model_type", OPTIONS)
@pytest.mark.parametrize("value", ["40", 0, -1, 2.5, True, [40], 10**30], ids=repr)
def test_width_of_no_size_is_refused_by_name(model_type: str, value: object) -> None:
    with pytest.raises(
        SourceError, match=r"^config\.json: hidden_size is .*; it must be an integer of at (least|most) "
    ):
        read(small(model_type, hidden_size=value))


@pytest.mark.parametrize("model_type", sorted(OPTIONS.keys() - {"modernbert-decoder"}))
def test_heads_that_do_not_divide_are_refused_by_name(model_type: str) -> None:
    message = r"num_attention_heads is 4; it must be a multiple of num_key_value_heads, 3$"
    with pytest.raises(SourceError, match=message):
        read(small(model_type, num_key_value_heads=3))


WINDOWED = """ministral cwm qwen2 gemma2 vaultgemma gemma3_text olmo3 exaone4 granite_swa cohere2""".split()


@pytest.mark.parametrize("model_type", WINDOWED)
def test_layer_types_of_another_length_are_refused(model_type: str) -> None:
    with pytest.raises(SourceError, match=r"layer_types has 1 items; it must be a list of 4 items, each one of full_"):
        read(small(model_type, layer_types=["full_attention"]))


@pytest.mark.parametrize("model_type", WINDOWED)
def test_unknown_layer_type_is_refused(model_type: str) -> None:
    with pytest.raises(
        SourceError, match=r"layer_types is \['linear_attention'.*; it must be .* full_attention, sliding"
    ):
        read(small(model_type, layer_types=["linear_attention"] * 4))


@pytest.mark.parametrize("model_type", WINDOWED)
def test_windowed_layers_keep_a_window(model_type: str) -> None:
    """64 tokens: full layers keep 64 positions, sliding ones 5, keys and values of two heads."""
    given = {"layer_types": MIXED["layer_types"], "sliding_window": 5, "head_dim": 8, "hidden_size": 32}
    if model_type == "qwen2":
        given["use_sliding_window"] = True
    config = {"model_type": model_type, **SMALL, **given}
    counted = count(read(config), tokens=64, cache="bf16")
    assert counted.cache.bytes == 2 * (2 * 64 + 2 * 5) * 2 * (2 * 8)
    scores = 2 * 4 * (8 + 8)  # of a pair of positions in one layer
    full, slides = 64 * 65 // 2, 5 * 6 // 2 + 59 * 5
    assert counted.flops.attention_scores == 4 * 64 * 64 * scores
    assert counted.flops.total - counted.flops.visible_total == (4 * 64 * 64 - 2 * (full + slides)) * scores


BAD = [
    ("qwen2", {"attention_bias": False}, "attention_bias is false; it must be true or null for this model_type"),
    (
        "qwen2",
        {**MIXED, "use_sliding_window": False},
        "use_sliding_window is false; it must be true where layer_types ",
    ),
    ("qwen3", {"head_dim": None}, "head_dim is null; it must be an integer of at least 1"),
    ("mistral", MIXED, "layer_types is .*; it must be .*sliding_attention.* or null for this model_type"),
    ("mistral", {"sliding_window": 0}, "sliding_window is 0; it must be an integer of at least 1"),
    ("llama", {"hidden_act": "cube"}, "hidden_act is 'cube'; it must be one of gelu, "),
    ("llama", {"rms_norm_eps": -1.0}, "rms_norm_eps is -1.0; it must be a number above 0"),
    ("llama", {"rope_scaling": "linear"}, "rope_scaling is 'linear'; it must be an object"),
    ("llama", {"rope_theta": "big"}, "rope_theta is 'big'; it must be a number above 0"),
    ("llama", {"rope_parameters": {"rope_theta": 0}}, "rope_parameters.rope_theta is 0; it must be a number above 0"),
    ("llama", {"use_qk_norm": True}, "use_qk_norm is true; it must be false or null for this model_type"),
    ("llama", {"attention_bias": "no"}, "attention_bias is 'no'; it must be true or false"),
    ("llama", {"tie_word_embeddings": 1}, "tie_word_embeddings is 1; it must be true or false"),
    ("iquestcoder", {"clip_qkv": 2.0}, "clip_qkv is 2.0; it must be null for this model_type"),
    ("internlm3", {"qkv_bias": True, "bias": False}, "qkv_bias is true and bias is false; they must agree"),
    ("exaone", {"num_layers": 7}, "num_layers is 7 and num_hidden_layers is 3; they name one thing and must agree"),
    ("glm", {"partial_rotary_factor": 1.5}, "partial_rotary_factor is 1.5; it must be a number above 0, at most 1"),
    ("smollm3", {"no_rope_layers": [2, 0, 1, 1]}, "no_rope_layers is .*; it must be a list of 4 items, each 0 or 1"),
    ("gemma", {"use_bidirectional_attention": True}, "use_bidirectional_attention is true; it must be false or null"),
    ("gemma2", {"sliding_window": None}, "sliding_window is null; it must be an integer .* for layers that slide"),
    ("gemma3_text", {"sliding_window_pattern": 0}, "sliding_window_pattern is 0; it must be an integer of at least 1"),
    ("diffllama", {"num_key_value_heads": 1}, "num_key_value_heads is 1; it must be an even number"),
    ("hrm_text", {"num_layers_per_stack": 3}, r"num_hidden_layers is 4; it must be .*L_cycles \+ 1\), 24"),
    ("hrm_text", {"num_key_value_heads": 2}, "num_key_value_heads is 2; it must be num_attention_heads, 4, or null"),
    ("modernbert-decoder", {"local_attention": 1}, "local_attention is 1; it must be an integer of at least 2"),
    ("modernbert-decoder", {"sliding_window": 7}, "sliding_window is 7; it must be 64 or null for this model_type"),
    ("granite", {"logits_scaling": 0}, "logits_scaling is 0; it must be a number above 0"),
    ("granite_swa", {"layer_rope_theta": [1.0]}, "layer_rope_theta has 1 items; it must be a list of 4 items"),
    ("cohere2", {"layer_switch": 7}, "layer_switch is 7; it must be 2 or null for this model_type"),
    ("exaone4", {"sliding_window_pattern": "LXG"}, "sliding_window_pattern is 'LXG'; it must be .* letters L"),
    ("apertus1p5_text", {"output_vocab_size": 97}, "output_vocab_size is 97; it must be at most vocab_size, 96"),
    ("hunyuan_v1_dense", {"num_experts": 8}, "num_experts is 8; it must be 1 or null for this model_type"),
]


@pytest.mark.parametrize(("model_type", "changes", "message"), BAD)
def test_value_that_is_not_modelled_is_refused(model_type: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=rf"^config\.json: {message}"):
        read(small(model_type, **changes))


def test_letters_of_a_window_pattern_mean_local_and_global() -> None:
    """EXAONE 4's released configs say LLLG where the library says 4."""
    letters, number = ({"sliding_window": 3, "sliding_window_pattern": pattern} for pattern in ("LG", 2))
    base = {"model_type": "exaone4", **SMALL}
    assert read({**base, **letters}).segments == read({**base, **number}).segments
