"""Inkling: windows in most layers, short convolutions throughout, shared experts within the router's softmax."""

from __future__ import annotations

from assay.blocks import Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Step
from assay.blocks.block_residual import FilledHead, StateAttention, StateDecoder, StateLayer
from assay.blocks.messages import LoopedDecoder, ToldLayer
from assay.blocks.moe import Moe, Router
from assay.blocks.relative import Convolved, ProfiledAttention, ScaledOutput, SinkMoe
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, label, rms, under
from assay.sources.families.experts import LAYER, MIXTRAL, pool

INKLING = {
    **MIXTRAL,
    "Ge": "model.embed_tokens.embed_norm.weight",
    **under(
        LAYER,
        {
            "Gqn": "self_attn.q_norm.weight",
            "Gkn": "self_attn.k_norm.weight",
            "Ck": "self_attn.k_sconv.conv1d.weight",
            "Cv": "self_attn.v_sconv.conv1d.weight",
            "Wr_states": "self_attn.r_proj.weight",
            "Bank": "self_attn.rel_logits_proj.proj[E X]",
            "Ca": "attn_sconv.conv1d.weight",
            "Cm": "mlp_sconv.conv1d.weight",
            "Scale": "mlp.global_scale",
            "Scale_router": "mlp.gate.global_scale",
            "Cr": "~mlp.gate.e_score_correction_bias",
            "Sg": "mlp.shared_experts.gate_proj[S f d]",
            "Su": "mlp.shared_experts.up_proj[S f d]",
            "Sd": "mlp.shared_experts.down_proj[S d f]",
        },
    ),
}
FULL, SLIDING = "hybrid", "hybrid_sliding"
_HARMLESS = """
    unpadded_vocab_size tie_word_embeddings num_mtp_layers chain_hidden_post_norm mtp_hidden_states_first
    mtp_local_layer_ids rms_norm_eps_moe_gate number_of_conv_states
""".split()


@family("inkling_text", cls="InklingForCausalLM", names=INKLING, harmless=_HARMLESS)
def inkling_text(c: Config) -> Decoder:
    """Thinking Machines 2026. The table and the head are never one tensor."""
    c.rename(
        sliding_window="sliding_window_size",
        num_local_experts="n_routed_experts",
        sconv_kernel_size="conv_kernel_size",
        model_max_length="max_position_embeddings",
        embedding_multiplier="logits_mup_width_multiplier",
    )
    c.inert("shared_expert_sink", True)
    d, n, norm = c.size("hidden_size", 6144), depth(c, 66), rms(c)
    kernel = c.size("conv_kernel_size", 4)
    kinds, sparse = _kinds(c, n), _sparse(c, n)
    inner, dense = _widths(c)
    act = activation(c)
    mlp = Convolved(ScaledOutput(Mlp(dense, activation=act)), kernel, "m")
    moe = SinkMoe(
        *pool(c, "n_routed_experts", 256, 6),
        inner,
        c.size("n_shared_experts", 2),
        c.positive("route_scale", 8.0),
        act,
    )
    mixers = {kind: Convolved(attention(c, norm, kind == SLIDING), kernel, "a") for kind in (FULL, SLIDING)}
    routed = Convolved(moe, kernel, "m")

    def layer(key: tuple[str, bool]) -> Layer:
        words = label("sliding" if key[0] == SLIDING else "full", "experts" if key[1] else "dense")
        steps = (Step((Branch(mixers[key[0]], norm),)), Step((Branch(routed if key[1] else mlp, norm),)))
        return Layer(steps, words)

    rows = c.size("vocab_size", 201024)
    scale = 1 / c.positive("logits_mup_width_multiplier", 24.0)
    return Decoder(
        Embedding(rows, d, norm=norm),
        by_kind(list(zip(kinds, sparse, strict=True)), layer),
        Head(rows, d, norm=norm, scale=scale),
        trained=c.maybe("max_position_embeddings", 131072),
    )


def attention(c: Config, norm: Norm, slides: bool) -> ProfiledAttention:
    """Heads of their own in windowed layers, whose bank of biases reaches as far as the window."""
    own = "swa_" if slides else ""
    heads = c.size(f"{own}num_attention_heads", 64)
    groups = c.size(f"{own}num_key_value_heads", 16 if slides else 8)
    c.divides(f"{own}num_attention_heads", heads, f"{own}num_key_value_heads", groups)
    width, window = c.size(f"{own}head_dim", 128), c.size("sliding_window_size", 512)
    reach = c.size("rel_extent", 1024)
    floor, by = c.maybe("log_scaling_n_floor"), c.positive("log_scaling_alpha", 0.1)
    return ProfiledAttention(
        heads,
        groups,
        width,
        qk_norm=norm,
        window=window if slides else None,
        scale=1 / width,
        temper=None if slides or floor is None else ("excess_log", float(floor), by),
        kernel=c.size("conv_kernel_size", 4),
        states=c.size("d_rel", 16),
        extent=window if slides else reach,
    )


def _kinds(c: Config, n: int) -> list[str]:
    """Which layers have a window: as listed, by index, or five of six."""
    listed = c.sequence("layer_types", lambda v: v in (FULL, SLIDING), f"{FULL} or {SLIDING}", n)
    local = c.sequence("local_layer_ids", lambda v: type(v) is int and 0 <= v < n, f"integers from 0 to {n - 1}")
    if listed is not None:
        return listed
    within = {i for i in range(n) if (i + 1) % 6} if local is None else set(local)
    return [SLIDING if i in within else FULL for i in range(n)]


def _sparse(c: Config, n: int) -> list[bool]:
    """Which layers have experts: as listed, else those from `dense_mlp_idx` on."""
    listed = c.sequence("mlp_layer_types", lambda v: v in ("dense", "sparse"), "dense or sparse", n)
    first = c.size("dense_mlp_idx", 0, least=0)
    return [kind == "sparse" for kind in listed] if listed is not None else [i >= first for i in range(n)]


def _widths(c: Config) -> tuple[int, int]:
    """Of experts and of dense layers; where the latter have a key of their own, `intermediate_size` is the experts."""
    width, experts = c.size("intermediate_size", 24576), c.size("moe_intermediate_size", 3072)
    return (width, c.size("dense_intermediate_size")) if c.has("dense_intermediate_size") else (experts, width)


INKLING2 = {
    **MIXTRAL,
    "Ge": "model.embed_tokens.embed_norm.weight",
    "Qf": "model.final_input.query[d]",
    **under(
        LAYER,
        {
            "Qa": "attention_input.query[d]",
            "Q3": "attention_input.query[t3 d]",
            "Qm": "mlp_input.query[d]",
            **{f"Ga{name}": f"{name}_input_layernorm.weight" for name in "qkv"},
            "Wq": "self_attn.q_proj.linear.weight",
            "Sq": "self_attn.q_proj.norm.scale[(g r) k]",
            "Wk": "self_attn.k_proj.linear.weight",
            "Wv": "self_attn.v_proj.linear.weight",
            "Ck": "self_attn.k_proj.sconv.conv1d.weight[(g k) 1 K]",
            "Cv": "self_attn.v_proj.sconv.conv1d.weight[(g v) 1 K]",
            "Dk": "self_attn.k_proj.sconv.static_weight[K (g k)]",
            "Dv": "self_attn.v_proj.sconv.static_weight[K (g v)]",
            "Wk_taps": "self_attn.k_proj.sconv.weight_proj.weight",
            "Wv_taps": "self_attn.v_proj.sconv.weight_proj.weight",
            "Wr_states": "self_attn.relative_position_bias.linear.weight",
            "Sr": "self_attn.relative_position_bias.norm.scale[(g r) E]",
            "Bank": "self_attn.relative_position_bias.proj[E X]",
            "Wsink": "self_attn.sink_proj.weight",
            "Wz": "self_attn.o_proj.gate_proj.weight",
            "Wo": "self_attn.o_proj.linear.weight",
            "Ca": "post_attention_convolution.conv1d.weight",
            "Cm": "post_mlp_convolution.conv1d.weight",
            "Cr": "~mlp.gate.e_score_correction_bias",
        },
    ),
}


_RENAMED2 = {
    "sliding_window": "sliding_window_size",
    "num_local_experts": "n_routed_experts",
    "sconv_kernel_size": "conv_kernel_size",
    "model_max_length": "max_position_embeddings",
    "intermediate_size": "moe_intermediate_size",
    "routed_scaling_factor": "route_scale",
}
_HARMLESS2 = "tie_word_embeddings hidden_act number_of_conv_states".split()


@family("inkling2_text", cls="Inkling2ForCausalLM", names=INKLING2, harmless=_HARMLESS2)
def inkling2_text(c: Config) -> StateDecoder:
    """Thinking Machines 2026. The table and the head are never one tensor, and the head has fewer rows."""
    c.rename(**_RENAMED2)
    c.absent(hidden_size=4608, num_attention_heads=48, swa_num_attention_heads=48, swa_num_key_value_heads=8)
    c.absent(sliding_window_size=1024, log_scaling_n_floor=128000, num_hidden_layers=48)
    return inkling2(c)


def inkling2(c: Config) -> StateDecoder:
    """Layers that read the states at which blocks ended."""
    d, n, norm = c.size("hidden_size"), depth(c), rms(c)
    kinds = c.sequence("layer_types", lambda v: v in (FULL, SLIDING), f"{FULL} or {SLIDING}", n)
    kinds = kinds or [SLIDING if (i + 1) % 6 else FULL for i in range(n)]
    every = c.size("n_layers_per_attn_res_block", 6)
    mixers = {kind: state_attention(c, norm, kind == SLIDING) for kind in (FULL, SLIDING)}
    experts = softcapped_experts(c)

    def layer(key: tuple[str, int, bool, bool]) -> Layer:
        kind, blocks, first, boundary = key
        words = label(
            "sliding" if kind == SLIDING else "full",
            f"{blocks} block{'s' if blocks > 1 else ''} before" if blocks else "",
        )
        return StateLayer((), words, mixers[kind], experts, norm, blocks, first, boundary, d)

    made = by_kind([(kind, -(-i // every), i == 0, i % every == 0) for i, kind in enumerate(kinds)], layer)
    rows, used = c.size("vocab_size", 201024), c.size("unpadded_vocab_size", 200058)
    head = FilledHead(used, d, norm=norm, softcap=c.positive("final_logit_softcapping", 30.0), rows=rows)
    trained = c.maybe("max_position_embeddings", 1048576)
    return StateDecoder(Embedding(rows, d, norm=norm), made, head, trained=trained, blocks=-(-n // every))


INKLING2_LOOP = {
    **INKLING2,
    "Qasked": "model.message_input.query[loops +two d]",
    "Qkept": "model.message_input.query[loops +two d]",
    **under(
        LAYER,
        {
            f"W{letter}_{name}": f"{name}_message_gate.{path}.weight"
            for name in ("q", "k", "v", "mlp")
            for letter, path in (("d", "down_proj"), ("f", "forget_gate_proj"), ("m", "message_gate_proj"))
        },
    ),
}


@family("inkling2_loop_text", cls="Inkling2LoopForCausalLM", names=INKLING2_LOOP, harmless=_HARMLESS2)
def inkling2_loop_text(c: Config) -> StateDecoder:
    """Inkling 2 Mini: the middle layers run several times, later passes told by the one before."""
    c.rename(**_RENAMED2)
    c.absent(hidden_size=2304, num_hidden_layers=24, num_attention_heads=24, swa_num_attention_heads=24)
    c.absent(swa_num_key_value_heads=8, sliding_window_size=1024, log_scaling_n_floor=8192)
    c.absent(moe_intermediate_size=1152, n_routed_experts=128)
    nested = c.child("loop_config")

    def looped(key: str, older: str, default: int, least: int) -> int:
        return nested.size(older, least=least) if nested.has(older) else c.size(key, default, least=least)

    start, end = looped("loop_layer_index_start", "core_start", 6, 1), looped("loop_layer_index_end", "core_end", 18, 1)
    passes, rank = looped("loop_num_passes", "num_passes", 3, 2), looped("loop_gate_rank", "gate_rank", 64, 1)
    made, every = inkling2(c), c.size("n_layers_per_attn_res_block", 6)
    c.divides("loop_layer_index_start", start, "n_layers_per_attn_res_block", every)
    c.divides("loop_layer_index_end", end, "n_layers_per_attn_res_block", every)
    if not start < end <= made.depth:
        c.fail("loop_layer_index_end", f"above {start}, at most num_hidden_layers, {made.depth}")

    def told(index: int, layer: Layer) -> ToldLayer:
        assert isinstance(layer, StateLayer)
        own = (layer.steps, f"{layer.kind}, told", layer.mixer, layer.experts, layer.norm, layer.blocks)
        return ToldLayer(*own, False, layer.boundary, made.width, (end - start) // every, end - start, rank, index)

    again = tuple(told(index, layer) for index, layer in enumerate(made.layers[start:end]))
    return LoopedDecoder(
        made.embedding, made.layers, made.head, None, made.trained, None, made.blocks, start, again, passes
    )


def state_attention(c: Config, norm: Norm, slides: bool) -> StateAttention:
    """Attention of windowed layers, or of full ones, whose taps and lengths the token's place sets."""
    plain = attention(c, norm, slides)
    limits = (c.positive("qk_l2_clip_threshold", 512**0.5), c.positive("rel_l2_clip_threshold", 8.0))
    return StateAttention(
        plain.heads,
        plain.kv_heads,
        plain.head_width,
        plain.kernel,
        plain.states,
        plain.extent,
        limits,
        norm,
        plain.window,
        not slides,
        plain.temper,
    )


def softcapped_experts(c: Config) -> Moe:
    """Routed experts whose gate and other half are bounded."""
    scores = c.word("scoring_func", "sigmoid", ("sigmoid", "softmax", "sqrtsoftplus"))
    caps = (("gate_cap", c.positive("mlp_gate_softcap", 4.0)), ("up_cap", c.positive("mlp_up_softcap", 25.0)))
    scale = c.positive("route_scale", 8.0)
    return Moe(
        *pool(c, "n_routed_experts", 384, 8),
        c.size("moe_intermediate_size", 2304),
        Router(scores, correction=True, normalize=True, scale=scale),  # type: ignore[arg-type]
        activation="swiglu_softcap",
        constants=caps,
    )
