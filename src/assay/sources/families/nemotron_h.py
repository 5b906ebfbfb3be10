"""Nemotron-H: each layer one mixer, of state space, attention, a feed-forward layer or experts."""

from __future__ import annotations

from typing import Any

from assay.blocks import Attention, Body, Branch, Decoder, Layer, Mlp, Step
from assay.blocks.moe import LatentMoe, Moe
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, family, heads, label, rms, stack, under
from assay.sources.families.experts import LAYER, grouped, pool
from assay.sources.families.mamba import HARMLESS, MAMBA2, mamba2_mixer
from assay.sources.families.ssm_hybrid import ATTENTION, OLD_KINDS, SCAN

NEMOTRON_H = {
    "E": "model.embeddings.weight",
    "Gf": "model.norm_f.weight",
    "Wout": "lm_head.weight",
    "Ga": LAYER + "norm.weight",
    "Gm": LAYER + "norm.weight",
    **under(
        LAYER + "mixer.",
        {
            **MAMBA2,
            **{f"W{letter}": f"{letter}_proj.weight" for letter in "qkvo"},
            "Wu": "up_proj.weight",
            "Wd": "down_proj.weight",
            "Wr": "gate.weight",
            "Cr": "~gate.e_score_correction_bias",
            "Eu": "experts.up_proj[e f d]",
            "Ed": "experts.down_proj[e d f]",
            "Su": "shared_experts.up_proj.weight",
            "Sd": "shared_experts.down_proj.weight",
            "Wlin": "fc1_latent_proj.weight",
            "Blin": "fc1_latent_proj.bias",
            "Wlup": "fc2_latent_proj.weight",
            "Blup": "fc2_latent_proj.bias",
        },
    ),
}
NEMOTRON_H_LATENT = {
    **NEMOTRON_H,
    "Eu": LAYER + "mixer.experts.up_proj[e f z]",
    "Ed": LAYER + "mixer.experts.down_proj[e z f]",
}
_LETTERS = {"M": SCAN, "*": ATTENTION, "-": "mlp", "E": "moe"}
# older keys of the scan, and the layers that predict further tokens, which no forward pass of the model runs
_OLDER = {"mamba_n_groups": "n_groups", "mamba_d_conv": "conv_kernel", "mamba_conv_bias": "use_conv_bias"}
_UNREAD = """
    num_nextn_predict_layers mtp_layers_block_type mtp_hybrid_override_pattern num_logits_to_keep expand
    mamba_expand time_step_rank rope_theta partial_rotary_factor rope_parameters moe_shared_expert_overlap
""".split()


def nemotron_kinds(c: Config) -> list[str]:
    """A kind a layer: a list of words, or a letter for each."""
    kinds = tuple(_LETTERS.values())
    if c.has("hybrid_override_pattern") and not c.has("layers_block_type") and not c.has("layer_types"):
        pattern = c.word("hybrid_override_pattern", None)
        if not pattern or set(pattern) - _LETTERS.keys():
            c.fail("hybrid_override_pattern", f"a letter for each layer, of {' '.join(_LETTERS)}")
        made = [_LETTERS[letter] for letter in pattern]
    else:
        c.skip("hybrid_override_pattern")
        c.rename(layers_block_type="layer_types")
        known = (*kinds, *OLD_KINDS)
        listed = c.sequence("layer_types", lambda v: v in known, f"one of {', '.join(known)}")
        made = [OLD_KINDS.get(k, k) for k in listed] if listed else [SCAN, "moe", ATTENTION, "mlp"]
    c.inert("num_hidden_layers", len(made))
    return made


@family("nemotron_h", cls="NemotronHForCausalLM", names=NEMOTRON_H, harmless=(*HARMLESS, *_UNREAD))
def nemotron_h(c: Config) -> Decoder:
    """NVIDIA 2025, arXiv:2504.03624: each layer one mixer: Mamba-2, attention without positions, an MLP, experts."""
    c.absent(hidden_size=4096, vocab_size=131072, max_position_embeddings=4096, intermediate_size=21504)
    c.absent(mamba_num_heads=128, mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4)
    c.rename(**_OLDER, attention_head_dim="head_dim", rms_norm_eps="layer_norm_epsilon")
    width, norm = c.size("hidden_size"), rms(c, 1e-5, "layer_norm_epsilon")
    h = heads(c, width, 32, 8, 128)
    c.inert("attention_bias", False)
    c.inert("sliding_window")
    c.inert("mamba_proj_bias", False)
    scan = mamba2_mixer(
        c,
        "mamba_num_heads",
        "mamba_head_dim",
        "ssm_state_size",
        "n_groups",
        "conv_kernel",
        norm,
        act="mamba_hidden_act",
    )
    least = c.positive("mamba_dt_min" if c.has("mamba_dt_min") else "time_step_min", 0.001)
    scan = replace(scan, least=least, most=None)  # the one bound that the implementation heeds
    act = activation(c, "mlp_hidden_act", "relu2")
    bias = c.flag("mlp_bias", False)
    bodies: dict[str, Body] = {
        SCAN: scan,
        ATTENTION: Attention(*h),
        "mlp": Mlp(c.size("intermediate_size"), False, act, "ud" if bias else ""),
        "moe": nemotron_experts(c, act, bias),
    }
    kinds = nemotron_kinds(c)
    made = by_kind(kinds, lambda kind: Layer((Step((Branch(bodies[kind], norm),)),), label(kind)))
    names = NEMOTRON_H_LATENT if isinstance(bodies["moe"], LatentMoe) else NEMOTRON_H
    return replace(stack(c, made, width, norm), names=names)


def nemotron_experts(c: Config, act: str, bias: bool) -> Moe:
    """Experts of two matrices, beside a shared one of a width of its own; perhaps in a latent."""
    c.rename(num_local_experts="n_routed_experts")
    experts, k = pool(c, "n_routed_experts", 8, 2)
    c.skip("n_shared_experts")  # their width is given whole
    sizes: dict[str, Any] = {
        "experts": experts,
        "chosen": k,
        "width": c.size("moe_intermediate_size", 7688),
        "router": grouped(c, experts, k, "n_routed_experts"),
        "gated": False,
        "activation": act,
        "shared": c.size("moe_shared_expert_intermediate_size", 7688),
        "shared_bias": "ud" if bias else "",
    }
    latent = c.maybe("moe_latent_size")
    return Moe(**sizes) if latent is None else LatentMoe(**sizes, latent=latent, latent_bias=bias)
