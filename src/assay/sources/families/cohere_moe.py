"""Cohere's mixture: attention and experts side by side behind one norm, full layers without positions."""

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
    parallel,
    rope,
    stack,
    under,
    windows,
)
from assay.sources.families.dense import FULL, SLIDING, biased
from assay.sources.families.experts import LAYER, MIXTRAL, beside, pool, sparse_layers, window_of

COHERE = {**MIXTRAL, **beside(), **under(LAYER, {"Gs0": "input_layernorm.weight"})}


@family("cohere2_moe", cls="Cohere2MoeForCausalLM", names=COHERE)
def cohere2_moe(c: Config) -> Decoder:
    """Cohere 2026: the first `first_k_dense_replace` layers are dense and have a window pattern of their own."""
    d = c.size("hidden_size", 8192)
    h = heads(c, d, 64, head_dim=128)
    n = depth(c, 40)
    norm = Norm("layernorm", "gain", c.positive("layer_norm_eps", 1e-5))
    if c.has("rms_norm_eps"):
        norm = Norm(eps=c.positive("rms_norm_eps", 1e-5))
    bias = biased(c, "attention_bias", "qkvo")
    first = min(n, c.size("first_k_dense_replace", 0, least=0))
    before, after = c.size("prefix_dense_sliding_window_pattern", 1), c.size("sliding_window_pattern", 4)

    def default(i: int) -> str:
        at, every = (i, before) if i < first else (i - first, after)
        return SLIDING if (at + 1) % every else FULL

    kinds = windows(c, n, default)
    window = window_of(c, kinds, 4096)
    sparse = sparse_layers(c, n, lambda i: i >= first)
    positions = rope(c, h.width, style="interleaved")
    width = c.size("intermediate_size", 22528)
    act = activation(c)
    mlp = Mlp(c.maybe("prefix_dense_intermediate_size") or width, activation=act)
    moe = cohere_experts(c, width, act)

    def layer(key: tuple[str, bool]) -> Layer:
        slides, routed = key[0] == SLIDING, key[1]
        turns = slides or (not routed and before == 1)
        attention = Attention(*h, bias=bias, positions=positions if turns else None, window=window if slides else None)
        return parallel(attention, moe if routed else mlp, norm, label(key[0], "experts" if routed else "dense"))

    layers = by_kind(list(zip(kinds, sparse, strict=True)), layer)
    scale = c.positive("logit_scale", 0.0625)
    return stack(c, layers, d, norm, vocab=256000, tied=True, trained=8192, scale=scale)


def cohere_experts(c: Config, width: int, act: str) -> Moe:
    """Scores of the chosen experts alone; shared experts are added, or averaged with the routed ones."""
    scores = c.word("expert_selection_fn", "softmax", ("softmax", "sigmoid"))
    normalize = c.flag("norm_topk_prob", True)
    router = Router("softmax-of-chosen")
    if scores == "sigmoid":
        router = Router("sigmoid-of-chosen", normalize=normalize)
    shared = c.size("num_shared_experts", 0, least=0)
    how = c.word("shared_expert_combination_strategy", "average", ("average", "sum"))
    return Moe(
        *pool(c, "num_experts", 8, 2),
        width,
        router,
        activation=act,
        shared=width * shared or None,
        scale=0.5 if shared and how == "average" else None,
    )
