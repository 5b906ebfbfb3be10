"""LUKE: entities beside words, whose queries depend on what they ask."""

from __future__ import annotations

from assay.blocks import Decoder
from assay.blocks.encoders import Encoder, Pooler, Together
from assay.blocks.sparse_encoders import Entities, EntityHead, Reserved
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.bert_kin import with_attention
from assay.sources.families.common import BASE, MASKED, SEQUENCE, TOKEN, Class, apart
from assay.sources.families.encoders import (
    LAYER,
    ROBERTA_HEAD,
    SCORE,
    bert_like,
    dense_attention,
    each_label,
    encoder,
    masked,
    pooled_labels,
    pooler,
    stored,
)
from assay.sources.families.sparse_encoders import reserved


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
    names=stored("luke.", LAYER | reserved(w2e="w2e_query", e2w="e2w_query", e2e="e2e_query")) | _ENTITIES,
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
