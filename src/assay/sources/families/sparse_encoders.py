"""Longformer, BigBird, MRA, LUKE, X-MOD, UltraBERT: patterns of attention, entities, adapters."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp
from assay.blocks.encoders import Encoder, Pooler, Tables, Together
from assay.blocks.long_source import BlockSparse
from assay.blocks.sparse_encoders import Adapted, Coarse, Entities, EntityHead, NarrowedHead, Numbered, Reserved
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
    depth,
    heads,
    labels,
    pre_norm,
    rms,
    rope,
)
from assay.sources.families.dense import FULL, SLIDING, biased, layer_types
from assay.sources.families.encoders import (
    BERT_HEAD,
    LAYER,
    OWN_CLASSIFIER,
    ROBERTA_HEAD,
    SCORE,
    bert_like,
    dense_attention,
    each_label,
    encoder,
    masked,
    norm_of,
    nothing,
    own_classifier,
    pooled_labels,
    pooler,
    post_norm,
    roberta_classes,
    stored,
    two_matrices,
)
from assay.sources.families.names import llama


def _reserved(**paths: str) -> dict[str, str]:
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
        "longformer.", LAYER | _reserved(global_q="query_global", global_k="key_global", global_v="value_global")
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
    tables = (("position", rows + 2), ("type", int(c.size("type_vocab_size"))))
    words = made.embedding
    made = with_attention(made, dense_attention(c, made.width, kind=Coarse))
    return replace(made, embedding=Numbered(words.vocab, words.width, norm=words.norm, tables=tables, numbers=rows))


def _entity_masked(c: Config, made: Decoder) -> Together:
    """The pooler, the words' head, which is never tied, and the entities'."""
    tied = c.flag("tie_word_embeddings", True)
    words = masked(c, made, "gelu")
    entities = EntityHead(
        words.vocab,
        words.width,
        words.inner,
        "gelu",
        words.norm,
        tied=False,
        spare=not tied,
        entities=c.size("entity_vocab_size", 500000),
        entity_width=c.size("entity_emb_size", 256),
        entity_tied=tied,
    )
    return Together((Pooler(made.width), entities))


_ENTITIES = {
    "E_entity": "luke.entity_embeddings.entity_embeddings.weight[N q]",
    "Entity_in": "luke.entity_embeddings.entity_embedding_dense.weight[d q]",
    "E_entity_position": "luke.entity_embeddings.position_embeddings.weight[P_position d]",
    "E_entity_type": "luke.entity_embeddings.token_type_embeddings.weight[P_type d]",
    "Gentity": "luke.entity_embeddings.LayerNorm.weight",
}
_ENTITY_HEAD = {
    "Entity_dense": "entity_predictions.transform.dense.weight[q d]",
    "Entity_dense_bias": "entity_predictions.transform.dense.bias",
    "Gentity_head": "entity_predictions.transform.LayerNorm.weight",
    "Entity_bias": "entity_predictions.bias",
    "Entity_out": "entity_predictions.decoder.weight[N q]",
    "Wpool": "luke.pooler.dense.weight",
}


@apart(flops="of words: entities are an input of their own")
@encoder(
    "luke",
    stem="Luke",
    names=stored("luke.", LAYER | _reserved(w2e="w2e_query", e2w="e2w_query", e2e="e2e_query")) | _ENTITIES,
    classes=(
        Class(MASKED, "ForMaskedLM", _entity_masked, ROBERTA_HEAD | _ENTITY_HEAD),
        Class(BASE, "Model", pooler, {"Wpool": "luke.pooler.dense.weight"}, bare=True),
        Class(
            SEQUENCE,
            "ForSequenceClassification",
            pooled_labels,
            {"Wpool": "luke.pooler.dense.weight", **SCORE},
        ),
        Class(TOKEN, "ForTokenClassification", each_label, SCORE),
    ),
    harmless=("cls_entity_prediction", "entity_vocab_size", "entity_emb_size"),
)
def luke(c: Config) -> Encoder:
    """Yamada et al. 2020: entities beside words, of which a sequence has none unless its input says so."""
    made = bert_like(c, padded=True, vocab_size=50267, pad_token_id=1)
    spare = ("w2e", "e2w", "e2e") if c.flag("use_entity_aware_attention", True) else ()
    words = made.embedding
    embedding = Entities(
        words.vocab,
        words.width,
        norm=words.norm,
        tables=(("position", c.size("max_position_embeddings")), ("type", c.size("type_vocab_size"))),
        entities=c.size("entity_vocab_size", 500000),
        entity_width=c.size("entity_emb_size", 256),
        offset=words.offset,
    )
    made = with_attention(made, dense_attention(c, made.width, kind=Reserved, spare=spare))
    return replace(made, embedding=embedding)


_XMOD = LAYER | {
    "Wdown": "output.adapter_modules.{e}.dense1.weight[j d]",
    "Wdown_bias": "output.adapter_modules.{e}.dense1.bias[j]",
    "Wup": "output.adapter_modules.{e}.dense2.weight[d j]",
    "Wup_bias": "output.adapter_modules.{e}.dense2.bias[d]",
    "Gadapter": "output.adapter_layer_norm.weight",
}


@encoder(
    "xmod",
    stem="Xmod",
    names=stored("roberta.", _XMOD) | {"Gf": "roberta.encoder.LayerNorm.weight"},
    classes=roberta_classes("roberta.", ROBERTA_HEAD),
    harmless=("default_language",),
)
def xmod(c: Config) -> Encoder:
    """Pfeiffer et al. 2022: an adapter for each language, of which a sequence passes one."""
    made = bert_like(c, padded=True, pad_token_id=1)
    d = made.width
    languages = c.sequence("languages", lambda v: isinstance(v, str), "names of languages") or ["en_XX"]
    inner = d // c.size("adapter_reduction_factor", 2)
    if inner < 1:
        c.fail("adapter_reduction_factor", f"at most hidden_size, {d}")
    first = c.flag("pre_norm", False)
    layer = Adapted(
        (),
        mixer=dense_attention(c, d),
        mlp=two_matrices(c),
        norm=norm_of(c),
        languages=len(set(languages)),
        inner=inner,
        first=first,
        own_norm=c.flag("adapter_layer_norm", False),
        reuse=c.flag("adapter_reuse_layer_norm", True),
        late=not c.flag("ln_before_adapter", True),
    )
    return replace(made, layers=(layer,) * made.depth, final=norm_of(c) if first else None)


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
