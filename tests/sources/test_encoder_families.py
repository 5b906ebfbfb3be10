"""Encoders against the public implementation: every tensor, the total, FLOPs; heads of every class; what masks let
through, by brute force.
"""

from __future__ import annotations

from typing import Any

import pytest
from library import built, check_against_library, flops_of, needs_library, runnable, their_flops

from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config
from assay.spec import Model

SMALL = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}

DISTIL = {
    "vocab_size": 96,
    "dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
}

RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}

GROUPS = {"embedding_size": 32, "q_groups": 2, "k_groups": 1, "v_groups": 8, "post_attention_groups": 2}
MOBILE = {"embedding_size": 16, "intra_bottleneck_size": 8}
NARROW = {"use_bottleneck_attention": True, "key_query_shared_bottleneck": False}

ENTITIES = {"entity_vocab_size": 50, "entity_emb_size": 16}

PROTEIN = {"position_embedding_type": "rotary", "pad_token_id": 1, "mask_token_id": 32, "token_dropout": True}

MASKED, SEQUENCE = "AutoModelForMaskedLM", "AutoModelForSequenceClassification"
TOKEN = "AutoModelForTokenClassification"
QUESTION, PRETRAINING = "AutoModelForQuestionAnswering", "AutoModelForPreTraining"
CHOICE, NEXT = "AutoModelForMultipleChoice", "AutoModelForNextSentencePrediction"

# the library's own default configs, of the class that is read where none is named
DEFAULTS = [
    *("bert", "roberta", "xlm-roberta", "camembert", "data2vec-text", "distilbert", "electra", "albert", "mpnet"),
    *("rembert", "roc_bert", "ibert", "modernbert", "eurobert", "esmc", "nomic_bert", "gte", "jina_embeddings_v3"),
    *("deberta", "deberta-v2", "xlm-roberta-xl", "roberta-prelayernorm", "megatron-bert", "ernie", "layoutlm"),
    *("tapas", "roformer", "yoso", "nystromformer", "squeezebert", "convbert", "fnet", "mobilebert"),
    "funnel",
    *("longformer", "big_bird", "mra", "luke", "ultrabert"),
]

BLOCKS = {"vocab_size": 97, "d_model": 32, "n_head": 4, "d_head": 6, "d_inner": 40, "block_sizes": [2, 2, 2]}

# one key at a time, another value than the default's
SPELLED = {"shape_vocab_size": 21, "shape_embed_dim": 12, "pronunciation_vocab_size": 17, "pronunciation_embed_dim": 10}
VARIED: list[dict[str, Any]] = [
    {"model_type": "bert", **SMALL},
    {"model_type": "bert", **SMALL, "tie_word_embeddings": False},
    {"model_type": "bert", **SMALL, "hidden_act": "relu", "layer_norm_eps": 1e-5},
    {"model_type": "roberta", **SMALL},
    {"model_type": "roberta", **SMALL, "type_vocab_size": 1, "tie_word_embeddings": False},
    {"model_type": "xlm-roberta", **SMALL, "type_vocab_size": 1},
    {"model_type": "camembert", **SMALL},
    {"model_type": "data2vec-text", **SMALL},
    {"model_type": "distilbert", **DISTIL},
    {"model_type": "distilbert", **DISTIL, "tie_word_embeddings": False, "activation": "relu"},
    {"model_type": "distilbert", **DISTIL, "sinusoidal_pos_embds": True},
    {"model_type": "electra", **SMALL, "embedding_size": 16},
    {"model_type": "funnel", **BLOCKS},
    {"model_type": "funnel", **BLOCKS, "block_sizes": [2, 1, 3], "block_repeats": [1, 2, 3]},
    {"model_type": "funnel", **BLOCKS, "block_sizes": [1, 3], "block_repeats": [2, 2], "num_decoder_layers": 1},
    {"model_type": "funnel", **BLOCKS, "pool_q_only": False, "tie_word_embeddings": False, "hidden_act": "relu"},
    {"model_type": "ibert", **SMALL},
    {"model_type": "ibert", **SMALL, "type_vocab_size": 1, "tie_word_embeddings": False},
    {"model_type": "roc_bert", **SMALL, **SPELLED},
    {"model_type": "roc_bert", **SMALL, **SPELLED, "tie_word_embeddings": False},
    {"model_type": "electra", **SMALL, "embedding_size": 32, "type_vocab_size": 3},
    {"model_type": "electra", **SMALL, "embedding_size": 16, "tie_word_embeddings": False},
    {"model_type": "albert", **SMALL, "embedding_size": 16},
    {"model_type": "albert", **SMALL, "embedding_size": 32, "inner_group_num": 2},
    {"model_type": "albert", **SMALL, "embedding_size": 16, "num_hidden_layers": 7, "num_hidden_groups": 3},
    {"model_type": "albert", **SMALL, "embedding_size": 16, "tie_word_embeddings": False},
    {"model_type": "mpnet", **SMALL},
    {"model_type": "mpnet", **SMALL, "relative_attention_num_buckets": 40, "tie_word_embeddings": False},
    {"model_type": "rembert", **SMALL, "input_embedding_size": 16, "output_embedding_size": 40},
    {"model_type": "rembert", **SMALL, "input_embedding_size": 32, "output_embedding_size": 32},
    {"model_type": "modernbert", **SMALL, "pad_token_id": 0},
    {"model_type": "modernbert", **SMALL, "pad_token_id": 0, "global_attn_every_n_layers": 2, "local_attention": 6},
    {"model_type": "modernbert", **SMALL, "pad_token_id": 0, "attention_bias": True, "mlp_bias": True},
    {"model_type": "modernbert", **SMALL, "pad_token_id": 0, "norm_bias": True, "classifier_bias": True},
    {"model_type": "modernbert", **SMALL, "pad_token_id": 0, "decoder_bias": False, "tie_word_embeddings": False},
    {"model_type": "modernbert", **SMALL, "pad_token_id": 0, "layer_types": ["sliding_attention"] * 3},
    {"model_type": "eurobert", **SMALL, "pad_token_id": 0},
    {"model_type": "eurobert", **SMALL, "pad_token_id": 0, "num_key_value_heads": 2, "head_dim": 16},
    {"model_type": "eurobert", **SMALL, "pad_token_id": 0, "mlp_bias": True, "attention_bias": True},
    {"model_type": "eurobert", **SMALL, "pad_token_id": 0, "tie_word_embeddings": True},
    {"model_type": "esmc", **SMALL, "pad_token_id": 0, "mask_token_id": 1},
    {"model_type": "esmc", **SMALL, "pad_token_id": 0, "attention_bias": True, "mlp_bias": True},
    {"model_type": "nomic_bert", **SMALL, "head_dim": 16},
    {"model_type": "gte", **SMALL},
    {"model_type": "gte", **SMALL, "type_vocab_size": 0, "tie_word_embeddings": False},
    {"model_type": "jina_embeddings_v3", **SMALL, "tie_word_embeddings": False, "hidden_act": "relu"},
    {"model_type": "deberta", **SMALL, "type_vocab_size": 2, "tie_word_embeddings": False},
    {"model_type": "deberta", **SMALL, **RELATIVE, "max_relative_positions": 6},
    {"model_type": "deberta", **SMALL, **RELATIVE, "pos_att_type": "c2p", "position_biased_input": False},
    {"model_type": "deberta", **SMALL, **RELATIVE, "pos_att_type": ["p2c"], "embedding_size": 16},
    {"model_type": "deberta-v2", **SMALL},
    {"model_type": "deberta-v2", **SMALL, "legacy": False},
    {"model_type": "deberta-v2", **SMALL, "share_att_key": True},
    {"model_type": "deberta-v2", **SMALL, **RELATIVE, "share_att_key": True, "position_buckets": 8},
    {"model_type": "deberta-v2", **SMALL, **RELATIVE, "max_relative_positions": 6, "norm_rel_ebd": "layer_norm"},
    {"model_type": "deberta-v2", **SMALL, **RELATIVE, "pos_att_type": ["p2c"], "share_att_key": True},
    {"model_type": "deberta-v2", **SMALL, **RELATIVE, "pos_att_type": ["c2p"], "position_biased_input": False},
    {"model_type": "deberta-v2", **SMALL, **RELATIVE, "conv_kernel_size": 3, "conv_act": "gelu"},
    {"model_type": "xlm-roberta-xl", **SMALL, "tie_word_embeddings": False},
    {"model_type": "roberta-prelayernorm", **SMALL, "tie_word_embeddings": False},
    {"model_type": "megatron-bert", **SMALL, "type_vocab_size": 3, "tie_word_embeddings": False},
    {"model_type": "ernie", **SMALL},
    {"model_type": "ernie", **SMALL, "use_task_id": True, "task_type_vocab_size": 5},
    {"model_type": "layoutlm", **SMALL, "max_2d_position_embeddings": 60},
    {"model_type": "tapas", **SMALL, "type_vocab_sizes": [3, 7, 8, 2, 9, 11, 10]},
    {"model_type": "roformer", **SMALL, "embedding_size": 16},
    {"model_type": "roformer", **SMALL, "rotary_value": True, "tie_word_embeddings": False},
    {"model_type": "yoso", **SMALL},
    {"model_type": "nystromformer", **SMALL, "num_landmarks": 11, "segment_means_seq_len": 11},
    {"model_type": "nystromformer", **SMALL, "num_landmarks": 11, "segment_means_seq_len": 11, "conv_kernel_size": 5},
    {"model_type": "squeezebert", **SMALL, "embedding_size": 32},
    {"model_type": "squeezebert", **SMALL, **GROUPS, "output_groups": 2, "tie_word_embeddings": False},
    {"model_type": "convbert", **SMALL, "embedding_size": 32},
    {"model_type": "convbert", **SMALL, "embedding_size": 16, "conv_kernel_size": 3, "head_ratio": 4},
    {"model_type": "convbert", **SMALL, "embedding_size": 32, "num_groups": 2, "head_ratio": 8},
    {"model_type": "fnet", **SMALL},
    {"model_type": "mobilebert", **SMALL, **MOBILE},
    {"model_type": "mobilebert", **SMALL, **MOBILE, "num_feedforward_networks": 2, "trigram_input": False},
    {"model_type": "mobilebert", **SMALL, **MOBILE, "normalization_type": "layer_norm", "tie_word_embeddings": False},
    {"model_type": "mobilebert", **SMALL, **MOBILE, **NARROW},
    {"model_type": "mobilebert", **SMALL, **MOBILE, "use_bottleneck": False, "num_feedforward_networks": 1},
    {"model_type": "esm", **SMALL, **PROTEIN},
    {"model_type": "esm", **SMALL, **PROTEIN, "position_embedding_type": "absolute", "emb_layer_norm_before": True},
    {"model_type": "esm", **SMALL, **PROTEIN, "tie_word_embeddings": False, "token_dropout": False},
    {"model_type": "big_bird", **SMALL},
    {"model_type": "big_bird", **SMALL, "attention_type": "original_full", "use_bias": False},
    {"model_type": "big_bird", **SMALL, "rescale_embeddings": True, "tie_word_embeddings": False},
    {"model_type": "luke", **SMALL, **ENTITIES},
    {"model_type": "luke", **SMALL, "entity_vocab_size": 50, "entity_emb_size": 32},
    {"model_type": "luke", **SMALL, **ENTITIES, "use_entity_aware_attention": False, "tie_word_embeddings": False},
    {"model_type": "ultrabert", **SMALL, "prediction_head_size": 12},
    {"model_type": "ultrabert", **SMALL, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True},
    {"model_type": "ultrabert", **SMALL, "attention_bias": True, "mlp_bias": True, "sliding_window": 2},
]

LATENTS = {
    "model_type": "perceiver",
    "vocab_size": 40,
    "d_model": 32,
    "d_latents": 48,
    "num_latents": 6,
    "num_self_attends_per_block": 3,
    "num_self_attention_heads": 4,
    "num_cross_attention_heads": 2,
    "max_position_embeddings": 16,
    "cross_attention_widening_factor": 2,
    "self_attention_widening_factor": 3,
}
VARIED += [
    LATENTS,
    {**LATENTS, "use_query_residual": False, "cross_attention_shape_for_attention": "q"},
    {**LATENTS, "qk_channels": 24, "v_channels": 48},
]

# the library pads these to whole windows or blocks, or needs more than tokens: what is stored is compared
STORED: list[dict[str, Any]] = [
    {"model_type": "longformer", **SMALL, "attention_window": 4},
    {"model_type": "longformer", **SMALL, "attention_window": [2, 4, 8], "tie_word_embeddings": False},
    {"model_type": "mra", **SMALL},
    {"model_type": "mra", **SMALL, "type_vocab_size": 3, "tie_word_embeddings": False},
]

_BERT = {
    "Model": "AutoModel",
    "ForSequenceClassification": SEQUENCE,
    "ForTokenClassification": TOKEN,
    "ForQuestionAnswering": QUESTION,
    "ForMultipleChoice": CHOICE,
    "ForNextSentencePrediction": NEXT,
    "ForPreTraining": PRETRAINING,
}
_ALONE = ("ForNextSentencePrediction", "ForPreTraining")
_ROBERTA = {suffix: auto for suffix, auto in _BERT.items() if suffix not in _ALONE}
_OWN = {k: v for k, v in _ROBERTA.items() if v != CHOICE}
# (model_type, what its classes' names begin with, endings and the factory of each)
CLASSES: list[tuple[str, str, dict[str, str]]] = [
    ("bert", "Bert", _BERT),
    ("roberta", "Roberta", _ROBERTA),
    ("xlm-roberta", "XLMRoberta", _ROBERTA),
    ("camembert", "Camembert", _ROBERTA),
    ("data2vec-text", "Data2VecText", _ROBERTA),
    ("distilbert", "DistilBert", _ROBERTA),
    ("electra", "Electra", {k: v for k, v in _BERT.items() if v not in (CHOICE, NEXT)}),
    ("albert", "Albert", {k: v for k, v in _BERT.items() if v != NEXT}),
    ("mpnet", "MPNet", _ROBERTA),
    ("ibert", "IBert", _ROBERTA),
    ("roc_bert", "RoCBert", {**{k: v for k, v in _BERT.items() if v != NEXT}, "ForCausalLM": "AutoModelForCausalLM"}),
    ("rembert", "RemBert", _ROBERTA),
    ("modernbert", "ModernBert", _ROBERTA),
    ("eurobert", "EuroBert", {k: v for k, v in _ROBERTA.items() if v not in (CHOICE, QUESTION)}),
    ("esmc", "Esmc", {"Model": "AutoModel", "ForSequenceClassification": SEQUENCE}),
    ("nomic_bert", "NomicBert", {k: v for k, v in _ROBERTA.items() if v not in (CHOICE, QUESTION)}),
    ("gte", "Gte", {k: v for k, v in _ROBERTA.items() if v not in (CHOICE, QUESTION)}),
    ("jina_embeddings_v3", "JinaEmbeddingsV3", _OWN),
    ("deberta", "Deberta", _OWN),
    ("deberta-v2", "DebertaV2", _ROBERTA),
    ("xlm-roberta-xl", "XLMRobertaXL", _ROBERTA),
    ("roberta-prelayernorm", "RobertaPreLayerNorm", _ROBERTA),
    ("megatron-bert", "MegatronBert", _BERT),
    ("ernie", "Ernie", _BERT),
    ("bert-generation", "BertGeneration", {"Encoder": "AutoModel"}),
    ("layoutlm", "LayoutLM", {**_OWN, "ForQuestionAnswering": "AutoModelForDocumentQuestionAnswering"}),
    ("tapas", "Tapas", {"Model": "AutoModel", "ForSequenceClassification": SEQUENCE}),
    ("dpr", "DPR", {"QuestionEncoder": "AutoModel"}),
    ("roformer", "RoFormer", _OWN),
    ("yoso", "Yoso", _OWN),
    ("nystromformer", "Nystromformer", _OWN),
    ("squeezebert", "SqueezeBert", _ROBERTA),
    ("convbert", "ConvBert", _OWN),
    ("fnet", "FNet", _BERT),
    ("esm", "Esm", {k: _BERT[k] for k in ("Model", "ForSequenceClassification", "ForTokenClassification")}),
    ("longformer", "Longformer", _ROBERTA),
    ("funnel", "Funnel", {k: v for k, v in _BERT.items() if v != NEXT}),
    ("funnel", "Funnel", {"BaseModel": "FunnelBaseModel"}),
    ("big_bird", "BigBird", {k: v for k, v in _BERT.items() if v not in (QUESTION, CHOICE, NEXT)}),
    ("mra", "Mra", _OWN),
    ("luke", "Luke", {k: _BERT[k] for k in ("Model", "ForSequenceClassification", "ForTokenClassification")}),
    ("ultrabert", "Ultrabert", {k: _BERT[k] for k in ("Model", "ForSequenceClassification", "ForTokenClassification")}),
    ("mobilebert", "MobileBert", _BERT),
]
# keys that a type has beside those of SMALL, or in other words
OWN: dict[str, dict[str, Any]] = {
    "distilbert": DISTIL,
    "electra": {**SMALL, "embedding_size": 16},
    "funnel": BLOCKS,
    "roc_bert": {**SMALL, **SPELLED},
    "albert": {**SMALL, "embedding_size": 16},
    "rembert": {**SMALL, "input_embedding_size": 16},
    "modernbert": {**SMALL, "pad_token_id": 0},
    "eurobert": {**SMALL, "pad_token_id": 0},
    "squeezebert": {**SMALL, "embedding_size": 32},
    "convbert": {**SMALL, "embedding_size": 16},
    "mobilebert": {**SMALL, **MOBILE},
    "luke": {**SMALL, **ENTITIES},
    "esm": {**SMALL, **PROTEIN},
    "nystromformer": {**SMALL, "num_landmarks": 11, "segment_means_seq_len": 11},
}
# classes whose input is not a sequence of tokens a row: their FLOPs are not run
SHAPED = (CHOICE,)
PADDED = ("longformer", "mra")


def small(model_type: str, **more: Any) -> dict[str, Any]:
    """A small config of a type."""
    return {"model_type": model_type, **OWN.get(model_type, SMALL), **more}


def named(config: dict[str, Any]) -> str:
    """A config's name among the tests: its type and what it varies."""
    return "-".join([config["model_type"], *(k for k in config if k not in SMALL and k != "model_type")])


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_defaults_equal_the_library(model_type: str) -> None:
    check_against_library({"model_type": model_type}, auto=MASKED)


@needs_library
@pytest.mark.parametrize("config", VARIED, ids=named)
def test_varied_configs_equal_the_library(config: dict[str, Any]) -> None:
    check_against_library(config, tokens=11, auto=MASKED)


@needs_library
@pytest.mark.parametrize("config", STORED, ids=named)
def test_stored_tensors_equal_the_library(config: dict[str, Any]) -> None:
    check_against_library(config, auto=MASKED)


@needs_library
@pytest.mark.parametrize("config", [small("esm"), small("esm", position_embedding_type="absolute"), small("mra")])
def test_buffers_are_those_that_checkpoints_store(config: dict[str, Any]) -> None:
    theirs = built(config, MASKED)
    own = {name for name, _ in theirs.named_parameters(remove_duplicate=False)}
    held = sum(tensor.numel() for name, tensor in theirs.state_dict().items() if name not in own)
    assert count(read_config(config, "config", "model"), tokens=1).parameters.buffers == held


@needs_library
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"languages": ["de_DE", "en_XX", "th_TH"]},
        {"languages": ["de_DE", "en_XX"], "pre_norm": True, "adapter_layer_norm": True, "ln_before_adapter": False},
        {"adapter_reuse_layer_norm": False, "adapter_reduction_factor": 4, "tie_word_embeddings": False},
    ],
)
def test_adapters_of_each_language(more: dict[str, Any]) -> None:
    """The library names an adapter by its language, we by its place: totals are compared, and FLOPs of one language."""
    config = {"model_type": "xmod", **SMALL, "default_language": "en_XX", **more}
    read = read_config(config, "config", "model")
    theirs = built(config, MASKED)
    counted = count(read, tokens=11)
    assert counted.parameters.total == sum(p.numel() for p in theirs.parameters())
    assert counted.flops.total == their_flops(config, 11, MASKED)


@needs_library
@pytest.mark.parametrize(
    ("model_type", "cls", "auto"),
    [(kind, stem + suffix, auto) for kind, stem, endings in CLASSES for suffix, auto in endings.items()],
)
def test_classes_equal_the_library(model_type: str, cls: str, auto: str) -> None:
    labelled = {"id2label": {str(i): f"l{i}" for i in range(3)}} if auto in (SEQUENCE, TOKEN) else {}
    config = small(model_type, architectures=[cls], **labelled)
    check_against_library(config, tokens=0 if auto in SHAPED or model_type in PADDED else 11, auto=auto)


def read(config: dict[str, Any], cls: str | None = None) -> Model:
    """Our reading of a config."""
    return read_config(config, "config", "model", cls=cls)


@needs_library
@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "bert", **SMALL},
        {"model_type": "deberta-v2", **SMALL, **RELATIVE, "share_att_key": True, "position_buckets": 8},
        {"model_type": "albert", **SMALL, "embedding_size": 16},
        {"model_type": "convbert", **SMALL, "embedding_size": 16},
        {"model_type": "mobilebert", **SMALL, **MOBILE},
    ],
    ids=named,
)
def test_several_sequences(config: dict[str, Any]) -> None:
    """Three sequences at once: relative positions are projected once whatever the batch."""
    import torch

    theirs = flops_of(runnable(config, MASKED), input_ids=torch.zeros((3, 11), dtype=torch.long))
    assert count(read(config), batch=3, tokens=11).flops.total == theirs


def masked_difference(config: dict[str, Any], tokens: int) -> int:
    """FLOPs of attention that a mask leaves out."""
    flops = count(read(config), batch=2, tokens=tokens).flops
    total, visible = flops.total, flops.visible_total
    assert isinstance(total, int)
    assert isinstance(visible, int)
    return total - visible


@pytest.mark.parametrize("tokens", [1, 3, 4, 7, 8, 30, 31])
def test_windows_to_both_sides(tokens: int) -> None:
    """Pairs of tokens further apart than half the window, one by one: two of three layers have one."""
    config = {"model_type": "modernbert", **SMALL, "local_attention": 6, "pad_token_id": 0}
    hidden = sum(abs(i - j) > 3 for i in range(tokens) for j in range(tokens))
    assert masked_difference(config, tokens) == 2 * 2 * (2 * 2 * 32) * hidden


@pytest.mark.parametrize("tokens", [1, 5, 9, 30])
def test_windows_of_each_layer(tokens: int) -> None:
    config = {"model_type": "longformer", **SMALL, "attention_window": [2, 4, 8]}
    hidden = sum(abs(i - j) > half for half in (1, 2, 4) for i in range(tokens) for j in range(tokens))
    assert masked_difference(config, tokens) == 2 * (2 * 2 * 32) * hidden


def test_longformer_by_hand() -> None:
    """d 32, f 48, V 96, n 10: four matrices, the MLP and all pairs in each of three layers; the head."""
    config = {"model_type": "longformer", **SMALL, "attention_window": 4}
    layer = 2 * 10 * (4 * 32 * 32 + 2 * 32 * 48) + 4 * 10 * 10 * 32
    assert count(read(config), tokens=10).flops.total == 3 * layer + 2 * 10 * (32 * 32 + 32 * 96)


@pytest.mark.parametrize("blocks", [3, 7, 8, 12])
def test_blocks_at_random(blocks: int) -> None:
    """BigBird's blocks of 2 tokens and 1 at random, block by block; 5 + 2 of them are too few for a pattern."""
    config = {"model_type": "big_bird", **SMALL, "block_size": 2, "num_random_blocks": 1}
    seen = []
    for i in range(blocks):
        if blocks <= 7 or i in (0, blocks - 1):
            seen.append(blocks)
        else:
            fixed = {0, blocks - 1, i - 1, i, i + 1}
            seen.append(len(fixed) + 1)
    hidden = (blocks * blocks - sum(seen)) * 4
    assert masked_difference(config, 2 * blocks) == 2 * 3 * (2 * 2 * 32) * hidden


def test_scores_of_positions_reach_as_far_as_tokens() -> None:
    """DeBERTa's first version projects 2 n relative positions, at most twice the reach: here n 5 and 9, reach 6."""
    config = {"model_type": "deberta", **SMALL, **RELATIVE, "max_relative_positions": 6, "position_biased_input": False}
    plain = {"model_type": "deberta", **SMALL, "position_biased_input": False}
    for n, near in ((5, 10), (9, 12)):
        more = count(read(config), tokens=n).flops.total - count(read(plain), tokens=n).flops.total
        assert more == 3 * 2 * (2 * near * 32 * 32 + 2 * n * near * 32)


@pytest.mark.parametrize(
    ("model_type", "more", "rows"),
    [
        ("bert", {}, 40),
        ("roberta", {}, 38),  # pad_token_id 1: the first position is 2
        ("xlm-roberta", {"pad_token_id": 3}, 36),
        ("mpnet", {"pad_token_id": 7}, 38),  # whatever the padding is
        ("distilbert", {}, 40),
        ("nystromformer", {}, 40),
        ("yoso", {}, 40),
    ],
)
def test_position_tables_end(model_type: str, more: dict[str, Any], rows: int) -> None:
    model = read(small(model_type, **more))
    assert count(model).setting.tokens == rows
    with pytest.raises(SettingError, match=f"is {rows + 1}; model has a learned position table of {rows}"):
        count(model, tokens=rows + 1)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "modernbert", **SMALL},
        {"model_type": "roberta", **SMALL},
        {"model_type": "albert", **SMALL, "embedding_size": 16},
    ],
    ids=named,
)
def test_nothing_is_kept(config: dict[str, Any]) -> None:
    model = read(config)
    cache = count(model, tokens=9).cache
    assert (cache.bytes, cache.marginal_bytes_per_token, cache.fixed_bytes) == (0, 0, 0)
    with pytest.raises(SettingError, match="past is 5; model keeps nothing between passes, so it must be 0"):
        count(model, tokens=3, past=5)


def test_rotary_positions_have_no_end() -> None:
    assert count(read({"model_type": "modernbert", **SMALL}), tokens=1000).parameters.total > 0


def test_latents_read_tokens_once() -> None:
    """A token more costs a key, a value, scores and values of 6 latents; logits are of all 16 rows."""
    few, more = (count(read(LATENTS), tokens=n) for n in (9, 10))
    assert more.flops.total - few.flops.total == 2 * (2 * 32 * 32 + 2 * 6 * 32)
    assert few.flops.by_part["head"] == 2 * 16 * 32 * 40
    assert few.flops.visible_total == few.flops.total
    with pytest.raises(SettingError, match="position table of 16 rows"):
        count(read(LATENTS), tokens=17)
    with pytest.raises(SourceError, match=r"qk_channels is 24; it must be d_latents, 48"):
        read({**LATENTS, "qk_channels": 24})


def test_shared_layers_are_stored_once_and_run_each_time() -> None:
    """ALBERT, d 32, j 16, f 48, V 96: one layer stored, run three times."""
    made = count(read(small("albert")), tokens=10)
    stored = 4 * (32 * 32 + 32) + (2 * 32 * 48 + 48 + 32)
    assert made.parameters.by_part["attention"] + made.parameters.by_part["mlp"] == stored
    layer = 2 * 10 * (4 * 32 * 32 + 2 * 32 * 48) + 4 * 10 * 10 * 32
    assert made.flops.total == 3 * layer + 2 * 10 * (16 * 32 + 32 * 16 + 16 * 96)


def test_untied_head_is_no_embedding() -> None:
    tied, untied = (count(read(small("bert", tie_word_embeddings=kept)), tokens=1).parameters for kept in (True, False))
    assert tied.embedding == untied.embedding == (96 + 40 + 2) * 32
    assert untied.total - tied.total == 96 * 32 + 96  # the matrix, and a second bias that is stored beside it


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (small("bert", is_decoder=True), "config: is_decoder is true; it must be false or null"),
        (
            small("bert", position_embedding_type="relative_key"),
            "position_embedding_type is 'relative_key'; it",
        ),
        (small("bert", type_vocab_size=0), "type_vocab_size is 0; it must be an integer of at least 1"),
        (small("bert", num_attention_heads=5), "hidden_size is 32; it must be a multiple of num_attention_heads, 5"),
        (small("bert", hidden_act="mish"), "hidden_act is 'mish'; it must be one of"),
        (small("bert", wings=2), "wings is 2: not known for bert"),
        (small("roberta", max_position_embeddings=2), "max_position_embeddings is 2; it must be above 2, pad_token_id"),
        (small("albert", num_hidden_groups=9), "num_hidden_groups is 9; it must be at most num_hidden_layers, 3"),
        (small("deberta-v2", pos_att_type=["p2p"]), "pos_att_type is .* it must be null or a list of c2p and p2c"),
        (small("deberta-v2", conv_kernel_size=4), "conv_kernel_size is 4; it must be 0 or odd"),
        (small("deberta-v2", norm_rel_ebd="layer_norm"), "norm_rel_ebd asks for a norm of relative positions"),
        (small("deberta", talking_head=True), "talking_head is true; it must be false or null"),
        (small("longformer", attention_window=[2, 4]), "attention_window has 2 items; it must be a list of 3 items"),
        (small("longformer", attention_window=3), "attention_window is 3; it must be an even integer of at least 2"),
        (small("nystromformer", num_landmarks=4), "segment_means_seq_len is 11; it must be 4 or null"),
        (small("yoso", use_expectation=False), "use_expectation is false; it must be true or null"),
        (small("squeezebert", q_groups=3), "hidden_size is 32; it must be a multiple of q_groups, 3"),
        (small("convbert", conv_kernel_size=8), "conv_kernel_size is 8; it must be odd"),
        (
            small("mobilebert", use_bottleneck_attention=True),
            "key_query_shared_bottleneck is .* the opposite",
        ),
        (small("fnet", use_tpu_fourier_optimizations=True), "use_tpu_fourier_optimizations is true; it must be false"),
        (small("rembert", tie_word_embeddings=True), "tie_word_embeddings is true; it must be false"),
        (small("new", layer_norm_type="rms_norm"), "layer_norm_type is 'rms_norm'; it must be 'layer_norm' or null"),
        (
            small("bert", architectures=["BertLMHeadModel"]),
            "names BertLMHeadModel, which is not described",
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else None,
)
def test_refusals_name_key_and_value(config: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read(config)


def test_class_can_be_asked_for() -> None:
    config = small("bert", architectures=["BertForSequenceClassification"], id2label={"0": "a", "1": "b", "2": "c"})
    assert read(config).cls == "BertForSequenceClassification"
    masked = read(config, "masked")
    assert masked.cls == "BertForMaskedLM"
    assert read(config, "BertForMaskedLM").segments == masked.segments
    base = count(read(config, "base"), tokens=1).parameters
    assert count(read(config), tokens=1).parameters.total - base.total == 3 * 32 + 3
    with pytest.raises(SettingError, match="class is 'causal'; bert has masked \\(BertForMaskedLM\\), base"):
        read(config, "causal")


@needs_library
def test_whole_numbers_beside_the_weights() -> None:
    """I-BERT's buffers, name by name; on the meta device as well."""
    config = small("ibert")
    model = built(config, MASKED)
    weights = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    theirs = {name: tuple(kept.shape) for name, kept in model.state_dict().items() if name not in weights}
    made = [entry for entry in tensors(read_config(config, "config", "model")) if entry.buffer]
    ours = {entry.path.replace("{i}", str(i)): entry.shape for entry in made for i in entry.layers or (0,)}
    assert ours == theirs
    with pytest.raises(SourceError, match=r"config: quant_mode is true; it must be false or null"):
        read_config({**config, "quant_mode": True}, "config", "model")


@needs_library
@pytest.mark.parametrize("tokens", [5, 6, 7, 8, 9, 12, 17])
def test_a_funnel_over_any_length(tokens: int) -> None:
    """Half of an odd number is rounded up; the library runs no sequence of which a block leaves one or two."""
    config = {"model_type": "funnel", **BLOCKS}
    assert count(read(config), tokens=tokens).flops.total == their_flops(config, tokens, MASKED)


def test_a_funnel_that_is_not_described() -> None:
    for key, value in (("separate_cls", False), ("attention_type", "factorized"), ("block_repeats", [1, 2])):
        with pytest.raises(SourceError, match=f"{key} (is|has)"):
            read({"model_type": "funnel", **BLOCKS, key: value})
