"""Llama and what keeps its layer: pre-norm, RMSNorm, grouped queries, rotary positions, a gated MLP."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Mlp
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, heads, pre_norm, rms, rope, stack, under

LLAMA = {
    "E": "model.embed_tokens.weight",
    "Gf": "model.norm.weight",
    "Wout": "lm_head.weight",
    **under(
        "model.layers.{i}.",
        {
            "Ga": "input_layernorm.weight",
            "Wq": "self_attn.q_proj.weight",
            "Wk": "self_attn.k_proj.weight",
            "Wv": "self_attn.v_proj.weight",
            "Wo": "self_attn.o_proj.weight",
            "Gm": "post_attention_layernorm.weight",
            "Wg": "mlp.gate_proj.weight",
            "Wu": "mlp.up_proj.weight",
            "Wd": "mlp.down_proj.weight",
        },
    ),
}


@family("llama", cls="LlamaForCausalLM", names=LLAMA, harmless=("pretraining_tp",))
def llama(c: Config) -> Decoder:
    """Touvron et al. 2023; Llama 3 Team 2024."""
    d = c.size("hidden_size", 4096)
    h = heads(c, d, 32)
    bias = "qkvo" if c.flag("attention_bias", False) else ""
    attention = Attention(h.query, h.kv, h.width, bias=bias, positions=rope(c, h.width))
    mlp = Mlp(
        c.size("intermediate_size", 11008), activation=activation(c), bias="gud" if c.flag("mlp_bias", False) else ""
    )
    norm = rms(c)
    layer = pre_norm(attention, mlp, norm)
    return stack(c, (layer,) * depth(c, 32), d, norm, vocab=32000, trained=2048)
