"""Funnel-Transformer: blocks of layers over ever shorter sequences."""

from __future__ import annotations

from typing import Any

from assay.blocks import Branch, Decoder, Embedding, Layer, Mlp, Step
from assay.blocks.encoders import Encoder, MaskedHead, Pooler
from assay.blocks.funnel import Funnel, FunnelAttention, Pooled
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
    labels,
    under,
)
from assay.sources.families.encoders import ANSWER, CHOICE, SCORE, each_label, encoder, norm_of, nothing

LAYER = {
    "Wq": "attention.q_head.weight",
    "Wk": "attention.k_head.weight",
    "Wv": "attention.v_head.weight",
    "Shift_words": "attention.r_w_bias[g k]",
    "Shift_places": "attention.r_r_bias[g k]",
    "Shift_segments": "attention.r_s_bias[g k]",
    "Wr": "attention.r_kernel[d g k]",
    "Segments": "attention.seg_embed[two g k]",
    "Wo": "attention.post_proj.weight",
    "Gt0": "attention.layer_norm.weight",
    "Wu": "ffn.linear_1.weight",
    "Wd": "ffn.linear_2.weight",
    "Gt1": "ffn.layer_norm.weight",
}
FUNNEL = {
    "E": "funnel.embeddings.word_embeddings.weight",
    "Ge": "funnel.embeddings.layer_norm.weight",
    **under("funnel.encoder.blocks.{j}.{i}.", LAYER),
    **{f"decoder.{weight}": f"funnel.decoder.layers.{{i}}.{path}" for weight, path in LAYER.items()},
}


def _vocabulary(c: Config, made: Decoder) -> MaskedHead:
    words = made.embedding
    return MaskedHead(words.vocab, words.width, tied=c.flag("tie_word_embeddings", True))


def _judge(c: Config, made: Decoder) -> Pooler:
    """Whether each word is the one that stood there."""
    return Pooler(made.width, 1, activation=activation(c), over="all")


def _short(end: Any) -> Any:
    """The blocks alone, with an end."""
    return lambda c, made: replace(made, more=0, head=end(c, made), names=None)


_CLASSIFIER = {"Wpool": "classifier.linear_hidden.weight", "Wscore": "classifier.linear_out.weight"}
_JUDGE = under("discriminator_predictions.", {"Wpool": "dense.weight", "Wscore": "dense_prediction.weight"})


@encoder(
    "funnel",
    stem="Funnel",
    names=FUNNEL,
    classes=(
        Class(MASKED, "ForMaskedLM", _vocabulary, {"Wout": "lm_head.weight", "Bout": "lm_head.bias"}),
        Class(BASE, "Model", nothing, bare=True),
        Class("blocks", "BaseModel", _short(nothing), bare=True),
        Class(PRETRAINING, "ForPreTraining", _judge, _JUDGE),
        Class(
            SEQUENCE, "ForSequenceClassification", _short(lambda c, made: Pooler(made.width, labels(c))), _CLASSIFIER
        ),
        Class(CHOICE, "ForMultipleChoice", _short(lambda c, made: Pooler(made.width, 1)), _CLASSIFIER),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
        Class(QUESTION, "ForQuestionAnswering", each_label, ANSWER),
    ),
    harmless=("max_position_embeddings", "type_vocab_size", "rel_attn_type"),
)
def funnel(c: Config) -> Encoder:
    """Dai et al. 2020, arXiv:2006.03236: a block is half as long as that before it; for sequences that leave three."""
    c.rename(hidden_size="d_model", num_attention_heads="n_head")
    c.absent(vocab_size=30522, d_model=768, n_head=12, d_head=64, d_inner=3072, hidden_act="gelu_new")
    c.absent(layer_norm_eps=1e-9, num_decoder_layers=2)
    c.skip("pad_token_id")
    for key in ("separate_cls", "truncate_seq"):
        c.inert(key, True)
    c.word("attention_type", "relative_shift", ("relative_shift",))
    c.word("pooling_type", "mean", ("mean",))
    blocks = _counts(c, "block_sizes", [4, 4, 4])
    repeats = _counts(c, "block_repeats", [1] * len(blocks), len(blocks))
    d, norm = c.size("d_model"), norm_of(c)
    attention = FunnelAttention(c.size("n_head"), c.size("d_head"))
    mlp = Mlp(c.size("d_inner"), gated=False, activation=activation(c), bias="ud")
    layer = Layer((Step((Branch(attention),), after=norm), Step((Branch(mlp),), after=norm)))
    pooled: Pooled = "queries" if c.flag("pool_q_only", True) else "all"
    more = c.depth("num_decoder_layers")
    words = Embedding(c.size("vocab_size"), d, norm=norm)
    return Funnel(words, (layer,), None, blocks=blocks, repeats=repeats, more=more, pooled=pooled)


def _counts(c: Config, key: str, usual: list[int], length: int | None = None) -> tuple[int, ...]:
    """A list of how many, of one for each block. Raises SourceError."""
    found = c.sequence(key, lambda v: isinstance(v, int) and not isinstance(v, bool) and v > 0, "1 or more", length)
    if found == []:
        c.fail(key, "a list of at least one number")
    return tuple(usual if found is None else found)
