"""GLM-4: half of each head rotates in interleaved pairs, the MLP's gate and up projection lie in one matrix."""

from __future__ import annotations

from assay.blocks import Decoder
from assay.sources.config import Config
from assay.sources.families.common import family, pre_norm, sandwich, under
from assay.sources.families.dense import LLAMA, Defaults, biased, dense
from assay.sources.families.names import gate_and_up

GLM = {
    **LLAMA,
    **under("model.layers.{i}.", gate_and_up("mlp.gate_up_proj")),
}
GLM4 = {
    **GLM,
    **under(
        "model.layers.{i}.",
        {
            "Gpa": "post_self_attn_layernorm.weight",
            "Gm": "post_attention_layernorm.weight",
            "Gpm": "post_mlp_layernorm.weight",
        },
    ),
}
_GLM = Defaults(
    4096,
    13696,
    40,
    32,
    2,
    128,
    vocab=151552,
    trained=131072,
    eps=1.5625e-7,
    partial=0.5,
    style="interleaved",
    derives=False,
)


@family("glm", cls="GlmForCausalLM", names=GLM)
def glm(c: Config) -> Decoder:
    """GLM-4 (Zeng et al. 2024): half of each head rotates; gate and up lie in one matrix."""
    p = dense(c, _GLM)
    return p.repeat(pre_norm(p.attention(bias=biased(c, "attention_bias", "qkv", True)), p.mlp, p.norm))


@family("glm4", cls="Glm4ForCausalLM", names=GLM4)
def glm4(c: Config) -> Decoder:
    """GLM-4-0414 (Z.ai 2025): norms before and after each sub-layer."""
    p = dense(c, _GLM)
    return p.repeat(sandwich(p.attention(bias=biased(c, "attention_bias", "qkv", True)), p.mlp, p.norm))
