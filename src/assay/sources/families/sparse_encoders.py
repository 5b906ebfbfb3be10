"""Longformer, BigBird, MRA: patterns of attention."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer
from assay.blocks.encoders import Encoder, Pooler, Together
from assay.blocks.long_source import BlockSparse
from assay.blocks.sparse_encoders import Coarse, Numbered, Reserved
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bert_kin import always_pooled, with_attention
from assay.sources.families.common import (
    BASE,
    MASKED,
    PRETRAINING,
    SEQUENCE,
    TOKEN,
    Class,
    activation,
    apart,
    by_kind,
    labels,
)
from assay.sources.families.encoders import (
    BERT_HEAD,
    LAYER,
    OWN_CLASSIFIER,
    ROBERTA_HEAD,
    bert_like,
    dense_attention,
    encoder,
    norm_of,
    own_classifier,
    post_norm,
    roberta_classes,
    stored,
    two_matrices,
)


def reserved(**paths: str) -> dict[str, str]:
    """Where projections are stored that plain tokens do not use."""
    found = {}
    for name, path in paths.items():
        found[f"W{name}"] = f"attention.self.{path}.weight[(g r k) d]"
        found[f"W{name}_bias"] = f"attention.self.{path}.bias"
    return found


@apart(flops="of windows: which tokens are global is an input")
@encoder(
    "longformer",
    stem="Longformer",
    names=stored(
        "longformer.", LAYER | reserved(global_q="query_global", global_k="key_global", global_v="value_global")
    ),
    classes=roberta_classes("longformer.", ROBERTA_HEAD),
    harmless=("onnx_export", "attention_mode", "sep_token_id", "ignore_attention_mask"),
)
def longformer(c: Config) -> Encoder:
    """Beltagy et al. 2020: windows to both sides; no token is global unless an input says so."""
    made = bert_like(c, padded=True, pad_token_id=1)
    count = made.depth
    allowed = "an even integer of at least 2"

    def fits(value: object) -> bool:
        return type(value) is int and value > 1 and value % 2 == 0

    if isinstance(c.data.get("attention_window"), list):
        windows = c.sequence("attention_window", fits, allowed, count) or []
    else:
        one = c.size("attention_window", 512, least=2)
        if not fits(int(one)):
            c.fail("attention_window", f"{allowed}, or a list of one for each layer")
        windows = [int(one)] * count
    spare = ("global_q", "global_k", "global_v")

    def layer(window: int) -> Layer:
        attention = dense_attention(c, made.width, kind=Reserved, reach=window // 2, spare=spare)
        return post_norm(attention, two_matrices(c), norm_of(c))

    return replace(made, layers=by_kind(windows, layer))


def _act_labels(c: Config, made: Decoder) -> Together:
    """The pooler, which is always there, and a classifier with the layers' activation."""
    act = activation(c, default="gelu_new")
    return Together((Pooler(made.width, name="first"), Pooler(made.width, labels(c), activation=act)))


_FIRST = {"Wfirst": "bert.pooler.weight"}


@encoder(
    "big_bird",
    stem="BigBird",
    names=stored("bert."),
    classes=(
        *(one for one in always_pooled("bert.", BERT_HEAD, "pooler") if one.role in (MASKED, BASE, TOKEN, PRETRAINING)),
        Class(
            SEQUENCE,
            "ForSequenceClassification",
            _act_labels,
            _FIRST | OWN_CLASSIFIER,
        ),
    ),
    harmless=("sep_token_id",),
)
def big_bird(c: Config) -> Encoder:
    """Zaheer et al. 2020: blocks that see neighbours, the ends and some at random, or every token every other."""
    made = bert_like(c, vocab_size=50358, hidden_act="gelu_new", max_position_embeddings=4096)
    bias = "qkvo" if c.flag("use_bias", True) else "o"
    block, random = c.size("block_size", 64), c.size("num_random_blocks", 3)
    if c.word("attention_type", "block_sparse", ("block_sparse", "original_full")) == "block_sparse":
        attention: Attention = dense_attention(c, made.width, bias, BlockSparse, block=int(block), random=int(random))
    else:
        attention = dense_attention(c, made.width, bias)
    scale = made.width**0.5 if c.flag("rescale_embeddings", False) else None
    return with_attention(replace(made, embedding=replace(made.embedding, scale=scale)), attention)


@apart(flops="of the full attention that it approximates")
@encoder(
    "mra",
    stem="Mra",
    names=stored("mra.") | {"Numbers": "~mra.embeddings.position_ids[1 numbers]"},
    classes=own_classifier(BERT_HEAD),
    harmless=("block_per_row", "initial_prior_first_n_blocks", "initial_prior_diagonal_n_blocks"),
)
def mra(c: Config) -> Encoder:
    """Zeng et al. 2022: an approximation of full attention, which is what is counted."""
    made = bert_like(c, vocab_size=50265, type_vocab_size=1, layer_norm_eps=1e-5)
    c.word("approx_mode", "full", ("full", "sparse"))
    rows = c.size("max_position_embeddings")
    tables = (("position", rows + 2), ("type", c.size("type_vocab_size")))
    words = made.embedding
    made = with_attention(made, dense_attention(c, made.width, kind=Coarse))
    return replace(made, embedding=Numbered(words.vocab, words.width, norm=words.norm, tables=tables, numbers=rows))
