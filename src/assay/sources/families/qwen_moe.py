"""Qwen's mixtures and what keeps their layer: experts in every so many layers, a gated shared one or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.blocks import Attention, Decoder, Mlp
from assay.blocks.moe import Moe, Router
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, heads, rms, rope, stack, under, windows
from assay.sources.families.dense import FULL, SLIDING, biased
from assay.sources.families.experts import (
    LAYER,
    MIXTRAL,
    alike,
    beside,
    layered,
    pool,
    sparse_layers,
    stepped,
    turning,
    window_of,
)

# keys that configs of these families carry over from their dense kin and that nothing reads
CARRIED = ("max_window_layers", "num_nextn_predict_layers", "router_jitter_noise", "use_qk_norm")


def qwen_experts(c: Config, experts: int, k: int, width: int, norm: bool, scores: Router, **shared: Any) -> Moe:
    """Routed experts under Qwen's names; the numbers are the config class's defaults."""
    e, a = pool(c, "num_experts", experts, k)
    router = Router(scores.scores, normalize=c.flag("norm_topk_prob", norm))
    return Moe(e, a, c.size("moe_intermediate_size", width), router, activation=activation(c), **shared)


def experts_in(c: Config, sparse: Sequence[bool], *defaults: Any, **shared: Any) -> Moe | None:
    """The same where a layer is sparse; otherwise the keys say nothing."""
    if any(sparse):
        return qwen_experts(c, *defaults, **shared)
    c.skip("num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob")
    return None


QWEN2 = {**MIXTRAL, **beside("mlp.shared_expert."), **under(LAYER, {"Ws": "mlp.shared_expert_gate.weight[1 d]"})}


@family("qwen2_moe", cls="Qwen2MoeForCausalLM", names=QWEN2, harmless=CARRIED)
def qwen2_moe(c: Config) -> Decoder:
    """Yang et al. 2024: a shared expert behind a gate of its own."""
    d = c.size("hidden_size", 2048)
    h = heads(c, d, 16, 16)
    n = depth(c, 24)
    slides = c.flag("use_sliding_window", False)
    first = c.size("max_window_layers", 28, least=0)
    kinds = windows(c, n, lambda i: SLIDING if slides and i % 2 == 0 and i < first else FULL)
    if SLIDING in kinds and not slides:
        c.fail("use_sliding_window", "true where layer_types has sliding_attention")
    window = window_of(c, kinds, 4096)
    bias = biased(c, "qkv_bias", "qkv", True)
    norm, positions = rms(c), rope(c, h.width)
    mlp = Mlp(c.size("intermediate_size", 5632), activation=activation(c))
    sparse = stepped(c, n, c.size("num_experts", 60, least=0))
    shared = c.size("shared_expert_intermediate_size", 5632, least=0)
    moe = experts_in(c, sparse, 60, 4, 1408, False, Router(), shared=shared, shared_gate=True)

    attention = turning(h, positions, window, positions, bias=bias)
    return stack(c, layered(kinds, sparse, attention, mlp, moe, norm), d, norm, vocab=151936, trained=32768)


@family("qwen3_moe", cls="Qwen3MoeForCausalLM", names=MIXTRAL, harmless=CARRIED)
def qwen3_moe(c: Config) -> Decoder:
    """Yang et al. 2025: norms of queries and keys, no shared expert."""
    c.rename(num_local_experts="num_experts")
    d = c.size("hidden_size", 2048)
    h = heads(c, d, 32, 4)
    n = depth(c, 24)
    norm = rms(c)
    slides = c.flag("use_sliding_window", False)
    window = c.maybe("sliding_window", 4096)
    c.inert("shared_expert_intermediate_size", 0)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=norm,
        positions=rope(c, h.width),
        window=window if slides else None,
    )
    mlp = Mlp(c.size("intermediate_size", 6144), activation=activation(c))
    sparse = stepped(c, n, c.size("num_experts", 128, least=0))
    moe = experts_in(c, sparse, 128, 8, 768, False, Router())

    return stack(c, alike(sparse, attention, mlp, moe, norm), d, norm, vocab=151936, trained=32768)


FLINT = {**MIXTRAL, **beside("mlp.shared_expert."), **under(LAYER, {"Sinks": "self_attn.sinks"})}


@family("flint", cls="FlintForCausalLM", names=FLINT)
def flint(c: Config) -> Decoder:
    """Sigmoid scores, sinks, a shared expert; only layers with a window have positions."""
    d = c.size("hidden_size", 2048)
    h = heads(c, d, 32, 4, 128)
    n = depth(c, 49)
    norm, positions = rms(c), rope(c, h.width)
    bias = biased(c, "attention_bias", "qkvo")
    full = {0, 1, n - 1}
    kinds = windows(c, n, lambda i: FULL if i in full or i % 4 == 1 else SLIDING)
    window = window_of(c, kinds, 513)
    mlp = Mlp(c.size("intermediate_size", 6144), activation=activation(c))
    sparse = stepped(c, n, c.size("num_experts", 256, least=0), (0, 1))
    shared = c.size("shared_expert_intermediate_size", 1024)
    moe = experts_in(c, sparse, 256, 6, 512, True, Router("sigmoid"), shared=shared)

    attention = turning(h, positions, window, bias=bias, qk_norm=norm, sinks=True)
    return stack(c, layered(kinds, sparse, attention, mlp, moe, norm), d, norm, vocab=150144, trained=262144)


@family(
    "mellum",
    cls="MellumForCausalLM",
    names=MIXTRAL,
    harmless=(*CARRIED, "num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types"),
)
def mellum(c: Config) -> Decoder:
    """Qwen3's mixture with windows and positions by the kind of layer."""
    c.rename(num_local_experts="num_experts")
    d = c.size("hidden_size", 2304)
    h = heads(c, d, 32, 4, 128)
    n = depth(c, 28)
    norm = rms(c)
    bias = biased(c, "attention_bias", "qkvo")
    kinds = windows(c, n, lambda _: FULL)
    window = window_of(c, kinds, 1024)
    mlp = Mlp(c.size("intermediate_size", 7168), activation=activation(c))
    sparse = sparse_layers(c, n, lambda _: True)
    moe = qwen_experts(c, 64, 8, 896, True, Router())

    def attention(kind: str) -> Attention:
        slides = kind == SLIDING
        positions = rope(c, h.width, 10000.0 if slides else 500000.0, kind=kind)
        held = window if slides else None
        return Attention(*h, bias=bias, qk_norm=norm, positions=positions, window=held)

    return stack(c, layered(kinds, sparse, attention, mlp, moe, norm), d, norm, vocab=98304, trained=131072)
