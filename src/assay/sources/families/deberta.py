"""DeBERTa and its second version, which DeBERTaV3 keeps."""

from __future__ import annotations

from typing import Any

from assay.blocks import Attention, Decoder, Layer
from assay.blocks.disentangled import Convolved, Disentangled, Distances
from assay.blocks.encoders import Encoder, MaskedHead, Pooler
from assay.errors import SourceError
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import (
    ACTIVATIONS,
    BASE,
    MASKED,
    QUESTION,
    SEQUENCE,
    TOKEN,
    Class,
    Names,
    activation,
    depth,
    labels,
)
from assay.sources.families.encoders import (
    ANSWER,
    BERT_HEAD,
    CHOICE,
    DEFAULTS,
    LAYER,
    SCORE,
    dense_attention,
    each_label,
    encoder,
    head,
    masked,
    norm_of,
    nothing,
    plain,
    post_norm,
    stored,
    two_matrices,
)

_POOL = {"Wpool": "pooler.dense.weight"}
_NEWER = head("lm_predictions.lm_head.", "dense", "LayerNorm")


def _masked(c: Config, made: Decoder) -> MaskedHead:
    """BERT's head, or where `legacy` is false one that multiplies by the words' table whatever is tied."""
    if c.flag("legacy", True):
        return masked(c, made)
    if made.embedding.narrow is not None:
        c.fail("embedding_size", f"hidden_size, {made.width}, where legacy is false")
    return replace(masked(c, made, spare=False), tied=True)


def _pooled(count: int | None) -> Any:
    def end(c: Config, made: Decoder) -> Pooler:
        c.inert("pooler_hidden_size", made.width)
        found = labels(c) if count is None else count
        return Pooler(made.width, found, activation=activation(c, "pooler_hidden_act", "gelu"))

    return end


def _classes(choice: bool) -> tuple[Class, ...]:
    found = (
        Class(MASKED, "ForMaskedLM", _masked, BERT_HEAD),
        Class(BASE, "Model", nothing, bare=True),
        Class(SEQUENCE, "ForSequenceClassification", _pooled(None), _POOL | SCORE),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
    )
    return (*found, Class(CHOICE, "ForMultipleChoice", _pooled(1), _POOL | SCORE)) if choice else found


_COMMON = (
    *("legacy", "pooler_hidden_size", "pooler_hidden_act", "cls_dropout", "padding_idx", "tie_word_embeddings"),
    *("position_buckets", "max_relative_positions", "share_att_key", "norm_rel_ebd", "conv_act", "pos_att_type"),
)


def _terms(c: Config) -> tuple[str, ...]:
    """`pos_att_type`: a list, or names with | between them."""
    value = c.data.get("pos_att_type")
    c.skip("pos_att_type")
    listed = [term.strip() for term in value.lower().split("|")] if isinstance(value, str) else value or []
    if not isinstance(listed, list) or not set(map(str, listed)) <= {"c2p", "p2c"} or len(set(listed)) != len(listed):
        c.fail("pos_att_type", "null or a list of c2p and p2c, each at most once")
    return tuple(listed)


def _span(c: Config) -> int:
    """How far relative positions reach, where attention has them."""
    given = c.size("max_relative_positions", -1, least=-1)
    return given if given > 0 else c.size("max_position_embeddings")


def _embedding(c: Config, width: int, span: int | None) -> Distances:
    """Words, and positions and token types where they are added to them."""
    found: list[tuple[str, int]] = []
    if c.flag("position_biased_input", True):
        found.append(("position", c.size("max_position_embeddings")))
    types = c.size("type_vocab_size", least=0)
    if types:
        found.append(("type", types))
    narrow = c.maybe("embedding_size")
    return Distances(
        c.size("vocab_size"),
        width,
        None if narrow is None or narrow == width else narrow,
        norm=norm_of(c),
        tables=tuple(found),
        norm_late=True,
        span=span,
    )


def _made(c: Config, embedding: Distances, layers: tuple[Layer, ...], names: Names) -> Encoder:
    """The model; a newer head has other names, and without a table of positions nothing ends a sequence."""
    rows = c.size("max_position_embeddings")
    limit = rows if c.flag("position_biased_input", True) else None
    newer = None if c.flag("legacy", True) else {**names, **_NEWER}
    return Encoder(embedding, layers, None, limit=limit, trained=rows, names=newer)


def _attention(c: Config, bias: str, span: int | None, **more: Any) -> Attention:
    """Heads that score contents alone, or positions too where these reach a `span`."""
    d = c.size("hidden_size")
    terms = _terms(c)
    if span is None:
        return dense_attention(c, d, bias)
    return dense_attention(c, d, bias, Disentangled, terms=terms, span=span, **more)


_V1 = LAYER | {
    "Wq": "attention.self.in_proj.weight[(g + r k) d]",
    "Wk": "attention.self.in_proj.weight[(g + k) d]",
    "Wv": "attention.self.in_proj.weight[(g + v) d]",
    "Bq": "attention.self.q_bias",
    "Bv": "attention.self.v_bias",
    "Wpk": "attention.self.pos_proj.weight",
    "Wpq": "attention.self.pos_q_proj.weight",
    "Bpq": "attention.self.pos_q_proj.bias",
}
_V2 = LAYER | {
    "Wq": "attention.self.query_proj.weight",
    "Wk": "attention.self.key_proj.weight",
    "Wv": "attention.self.value_proj.weight",
    "Wpk": "attention.self.pos_key_proj.weight",
    "Bpk": "attention.self.pos_key_proj.bias",
    "Wpq": "attention.self.pos_query_proj.weight",
    "Bpq": "attention.self.pos_query_proj.bias",
}
_OUTER = {
    "Ein": "deberta.embeddings.embed_proj.weight",
    "E_relative": "deberta.encoder.rel_embeddings.weight",
    "Grel": "deberta.encoder.LayerNorm.weight",
    "Wconv": "deberta.encoder.conv.conv.weight[D d K]",
    "Wconv_bias": "deberta.encoder.conv.conv.bias",
    "Gconv": "deberta.encoder.conv.LayerNorm.weight",
}
_FIRST, _SECOND = stored("deberta.", _V1) | _OUTER, stored("deberta.", _V2) | _OUTER


@encoder("deberta", stem="Deberta", names=_FIRST, classes=_classes(choice=False), harmless=_COMMON)
def deberta(c: Config) -> Encoder:
    """He et al. 2020: relative positions as far as there are tokens."""
    c.absent(**{**DEFAULTS, "vocab_size": 50265, "type_vocab_size": 0, "layer_norm_eps": 1e-7})
    plain(c)
    c.inert("talking_head", False)
    d = c.size("hidden_size")
    span = _span(c) if c.flag("relative_attention", False) else None
    layer = post_norm(_attention(c, "qvo", span, near=True), two_matrices(c), norm_of(c))
    return _made(c, _embedding(c, d, span), (layer,) * depth(c), _FIRST)


@encoder("deberta-v2", stem="DebertaV2", names=_SECOND, classes=_classes(choice=True), harmless=_COMMON)
def deberta_v2(c: Config) -> Encoder:
    """He et al. 2021: distances in buckets, and perhaps a convolution beside the first layer."""
    own = {"vocab_size": 128100, "hidden_size": 1536, "num_hidden_layers": 24, "num_attention_heads": 24}
    c.absent(**{**DEFAULTS, **own, "intermediate_size": 6144, "type_vocab_size": 0, "layer_norm_eps": 1e-7})
    plain(c)
    d = c.size("hidden_size")
    c.inert("attention_head_size", c.divides("hidden_size", d, "num_attention_heads", c.size("num_attention_heads")))
    span: int | None = None
    far: int | None = None
    if c.flag("relative_attention", False):
        buckets, furthest = c.size("position_buckets", -1, least=-1), _span(c)
        if buckets > 0:
            span, far = int(buckets), int(furthest)
        else:
            span = int(furthest)
    normed = "layer_norm" in c.word("norm_rel_ebd", "none").lower().replace(" ", "").split("|")
    attention = _attention(c, "qkvo", span, shared=c.flag("share_att_key", False), far=far)
    layer = post_norm(attention, two_matrices(c), norm_of(c))
    if normed and span is None:
        raise SourceError(f"{c.where}: norm_rel_ebd asks for a norm of relative positions; relative_attention is false")
    embedding = replace(_embedding(c, d, span), span_norm=norm_of(c) if normed else None)
    return _made(c, embedding, (_first(c, layer, d), *((layer,) * (depth(c) - 1))), _SECOND)


def _first(c: Config, layer: Layer, width: int) -> Layer:
    """The first layer, with the convolution where there is one."""
    kernel = c.size("conv_kernel_size", 0, least=0)
    if not kernel:
        return layer
    if kernel % 2 == 0:
        c.fail("conv_kernel_size", "0 or odd, so that each token has as many neighbours to either side")
    c.inert("conv_groups", 1)
    act = ACTIVATIONS[c.word("conv_act", "tanh", ACTIVATIONS)]
    return Convolved(layer.steps, "convolved", width, kernel, act, norm_of(c))
