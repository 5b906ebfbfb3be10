"""Command R: attention and MLP side by side behind one LayerNorm without bias, logits scaled."""

from __future__ import annotations

from typing import Any

from assay.blocks import Decoder, Layer, Norm
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import family, parallel, under
from assay.sources.families.dense import LLAMA, SLIDING, Defaults, Dense, biased, dense, every, layer_types, window_of

COHERE = {
    **LLAMA,
    **under(
        "model.layers.{i}.",
        {
            "Gs0": "input_layernorm.weight",
            "Gqn": "self_attn.q_norm.weight[(g r) k]",
            "Gkn": "self_attn.k_norm.weight[g k]",
        },
    ),
}
_COHERE = Defaults(8192, 22528, 40, 64, vocab=256000, trained=8192, theta=500000.0, tied=True, style="interleaved")


def _pieces(c: Config, sizes: Defaults) -> Dense:
    return dense(c, sizes, norm=Norm("layernorm", "gain", c.positive("layer_norm_eps", 1e-5)))


def _ends(c: Config) -> dict[str, Any]:
    return {"scale": c.positive("logit_scale", 0.0625) if c.has("logit_scale") or "logit_scale" not in c.data else None}


@family("cohere", cls="CohereForCausalLM", names=COHERE)
def cohere(c: Config) -> Decoder:
    """Command R (Cohere 2024): queries and keys may be normed, each head with gains of its own."""
    p = _pieces(c, _COHERE)
    normed = {"qk_norm": p.norm, "qk_norm_over": "heads"} if c.flag("use_qk_norm", False) else {}
    return p.repeat(
        parallel(p.attention(bias=biased(c, "attention_bias", "qkvo"), **normed), p.mlp, p.norm), **_ends(c)
    )


@family("cohere2", cls="Cohere2ForCausalLM", names=COHERE, harmless=("_sliding_window_pattern",))
def cohere2(c: Config) -> Decoder:
    """Command R7B (Cohere 2024): sliding layers rotate, the full one at the end of each group has no positions."""
    for key, values in _RELEASED.items():
        c.inert(key, *values)
    p = _pieces(c, replace(_COHERE, theta=10000.0))
    pattern = c.size("sliding_window_pattern", 4)
    c.inert("layer_switch", int(pattern))
    kinds = layer_types(c, every(pattern, p.depth))
    window = window_of(c, kinds)
    bias = biased(c, "attention_bias", "qkvo")

    def layer(kind: str) -> Layer:
        turned = {"window": window} if kind == SLIDING else {"positions": None}
        return parallel(p.attention(bias=bias, **turned), p.mlp, p.norm, kind)

    return p.mixed(kinds, layer, **_ends(c))


# switches of the released configs that the class does not read, at the values that it implements
_RELEASED: dict[str, tuple[Any, ...]] = {
    "use_parallel_block": (True,),
    "use_gated_activation": (True,),
    "use_embedding_sharing": (True,),
    "use_parallel_embedding": (True, False),
    "position_embedding_type": ("rope_gptj",),
    "order_of_interleaved_layers": ("local_attn_first",),
    "rotary_pct": (1.0, 1),
}
