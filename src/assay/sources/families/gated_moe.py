"""Mixtures whose attention is gated: each head's output, or each element of it, is scaled before its projection."""

from __future__ import annotations

from assay.blocks import Attention, Branch, Decoder, Layer, Mlp, Step
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
    sandwich,
    stack,
    under,
    windows,
)
from assay.sources.families.dense import FULL, SLIDING, biased
from assay.sources.families.experts import (
    CORRECTION,
    LAYER,
    MIXTRAL,
    beside,
    grouped,
    layered,
    packed,
    pool,
    sandwiched,
    sparse_layers,
    turning,
    window_of,
)

AFMOE = {
    **MIXTRAL,
    **beside(),
    **sandwiched("post_attention_layernorm.weight", "pre_mlp_layernorm.weight", "post_mlp_layernorm.weight"),
    **under(
        LAYER,
        {"Wz": "self_attn.gate_proj.weight", "Wr": "mlp.router.gate.weight", "Cr": "mlp.expert_bias"},
    ),
}


@family(
    "afmoe",
    cls="AfmoeForCausalLM",
    names=AFMOE,
    harmless=("load_balance_coeff", "use_grouped_mm"),
)
def afmoe(c: Config) -> Decoder:
    """Arcee 2025 (Trinity): four norms, windows with positions, full layers without."""
    d = c.size("hidden_size", 2048)
    h = heads(c, d, 16, head_dim=128)
    n = depth(c, 32)
    norm, positions = rms(c, 1e-5), rope(c, h.width)
    bias = biased(c, "attention_bias", "qkvo")
    every = c.size("global_attn_every_n_layers", 4)
    kinds = windows(c, n, lambda i: SLIDING if (i + 1) % every else FULL)
    window = window_of(c, kinds, 1024)
    for key, value in (("score_func", "sigmoid"), ("route_norm", True), ("n_group", 1), ("topk_group", 1)):
        c.inert(key, value)
    c.inert("num_expert_groups", 1)
    c.inert("num_limited_groups", 1)
    mlp = Mlp(c.size("intermediate_size", 6144), activation=activation(c))
    width = c.size("moe_intermediate_size", 1408)
    moe = Moe(
        *pool(c, "num_experts", 64, 6),
        width,
        Router("sigmoid", correction=True, normalize=True, scale=c.positive("route_scale", 1.0)),
        activation=activation(c),
        shared=width * c.size("num_shared_experts", 2),
    )
    dense = c.size("num_dense_layers", 1, least=0)

    attention = turning(h, positions, window, bias=bias, qk_norm=norm, gate="element")
    layers = layered(kinds, [i >= dense for i in range(n)], attention, mlp, moe, norm, sandwich)
    scale = float(d) ** 0.5 if c.flag("mup_enabled", False) else None
    return stack(c, layers, d, norm, vocab=200192, trained=16384, embedding_scale=scale)


LAGUNA = {
    **MIXTRAL,
    **beside(),
    **under(LAYER, {"Wz": "self_attn.g_proj.weight", "Cr": "mlp.gate.e_score_correction_bias"}),
}


@family("laguna", cls="LagunaForCausalLM", names=LAGUNA)
def laguna(c: Config) -> Decoder:
    """Poolside 2026: a softplus gate; query heads may differ from layer to layer."""
    d = c.size("hidden_size", 2048)
    n = depth(c, 40)
    norm = rms(c)
    kv, head_width = c.size("num_key_value_heads", 8), c.size("head_dim", 128)
    counts, differ = _heads_of_layers(c, n, kv)
    kinds = windows(c, n, lambda _: FULL)
    window = window_of(c, kinds, 512)
    sparse = sparse_layers(c, n, lambda i: i > 0)
    bias = biased(c, "attention_bias", "qkvo")
    gating = c.data.get("gating", True)
    if gating is not True and gating not in ("per-head", "per-element"):
        c.fail("gating", "true, per-head or per-element")
    c.skip("gating")
    mlp = Mlp(c.size("intermediate_size", 8192), activation=activation(c))
    moe = _laguna_experts(c)
    partial = 1.0 if c.has("rope_parameters") else 0.5

    def layer(key: tuple[str, bool, int]) -> Layer:
        kind, routed, heads_here = key
        slides = kind == SLIDING
        positions = rope(c, head_width, 10000.0 if slides else 5e5, 1.0 if slides else partial, kind=kind)
        attention = Attention(
            heads_here,
            kv,
            head_width,
            bias=bias,
            qk_norm=norm,
            positions=positions,
            window=window if slides else None,
            gate="element" if gating == "per-element" else "head",
            gate_activation="softplus",
        )
        words = label(kind, "experts" if routed else "dense", f"{heads_here} heads" if differ else "")
        return pre_norm(attention, moe if routed else mlp, norm, words)

    layers = by_kind(list(zip(kinds, sparse, counts, strict=True)), layer)
    return stack(c, layers, d, norm, vocab=100352, trained=131072)


def _heads_of_layers(c: Config, n: int, kv: int) -> tuple[list[int], bool]:
    """Query heads of each layer, and whether the config lists them one by one."""
    common = c.size("num_attention_heads", 48)
    fits = f"a positive multiple of num_key_value_heads, {kv}"
    listed = c.sequence("num_attention_heads_per_layer", lambda v: _is_multiple(v, kv), fits, n)
    if listed is None:
        c.divides("num_attention_heads", common, "num_key_value_heads", kv)
    return listed or [common] * n, bool(listed)


def _laguna_experts(c: Config) -> Moe:
    c.inert("moe_apply_router_weight_on_input", False)
    cap = c.number("moe_router_logit_softcapping", 0.0)
    return Moe(
        *pool(c, "num_experts", 256, 8),
        c.size("moe_intermediate_size", 512),
        Router(
            "sigmoid",
            correction=True,
            normalize=True,
            scale=c.positive("moe_routed_scaling_factor", 1.0),
            softcap=cap if cap and cap > 0 else None,
        ),
        activation=activation(c),
        shared=c.size("shared_expert_intermediate_size", 512),
    )


def _is_multiple(value: object, of: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0 and value % of == 0


BEAM = {
    **MIXTRAL,
    **packed(**CORRECTION),
    **sandwiched(
        "post_attention_layernorm.weight", "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"
    ),
    **under(LAYER, {"Wz": "self_attn.gate_proj.weight", "Bz": "self_attn.gate_bias"}),
}


@family("beam", cls="BeamForCausalLM", names=BEAM)
def beam(c: Config) -> Decoder:
    """Four norms; the m-th addition to the residual stream is scaled by 1/sqrt(m), the stream by sqrt((m - 1)/m)."""
    d = c.size("hidden_size", 5120)
    h = heads(c, d, 48, 8, 128)
    n = depth(c, 52)
    norm = rms(c)
    bias = biased(c, "attention_bias", "qkvo")
    kinds = windows(c, n, lambda i: SLIDING if (i + 1) % 6 and i < n - 1 else FULL)
    window = window_of(c, kinds, 512)
    sparse = sparse_layers(c, n, lambda i: i >= 3)
    mlp = Mlp(c.size("intermediate_size", 20480), activation=activation(c))
    e, a = pool(c, "num_experts", 256, 8)
    router = grouped(c, e, a, "num_experts", groups=8, keep=4, scale=2.5)
    moe = Moe(e, a, c.size("moe_intermediate_size", 2560), router, activation=activation(c))
    tables = c.table("rope_parameters")

    def turns(kind: str) -> bool:
        """True where layers of this kind have positions: null in `rope_parameters` marks those without."""
        return kind == SLIDING if tables is None else tables.get(kind, tables) is not None

    def layer(key: tuple[str, bool]) -> Layer:
        kind = key[0]
        attention = Attention(
            *h,
            bias=bias,
            qk_norm=norm,
            positions=rope(c, h.width, kind=kind) if turns(kind) else None,
            temper=None if turns(kind) else ("power", 2048.0, 0.1),
            window=window if kind == SLIDING else None,
            gate="element",
            gate_bias=True,
        )
        steps = (
            Step((Branch(body, norm, norm),), scale="1/sqrt(m)", keep="sqrt((m-1)/m)")
            for body in (attention, moe if key[1] else mlp)
        )
        return Layer(tuple(steps), label(kind, "experts" if key[1] else "dense"))

    layers = by_kind(list(zip(kinds, sparse, strict=True)), layer)
    cap = c.number("final_logit_softcapping", 30.0)
    return stack(c, layers, d, norm, vocab=151936, trained=8192, softcap=cap)
