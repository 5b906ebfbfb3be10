"""Which class is read, what it ends in, and which type a config is of, against the public implementation's classes."""

from __future__ import annotations

from typing import Any

import pytest
from library import built, differences, needs_library, our_ledger, their_flops, their_ledger

import assay
from assay.sources.classes import family_of
from assay.sources.families import FAMILIES
from assay.sources.types import OTHER_KINDS, RENAMED

TODAY = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}
GPT = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "pad_token_id": 0}
SMALL: dict[str, dict[str, Any]] = {
    "llama": {**TODAY, "tie_word_embeddings": True},
    "qwen2": TODAY,
    "gemma2": {**TODAY, "head_dim": 8, "sliding_window": 16},
    "mixtral": {**TODAY, "num_local_experts": 4},
    "phi": TODAY,
    "gemma3_text": {**TODAY, "head_dim": 8, "sliding_window": 16},
    "ctrl": {
        "vocab_size": 100,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "dff": 48,
        "pad_token_id": 0,
    },
    "gpt2": GPT,
    "gpt_bigcode": GPT,
    "bloom": {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "falcon": {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "gpt_neox": {k: v for k, v in TODAY.items() if k != "num_key_value_heads"},
    "opt": {
        "vocab_size": 100,
        "hidden_size": 32,
        "ffn_dim": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "word_embed_proj_dim": 16,
        "do_layer_norm_before": False,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    },
}
AUTO = {
    "base": "AutoModel",
    "sequence-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
}
LACKS = {(model_type, "token-classification") for model_type in ("opt", "ctrl", "gemma3_text")}
HERE = [(model_type, role) for model_type in SMALL for role in AUTO if (model_type, role) not in LACKS]
LLAMA = {"model_type": "llama", **TODAY}


@needs_library
@pytest.mark.parametrize(("model_type", "role"), HERE)
def test_classes_equal_the_library(model_type: str, role: str) -> None:
    labels = {"id2label": {str(i): f"L{i}" for i in range(5)}, "label2id": {f"L{i}": i for i in range(5)}}
    config = {"model_type": model_type, **SMALL[model_type], **(labels if role != "base" else {})}
    ours, theirs = assay.load(config, cls=role), built(config, AUTO[role])
    assert not differences(our_ledger(ours), their_ledger(theirs))
    assert ours.cls == type(theirs).__name__
    assert assay.count(ours, tokens=4).parameters.total == sum(p.numel() for p in theirs.parameters())


@needs_library
@pytest.mark.parametrize("role", AUTO)
def test_flops_of_classes_equal_the_library(role: str) -> None:
    assert assay.count(assay.load(LLAMA, cls=role), tokens=8).flops.total == their_flops(LLAMA, 8, AUTO[role])


def test_the_ledgers_of_two_classes_differ() -> None:
    causal, base = (our_ledger(assay.load(LLAMA, cls=role)) for role in ("causal", "base"))
    assert differences(causal, base)[:2] == [
        "embed_tokens.weight: ours None, theirs ((100, 32), 1)",
        "layers.{i}.input_layernorm.weight: ours None, theirs ((32,), 2)",
    ]


@pytest.mark.parametrize(
    ("named", "cls", "labels"),
    [
        (None, "LlamaForCausalLM", 100),
        ([], "LlamaForCausalLM", 100),
        (["LlamaForCausalLM"], "LlamaForCausalLM", 100),
        (["LLaMAForCausalLM"], "LlamaForCausalLM", 100),
        (["LlamaModel"], "LlamaModel", None),
        (["LlamaForSequenceClassification"], "LlamaForSequenceClassification", 2),
        (["LlamaForTokenClassification"], "LlamaForTokenClassification", 2),
    ],
)
def test_architectures_name_the_class(named: list[str] | None, cls: str, labels: int | None) -> None:
    model = assay.load({**LLAMA, "architectures": named})
    assert (model.cls, model.notes) == (cls, ())
    last = model.segments[-1]
    assert last.block.sizes.get("l", last.block.sizes.get("V")) == labels


def test_a_class_that_is_no_name() -> None:
    for what in (LLAMA, "gpt-2"):
        with pytest.raises(assay.SettingError, match="class is 3; it must be the name of one, or None"):
            assay.load(what, cls=3)  # type: ignore[arg-type]


def test_labels() -> None:
    one = {**LLAMA, "architectures": ["LlamaForSequenceClassification"]}

    def head(**more: Any) -> Any:
        return assay.count(assay.load({**one, **more}), tokens=1).parameters.by_part["head"]

    assert [head(), head(num_labels=7), head(id2label={"0": "a"}, num_labels=7)] == [2 * 32, 7 * 32, 32]
    with pytest.raises(assay.SourceError, match=r"id2label is {}; it must be an object with at least one label"):
        head(id2label={})
    with pytest.raises(assay.SourceError, match="num_labels is 0; it must be an integer of at least 1"):
        head(num_labels=0)


def test_logits_of_the_last_position_alone() -> None:
    model = assay.load(LLAMA, cls="sequence-classification")
    counted = [assay.count(model, tokens=8, logits=which).flops.by_part["head"] for which in ("all", "last")]
    assert counted == [2 * 8 * 32 * 2, 2 * 32 * 2]


@pytest.mark.parametrize(("asked", "cls"), [
    ("base", "LlamaModel"),
    ("LlamaModel", "LlamaModel"),
    ("causal", "LlamaForCausalLM"),
    ("LlamaForCausalLM", "LlamaForCausalLM"),
    ("LlamaForTokenClassification", "LlamaForTokenClassification"),
])  # fmt: skip
def test_the_caller_names_the_class(asked: str, cls: str) -> None:
    model = assay.load({**LLAMA, "architectures": ["LlamaForQuestionAnswering"]}, cls=asked)
    assert (model.cls, model.notes) == (cls, ())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("masked", r"class is 'masked'; llama, which is decoder-only, has causal \(LlamaForCausalLM\), base"),
        ("seq2seq", "class is 'seq2seq'; llama, which is decoder-only, has causal"),
        ("MistralForCausalLM", r"class is 'MistralForCausalLM'; llama has causal \(LlamaForCausalLM\)"),
        ("LlamaForQuestionAnswering", "llama has causal"),
        ("", "class is ''; llama has causal"),
        ("Model", "class is 'Model'; llama has causal"),
    ],
)
def test_a_class_that_a_family_lacks(asked: str, said: str) -> None:
    with pytest.raises(assay.SettingError, match=said):
        assay.load(LLAMA, cls=asked)


@pytest.mark.parametrize(
    "named",
    ["LlamaForQuestionAnswering", "LlamaForCausalLMEagle3", "LlamaForRewardModel", "FooModel", "Foo", "", "Model"],
)
def test_a_class_that_is_not_described(named: str) -> None:
    with pytest.raises(
        assay.SourceError, match=rf"architectures names {named}, which is not described; of llama there is"
    ):
        assay.load({**LLAMA, "architectures": [named]})


@pytest.mark.parametrize(
    ("named", "cls"),
    [
        ("MistralForCausalLM", "LlamaForCausalLM"),
        ("FooForCausalLM", "LlamaForCausalLM"),
        ("MistralModel", "LlamaModel"),
    ],
)
def test_the_type_stands_above_a_class_of_another_family(named: str, cls: str) -> None:
    model = assay.load({**LLAMA, "architectures": [named]})
    assert (model.family, model.cls) == ("llama", cls)
    assert model.notes == (f"architectures names {named}, no class of llama: model_type is what counts",)
    assert assay.count(model, tokens=2) == assay.count(assay.load(LLAMA, cls=cls), tokens=2)


def test_a_missing_type_is_known_by_the_class() -> None:
    model = assay.load({**TODAY, "architectures": ["Qwen3ForCausalLM"]})
    assert model.family == "qwen3"
    assert model.notes == ("model_type is missing; Qwen3ForCausalLM of architectures is of qwen3",)
    for named, said in (
        (None, "model_type is missing; it must be one of those that "),
        (
            ["FooForCausalLM"],
            r"architectures, \['FooForCausalLM'\], is of no one known type; it must be one of those that ",
        ),
        (["ZzzForMaskedLM"], "is of no one known type"),
    ):
        with pytest.raises(assay.SourceError, match=said):
            assay.load({**TODAY, "architectures": named})


def test_a_class_that_types_share_names_the_one_called_so() -> None:
    shared: dict[str, set[str]] = {}
    for family in FAMILIES.values():
        shared.setdefault(family.cls, set()).add(family.model_type)
    several = {cls for cls, types in shared.items() if len(types) > 1}
    assert {cls: family_of(cls) for cls in several} == {
        "LlamaForCausalLM": "llama",
        "DeepseekV3ForCausalLM": "deepseek_v3",
        "Glm4MoeForCausalLM": "glm4_moe",
    }
    for cls, types in shared.items():
        assert family_of(cls) in types | {None}


@pytest.mark.parametrize(
    ("model_type", "said"),
    [
        ("reformer", "model_type is 'reformer', an encoder: not read so far"),
        ("speecht5", "model_type is 'speecht5', an encoder-decoder: not read so far"),
        ("rwkv6", "model_type is 'rwkv6', a recurrent or state-space model: not read so far"),
        ("convnext", "model_type is 'convnext', a vision model: not read so far"),
        ("blip", "model_type is 'blip', a text model with towers of other modalities: not read so far"),
        ("lama", "model_type is 'lama', which is not known; near it: llama"),
        ("LLAMA", "model_type is 'LLAMA', which is not known; near it: llama"),
        ("zzz", "model_type is 'zzz', which is not known; `assay families` lists those "),
    ],
)
def test_an_unknown_type(model_type: str, said: str) -> None:
    with pytest.raises(assay.SourceError, match=said):
        assay.load({"model_type": model_type})


def test_an_unknown_type_with_code_from_the_hub() -> None:
    mapped = {"model_type": "zzz", "auto_map": {"AutoModelForCausalLM": "modeling_zzz.ZzzForCausalLM"}}
    with pytest.raises(assay.SourceError, match="its auto_map needs code from the hub, which is never run"):
        assay.load(mapped)
    model = assay.load({**LLAMA, "auto_map": mapped["auto_map"]})
    assert "auto_map" in model.ignored


def test_the_tables_of_types_agree() -> None:
    assert all(len(kind.split()) > 1 for kind in OTHER_KINDS.values())
    assert not RENAMED.keys() & set(FAMILIES)
    assert {renamed.to for renamed in RENAMED.values()} <= set(FAMILIES)


@pytest.mark.parametrize(
    ("model_type", "config", "same"),
    [
        ("Yi", TODAY, {"model_type": "llama", **TODAY}),
        ("internlm", {**TODAY, "bias": True}, {"model_type": "llama", **TODAY, "attention_bias": True}),
        ("internlm", TODAY, {"model_type": "llama", **TODAY, "attention_bias": True}),
        ("gpt-sw3", GPT, {"model_type": "gpt2", **GPT}),
        (
            "stablelm_epoch",
            {**TODAY, "rope_pct": 0.5, "norm_eps": 1e-5},
            {"model_type": "stablelm", **TODAY, "partial_rotary_factor": 0.5},
        ),
        (
            "RefinedWebModel",
            {
                "vocab_size": 100,
                "hidden_size": 32,
                "n_layer": 2,
                "n_head": 4,
                "multi_query": True,
                "parallel_attn": True,
            },
            {"model_type": "falcon", **SMALL["falcon"], "multi_query": True, "parallel_attn": True},
        ),
        (
            "RefinedWeb",
            {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4, "n_head_kv": 2, "parallel_attn": True},
            {"model_type": "falcon", **SMALL["falcon"], "num_kv_heads": 2, "new_decoder_architecture": True},
        ),
    ],
)
def test_other_names_of_a_type(model_type: str, config: dict[str, Any], same: dict[str, Any]) -> None:
    renamed, plain = assay.load({"model_type": model_type, **config}), assay.load(same)
    assert assay.tensors(renamed) == assay.tensors(plain)
    assert assay.count(renamed, tokens=8) == assay.count(plain, tokens=8)
    assert renamed.notes == (f"model_type {model_type} is read as {renamed.family}, whose layers it has",)


def test_a_renamed_key_is_named_as_the_file_has_it() -> None:
    with pytest.raises(assay.SourceError, match="config: n_head is 0; it must be an integer of at least 1"):
        assay.load({"model_type": "RefinedWebModel", "hidden_size": 32, "n_head": 0})
