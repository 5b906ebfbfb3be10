"""Llama 4: chunked layers with positions, full layers without; experts weighed at their input, beside a shared one."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp, Norm
from assay.blocks.moe import Moe, Router
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
from assay.sources.families.dense import FULL, LLAMA, biased
from assay.sources.families.experts import LAYER, is_index, pool

LLAMA4 = {
    **LLAMA,
    **under(
        LAYER + "feed_forward.",
        {
            "Wg": "gate_proj.weight",
            "Wu": "up_proj.weight",
            "Wd": "down_proj.weight",
            "Wr": "router.weight",
            "Eg": "experts.gate_up_proj[e d +f]",
            "Eu": "experts.gate_up_proj[e d +f]",
            "Ed": "experts.down_proj[e f d]",
            "Sg": "shared_expert.gate_proj.weight",
            "Su": "shared_expert.up_proj.weight",
            "Sd": "shared_expert.down_proj.weight",
        },
    ),
}

CHUNKED = "chunked_attention"


@family(
    "llama4_text",
    cls="Llama4ForCausalLM",
    names=LLAMA4,
    harmless=("router_jitter_noise", "for_llm_compressor"),
)
def llama4_text(c: Config) -> Decoder:
    """Meta 2025. A token passes its chosen experts only, whatever an implementation runs."""
    c.rename(num_experts="num_local_experts")
    d = c.size("hidden_size", 5120)
    h = heads(c, d, 40, 8, 128)
    n = depth(c, 48)
    norm = rms(c, 1e-5)
    bias = biased(c, "attention_bias", "qkvo")
    turned = turning(c, n)
    chunk = c.maybe("attention_chunk_size", 8192)
    kinds = windows(c, n, lambda i: CHUNKED if turned[i] and chunk is not None else FULL, (FULL, CHUNKED))
    if CHUNKED in kinds and chunk is None:
        c.fail("attention_chunk_size", "an integer of at least 1 where layers are chunked")
    qk_norm = Norm(affine="none", eps=norm.eps) if c.flag("use_qk_norm", True) else None
    floor, by = c.positive("floor_scale", 8192), c.positive("attn_scale", 0.1)
    tempered = _tempered(c)
    positions = rope(c, h.width, 5e5, style="interleaved")
    act = activation(c)
    mlp = Mlp(c.size("intermediate_size_mlp", 16384), activation=act)
    e, a = pool(c, "num_local_experts", 16, 1)
    width = c.size("intermediate_size", 8192)
    moe = Moe(e, a, width, Router("sigmoid-of-chosen"), activation=act, weigh="input", shared=width)

    def layer(key: tuple[str, bool, bool]) -> Layer:
        kind, turns, sparse = key
        attention = Attention(
            *h,
            bias=bias,
            qk_norm=qk_norm if turns else None,
            norm_late=True,
            positions=positions if turns else None,
            temper=("next_log", floor, by) if tempered and not turns else None,
            chunk=chunk if kind == CHUNKED else None,
        )
        words = label(kind, "" if turns else "no positions", "experts" if sparse else "dense")
        return pre_norm(attention, moe if sparse else mlp, norm, words)

    layers = by_kind(list(zip(kinds, turned, mixed(c, n), strict=True)), layer)
    return stack(c, layers, d, norm, vocab=202048, trained=131072)


def _tempered(c: Config) -> bool:
    """Whether queries of layers without positions grow with their place."""
    said = c.data.get("attn_temperature_tuning", True)
    if not isinstance(said, int):  # older files have a number for true
        c.fail("attn_temperature_tuning", "true or false")
    c.skip("attn_temperature_tuning")
    return bool(said)


def turning(c: Config, n: int) -> list[bool]:
    """Which layers have positions: `no_rope_layers` holds a 1 for these, or every fourth has none."""
    every = c.size("no_rope_layer_interval", 4)
    if c.data.get("no_rope_layers") == []:  # stands for absent
        c.skip("no_rope_layers")
        listed = None
    else:
        listed = c.sequence("no_rope_layers", lambda v: v in (0, 1), "0 or 1", n)
    return [(i + 1) % every != 0 for i in range(n)] if listed is None else [bool(v) for v in listed]


def mixed(c: Config, n: int) -> list[bool]:
    """Which layers have experts: those of `moe_layers`, or every `interleave_moe_layer_step`-th."""
    step = c.size("interleave_moe_layer_step", 1)
    listed = c.sequence("moe_layers", is_index, "indices of layers")
    return [(i + 1) % step == 0 if listed is None else i in listed for i in range(n)]
