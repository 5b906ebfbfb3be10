"""DiffLlama: Llama's layer around differential attention."""

from __future__ import annotations

from assay.blocks import Decoder, Norm
from assay.blocks.differential import DifferentialAttention
from assay.sources.config import Config
from assay.sources.families.common import family, pre_norm, rope, under
from assay.sources.families.dense import LLAMA, Defaults, biased, dense

DIFFLLAMA = {
    **LLAMA,
    **under(
        "model.layers.{i}.self_attn.",
        {
            "Wv1": "v_proj.weight[+(y v) d]",
            "Wv2": "v_proj.weight[+(y v) d]",
            "Bv1": "v_proj.bias[+(y v)]",
            "Bv2": "v_proj.bias[+(y v)]",
            "Lq1": "lambda_q1",
            "Lk1": "lambda_k1",
            "Lq2": "lambda_q2",
            "Lk2": "lambda_k2",
        },
    ),
}


@family("diffllama", cls="DiffLlamaForCausalLM", names=DIFFLLAMA, harmless=("lambda_std_dev",))
def diffllama(c: Config) -> Decoder:
    """Ye et al. 2024, in Llama's clothes: half of the key/value heads lie on each side of the difference."""
    p = dense(c, Defaults(2048, 8192, 16, 32, trained=2048, eps=1e-5))
    h = p.heads
    if h.kv % 2:
        c.fail("num_key_value_heads" if c.has("num_key_value_heads") else "num_attention_heads", "an even number")
    attention = DifferentialAttention(
        *h,
        Norm(affine="none", eps=p.norm.eps),
        biased(c, "attention_bias", "qkvo"),
        rope(c, h.width),
    )
    return p.repeat(pre_norm(attention, p.mlp, p.norm))
