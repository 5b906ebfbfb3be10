"""Gemma 3n and Gemma 4: layers that use earlier keys and values, inputs of their own for every layer."""

from __future__ import annotations

from typing import Any

from assay.blocks import Branch, Decoder, Head, Layer, Mlp, Norm, Step
from assay.blocks.altup import AltupDecoder, AltupLayer, LayerInputs
from assay.blocks.moe import Router
from assay.blocks.shared_keys import (
    AssistantDecoder,
    BesideMoe,
    LayerInput,
    ProjectedInput,
    ScaledLayer,
    SharedKeysAttention,
    SparsifiedMlp,
)
from assay.sources.config import Config
from assay.sources.families.common import activation, by_kind, depth, family, rms, rope, under
from assay.sources.families.dense import FULL, LLAMA, SLIDING, biased
from assay.sources.families.experts import pool
from assay.sources.families.per_layer import Own, overlaid, per_layer, reusing

LAYER = "model.layers.{i}."
SHARED = {
    **LLAMA,
    "El": "model.embed_tokens_per_layer.weight[U (Y p)]",
    "Wl": "model.per_layer_model_projection.weight",
    "Gli": "model.per_layer_projection_norm.weight",
    **under(
        LAYER,
        {
            "Gqn": "self_attn.q_norm.weight",
            "Gkn": "self_attn.k_norm.weight",
            "Gpa": "post_attention_layernorm.weight",
            "Gm": "pre_feedforward_layernorm.weight",
            "Gpm": "post_feedforward_layernorm.weight",
            "Wli": "per_layer_input_gate.weight",
            "Wlo": "per_layer_projection.weight",
            "Gpl": "post_per_layer_input_norm.weight",
        },
    ),
}
GEMMA3N = {
    **SHARED,
    "Alt": "model.altup_projections.{Q}.weight[o d]",
    "Unalt": "model.altup_unembed_projections.{Q}.weight[o d]",
    **under(
        LAYER,
        {
            "Gr": "altup.router_norm.weight",
            "Wr": "altup.modality_router.weight",
            "Wpre": "altup.prediction_coefs.weight",
            "Wcor": "altup.correction_coefs.weight",
            "Rc": "altup.correct_output_scale",
            "Wla": "laurel.linear_left.weight",
            "Wlb": "laurel.linear_right.weight",
            "Gla": "laurel.post_laurel_norm.weight",
        },
    ),
}


def positions_of(c: Config, width: int, kind: str, partial: float = 1.0) -> Any:
    """Rotary positions of a kind of layer."""
    full = kind == FULL
    base, key = (1e6, "rope_theta") if full else (1e4, "rope_local_base_freq")
    usual = {"rope_type": "proportional", "partial_rotary_factor": partial, "rope_theta": base}
    scaling = usual if full and partial != 1.0 else None  # Gemma 4's, where no table says otherwise
    return rope(c, width, base, partial if full else 1.0, kind=kind, theta_key=key, scaling=scaling)


HARMLESS_3N = ("altup_coef_clip", "altup_active_idx", "query_pre_attn_scalar")  # scores are not scaled


@family("gemma3n_text", cls="Gemma3nForCausalLM", names=GEMMA3N, harmless=HARMLESS_3N)
def gemma3n_text(c: Config) -> Decoder:
    """Google DeepMind 2025: four streams, of which each layer updates one; the last layers make no keys."""
    c.inert("altup_correct_scale", True)
    c.absent(num_attention_heads=8, num_key_value_heads=2, head_dim=256, hidden_activation="gelu_pytorch_tanh")
    d, n = c.size("hidden_size", 2048), depth(c, 35)
    norm, act = rms(c), activation(c, "hidden_activation")
    known = (FULL, SLIDING)
    kinds = c.sequence("layer_types", lambda v: v in known, f"one of {', '.join(known)}", n)
    kinds = kinds or [FULL if (i + 1) % 5 == 0 else SLIDING for i in range(n)]
    reuses = reusing(c, kinds, 15)
    streams, rank, own = c.size("altup_num_inputs", 4, least=2), c.size("laurel_rank", 64), _own_width(c)
    c.divides("hidden_size", d, "num_attention_heads", c.size("num_attention_heads"))

    def layer(key: tuple[str, bool, int, float]) -> Layer:
        kind, shared, width, share = key
        mixer = shared_attention(c, norm, kind, shared, scale=1.0)
        feed = SparsifiedMlp(width, activation=act, share=share) if share > 0 else Mlp(width, activation=act)
        steps = (Step((Branch(mixer),)), Step((Branch(feed),)))
        return AltupLayer(steps, _label(kind, shared), streams, rank, norm, LayerInput(own, act, n))

    made = by_kind(list(zip(kinds, reuses, _widths(c, n), _shares(c, n), strict=True)), layer)
    rows, table = c.size("vocab_size", 262400), c.size("vocab_size_per_layer_input", 262144)
    embedding = LayerInputs(
        rows, d, scale=float(d) ** 0.5, layers=n, own=own, rows=table, own_norm=norm, streams=streams
    )
    return AltupDecoder(embedding, made, _head(c, rows, d, norm, 30.0), None, _trained(c, 32768), None, streams)


def _own_width(c: Config) -> int:
    return c.size("hidden_size_per_layer_input", 256)


def _trained(c: Config, default: int) -> int | None:
    return c.maybe("max_position_embeddings", default)


def _head(c: Config, rows: int, d: int, norm: Norm, cap: float | None) -> Head:
    """A tied head, perhaps with a cap of its logits; `cap` is the class's."""
    if "final_logit_softcapping" in c.data:
        cap = c.positive("final_logit_softcapping", 1.0) if c.has("final_logit_softcapping") else None
    return Head(rows, d, c.flag("tie_word_embeddings", True), norm=norm, softcap=cap)


def _label(kind: str, shared: bool, more: str = "") -> str:
    words = [kind.removesuffix("_attention"), "shared keys" if shared else "", more]
    return ", ".join(filter(None, words))


def _widths(c: Config, n: int) -> list[int]:
    """The feed-forward layers' widths: one for all, or a list."""
    if isinstance(c.data.get("intermediate_size"), list):
        fits = "an integer of at least 1"
        return c.sequence("intermediate_size", lambda v: type(v) is int and v > 0, fits, n) or []
    return [c.size("intermediate_size", 16384)] * n


def _shares(c: Config, n: int) -> list[float]:
    """What share of each layer's gate is cut off: a list, or one for all."""
    value = c.data.get("activation_sparsity_pattern")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [c.number("activation_sparsity_pattern") or 0.0] * n
    found = c.sequence(
        "activation_sparsity_pattern",
        lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1,
        "a number of at least 0, below 1",
        n,
    )
    sparse = 10 if n > 10 else 0
    return [float(v) for v in found] if found is not None else [0.95] * sparse + [0.0] * (n - sparse)


def shared_attention(c: Config, norm: Norm, kind: str, shared: bool, **more: Any) -> SharedKeysAttention:
    """Attention with normed queries, keys and values, scores not scaled."""
    heads, groups, width = c.size("num_attention_heads"), c.size("num_key_value_heads"), c.size("head_dim")
    c.divides("num_attention_heads", heads, "num_key_value_heads", groups)
    window = c.size("sliding_window", 512)
    return SharedKeysAttention(
        heads,
        groups,
        width,
        bias=biased(c, "attention_bias", "qkvo"),
        qk_norm=norm,
        positions=positions_of(c, width, kind, more.pop("partial", 1.0)),
        window=window if kind == SLIDING else None,
        reuses=shared,
        **more,
    )


GEMMA4 = {
    **SHARED,
    **under(
        LAYER,
        {
            "Scalar": "~layer_scalar",
            "Sr": "router.scale",
            "Wr": "router.proj.weight",
            "Se": "router.per_expert_scale",
            "Eg": "experts.gate_up_proj[e +f d]",
            "Eu": "experts.gate_up_proj[e +f d]",
            "Ed": "experts.down_proj[e d f]",
            "Gpm1": "post_feedforward_layernorm_1.weight",
            "Gpm2": "post_feedforward_layernorm_2.weight",
            "Gm2": "pre_feedforward_layernorm_2.weight",
        },
    ),
}
_HARMLESS4 = "output_router_logits router_aux_loss_coef".split()


@family("gemma4_text", cls="Gemma4ForCausalLM", names=GEMMA4, harmless=_HARMLESS4)
def gemma4_text(c: Config) -> Decoder:
    """Google DeepMind 2026: full layers with wider heads, experts beside a dense layer in the larger ones."""
    c.absent(hidden_size_per_layer_input=256, sliding_window=512, max_position_embeddings=131072)
    return gemma4(c)


@family("gemma4_unified_text", cls="Gemma4UnifiedForCausalLM", names=GEMMA4, harmless=_HARMLESS4)
def gemma4_unified_text(c: Config) -> Decoder:
    """The same without inputs of their own for each layer."""
    c.absent(sliding_window=1024, max_position_embeddings=262144, use_bidirectional_attention="vision")
    return gemma4(c)


ASSISTANT = {**GEMMA4, "Wpre": "pre_projection.weight", "Wpost": "post_projection.weight"}


@family("gemma4_unified_assistant", cls="Gemma4UnifiedAssistantForCausalLM", names=ASSISTANT, harmless=_HARMLESS4)
def gemma4_unified_assistant(c: Config) -> Decoder:
    """A small model that drafts tokens from a main model's states, with no keys but the main model's."""
    c.inert("use_ordered_embeddings", False)
    c.skip("num_centroids", "centroid_intermediate_top_k")
    text = c.child("text_config")
    if text.word("model_type", "gemma4_unified_text") != "gemma4_unified_text":
        text.fail("model_type", "gemma4_unified_text")
    text.absent(sliding_window=1024, max_position_embeddings=262144, use_bidirectional_attention="vision")
    text.inert("tie_word_embeddings", True)
    n = depth(text, 30)
    if text.size("num_kv_shared_layers", n, least=0) not in (0, n):
        text.fail("num_kv_shared_layers", f"0 or num_hidden_layers, {n}: no layer of an assistant makes keys")
    made, given = gemma4(text, lent=True), c.size("backbone_hidden_size", 3840)
    c.inert("tie_word_embeddings", True)
    embedding = ProjectedInput(made.embedding.vocab, made.width, given=given)
    return AssistantDecoder(embedding, made.layers, made.head, None, made.trained, None, given)


def gemma4(c: Config, lent: bool = False) -> Decoder:
    """Gemma 4's layers; `lent` where every layer's keys are another model's."""
    if c.has("use_bidirectional_attention"):
        c.word("use_bidirectional_attention", None, ("vision",))
    c.absent(num_attention_heads=8, num_key_value_heads=4, head_dim=256, hidden_activation="gelu_pytorch_tanh")
    d, n, norm = c.size("hidden_size", 2304), depth(c, 30), rms(c)
    kinds = _kinds4(c, n)
    reuses = [True] * n if lent else reusing(c, kinds, 0)
    own = c.maybe("hidden_size_per_layer_input", least=0) or None
    twice = c.flag("use_double_wide_mlp", False)
    both = c.flag("attention_k_eq_v", False)

    def layer(key: tuple[str, bool, Own]) -> Layer:
        kind, shared, sizes = key
        inner = overlaid(c, sizes)
        lends = f"_{kind.removesuffix('_attention')}" if any(reuses) else ""
        width = c.size("intermediate_size", 9216) * (2 if twice and shared else 1)
        mixer = shared_attention(
            inner, norm, kind, shared, scale=1.0, partial=0.25, keys_are_values=both and kind == FULL, lends=lends
        )
        return ScaledLayer(_steps4(c, mixer, width, norm, own), _label(kind, shared))

    made = by_kind(list(zip(kinds, reuses, _sizes4(c, kinds, both), strict=True)), layer)
    rows = c.size("vocab_size", 262144)
    table = c.size("vocab_size_per_layer_input", 262144) if own else None
    c.skip("vocab_size_per_layer_input")
    embedding = LayerInputs(rows, d, scale=float(d) ** 0.5, layers=n, own=own, rows=table, own_norm=norm)
    return Decoder(embedding, made, _head(c, rows, d, norm, None), trained=c.maybe("max_position_embeddings"))


def _kinds4(c: Config, n: int) -> list[str]:
    """Five sliding layers to a full one; the last is always full."""
    known = (FULL, SLIDING)
    kinds = c.sequence("layer_types", lambda v: v in known, f"one of {', '.join(known)}", n)
    kinds = kinds or [SLIDING if (i + 1) % 6 else FULL for i in range(n)]
    if kinds[-1] != FULL:
        c.notes.append("the last layer is read as full attention, as the public implementation makes it")
    return [*kinds[:-1], FULL]


def _sizes4(c: Config, kinds: list[str], both: bool) -> list[Own]:
    """The heads of full layers: as listed for each layer, else as the keys of global layers say."""
    found = per_layer(c, len(kinds), ("head_dim", "num_key_value_heads"))
    width, groups = c.size("global_head_dim", 512), c.maybe("num_global_key_value_heads")
    if found is not None:
        return found
    own: dict[str, int] = {"head_dim": width}
    if both and groups is not None:
        own["num_key_value_heads"] = groups
    return [tuple(own.items()) if kind == FULL else () for kind in kinds]


def _steps4(c: Config, mixer: SharedKeysAttention, width: int, norm: Norm, own: int | None) -> tuple[Step, ...]:
    """Attention, a feed-forward layer with experts beside it where they are enabled, the layer's own input."""
    act = activation(c, "hidden_activation")
    steps = [Step((Branch(mixer, norm, norm),))]
    if c.flag("enable_moe_block", False):
        moe = BesideMoe(
            *pool(c, "num_experts", key="top_k_experts"),
            c.size("moe_intermediate_size"),
            Router(),
            activation=act,
            dense=width,
            norm=norm,
            model=c.size("hidden_size", 2304),
        )
        steps.append(Step((Branch(moe, None, norm),)))
    else:
        c.skip("num_experts", "top_k_experts", "moe_intermediate_size")
        steps.append(Step((Branch(Mlp(width, activation=act), norm, norm),)))
    if own is not None:
        steps.append(Step((Branch(LayerInput(own, act, c.size("num_hidden_layers", 30)), None, norm),)))
    return tuple(steps)
