"""Types with experts whose public implementation is published beside the weights: DeepSeekMoE, Ling and Ring.

Their config classes are not at hand, so no main size has a default here: a config must say it.
"""

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
)
from assay.sources.families.dense import biased
from assay.sources.families.experts import FURTHER, pool
from assay.sources.families.latent import sparse_layers
from assay.sources.families.names import GATED, NORMS, PROJECTIONS, TABLES, behind

_HALVES = (("g", "gate", "f d"), ("u", "up", "f d"), ("d", "down", "d f"))  # letter, name, stored shape
ONE_BY_ONE = {
    "Wr": "mlp.gate.weight",
    "Cr": "~mlp.gate.expert_bias",
    **{f"E{letter}": f"mlp.experts.{{e}}.{name}_proj.weight[{axes}]" for letter, name, axes in _HALVES},
    **{f"S{letter}": f"mlp.shared_experts.{name}_proj.weight" for letter, name, _ in _HALVES},
}
DEEPSEEK = TABLES | under("model.layers.{i}.", NORMS | PROJECTIONS | GATED | ONE_BY_ONE)
BAILING = TABLES | {"E": "model.word_embeddings.weight"}
BAILING |= under(
    "model.layers.{i}.",
    NORMS
    | GATED
    | ONE_BY_ONE
    | behind("attention.query_key_value", biases=True)
    | {
        "Wo": "attention.dense.weight",
        "Gqn": "attention.query_layernorm.weight",
        "Gkn": "attention.key_layernorm.weight",
    },
)


def layered(c: Config, attention: Attention, moe: Moe, norm: Norm, first: int) -> tuple[Layer, ...]:
    """The first layers dense, the others with experts."""
    kinds = sparse_layers(c, depth(c), first, steps=True)
    dense = Mlp(c.size("intermediate_size"), activation=activation(c)) if "dense" in kinds else None
    feed = {"sparse": moe, "dense": dense}
    return by_kind(kinds, lambda kind: pre_norm(attention, feed[kind] or moe, norm, label(kind)))


@family(
    "deepseek",
    cls="DeepseekForCausalLM",
    names=DEEPSEEK,
    harmless=("aux_loss_alpha", "seq_aux", "pretraining_tp", "ep_size"),
)
def deepseek(c: Config) -> Decoder:
    """Dai et al. 2024, arXiv:2401.06066: many small experts, and shared ones side by side."""
    d, norm = c.size("hidden_size"), rms(c)
    h = heads(c, d)
    attention = Attention(*h, bias=biased(c, "attention_bias", "qkvo"), positions=rope(c, h.width))
    inner = c.size("moe_intermediate_size")
    router = Router(c.word("scoring_func", "softmax", ("softmax",)), normalize=c.flag("norm_topk_prob", False))  # type: ignore[arg-type]
    shared = c.maybe("n_shared_experts", least=0)
    moe = Moe(
        *pool(c, "n_routed_experts"),
        inner,
        router,
        activation=activation(c),
        shared=inner * shared if shared else None,
    )
    return stack(c, layered(c, attention, moe, norm, 0), d, norm)


@family(
    "bailing_moe",
    cls="BailingMoeForCausalLM",
    also=("BailingMoeV2ForCausalLM",),
    names=BAILING,
    harmless=(*FURTHER, "router_dtype", "embedding_dropout", "output_dropout", "use_rmsnorm", "max_window_layers"),
)
def bailing_moe(c: Config) -> Decoder:
    """Ling Team 2025, arXiv:2503.05139 and arXiv:2510.22115; the second generation has norms of heads and groups."""
    for key, value in (
        ("norm_head", False),
        ("norm_softmax", False),
        ("use_sliding_window", False),
        ("multi_gate", False),
    ):
        c.inert(key, value)
    c.skip("sliding_window")
    d, norm = c.size("hidden_size"), rms(c)
    h = heads(c, d)
    bias = biased(c, "use_qkv_bias", "qkv") + biased(c, "use_bias", "o")
    normed = norm if c.flag("use_qk_norm", False) else None
    attention = Attention(*h, bias=bias, positions=rope(c, h.width), qk_norm=normed)
    experts, a = pool(c, "num_experts")
    inner = c.size("moe_intermediate_size")
    groups, kept = c.maybe("n_group"), c.maybe("topk_group")
    if groups is not None:
        c.divides("num_experts", experts, "n_group", groups)
    router = Router(
        c.word("score_function", "softmax", ("softmax", "sigmoid")),  # type: ignore[arg-type]
        correction=c.flag("moe_router_enable_expert_bias", False),
        normalize=c.flag("norm_topk_prob", False),
        scale=c.number("routed_scaling_factor", 1.0),
        groups=groups,
        keep_groups=kept if groups is not None else None,
    )
    shared, beside = c.maybe("num_shared_experts", least=0), c.size("moe_shared_expert_intermediate_size", int(inner))
    moe = Moe(
        experts,
        a,
        inner,
        router,
        activation=activation(c),
        shared=beside * shared if shared else None,
    )
    return stack(c, layered(c, attention, moe, norm, 0), d, norm)
