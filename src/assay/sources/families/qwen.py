"""Qwen2 and Qwen3, and what else norms its queries and keys head by head."""

from __future__ import annotations

from typing import Any

from assay.blocks import Decoder, Head
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import family, pre_norm, under
from assay.sources.families.dense import FULL, LLAMA, SLIDING, Defaults, Dense, biased, dense, layer_types, window_of

_EXPORTED = ("max_cache_length", "mask_value", "linear_impl_type", "linear_block_size")  # notes of a phone's exporter


@family("qwen2", cls="Qwen2ForCausalLM", names=LLAMA, harmless=_EXPORTED)
def qwen2(c: Config) -> Decoder:
    """Yang et al. 2024: biases on queries, keys and values always; windows in the upper layers."""
    c.inert("attention_bias", True)
    c.inert("qkv_bias", True)
    p = dense(c, Defaults(4096, 22016, 32, 32, 32, vocab=151936, trained=32768))
    return _upper_windows(c, p, bias="qkv")


@family("qwen3", cls="Qwen3ForCausalLM", names=LLAMA, harmless=_EXPORTED)
def qwen3(c: Config) -> Decoder:
    """Yang et al. 2025: queries and keys are normed head by head."""
    p = dense(c, Defaults(4096, 22016, 32, 32, 32, 128, vocab=151936, trained=32768, derives=False))
    return _upper_windows(c, p, bias=biased(c, "attention_bias", "qkvo"), qk_norm=p.norm)


def _upper_windows(c: Config, p: Dense, **changes: Any) -> Decoder:
    """Layers from `max_window_layers` on have the window, where `use_sliding_window` is true."""
    first = c.size("max_window_layers", 28, least=0)
    slides = c.flag("use_sliding_window", False)
    known = c.maybe("sliding_window", 4096)
    kinds = layer_types(c, [SLIDING if slides and known and i >= first else FULL for i in range(p.depth)])
    if SLIDING in kinds and not slides:
        c.fail("use_sliding_window", "true where layer_types holds sliding_attention")
    attention = p.windowed(window_of(c, kinds), **changes)
    return p.mixed(kinds, lambda kind: pre_norm(attention(kind), p.mlp, p.norm, kind))


HUNYUAN = {
    **LLAMA,
    **under("model.layers.{i}.self_attn.", {"Gqn": "query_layernorm.weight", "Gkn": "key_layernorm.weight"}),
}

# the released configs carry switches of other models of the house, and of its picture and video models
_HUNYUAN = """
    add_classification_head class_num eod_token_id im_end_id im_newline_id im_start_id image_token_id
    text_start_id text_end_id video_start_id video_end_id mask_init_id pad_id skip_cls_token pool_type
    enable_lm_fp32 dense_list attention_head_dim norm_type num_media_embeds org_vocab_size use_rotary_pos_emb
    cla_share_factor moe_topk moe_intermediate_size num_shared_expert moe_layer_num_skipped moe_drop_tokens
    moe_random_routing_dropped_token capacity_factor norm_topk_prob routed_scaling_factor group_limited_greedy
    n_group topk_group kv_lora_rank q_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim anyres_pooling_size
    anyres_vit_max_image_size anyres_vit_two_views max_image_size max_video_frame_size min_image_size
    vit_add_patchemb_bias vit_input_resolution vit_mapping_type vit_norm_type vit_patch vit_path
    vit_remove_prenorm vit_token vit_type vit_used_rms_norm xdrope_section use_mixed_mlp_moe
""".split()


@family("hunyuan_v1_dense", cls="HunYuanDenseV1ForCausalLM", names=HUNYUAN, harmless=_HUNYUAN)
def hunyuan(c: Config) -> Decoder:
    """Hunyuan dense (Tencent 2025): queries and keys are normed after their rotation."""
    for key in ("use_cla", "use_mla", "position_embedding_xdrope"):
        c.inert(key, False)
    c.inert("num_experts", 1)
    p = dense(c, Defaults(4096, 11008, 32, 32, vocab=290943, trained=2048, eps=1e-5))
    bias = biased(c, "attention_bias", "qkvo")
    return p.repeat(pre_norm(p.attention(bias=bias, qk_norm=p.norm, norm_late=True), p.mlp, p.norm))


APERTUS = {
    **LLAMA,
    **under("model.layers.{i}.", {"Ga": "attention_layernorm.weight", "Gm": "feedforward_layernorm.weight"}),
}
_LLAMA3 = (("rope_type", "llama3"), ("rope_theta", 12e6), ("factor", 8.0), ("original_max_position_embeddings", 8192))
_APERTUS = Defaults(
    4096,
    14336,
    32,
    32,
    vocab=131072,
    trained=65536,
    eps=1e-5,
    theta=12e6,
    act="xielu",
    scaling=(*_LLAMA3, ("low_freq_factor", 1.0), ("high_freq_factor", 4.0)),
)


def _apertus(c: Config, sizes: Defaults) -> Decoder:
    c.inert("post_norm", False)
    p = dense(c, sizes, gated=False)
    bias = biased(c, "attention_bias", "qkvo")
    return p.repeat(pre_norm(p.attention(bias=bias, qk_norm=p.norm), p.mlp, p.norm))


@family("apertus", cls="ApertusForCausalLM", names=APERTUS)
def apertus(c: Config) -> Decoder:
    """Apertus (Swiss AI 2025): two matrices around xIELU, whose slopes are learned in each layer."""
    return _apertus(c, _APERTUS)


@family("apertus1p5_text", cls="Apertus1p5TextForCausalLM", names=APERTUS)
def apertus1p5(c: Config) -> Decoder:
    """Apertus 1.5: a head that may be narrower than the table of tokens, whose image and sound codes it never emits."""
    made = _apertus(c, replace(_APERTUS, vocab=266752))
    rows = c.maybe("output_vocab_size") or made.embedding.vocab
    known, head = made.embedding.vocab, made.head
    if not isinstance(head, Head) or rows > known or (head.tied and rows < known):
        c.fail("output_vocab_size", f"at most vocab_size, {known}, and equal to it where the head is tied")
    return replace(made, head=replace(head, vocab=rows))
