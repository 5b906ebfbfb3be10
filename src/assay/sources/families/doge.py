"""Doge: attention with a mask made of the values, learned gains of the residual stream, product keys for experts."""

from __future__ import annotations

from math import isqrt

from assay.blocks import Body, Branch, Decoder, Layer, Mlp, Step
from assay.blocks.dynamic_mask import DynamicMask, ProductKeys
from assay.sources.config import Config
from assay.sources.families.common import activation, depth, family, heads, rms, rope, stack, under
from assay.sources.families.dense import LLAMA
from assay.sources.families.experts import LAYER, pool

DOGE = {
    **LLAMA,
    **under(
        LAYER,
        {
            "Wt": "self_attn.dt_proj.weight",
            "Bt": "self_attn.dt_proj.bias",
            "At": "self_attn.A",
            "R0": "input_residual",
            "R1": "post_attention_residual",
            "Wrx": "mlp.router_gate.weight[+ka d]",
            "Wrz": "mlp.router_gate.weight[+kb d]",
            "Eu": "mlp.down_embed.weight",
            "Ed": "mlp.up_embed.weight",
        },
    ),
}


@family("doge", cls="DogeForCausalLM", names=DOGE)
def doge(c: Config) -> Decoder:
    """Shi et al. 2024: of the keys that a query sees, it attends to the `keep_window_size` that the values favour."""
    d = c.size("hidden_size", 1024)
    h = heads(c, d, 8)
    norm = rms(c)
    biased = c.flag("attention_bias", False)
    attention = DynamicMask(
        *h,
        bias="qkvo" if biased else "",
        qk_norm=norm,
        positions=rope(c, h.width),
        window=c.maybe("sliding_window"),
        keep=c.size("keep_window_size", 2048),
        mask_bias=biased,
    )
    mlp_bias = "gud" if c.flag("mlp_bias", False) else ""
    act, width = activation(c), c.size("intermediate_size", 2048)
    e, a = pool(c, "num_experts", 16384, 64)
    normalize = c.flag("norm_topk_prob", False)
    mlp: Body = Mlp(width, activation=act, bias=mlp_bias)
    if c.flag("is_moe", False):
        if a > isqrt(e) ** 2:
            c.fail("num_experts_per_tok", f"at most the {isqrt(e) ** 2} pairs of {isqrt(e)} keys")
        mlp = ProductKeys(e, a, isqrt(e), width, act, normalize, mlp_bias)
    layer = Layer(tuple(Step((Branch(body, norm),), gain=True) for body in (attention, mlp)))
    return stack(c, (layer,) * depth(c, 32), d, norm, vocab=32768, trained=2048)
