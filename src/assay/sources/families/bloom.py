"""BLOOM, Falcon and MPT: queries, keys and values in one matrix; distances in place of positions, or rotation."""

from __future__ import annotations

from assay.blocks import Alibi, Attention, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Step
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, layernorm, parallel, pre_norm, rope, stack, under
from assay.sources.families.names import behind, interleaved

PACKED = {
    **interleaved("self_attention.query_key_value"),
    "Wo": "self_attention.dense.weight",
    "Wu": "mlp.dense_h_to_4h.weight",
    "Wd": "mlp.dense_4h_to_h.weight",
}
TABLES = {
    "E": "transformer.word_embeddings.weight",
    "Gf": "transformer.ln_f.weight",
    "Wout": "lm_head.weight",
}
BLOOM = {
    **TABLES,
    "Ge": "transformer.word_embeddings_layernorm.weight",
    **under(
        "transformer.h.{i}.",
        {
            **PACKED,
            "Ga": "input_layernorm.weight",
            "Gs0": "input_layernorm.weight",
            "Gm": "post_attention_layernorm.weight",
            "Gs1": "post_attention_layernorm.weight",
        },
    ),
}


@family(
    "bloom",
    cls="BloomForCausalLM",
    names=BLOOM,
    harmless=(
        *("pretraining_tp", "slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion", "offset_alibi"),
        *("bias_dropout_fusion", "skip_bias_add", "skip_bias_add_qkv", "seq_length"),
    ),
)
def bloom(c: Config) -> Decoder:
    """Le Scao et al. 2022: ALiBi (Press et al. 2021), a norm of the embedding."""
    c.rename(n_embed="hidden_size", num_attention_heads="n_head", num_hidden_layers="n_layer")
    d = c.size("hidden_size", 64)
    h = c.size("n_head", 8)
    attention = Attention(h, h, c.divides("hidden_size", d, "n_head", h), bias="qkvo", positions="alibi")
    c.inert("n_inner", 4 * d)
    mlp = Mlp(4 * d, gated=False, activation="gelu_tanh", bias="ud")
    norm = layernorm(c)
    if c.flag("apply_residual_connection_post_layernorm", False):
        bodies = (Branch(attention),), (Branch(mlp),)
        layer = Layer(tuple(Step(branches, before=norm, onto_normed=True) for branches in bodies))
    else:
        layer = pre_norm(attention, mlp, norm)
    vocab = c.size("vocab_size", 250880)
    return Decoder(
        Embedding(vocab, d, norm=norm),
        (layer,) * depth(c, 2, "n_layer"),
        Head(vocab, d, c.flag("tie_word_embeddings", True), norm=norm),
    )


ONE_NORM = {"Gs0": "input_layernorm.weight"}
ONE_AFTER_THE_OTHER = {"Ga": "input_layernorm.weight", "Gm": "post_attention_layernorm.weight"}
TWO_NORMS = {"Ga": "ln_attn.weight", "Gm": "ln_mlp.weight"}


def falcon_names(norms: dict[str, str]) -> dict[str, str]:
    """The names of a layer's weights, and of the norms that it has."""
    return TABLES | under("transformer.h.{i}.", PACKED | norms)


FALCON = falcon_names(ONE_NORM)


def falcon_groups(c: Config, heads: int, new: bool) -> int:
    """Key/value heads: `num_kv_heads` in the new architecture; in the old one or, without multi_query, all."""
    if new:
        groups = c.maybe("num_kv_heads") or heads
        c.divides("num_attention_heads", heads, "num_kv_heads", groups)
        c.flag("multi_query", True)
        return int(groups)
    if c.flag("multi_query", True):
        c.maybe("num_kv_heads")
        return 1
    c.inert("num_kv_heads", int(heads))
    return heads


def falcon_layer(c: Config, attention: Attention, mlp: Mlp, norm: Norm, new: bool) -> tuple[Layer, dict[str, str]]:
    """The arrangement and the names of its norms: one beside the other with one norm or two, or one after the other."""
    beside = c.flag("parallel_attn", True)
    norms = c.maybe("num_ln_in_parallel_attn")
    if new:
        c.inert("parallel_attn", True)
        c.inert("num_ln_in_parallel_attn", 1, 2)
        if norms != 1:
            return Layer((Step((Branch(attention, norm), Branch(mlp, norm))),)), TWO_NORMS
        return parallel(attention, mlp, norm), ONE_NORM
    if not beside:
        return pre_norm(attention, mlp, norm), ONE_AFTER_THE_OTHER
    if norms == 2:
        c.fail("num_ln_in_parallel_attn", "1 or null where new_decoder_architecture is false")
    return parallel(attention, mlp, norm), ONE_NORM


@family("falcon", cls="FalconForCausalLM", names=FALCON)
def falcon(c: Config) -> Decoder:
    """Almazrouei et al. 2023: both architectures, the 7B's and the 40B's."""
    c.rename(n_embed="hidden_size", n_head="num_attention_heads", n_layer="num_hidden_layers", n_head_kv="num_kv_heads")
    c.inert("apply_residual_connection_post_layernorm", False)
    d = c.size("hidden_size", 4544)
    h = c.size("num_attention_heads", 71)
    k = c.divides("hidden_size", d, "num_attention_heads", h)
    new = c.flag("new_decoder_architecture", False)
    turned = rope(c, k)
    bias = c.flag("bias", False)
    attention = Attention(
        h,
        falcon_groups(c, h, new),
        k,
        bias="qkvo" if bias else "",
        positions=Alibi(k**-0.5, rounded=True) if c.flag("alibi", False) else turned,
    )
    width = c.maybe("ffn_hidden_size") or 4 * d
    c.inert("ff_factor", width / d, width // d)
    mlp = Mlp(
        width,
        gated=False,
        activation=activation(c, "activation", "gelu"),
        bias="ud" if bias else "",
    )
    norm = layernorm(c)
    layer, norms = falcon_layer(c, attention, mlp, norm, new)
    made = stack(c, (layer,) * depth(c, 32), d, norm, vocab=65024, tied=True, trained=2048)
    return replace(made, names=falcon_names(norms))


MPT = {
    "E": "transformer.wte.weight",
    "Gf": "transformer.norm_f.weight",
    "Wout": "lm_head.weight",
    **under(
        "transformer.blocks.{i}.",
        {
            "Ga": "norm_1.weight",
            **behind("attn.Wqkv"),
            "Wo": "attn.out_proj.weight",
            "Gm": "norm_2.weight",
            "Wu": "ffn.up_proj.weight",
            "Wd": "ffn.down_proj.weight",
        },
    ),
}


def mpt_attention(c: Config, width: int, heads: int) -> Attention:
    """`attn_config`: what the public implementation builds of it, and a refusal of what it does not."""
    inner = c.child("attn_config")
    inner.inert("attn_type", "multihead_attention")
    inner.inert("kv_n_heads", int(heads))
    inner.inert("qk_ln", False)
    inner.inert("qk_gn", False)
    inner.inert("alibi", True)
    inner.inert("rope", False)
    inner.inert("prefix_lm", False)
    inner.inert("attn_uses_sequence_id", False)
    inner.inert("sliding_window_size", -1)
    inner.skip("attn_pdrop", "attn_impl", "alibi_bias_max")
    k = c.divides("d_model", width, "n_heads", heads)
    return Attention(
        heads,
        heads,
        k,
        positions="alibi",
        scale=inner.positive("softmax_scale", 1.0) if inner.has("softmax_scale") else None,
        clip=inner.positive("clip_qkv", 1.0) if inner.has("clip_qkv") else None,
    )


@family(
    "mpt",
    cls="MptForCausalLM",
    names=MPT,
    harmless=(
        *("embedding_fraction", "init_config", "init_device", "verbose", "tokenizer_name", "emb_pdrop"),
        *("learned_pos_emb", "norm_type", "fc_type", "use_pad_tok_in_ffn"),
    ),
)
def mpt(c: Config) -> Decoder:
    """MosaicML 2023: ALiBi, no biases, LayerNorm with a gain alone. `learned_pos_emb` yields to ALiBi."""
    c.rename(hidden_size="d_model", num_attention_heads="n_heads", num_hidden_layers="n_layers")
    d = c.size("d_model", 2048)
    h = c.size("n_heads", 16)
    c.inert("no_bias", True)
    c.inert("expansion_ratio", 4)
    c.child("ffn_config").inert("ffn_type", "mptmlp")
    attention = mpt_attention(c, d, h)
    mlp = Mlp(4 * d, gated=False, activation="gelu")
    norm = Norm("layernorm", "gain", c.positive("layer_norm_epsilon", 1e-5))
    vocab = c.size("vocab_size", 50368)
    c.inert("logit_scale")
    return Decoder(
        Embedding(vocab, d),
        (pre_norm(attention, mlp, norm),) * depth(c, 24, "n_layers"),
        Head(vocab, d, c.flag("tie_word_embeddings", True), norm=norm),
        trained=c.size("max_seq_len", 2048),
    )
