"""The gated delta rule among attention: Qwen3-Next, Qwen 3.5, Lara, OLMo Hybrid."""

from __future__ import annotations

from collections.abc import Callable

from assay.blocks import Attention, Body, Branch, Decoder, Layer, Mlp, Norm, Step
from assay.blocks.delta import GatedDelta
from assay.blocks.moe import Router
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import (
    activation,
    by_kind,
    depth,
    family,
    heads,
    label,
    pre_norm,
    rms,
    rope,
    stack,
    under,
    windows,
)
from assay.sources.families.dense import LLAMA, POST_NORMS, SLIDING, biased
from assay.sources.families.experts import LAYER, stepped
from assay.sources.families.qwen_moe import QWEN2, qwen_experts
from assay.sources.families.ssm_hybrid import ATTENTION, SCAN, layer_kinds

# one convolution over queries, keys and values
CONVOLVED = {
    **{f"mixer.K{letter}": "conv1d.weight[+(J S) 1 K]" for letter in "qk"},
    "mixer.Kv": "conv1d.weight[+(J H Q) 1 K]",
}
DELTA = {**CONVOLVED, "mixer.Dt": "dt_bias", "mixer.A": "A_log"}
QWEN_DELTA = {**DELTA, "Gmixer": "norm.weight", "mixer.Wo": "out_proj.weight"}
# queries and their gate side by side in each head
GATED = under(LAYER + "self_attn.", {"Wq": "q_proj.weight[(g r +k) d]", "Wz": "q_proj.weight[(g r +v) d]"}) | under(
    LAYER + "self_attn.", {"Bq": "q_proj.bias[(g r +k)]", "Bz": "q_proj.bias[(g r +v)]"}
)
# queries, keys, values and gates of a key head side by side
QWEN3_NEXT = {
    **QWEN2,
    **GATED,
    **under(
        LAYER + "linear_attn.",
        {
            **QWEN_DELTA,
            **{f"mixer.W{letter}": "in_proj_qkvz.weight[(J +S) d]" for letter in "qk"},
            **{f"mixer.W{letter}": "in_proj_qkvz.weight[(J +H Q) d]" for letter in "vz"},
            **{f"mixer.W{letter}": "in_proj_ba.weight[(J +H) d]" for letter in "ba"},
        },
    ),
}
QWEN3_5 = {
    **QWEN3_NEXT,
    **under(
        LAYER + "linear_attn.",
        {
            **{f"mixer.W{letter}": "in_proj_qkv.weight[+(J S) d]" for letter in "qk"},
            "mixer.Wv": "in_proj_qkv.weight[+(J H Q) d]",
            **{f"mixer.W{letter}": f"in_proj_{letter}.weight" for letter in "zba"},
        },
    ),
}
# further prediction modules are left out of the causal model; these stand beside what is read
_HARMLESS = "mtp_num_hidden_layers mtp_use_dedicated_embeddings mamba_ssm_dtype max_window_layers".split()

_NO_DENSE = (*_HARMLESS, "mlp_only_layers", "intermediate_size", "decoder_sparse_step")  # every layer has experts


def interval(c: Config, layers: int, default: int = 4) -> list[str]:
    """`layer_types`, else full attention in every so many layers."""
    every = c.size("full_attention_interval", default)
    return layer_kinds(c, layers, lambda i: SCAN if (i + 1) % every else ATTENTION)


def delta(c: Config, norm: Norm) -> GatedDelta:
    """The gated delta rule in today's words. Raises SourceError for value heads that key heads do not divide."""
    c.absent(linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128)
    keys, values = c.size("linear_num_key_heads"), c.size("linear_num_value_heads")
    c.divides("linear_num_value_heads", values, "linear_num_key_heads", keys)
    return GatedDelta(
        keys,
        values,
        c.size("linear_key_head_dim"),
        c.size("linear_value_head_dim"),
        c.size("linear_conv_kernel_dim", 4),
        norm,
    )


def qwen_attention(c: Config, width: int, norm: Norm, query: int, kv: int) -> Attention:
    """Grouped heads, each with norms and a gate of its output, a quarter of it turned."""
    h = heads(c, width, query, kv, 256)
    c.inert("attn_output_gate", True)
    return Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvoz"),
        qk_norm=norm,
        positions=rope(c, h.width, partial=0.25),
        gate="element",
    )


def qwen(c: Config, attention: Attention, feed: Callable[[int], Body]) -> Decoder:
    """Three layers of the delta rule to one of attention, a feed-forward layer in each."""
    norm = replace(rms(c), unit_offset=True)
    layers, width = depth(c), c.size("hidden_size")
    scan = delta(c, rms(c))
    kinds = interval(c, layers)
    keys = [(kind, feed(i)) for i, kind in enumerate(kinds)]
    sorts = len({body for _, body in keys}) > 1

    def layer(key: tuple[str, Body]) -> Layer:
        words = label(key[0], "" if not sorts else "dense" if isinstance(key[1], Mlp) else "experts")
        return pre_norm(attention if key[0] == ATTENTION else scan, key[1], norm, words)

    return stack(c, by_kind(keys, layer), width, norm)


@family("qwen3_next", cls="Qwen3NextForCausalLM", names=QWEN3_NEXT, harmless=_HARMLESS)
def qwen3_next(c: Config) -> Decoder:
    """Qwen Team 2025: many small experts, and a gated shared one."""
    c.absent(hidden_size=2048, num_hidden_layers=48, vocab_size=151936, max_position_embeddings=32768)
    width, n = c.size("hidden_size"), depth(c)
    attention = qwen_attention(c, width, replace(rms(c), unit_offset=True), 16, 2)
    mlp = Mlp(c.size("intermediate_size", 5632), activation=activation(c))
    sparse = stepped(c, n, c.size("num_experts", 512, least=0))
    if not any(sparse):
        c.skip("moe_intermediate_size", "norm_topk_prob", "num_experts_per_tok")
    shared = c.size("shared_expert_intermediate_size", 512)
    moe = qwen_experts(c, 512, 10, 512, True, Router(), shared=shared, shared_gate=True) if any(sparse) else mlp
    return qwen(c, attention, lambda i: moe if sparse[i] else mlp)


@family("qwen3_5_text", cls="Qwen3_5ForCausalLM", names=QWEN3_5, harmless=(*_HARMLESS, "mlp_only_layers"))
def qwen3_5(c: Config) -> Decoder:
    """Qwen Team 2026, dense."""
    c.absent(hidden_size=4096, num_hidden_layers=32, vocab_size=248320, max_position_embeddings=32768)
    attention = qwen_attention(c, c.size("hidden_size"), replace(rms(c), unit_offset=True), 16, 4)
    mlp = Mlp(c.size("intermediate_size", 12288), activation=activation(c))
    return qwen(c, attention, lambda i: mlp)


@family("qwen3_5_moe_text", cls="Qwen3_5MoeForCausalLM", names=QWEN3_5, harmless=_NO_DENSE)
def qwen3_5_moe(c: Config) -> Decoder:
    """Qwen Team 2026: experts in every layer."""
    c.absent(hidden_size=2048, num_hidden_layers=40, vocab_size=248320, max_position_embeddings=32768)
    attention = qwen_attention(c, c.size("hidden_size"), replace(rms(c), unit_offset=True), 16, 2)
    c.inert("norm_topk_prob", True)
    shared = c.size("shared_expert_intermediate_size", 512)
    moe = qwen_experts(c, 256, 8, 512, True, Router(), shared=shared, shared_gate=True)
    return qwen(c, attention, lambda i: moe)


LARA = {
    **QWEN3_5,
    **under(LAYER + "self_attn.", {"Wq": "q_proj.weight", "Bq": "q_proj.bias"}),
    **under(
        LAYER + "linear_attn.",
        {
            "mixer.Wz": "in_proj_z.weight[+(J H Q) d]",
            **{f"mixer.W{letter}": f"in_proj_{letter}.weight[+(J H) d]" for letter in "ba"},
        },
    ),
}
_PATTERN = (SCAN, SLIDING, SCAN, ATTENTION, SLIDING)


@family("lara_mini", cls="LaraMiniForCausalLM", names=LARA, harmless=_NO_DENSE)
def lara_mini(c: Config) -> Decoder:
    """Lara 4 Mini (Translated 2026): the delta rule, windows with positions, full attention without; experts."""
    c.absent(hidden_size=1024, num_hidden_layers=34, vocab_size=151936, max_position_embeddings=131072)
    c.absent(linear_num_key_heads=8, linear_num_value_heads=16)
    width, n, norm = c.size("hidden_size"), depth(c), rms(c)
    h = heads(c, width, 16, 4, 128)
    kinds = windows(c, n, lambda i: _PATTERN[i % 5], tuple(dict.fromkeys(_PATTERN)))
    window, positions = c.size("sliding_window", 512), rope(c, h.width)
    bias, scan = biased(c, "attention_bias", "qkvo"), delta(c, norm)
    moe = qwen_experts(c, 128, 4, 512, True, Router(), shared=c.size("shared_expert_intermediate_size", 512))

    def layer(kind: str) -> Layer:
        if kind == SCAN:
            return pre_norm(scan, moe, norm, kind)
        slides = kind == SLIDING
        turned, near = (positions, window) if slides else (None, None)
        attention = Attention(*h, bias=bias, qk_norm=norm, positions=turned, window=near)
        return pre_norm(attention, moe, norm, kind)

    return stack(c, by_kind(kinds, layer), width, norm, tied=True)


OLMO_HYBRID = {
    **LLAMA,
    **POST_NORMS,
    "Gm": LAYER + "post_attention_layernorm.weight",
    **under(
        LAYER + "linear_attn.",
        {
            **DELTA,
            **{f"mixer.W{ours}": f"{theirs}_proj.weight" for ours, theirs in zip("qkvabzo", "qkvabgo", strict=True)},
            "Gmixer": "o_norm.weight",
        },
    ),
}


@family(
    "olmo_hybrid",
    cls="OlmoHybridForCausalLM",
    names=OLMO_HYBRID,
    harmless=("linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor"),
)
def olmo_hybrid(c: Config) -> Decoder:
    """OLMo Hybrid (Ai2 2026): OLMo 3's layer for attention, a pre-norm one for the delta rule."""
    c.absent(hidden_size=3840, vocab_size=100352, max_position_embeddings=65536, intermediate_size=11008)
    width, layers, norm = c.size("hidden_size"), depth(c, 32), rms(c)
    h = heads(c, width, 30)
    turned = any(c.has(key) for key in ("rope_theta", "rope_parameters", "rope_scaling"))
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=norm,
        qk_norm_over="full",
        positions=rope(c, h.width) if turned else None,
    )
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c))
    kinds = layer_kinds(c, layers, lambda i: ATTENTION if i % 4 == 3 or (layers < 4 and i == layers - 1) else SCAN)
    for kind in (ATTENTION, SCAN):
        if kind not in kinds:
            c.fail("layer_types", f"a list with at least one {kind}")
    made = {
        ATTENTION: Layer((Step((Branch(attention, None, norm),)), Step((Branch(mlp, None, norm),))), ATTENTION),
        SCAN: pre_norm(olmo_delta(c, width, h.query), mlp, norm, SCAN),
    }
    return stack(c, tuple(made[kind] for kind in kinds), width, norm)


def olmo_delta(c: Config, width: int, query: int) -> GatedDelta:
    """The delta rule with as many heads as attention and keys of three quarters of a head, unless the file says."""
    keys = c.maybe("linear_num_key_heads") or query
    each = c.maybe("linear_key_head_dim") or 3 * width // (4 * keys)
    given = {
        "linear_num_key_heads": keys,
        "linear_num_value_heads": c.maybe("linear_num_value_heads") or query,
        "linear_key_head_dim": each,
        "linear_value_head_dim": c.maybe("linear_value_head_dim") or 2 * each,
    }
    c.data = {**c.data, **given}
    return replace(delta(c, Norm(eps=1e-5)), overshoot=c.flag("linear_allow_neg_eigval", True))
