"""Mixtral and what keeps its layer: experts in every layer, none shared, scores over all or the chosen."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Norm
from assay.blocks.moe import Moe, Router
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import (
    activation,
    by_kind,
    depth,
    family,
    heads,
    inner_post_norm,
    label,
    layernorm,
    pre_norm,
    rms,
    rope,
    stack,
    under,
    windows,
)
from assay.sources.families.dense import FULL, LLAMA, SLIDING, biased
from assay.sources.families.experts import LAYER, MIXTRAL, beside, packed, pool, window_of


def experts_of(c: Config, default: int, k: int, key: str = "num_local_experts") -> tuple[int, int]:
    """Experts and how many of them a token passes, under the names that most configs have."""
    c.rename(**{"num_experts" if key == "num_local_experts" else "num_local_experts": key})
    return pool(c, key, default, k)


@family("mixtral", cls="MixtralForCausalLM", names=MIXTRAL, harmless=("router_jitter_noise",))
def mixtral(c: Config) -> Decoder:
    """Jiang et al. 2024."""
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32, 8)
    experts, k = experts_of(c, 8, 2)
    attention = Attention(*h, positions=rope(c, h.width, 1e6), window=c.maybe("sliding_window"))
    moe = Moe(experts, k, c.size("intermediate_size", 14336), Router(normalize=True), activation=activation(c))
    norm = rms(c, 1e-5)
    layer = pre_norm(attention, moe, norm)
    return stack(c, (layer,) * depth(c, 32), d, norm, vocab=32000, trained=131072)


PHIMOE = {**MIXTRAL, **under(LAYER, {"Wr": "mlp.router.weight"})}


@family(
    "phimoe",
    cls="PhimoeForCausalLM",
    names=PHIMOE,
    harmless=("original_max_position_embeddings", "expert_dropout"),
)
def phimoe(c: Config) -> Decoder:
    """Abdin et al. 2024; the router is SparseMixer of Liu et al. 2023."""
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32, 8)
    experts, k = experts_of(c, 16, 2)
    if k != 2:
        c.fail("num_experts_per_tok", "2 for this model_type")
    jitter = c.number("router_jitter_noise", 0.01)
    c.skip("input_jitter_noise")  # of training alone
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        positions=rope(c, h.width, 1e6),
        window=c.maybe("sliding_window"),
    )
    router = Router("near-softmax", jitter=jitter)
    moe = Moe(experts, k, c.size("intermediate_size", 6400), router, activation=activation(c))
    norm = layernorm(c, "rms_norm_eps", 1e-5)
    layer = pre_norm(attention, moe, norm)
    bias = c.flag("lm_head_bias", False)
    return stack(c, (layer,) * depth(c, 32), d, norm, vocab=32064, trained=131072, bias=bias)


MINIMAX = {**MIXTRAL, **under(LAYER, {"Cr": "~mlp.e_score_correction_bias"})}


@family(
    "minimax_m2",
    cls="MiniMaxM2ForCausalLM",
    names=MINIMAX,
    harmless=(
        *("router_jitter_noise", "num_mtp_modules", "mtp_transformer_layers", "num_nextn_predict_layers"),
        *("mlp_intermediate_size", "shared_moe_mode"),  # of dense layers and shared experts, which it has none of
    ),
)
def minimax_m2(c: Config) -> Decoder:
    """MiniMax 2025: norms over all heads at once, a correction for the choice."""
    d = c.size("hidden_size", 3072)
    h = heads(c, d, 48, 8, 128)
    experts, k = experts_of(c, 256, 8)
    c.inert("use_qk_norm", True)
    c.inert("qk_norm_type", "per_layer")
    c.inert("scoring_func", "sigmoid")
    c.inert("use_routing_bias", True)
    c.inert("use_mtp", True, False)
    c.inert("shared_intermediate_size", 0)
    c.inert("attn_type_list", [1] * depth(c, 62))
    norm = rms(c)
    turned = c.maybe("rotary_dim")
    if turned is not None and turned > h.width:
        c.fail("rotary_dim", f"at most the width of a head, {h.width}")
    positions = rope(c, h.width, 5e6, 1.0 if turned is None else turned / h.width)
    attention = Attention(*h, qk_norm=norm, qk_norm_over="full", positions=positions)
    router = Router("sigmoid", correction=True, normalize=True)
    moe = Moe(experts, k, c.size("intermediate_size", 1536), router, activation=activation(c))
    layer = pre_norm(attention, moe, norm)
    return stack(c, (layer,) * depth(c, 62), d, norm, vocab=200064, trained=196608)


def olmo_parts(
    c: Config, d: int, norm: Norm, *, n: int, k: int, experts: int, width: int, theta: float
) -> tuple[Attention, Moe]:
    """What OLMoE and FlexOlmo share; the keywords are the config class's defaults."""
    h = heads(c, d, n)
    if h.width * h.query != d:
        c.fail("head_dim", "hidden_size / num_attention_heads for this model_type")
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=norm,
        qk_norm_over="full",
        positions=rope(c, h.width, theta),
    )
    of, chosen_of = experts_of(c, experts, k, "num_experts")
    router = Router(normalize=c.flag("norm_topk_prob", False))
    return attention, Moe(of, chosen_of, c.size("intermediate_size", width), router, activation=activation(c))


@family("olmoe", cls="OlmoeForCausalLM", names=MIXTRAL)
def olmoe(c: Config) -> Decoder:
    """Muennighoff et al. 2024."""
    d = c.size("hidden_size", 2048)
    norm = rms(c, 1e-5)
    attention, moe = olmo_parts(c, d, norm, n=16, k=8, experts=64, width=2048, theta=10000.0)
    layer = pre_norm(_clipped(attention, c), moe, norm)
    return stack(c, (layer,) * depth(c, 16), d, norm, vocab=50304, trained=4096)


def _clipped(attention: Attention, c: Config) -> Attention:
    """The same attention with queries, keys and values held below `clip_qkv`."""
    return replace(attention, clip=c.positive("clip_qkv", 1.0)) if c.has("clip_qkv") else attention


FLEX_OLMO = {
    **MIXTRAL,
    **under(LAYER, {"Gpa": "post_attention_layernorm.weight", "Gpm": "post_feedforward_layernorm.weight"}),
}


@family("flex_olmo", cls="FlexOlmoForCausalLM", names=FLEX_OLMO)
def flex_olmo(c: Config) -> Decoder:
    """Shi et al. 2025: OLMo 2's norms around OLMoE's experts."""
    d = c.size("hidden_size", 4096)
    norm = rms(c)
    attention, moe = olmo_parts(c, d, norm, n=32, k=5, experts=7, width=11008, theta=5e5)
    layer = inner_post_norm(attention, moe, norm)
    return stack(c, (layer,) * depth(c, 32), d, norm, vocab=100352, trained=4096)


GPT_OSS = {
    **LLAMA,
    **under(
        LAYER,
        {
            "Sinks": "self_attn.sinks",
            "Wr": "mlp.router.weight",
            "Eg": "mlp.experts.gate_up_proj[e d (f +)]",
            "Eu": "mlp.experts.gate_up_proj[e d (f +)]",
            "Eg_bias": "mlp.experts.gate_up_proj_bias[e (f +)]",
            "Eu_bias": "mlp.experts.gate_up_proj_bias[e (f +)]",
            "Ed": "mlp.experts.down_proj[e f d]",
            "Ed_bias": "mlp.experts.down_proj_bias[e d]",
        },
    ),
}


@family("gpt_oss", cls="GptOssForCausalLM", names=GPT_OSS, harmless=("initial_context_length",))
def gpt_oss(c: Config) -> Decoder:
    """OpenAI 2025: windows in every other layer, learned sinks, biases everywhere, a clamped activation."""
    d = c.size("hidden_size", 2880)
    h = heads(c, d, 64, 8, 64)
    c.rename(experts_per_token="num_experts_per_tok")
    experts, k = experts_of(c, 128, 4)
    c.inert("hidden_act", "silu")
    bias = biased(c, "attention_bias", "qkvo", True)
    constants = (("alpha", c.positive("swiglu_alpha", 1.702)), ("limit", c.positive("swiglu_limit", 7.0)))
    router = Router("softmax-of-chosen", bias=True)
    width = c.size("intermediate_size", 2880)
    moe = Moe(experts, k, width, router, activation="swiglu_clamp", bias="gud", constants=constants)
    norm, positions = rms(c, 1e-5), rope(c, h.width, 150000.0)
    n = depth(c, 36)
    kinds = windows(c, n, lambda i: FULL if i % 2 else SLIDING)
    window = window_of(c, kinds, 128)

    def layer(kind: str) -> Layer:
        held = window if kind == SLIDING else None
        attention = Attention(*h, bias=bias, positions=positions, window=held, sinks=True)
        return pre_norm(attention, moe, norm, label(kind))

    return stack(c, by_kind(kinds, layer), d, norm, vocab=201088, trained=131072)


ARIA = {
    **LLAMA,
    **packed("mlp.", "router.weight"),
    **under(LAYER, dict.fromkeys(("Eg", "Eu"), "mlp.experts.gate_up_proj[e d +f]")),
    **under(LAYER, {"Ed": "mlp.experts.down_proj[e f d]"}),
    **beside(),
}


@family("aria_text", cls="AriaTextForCausalLM", names=ARIA, harmless=("pretraining_tp",))
def aria_text(c: Config) -> Decoder:
    """Li et al. 2024: routed experts are gated by SiLU, the shared ones by the config's activation."""
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32)
    c.divides("hidden_size", d, "num_attention_heads", h.query)
    experts, k = pool(c, "moe_num_experts", 8, 2, "moe_topk")
    width = c.size("intermediate_size", 4096)
    attention = Attention(*h, bias=biased(c, "attention_bias", "qkvo"), positions=rope(c, h.width))
    moe = Moe(
        experts,
        k,
        width,
        Router("softmax-of-chosen"),
        shared=width * c.size("moe_num_shared_experts", 2, least=0) or None,
        shared_activation=activation(c),
        shared_bias=biased(c, "mlp_bias", "gud"),
    )
    norm = rms(c)
    layer = pre_norm(attention, moe, norm)
    return stack(c, (layer,) * depth(c, 32), d, norm, vocab=32000, trained=2048)
