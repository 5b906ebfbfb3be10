"""Hyper-connected decoders: HY 4 and DeepSeek-V4."""

from __future__ import annotations

from assay.blocks import Branch, Decoder, Layer, Norm, Rope, Step
from assay.blocks.compressed import CompressedAttention, Compressor, HashRouter, TokenMoe
from assay.blocks.hyper import HyperDecoder, HyperLayer, StreamEmbedding, Streams, hyper_names
from assay.blocks.moe import Moe, Router
from assay.records import replace
from assay.sources.config import Config, fraction_of
from assay.sources.families.common import Names, activation, by_kind, depth, family, label, rms, rope, stack, under
from assay.sources.families.dense import biased
from assay.sources.families.latent import HARMLESS, dense, latent, routed, sparse_layers
from assay.sources.families.sparse_latent import SPARSE, shared_indices, sparse


def streamed(made: Decoder, streams: Streams) -> HyperDecoder:
    """The same embedding, layers and head around several streams."""
    e = made.embedding
    embedding = StreamEmbedding(e.vocab, e.width, streams=streams.count)
    return HyperDecoder(embedding, made.layers, made.head, made.limit, made.trained, made.names, streams)


def connections(mixed: bool) -> Names:
    """Where the connections of a layer and of the end are stored."""
    return {
        **hyper_names("model.layers.{i}.attn_hc.", "a", mixed),
        **hyper_names("model.layers.{i}.ffn_hc.", "m", mixed),
        **hyper_names("model.hc_head.", "f", stem="hc_"),
    }


HY_V4 = {
    **SPARSE,
    **connections(False),
    **under("model.layers.{i}.self_attn.", {"Wgate": "gate_proj.weight", "Sinks": "sinks"}),
}


@family("hy_v4", cls="HYV4ForCausalLM", names=HY_V4, harmless=(*HARMLESS, "learnable_sink_init"))
def hy_v4(c: Config) -> Decoder:
    """HY 4: sparse latent attention with sinks and a gate, four residual streams that are not mixed."""
    c.absent(hidden_size=2816, vocab_size=120832, max_position_embeddings=262144, num_hidden_layers=34)
    c.absent(num_attention_heads=32, kv_lora_rank=512, q_lora_rank=1536, rms_norm_eps=1e-5)
    c.absent(qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, intermediate_size=6912)
    c.absent(n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=768, n_shared_experts=1)
    c.absent(n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.827)
    c.absent(index_topk=2048, index_head_dim=128, index_n_heads=16, swiglu_limit=10.0, hc_mult=4)
    c.size("q_lora_rank")
    c.inert("mlp_bias", False)
    n, norm = depth(c), rms(c)
    full = sparse(c, latent(c, interleaved=False), style="last_halves", sinks=True, gate="element")
    own = Norm("layernorm", "gain+bias", norm.eps)  # of the indexer's keys
    full = replace(full, indexer=replace(full.indexer, norm=own))
    mixers = {"full": full, "shared": replace(full, indexer=None)}
    indices = shared_indices(c, n, lambda i: "full" if i == 0 or (i - 1) % 4 == 0 else "shared")
    plain, magnitude = Norm(affine="none", eps=norm.eps), c.positive("hc_magnitude", 2.0)
    streams = Streams(c.size("hc_mult"), eps=c.positive("hc_eps", 1e-6), norm=plain, magnitude=magnitude)
    kinds = sparse_layers(c, n, 1, free=False)
    limit = c.positive("swiglu_limit", 10.0)
    experts = routed(c) if "sparse" in kinds else None
    if experts is not None:
        experts = replace(
            experts,
            activation="swiglu_limit",
            constants=(("limit", limit),),
            shared_activation=activation(c),
        )

    def layer(kind: tuple[str, str]) -> Layer:
        body = experts if kind[0] == "sparse" and experts is not None else dense(c)
        steps = (Step((Branch(mixers[kind[1]], norm),)), Step((Branch(body, norm),)))
        return HyperLayer(steps, label(kind[0], f"{kind[1]} index"), streams)

    layers = by_kind(list(zip(kinds, indices, strict=True)), layer)
    return streamed(stack(c, layers, c.size("hidden_size"), norm), streams)


SPARSE_KIND, HEAVY, SLIDING = "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"
RATIOS = {0: SLIDING, 4: SPARSE_KIND, 128: HEAVY}  # how older files write the kinds of layers


def compressor_names(prefix: str, name: str, axes: str) -> Names:
    """Where the weights that make entries are stored."""
    own = {f"W{name}v": "kv_proj.weight", f"W{name}g": "gate_proj.weight", f"G{name}": "kv_norm.weight"}
    return under(prefix, {**own, f"P{name}": f"position_bias[R {axes}]"})


DEEPSEEK_V4 = {
    **SPARSE,
    **connections(True),
    **compressor_names("model.layers.{i}.self_attn.compressor.", "c", "(Z v)"),
    **compressor_names("model.layers.{i}.self_attn.compressor.indexer.", "ic", "(Z J)"),
    **under(
        "model.layers.{i}.self_attn.",
        {
            "Wqa": "q_a_proj.weight",
            "Gqa": "q_a_norm.weight",
            "Wqb": "q_b_proj.weight",
            "Wk": "kv_proj.weight",
            "Gk": "kv_norm.weight",
            "Woa": "o_a_proj.weight[(G P) (r v)]",
            "Wo": "o_b_proj.weight",
            "Sinks": "sinks",
            "Wiq": "compressor.indexer.q_b_proj.weight",
            "Wiw": "compressor.indexer.scorer.weights_proj.weight",
        },
    ),
    **under("model.layers.{i}.mlp.gate.", {"Table": "~tid2eid"}),
}


@family("deepseek_v4", cls="DeepseekV4ForCausalLM", names=DEEPSEEK_V4, harmless=(*HARMLESS, "expert_dtype"))
def deepseek_v4(c: Config) -> Decoder:
    """DeepSeek-AI 2026: windows and compressed entries, four mixed residual streams, experts by token in the first."""
    c.absent(hidden_size=4096, vocab_size=129280, max_position_embeddings=1048576, num_hidden_layers=43)
    c.rename(num_local_experts="n_routed_experts", intermediate_size="moe_intermediate_size")
    c.inert("attention_bias", False)
    c.inert("num_key_value_heads", 1)
    c.inert("hidden_act", "silu")
    n, width, norm = depth(c), c.size("hidden_size"), rms(c)
    plain = Norm(affine="none", eps=norm.eps)
    streams = Streams(c.size("hc_mult", 4), c.size("hc_sinkhorn_iters", 20), c.positive("hc_eps", 1e-6), plain)
    mixers = {kind: compressed(c, norm, kind) for kind in (SPARSE_KIND, HEAVY, SLIDING)}
    experts = {kind: v4_experts(c, kind == "hash_moe") for kind in ("hash_moe", "moe")}
    made = _v4_layers(c, n)

    def layer(key: tuple[str, str]) -> Layer:
        steps = (Step((Branch(mixers[key[0]], norm),)), Step((Branch(experts[key[1]], norm),)))
        words = key[0].removesuffix("_attention").replace("_", " ")
        return HyperLayer(steps, words + (", experts by token" if key[1] == "hash_moe" else ""), streams)

    return streamed(stack(c, by_kind(made, layer), width, norm), streams)


def _v4_layers(c: Config, n: int) -> list[tuple[str, str]]:
    """The attention and the experts of each layer. Files list one more ratio for each further prediction module."""
    ratios = c.sequence("compress_ratios", lambda v: type(v) is int and v in RATIOS, "0, 4 or 128")
    known = (SPARSE_KIND, HEAVY, SLIDING)
    kinds = c.sequence("layer_types", lambda v: v in known, f"one of {', '.join(known)}")
    if kinds is None and ratios is not None:
        kinds = [RATIOS[ratio] for ratio in ratios]
    if kinds is None:
        kinds = [SPARSE_KIND if i % 2 and i > 1 else HEAVY for i in range(n)]
    if len(kinds) < n:
        c.fail("compress_ratios" if c.data.get("layer_types") is None else "layer_types", f"a list of {n} items")
    hashed = c.size("num_hash_layers", 3, least=0)
    feed = c.sequence("mlp_layer_types", lambda v: v in ("hash_moe", "moe"), "hash_moe or moe", n)
    if feed is None:
        feed = ["hash_moe" if i < hashed else "moe" for i in range(n)]
    return list(zip(kinds[:n], feed, strict=True))


def compressed(c: Config, norm: Norm, kind: str) -> CompressedAttention:
    """One kind of V4's attention."""
    heads, width = c.size("num_attention_heads", 64), c.size("head_dim", 512)
    groups = c.size("o_groups", 8)
    c.divides("num_attention_heads", heads, "o_groups", groups)
    share = c.positive("partial_rotary_factor", 0.125) if c.has("partial_rotary_factor") else None
    rotary = c.size("qk_rope_head_dim", 64) if c.has("qk_rope_head_dim") else None
    turned = fraction_of(width, share) if share is not None else rotary if rotary is not None else width // 8
    if not 0 < turned <= width:
        c.fail("qk_rope_head_dim" if share is None else "partial_rotary_factor", f"a part of head_dim, {width}")
    return CompressedAttention(
        heads,
        width,
        c.size("q_lora_rank", 1024),
        c.size("sliding_window", 128),
        groups,
        c.size("o_lora_rank", 1024),
        norm,
        turning(c, kind, width, turned),
        compressor(c, kind, turned),
    )


def turning(c: Config, kind: str, width: int, turned: int) -> Rope:
    """Rotary positions: plain ones in a layer with its window alone, scaled ones elsewhere."""
    label = "main" if kind == SLIDING else "compress"
    theta, base = ("rope_theta", 10000.0) if kind == SLIDING else ("compress_rope_theta", 160000.0)
    if label in (c.table("rope_parameters") or {}):
        found = rope(c, width, base, turned / width, label, theta_key=theta)
        return replace(found, width=found.width or width, style="last")
    scaled = rope(c, width, base, turned / width, theta_key=theta)
    return replace(scaled, width=turned, style="last", scaling=None if kind == SLIDING else scaled.scaling)


def compressor(c: Config, kind: str, rotary: int) -> Compressor | None:
    """What makes entries of windows in a layer of this kind."""
    rates = c.child("compress_rates")
    sparse_rate = c.size("compress_rate_csa", rates.size(SPARSE_KIND, 4))
    heavy_rate = c.size("compress_rate_hca", rates.size(HEAVY, 128))
    heads, width, top = c.size("index_n_heads", 64), c.size("index_head_dim", 128), c.size("index_topk", 512)
    if rotary > width:
        c.fail("index_head_dim", f"at least the {rotary} elements that are rotated")
    if kind == HEAVY:
        return Compressor(heavy_rate)
    return Compressor(sparse_rate, top, heads, width) if kind == SPARSE_KIND else None


def v4_experts(c: Config, hashed: bool) -> Moe:
    """Experts chosen by score, or by token id."""
    width, vocab = c.size("moe_intermediate_size", 2048), c.size("vocab_size")
    count, chosen = c.size("n_routed_experts", 256), c.size("num_experts_per_tok", 6)
    if chosen > count:
        c.fail("num_experts_per_tok", f"at most n_routed_experts, {int(count)}")
    c.inert("n_shared_experts", 1)
    c.inert("norm_topk_prob", True)
    scores = c.word("scoring_func", "sqrtsoftplus", ("sqrtsoftplus", "sigmoid", "softmax"))
    scale = c.number("routed_scaling_factor", 1.5)
    kind = HashRouter if hashed else Router
    return TokenMoe(
        count,
        chosen,
        width,
        kind(scores, correction=not hashed, normalize=True, scale=scale),  # type: ignore[arg-type]
        activation="swiglu_limit",
        constants=(("limit", c.positive("swiglu_limit", 10.0)),),
        shared=width,
        shared_bias=biased(c, "mlp_bias", "gud"),
        vocab=vocab if hashed else None,
    )
