"""Types whose public implementation is published beside the weights: Baichuan, Qwen, ChatGLM, MiniCPM,
InternLM2.

Their config classes are not at hand, so no main size has a default here: a config must say it.
"""

from __future__ import annotations

import math

from assay.blocks import Attention, Decoder, Embedding, Head, Mlp, Norm, Rope
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, heads, pre_norm, rms, rope, stack, under
from assay.sources.families.dense import biased
from assay.sources.families.names import GATED, NORMS, PROJECTIONS, TABLES, behind, gate_and_up, interleaved

BAICHUAN_2 = 125_696  # the second generation's tokens (Yang et al. 2023, table 2); the first has 64,000
BAICHUAN = TABLES | under(
    "model.layers.{i}.",
    NORMS
    | GATED
    | {
        **behind("self_attn.W_pack"),
        "Wo": "self_attn.o_proj.weight",
    },
)


@family(
    "baichuan",
    cls="BaichuanForCausalLM",
    names=BAICHUAN,
    harmless=("_from_model_config", "model_max_length"),
)
def baichuan(c: Config) -> Decoder:
    """Yang et al. 2023: Llama's layer, one matrix for queries, keys and values; the 13B's has ALiBi.

    The two are told apart by `max_position_embeddings`, which only the rotary one has. The second generation, with
    its own vocabulary or the weight of its loss of z, divides each row of the head by its length.
    """
    d = c.size("hidden_size")
    h = c.size("num_attention_heads")
    k = c.divides("hidden_size", d, "num_attention_heads", h)
    c.inert("num_key_value_heads", int(h))
    rotary = c.has("max_position_embeddings")
    attention = Attention(h, h, k, positions=rope(c, k) if rotary else "alibi")
    norm = rms(c)
    layer = pre_norm(attention, Mlp(c.size("intermediate_size"), activation=activation(c)), norm)
    made = stack(c, (layer,) * depth(c), d, norm)
    second = c.has("z_loss_weight") or c.size("vocab_size") >= BAICHUAN_2
    c.skip("z_loss_weight")
    if second:
        made = replace(made, head=replace(made.head, unit_rows=True))
    return made if rotary else replace(made, trained=c.maybe("model_max_length"))


QWEN = {
    "E": "transformer.wte.weight",
    "Gf": "transformer.ln_f.weight",
    "Wout": "lm_head.weight",
    **under(
        "transformer.h.{i}.",
        {
            "Ga": "ln_1.weight",
            **behind("attn.c_attn", biases=True),
            "Wo": "attn.c_proj.weight",
            "Gm": "ln_2.weight",
            "Wg": "mlp.w2.weight",
            "Wu": "mlp.w1.weight",
            "Wd": "mlp.c_proj.weight",
        },
    ),
}


@family(
    "qwen",
    cls="QWenLMHeadModel",
    names=QWEN,
    harmless="""
        attn_dropout_prob emb_dropout_prob bf16 fp16 fp32 onnx_safe use_flash_attn
        bias_dropout_fusion params_dtype tokenizer_type softmax_in_fp32 use_cache_kernel rotary_emb_base
    """.split(),
)
def qwen(c: Config) -> Decoder:
    """Bai et al. 2023: biases on queries, keys and values; `intermediate_size` holds the gate's half too.

    Beyond `seq_length`, the trained length, rotations slow down (`use_dynamic_ntk`) and queries grow with the
    logarithm of how many tokens they see (`use_logn_attn`).
    """
    c.rename(
        n_embd="hidden_size",
        n_head="num_attention_heads",
        n_layer="num_hidden_layers",
        n_positions="max_position_embeddings",
        ffn_hidden_size="intermediate_size",
        padded_vocab_size="vocab_size",
        rotary_pct="partial_rotary_factor",
    )
    for key, value in (("activation", "swiglu"), ("pos_emb", "rotary"), ("scale_attn_weights", True)):
        c.inert(key, value)
    for key in ("apply_residual_connection_post_layernorm", "use_cache_quantization"):
        c.inert(key, False)
    c.inert("n_inner")
    d = c.size("hidden_size")
    h = c.size("num_attention_heads")
    k = c.size("kv_channels", 128)
    bias = not c.flag("no_bias", True)
    positions = rope(c, k, theta_key="rotary_emb_base")
    trained = c.maybe("seq_length")
    grows, tempers = (c.flag(key, True) and trained is not None for key in ("use_dynamic_ntk", "use_logn_attn"))
    if grows and trained is not None and positions.scaling is None:
        positions = replace(
            positions, scaling=(("rope_type", "dynamic_doubled"), ("max_position_embeddings", int(trained)))
        )
    attention = Attention(
        h,
        h,
        k,
        bias="qkvo" if bias else "qkv",
        positions=positions,
        temper=("lengths", float(trained), 1.0) if tempers and trained is not None else None,
    )
    both = c.size("intermediate_size")
    if both % 2:
        c.fail("intermediate_size", "even: the gate and the other half together")
    norm = Norm(eps=c.positive("layer_norm_epsilon", 1e-6))
    layer = pre_norm(attention, Mlp(both // 2, bias="gud" if bias else ""), norm)
    return stack(c, (layer,) * depth(c), d, norm)


CHATGLM = under(
    "transformer.",
    {
        "E": "embedding.word_embeddings.weight",
        "Freq": "~rotary_pos_emb.inv_freq",
        "Gf": "encoder.final_layernorm.weight",
        "Wout": "output_layer.weight",
        **under(
            "encoder.layers.{i}.",
            {
                "Ga": "input_layernorm.weight",
                **behind("self_attention.query_key_value", biases=True),
                "Wo": "self_attention.dense.weight",
                "Gm": "post_attention_layernorm.weight",
                **gate_and_up("mlp.dense_h_to_4h", biases=True),
                "Wd": "mlp.dense_4h_to_h.weight",
            },
        ),
    },
)
CHATGLM_PER_HEAD = CHATGLM | under(
    "transformer.encoder.layers.{i}.",
    interleaved("self_attention.query_key_value"),
)


def glm_attention(c: Config, bias: bool) -> Attention:
    """Queries of `num_attention_heads`, keys and values of `multi_query_group_num` heads, half of each rotated."""
    h = c.size("num_attention_heads")
    groups = int(c.size("multi_query_group_num", 1))
    if not c.flag("multi_query_attention", False):
        groups = h
    if h % groups:
        c.fail("multi_query_group_num", f"a divisor of num_attention_heads, {h}")
    k = c.size("kv_channels", 128)
    if k % 4:
        c.fail("kv_channels", "a multiple of 4: pairs of one half of it are rotated")
    given = biased(c, "add_qkv_bias", "qkv")
    turned = Rope(k // 2, 10000.0 * c.positive("rope_ratio", 1.0), style="interleaved")
    return Attention(h, groups, k, bias="qkvo" if bias else given, positions=turned)


@family(
    "chatglm",
    cls="ChatGLMModel",  # which holds the head
    also=("ChatGLMForConditionalGeneration",),
    names=CHATGLM,
    harmless="""
        apply_query_key_layer_scaling attention_softmax_in_fp32 bias_dropout_fusion fp32_residual_connection
        prefix_projection
    """.split(),
)
def chatglm(c: Config) -> Decoder:
    """GLM Team 2024, from the second generation on; the first has keys of its own, which are refused."""
    c.rename(num_layers="num_hidden_layers", vocab_size="padded_vocab_size")
    c.inert("apply_residual_connection_post_layernorm", False)
    c.inert("original_rope", True)
    c.inert("interleaved_qkv", False)
    c.inert("quantization_bit", 0)
    c.inert("pre_seq_len")
    d = c.size("hidden_size")
    bias = c.flag("add_bias_linear", False)
    attention = glm_attention(c, bias)
    plain = c.flag("rmsnorm", True)
    norm = Norm(
        "rmsnorm" if plain else "layernorm", "gain" if plain else "gain+bias", c.positive("layernorm_epsilon", 1e-5)
    )
    layer = pre_norm(attention, Mlp(c.size("ffn_hidden_size"), bias="gud" if bias else ""), norm)
    vocab = c.size("padded_vocab_size")
    last = norm if c.flag("post_layer_norm", True) else None
    packed = attention.heads != attention.kv_heads or c.flag("multi_query_attention", False)
    return Decoder(
        Embedding(vocab, d, frequencies=attention.head_width // 4),
        (layer,) * depth(c),
        Head(vocab, d, c.flag("tie_word_embeddings", False), norm=last),
        trained=c.maybe("seq_length"),
        names=CHATGLM if packed else CHATGLM_PER_HEAD,
    )


MINICPM = TABLES | under("model.layers.{i}.", NORMS | PROJECTIONS | GATED)


@family("minicpm", cls="MiniCPMForCausalLM", names=MINICPM, harmless=("mup_denominator", "pretraining_tp"))
def minicpm(c: Config) -> Decoder:
    """Hu et al. 2024: Llama's layer with multipliers of the embedding, the branches and the logits."""
    c.inert("sparse_config")
    d = c.size("hidden_size")
    h = heads(c, d)
    attention = Attention(*h, bias=biased(c, "attention_bias", "qkvo"), positions=rope(c, h.width))
    count = depth(c)
    norm = rms(c)
    branch = c.positive("scale_depth", 1.0) / math.sqrt(count)
    layer = pre_norm(attention, Mlp(c.size("intermediate_size"), activation=activation(c)), norm, scale=branch)
    return stack(
        c,
        (layer,) * count,
        d,
        norm,
        tied=True,
        embedding_scale=c.positive("scale_emb", 1.0),
        scale=c.positive("dim_model_base", 1.0) / d,
    )


INTERNLM2 = {
    "E": "model.tok_embeddings.weight",
    "Gf": "model.norm.weight",
    "Wout": "output.weight",
    **under(
        "model.layers.{i}.",
        {
            "Ga": "attention_norm.weight",
            **interleaved("attention.wqkv"),
            "Wo": "attention.wo.weight",
            "Gm": "ffn_norm.weight",
            "Wg": "feed_forward.w1.weight",
            "Wu": "feed_forward.w3.weight",
            "Wd": "feed_forward.w2.weight",
        },
    ),
}


@family("internlm2", cls="InternLM2ForCausalLM", names=INTERNLM2, harmless=("attn_implementation", "pretraining_tp"))
def internlm2(c: Config) -> Decoder:
    """Cai et al. 2024, arXiv:2403.17297: Llama's layer, one matrix for each group's queries, key and value."""
    d, norm = c.size("hidden_size"), rms(c)
    h = heads(c, d)
    attention = Attention(*h, bias=biased(c, "bias", "qkvo"), positions=rope(c, h.width))
    layer = pre_norm(attention, Mlp(c.size("intermediate_size"), activation=activation(c)), norm)
    return stack(c, (layer,) * depth(c), d, norm)
