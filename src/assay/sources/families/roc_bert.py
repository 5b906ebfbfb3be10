"""RoCBERT: how characters look and sound beside them, against spellings that deceive."""

from __future__ import annotations

from assay.blocks import Decoder
from assay.blocks.encoders import Encoder, Tables, Together
from assay.blocks.sparse_encoders import Spelled
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import CAUSAL, PRETRAINING, Class
from assay.sources.families.encoders import BERT_HEAD, NEXT, bert_classes, bert_like, encoder, masked, pooler, stored

NAMES = stored("roc_bert.") | {
    "E_sound": "roc_bert.embeddings.pronunciation_embed.weight",
    "E_shape": "roc_bert.embeddings.shape_embed.weight",
    "Ein": "roc_bert.embeddings.map_inputs_layer.weight",
}


def with_pooler(c: Config, made: Decoder) -> Together:
    """The masked-language head, and a pooler beside it."""
    return Together((pooler(c, made), masked(c, made)))


@encoder(
    "roc_bert",
    stem="RoCBert",
    names=NAMES,
    classes=(
        *(one for one in bert_classes("roc_bert.", BERT_HEAD) if one.role not in (NEXT, PRETRAINING)),
        Class(PRETRAINING, "ForPreTraining", with_pooler, BERT_HEAD | {"Wpool": "roc_bert.pooler.dense.weight"}),
        Class(CAUSAL, "ForCausalLM", masked, BERT_HEAD),
    ),
)
def roc_bert(c: Config) -> Encoder:
    """Su et al. 2022. The causal class sees every token all the same, unless it is told that it is a decoder."""
    for key in ("concat_input", "enable_pronunciation", "enable_shape"):
        c.inert(key, True)
    made = bert_like(c)
    words = made.embedding
    assert isinstance(words, Tables)
    shapes = c.size("shape_vocab_size", 24858), c.size("shape_embed_dim", 512)
    sounds = c.size("pronunciation_vocab_size", 910), c.size("pronunciation_embed_dim", 768)
    embedding = Spelled(words.vocab, words.width, norm=words.norm, tables=words.tables, shapes=shapes, sounds=sounds)
    return replace(made, embedding=embedding)
