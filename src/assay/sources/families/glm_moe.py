"""GLM-4.5 and what keeps its layer: sigmoid scores with a correction, the best groups first, shared experts."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Mlp
from assay.blocks.moe import Moe
from assay.blocks.multi_token import further_names
from assay.sources.config import Config
from assay.sources.families.common import (
    activation,
    depth,
    family,
    heads,
    pre_norm,
    predicting,
    rms,
    rope,
    stack,
    windows,
)
from assay.sources.families.dense import FULL, SLIDING, biased
from assay.sources.families.experts import FURTHER, LAYER, SHARED, alike, layered, routed, turning, window_of


def first_dense(c: Config, n: int, attention: Attention, moe: Moe, width: int, first: int) -> tuple[Layer, ...]:
    """The first `first_k_dense_replace` layers with a dense MLP, experts in the others."""
    norm = rms(c)
    until = c.size("first_k_dense_replace", first, least=0)
    mlp = Mlp(c.size("intermediate_size", width), activation=activation(c))
    return alike([i >= until for i in range(n)], attention, mlp, moe, norm)


@family("glm4_moe", cls="Glm4MoeForCausalLM", names={**SHARED, **further_names(LAYER)}, harmless=FURTHER)
def glm4_moe(c: Config) -> Decoder:
    """Zeng et al. 2025 (GLM-4.5)."""
    c.rename(num_local_experts="n_routed_experts")
    d = c.size("hidden_size", 4096)
    # the config class's own sizes leave a rest: a head's width is rounded down
    h = heads(c, d, 96, 8, max(1, d // c.size("num_attention_heads", 96)))
    norm = rms(c, 1e-5)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkv"),
        qk_norm=norm if c.flag("use_qk_norm", False) else None,
        positions=rope(c, h.width, partial=0.5),
    )
    moe = routed(c, "n_routed_experts", 128, 8, 1408, ("n_shared_experts", 1))
    layers = first_dense(c, depth(c, 46), attention, moe, 10944, 1)
    made = stack(c, layers, d, norm, vocab=151552, trained=131072)
    return predicting(c, made, pre_norm(attention, moe, norm), norm)


@family("sarvam_moe", cls="Glm4MoeForCausalLM", names=SHARED, harmless=FURTHER)
def sarvam_moe(c: Config) -> Decoder:
    """Sarvam AI's mixture of 30B: GLM's under other names and numbers."""
    c.rename(
        num_local_experts="n_routed_experts",
        num_experts="n_routed_experts",
        num_shared_experts="n_shared_experts",
        use_qkv_bias="attention_bias",
    )
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 64, 4, 64)
    norm = rms(c)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkv"),
        qk_norm=norm if c.flag("use_qk_norm", True) else None,
        positions=rope(c, h.width, 8e6),
    )
    moe = routed(c, "n_routed_experts", 128, 6, 1024, ("n_shared_experts", 1), scale=2.5)
    layers = first_dense(c, depth(c, 19), attention, moe, 8192, 1)
    return stack(c, layers, d, norm, vocab=262144, trained=131072)


@family("solar_open", cls="SolarOpenForCausalLM", names=SHARED, harmless=(*FURTHER, "intermediate_size"))
def solar_open(c: Config) -> Decoder:
    """Solar Open (Upstage 2025): experts in every layer, no norms of queries and keys."""
    c.rename(num_local_experts="n_routed_experts")
    c.inert("first_k_dense_replace", 0)
    c.inert("use_qk_norm", False)
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 64, 8, 128)
    norm = rms(c, 1e-5)
    bias = biased(c, "attention_bias", "qkv")
    attention = Attention(*h, bias=bias, positions=rope(c, h.width, 1e6))
    layer = pre_norm(attention, routed(c, "n_routed_experts", 128, 8, 1280, ("n_shared_experts", 1)), norm)
    return stack(c, (layer,) * depth(c, 48), d, norm, vocab=196608, trained=131072)


@family("dots1", cls="Dots1ForCausalLM", names=SHARED, harmless=FURTHER)
def dots1(c: Config) -> Decoder:
    """Huo et al. 2025 (dots.llm1)."""
    c.rename(num_local_experts="n_routed_experts")
    d = c.size("hidden_size", 4608)
    h = heads(c, d, 32, 32)
    n = depth(c, 62)
    norm, positions = rms(c), rope(c, h.width)
    bias = biased(c, "attention_bias", "qkvo")
    c.inert("moe_layer_freq", 1)
    moe = routed(c, "n_routed_experts", None, None, 1408, ("n_shared_experts", None), norm=False)
    slides = c.maybe("sliding_window", 4096) is not None
    first = c.size("max_window_layers", 62, least=0)
    kinds = windows(c, n, lambda i: SLIDING if slides and i >= first else FULL)
    window = window_of(c, kinds, 4096)
    until = c.size("first_k_dense_replace", 0, least=0)
    mlp = Mlp(c.size("intermediate_size", 10944), activation=activation(c))

    attention = turning(h, positions, window, positions, bias=bias, qk_norm=norm)
    layers = layered(kinds, [i >= until for i in range(n)], attention, mlp, moe, norm)
    return stack(c, layers, d, norm, vocab=152064, trained=2048)
