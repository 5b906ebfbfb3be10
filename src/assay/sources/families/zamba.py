"""Zamba: state-space layers, and a transformer block that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from assay.blocks import Body, Branch, Decoder, Head, Layer, Norm, Step
from assay.blocks.recurrent import Mamba, Mamba2
from assay.blocks.shared_block import KeptEmbedding, SharedAttention, SharedBlock, SharedMlp
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, rms, rope, under
from assay.sources.families.experts import LAYER
from assay.sources.families.mamba import HARMLESS, MAMBA, MAMBA2, rank, share
from assay.sources.families.ssm_hybrid import layer_kinds

HYBRID, SCAN = "hybrid", "linear_attention"
ENDS = {"E": "model.embed_tokens.weight", "Gf": "model.final_layernorm.weight", "Wout": "lm_head.weight"}
# keys that the class sets from others whatever the file says
_HARMLESS = (
    *HARMLESS,
    *"num_logits_to_keep hybrid_layer_ids kv_channels num_query_groups mamba_headdim use_conv_bias".split(),
)
# a matrix for each head, input and gate of a channel side by side
ZAMBA_MIXER = {
    **MAMBA,
    **{f"mixer.W{letter}": "in_proj.weight[(N I +1) d]" for letter in "xz"},
    **{f"mixer.B{letter}": "in_proj.bias[(N I +1)]" for letter in "xz"},
    "mixer.Wt": "x_proj_weight[N +R I]",
    **{f"mixer.W{letter}": "x_proj_weight[N +S I]" for letter in "BC"},
    "mixer.Wdt": "dt_proj_weight[N I R]",
    "mixer.Bdt": "dt_proj_bias[N I]",
    "mixer.A": "A_log[N I S]",
    "mixer.D": "D[N I]",
}


def scans(mixer: Mapping[str, str]) -> dict[str, str]:
    """Names of the state-space layers, alone and behind a shared block."""
    plain = {"Ga": "input_layernorm.weight", **under("mamba.", mixer)}
    hybrid = {f"hybrid.{name}": path for name, path in under("mamba_decoder.", plain).items()}
    return {**ENDS, **under(LAYER, {**plain, **hybrid, "hybrid.Wlink": "linear.weight"})}


def shared(own: str, at: str, gate: str, up: str) -> dict[str, str]:
    """Names of a shared block whose tensors stand under `at`."""
    names = {
        "Ga": "input_layernorm.weight",
        "Gm": "pre_ff_layernorm.weight",
        **{f"W{letter}": f"self_attn.{letter}_proj.weight" for letter in "qkvo"},
        "Wg": f"feed_forward.{gate}.weight",
        "Wu": f"feed_forward.{up}.weight",
        "Wd": "feed_forward.down_proj.weight",
    }
    return {own + name: path for name, path in under(at, names).items()}


def attention_of(c: Config, width: int, own: str, **more: object) -> SharedAttention:
    """Heads over both streams; scores are scaled by half of a head's width."""
    c.rename(head_dim="attention_head_dim")
    c.inert("attention_hidden_size", 2 * width)
    query = c.size("num_attention_heads")
    each = c.maybe("attention_head_dim") or share(c, "num_attention_heads", 2 * width, "twice the hidden_size")
    kv = c.maybe("num_key_value_heads") or query
    c.divides("num_attention_heads", query, "num_key_value_heads", kv)
    return SharedAttention(query, kv, each, scale=(each / 2) ** -0.5, own=own, **more)  # type: ignore[arg-type]


def zamba_stack(c: Config, layers: tuple[Layer, ...], width: int, norm: Norm, names: Mapping[str, str]) -> Decoder:
    """The layers between an embedding that they read again and a head."""
    rows, tied = c.size("vocab_size", 32000), c.flag("tie_word_embeddings", True)
    trained = c.maybe("max_position_embeddings", 4096)
    return Decoder(KeptEmbedding(rows, width), layers, Head(rows, width, tied, norm=norm), None, trained, names)


@family("zamba", cls="ZambaForCausalLM", names=scans(ZAMBA_MIXER), harmless=_HARMLESS)
def zamba(c: Config) -> Decoder:
    """Glorioso et al. 2024, arXiv:2405.16712."""
    c.absent(hidden_size=3712, intermediate_size=14848, num_attention_heads=16, num_key_value_heads=16)
    width, layers, norm = c.size("hidden_size"), depth(c, 76), rms(c, 1e-5)
    c.absent(n_mamba_heads=2)
    inner = c.size("mamba_expand", 2) * width
    share(c, "n_mamba_heads", inner, "the inner width")
    scan = Mamba(
        inner,
        c.size("mamba_d_state", 16),
        rank(c, "mamba_dt_rank", width),
        c.size("mamba_d_conv", 4),
        c.flag("mamba_conv_bias", True),
        c.flag("mamba_proj_bias", False),
        None,
        activation(c, "hidden_mamba_act"),
        c.size("n_mamba_heads"),
    )
    period, offset = c.size("attn_layer_period", 6), c.size("attn_layer_offset", 4, least=0)

    def derived(i: int) -> str:
        return HYBRID if i == 2 or (i > 2 and (i - 3) % period == offset) else SCAN

    kinds = layer_kinds(c, layers, derived, (HYBRID, SCAN))
    block = SharedBlock(
        attention_of(c, width, "shared0."),
        SharedMlp(c.size("intermediate_size"), activation(c, default="gelu")),
        scan,
        norm,
        width,
    )
    bodies: dict[str, Branch] = {SCAN: Branch(scan, norm), HYBRID: Branch(block)}
    made = by_kind(kinds, lambda kind: Layer((Step((bodies[kind],)),), kind))
    first = kinds.index(HYBRID) if HYBRID in kinds else 0
    at = f"model.layers.{first}.shared_transf."
    return zamba_stack(c, made, width, norm, {**scans(ZAMBA_MIXER), **shared("shared0.", at, "gate_proj", "up_proj")})


@family("zamba2", cls="Zamba2ForCausalLM", names=scans(MAMBA2), harmless=_HARMLESS)
def zamba2(c: Config) -> Decoder:
    """Glorioso et al. 2024, arXiv:2411.15242: Mamba-2, blocks in turn, and low-rank additions for each use."""
    c.absent(hidden_size=2560, num_attention_heads=32)
    width, norm = c.size("hidden_size"), rms(c, 1e-5)
    kinds = zamba2_kinds(c)
    for key in ("use_shared_mlp_adapter", "use_shared_mlp_lora", "use_shared_block_lora", "gated_linear_unit"):
        c.inert(key, True)
    bias = c.flag("add_bias_linear", False)
    c.absent(n_mamba_heads=8)
    inner, count = c.size("mamba_expand", 2) * width, c.size("n_mamba_heads")
    groups = c.size("mamba_ngroups", 1)
    c.divides("n_mamba_heads", count, "mamba_ngroups", groups)
    each = share(c, "n_mamba_heads", inner, "the inner width")
    scan = Mamba2(
        count,
        each,
        c.size("mamba_d_state", 64),
        groups,
        c.size("mamba_d_conv", 4),
        True,
        bias,
        Norm(eps=1e-5),
        least=c.positive("time_step_min", 0.001),
    )
    blocks = c.size("num_mem_blocks", 1)
    uses = [i for i, kind in enumerate(kinds) if kind == HYBRID]
    c.inert("hybrid_layer_ids", uses)  # the same once more; the library goes by it where blocks are chosen
    names = {**scans(MAMBA2), **zamba2_names(uses, blocks)}
    make = zamba2_block(c, width, scan, norm, bias, blocks)
    plain = Layer((Step((Branch(scan, norm),)),), SCAN)
    hybrid = {i: Layer((Step((Branch(make(use)),)),), HYBRID) for use, i in enumerate(uses)}
    made = tuple(hybrid.get(i, plain) for i in range(len(kinds)))
    if c.flag("use_long_context", False):
        c.data = {**c.data, "max_position_embeddings": 16384}
    return zamba_stack(c, made, width, norm, names)


def zamba2_kinds(c: Config) -> list[str]:
    """The list of layers; where it is absent, the class's own for its own depth."""
    c.rename(layers_block_type="layer_types")
    layers = depth(c, 54)
    if not c.has("layer_types") and layers != 54:
        c.fail("layer_types", f"a list of {int(layers)} items where num_hidden_layers is not 54")
    places = (6, 12, 18, 24, 30, 36, 42, 47, 51)
    return layer_kinds(c, layers, lambda i: HYBRID if i in places else SCAN, (HYBRID, SCAN))


def zamba2_block(
    c: Config, width: int, scan: Body, norm: Norm, bias: bool, blocks: int
) -> Callable[[int], SharedBlock]:
    """The shared block as a use of it runs."""
    turned = c.flag("use_mem_rope", False)
    adapted = c.flag("use_shared_attention_adapter", False)
    attention = attention_of(c, width, "shared0.")
    if adapted and attention.kv_heads != attention.heads:
        c.fail("num_key_value_heads", f"num_attention_heads, {attention.heads}, where attention has adapters")
    if turned:
        attention = replace(attention, positions=rope(c, attention.head_width))
    else:
        c.skip("rope_parameters", "rope_theta", "rope_scaling")
    mlp = SharedMlp(c.maybe("intermediate_size") or 4 * width, activation(c, default="gelu"), bias)
    low = c.size("adapter_rank", 128)

    def make(use: int) -> SharedBlock:
        own, mine = f"shared{use % blocks}.", f"use{use}."
        return SharedBlock(
            replace(attention, own=own, adapters=mine if adapted else ""),
            replace(mlp, own=own, adapters=mine),
            scan,
            norm,
            width,
            low,
        )

    return make


def zamba2_names(uses: Sequence[int], blocks: int) -> dict[str, str]:
    """Blocks in turn, each stored where it is first used, the additions of its uses with it."""
    made: dict[str, str] = {}
    for use, _ in enumerate(uses):
        at = f"model.layers.{uses[use % blocks]}.shared_transformer."
        if use < blocks:
            made |= shared(f"shared{use}.", at, "gate_up_proj", "gate_up_proj")
            made |= {f"shared{use}.W{x}": f"{at}feed_forward.gate_up_proj.weight[+f d]" for x in "gu"}
            made |= {f"shared{use}.W{x}_bias": f"{at}feed_forward.gate_up_proj.bias[+f]" for x in "gu"}
        more = f"{at}feed_forward.gate_up_proj_adapter_list.{use}."
        made[f"use{use}.Lf"] = f"{more}0.weight"
        made |= {f"use{use}.M{x}": f"{more}1.weight[+f A]" for x in "gu"}
        for letter in "qkv":
            path = f"{at}self_attn.linear_{letter}_adapter_list.{use}."
            made |= {f"use{use}.L{letter}": f"{path}0.weight", f"use{use}.M{letter}": f"{path}1.weight"}
    return made
