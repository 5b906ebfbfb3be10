"""HRM-Text: two stacks of gated attention, gone through several times (Wang et al. 2025, arXiv:2506.21734)."""

from __future__ import annotations

from assay.blocks import Decoder, Norm
from assay.blocks.looped import Hierarchy
from assay.sources.config import Config
from assay.sources.families.common import family, pre_norm, under
from assay.sources.families.dense import LLAMA, Defaults, biased, dense

_ENDS = {
    "E": "model.embed_tokens.weight",
    "Wout": "lm_head.weight",
    "Start": "model.z_L_init",
}
_LAYER = {
    weight: path.removeprefix("model.layers.{i}.")
    for weight, path in LLAMA.items()
    if path.startswith("model.layers.{i}.")
} | {"Wz": "self_attn.gate_proj.weight", "Bz": "self_attn.gate_proj.bias"}
_STATES = {
    "fast layer": under("model.L_module.layers.{i}.", _LAYER),
    "slow layer": under("model.H_module.layers.{i}.", _LAYER),
}


@family("hrm_text", cls="HrmTextForCausalLM", names=_ENDS, harmless=("L_bp_cycles", "prefix_lm"))
def hrm_text(c: Config) -> Decoder:
    """`num_hidden_layers` counts each run of a layer where `num_layers_per_stack` is there, else a stack's layers."""
    sizes = Defaults(1536, 4096, 16, 12, None, 128, vocab=151808, trained=2048, derives=False)
    norm = Norm(affine="none", eps=c.positive("rms_norm_eps", 1e-6))
    p = dense(c, sizes, norm=norm, bias=biased(c, "mlp_bias", "gud"))
    if p.heads.kv != p.heads.query:
        c.fail("num_key_value_heads", f"num_attention_heads, {p.heads.query}, or null for this model_type")
    slow, fast = c.size("H_cycles", 2, most=1000), c.size("L_cycles", 3, most=1000)
    stack = c.maybe("num_layers_per_stack") or p.depth
    if c.has("num_layers_per_stack") and c.has("num_hidden_layers") and p.depth != stack * slow * (fast + 1):
        c.fail("num_hidden_layers", f"num_layers_per_stack x H_cycles x (L_cycles + 1), {stack * slow * (fast + 1)}")
    attention = p.attention(bias=biased(c, "attention_bias", "qkvoz"), gate="element")
    scale = c.positive("embedding_scale", 1 / c.positive("initializer_range", 0.02))
    made = p.stack((pre_norm(attention, p.mlp, norm),) * (2 * stack), embedding_scale=scale)
    return Hierarchy(
        made.embedding, made.layers, made.head, trained=made.trained, slow=slow, fast=fast, norm=norm, states=_STATES
    )
