"""Phi, StarCoder 2, StableLM, Persimmon: LayerNorm with rotary positions on a part of each head; Phi-3 beside Phi."""

from __future__ import annotations

from assay.blocks import Attention, Decoder, Mlp, Norm
from assay.sources.config import Config
from assay.sources.families.common import (
    activation,
    depth,
    family,
    heads,
    layernorm,
    no_own_width,
    parallel,
    pre_norm,
    rms,
    rope,
    stack,
    under,
)
from assay.sources.families.names import GATED, NORMS, PROJECTIONS, TABLES, behind, gate_and_up, interleaved

_HEAD_NORMS = {"Gqn": "self_attn.q_layernorm.weight", "Gkn": "self_attn.k_layernorm.weight"}

PHI = {
    **TABLES,
    "Gf": "model.final_layernorm.weight",
    **under(
        "model.layers.{i}.",
        NORMS
        | PROJECTIONS
        | _HEAD_NORMS
        | {"Wo": "self_attn.dense.weight", "Wu": "mlp.fc1.weight", "Wd": "mlp.fc2.weight"},
    ),
}


@family("phi", cls="PhiForCausalLM", names=PHI)
def phi(c: Config) -> Decoder:
    """Gunasekar et al. 2023: attention and MLP side by side behind one norm, biases everywhere."""
    d = c.size("hidden_size", 2048)
    h = heads(c, d, 32)
    norm = layernorm(c, "layer_norm_eps")
    normed = c.flag("qk_layernorm", False)
    if normed:
        no_own_width(c, d, h)
    attention = Attention(*h, bias="qkvo", qk_norm=norm if normed else None, positions=rope(c, h.width, partial=0.5))
    mlp = Mlp(c.size("intermediate_size", 8192), gated=False, activation=activation(c, default="gelu_new"), bias="ud")
    layers = (parallel(attention, mlp, norm),) * depth(c, 24)
    return stack(c, layers, d, norm, vocab=51200, trained=2048, bias=True)


PHI3 = TABLES | under(
    "model.layers.{i}.",
    {
        "Ga": "input_layernorm.weight",
        **behind("self_attn.qkv_proj"),
        "Wo": "self_attn.o_proj.weight",
        "Gm": "post_attention_layernorm.weight",
        **gate_and_up("mlp.gate_up_proj"),
        "Wd": "mlp.down_proj.weight",
    },
)


@family("phi3", cls="Phi3ForCausalLM", names=PHI3, harmless=("original_max_position_embeddings",))
def phi3(c: Config) -> Decoder:
    """Abdin et al. 2024: Llama's layer with packed projections, no biases, perhaps a window on every layer."""
    for key in ("attention_bias", "mlp_bias", "lm_head_bias"):
        c.inert(key, False)
    for key in ("full_attn_mod", "interpolate_factor"):
        c.inert(key, 1)
    d = c.size("hidden_size", 3072)
    h = heads(c, d, 32)
    c.absent(original_max_position_embeddings=4096)
    turned = rope(c, h.width, older=dict.fromkeys(("su", "yarn"), "longrope"))
    attention = Attention(*h, positions=turned, window=c.maybe("sliding_window"))
    norm = rms(c, 1e-5)
    layer = pre_norm(attention, Mlp(c.size("intermediate_size", 8192), activation=activation(c)), norm)
    return stack(c, (layer,) * depth(c, 32), d, norm, vocab=32064, trained=4096)


STARCODER2 = TABLES | under(
    "model.layers.{i}.", NORMS | PROJECTIONS | {"Wu": "mlp.c_fc.weight", "Wd": "mlp.c_proj.weight"}
)


@family(
    "starcoder2",
    cls="Starcoder2ForCausalLM",
    names=STARCODER2,
    harmless=(
        *("activation_function", "layer_norm_epsilon", "attention_softmax_in_fp32"),
        "scale_attention_softmax_in_fp32",
    ),
)
def starcoder2(c: Config) -> Decoder:
    """Lozhkov et al. 2024."""
    c.inert("mlp_type", "default")
    c.inert("norm_type", "layer_norm")
    c.inert("scale_attn_weights", True)
    d = c.size("hidden_size", 3072)
    h = heads(c, d, 24, 2)
    bias = c.flag("use_bias", True)
    attention = Attention(*h, bias="qkvo" if bias else "", positions=rope(c, h.width), window=c.maybe("sliding_window"))
    mlp = Mlp(
        c.size("intermediate_size", 12288),
        gated=False,
        activation=activation(c, default="gelu_pytorch_tanh"),
        bias="ud" if bias else "",
    )
    norm = layernorm(c, "norm_epsilon")
    layers = (pre_norm(attention, mlp, norm),) * depth(c, 30)
    return stack(c, layers, d, norm, vocab=49152, tied=True, trained=4096)


# a norm for each head, each a tensor of its own
STABLELM = TABLES | under(
    "model.layers.{i}.",
    NORMS
    | PROJECTIONS
    | GATED
    | {"Gqn": "self_attn.q_layernorm.norms.{g r}.weight[k]", "Gkn": "self_attn.k_layernorm.norms.{g}.weight[k]"},
)


@family("stablelm", cls="StableLmForCausalLM", names=STABLELM, harmless=("rotary_scaling_factor",))
def stablelm(c: Config) -> Decoder:
    """Bellagente et al. 2024: Llama's layer with LayerNorm and a quarter of each head rotated."""
    c.rename(rope_pct="partial_rotary_factor", norm_eps="layer_norm_eps")
    d = c.size("hidden_size", 2560)
    h = heads(c, d, 32, 32)
    no_own_width(c, d, h)
    norm = layernorm(c, "layer_norm_eps")
    eps = norm.eps
    attention = Attention(
        *h,
        bias="qkv" if c.flag("use_qkv_bias", False) else "",
        qk_norm=Norm("layernorm", "gain", eps) if c.flag("qk_layernorm", False) else None,
        qk_norm_over="heads",
        positions=rope(c, h.width, partial=0.25),
    )
    mlp = Mlp(c.size("intermediate_size", 6912), activation=activation(c))
    arranged = parallel if c.flag("use_parallel_residual", False) else pre_norm
    layers = (arranged(attention, mlp, norm),) * depth(c, 32)
    return stack(c, layers, d, norm, vocab=50304, trained=4096)


PERSIMMON = {
    **TABLES,
    "Gf": "model.final_layernorm.weight",
    **under(
        "model.layers.{i}.",
        NORMS
        | _HEAD_NORMS
        | interleaved("self_attn.query_key_value")
        | {
            "Wo": "self_attn.dense.weight",
            "Wu": "mlp.dense_h_to_4h.weight",
            "Wd": "mlp.dense_4h_to_h.weight",
        },
    ),
}


@family("persimmon", cls="PersimmonForCausalLM", names=PERSIMMON)
def persimmon(c: Config) -> Decoder:
    """Elsen et al. 2023: normed queries and keys, squared ReLU, biases everywhere but at the head."""
    d = c.size("hidden_size", 4096)
    h = c.size("num_attention_heads", 64)
    k = c.divides("hidden_size", d, "num_attention_heads", h)
    c.inert("num_key_value_heads", int(h))
    norm = layernorm(c, "layer_norm_eps")
    attention = Attention(
        h,
        h,
        k,
        bias="qkvo",
        qk_norm=norm if c.flag("qk_layernorm", True) else None,
        positions=rope(c, k, partial=0.5),
    )
    mlp = Mlp(c.size("intermediate_size", 16384), gated=False, activation=activation(c, default="relu2"), bias="ud")
    layers = (pre_norm(attention, mlp, norm),) * depth(c, 36)
    return stack(c, layers, d, norm, vocab=262144, trained=16384)
