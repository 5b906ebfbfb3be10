"""DBRX: grouped queries clipped, a mixture of experts in every layer, LayerNorm without biases."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Embedding, Head, Norm
from assay.blocks.moe import Moe, Router
from assay.sources.config import Config
from assay.sources.families.common import ACTIVATIONS, depth, family, pre_norm, rope, under
from assay.sources.families.names import behind

DBRX = {
    "E": "transformer.wte.weight",
    "Gf": "transformer.norm_f.weight",
    "Wout": "lm_head.weight",
    **under(
        "transformer.blocks.{i}.",
        {
            "Ga": "norm_attn_norm.norm_1.weight",
            **behind("norm_attn_norm.attn.Wqkv"),
            "Wo": "norm_attn_norm.attn.out_proj.weight",
            "Gm": "norm_attn_norm.norm_2.weight",
            "Wr": "ffn.router.layer.weight",
            "Eg": "ffn.experts.mlp.w1[(e f) d]",
            "Eu": "ffn.experts.mlp.v1[(e f) d]",
            "Ed": "ffn.experts.mlp.w2[(e f) d]",
        },
    ),
}


def attention(c: Config, width: int, heads: int) -> Attention:
    """`attn_config`: key/value heads, the limit, theta."""
    inner = c.child("attn_config")
    groups = inner.size("kv_n_heads", 1)
    if heads % groups:
        inner.fail("kv_n_heads", f"a divisor of n_heads, {heads}")
    c.inert("num_key_value_heads", int(groups))
    k = c.divides("d_model", width, "n_heads", heads)
    inner.skip("attn_pdrop")
    turned = rope(c, k, inner.positive("rope_theta", 10000.0))
    limit = inner.positive("clip_qkv", 1.0) if inner.has("clip_qkv") else None
    return Attention(heads, groups, k, positions=turned, clip=limit)


def experts(c: Config, width: int) -> Moe:
    """`ffn_config`: experts, how many a token passes, their width."""
    inner = c.child("ffn_config")
    inner.inert("hidden_size", int(width))
    inner.skip("moe_jitter_eps", "moe_loss_weight")
    known = inner.size("moe_num_experts", 4)
    chosen = inner.size("moe_top_k", 1)
    if chosen > known:
        inner.fail("moe_top_k", f"at most moe_num_experts, {known}")
    inner.inert("moe_normalize_expert_weights", 1.0, 1)
    to_one = "moe_normalize_expert_weights" not in inner.data or inner.has("moe_normalize_expert_weights")
    act = inner.child("ffn_act_fn").word("name", "silu", ACTIVATIONS)
    return Moe(
        known,
        chosen,
        inner.size("ffn_hidden_size", 3584),
        Router("softmax", normalize=to_one),
        activation=ACTIVATIONS[act],
    )


@family("dbrx", cls="DbrxForCausalLM", names=DBRX)
def dbrx(c: Config) -> Decoder:
    """Databricks 2024."""
    c.rename(
        hidden_size="d_model",
        num_attention_heads="n_heads",
        num_hidden_layers="n_layers",
        max_position_embeddings="max_seq_len",
    )
    c.inert("tie_word_embeddings", False)
    d = c.size("d_model", 2048)
    norm = Norm("layernorm", "gain", 1e-5)
    layer = pre_norm(attention(c, d, c.size("n_heads", 16)), experts(c, d), norm)
    vocab = c.size("vocab_size", 32000)
    return Decoder(
        Embedding(vocab, d),
        (layer,) * depth(c, 24, "n_layers"),
        Head(vocab, d, norm=norm),
        trained=c.size("max_seq_len", 2048),
    )
