"""Linear attention and gated recurrences: MiniMax, RecurrentGemma, RWKV, xLSTM."""

from __future__ import annotations

import math

from assay.blocks import Attention, Body, Branch, Decoder, Embedding, Head, Layer, Mlp, Moe, Norm, Rope, Router, Step
from assay.blocks.linear import GatedLru, Lightning, MatrixLstm, Rwkv, RwkvMlp
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import (
    activation,
    by_kind,
    depth,
    family,
    heads,
    label,
    layernorm,
    pre_norm,
    rms,
    rope,
    stack,
    under,
)
from assay.sources.families.experts import LAYER, MIXTRAL
from assay.sources.families.mamba import share
from assay.sources.families.mixtral import experts_of
from assay.sources.families.ssm_hybrid import ATTENTION, SCAN, layer_kinds

# queries, keys and values side by side in each head; decays are stored, those of a block too
MINIMAX = {
    **MIXTRAL,
    **under(
        LAYER,
        {
            "Gs0": "input_layernorm.weight",
            "Gs1": "post_attention_layernorm.weight",
            **{f"mixer.W{letter}": "self_attn.qkv_proj.weight[(J +S) d]" for letter in "qk"},
            "mixer.Wv": "self_attn.qkv_proj.weight[(J +Q) d]",
            "mixer.Wz": "self_attn.output_gate.weight",
            "mixer.Wo": "self_attn.out_proj.weight",
            "Gmixer": "self_attn.norm.weight",
            "mixer.Slope": "~self_attn.slope_rate[J 1 1]",
            "mixer.Past": "~self_attn.query_decay[J B 1]",
            "mixer.Rest": "~self_attn.key_decay[J B 1]",
            "mixer.Within": "~self_attn.diagonal_decay[1 J B U]",
        },
    ),
}


def first_words(c: Config) -> None:
    """Keys of the first checkpoint: factors under other names, a number for each layer's attention."""
    for part, named in (("full_attention", "full_attn"), ("linear_attention", "linear_attn"), ("mlp", "mlp")):
        c.rename(**{f"layernorm_{part}_{factor}": f"{named}_{factor}_factor" for factor in ("alpha", "beta")})
    c.inert("postnorm", True)
    c.inert("shared_intermediate_size", 0)
    listed = c.sequence("attn_type_list", lambda v: type(v) is int and v in (0, 1), "0 (linear) or 1 (softmax)")
    if listed is not None and not c.has("layer_types"):
        c.data = {**c.data, "layer_types": [ATTENTION if kind else SCAN for kind in listed]}
        c.written["layer_types"] = "attn_type_list"


def turned(c: Config, width: int) -> Rope:
    """Rotary positions, on `rotary_dim` elements of a head where that is given."""
    if not c.has("rotary_dim"):
        return rope(c, width)
    part = c.size("rotary_dim")
    if part > width:
        c.fail("rotary_dim", f"at most the width of a head, {int(width)}")
    return replace(rope(c, width), width=None if part == width else part)


@family(
    "minimax",
    cls="MiniMaxForCausalLM",
    names=MINIMAX,
    harmless=("shared_moe_mode",),
    also=("MiniMaxText01ForCausalLM",),
)
def minimax(c: Config) -> Decoder:
    """MiniMax 2025, arXiv:2501.08313: lightning attention and softmax attention, experts in every layer.

    A sub-layer is added to what its norm gives, each of both with a factor.
    """
    first_words(c)
    c.absent(hidden_size=4096, vocab_size=32000, max_position_embeddings=131072, intermediate_size=14336)
    width, layers, norm = c.size("hidden_size"), depth(c, 32), rms(c, 1e-5)
    h = heads(c, width, 32, 8)
    experts, k = experts_of(c, 8, 2)
    moe = Moe(experts, k, c.size("intermediate_size"), Router(normalize=True), activation=activation(c))
    bodies: dict[str, Body] = {
        ATTENTION: Attention(*h, positions=turned(c, h.width), window=c.maybe("sliding_window")),
        SCAN: Lightning(h.query, h.width, c.size("block_size", 256), Norm(eps=1e-6), activation=activation(c)),
    }
    kinds = layer_kinds(c, layers, lambda i: ATTENTION if (i + 1) % 2 else SCAN)

    def added(body: Body, named: str) -> Step:
        alpha, beta = c.number(f"{named}_alpha_factor", 1.0), c.number(f"{named}_beta_factor", 1.0)
        return Step((Branch(body),), before=norm, scale=beta, keep=alpha, onto_normed=True)

    names = {ATTENTION: "full_attn", SCAN: "linear_attn"}
    made = by_kind(kinds, lambda kind: Layer((added(bodies[kind], names[kind]), added(moe, "mlp")), label(kind)))
    c.skip(*(f"{named}_{factor}_factor" for named in names.values() for factor in ("alpha", "beta")))
    return stack(c, made, width, norm)


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


_RWKV_LAYER = "rwkv.blocks.{i}."
RWKV = {
    "E": "rwkv.embeddings.weight",
    "Ge": "rwkv.blocks.0.pre_ln.weight",
    "Gf": "rwkv.ln_out.weight",
    "Wout": "head.weight",
    "Ga": _RWKV_LAYER + "ln1.weight",
    "Gm": _RWKV_LAYER + "ln2.weight",
    **under(
        _RWKV_LAYER + "attention.",
        {
            "mixer.Mk": "time_mix_key[1 1 d]",
            "mixer.Mv": "time_mix_value[1 1 d]",
            "mixer.Mr": "time_mix_receptance[1 1 d]",
            "mixer.Wk": "key.weight",
            "mixer.Wv": "value.weight",
            "mixer.Wr": "receptance.weight",
            "mixer.Decay": "time_decay",
            "mixer.First": "time_first",
            "mixer.Wo": "output.weight",
        },
    ),
    **under(
        _RWKV_LAYER + "feed_forward.",
        {
            "mlp.Mk": "time_mix_key[1 1 d]",
            "mlp.Mr": "time_mix_receptance[1 1 d]",
            "mlp.Wk": "key.weight",
            "mlp.Wv": "value.weight",
            "mlp.Wr": "receptance.weight",
        },
    ),
}


@family("rwkv", cls="RwkvForCausalLM", names=RWKV, harmless=("rescale_every", "attention_hidden_size"))
def rwkv(c: Config) -> Decoder:
    """RWKV-4 (Peng et al. 2023, arXiv:2305.13048): LayerNorms, a norm of the embedding."""
    width, norm = c.size("hidden_size", 4096), layernorm(c)
    inner = c.maybe("attention_hidden_size") or width
    if inner != width:  # the public implementation keeps states of the model's width
        c.fail("attention_hidden_size", f"hidden_size, {int(width)}")
    layer = pre_norm(Rwkv(inner), RwkvMlp(c.maybe("intermediate_size") or 4 * width, width), norm)
    rows, tied = c.size("vocab_size", 50277), c.flag("tie_word_embeddings", False)
    c.rename(max_position_embeddings="context_length")
    return Decoder(
        Embedding(rows, width, norm=norm),
        (layer,) * depth(c, 32),
        Head(rows, width, tied, norm=norm),
        trained=c.maybe("context_length", 1024),
    )


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
        whole = int(width * c.positive(key, default))
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
    inner = int((width * c.positive("ffn_proj_factor", 2.667) + multiple - 1) // multiple) * multiple
    if not inner:
        c.fail("ffn_proj_factor", "a number that leaves a width of at least 1")
    layer = pre_norm(mixer, Mlp(inner, bias="gud" if bias else ""), norm)
    mode = c.word("weight_mode", "single", XLSTM)
    rows, tied = c.size("vocab_size", 50304), c.flag("tie_word_embeddings", False)
    head = Head(rows, width, tied, norm=Norm(eps=1e-6), softcap=c.positive("output_logit_soft_cap", 30.0))
    return Decoder(Embedding(rows, width), (layer,) * depth(c, 32), head, names=XLSTM[mode])
