"""Encoders with rotary positions and norms before the sub-layers: ModernBERT, EuroBERT, ESM C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from assay.blocks import Attention, Branch, Decoder, Layer, Mlp, Norm, Step
from assay.blocks.encoders import Encoder, MaskedHead, Pooler, Tables
from assay.sources.config import Config
from assay.sources.families.common import (
    BASE,
    MASKED,
    QUESTION,
    SEQUENCE,
    TOKEN,
    Class,
    activation,
    by_kind,
    depth,
    heads,
    label,
    labels,
    no_own_width,
    pre_norm,
    rms,
    rope,
    under,
)
from assay.sources.families.dense import FULL, SLIDING, biased, layer_types
from assay.sources.families.encoders import CHOICE, OWN_CLASSIFIER, SCORE, each_label, encoder, nothing, pooled_labels
from assay.sources.families.names import behind, gate_and_up, llama

Over = Literal["first", "mean", "all"]

MODERN = {
    "E": "model.embeddings.tok_embeddings.weight",
    "Ge": "model.embeddings.norm.weight",
    "Gf": "model.final_norm.weight",
    **under(
        "model.layers.{i}.",
        {
            "Ga": "attn_norm.weight",
            **behind("attn.Wqkv", biases=True),
            "Wo": "attn.Wo.weight",
            "Gm": "mlp_norm.weight",
            **gate_and_up("mlp.Wi", biases=True),
            "Wd": "mlp.Wo.weight",
        },
    ),
}
MODERN_HEAD = {"Wdense": "head.dense.weight", "Ghead": "head.norm.weight", "Wout": "decoder.weight"}
MODERN_SCORE = {"Wpool": "head.dense.weight", "Ghead": "head.norm.weight", "Wscore": "classifier.weight"}


def modern_norm(c: Config) -> Norm:
    """LayerNorm, with a bias where asked for."""
    return Norm("layernorm", "gain+bias" if c.flag("norm_bias", False) else "gain", c.positive("norm_eps", 1e-5))


def masked_head(c: Config, made: Decoder) -> MaskedHead:
    """ModernBERT's head: a dense layer, its norm, the vocabulary."""
    return MaskedHead(
        made.embedding.vocab,
        made.width,
        made.width,
        activation(c, "classifier_activation", "gelu"),
        modern_norm(c),
        c.flag("tie_word_embeddings", True),
        c.flag("decoder_bias", True),
        c.flag("classifier_bias", False),
    )


def labelled(over: Over | None, count: Callable[[Config], int]) -> Callable[[Config, Decoder], Pooler]:
    """Labels of each token, or of what `classifier_pooling` makes of all."""

    def end(c: Config, made: Decoder) -> Pooler:
        pooled: Over = "first" if c.word("classifier_pooling", "cls", ("cls", "mean")) == "cls" else "mean"
        act = activation(c, "classifier_activation", "gelu")
        dense_bias = c.flag("classifier_bias", False)
        read = over or pooled
        return Pooler(made.width, count(c), activation=act, over=read, after=modern_norm(c), dense_bias=dense_bias)

    return end


HARMLESS = """
    classifier_pooling classifier_activation classifier_bias decoder_bias tie_word_embeddings mlp_dropout
    sparse_prediction sparse_pred_ignore_index reference_compile repad_logits_with_grad deterministic_flash_attn
    position_embedding_type
""".split()


@encoder(
    "modernbert",
    stem="ModernBert",
    names=MODERN,
    classes=(
        Class(MASKED, "ForMaskedLM", masked_head, MODERN_HEAD),
        Class(BASE, "Model", nothing, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", labelled(None, labels), MODERN_SCORE),
        Class(TOKEN, "ForTokenClassification", labelled("all", labels), MODERN_SCORE),
        Class(QUESTION, "ForQuestionAnswering", labelled("all", labels), MODERN_SCORE),
        Class(CHOICE, "ForMultipleChoice", labelled(None, lambda c: 1), MODERN_SCORE),
    ),
    harmless=HARMLESS,
)
def modernbert(c: Config) -> Encoder:
    """Warner et al. 2024: windows to both sides but in every third layer; the first layer reads the normed words."""
    d, norm = c.size("hidden_size", 768), modern_norm(c)
    return Encoder(
        Tables(c.size("vocab_size", 50368), d, norm=norm),
        modern_layers(c, d, norm, lambda side: {"sees": "all", "reach": side}),
        None,
        trained=c.maybe("max_position_embeddings", 8192),
        final=norm,
    )


def modern_layers(
    c: Config, width: int, norm: Norm, looks: Callable[[int | None], dict[str, Any]]
) -> tuple[Layer, ...]:
    """Windows but in every third layer; `looks` says how attention sees that far to a side, or everywhere."""
    count = c.size("num_attention_heads", 12)
    each = c.divides("hidden_size", width, "num_attention_heads", count)
    bias = biased(c, "mlp_bias", "gud")
    mlp = Mlp(c.size("intermediate_size", 1152), activation=activation(c, "hidden_activation", "gelu"), bias=bias)
    interval = c.size("global_attn_every_n_layers", 3)
    kinds = layer_types(c, [SLIDING if i % interval else FULL for i in range(depth(c, 22))])
    side = c.size("local_attention", 128, least=2) // 2
    c.inert("sliding_window", side)
    bias = biased(c, "attention_bias", "qkvo")
    turned = {
        FULL: rope(c, each, 160000.0, kind=FULL, theta_key="global_rope_theta"),
        SLIDING: rope(c, each, 10000.0, kind=SLIDING, theta_key="local_rope_theta"),
    }

    def layer(sort: tuple[str, bool]) -> Layer:
        kind, first = sort
        sight = looks(side if kind == SLIDING else None)
        attention = Attention(count, count, each, bias=bias, positions=turned[kind], **sight)
        return Layer((Step((Branch(attention, None if first else norm),)), Step((Branch(mlp, norm),))), label(kind))

    return by_kind([(kind, i == 0) for i, kind in enumerate(kinds)], layer)


def _euro_masked(c: Config, made: Decoder) -> MaskedHead:
    tied = c.flag("tie_word_embeddings", False)
    return MaskedHead(made.embedding.vocab, made.width, tied=tied, bias=c.flag("mlp_bias", False))


def _euro_labels(c: Config, made: Decoder) -> Pooler:
    """Labels of the first token, of the mean, or of each token, of which the mean is taken late."""
    pooling: Mapping[str, Over] = {"bos": "first", "mean": "mean", "late": "all"}
    over = pooling[c.word("classifier_pooling", "late", pooling)]
    return Pooler(made.width, labels(c), activation="gelu", over=over)


@encoder(
    "eurobert",
    stem="EuroBert",
    names=llama(),
    classes=(
        Class(MASKED, "ForMaskedLM", _euro_masked, {"Wout": "lm_head.weight", "Bout": "lm_head.bias"}),
        Class(BASE, "Model", nothing, bare=True),
        Class(
            SEQUENCE,
            "ForSequenceClassification",
            _euro_labels,
            {"Wpool": "dense.weight", "Wscore": "classifier.weight"},
        ),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
    ),
    harmless=("classifier_pooling", "tie_word_embeddings"),
)
def eurobert(c: Config) -> Encoder:
    """Boizard et al. 2025."""
    c.inert("is_decoder", False)
    d = c.size("hidden_size", 768)
    found = heads(c, d, 12)
    attention = Attention(*found, bias=biased(c, "attention_bias", "qkvo"), positions=rope(c, found.width), sees="all")
    mlp = Mlp(c.size("intermediate_size", 3072), activation=activation(c), bias=biased(c, "mlp_bias", "gud"))
    norm = rms(c, 1e-5)
    return Encoder(
        Tables(c.size("vocab_size", 128256), d),
        (pre_norm(attention, mlp, norm),) * depth(c, 12),
        None,
        trained=c.maybe("max_position_embeddings", 8192),
        final=norm,
    )


_ESMC_HEAD = {"Wdense": "lm_head.dense.weight", "Ghead": "lm_head.layer_norm.weight", "Wout": "lm_head.decoder.weight"}


def _esmc_masked(c: Config, made: Decoder) -> MaskedHead:
    return MaskedHead(made.embedding.vocab, made.width, made.width, "gelu", Norm("layernorm", "gain+bias"), tied=False)


@encoder(
    "esmc",
    stem="Esmc",
    names=llama("esmc."),
    classes=(
        Class(MASKED, "ForMaskedLM", _esmc_masked, _ESMC_HEAD),
        Class(BASE, "Model", nothing, bare=True),
        Class(
            SEQUENCE,
            "ForSequenceClassification",
            pooled_labels,
            OWN_CLASSIFIER,
        ),
    ),
)
def esmc(c: Config) -> Encoder:
    """ESM Cambrian (EvolutionaryScale 2024): proteins; queries and keys normed over all heads, residuals scaled."""
    c.inert("tie_word_embeddings", False)
    d, layers = c.size("hidden_size", 2560), depth(c, 80)
    found = heads(c, d, 40)
    no_own_width(c, d, found)
    gain = Norm("layernorm", "gain")
    attention = Attention(
        *found,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=gain,
        qk_norm_over="full",
        positions=rope(c, found.width),
        sees="all",
    )
    mlp = Mlp(c.size("intermediate_size", 6912), activation=activation(c), bias=biased(c, "mlp_bias", "gud"))
    layer = pre_norm(attention, mlp, Norm("layernorm", "gain+bias"), scale=(36 / layers) ** 0.5)
    return Encoder(
        Tables(c.size("vocab_size", 64), d),
        (layer,) * layers,
        None,
        trained=c.maybe("max_position_embeddings", 2048),
        final=gain,
    )
