"""Mistral and its kin: Llama's layer without biases, behind a window in all layers, in some or in none."""

from __future__ import annotations

from typing import Any

from assay.blocks import Decoder
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import family, pre_norm
from assay.sources.families.dense import (
    FULL,
    LLAMA,
    SLIDING,
    Defaults,
    Dense,
    biased,
    dense,
    every,
    layer_types,
    window_of,
)

_MISTRAL = Defaults(4096, 14336, 32, 32, 8, trained=131072)


@family("mistral", cls="MistralForCausalLM", names=LLAMA)
def mistral(c: Config) -> Decoder:
    """Jiang et al. 2023: every layer has the window, if there is one."""
    return _uniform(c, dense(c, _MISTRAL), c.maybe("sliding_window", 4096))


def _uniform(c: Config, p: Dense, window: int | None, **changes: Any) -> Decoder:
    """Layers that are alike: the class reads no `layer_types`, which may only repeat what it does."""
    kind = FULL if window is None else SLIDING
    c.inert("layer_types", [kind] * p.depth)
    return p.repeat(pre_norm(p.attention(window=window, **changes), p.mlp, p.norm, kind))


@family("ministral", cls="MinistralForCausalLM", names=LLAMA)
def ministral(c: Config) -> Decoder:
    """Ministral 8B (Mistral AI 2024): windows by `layer_types`."""
    p = dense(c, _MISTRAL)
    slides = c.maybe("sliding_window", 4096) is not None
    return _by_type(c, p, [SLIDING if slides else FULL] * p.depth, 4096)


_YARN = (
    *(("rope_type", "yarn"), ("rope_theta", 1e6), ("factor", 16.0), ("original_max_position_embeddings", 16384)),
    *(("beta_fast", 32.0), ("beta_slow", 1.0), ("mscale", 1.0), ("mscale_all_dim", 1.0)),
)
_LLAMA3 = (
    *(("rope_type", "llama3"), ("rope_theta", 1e6), ("factor", 16.0), ("original_max_position_embeddings", 8192)),
    *(("low_freq_factor", 1.0), ("high_freq_factor", 4.0)),
)


@family("ministral3", cls="Ministral3ForCausalLM", names=LLAMA)
def ministral3(c: Config) -> Decoder:
    """Ministral 3 (Mistral AI 2025): queries grow with the logarithm of their position."""
    sizes = Defaults(4096, 14336, 34, 32, 8, 128, vocab=131072, trained=262144, eps=1e-5, theta=1e6, derives=False)
    sizes = replace(sizes, scaling=_YARN)
    parameters = c.table("rope_parameters") or c.table("rope_scaling") or {}
    inner = Config(parameters, c.where, f"{c.prefix}rope_parameters.")
    by = inner.number("llama_4_scaling_beta", 0.1)
    temper = None if by is None else ("log", inner.positive("original_max_position_embeddings", 16384), by)
    return _uniform(c, dense(c, sizes), c.maybe("sliding_window"), temper=temper)


@family("cwm", cls="CwmForCausalLM", names=LLAMA)
def cwm(c: Config) -> Decoder:
    """Code World Model (FAIR 2025): the first of every four layers sees all."""
    sizes = Defaults(6144, 21504, 64, 48, 8, 128, vocab=128256, trained=131072, eps=1e-5, theta=1e6, derives=False)
    p = dense(c, replace(sizes, scaling=_LLAMA3), bias=biased(c, "mlp_bias", "gud"))
    return _by_type(c, p, every(4, p.depth, first=True), 8192)


def _by_type(c: Config, p: Dense, derived: list[str], window: int) -> Decoder:
    kinds = layer_types(c, derived)
    attention = p.windowed(window_of(c, kinds, window))
    return p.mixed(kinds, lambda kind: pre_norm(attention(kind), p.mlp, p.norm, kind))
