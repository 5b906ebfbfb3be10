"""Granite and what keeps its multipliers: of embeddings, of scores, of each sub-layer's output, of logits."""

from __future__ import annotations

from typing import Any

from assay.blocks import Decoder, Layer
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import family, pre_norm, rope, sandwich, under
from assay.sources.families.dense import LLAMA, SLIDING, Defaults, biased, dense, every, layer_types, window_of


@family("granite", cls="GraniteForCausalLM", names=LLAMA)
def granite(c: Config) -> Decoder:
    """Granite 3 (IBM 2024)."""
    p = dense(c, Defaults(4096, 11008, 32, 32), bias=biased(c, "mlp_bias", "gud"))
    attention = p.attention(bias=biased(c, "attention_bias", "qkvo"), scale=c.positive("attention_multiplier", 1.0))
    branch = c.positive("residual_multiplier", 1.0)
    return p.repeat(pre_norm(attention, p.mlp, p.norm, scale=branch), **_ends(c))


def _ends(c: Config) -> dict[str, Any]:
    """Embeddings times a multiplier; logits over another."""
    return {
        "embedding_scale": c.positive("embedding_multiplier", 1.0),
        "scale": 1 / c.positive("logits_scaling", 1.0),
    }


@family("granite_swa", cls="GraniteSWAForCausalLM", names={**LLAMA, "Sinks": "model.layers.{i}.self_attn.sinks"})
def granite_swa(c: Config) -> Decoder:
    """Granite with windows, sinks, and a rotation of each layer's own: a base of 0 is no rotation."""
    sizes = Defaults(2560, 8192, 24, 20, 4, vocab=100352, trained=8192, eps=1e-5, tied=True)
    p = dense(c, sizes, bias=biased(c, "mlp_bias", "gud"))
    kinds = layer_types(c, every(4, p.depth, first=True))
    window = window_of(c, kinds, 128)
    positions = rope(c, p.heads.width)
    bases = c.sequence("layer_rope_theta", _is_base, "a number of at least 0", p.depth)
    bases = [positions.theta] * p.depth if bases is None else bases
    changes = {
        "bias": biased(c, "attention_bias", "qkvo"),
        "scale": c.positive("attention_multiplier", 1.0),
        "sinks": True,
    }
    branch = c.positive("residual_multiplier", 1.0)

    def layer(sort: tuple[str, float]) -> Layer:
        kind, base = sort
        limit = window if kind == SLIDING else None
        turned = replace(positions, theta=float(base)) if base else None
        attention = p.attention(positions=turned, window=limit, **changes)
        return pre_norm(attention, p.mlp, p.norm, kind if base else f"{kind}, no positions", branch)

    return p.mixed(list(zip(kinds, bases, strict=True)), layer, **_ends(c))


def _is_base(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


HYPERCLOVAX = {
    **LLAMA,
    **under("model.layers.{i}.", {"Gpa": "post_norm1.weight", "Gpm": "post_norm2.weight"}),
}


@family("hyperclovax", cls="HyperCLOVAXForCausalLM", names=HYPERCLOVAX)
def hyperclovax(c: Config) -> Decoder:
    """HyperCLOVA X SEED (NAVER 2025): Granite's multipliers and, where switched on, norms behind the sub-layers."""
    p = dense(c, Defaults(4096, 11008, 32, 32), bias=biased(c, "mlp_bias", "gud"))
    scale = c.positive("attention_multiplier", 1.0) if c.has("attention_multiplier") else None
    attention = p.attention(bias=biased(c, "attention_bias", "qkvo"), scale=scale)
    arrange = sandwich if c.flag("use_post_norm", True) else pre_norm
    layer = arrange(attention, p.mlp, p.norm)
    branch = c.positive("residual_multiplier", 1.0)
    layer = replace(layer, steps=tuple(replace(step, scale=branch) for step in layer.steps))
    return p.repeat(
        layer,
        embedding_scale=c.positive("embedding_multiplier", 1.0),
        scale=c.positive("logits_scaling", 1.0),
    )
