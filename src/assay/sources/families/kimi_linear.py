"""The delta rule with a decay for each channel, among latent attention: Kimi Linear, Ling 3."""

from __future__ import annotations

from assay.blocks import Body, Decoder, Layer
from assay.blocks.delta import KimiDelta
from assay.blocks.latent import GatedLatent
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import by_kind, depth, family, label, pre_norm, rms, stack, under
from assay.sources.families.experts import LAYER
from assay.sources.families.latent import LATENT, dense, latent, routed, sparse_layers
from assay.sources.families.ssm_hybrid import ATTENTION, SCAN, layer_kinds

KIMI = {
    **LATENT,
    **under(
        LAYER + "self_attn.",
        {
            **{f"mixer.K{letter}": "conv1d.weight[+(J S) 1 K]" for letter in "qk"},
            "mixer.Kv": "conv1d.weight[+(J Q) 1 K]",
            **{f"mixer.W{letter}": f"{letter}_proj.weight" for letter in "qkvbgo"},
            "mixer.Wf": "forget_gate.f_proj.weight",
            "mixer.Wfa": "forget_gate.f_a_proj.weight",
            "mixer.Wfb": "forget_gate.f_b_proj.weight",
            "mixer.Wga": "g_a_proj.weight",
            "mixer.Wgb": "g_b_proj.weight",
            "mixer.Dt": "forget_gate.dt_bias",
            "mixer.A": "forget_gate.A_log[1 1 J 1]",
            "Gmixer": "o_norm.weight",
        },
    ),
}
_LATENT_HARMLESS = """
    head_dim qk_head_dim first_k_dense_replace moe_layer_freq short_conv_kernel_size num_key_value_heads rope_interleave
    moe_router_activation_func
    num_nextn_predict_layers num_mtp_layers mtp_loss_scaling_factor moe_renormalize use_grouped_topk mla_use_nope
    rope_theta rope_scaling rope_parameters partial_rotary_factor max_window_layers topk_method scoring_func
""".split()


def kimi_words(c: Config) -> None:
    """Experts under the names of the first checkpoints."""
    c.rename(num_experts="num_local_experts", num_experts_per_token="num_experts_per_tok")
    c.rename(num_expert_group="n_group", num_shared_experts="n_shared_experts")


def kimi_table(c: Config, layers: int) -> None:
    """Keys of `linear_attn_config`, which list layers from one on, under today's names."""
    if not c.has("linear_attn_config"):
        return
    inner = c.child("linear_attn_config")
    named = {"head_dim": "linear_head_dim", "num_heads": "linear_num_heads"}
    named["short_conv_kernel_size"] = "linear_conv_kernel_dim"
    found = {new: int(inner.size(old)) for old, new in named.items() if inner.has(old)}
    places: dict[int, str] = {}
    for key, kind in (("full_attn_layers", ATTENTION), ("kda_layers", SCAN)):
        listed = inner.sequence(key, lambda v: type(v) is int and 1 <= v <= layers, "numbers of layers, from one on")
        places |= {i - 1: kind for i in listed or []}
    if places and not c.has("layer_types"):
        if len(places) != layers:
            inner.fail("kda_layers", "the layers that full_attn_layers leaves out, from one on")
        found["layer_types"] = [places[i] for i in range(layers)]  # type: ignore[assignment]
    c.data = {**c.data, **found}


def delta_latent(c: Config, scan: Body, attention: Body, kinds: list[str], first: int, width: int) -> Decoder:
    """Delta rule and latent attention, the first layers dense, the others with experts."""
    norm, sorts = rms(c), sparse_layers(c, len(kinds), first)
    moe, mlp = routed(c), dense(c)

    def layer(key: tuple[str, str]) -> Layer:
        mixer = attention if key[0] == ATTENTION else scan
        return pre_norm(mixer, moe if key[1] == "sparse" else mlp, norm, label(*key))

    return stack(c, by_kind(list(zip(kinds, sorts, strict=True)), layer), width, norm)


@family("kimi_linear", cls="KimiLinearForCausalLM", names=KIMI, harmless=_LATENT_HARMLESS)
def kimi_linear(c: Config) -> Decoder:
    """Kimi Team 2025, arXiv:2510.26692: three layers of Kimi delta attention to one of latent, without positions."""
    kimi_words(c)
    c.absent(hidden_size=2304, vocab_size=163840, max_position_embeddings=1048576, num_hidden_layers=27)
    c.absent(num_attention_heads=32, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128)
    c.absent(intermediate_size=9216, num_local_experts=256, num_experts_per_tok=8, moe_intermediate_size=1024)
    c.absent(n_shared_experts=1, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.446)
    c.absent(rms_norm_eps=1e-5)
    width, layers = c.size("hidden_size"), depth(c)
    kimi_table(c, layers)
    each = c.size("linear_head_dim", 128)
    scan = KimiDelta(c.size("linear_num_heads", 32), each, c.size("linear_conv_kernel_dim", 4), rank=each, norm=rms(c))
    kinds = layer_kinds(c, layers, lambda i: ATTENTION if i and i % 4 == 0 else SCAN)
    return delta_latent(c, scan, replace(latent(c), positions=None), kinds, 1, width)


@family(
    "bailing_hybrid",
    cls="BailingHybridForCausalLM",
    names=KIMI | under(LAYER + "self_attn.", {"mixer.A": "forget_gate.A_log", "Wgate": "g_proj.weight"}),
    harmless=_LATENT_HARMLESS,
)
def bailing_hybrid(c: Config) -> Decoder:
    """Ling 3 (Ant Group 2026): five layers of the delta rule to one of latent attention, its heads behind a gate."""
    kimi_words(c)
    c.absent(hidden_size=2560, vocab_size=157184, max_position_embeddings=262144, num_hidden_layers=42)
    c.absent(num_attention_heads=32, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128)
    c.absent(intermediate_size=6144, num_local_experts=512, num_experts_per_tok=8, moe_intermediate_size=768)
    c.absent(n_shared_experts=1, n_group=8, topk_group=4, norm_topk_prob=True, routed_scaling_factor=2.5)
    c.absent(rope_theta=6e6)
    width, layers = c.size("hidden_size"), depth(c)
    floor = c.number("kda_lower_bound", -5.0) if c.flag("kda_safe_gate", True) else None
    c.skip("kda_lower_bound")
    # a saved config has both: there the head_dim is that of latent attention's rotary part
    scan = KimiDelta(
        c.maybe("linear_num_heads") or c.size("num_attention_heads"),
        c.maybe("linear_head_dim") or c.size("head_dim", 128),
        c.maybe("linear_conv_kernel_dim") or c.size("short_conv_kernel_size", 4),
        floor=floor,
        norm=rms(c),
    )
    every = c.size("layer_group_size", 6)
    kinds = layer_kinds(c, layers, lambda i: SCAN if (i + 1) % every else ATTENTION)
    plain = latent(c)
    gated = GatedLatent(**{name: getattr(plain, name) for name in plain.__dataclass_fields__})
    return delta_latent(c, scan, gated, kinds, 2, width)
