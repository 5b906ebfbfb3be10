"""ESM-1b and ESM-2 (Rives et al. 2021; Lin et al. 2022): proteins, a layer normed before its parts."""

from __future__ import annotations

from collections.abc import Callable

from assay.blocks import Decoder, Rope
from assay.blocks.encoders import Encoder, MaskedHead, Pooler, Tables, Together
from assay.blocks.sparse_encoders import Contacts
from assay.sources.config import Config
from assay.sources.families.bert_kin import moved
from assay.sources.families.common import BASE, MASKED, SEQUENCE, TOKEN, Class, depth, pre_norm
from assay.sources.families.encoders import (
    DEFAULTS,
    OWN_CLASSIFIER,
    ROBERTA_HEAD,
    dense_attention,
    each_label,
    encoder,
    masked,
    norm_of,
    pooled_labels,
    pooler,
    reach,
    stored,
    two_matrices,
)

_NAMES = stored("esm.", moved(Ga="attention.LayerNorm", Gm="LayerNorm")) | {
    "Ge": "esm.embeddings.layer_norm.weight",
    "Gf": "esm.encoder.emb_layer_norm_after.weight",
    "Wcontact": "esm.contact_head.regression.weight[1 pairs]",
    "Wcontact_bias": "esm.contact_head.regression.bias[one]",
    "Freq": "~esm.rotary_embeddings.inv_freq",
}


def _with_contacts(end: Callable[[Config, Decoder], MaskedHead | Pooler]) -> Callable[[Config, Decoder], Together]:
    """An end, and the regression of contacts that every class stores: a weight for each head of each layer."""
    return lambda c, made: Together((Contacts(made.depth * c.size("num_attention_heads")), end(c, made)))


def _masked(c: Config, made: Decoder) -> MaskedHead:
    return masked(c, made, "gelu", spare=False)


@encoder(
    "esm",
    stem="Esm",
    names=_NAMES,
    classes=(
        Class(MASKED, "ForMaskedLM", _with_contacts(_masked), ROBERTA_HEAD),
        Class(BASE, "Model", _with_contacts(pooler), {"Wpool": "esm.pooler.dense.weight"}, bare=True),
        Class(
            SEQUENCE,
            "ForSequenceClassification",
            _with_contacts(pooled_labels),
            OWN_CLASSIFIER,
        ),
        Class(TOKEN, "ForTokenClassification", _with_contacts(each_label), {"Wscore": "classifier.weight"}),
    ),
    harmless=("vocab_list", "mask_token_id", "esmfold_config"),
)
def esm(c: Config) -> Encoder:
    """Positions are rotated (ESM-2) or looked up (ESM-1b)."""
    own = {name: value for name, value in DEFAULTS.items() if name not in ("vocab_size", "hidden_act")}
    c.absent(**{**own, "hidden_act": "gelu", "max_position_embeddings": 1026, "pad_token_id": 1})
    c.inert("is_decoder", False)
    c.inert("is_folding_model", False)
    c.inert("hidden_act", "gelu")
    d = c.size("hidden_size")
    turned = c.word("position_embedding_type", "absolute", ("absolute", "rotary")) == "rotary"
    c.skip("rope_theta")
    attention = dense_attention(c, d, positions=Rope(theta=c.positive("rope_theta", 10000.0)) if turned else None)
    if turned and attention.head_width % 2:
        c.fail("num_attention_heads", "such that hidden_size / num_attention_heads is even, for rotations turn pairs")
    stored_angles = attention.head_width // 2 if turned else None
    norm = norm_of(c)
    limit = None if turned else reach(c, padded=True)
    rows = () if turned else (("position", c.size("max_position_embeddings")),)
    c.flag("tie_word_embeddings", True)
    offset = None if limit is None else c.size("max_position_embeddings") - limit or None
    # words that are masked are left out, and the others grow by as many as they are
    grown = "0.88 / share of words not masked" if c.flag("token_dropout", False) else None
    before = norm if c.has("emb_layer_norm_before") and c.flag("emb_layer_norm_before", False) else None
    return Encoder(
        Tables(
            c.size("vocab_size"), d, norm=before, tables=rows, frequencies=stored_angles, offset=offset, scale=grown
        ),
        (pre_norm(attention, two_matrices(c), norm),) * depth(c),
        None,
        limit=limit,
        trained=limit or c.size("max_position_embeddings"),
        final=norm,
    )
