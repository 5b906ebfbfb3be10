"""ELECTRA, ALBERT, DistilBERT, RemBERT: narrow words, shared layers, half the depth; MPNet: a bias of the distance."""

from __future__ import annotations

from typing import Any

from assay.blocks import Decoder
from assay.blocks.encoders import Encoder, MaskedHead, Pooler, Shared, Together
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import (
    BASE,
    MASKED,
    PRETRAINING,
    QUESTION,
    SEQUENCE,
    TOKEN,
    Class,
    activation,
    depth,
    labels,
)
from assay.sources.families.encoders import (
    ANSWER,
    CHOICE,
    DEFAULTS,
    LAYER,
    OWN_CLASSIFIER,
    ROBERTA_HEAD,
    SCORE,
    bert_classes,
    bert_like,
    dense_attention,
    dense_labels,
    each_label,
    encoder,
    head,
    masked,
    norm_of,
    nothing,
    plain,
    pooled_choice,
    pooled_labels,
    pooler,
    post_norm,
    reach,
    roberta_classes,
    single_bias,
    stored,
    tables,
    two_matrices,
)

_DISTIL = {
    "Wq": "attention.q_lin.weight",
    "Wk": "attention.k_lin.weight",
    "Wv": "attention.v_lin.weight",
    "Wo": "attention.out_lin.weight",
    "Gt0": "sa_layer_norm.weight",
    "Wu": "ffn.lin1.weight",
    "Wd": "ffn.lin2.weight",
    "Gt1": "output_layer_norm.weight",
}
_PRE = {"Wpool": "pre_classifier.weight", "Wscore": "classifier.weight"}


def _relu_choice(c: Config, made: Decoder) -> Pooler:
    return Pooler(made.width, 1, activation="relu")


@encoder(
    "distilbert",
    stem="DistilBert",
    names=stored("distilbert.", _DISTIL, "transformer.layer.{i}."),
    classes=(
        Class(
            MASKED,
            "ForMaskedLM",
            single_bias,
            {
                "Wdense": "vocab_transform.weight",
                "Ghead": "vocab_layer_norm.weight",
                "Wout": "vocab_projector.weight",
                "Bout": "vocab_projector.bias",
            },
        ),
        Class(BASE, "Model", nothing, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", dense_labels("relu"), _PRE),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
        Class(CHOICE, "ForMultipleChoice", _relu_choice, _PRE),
    ),
    harmless=("seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_", "n_ctx"),
)
def distilbert(c: Config) -> Encoder:
    """Sanh et al. 2019: no token types, no pooler; sines, where asked for, only fill the table of positions."""
    c.rename(
        dim="hidden_size",
        hidden_dim="intermediate_size",
        n_layers="num_hidden_layers",
        n_heads="num_attention_heads",
        activation="hidden_act",
    )
    made = bert_like(c, num_hidden_layers=6)
    words = replace(tables(c, made.width, offset=made.embedding.offset), tables=(("position", made.limit or 0),))
    return replace(made, embedding=words)


_GENERATOR = {
    "Wdense": "generator_predictions.dense.weight",
    "Ghead": "generator_predictions.LayerNorm.weight",
    "Wout": "generator_lm_head.weight",
    "Bout": "generator_lm_head.bias",
}


def _generator(c: Config, made: Decoder) -> MaskedHead:
    return masked(c, made, "gelu", spare=False)


def _discriminator(c: Config, made: Decoder) -> Pooler:
    """Whether each token was replaced."""
    return Pooler(made.width, 1, activation=activation(c, default="gelu"), over="all")


@encoder(
    "electra",
    stem="Electra",
    names=stored("electra.") | {"Ein": "electra.embeddings_project.weight"},
    classes=(
        Class(MASKED, "ForMaskedLM", _generator, _GENERATOR),
        Class(BASE, "Model", nothing, bare=True),
        Class(
            PRETRAINING,
            "ForPreTraining",
            _discriminator,
            {
                "Wpool": "discriminator_predictions.dense.weight",
                "Wscore": "discriminator_predictions.dense_prediction.weight",
            },
        ),
        Class(
            SEQUENCE,
            "ForSequenceClassification",
            dense_labels("gelu"),
            OWN_CLASSIFIER,
        ),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
    ),
    harmless=("generator_size",),  # of the model that it was trained against
)
def electra(c: Config) -> Encoder:
    """Clark et al. 2020: words narrower than the model, projected up."""
    made = bert_like(c, hidden_size=256, num_attention_heads=4, intermediate_size=1024, embedding_size=128)
    return _projected(c, made, "embedding_size")


def _projected(c: Config, made: Encoder, key: str, always: bool = False) -> Encoder:
    """The same with words of their own width, and a projection where that is another than the model's."""
    narrow = c.size(key)
    if narrow == made.width and not always:
        return made
    return replace(made, embedding=tables(c, made.width, narrow=narrow, bias=True))


_ALBERT = {
    "Wq": "attention.query.weight",
    "Wk": "attention.key.weight",
    "Wv": "attention.value.weight",
    "Wo": "attention.dense.weight",
    "Gt0": "attention.LayerNorm.weight",
    "Wu": "ffn.weight",
    "Wd": "ffn_output.weight",
    "Gt1": "full_layer_layer_norm.weight",
}
_ALBERT_HEAD = head("predictions.", "dense", "LayerNorm")
_ALBERT_POOL = {"Wpool": "albert.pooler.weight"}


def _order(c: Config, made: Decoder) -> Together:
    """The order of two sentences, and the masked-language head."""
    return Together((Pooler(made.width, labels(c)), masked(c, made)))


@encoder(
    "albert",
    stem="Albert",
    names=stored("albert.", _ALBERT, "encoder.albert_layer_groups.{i}.albert_layers.{inner}.")
    | {"Ein": "albert.encoder.embedding_hidden_mapping_in.weight"},
    classes=(
        Class(MASKED, "ForMaskedLM", masked, _ALBERT_HEAD),
        Class(BASE, "Model", pooler, _ALBERT_POOL, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", pooled_labels, _ALBERT_POOL | SCORE),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
        Class(CHOICE, "ForMultipleChoice", pooled_choice, _ALBERT_POOL | SCORE),
        Class(
            PRETRAINING,
            "ForPreTraining",
            _order,
            {**_ALBERT_POOL, "Wscore": "sop_classifier.classifier.weight", **_ALBERT_HEAD},
        ),
    ),
    harmless=("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"),
)
def albert(c: Config) -> Encoder:
    """Lan et al. 2019: `num_hidden_groups` groups of `inner_group_num` layers, run `num_hidden_layers` times."""
    c.absent(
        **{
            **DEFAULTS,
            "vocab_size": 30000,
            "hidden_size": 4096,
            "num_attention_heads": 64,
            "intermediate_size": 16384,
            "hidden_act": "gelu_new",
        }
    )
    plain(c)
    d, count = c.size("hidden_size"), depth(c)
    groups = c.size("num_hidden_groups", 1)
    if groups > count:
        c.fail("num_hidden_groups", f"at most num_hidden_layers, {int(count)}")
    layer = post_norm(dense_attention(c, d), two_matrices(c), norm_of(c))
    # layer i belongs to group int(i / (count / groups)): groups of one length where that divides
    places = [int(i / (count / groups)) for i in range(count)]
    limit = reach(c, padded=False)
    c.flag("tie_word_embeddings", True)
    return Shared(
        tables(c, d, narrow=c.size("embedding_size", 128), bias=True),
        (layer,) * c.size("inner_group_num", 1),
        None,
        limit=limit,
        trained=limit,
        runs=tuple(places.count(group) for group in range(groups)),
    )


_MPNET = LAYER | {
    "Wq": "attention.attn.q.weight",
    "Wk": "attention.attn.k.weight",
    "Wv": "attention.attn.v.weight",
    "Wo": "attention.attn.o.weight",
    "Gt0": "attention.LayerNorm.weight",
}


@encoder(
    "mpnet",
    stem="MPNet",
    names=stored("mpnet.", _MPNET) | {"Rel": "mpnet.encoder.relative_attention_bias.weight[u (g r)]"},
    classes=roberta_classes("mpnet.", ROBERTA_HEAD),
)
def mpnet(c: Config) -> Encoder:
    """Song et al. 2020: one table of biases of the distance, which every layer uses."""
    own: dict[str, Any] = {"vocab_size": 30527, "relative_attention_num_buckets": 32}
    c.absent(**own)
    c.data = {**c.data, "pad_token_id": 1}  # the implementation's positions begin at 2, whatever the config says
    made = bert_like(c, padded=True)
    attention = dense_attention(c, made.width, relative=c.size("relative_attention_num_buckets", least=2))
    layer = post_norm(attention, two_matrices(c), norm_of(c))
    rows = (("position", c.size("max_position_embeddings")),)
    words = replace(tables(c, made.width, offset=made.embedding.offset), tables=rows)
    return replace(made, embedding=words, layers=(layer,) * made.depth)


_REMBERT_HEAD = head("cls.predictions.", "dense", "LayerNorm") | {"Bout": "cls.predictions.decoder.bias"}


def _wide_masked(c: Config, made: Decoder) -> MaskedHead:
    """A dense layer to the width of a head of its own."""
    return replace(masked(c, made, spare=False), inner=c.size("output_embedding_size", 1664), tied=False)


@encoder(
    "rembert",
    stem="RemBert",
    names=stored("rembert.") | {"Ein": "rembert.encoder.embedding_hidden_mapping_in.weight"},
    classes=tuple(
        replace(one, end=_wide_masked) if one.role == MASKED else one
        for one in bert_classes("rembert.", _REMBERT_HEAD)
        if one.role not in (PRETRAINING, "next-sentence")
    ),
    harmless=("output_embedding_size",),
)
def rembert(c: Config) -> Encoder:
    """Chung et al. 2020: narrow words in, wide ones out, which is why they are never tied."""
    c.inert("tie_word_embeddings", False)
    made = bert_like(
        c,
        vocab_size=250300,
        hidden_size=1152,
        num_hidden_layers=32,
        num_attention_heads=18,
        intermediate_size=4608,
        input_embedding_size=256,
        tie_word_embeddings=False,
    )
    return _projected(c, made, "input_embedding_size", always=True)
