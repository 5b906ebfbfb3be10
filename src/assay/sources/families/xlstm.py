"""xLSTM: matrices as memory."""

from __future__ import annotations

from assay.blocks import Decoder, Embedding, Head, Mlp, Norm
from assay.blocks.linear import MatrixLstm
from assay.sources.config import Config, Read
from assay.sources.families.common import depth, family, pre_norm, under
from assay.sources.families.mamba import share

_XLSTM_LAYER = "backbone.blocks.{i}."
_XLSTM_ENDS = {
    "E": "backbone.embeddings.weight",
    "Gf": "backbone.out_norm.weight",
    "Wout": "lm_head.weight",
    "Ga": _XLSTM_LAYER + "norm_mlstm.weight",
    "Gm": _XLSTM_LAYER + "norm_ffn.weight",
    "Gmixer": _XLSTM_LAYER + "mlstm_layer.multihead_norm.weight",
    "mixer.Wo": _XLSTM_LAYER + "mlstm_layer.out_proj.weight",
    "mixer.Bo": _XLSTM_LAYER + "mlstm_layer.out_proj.bias",
    "Wd": _XLSTM_LAYER + "ffn.proj_down.weight",
}


def _xlstm_single() -> dict[str, str]:
    found = {"q": "q", "k": "k", "v": "v", "z": "ogate_preact", "i": "igate_preact", "f": "fgate_preact"}
    weights = {f"mixer.W{ours}": f"mlstm_layer.{theirs}.weight" for ours, theirs in found.items()}
    biases = {f"mixer.B{ours}": f"mlstm_layer.{theirs}.bias" for ours, theirs in found.items()}
    return weights | biases | {"Wg": "ffn.proj_up_gate.weight", "Wu": "ffn.proj_up.weight"}


def _xlstm_fused() -> dict[str, str]:
    made = {}
    packed = (("qk", "(J S)", "qkv_opreact"), ("vz", "(J Q)", "qkv_opreact"), ("if", "J", "ifgate_preact"))
    for letters, axes, theirs in packed:
        for letter in letters:
            made[f"mixer.W{letter}"] = f"mlstm_layer.{theirs}.weight[+{axes} d]"
            made[f"mixer.B{letter}"] = f"mlstm_layer.{theirs}.bias[+{axes}]"
    for letter in "gu":
        made[f"W{letter}"] = "ffn.proj_up_gate_z.weight[+f d]"
        made[f"W{letter}_bias"] = "ffn.proj_up_gate_z.bias[+f]"
    return made


XLSTM = {
    "single": {**_XLSTM_ENDS, **under(_XLSTM_LAYER, _xlstm_single())},
    "fused": {**_XLSTM_ENDS, **under(_XLSTM_LAYER, _xlstm_fused())},
}
# how the recurrence is run
_XLSTM_HARMLESS = """
    chunkwise_kernel sequence_kernel step_kernel mode chunk_size return_last_states autocast_kernel_dtype
    inference_state_dtype max_inference_chunksize norm_reduction_force_float32 add_out_norm
    add_embedding_dropout add_forward_backend_padding igate_bias_init_range mlstm_round_up_to_multiple_of lm_head_dtype
""".split()


@family("xlstm", cls="xLSTMForCausalLM", names=XLSTM["single"], harmless=_XLSTM_HARMLESS)
def xlstm(c: Config) -> Decoder:
    """Beck et al. 2025, arXiv:2503.13427: mLSTM layers, each with a gated feed-forward layer."""
    c.rename(embedding_dim="hidden_size", num_blocks="num_hidden_layers")
    c.absent(num_heads=8)
    width, count = c.size("hidden_size", 4096), c.size("num_heads")
    c.inert("add_qk_norm", False)
    c.inert("add_post_norm", False)
    c.inert("add_post_blocks_norm", True)
    bias, eps = c.flag("use_bias", False), c.positive("norm_eps", 1e-6)
    affine = "gain+bias" if bias else "gain"
    norm = Norm("rmsnorm", affine, eps)  # type: ignore[arg-type]
    each = {}
    for key, default in (("qk_dim_factor", 0.5), ("v_dim_factor", 1.0)):
        whole = Read(int(width * c.positive(key, default)), f"{width.key}·{c.path(key)}")
        if whole < 1:
            c.fail(key, "a number that leaves each head a width of at least 1")
        each[key] = share(c, "num_heads", whole, f"hidden_size x {key}")
    mixer = MatrixLstm(
        count,
        each["qk_dim_factor"],
        each["v_dim_factor"],
        c.positive("gate_soft_cap", 15.0),
        bias,
        Norm("layernorm", affine, eps),  # type: ignore[arg-type]
        c.positive("eps", 1e-6),
    )
    multiple = c.size("ffn_round_up_to_multiple_of", 64)
    # a fraction beyond a multiple is not rounded up, as in the public implementation
    inner = int((width * c.positive("ffn_proj_factor", 2.667) + multiple - 1) // multiple) * int(multiple)
    wider = f"{width.key}·{c.path('ffn_proj_factor')} + {multiple.key} − 1"
    if not inner:
        c.fail("ffn_proj_factor", "a number that leaves a width of at least 1")
    layer = pre_norm(
        mixer, Mlp(Read(inner, f"⌊({wider})/{multiple.key}⌋·{multiple.key}"), bias="gud" if bias else ""), norm
    )
    mode = c.word("weight_mode", "single", XLSTM)
    rows, tied = c.size("vocab_size", 50304), c.flag("tie_word_embeddings", False)
    head = Head(rows, width, tied, norm=Norm(eps=1e-6), softcap=c.positive("output_logit_soft_cap", 30.0))
    return Decoder(Embedding(rows, width), (layer,) * depth(c, 32), head, names=XLSTM[mode])
