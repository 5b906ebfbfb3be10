"""Linear attention of blocks among attention: MiniMax."""

from __future__ import annotations

from assay.blocks import Attention, Body, Branch, Decoder, Layer, Norm, Rope, Step
from assay.blocks.linear import Lightning
from assay.blocks.moe import Moe, Router
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, heads, label, rms, rope, stack, under
from assay.sources.families.experts import LAYER, MIXTRAL
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
