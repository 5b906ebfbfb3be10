"""State-space layers among attention, or beside it: Jamba, Bamba, Granite 4, Falcon-H1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.blocks import Attention, Body, Branch, Decoder, Layer, Mlp, Norm, Step
from assay.blocks.mlp import ScaledMlp
from assay.blocks.moe import Moe, Router
from assay.blocks.recurrent import Mamba, Mamba2, ScaledMamba2
from assay.blocks.stacks import Scaled
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, heads, pre_norm, rms, rope, stack, under
from assay.sources.families.dense import LLAMA, biased
from assay.sources.families.experts import LAYER, packed
from assay.sources.families.granite_moe import GRANITE, granite_experts, granite_stack
from assay.sources.families.mamba import HARMLESS, MAMBA, MAMBA2, mamba2_mixer, rank, share
from assay.sources.families.mixtral import experts_of
from assay.sources.families.names import gate_and_up

ATTENTION, SCAN = "full_attention", "linear_attention"
_LOGITS = ("num_logits_to_keep", "calc_logits_for_entire_prompt")  # a setting of ours
OLD_KINDS = {"attention": ATTENTION, "mamba": SCAN}  # older words for the same layers

IN_MAMBA = LAYER + "mamba."
HYBRID = {
    **LLAMA,
    "Gf": "model.final_layernorm.weight",
    **under(
        LAYER,
        {
            "Gs0": "input_layernorm.weight",
            "Gm": "pre_ff_layernorm.weight",
            "Wg": "feed_forward.gate_proj.weight",
            "Wu": "feed_forward.up_proj.weight",
            "Wd": "feed_forward.down_proj.weight",
        },
    ),
}
JAMBA = {
    **HYBRID,
    **packed("feed_forward.", "router.weight"),
    **under(IN_MAMBA, MAMBA),
    **under(
        IN_MAMBA,
        {
            "Gmixer_t": "dt_layernorm.weight",
            "Gmixer_B": "b_layernorm.weight",
            "Gmixer_C": "c_layernorm.weight",
        },
    ),
}


def layer_kinds(
    c: Config, layers: int, default: Callable[[int], str], kinds: Sequence[str] = (ATTENTION, SCAN)
) -> list[str]:
    """`layer_types`, in today's words or older ones, or what the config class derives for layer i."""
    c.rename(layers_block_type="layer_types")
    known = (*kinds, *(old for old, new in OLD_KINDS.items() if new in kinds))
    listed = c.sequence("layer_types", lambda v: v in known, f"one of {', '.join(known)}", layers)
    return [default(i) for i in range(layers)] if listed is None else [OLD_KINDS.get(kind, kind) for kind in listed]


def head_width(c: Config, heads_key: str, key: str, inner: int) -> None:
    """The width of a scan's head where the file leaves it to be derived; it must fit. Raises SourceError."""
    if c.data.get(key, "auto") in ("auto", None):
        c.data = {**c.data, key: share(c, heads_key, inner, "the inner width")}
    if c.size(key) * c.size(heads_key) != inner:
        c.fail(key, f"the inner width, {inner}, divided by {c.path(heads_key)}, {c.size(heads_key)}")


def bamba_mixer(c: Config, inner: int, norm: Norm) -> Mamba2:
    """Mamba-2 under the keys that Bamba, Granite 4 and Falcon-H1 share."""
    c.absent(mamba_n_heads=128, mamba_n_groups=1, mamba_d_state=256, mamba_d_conv=4)
    head_width(c, "mamba_n_heads", "mamba_d_head", inner)
    return mamba2_mixer(
        c,
        "mamba_n_heads",
        "mamba_d_head",
        "mamba_d_state",
        "mamba_n_groups",
        "mamba_d_conv",
        norm,
        conv_bias="mamba_conv_bias",
        bias="mamba_proj_bias",
    )


def periodic(c: Config, period: str, offset: str, *defaults: int) -> Callable[[int], bool]:
    """Layers `offset`, `offset + period`, and so on. Raises SourceError for an offset of a period or more."""
    every, first = c.size(period, defaults[0]), c.size(offset, defaults[1], least=0)
    if first >= every:
        c.fail(offset, f"less than {c.path(period)}, {int(every)}")
    return lambda i: i % every == first


@family("jamba", cls="JambaForCausalLM", names=JAMBA, harmless=(*HARMLESS, *_LOGITS))
def jamba(c: Config) -> Decoder:
    """Lieber et al. 2024, arXiv:2403.19887: no positions, experts in every other layer."""
    c.absent(hidden_size=4096, vocab_size=65536, intermediate_size=14336, max_position_embeddings=262144)
    width, layers = c.size("hidden_size"), depth(c, 32)
    norm, h = rms(c), heads(c, width, 32, 8)
    c.inert("head_dim", int(h.width))
    c.inert("mamba_inner_layernorms", True)
    c.inert("sliding_window")
    experts, k = experts_of(c, 16, 2, "num_experts")
    scan = Mamba(
        c.size("mamba_expand", 2) * width,
        c.size("mamba_d_state", 16),
        rank(c, "mamba_dt_rank", width),
        c.size("mamba_d_conv", 4),
        c.flag("mamba_conv_bias", True),
        c.flag("mamba_proj_bias", False),
        norm,
        activation(c),
    )
    attends = periodic(c, "attn_layer_period", "attn_layer_offset", 8, 4)
    sparse = periodic(c, "expert_layer_period", "expert_layer_offset", 2, 1)
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c))
    moe = Moe(experts, k, c.size("intermediate_size"), Router(), activation=activation(c))

    def layer(key: tuple[bool, bool]) -> Layer:
        mixer: Body = Attention(*h) if key[0] else scan
        words = ("attention" if key[0] else "mamba", "experts" if key[1] else "dense")
        return pre_norm(mixer, moe if key[1] else mlp, norm, ", ".join(words))

    made = by_kind([(attends(i), sparse(i) and experts > 1) for i in range(layers)], layer)
    return stack(c, made, width, norm)


@family(
    "bamba",
    cls="BambaForCausalLM",
    names={**HYBRID, **under(IN_MAMBA, MAMBA2)},
    harmless=(*HARMLESS, *_LOGITS, "z_loss_coefficient", "attn_rotary_emb", "mamba_dt_rank"),
)
def bamba(c: Config) -> Decoder:
    """Bamba (IBM, Princeton, CMU, UIUC 2024): Mamba-2 layers and a few of attention, all with a gated MLP."""
    c.absent(hidden_size=4096, vocab_size=128000, intermediate_size=14336, max_position_embeddings=262144)
    width, layers, norm = c.size("hidden_size"), depth(c, 32), rms(c, 1e-5)
    h = heads(c, width, 32, 8)
    attention = Attention(*h, bias=biased(c, "attention_bias", "qkvo"), positions=rope(c, h.width, partial=0.5))
    scan = bamba_mixer(c, c.size("mamba_expand", 2) * width, norm)
    mlp = Mlp(c.size("intermediate_size"), activation=activation(c), bias=biased(c, "mlp_bias", "gud"))
    places = c.sequence("attn_layer_indices", lambda v: type(v) is int and 0 <= v < layers, "indices of layers") or []
    kinds = [ATTENTION if i in places else SCAN for i in range(layers)]
    made = by_kind(kinds, lambda kind: pre_norm(attention if kind == ATTENTION else scan, mlp, norm, kind))
    return stack(c, made, width, norm)


@family(
    "granitemoehybrid",
    cls="GraniteMoeHybridForCausalLM",
    names={
        **GRANITE,
        **under(IN_MAMBA, MAMBA2),
        **under(
            LAYER + "shared_mlp.",
            {
                **gate_and_up("input_linear"),
                "Wd": "output_linear.weight",
            },
        ),
    },
    harmless=HARMLESS,
)
def granitemoehybrid(c: Config) -> Decoder:
    """Granite 4 (IBM 2025): Mamba-2 and attention, each with experts beside a shared MLP, or that MLP alone."""
    width, layers, norm = c.size("hidden_size", 4096), depth(c, 32), rms(c)
    h = heads(c, width, 32)
    c.inert("normalization_function", "rmsnorm")
    turned = c.has("position_embedding_type") and c.word("position_embedding_type", None, ("rope", "nope")) == "rope"
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        positions=rope(c, h.width) if turned else None,
        scale=c.positive("attention_multiplier", 1.0),
    )
    if not turned:
        c.skip("rope_theta", "rope_scaling", "rope_parameters")
    scan = bamba_mixer(c, c.size("mamba_expand", 2) * width, norm)
    feed = granite_feed_forward(c)
    kinds = layer_kinds(c, layers, lambda i: SCAN)
    scale = c.positive("residual_multiplier", 1.0)
    made = by_kind(kinds, lambda kind: pre_norm(attention if kind == ATTENTION else scan, feed, norm, kind, scale))
    return granite_stack(c, made, width, norm)


def granite_feed_forward(c: Config) -> Body:
    """Experts beside a shared MLP; where there are no experts, the shared MLP alone."""
    c.absent(shared_intermediate_size=1024, num_local_experts=8)
    if c.size("num_local_experts", least=0):
        return granite_experts(c, True)
    c.skip("num_experts_per_tok", "intermediate_size")
    return Mlp(c.size("shared_intermediate_size"), activation=activation(c))


def multipliers(c: Config, key: str, n: int) -> tuple[float, ...]:
    """A list of n numbers, ones where it is absent."""
    listed = c.sequence(key, lambda v: isinstance(v, int | float) and not isinstance(v, bool), "a number", n)
    return tuple(map(float, listed)) if listed is not None else (1.0,) * n


@family(
    "falcon_h1",
    cls="FalconH1ForCausalLM",
    names={**HYBRID, **under(IN_MAMBA, MAMBA2)},
    harmless=(*HARMLESS, *_LOGITS, "mamba_use_mlp", "mlp_expansion_factor"),
)
def falcon_h1(c: Config) -> Decoder:
    """Zuo et al. 2025, arXiv:2507.22448: attention and Mamba-2 side by side in every layer, multipliers everywhere."""
    c.absent(hidden_size=4096, vocab_size=128000, intermediate_size=14336, max_position_embeddings=8192)
    c.absent(mamba_d_ssm=1024)
    c.inert("attn_layer_indices")
    width, norm = c.size("hidden_size"), rms(c, 1e-5)
    h = heads(c, width, 32, 8)
    mlp = ScaledMlp(
        c.size("intermediate_size"),
        activation=activation(c),
        bias=biased(c, "mlp_bias", "gud"),
        scales=multipliers(c, "mlp_multipliers", 2),
    )
    attention = Attention(
        *h,
        bias=biased(c, "attention_bias", "qkvo"),
        positions=rope(c, h.width),
        scale=(c.number("key_multiplier", 1.0) or 1.0) * h.width**-0.5,  # the keys' multiplier with the scores' scale
    )
    scan = falcon_h1_mixer(c, width, norm)
    before, after = c.number("attention_in_multiplier", 1.0), c.number("attention_out_multiplier", 1.0)
    both = Step(
        (
            Branch(Scaled(attention, before, after)),
            Branch(Scaled(scan, None, c.number("ssm_out_multiplier", 1.0), tag="s")),
        ),
        before=norm,
    )
    layer = Layer((both, Step((Branch(mlp, norm),))))
    return stack(
        c,
        (layer,) * depth(c, 32),
        width,
        norm,
        embedding_scale=c.number("embedding_multiplier", 1.0),
        scale=c.number("lm_head_multiplier", 1.0),
    )


def falcon_h1_mixer(c: Config, width: int, norm: Norm) -> ScaledMamba2:
    """Mamba-2 with multipliers; its norm may be left out, or stand before the gate."""
    inner = c.maybe("mamba_d_ssm") or c.size("mamba_expand", 2) * width
    c.skip("mamba_expand")
    plain = bamba_mixer(c, inner, norm)
    first = c.flag("mamba_norm_before_gate", True)
    return ScaledMamba2(
        plain.heads,
        plain.head_width,
        plain.state,
        plain.groups,
        plain.kernel,
        plain.conv_bias,
        plain.bias,
        norm if c.flag("mamba_rms_norm", False) else None,
        plain.activation,
        scale_in=c.number("ssm_in_multiplier", 1.0) or 1.0,
        scales=multipliers(c, "ssm_multipliers", 5),
        out_bias=c.flag("projectors_bias", False),
        norm_first=first,
    )
