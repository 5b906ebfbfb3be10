"""Hyper-connected decoders: HY 4 and DeepSeek-V4."""

from __future__ import annotations

from assay.blocks import Branch, Decoder, Layer, Step
from assay.blocks.hyper import HyperDecoder, HyperLayer, StreamEmbedding, Streams, hyper_names
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import Names, activation, by_kind, depth, family, rms, stack, under
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
    full = sparse(c, latent(c), sinks=True, gate="element")
    mixers = {"full": full, "shared": replace(full, indexer=None)}
    indices = shared_indices(c, n, lambda i: "full" if i == 0 or (i - 1) % 4 == 0 else "shared")
    streams = Streams(c.size("hc_mult"), eps=c.positive("hc_eps", 1e-6))
    c.positive("hc_magnitude", 2.0)
    kinds = sparse_layers(c, n, 1)
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
        return HyperLayer(steps, f"{kind[0]}, {kind[1]} index", streams)

    layers = by_kind(list(zip(kinds, indices, strict=True)), layer)
    return streamed(stack(c, layers, c.size("hidden_size"), norm), streams)
