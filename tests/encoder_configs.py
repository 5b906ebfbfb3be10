"""Small configs of encoders, every option turned, and their classes."""

from __future__ import annotations

from typing import Any

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


BLOCKS = {"vocab_size": 97, "d_model": 32, "n_head": 4, "d_head": 6, "d_inner": 40, "block_sizes": [2, 2, 2]}

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


def read(config: dict[str, Any], cls: str | None = None) -> Model:
    """Our reading of a config."""
    return read_config(config, "config", "model", cls=cls)
