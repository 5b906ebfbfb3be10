"""Nemotron: LayerNorm whose gain is stored less one, a squared ReLU, half of each head rotated."""

from __future__ import annotations

from assay.blocks import Decoder, Norm
from assay.sources.config import Config
from assay.sources.families.common import family, pre_norm
from assay.sources.families.dense import LLAMA, Defaults, biased, dense

_NEMOTRON = Defaults(6144, 24576, 32, 48, vocab=256000, trained=4096, partial=0.5, act="relu2")


@family("nemotron", cls="NemotronForCausalLM", names=LLAMA)
def nemotron(c: Config) -> Decoder:
    """Parmar et al. 2024."""
    c.inert("normalization_function", "layernorm1p")
    c.inert("normalization", "layernorm1p")
    norm = Norm("layernorm", "gain+bias", c.positive("norm_eps", 1e-5), unit_offset=True)
    p = dense(c, _NEMOTRON, norm=norm, gated=False, bias=biased(c, "mlp_bias", "ud"))
    return p.repeat(pre_norm(p.attention(bias=biased(c, "attention_bias", "qkvo")), p.mlp, p.norm))
