"""Gemma: scaled embeddings, gains stored less one, tied heads; since Gemma 2 sandwich norms and windows."""

from __future__ import annotations

from typing import Any

from assay.blocks import Decoder, Norm
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import ACTIVATIONS, activation, family, pre_norm, rms, rope, sandwich, under
from assay.sources.families.dense import (
    FULL,
    LLAMA,
    POST_NORMS,
    SLIDING,
    Defaults,
    Dense,
    biased,
    dense,
    every,
    layer_types,
    window_of,
)

GEMMA2 = {**LLAMA, **POST_NORMS, **under("model.layers.{i}.", {"Gm": "pre_feedforward_layernorm.weight"})}
_TANH = "gelu_pytorch_tanh"
_GEMMA = Defaults(3072, 24576, 28, 16, 16, 256, vocab=256000, trained=8192, act=_TANH, tied=True, derives=False)
GEMMA2_SIZES = Defaults(2304, 9216, 26, 8, 4, 256, vocab=256000, trained=8192, act=_TANH, tied=True, derives=False)


def offset_rms(c: Config) -> Norm:
    """RMSNorm whose stored gain is added to one."""
    return replace(rms(c), unit_offset=True)


@family("gemma", cls="GemmaForCausalLM", names=LLAMA)
def gemma(c: Config) -> Decoder:
    """Gemma Team 2024a; `gelu` in its first configs always meant the tanh approximation."""
    c.inert("use_bidirectional_attention", False)
    named = activation(c, "hidden_act", _TANH)
    if c.has("hidden_activation"):
        named = ACTIVATIONS[c.word("hidden_activation", None, ACTIVATIONS)]
    p = dense(c, _GEMMA, norm=offset_rms(c), act="gelu_tanh" if named == "gelu" else named)
    attention = p.attention(bias=biased(c, "attention_bias", "qkvo"))
    return p.repeat(pre_norm(attention, p.mlp, p.norm), embedding_scale=p.width**0.5)


@family("gemma2", cls="Gemma2ForCausalLM", names=GEMMA2, harmless=("hidden_act",))
def gemma2(c: Config) -> Decoder:
    """Gemma Team 2024b: every other layer slides; scores and logits are capped."""
    c.inert("use_bidirectional_attention", False)
    p = dense(c, GEMMA2_SIZES, norm=offset_rms(c), act_key="hidden_activation")
    kinds = layer_types(c, every(2, p.depth))
    attention = p.windowed(window_of(c, kinds), **score_keys(c, p, 50.0))
    return p.mixed(kinds, lambda kind: sandwich(attention(kind), p.mlp, p.norm, kind), **end_keys(c, p, 30.0))


@family("vaultgemma", cls="VaultGemmaForCausalLM", names=GEMMA2, harmless=("hidden_act",))
def vaultgemma(c: Config) -> Decoder:
    """VaultGemma (Google 2025): Gemma 2 without the norms behind the sub-layers."""
    p = dense(c, GEMMA2_SIZES, norm=offset_rms(c), act_key="hidden_activation")
    kinds = layer_types(c, every(2, p.depth))
    attention = p.windowed(window_of(c, kinds), **score_keys(c, p, 50.0))
    return p.mixed(kinds, lambda kind: pre_norm(attention(kind), p.mlp, p.norm, kind), **end_keys(c, p, 30.0))


@family(
    "gemma3_text",
    cls="Gemma3ForCausalLM",
    names=GEMMA2,
    harmless=("hidden_act", "_sliding_window_pattern", "attn_logit_softcapping"),
)
def gemma3(c: Config) -> Decoder:
    """Gemma Team 2025: five sliding layers to a full one, each sort with its own rotation; normed queries and keys."""
    both = c.has("use_bidirectional_attention") and c.flag("use_bidirectional_attention", False)
    sizes = replace(GEMMA2_SIZES, vocab=262208, trained=131072, theta=1e6)
    p = dense(c, sizes, norm=offset_rms(c), act_key="hidden_activation")
    pattern = c.size("sliding_window_pattern", 6)
    kinds = layer_types(c, every(pattern, p.depth))
    positions = {
        FULL: rope(c, p.heads.width, 1e6, kind=FULL),
        SLIDING: rope(c, p.heads.width, 1e4, kind=SLIDING, theta_key="rope_local_base_freq"),
    }
    scores = {**score_keys(c, p, None), "qk_norm": p.norm}
    window = window_of(c, kinds)
    if both and window is not None:
        window //= 2  # to either side

    def attention(kind: str) -> Any:
        return p.windowed(window, **scores, positions=positions[kind])(kind)

    made = p.mixed(kinds, lambda kind: sandwich(attention(kind), p.mlp, p.norm, kind), **end_keys(c, p, None))
    if not both:
        return made
    from assay.blocks.encoders import both_ways

    return both_ways(made)


def score_keys(c: Config, p: Dense, cap: float | None) -> dict[str, Any]:
    """Biases, the scale and the cap of the scores; `cap` is the class's, None where it has none."""
    made: dict[str, Any] = {
        "bias": biased(c, "attention_bias", "qkvo"),
        "scale": c.positive("query_pre_attn_scalar", 256) ** -0.5,
    }
    if cap is not None:
        made["softcap"] = _cap(c, "attn_logit_softcapping", cap)
    return made


def end_keys(c: Config, p: Dense, cap: float | None) -> dict[str, Any]:
    """Embeddings times the root of the width; capped logits."""
    return {"embedding_scale": p.width**0.5, "softcap": _cap(c, "final_logit_softcapping", cap)}


def _cap(c: Config, key: str, default: float | None) -> float | None:
    """A cap, or null; absent is `default`."""
    if key not in c.data:
        c.skip(key)
        return default
    return c.positive(key, 1.0) if c.has(key) else None
