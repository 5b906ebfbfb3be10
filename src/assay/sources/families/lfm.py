"""Liquid's models: gated short convolutions among attention."""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks import Attention, Body, Branch, Decoder, Layer, Mlp, Norm, Step
from assay.blocks.moe import Moe, Router
from assay.blocks.recurrent import ShortConv
from assay.sources.config import Config, Read
from assay.sources.families.common import by_kind, depth, family, heads, label, pre_norm, rms, rope, stack, under
from assay.sources.families.dense import biased
from assay.sources.families.experts import LAYER, chosen, packed, window_of
from assay.sources.families.ssm_hybrid import ATTENTION, layer_kinds

CONV, SLIDING = "conv", "sliding_attention"


def names(attention: Mapping[str, str]) -> dict[str, str]:
    """Names of the convolution's, the feed-forward layer's and the norms' weights, and those of attention."""
    own = {
        **{f"mixer.W{letter}": "conv.in_proj.weight[+I d]" for letter in "BCx"},
        **{f"mixer.B{letter}": "conv.in_proj.bias[+I]" for letter in "BCx"},
        "mixer.Kx": "conv.conv.weight",
        "mixer.Lx": "conv.conv.bias",
        "mixer.Wo": "conv.out_proj.weight",
        "mixer.Bo": "conv.out_proj.bias",
        "Wg": "feed_forward.w1.weight",
        "Wu": "feed_forward.w3.weight",
        "Wd": "feed_forward.w2.weight",
        "Ga": "operator_norm.weight",
        "Gm": "ffn_norm.weight",
        "Gpa": "post_operator_norm.weight",
        "Gpm": "post_ffn_norm.weight",
        **under("self_attn.", {**{f"W{letter}": f"{letter}_proj.weight" for letter in "qkv"}, **attention}),
    }
    ends = {"E": "model.embed_tokens.weight", "Gf": "model.embedding_norm.weight", "Wout": "lm_head.weight"}
    return {**ends, **under(LAYER, own)}


LFM2 = names({"Wo": "out_proj.weight", "Gqn": "q_layernorm.weight", "Gkn": "k_layernorm.weight"})
LFM2_MOE = {**LFM2, **packed("feed_forward.", Cr="~expert_bias")}
# how the first checkpoints were made
_OLDER = """
    block_mlp_init_scale block_out_init_scale block_norm_eps block_use_xavier_init conv_use_xavier_init
    full_attn_idxs theta
""".split()


def older(c: Config, width: int) -> None:
    """Keys of the first checkpoints, which say what others say."""
    c.rename(tie_embedding="tie_word_embeddings", num_heads="num_attention_heads")
    for key in ("block_dim", "conv_dim", "conv_dim_out"):
        c.inert(key, int(width))
    c.inert("block_use_swiglu", True)
    c.inert("use_pos_enc", True)


def attention_of(c: Config, width: int, norm: Norm) -> Attention:
    """Grouped heads with norms of queries and keys."""
    h = heads(c, width, 32, 8)
    return Attention(*h, qk_norm=norm, positions=rope(c, h.width, 1e6))


@family("lfm2", cls="Lfm2ForCausalLM", names=LFM2, harmless=_OLDER)
def lfm2(c: Config) -> Decoder:
    """Amini et al. 2025, arXiv:2511.23404: dense."""
    c.absent(hidden_size=2560, vocab_size=65536, max_position_embeddings=128000)
    c.rename(block_ff_dim="intermediate_size")
    width, layers, norm = c.size("hidden_size"), depth(c, 32), rms(c, 1e-5, "norm_eps")
    older(c, width)
    conv = ShortConv(width, c.size("conv_L_cache", 3), c.flag("conv_bias", False))
    places = c.sequence("full_attn_idxs", lambda v: type(v) is int and 0 <= v < layers, "indices of layers")
    kinds = layer_kinds(c, layers, lambda i: ATTENTION if places is None or i in places else CONV, (ATTENTION, CONV))
    bodies: dict[str, Body] = {CONV: conv, ATTENTION: attention_of(c, width, norm)}
    mlp = Mlp(lfm2_width(c))
    made = by_kind(kinds, lambda kind: pre_norm(bodies[kind], mlp, norm, kind))
    return stack(c, made, width, norm, tied=True)


def lfm2_width(c: Config) -> int:
    """Two thirds of the width given, times a factor, rounded up to a multiple, unless the file calls it final."""
    width = c.size("intermediate_size", 12288)
    by, multiple = c.number("block_ffn_dim_multiplier", 1.0), c.size("block_multiple_of", 256)
    if not c.flag("block_auto_adjust_ff_dim", True):
        return width
    if by is not None and by <= 0:
        c.fail("block_ffn_dim_multiplier", "a number above 0")
    inner = 2 * width // 3
    if by is None:
        return inner
    thirds = f"⌊2·{width.key}/3⌋"
    scaled = thirds if by == 1 else f"{c.path('block_ffn_dim_multiplier')}·{thirds}"
    made = -(-int(by * inner) // int(multiple)) * int(multiple)
    return Read(made, f"⌈{scaled}/{multiple.key}⌉·{multiple.key}")


@family("lfm2_moe", cls="Lfm2MoeForCausalLM", names=LFM2_MOE, harmless=_OLDER)
def lfm2_moe(c: Config) -> Decoder:
    """Liquid AI 2025: the same with experts in all but the first layers."""
    c.absent(hidden_size=2048, vocab_size=65536, max_position_embeddings=128000)
    width, layers, norm = c.size("hidden_size"), depth(c, 32), rms(c, 1e-5, "norm_eps")
    older(c, width)
    if not c.has("layer_types"):
        c.fail("layer_types", f"a list of {int(layers)} items, each one of {ATTENTION}, {CONV}")
    kinds = layer_kinds(c, layers, lambda i: CONV, (ATTENTION, CONV))
    experts = c.size("num_experts", 32)
    router = Router(
        "sigmoid",
        correction=c.flag("use_expert_bias", True),
        normalize=c.flag("norm_topk_prob", True),
        scale=c.number("routed_scaling_factor", 1.0),
    )
    k = chosen(c, "num_experts_per_tok", 4, experts, "num_experts")
    moe = Moe(experts, k, c.size("moe_intermediate_size", 1792), router)
    first = c.size("num_dense_layers", 2, least=0)
    mlp = Mlp(c.size("intermediate_size", 7168))
    conv = ShortConv(width, c.size("conv_L_cache", 3), c.flag("conv_bias", False))
    bodies: dict[str, Body] = {CONV: conv, ATTENTION: attention_of(c, width, norm)}

    def layer(key: tuple[str, bool]) -> Layer:
        return pre_norm(bodies[key[0]], mlp if key[1] else moe, norm, label(key[0], "dense" if key[1] else "experts"))

    return stack(c, by_kind([(kind, i < first) for i, kind in enumerate(kinds)], layer), width, norm, tied=True)


LFM3 = names({"Wo": "o_proj.weight", "Gqn": "q_norm.weight", "Gkn": "k_norm.weight", "Wz": "g_proj.weight"})


@family("lfm3", cls="Lfm3ForCausalLM", names=LFM3)
def lfm3(c: Config) -> Decoder:
    """Liquid AI 2026: windows between full attention, norms of each sub-layer's output, a gate for each head."""
    c.absent(hidden_size=2048, vocab_size=128000, max_position_embeddings=128000)
    c.rename(rms_norm_eps="norm_eps")
    width, layers, norm = c.size("hidden_size"), depth(c, 24), rms(c, 1e-5, "norm_eps")
    c.rename(tie_embedding="tie_word_embeddings")

    def derived(i: int) -> str:
        return ATTENTION if i % 4 == 2 else SLIDING if i % 4 == 0 and i > 0 else CONV

    kinds = layer_kinds(c, layers, derived, (ATTENTION, SLIDING, CONV))
    window, h = window_of(c, kinds, 256), heads(c, width, 16, 4, 128)
    bias, gated = biased(c, "attention_bias", "qkvo"), c.flag("use_attention_gate", True)

    def attention(kind: str) -> Attention:
        full = kind == ATTENTION
        return Attention(
            *h,
            bias=bias,
            qk_norm=norm,
            positions=rope(c, h.width, 1e6 if full else 1e4, 0.5 if full else 1.0, kind),
            window=None if full else window,
            gate="head" if gated else None,
        )

    conv = ShortConv(width, c.size("conv_L_cache", 7), c.flag("conv_bias", False))
    mlp, after = Mlp(c.size("intermediate_size", 7680)), norm if c.flag("use_sandwich_norm", True) else None

    def layer(kind: str) -> Layer:
        mixer = conv if kind == CONV else attention(kind)
        return Layer((Step((Branch(mixer, norm, after),)), Step((Branch(mlp, norm, after),))), label(kind))

    return stack(c, by_kind(kinds, layer), width, norm, tied=True)
