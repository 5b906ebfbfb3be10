"""Gated linear recurrences among windows: RecurrentGemma."""

from __future__ import annotations

import math

from assay.blocks import Attention, Body, Decoder, Mlp
from assay.blocks.linear import GatedLru
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, heads, pre_norm, rms, rope, stack, under
from assay.sources.families.experts import LAYER
from assay.sources.families.mamba import share

GRIFFIN = {
    "E": "model.embed_tokens.weight",
    "Gf": "model.final_norm.weight",
    "Wout": "lm_head.weight",
    **under(
        LAYER,
        {
            "Ga": "temporal_pre_norm.weight",
            "Gm": "channel_pre_norm.weight",
            **{f"W{letter}": f"temporal_block.{letter}_proj.weight" for letter in "qkvo"},
            "mixer.Wz": "temporal_block.linear_y.weight",
            "mixer.Bz": "temporal_block.linear_y.bias",
            "mixer.Wx": "temporal_block.linear_x.weight",
            "mixer.Bx": "temporal_block.linear_x.bias",
            "mixer.Kx": "temporal_block.conv_1d.weight",
            "mixer.Lx": "temporal_block.conv_1d.bias",
            "mixer.Wi": "temporal_block.rg_lru.input_gate_weight[J I O]",
            "mixer.Bi": "temporal_block.rg_lru.input_gate_bias[J O]",
            "mixer.Wr": "temporal_block.rg_lru.recurrent_gate_weight[J I O]",
            "mixer.Br": "temporal_block.rg_lru.recurrent_gate_bias[J O]",
            "mixer.A": "temporal_block.rg_lru.recurrent_param",
            "mixer.Wo": "temporal_block.linear_out.weight",
            "mixer.Bo": "temporal_block.linear_out.bias",
            "Wg": "mlp_block.gate_proj.weight",
            "Wu": "mlp_block.up_proj.weight",
            "Wd": "mlp_block.down_proj.weight",
        },
    ),
}


@family(
    "recurrent_gemma",
    cls="RecurrentGemmaForCausalLM",
    names=GRIFFIN,
    harmless=("w_init_variance_scale", "final_w_init_variance_scale", "layer_types", "layers_block_type"),
)
def recurrent_gemma(c: Config) -> Decoder:
    """Botev et al. 2024, arXiv:2404.07839 (Griffin, De et al. 2024): two recurrent layers to one of a window."""
    c.inert("embeddings_scale_by_sqrt_dim", True)
    c.inert("power", 8, 8.0)  # of the gate, the paper's c
    c.rename(_block_types="block_types", sliding_window="attention_window_size")
    width, layers = c.size("hidden_size", 2560), depth(c, 26)
    norm = replace(rms(c), unit_offset=True)
    c.absent(num_attention_heads=10)
    h = heads(c, width)
    inner = c.maybe("lru_width") or width
    share(c, "num_attention_heads", inner, "lru_width")
    act = activation(c, "hidden_activation", "gelu_pytorch_tanh")
    bodies: dict[str, Body] = {
        "attention": Attention(
            *h,
            bias="qkvo" if c.flag("attention_bias", False) else "o",
            positions=rope(c, h.width, partial=0.5),
            window=c.size("attention_window_size", 2048),
        ),
        "recurrent": GatedLru(inner, h.query, c.size("conv1d_width", 4), act),
    }
    listed = c.sequence("block_types", lambda v: v in bodies, f"one of {', '.join(bodies)}")
    if listed == []:
        c.fail("block_types", "a list with at least one item")
    pattern = listed or ["recurrent", "recurrent", "attention"]
    both = c.size("intermediate_size", 7680, least=2)
    if both % 2:
        c.fail("intermediate_size", "an even number: the widths of gate and up matrix together")
    mlp = Mlp(both // 2, True, act, "gud")
    kinds = [pattern[i % len(pattern)] for i in range(layers)]
    made = by_kind(kinds, lambda kind: pre_norm(bodies[kind], mlp, norm, kind))
    cap = c.number("logits_soft_cap", 30.0)
    return stack(c, made, width, norm, vocab=256000, tied=True, embedding_scale=math.sqrt(width), softcap=cap)
