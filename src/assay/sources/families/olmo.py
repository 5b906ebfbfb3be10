"""OLMo and what moved its norms behind the sub-layers: OLMo 2, OLMo 3, EXAONE 4."""

from __future__ import annotations

from assay.blocks import Decoder, Layer, Norm
from assay.sources.config import Config
from assay.sources.families.common import family, inner_post_norm, pre_norm
from assay.sources.families.dense import (
    FULL,
    LLAMA,
    POST_NORMS,
    SLIDING,
    Defaults,
    biased,
    dense,
    every,
    layer_types,
    window_of,
)

OLMO2 = {**LLAMA, **POST_NORMS}
_OLMO = Defaults(4096, 11008, 32, 32, vocab=50304, trained=2048)
_OLMO2 = Defaults(4096, 11008, 32, 32, vocab=50304, trained=2048, eps=1e-5)


@family("olmo", cls="OlmoForCausalLM", names=LLAMA)
def olmo(c: Config) -> Decoder:
    """Groeneveld et al. 2024: LayerNorm without gain or bias; queries, keys and values may be clipped."""
    p = dense(c, _OLMO, norm=Norm("layernorm", "none", 1e-5))
    clip = c.positive("clip_qkv", 1.0) if c.has("clip_qkv") else None
    return p.repeat(pre_norm(p.attention(bias=biased(c, "attention_bias", "qkvo"), clip=clip), p.mlp, p.norm))


@family("olmo2", cls="Olmo2ForCausalLM", names=OLMO2)
def olmo2(c: Config) -> Decoder:
    """OLMo Team 2025: norms of each sub-layer's output, and of all queries and all keys at once."""
    p = dense(c, _OLMO2)
    attention = p.attention(bias=biased(c, "attention_bias", "qkvo"), qk_norm=p.norm, qk_norm_over="full")
    return p.repeat(inner_post_norm(attention, p.mlp, p.norm))


@family("olmo3", cls="Olmo3ForCausalLM", names=OLMO2)
def olmo3(c: Config) -> Decoder:
    """OLMo 3 (Ai2 2025): three sliding layers to a full one."""
    p = dense(c, Defaults(4096, 11008, 32, 32, vocab=50304, trained=2048, eps=1e-5, theta=500000.0))
    kinds = layer_types(c, every(4, p.depth))
    bias = biased(c, "attention_bias", "qkvo")
    window = window_of(c, kinds)

    def layer(kind: str) -> Layer:
        limit = window if kind == SLIDING else None
        attention = p.attention(kind, bias=bias, qk_norm=p.norm, qk_norm_over="full", window=limit)
        return inner_post_norm(attention, p.mlp, p.norm, kind)

    return p.mixed(kinds, layer)


@family("exaone4", cls="Exaone4ForCausalLM", names=OLMO2)
def exaone4(c: Config) -> Decoder:
    """EXAONE 4.0 (LG AI Research 2025): beside sliding layers, full ones have no positions."""
    p = dense(c, Defaults(4096, 16384, 32, 32, 32, vocab=102400, trained=2048, eps=1e-5))
    slides = c.maybe("sliding_window", 4096) is not None
    kinds = layer_types(c, [FULL] * p.depth if not slides else _pattern(c, p.depth))
    window = window_of(c, kinds)

    def layer(kind: str) -> Layer:
        turned: dict[str, None] = {} if window is None or kind == SLIDING else {"positions": None}
        return inner_post_norm(p.windowed(window, qk_norm=p.norm, **turned)(kind), p.mlp, p.norm, kind)

    return p.mixed(kinds, layer)


def _pattern(c: Config, layers: int) -> list[str]:
    """`sliding_window_pattern`: a period with one full layer at its end, or letters such as LLLG."""
    if isinstance(c.data.get("sliding_window_pattern"), str):
        letters = c.word("sliding_window_pattern", None)
        if not letters or set(letters) - set("LG"):
            c.fail("sliding_window_pattern", "an integer of at least 1, or letters L (local) and G (global)")
        return [SLIDING if letters[i % len(letters)] == "L" else FULL for i in range(layers)]
    return every(c.size("sliding_window_pattern", 4), layers)
