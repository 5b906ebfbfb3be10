"""What encoders have in common: BERT's keys, layer, names and classes (Devlin et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.blocks import Attention, Branch, Decoder, Layer, Mlp, Norm, Step
from assay.blocks.encoders import Encoder, MaskedHead, Pooler, Tables, Together
from assay.sources.config import Config
from assay.sources.families.common import (
    BASE,
    MASKED,
    PRETRAINING,
    QUESTION,
    SEQUENCE,
    TOKEN,
    Class,
    Names,
    activation,
    depth,
    family,
    label,
    labels,
    layernorm,
    under,
)

CHOICE, NEXT = "multiple-choice", "next-sentence"

# BERT's own values; a family names those that differ
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "tie_word_embeddings": True,
}

# a pooler that was never built so, and what other code wrote beside
HARMLESS = (
    *("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"),
    *("directionality", "output_past", "summary_last_dropout", "use_cache", "classifier_dropout"),
)

LAYER = {
    "Wq": "attention.self.query.weight",
    "Wk": "attention.self.key.weight",
    "Wv": "attention.self.value.weight",
    "Wo": "attention.output.dense.weight",
    "Gt0": "attention.output.LayerNorm.weight",
    "Wu": "intermediate.dense.weight",
    "Wd": "output.dense.weight",
    "Gt1": "output.LayerNorm.weight",
}

TABLES = {
    "E": "word_embeddings.weight",
    "E_position": "position_embeddings.weight",
    "E_type": "token_type_embeddings.weight",
    "Ge": "LayerNorm.weight",
}


def stored(prefix: str, layer: Mapping[str, str] = LAYER, layers: str = "encoder.layer.{i}.") -> dict[str, str]:
    """The tables and the layers of a model whose base is called `prefix`."""
    return under(prefix + "embeddings.", TABLES) | under(prefix + layers, layer)


def head(path: str, dense: str = "transform.dense", norm: str = "transform.LayerNorm") -> dict[str, str]:
    """A masked-language model's head below a path: BERT's, or RoBERTa's with other names."""
    return {
        "Wdense": f"{path}{dense}.weight",
        "Ghead": f"{path}{norm}.weight",
        "Wout": f"{path}decoder.weight",
        "Bout": f"{path}bias",
        "Bspare": f"{path}decoder.bias",
    }


BERT_HEAD = head("cls.predictions.")
ROBERTA_HEAD = head("lm_head.", "dense", "layer_norm")
SCORE, ANSWER = {"Wscore": "classifier.weight"}, {"Wscore": "qa_outputs.weight"}
OWN_CLASSIFIER = {"Wpool": "classifier.dense.weight", "Wscore": "classifier.out_proj.weight"}


def encoder(
    *model_types: str,
    stem: str,
    names: Names,
    classes: Sequence[Class],
    harmless: Sequence[str] = (),
    also: Sequence[str] = (),
) -> Callable[[Callable[[Config], Encoder]], Callable[[Config], Encoder]]:
    """Register a reader of encoders, the first of whose classes is read where the config names none."""
    keys = (*HARMLESS, *harmless)

    def add(read: Callable[[Config], Encoder]) -> Callable[[Config], Encoder]:
        cls = stem + classes[0].suffix
        family(*model_types, cls=cls, names=names, harmless=keys, also=also, classes=classes)(read)
        return read

    return add


def dense_attention(
    c: Config, width: int, bias: str = "qkvo", kind: type[Attention] = Attention, **more: Any
) -> Attention:
    """Heads that see every token, together as wide as the model."""
    heads = c.size("num_attention_heads")
    each = c.divides("hidden_size", width, "num_attention_heads", heads)
    return kind(heads, heads, each, bias=bias, sees="all", **more)


def two_matrices(c: Config, bias: str = "ud") -> Mlp:
    """The feed-forward layer."""
    return Mlp(c.size("intermediate_size"), gated=False, activation=activation(c, default=None), bias=bias)


def norm_of(c: Config) -> Norm:
    """LayerNorm with the config's eps."""
    return layernorm(c, "layer_norm_eps")


def post_norm(mixer: Attention, mlp: Mlp, norm: Norm, kind: str = "") -> Layer:
    """norm(x + mixer(x)), then norm(x + mlp(x)) (Vaswani et al. 2017)."""
    return Layer((Step((Branch(mixer),), after=norm), Step((Branch(mlp),), after=norm)), label(kind))


def plain(c: Config) -> None:
    """An encoder's config holds nothing of a decoder, and positions are added or rotated as its type has them."""
    c.inert("is_decoder", False)
    c.inert("position_embedding_type", "absolute")


def reach(c: Config, padded: bool) -> int:
    """How many tokens the position table holds; RoBERTa's first rows are the padding's and those before it."""
    rows = c.size("max_position_embeddings")
    if not padded:
        return rows
    first = c.size("pad_token_id", least=0) + 1
    if rows <= first:
        c.fail("max_position_embeddings", f"above {first}, pad_token_id + 1, which positions begin behind")
    return rows - first


def tables(c: Config, width: int, **more: Any) -> Tables:
    """Words, positions and token types."""
    found = (("position", c.size("max_position_embeddings")), ("type", c.size("type_vocab_size")))
    return Tables(c.size("vocab_size"), width, norm=norm_of(c), tables=found, **more)


def bert_like(c: Config, padded: bool = False, **defaults: Any) -> Encoder:
    """BERT: words, positions and token types; layers normed behind each sum."""
    c.absent(**{**DEFAULTS, **defaults})
    plain(c)
    d = c.size("hidden_size")
    layer = post_norm(dense_attention(c, d), two_matrices(c), norm_of(c))
    limit = reach(c, padded)
    c.flag("tie_word_embeddings", True)
    c.skip("pad_token_id")
    offset = c.size("max_position_embeddings") - limit or None  # rows of the padding and before it
    return Encoder(tables(c, d, offset=offset), (layer,) * depth(c), None, limit=limit, trained=limit)


def masked(c: Config, made: Decoder, act: str | None = None, spare: bool = True) -> MaskedHead:
    """A dense layer as wide as the words, its norm, the vocabulary; an untied head stores a bias it does not use."""
    narrow = made.embedding.narrow
    tied = c.flag("tie_word_embeddings", True)
    return MaskedHead(
        made.embedding.vocab,
        made.width,
        made.width if narrow is None else narrow,
        act or activation(c, default="gelu"),
        norm_of(c),
        tied,
        spare=spare and not tied,
    )


def single_bias(c: Config, made: Decoder) -> MaskedHead:
    """The same with one bias of the vocabulary, whatever is tied."""
    return masked(c, made, spare=False)


def gelu_masked(c: Config, made: Decoder) -> MaskedHead:
    """The same with GELU whatever the layers have (RoBERTa)."""
    return masked(c, made, "gelu")


def nothing(c: Config, made: Decoder) -> None:
    """A base model that ends in its last layer."""


def pooler(c: Config, made: Decoder) -> Pooler:
    """The first token through a dense layer."""
    return Pooler(made.width)


def pooled_labels(c: Config, made: Decoder) -> Pooler:
    """Labels of the first token, through a dense layer."""
    return Pooler(made.width, labels(c))


def act_labels(c: Config, made: Decoder) -> Pooler:
    """The same with the layers' activation."""
    return Pooler(made.width, labels(c), activation=activation(c, default="gelu"))


def pooled_choice(c: Config, made: Decoder) -> Pooler:
    """One score for each of several choices, each a sequence."""
    return Pooler(made.width, 1)


def sentence_pair(c: Config, made: Decoder) -> Pooler:
    """Whether the second sentence follows the first."""
    return Pooler(made.width, 2)


def each_label(c: Config, made: Decoder) -> Pooler:
    """Labels of each token."""
    return Pooler(made.width, labels(c), dense=False, over="all")


def pretraining(c: Config, made: Decoder) -> Together:
    """The masked-language head and the judgement of the sentence pair."""
    return Together((sentence_pair(c, made), masked(c, made)))


def bert_classes(prefix: str, predictions: Names, path: str = "cls.predictions.") -> tuple[Class, ...]:
    """BERT's classes; those that judge a whole sequence have the pooler."""
    pool = {"Wpool": f"{prefix}pooler.dense.weight"}
    following = {"Wscore": "cls.seq_relationship.weight"}
    return (
        Class(MASKED, "ForMaskedLM", masked, predictions),
        Class(BASE, "Model", pooler, pool, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", pooled_labels, pool | SCORE),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
        Class(CHOICE, "ForMultipleChoice", pooled_choice, pool | SCORE),
        Class(NEXT, "ForNextSentencePrediction", sentence_pair, pool | following),
        Class(PRETRAINING, "ForPreTraining", pretraining, {**pool, **following, **predictions}),
    )


def dense_labels(act: str) -> Callable[[Config, Decoder], Pooler]:
    """Labels of the first token, through a dense layer with this activation."""
    return lambda c, made: Pooler(made.width, labels(c), activation=act)


def roberta_classes(prefix: str, predictions: Names) -> tuple[Class, ...]:
    """RoBERTa's classes: a classifier of its own in the pooler's place."""
    pool = {"Wpool": f"{prefix}pooler.dense.weight"}
    return (
        Class(MASKED, "ForMaskedLM", gelu_masked, predictions),
        Class(BASE, "Model", pooler, pool, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", pooled_labels, OWN_CLASSIFIER),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
        Class(CHOICE, "ForMultipleChoice", pooled_choice, pool | SCORE),
    )


def own_classifier(predictions: Names) -> tuple[Class, ...]:
    """Classes of models without a pooler, whose classifier has the layers' activation."""
    return (
        Class(MASKED, "ForMaskedLM", masked, predictions),
        Class(BASE, "Model", nothing, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", act_labels, OWN_CLASSIFIER),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
    )


def unpooled_base(
    prefix: str, predictions: Names, end: Callable[[Config, Decoder], MaskedHead] = single_bias
) -> tuple[Class, ...]:
    """Classes of which only the one that judges a whole sequence has a pooler."""
    return (
        Class(MASKED, "ForMaskedLM", end, predictions),
        Class(BASE, "Model", nothing, bare=True),
        Class(
            SEQUENCE,
            "ForSequenceClassification",
            pooled_labels,
            {"Wpool": f"{prefix}pooler.dense.weight", **SCORE},
        ),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
    )
