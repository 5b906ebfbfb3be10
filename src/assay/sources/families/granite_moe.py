"""Granite's mixtures: multipliers everywhere, experts in every layer, a shared MLP where it has a width."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Layer, Norm, Rope
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
from assay.sources.families.dense import FULL, LLAMA, SLIDING, biased
from assay.sources.families.experts import LAYER, packed, window_of
from assay.sources.families.mixtral import experts_of

GRANITE = {
    **LLAMA,
    **packed("block_sparse_moe.", "router.weight"),
    **under(
        LAYER,
        {
            "Sinks": "self_attn.sinks",
            "Sg": "shared_mlp.input_linear.weight[+s d]",
            "Su": "shared_mlp.input_linear.weight[+s d]",
            "Sd": "shared_mlp.output_linear.weight",
        },
    ),
}


def granite_experts(c: Config, shared: bool) -> Moe:
    """Scores of the chosen experts alone; a shared MLP where the family knows one."""
    c.inert("mlp_bias", False)
    c.inert("normalization_function", "rmsnorm")
    experts, k = experts_of(c, 8, 2)
    width = c.size("intermediate_size", 11008)
    beside = c.size("shared_intermediate_size", 0, least=0) if shared else 0
    return Moe(experts, k, width, Router("softmax-of-chosen"), activation=activation(c), shared=beside or None)


def granite_stack(c: Config, layers: tuple[Layer, ...], d: int, norm: Norm) -> Decoder:
    """The stack, with the multipliers of the embedding and the logits."""
    return stack(
        c,
        layers,
        d,
        norm,
        vocab=32000,
        trained=2048,
        embedding_scale=c.positive("embedding_multiplier", 1.0),
        scale=1 / c.positive("logits_scaling", 1.0),
    )


@family("granitemoe", cls="GraniteMoeForCausalLM", names=GRANITE)
def granitemoe(c: Config) -> Decoder:
    """Granite Team 2024."""
    return granite(c, shared=False)


@family("granitemoeshared", cls="GraniteMoeSharedForCausalLM", names=GRANITE)
def granitemoeshared(c: Config) -> Decoder:
    """The same with a shared MLP."""
    return granite(c, shared=True)


def granite(c: Config, shared: bool) -> Decoder:
    """Layers that are all alike."""
    c.inert("position_embedding_type", "rope")
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32)
    norm = rms(c)
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        positions=rope(c, h.width),
        scale=c.positive("attention_multiplier", 1.0),
    )
    layer = pre_norm(attention, granite_experts(c, shared), norm, scale=c.positive("residual_multiplier", 1.0))
    return granite_stack(c, (layer,) * depth(c, 32), d, norm)


@family("granitemoe_swa", cls="GraniteMoeSWAForCausalLM", names=GRANITE)
def granitemoe_swa(c: Config) -> Decoder:
    """The same with windows, sinks, and a rotary base for each layer, 0 for none."""
    c.inert("position_embedding_type", "rope")
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32)
    n = depth(c, 32)
    norm, moe = rms(c), granite_experts(c, True)
    bias = biased(c, "attention_bias", "qkvo")
    scale = c.positive("attention_multiplier", 1.0)
    residual = c.positive("residual_multiplier", 1.0)
    kinds = windows(c, n, lambda i: SLIDING if i % 4 else FULL)
    window = window_of(c, kinds, 128)
    positions = rope(c, h.width)
    listed = c.sequence("layer_rope_theta", _is_base, "a number, 0 for no positions", n)
    bases = [positions.theta] * n if listed is None else listed

    def layer(key: tuple[str, float]) -> Layer:
        turned = Rope(positions.width, key[1], positions.scaling) if key[1] else None
        held = window if key[0] == SLIDING else None
        attention = Attention(*h, bias=bias, positions=turned, window=held, scale=scale, sinks=True)
        return pre_norm(attention, moe, norm, label(key[0], "" if key[1] else "no positions"), residual)

    return granite_stack(c, by_kind(list(zip(kinds, bases, strict=True)), layer), d, norm)


def _is_base(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
