"""MiMo-V2: values narrower than keys; windowed layers have sinks and more key/value heads than full ones."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Mlp, Rope
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, heads, rms, rope, stack, under, windows
from assay.sources.families.dense import FULL, SLIDING, biased
from assay.sources.families.experts import (
    CORRECTION,
    FURTHER,
    LAYER,
    MIXTRAL,
    layered,
    packed,
    routed,
    sparse_layers,
    window_of,
)

MIMO = {**MIXTRAL, **packed(**CORRECTION), **under(LAYER, {"Sinks": "self_attn.sinks"})}


@family("mimo_v2_flash", cls="MiMoV2FlashForCausalLM", names=MIMO, harmless=(*FURTHER, "attention_chunk_size"))
def mimo_v2_flash(c: Config) -> Decoder:
    """Xiaomi 2026: values narrower than keys; windowed layers have sinks and twice the key/value heads."""
    c.rename(num_local_experts="n_routed_experts", layernorm_epsilon="rms_norm_eps")
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 64, 4, 192)
    n = depth(c, 48)
    norm = rms(c, 1e-5)
    value = c.size("v_head_dim", 128)
    scale = c.number("attention_value_scale", 0.707)
    bias = biased(c, "attention_bias", "qkv")
    kinds, window = _slides(c, n)
    freq = c.sequence("moe_layer_freq", lambda v: v in (0, 1), "0 for dense, 1 for experts", n)
    sparse = sparse_layers(c, n, lambda i: i > 0 if freq is None else bool(freq[i]))
    mlp = Mlp(c.size("intermediate_size", 16384), activation=activation(c))
    moe = routed(c, "n_routed_experts", 256, 8, 2048, None)
    partial = 1.0 if c.has("rope_parameters") else 0.334
    narrow = 2 * h.kv
    c.inert("swa_num_key_value_heads", narrow)
    c.divides("num_attention_heads", h.query, "swa_num_key_value_heads", narrow)
    for key, of in (("swa_num_attention_heads", h.query), ("swa_head_dim", h.width), ("swa_v_head_dim", value)):
        c.inert(key, int(of))
    c.inert("add_swa_attention_sink_bias", True)
    c.inert("add_full_attention_sink_bias", False)
    c.inert("n_shared_experts", 0)
    base = c.positive("swa_rope_theta", 10000.0)

    def attention(kind: str) -> Attention:
        slides = kind == SLIDING
        return Attention(
            h.query,
            narrow if slides else h.kv,
            h.width,
            value,
            bias=bias,
            positions=windowed_rope(c, h.width, base, partial) if slides else rope(c, h.width, 5e6, partial, kind),
            window=window if slides else None,
            sinks=slides,
            value_scale=scale,
        )

    return stack(c, layered(kinds, sparse, attention, mlp, moe, norm), d, norm, vocab=152576, trained=131072)


def _slides(c: Config, n: int) -> tuple[list[str], int | None]:
    """What each layer sees, and the window of those that see one."""
    bits = c.sequence("hybrid_layer_pattern", lambda v: v in (0, 1), "0 for full, 1 for a window", n)
    full = [i == 0 or (i + 1) % 6 == 0 for i in range(n)] if bits is None else [not bit for bit in bits]
    kinds = windows(c, n, lambda i: FULL if full[i] else SLIDING)
    window = window_of(c, kinds, 129)
    if c.has("sliding_window_size") and window is not None:
        window = c.size("sliding_window_size") + 1
    return kinds, window


def windowed_rope(c: Config, width: int, base: float, partial: float) -> Rope:
    """Positions of windowed layers: older files give their base apart from that of full layers."""
    turned = rope(c, width, base, partial, kind=SLIDING)
    return replace(turned, theta=base) if c.has("swa_rope_theta") else turned
