"""MiMo-V2: values narrower than keys; windowed layers have sinks and more key/value heads than full ones."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, heads, pre_norm, rms, rope, stack, under, windows
from assay.sources.families.experts import (
    CORRECTION,
    FURTHER,
    LAYER,
    MIXTRAL,
    each,
    label,
    packed,
    routed,
    sparse_layers,
    window_of,
)

MIMO = {**MIXTRAL, **packed(**CORRECTION), **under(LAYER, {"Sinks": "self_attn.sinks"})}


@family("mimo_v2_flash", cls="MiMoV2FlashForCausalLM", names=MIMO, harmless=FURTHER)
def mimo_v2_flash(c: Config) -> Decoder:
    """Xiaomi 2026: values narrower than keys; windowed layers have sinks and twice the key/value heads."""
    c.rename(num_local_experts="n_routed_experts")
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 64, 4, 192)
    n = depth(c, 48)
    norm = rms(c, 1e-5)
    value = c.size("v_head_dim", 128)
    scale = c.number("attention_value_scale", 0.707)
    bias = "qkv" if c.flag("attention_bias", False) else ""
    kinds = windows(c, n, lambda i: "sliding_attention" if i and (i + 1) % 6 else "full_attention")
    window = window_of(c, kinds, 129)
    if c.has("sliding_window_size") and window is not None:
        window = c.size("sliding_window_size") + 1
    sparse = sparse_layers(c, n, lambda i: i > 0)
    mlp = Mlp(c.size("intermediate_size", 16384), activation=activation(c))
    moe = routed(c, "n_routed_experts", 256, 8, 2048, None)
    partial = 1.0 if c.has("rope_parameters") else 0.334

    def layer(key: tuple[str, bool]) -> Layer:
        slides = key[0] == "sliding_attention"
        groups = 2 * h.kv if slides else h.kv
        if h.query % groups:
            c.fail("num_key_value_heads", "a divisor of num_attention_heads, doubled where layers have a window")
        attention = Attention(
            h.query,
            groups,
            h.width,
            value,
            bias=bias,
            positions=rope(c, h.width, 10000.0 if slides else 5e6, partial, kind=key[0]),
            window=window if slides else None,
            sinks=slides,
            value_scale=scale,
        )
        return pre_norm(attention, moe if key[1] else mlp, norm, label(key[0], "experts" if key[1] else "dense"))

    return stack(c, each(list(zip(kinds, sparse, strict=True)), layer), d, norm, vocab=152576, trained=131072)
