"""XLM, FlauBERT and XLNet: encoders whose head shares the words' table (Conneau & Lample 2019; Le et al. 2020)."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp
from assay.blocks.encoders import Encoder, MaskedHead, Pooler, Tables
from assay.blocks.two_streams import DistanceAttention, MaskedEmbedding
from assay.sources.config import Config
from assay.sources.families.common import (
    BASE,
    MASKED,
    SEQUENCE,
    TOKEN,
    Class,
    activation,
    depth,
    labels,
    pre_norm,
    under,
)
from assay.sources.families.encoders import each_label, encoder, norm_of, nothing, post_norm


def word_head(c: Config, made: Decoder) -> MaskedHead:
    """The vocabulary with a bias, the words' table where it is shared."""
    return MaskedHead(made.embedding.vocab, made.width, tied=c.flag("tie_word_embeddings", True))


def first_label(c: Config, made: Decoder) -> Pooler:
    """Labels of the first token."""
    c.inert("summary_type", "first")
    c.inert("summary_proj_to_labels", True)
    c.inert("summary_use_proj", True)
    return Pooler(made.width, labels(c), dense=False)


XLM = under(
    "transformer.",
    {
        "E": "embeddings.weight",
        "E_position": "position_embeddings.weight",
        "E_language": "lang_embeddings.weight",
        "Ge": "layer_norm_emb.weight",
        **{f"W{name}": f"attentions.{{i}}.{name}_lin.weight" for name in "qkv"},
        "Wo": "attentions.{i}.out_lin.weight",
        **dict.fromkeys(("Gt0", "Ga"), "layer_norm1.{i}.weight"),
        **dict.fromkeys(("Gt1", "Gm"), "layer_norm2.{i}.weight"),
        "Wu": "ffns.{i}.lin1.weight",
        "Wd": "ffns.{i}.lin2.weight",
    },
)
_PREDICTIONS = {"Wout": "pred_layer.proj.weight", "Bout": "pred_layer.proj.bias"}
XLM_CLASSES = (
    Class(MASKED, "WithLMHeadModel", word_head, _PREDICTIONS),
    Class(BASE, "Model", nothing, bare=True),
    Class(SEQUENCE, "ForSequenceClassification", first_label, {"Wscore": "sequence_summary.summary.weight"}),
    Class(TOKEN, "ForTokenClassification", each_label, {"Wscore": "classifier.weight"}),
)
_HARMLESS = """
    asm_cutoffs asm_div_value bos_index eos_index pad_index unk_index mask_index lang_id id2lang lang2id embed_init_std
    init_std start_n_top end_n_top summary_type summary_use_proj summary_proj_to_labels layerdrop max_vocab min_count
    sinusoidal_embeddings encoder_only pad_token_id same_enc_dec
""".split()


def xlm_like(c: Config, pre: bool = False) -> Encoder:
    """Words, positions and languages; layers normed behind each sum, four times as wide within."""
    c.rename(hidden_size="emb_dim", num_attention_heads="n_heads", num_hidden_layers="n_layers", n_words="vocab_size")
    for key, value in (("causal", False), ("asm", False), ("is_encoder", True), ("share_inout_emb", True)):
        c.inert(key, value)
    d, heads = c.size("emb_dim", 2048), c.size("n_heads", 16)
    each = c.divides("emb_dim", d, "n_heads", heads)
    c.absent(layer_norm_eps=1e-12)
    norm, rows, languages = norm_of(c), c.size("max_position_embeddings", 512), c.size("n_langs", 1)
    act = "gelu" if c.flag("gelu_activation", True) else "relu"
    mixer = Attention(heads, heads, each, bias="qkvo", sees="all")
    mlp = Mlp(4 * d, gated=False, activation=act, bias="ud")
    tables: tuple[tuple[str, int], ...] = (("position", rows),)
    if c.flag("use_lang_emb", True) and languages > 1:
        tables = (*tables, ("language", languages))
    embedding = Tables(c.size("vocab_size", 30145), d, norm=norm, tables=tables)
    layer = pre_norm(mixer, mlp, norm) if pre else post_norm(mixer, mlp, norm)
    return Encoder(embedding, (layer,) * depth(c, 12, "n_layers"), None, limit=rows, trained=rows)


@encoder("xlm", stem="XLM", names=XLM, classes=XLM_CLASSES, harmless=_HARMLESS)
def xlm(c: Config) -> Encoder:
    """Conneau & Lample 2019."""
    return xlm_like(c)


@encoder("flaubert", stem="Flaubert", names=XLM, classes=XLM_CLASSES, harmless=_HARMLESS)
def flaubert(c: Config) -> Encoder:
    """Le et al. 2020: the larger one has its norms before the sub-layers."""
    return xlm_like(c, c.flag("pre_norm", False))


XLNET = under(
    "transformer.",
    {
        "E": "word_embedding.weight",
        "E_mask": "mask_emb[1 1 d]",
        **under(
            "layer.{i}.",
            {
                "Wq": "rel_attn.q[d (g r) k]",
                "Wk": "rel_attn.k[d g k]",
                "Wv": "rel_attn.v[d g v]",
                "Wo": "rel_attn.o[d (g r) v]",
                "Wdistance": "rel_attn.r[d (g r) k]",
                "Bcontent": "rel_attn.r_w_bias[(g r) k]",
                "Bdistance": "rel_attn.r_r_bias[(g r) k]",
                "Bsegment": "rel_attn.r_s_bias[(g r) k]",
                "Segment": "rel_attn.seg_embed[two (g r) k]",
                "Gt0": "rel_attn.layer_norm.weight",
                "Wu": "ff.layer_1.weight",
                "Wd": "ff.layer_2.weight",
                "Gt1": "ff.layer_norm.weight",
            },
        ),
    },
)
XLNET_CLASSES = (
    Class(MASKED, "LMHeadModel", word_head, {"Wout": "lm_loss.weight", "Bout": "lm_loss.bias"}),
    Class(BASE, "Model", nothing, bare=True),
    Class(TOKEN, "ForTokenClassification", each_label, {"Wscore": "classifier.weight"}),
)


@encoder(
    "xlnet",
    stem="XLNet",
    names=XLNET,
    classes=XLNET_CLASSES,
    harmless="""
        bi_data clamp_len mem_len reuse_len same_length use_mems_eval use_mems_train start_n_top end_n_top
        summary_type summary_use_proj untie_r pad_token_id
    """.split(),
)
def xlnet(c: Config) -> Encoder:
    """Yang et al. 2019: every token sees every token; states of an earlier segment are not read."""
    c.rename(hidden_size="d_model", num_attention_heads="n_head", num_hidden_layers="n_layer", n_token="vocab_size")
    c.inert("attn_type", "bi")
    c.absent(layer_norm_eps=1e-12)
    d, heads = c.size("d_model", 1024), c.size("n_head", 16)
    each = c.divides("d_model", d, "n_head", heads)
    if (c.maybe("d_head") or each) != each:
        c.fail("d_head", f"d_model / n_head, {each}")
    norm = norm_of(c)
    mlp = Mlp(c.size("d_inner", 4096), gated=False, activation=activation(c, "ff_activation", "gelu"), bias="ud")
    layer: Layer = post_norm(DistanceAttention(heads, heads, each, sees="all"), mlp, norm)
    return Encoder(MaskedEmbedding(c.size("vocab_size", 32000), d), (layer,) * depth(c, 24, "n_layer"), None)
