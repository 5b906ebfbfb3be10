"""Keys that published configs carry beside the architecture: let through where they change nothing, else refused."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.records import replace
from assay.sources.harmless import is_harmless, is_off, restates
from assay.spec import Segment

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 50,
    "rope_theta": 1000000,
}
GPT2: dict[str, Any] = {"model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 2, "vocab_size": 50}

SMALL_LATENT: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 32,
    "intermediate_size": 48,
    "moe_intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "first_k_dense_replace": 1,
    "q_lora_rank": 8,
    "kv_lora_rank": 8,
    "vocab_size": 50,
    "n_group": 1,
    "topk_group": 1,
    "num_experts_per_tok": 2,
}

# what trainers, tokenizers, engines and older releases leave in published files
LEFT = {
    "a private attribute": {"_num_labels": 3},
    "of older releases": {"n_special": 0, "predict_special_tokens": True, "keys_to_ignore_at_inference": ["past"]},
    "a frozen part": {"freeze_backbone": False, "freeze_mm_mlp_adapter": True},
    "a tokenizer's": {"eod_id": 7, "tokenizer_padding_side": "left", "im_end_id": 3},
    "a trainer's": {"neftune_noise_alpha": 5, "multi_token_pred_lambda": 0.3, "mtp_loss_scaling_factor": 0.1},
    "an engine's": {"use_flash_rotary": True, "fused_mlp": False, "kv_cache_dtype": "fp8"},
    "a model card's": {"name": "x", "language": ["en"], "tags": ["a"], "quantized_by": "y", "base_model": "z"},
    "a run's": {"learning_rate": 1e-4, "per_device_train_batch_size": 8, "warmup_steps": 10},
    "a cross-encoder's": {
        "sbert_ce_default_activation_function": "torch.nn.Identity",
        "sentence_transformers": {"x": 1},
    },
    "how far positions were stretched": {"rope_condense_ratio": 8, "original_max_position_embeddings": 4096},
    "a switch that is off": {"use_mla": False, "use_cla": False, "class_num": 0, "block_list": [], "extra": ""},
    "a factor of 1": {"rotary_scaling_factor": 1.0, "layernorm_mlp_beta": 1.0, "embedding_multiplier": 1},
    "other names that agree": {"n_layer": 2, "num_heads": 4, "num_query_groups": 2, "kv_channels": 8, "theta": 1e6},
    "an activation with its gate": {"activation": "swiglu"},
    "no biases": {"use_bias": False, "qkv_bias": False, "mlp_fc1_bias": False},
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
def test_what_is_left_in_a_file_changes_nothing(left: dict[str, Any]) -> None:
    plain, full = assay.load(LLAMA), assay.load({**LLAMA, **left})
    assert full.segments == plain.segments
    assert assay.count(full, tokens=5) == assay.count(plain, tokens=5)
    assert full.notes == plain.notes
    assert set(full.ignored) >= {key for key in left if key not in ("use_bias", "qkv_bias")} - {"embedding_multiplier"}


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        (LLAMA, "n_layer", 3),  # another name that does not agree
        (LLAMA, "num_heads", 0),
        (LLAMA, "activation", "geglu"),
        (LLAMA, "use_mla", True),
        (LLAMA, "key_multiplier", 0.5),
        (LLAMA, "residual_alpha", 0),  # a factor of 0 is no factor of 1
        (LLAMA, "parallel_attn", True),
        (LLAMA, "use_parallel_residual", 1),
        (GPT2, "use_bias", False),  # the model has biases
        (GPT2, "learned_positions", False),
        (GPT2, "norm_affine", False),
        (LLAMA, "rotary", False),
        (LLAMA, "num_extra_layers", 2),
        (LLAMA, "wings", "two"),
    ],
)
def test_what_may_change_the_model_is_refused(config: dict[str, Any], key: str, value: Any) -> None:
    with pytest.raises(assay.SourceError, match=rf"{key} is .*: not known for (llama|gpt2).*--allow {key}"):
        assay.load({**config, key: value})


OFF: tuple[Any, ...] = (False, 0, 0.0, "", [], {})


def test_a_switch_that_is_off() -> None:
    assert all(is_off("use_mla", v) for v in OFF)
    assert not any(is_off("use_mla", v) for v in (True, 1, "none", [0], {"a": 0}))
    assert not any(
        is_off(key, False) for key in ("tie_weights", "attention_bias", "is_causal", "qk_norm", "hidden_size")
    )
    assert is_off("attention_multiplier", 1)
    assert is_off("attention_multiplier", False)
    assert not any(is_off("attention_multiplier", v) for v in (True, 0, 2, "1"))


def test_a_name_that_says_the_same_again() -> None:
    assert restates("n_head", 4, {"num_attention_heads": 4})
    assert restates("text_config.rotary_pct", 1, {"partial_rotary_factor": 1.0})
    assert not restates("n_head", 4, {"num_attention_heads": 8})
    assert not restates("n_head", True, {"num_attention_heads": 1})
    assert not restates("n_head", 4, {"num_hidden_layers": 4})
    assert not restates("depth", 4, {"num_hidden_layers": 4})


def test_an_inert_key_has_its_own_values() -> None:
    assert is_harmless("use_mtp", False)
    assert is_harmless("use_mtp", None)
    assert not is_harmless("use_mtp", 0)
    assert not is_harmless("use_mtp", True)


def test_an_older_name_stands_for_a_key_whose_own_value_differs() -> None:
    small = SMALL_LATENT
    named = assay.count(assay.load({**small, "n_routed_experts": 8}), tokens=1)
    assert assay.count(assay.load({**small, "num_local_experts": 8}), tokens=1) == named
    with pytest.raises(assay.SourceError, match=r"num_local_experts is 8 and n_routed_experts is 4; .* must agree"):
        assay.load({**small, "num_local_experts": 8, "n_routed_experts": 4})


def test_a_table_that_mlx_writes_twice() -> None:
    table = {"group_size": 64, "bits": 4}
    for held in ({"quantization": table, "quantization_config": table}, {"quantization": table}):
        model = assay.load({**LLAMA, **held})
        assert assay.count(model, tokens=1).weight_bytes is None
        assert model.scheme is not None
        assert model.scheme.unknown == "no quant_method is named, as in files of MLX"
    other = {"quantization": {"group_size": 32, "bits": 4}, "quantization_config": table}
    with pytest.raises(assay.SourceError, match=r"quantization is .*: not known for llama"):
        assay.load({**LLAMA, **other})


def test_a_class_that_several_types_share() -> None:
    named = assay.load({**{k: v for k, v in LLAMA.items() if k != "model_type"}, "architectures": ["LlamaForCausalLM"]})
    assert (named.family, named.segments) == ("llama", assay.load(LLAMA).segments)


def test_what_is_left_in_a_file_with_a_tower() -> None:
    text = {k: v for k, v in LLAMA.items() if k != "rope_theta"}
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "image_size": 28,
        "patch_size": 14,
        "projection_dim": 16,
    }
    llava: dict[str, Any] = {"model_type": "llava", "text_config": text, "vision_config": vision}
    plain = assay.load(llava)
    full = assay.load(
        {
            **llava,
            "vocab_size": 99,  # nobody reads it: the text model has its own
            "text_config": {**text, "is_composition": True, "n_layer": 2, "transformers.js_config": {"dtype": "q4"}},
            "vision_config": {**vision, "n_head": 4, "use_mla": False},
        }
    )
    assert full.segments == plain.segments
    for inner, key in (("text_config", "n_layer"), ("vision_config", "n_head")):
        with pytest.raises(assay.SourceError, match=rf"{inner}\.{key} is 7: not known for llava"):
            assay.load({**llava, inner: {**llava[inner], key: 7}})


# keys of a family's own files that no size follows from
OWN: dict[str, dict[str, Any]] = {
    "switch_transformers": {"capacity_factor": 1.25, "min_tokens_per_group": 4, "add_router_probs": False},
    "xlm": {"same_enc_dec": True, "share_inout_emb": True, "is_encoder": True},
    "gemma3n_text": {"query_pre_attn_scalar": 256},
    "convbert": {"linear_groups": 1},
    "opt": {"output_projection": True, "learned_embeddings": True},
    "tapas": {"type_vocab_size": [3, 256, 256, 2, 256, 256, 10]},
}


def blocks(config: dict[str, Any]) -> list[Segment]:
    """What a config describes, whatever its keys are called."""
    return [replace(one, block=replace(one.block, origins={})) for one in assay.load(config).segments]


@pytest.mark.parametrize("model_type", OWN)
def test_keys_of_a_familys_own_files(model_type: str) -> None:
    assert blocks({"model_type": model_type, **OWN[model_type]}) == blocks({"model_type": model_type})


def test_groups_of_another_layer_are_not_left_out() -> None:
    with pytest.raises(assay.SourceError, match=r"linear_groups is 2; it must be 1 or null for this model_type"):
        assay.load({"model_type": "convbert", "linear_groups": 2})


def test_a_list_under_two_names_agrees() -> None:
    rows = [3, 7, 8, 2, 9, 11, 10]
    older = {"model_type": "tapas", "type_vocab_size": rows}
    assert blocks(older) == blocks({"model_type": "tapas", "type_vocab_sizes": rows})
    with pytest.raises(
        assay.SourceError, match=r"type_vocab_size is .* and type_vocab_sizes is .*; they name one thing"
    ):
        assay.load({"model_type": "tapas", "type_vocab_sizes": rows, "type_vocab_size": rows[::-1]})


def test_t5_under_the_name_of_its_first_files() -> None:
    old, new = (
        assay.load({"model_type": "t5", "architectures": [f"T5{end}"]})
        for end in ("WithLMHeadModel", "ForConditionalGeneration")
    )
    assert (old.cls, old.segments, old.notes) == (new.cls, new.segments, ())
