"""UltraBERT: a Llama-like layer that sees to both sides."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp
from assay.blocks.encoders import Encoder, Pooler, Tables
from assay.blocks.sparse_encoders import NarrowedHead
from assay.sources.config import Config
from assay.sources.families.common import (
    BASE,
    MASKED,
    SEQUENCE,
    TOKEN,
    Class,
    activation,
    by_kind,
    depth,
    heads,
    labels,
    pre_norm,
    rms,
    rope,
)
from assay.sources.families.dense import FULL, SLIDING, biased, layer_types
from assay.sources.families.encoders import SCORE, each_label, encoder, nothing
from assay.sources.families.names import llama


def _narrowed(c: Config, made: Decoder) -> NarrowedHead:
    tied = c.flag("tie_word_embeddings", False)
    return NarrowedHead(made.embedding.vocab, made.width, c.size("prediction_head_size", 768), tied)


def _ultra_labels(c: Config, made: Decoder) -> Pooler:
    first = c.word("classifier_pooling", "cls", ("cls", "mean")) == "cls"
    return Pooler(made.width, labels(c), dense=False, over="first" if first else "mean")


ULTRA = llama()


@encoder(
    "ultrabert",
    stem="Ultrabert",
    names=ULTRA,
    classes=(
        Class(
            MASKED,
            "ForMaskedLM",
            _narrowed,
            {"Wnarrow": "head.linear1.weight", "Wwide": "head.linear2.weight", "Wout": "head.decoder.weight"},
        ),
        Class(BASE, "Model", nothing, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", _ultra_labels, SCORE),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
    ),
    harmless=("classifier_pooling", "prediction_head_size", "tie_word_embeddings"),
)
def ultrabert(c: Config) -> Encoder:
    """A Llama-like layer that sees to both sides, within a window in two layers of three."""
    d, count = c.size("hidden_size", 4096), depth(c, 32)
    found = heads(c, d, 32)
    kinds = layer_types(c, [SLIDING if (i + 1) % 3 else FULL for i in range(count)])
    side = c.size("sliding_window", 128)
    turned = {kind: rope(c, found.width, theta, kind=kind) for kind, theta in ((FULL, 2560000.0), (SLIDING, 10000.0))}
    mlp = Mlp(c.size("intermediate_size", 11008), activation=activation(c), bias=biased(c, "mlp_bias", "gud"))
    bias, norm = biased(c, "attention_bias", "qkvo"), rms(c)

    def layer(kind: str) -> Layer:
        attention = Attention(
            *found,
            bias=bias,
            positions=turned[kind],
            sees="all",
            reach=side if kind == SLIDING else None,
        )
        return pre_norm(attention, mlp, norm, kind)

    return Encoder(
        Tables(c.size("vocab_size", 32000), d),
        by_kind(kinds, layer),
        None,
        trained=c.maybe("max_position_embeddings", 32768),
        final=norm,
    )
