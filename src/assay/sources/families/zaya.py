"""ZAYA: convolved attention, experts behind routers that hand their state on."""

from __future__ import annotations

from collections.abc import Sequence

from assay.blocks import Branch, Decoder, Head, Layer, Norm
from assay.blocks.convolved import AffineStep, CarryingMoe, ConvolvedAttention, ScaledEmbedding
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, heads, rms, rope, under
from assay.sources.families.dense import LLAMA, biased
from assay.sources.families.experts import LAYER

HYBRID, SLIDING = "hybrid", "hybrid_sliding"
_IN = LAYER + "self_attn.qkv_proj."


def convolutions() -> dict[str, str]:
    """Kernels of queries and keys behind each other."""
    made = {}
    for letter, heads_ in (("q", "g r"), ("k", "g")):
        made[f"K{letter}"] = f"conv_qk_depthwise.weight[+({heads_} k) 1 K]"
        made[f"L{letter}"] = f"conv_qk_depthwise.bias[+({heads_} k)]"
        made[f"C{letter}"] = f"conv_qk_grouped.weight[+({heads_} o) k T]"
        made[f"D{letter}"] = f"conv_qk_grouped.bias[+({heads_} o)]"
    return made


def residuals() -> dict[str, str]:
    """Shifts and scales of branches and stream, and of the embedding."""
    made: dict[str, str] = {}
    for index, place in enumerate(("post_attention", "post_mlp")):
        for ours, theirs in (("Branch", "hidden_states"), ("Stream", "residual")):
            at = f"{LAYER}{place}_residual_scale.{theirs}_"
            made |= {f"{ours}{index}_shift": f"{at}bias", f"{ours}{index}_scale": f"{at}scale"}
    pairs = (("shift", "bias"), ("scale", "scale"))
    embedded = {f"Embedded_{ours}": f"model.input_hidden_states_{theirs}" for ours, theirs in pairs}
    return made | embedded


ZAYA = {
    **LLAMA,
    **under(
        _IN,
        {
            "Wq": "q_proj.weight",
            "Wk": "k_proj.weight",
            "Wv": "v_proj_current.weight",
            "Wp": "v_proj_delayed.weight",
            "Bp": "v_proj_delayed.bias",
            **convolutions(),
        },
    ),
    **residuals(),
    "Temper": LAYER + "self_attn.qk_norm.temp",
    **under(
        LAYER + "mlp.",
        {
            "Eg": "experts.gate_up_proj[e +f d]",
            "Eu": "experts.gate_up_proj[e +f d]",
            "Ed": "experts.down_proj[e d f]",
            "router.Wdown": "gate.down_proj.weight",
            "router.Bdown": "gate.down_proj.bias",
            "router.Carry": "gate.router_states_scale",
            "Grouter": "gate.router_mlp.norm.weight",
            "router.Fc1": "gate.router_mlp.fc1.weight",
            "router.B1": "gate.router_mlp.fc1.bias",
            "router.Fc2": "gate.router_mlp.fc2.weight",
            "router.B2": "gate.router_mlp.fc2.bias",
            "router.Wout": "gate.router_mlp.out_proj.weight",
            "router.Balance": "~gate.balancing_biases",
        },
    ),
}


@family("zaya", cls="ZayaForCausalLM", names=ZAYA)
def zaya(c: Config) -> Decoder:
    """Zyphra 2025, arXiv:2511.17127."""
    width, layers, norm = c.size("hidden_size", 2048), depth(c, 40), rms(c, 1e-5)
    h = heads(c, width, 8, 2, 128)
    if h.kv % 2:
        c.fail("num_key_value_heads", "an even number: half of the heads' values are of the token before")
    c.inert("num_experts_per_tok", 1)
    kinds = c.sequence("layer_types", lambda v: v in (HYBRID, SLIDING), f"one of {HYBRID}, {SLIDING}", layers)
    kinds = [HYBRID] * layers if kinds is None else kinds
    window = c.size("sliding_window") if SLIDING in kinds else None
    c.skip("sliding_window")
    attention = attentions(c, h.query, h.kv, h.width, window, kinds)
    act, experts, inner = activation(c), c.size("num_experts", 16), c.size("moe_intermediate_size", 2048)
    low = c.size("router_hidden_size", 256)

    def layer(key: tuple[str, bool]) -> Layer:
        moe = CarryingMoe(experts, 1, inner, activation=act, router_width=low, norm=norm, first=key[1])
        steps = (AffineStep((Branch(attention[key[0]], norm),)), AffineStep((Branch(moe, norm),)))
        return Layer(steps, f"{key[0]}, first" if key[1] else key[0])

    rows, tied = c.size("vocab_size", 262272), c.flag("tie_word_embeddings", True)
    return Decoder(
        ScaledEmbedding(rows, width),
        by_kind([(kind, i == 0) for i, kind in enumerate(kinds)], layer),
        Head(rows, width, tied, c.flag("lm_head_bias", False), norm=norm),
        trained=c.maybe("max_position_embeddings", 131072),
    )


def attentions(
    c: Config, query: int, kv: int, width: int, window: int | None, kinds: Sequence[str]
) -> dict[str, ConvolvedAttention]:
    """The attention of each kind of layer."""
    made = {}
    bias = biased(c, "attention_bias", "qkvop")
    columns, within = c.size("cca_time0", 2), c.size("cca_time1", 2)
    for kind in dict.fromkeys(kinds):
        made[kind] = ConvolvedAttention(
            query,
            kv,
            width,
            bias=bias,
            qk_norm=Norm(affine="none", eps=1e-14),  # only kept from dividing by zero
            positions=rope(c, width, 5e6 if kind == HYBRID else 1e4, 0.5, kind),
            window=window if kind == SLIDING else None,
            columns=columns,
            head_columns=within,
        )
    return made
