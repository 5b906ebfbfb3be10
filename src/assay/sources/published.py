"""What weights are called in published files, where that is not their name in the public implementation.

The implementation packs experts that files hold one by one, and has renamed modules since files were written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from assay.records import replace
from assay.spec import Segment, Weight

if TYPE_CHECKING:
    import re

Named: TypeAlias = "str | Callable[[re.Match[str]], str]"

# endings of the names of an expert's matrices, by the letter of the weight
_BY_NAME = {"Eg": "gate_proj", "Eu": "up_proj", "Ed": "down_proj"}
_BY_NUMBER = {"Eg": "w1", "Eu": "w3", "Ed": "w2"}

_NAMED = """
    afmoe axk1 axk2 bailing_hybrid beam cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 dots1
    dots3_note_text ernie4_5_moe
    exaone_moe flex_olmo flint glm4_moe glm4_moe_lite glm4v_moe glm4v_moe_text glm_moe_dsa hunyuan_v1_moe hy_v3 jamba
    kimi_k25 kolibri1 laguna lara_mini longcat_flash mellum mimo_v2_flash nemotron_h olmoe qwen2_moe qwen3_5_moe
    qwen3_5_moe_text qwen3_moe
    qwen3_next qwen3_omni_moe_text sarvam_mla
    sarvam_moe solar_open
"""
_NUMBERED = "deepseek_v4 kimi_linear lfm2_moe minimax minimax_m2 mixtral phimoe"
EXPERTS = dict.fromkeys(_NAMED.split(), _BY_NAME) | dict.fromkeys(_NUMBERED.split(), _BY_NUMBER)

# convolutions that the implementation packs and files keep apart
_CONVOLUTIONS = {f"mixer.K{letter}": (r"\.conv1d\.", f".{letter}_conv1d.") for letter in "qkv"}
SPLIT = dict.fromkeys(("bailing_hybrid", "kimi_linear", "olmo_hybrid"), _CONVOLUTIONS)
# projections that files pack and the implementation keeps apart
SPLIT["olmo_hybrid"] = _CONVOLUTIONS | {
    "Ga": (r"\.input_layernorm\.", ".attention_layer_norm."),
    "Gm": (r"\.post_attention_layernorm\.", ".feedforward_layer_norm."),
}
SPLIT["lara_mini"] = {f"mixer.W{letter}": (r"\.in_proj_\w+\.", ".in_proj.") for letter in "qkvzba"}

_SPARSE = (r"\.mlp\.(experts|shared_experts|gate|e_score_correction_bias|router)\b", r".block_sparse_moe.\1")


def _of_the_layer_before(found: re.Match[str]) -> str:
    """Queries of what a layer reads, numbered from the second layer on."""
    layer = found[1]
    return f".attn_res.attn_queries.{'{i-1}' if layer == '{i}' else int(layer) - 1}"


_TIDE = (
    (r"^model\.", "model.llm."),
    (r"^lm_head\.", "model.llm.unembed."),
    (r"\.embed_tokens\.weight$", ".embed.weight"),
    (r"\.embed_tokens\.embed_norm\.", ".embed_norm."),
    (r"\.experts\.gate_up_proj$", ".experts.w13_weight"),
    (r"\.experts\.down_proj$", ".experts.w2_weight"),
    (r"\.gate\.e_score_correction_bias$", ".gate.bias"),
    (r"\.post_attention_layernorm\.", ".mlp_norm."),
    (r"\.input_layernorm\.", ".attn_norm."),
)
_TIDE1 = (
    (r"\.mlp\.shared_experts\.(gate|up)_proj$", ".mlp.shared_experts.shared_w13_weight"),
    (r"\.mlp\.shared_experts\.down_proj$", ".mlp.shared_experts.shared_w2_weight"),
    (r"\.mlp\.(gate|up)_proj\.weight$", ".mlp.w13_dn.weight"),
    (r"\.mlp\.down_proj\.weight$", ".mlp.w2_md.weight"),
    (r"\.self_attn\.([qr])_proj\.", r".attn.w\1_du."),
    (r"\.self_attn\.([kv])_proj\.", r".attn.w\1_dv."),
    (r"\.self_attn\.o_proj\.", ".attn.wo_ud."),
    (r"\.self_attn\.", ".attn."),
    (r"_sconv\.conv1d\.", "_sconv."),
)
_TIDE2 = (
    (r"\.layers\.([^.]+)\.attention_input\.query$", _of_the_layer_before),
    (r"\.layers\.([^.]+)\.mlp_input\.query$", r".attn_res.mlp_queries.\1"),
    (r"\.final_input\.query$", ".attn_res.output_query"),
    (r"\.self_attn\.([kv])_proj\.sconv\.conv1d\.", r".attn.\1_sconv."),
    (r"\.self_attn\.([kv])_proj\.sconv\.static_weight$", r".attn.\1_sconv.static_w"),
    (r"\.self_attn\.([kv])_proj\.sconv\.weight_proj\.weight$", r".attn.\1_sconv.weight_proj"),
    (r"\.self_attn\.q_proj\.norm\.", ".attn.q_l2_clip."),
    (r"\.self_attn\.q_proj\.linear\.", ".attn.wq_du."),
    (r"\.self_attn\.([kv])_proj\.linear\.", r".attn.w\1_dv."),
    (r"\.self_attn\.o_proj\.linear\.", ".attn.wo_ud."),
    (r"\.self_attn\.o_proj\.gate_proj\.", ".attn.gate_attn."),
    (r"\.self_attn\.sink_proj\.", ".attn.attn_sink_proj."),
    (r"\.self_attn\.relative_position_bias\.linear\.", ".attn.wr_du."),
    (r"\.self_attn\.relative_position_bias\.norm\.", ".attn.rel_l2_clip."),
    (r"\.self_attn\.relative_position_bias\.", ".attn.rel_logits_proj."),
    (r"\.post_attention_convolution\.conv1d\.", ".attn_sconv."),
    (r"\.post_mlp_convolution\.conv1d\.", ".mlp_sconv."),
    (r"\.([qkv])_input_layernorm\.", r".\1_input_norm."),
)
_TIDE_LOOP = (
    (r"\.q_message_gate\.", ".controllers.attn."),
    (r"\.(k|v|mlp)_message_gate\.", r".controllers.\1."),
    (r"\.down_proj\.weight$", ".down_weight"),
    (r"\.message_gate_proj\.weight$", ".gain_weight"),
    (r"\.forget_gate_proj\.weight$", ".forget_weight"),
)
# shapes in published files where they are others: tables filled up, halves in one tensor or in two
LAYOUTS: dict[str, dict[str, str]] = {
    "inkling_text": {"Sg": "S +f d", "Su": "S +f d", "Wg": "+f d", "Wu": "+f d"},
    "inkling2_text": {"Wout": "U d"},
    "inkling2_loop_text": {"Wout": "U d", "Qasked": "(loops two) d", "Qkept": "(loops two) d"},
}
SPLIT["inkling2_loop_text"] = {
    "Qasked": (r"message_input\.query$", "middle_cycle_cross_pass_queries"),
    "Qkept": (r"message_input\.query$", "middle_cycle_cross_pass_kv_queries"),
}
# an expression on the implementation's name, and the published one: each applied in turn
RENAMED: dict[str, tuple[tuple[str, Named], ...]] = {
    "inkling_text": _TIDE + _TIDE1,
    "inkling2_text": _TIDE + _TIDE2,
    "inkling2_loop_text": _TIDE + _TIDE2 + _TIDE_LOOP,
    "mixtral": (_SPARSE,),
    "minimax": (_SPARSE,),
    "minimax_m2": (_SPARSE,),
    "kimi_linear": (_SPARSE, (r"self_attn\.forget_gate\.", "self_attn.")),
    "bailing_hybrid": (
        (r"^model\.embed_tokens\.", "model.word_embeddings."),
        (r"self_attn\.forget_gate\.", "self_attn."),
        (r"\.self_attn\.o_proj\.", ".self_attn.dense."),
        (r"\.self_attn\.", ".attention."),
        (r"mlp\.gate\.e_score_correction_bias", "mlp.gate.expert_bias"),
    ),
    "gpt_neox": ((r"^lm_head\.", "embed_out."),),
    "phimoe": (_SPARSE, (r"block_sparse_moe\.router\.", "block_sparse_moe.gate.")),
    "granitemoe": (
        (r"block_sparse_moe\.experts\.gate_up_proj$", "block_sparse_moe.input_linear.weight"),
        (r"block_sparse_moe\.experts\.down_proj$", "block_sparse_moe.output_linear.weight"),
        (r"block_sparse_moe\.router\.weight$", "block_sparse_moe.router.layer.weight"),
    ),
    "ernie4_5_moe": ((r"mlp\.gate\.moe_statics", "mlp.moe_statics"),),
    "exaone_moe": ((r"mlp\.gate\.e_score_correction_bias", "mlp.e_score_correction_bias"),),
    "hy_v3": (
        (r"mlp\.gate\.weight", "mlp.router.gate.weight"),
        (r"mlp\.e_score_correction_bias", "mlp.expert_bias"),
        (r"mlp\.shared_experts\.", "mlp.shared_mlp."),
    ),
    "laguna": (
        (r"mlp\.gate\.e_score_correction_bias", "mlp.experts.e_score_correction_bias"),
        (r"mlp\.shared_experts\.", "mlp.shared_expert."),
    ),
    "exaone": (
        (r"^model\.embed_tokens\.", "transformer.wte."),
        (r"^model\.layers\.", "transformer.h."),
        (r"^model\.norm\.", "transformer.ln_f."),
        (r"\.self_attn\.o_proj\.", ".self_attn.out_proj."),
        (r"\.self_attn\.", ".attn.attention."),
        (r"\.input_layernorm\.", ".ln_1."),
        (r"\.post_attention_layernorm\.", ".ln_2."),
        (r"\.mlp\.gate_proj\.", ".mlp.c_fc_0."),
        (r"\.mlp\.up_proj\.", ".mlp.c_fc_1."),
        (r"\.mlp\.down_proj\.", ".mlp.c_proj."),
    ),
    "aria_text": (
        (r"\.mlp\.experts\.gate_up_proj$", ".mlp.experts.fc1.weight"),
        (r"\.mlp\.experts\.down_proj$", ".mlp.experts.fc2.weight"),
    ),
    "axk1": ((r"\.mlp\.post_mlp_layernorm\.", ".post_mlp_layernorm."),),
    "axk2": (
        (r"layernorm\.mlp\.fc1\.", "layernorm.W_down."),
        (r"layernorm\.mlp\.fc2\.", "layernorm.W_up."),
        (r"self_attn\.q_gate_proj\.", "self_attn.q_b_proj."),
    ),
    "deepseek_v4": (
        (r"^model\.", ""),
        (r"^embed_tokens\.", "embed."),
        (r"^lm_head\.", "head."),
        (r"^hc_head\.hc_", "hc_head_"),
        (r"\.(attn|ffn)_hc\.", r".hc_\1_"),
        (r"\.input_layernorm\.", ".attn_norm."),
        (r"\.post_attention_layernorm\.", ".ffn_norm."),
        (r"\.compressor\.indexer\.scorer\.weights_proj\.", ".indexer.weights_proj."),
        (r"\.compressor\.indexer\.q_b_proj\.", ".indexer.wq_b."),
        (r"\.compressor\.indexer\.", ".indexer.compressor."),
        (r"\.compressor\.kv_norm\.", ".compressor.norm."),
        (r"\.compressor\.gate_proj\.", ".compressor.wgate."),
        (r"\.position_bias$", ".ape"),
        (r"\.kv_proj\.", ".wkv."),
        (r"\.(q_a|q_b|o_a|o_b)_proj\.", r".w\1."),
        (r"\.q_a_norm\.", ".q_norm."),
        (r"\.self_attn\.sinks$", ".self_attn.attn_sink"),
        (r"\.self_attn\.", ".attn."),
        (r"\.mlp\.", ".ffn."),
        (r"\.gate\.e_score_correction_bias$", ".gate.bias"),
        (r"\.shared_experts\.gate_proj\.", ".shared_experts.w1."),
        (r"\.shared_experts\.down_proj\.", ".shared_experts.w2."),
        (r"\.shared_experts\.up_proj\.", ".shared_experts.w3."),
    ),
    "gte": (
        (r"(^|\.)layers\.", r"\1encoder.layer."),
        (r"\.self_attn\.[qkv]_proj\.", ".attention.qkv_proj."),
        (r"\.self_attn\.o_proj\.", ".attention.o_proj."),
        (r"\.mlp\.(gate|up)_proj\.", ".mlp.up_gate_proj."),
        (r"\.post_attention_layernorm\.", ".attn_ln."),
        (r"\.post_mlp_layernorm\.", ".mlp_ln."),
        (r"^lm_head\.layer_norm\.", "lm_head.norm."),
    ),
    "hrm_text": (
        (r"\.self_attn\.(gate|q|k|v)_proj\.", ".attn.gqkv_proj."),
        (r"\.self_attn\.o_proj\.", ".attn.o_proj."),
        (r"\.mlp\.(gate|up)_proj\.", ".mlp.gate_up_proj."),
    ),
    "hy_v4": (
        (r"^model\.hc_head\.hc_", "model.hc_pre.hc_head.hc_head_"),
        (r"\.attn_hc\.", ".hc_pre.hc_attn_layer.hc_"),
        (r"\.ffn_hc\.", ".hc_pre.hc_mlp_layer.hc_"),
        (r"\.self_attn\.sinks$", ".self_attn.learnable_sink_param"),
        (r"\.(self_attn|mlp|shared_experts)\.gate_proj\.", r".\1.linear_gate."),
    ),
    "jina_embeddings_v3": (
        (r"(^|\.)embeddings\.LayerNorm\.", r"\1emb_ln."),
        (r"(^|\.)layers\.", r"\1encoder.layers."),
        (r"\.self_attn\.[qkv]_proj\.", ".mixer.Wqkv."),
        (r"\.self_attn\.o_proj\.", ".mixer.out_proj."),
        (r"\.post_attention_layernorm\.", ".norm1."),
        (r"\.post_mlp_layernorm\.", ".norm2."),
    ),
    "kimi_k25": (
        (r"^model\.language_model\.", "language_model.model."),
        (r"^lm_head\.", "language_model.lm_head."),
        (r"^model\.mm_projector\.in_proj\.", "mm_projector.proj.0."),
        (r"^model\.mm_projector\.out_proj\.", "mm_projector.proj.2."),
        (
            r"^model\.vision_tower\.patch_embed\.pos_emb\.position_embeddings$",
            "vision_tower.patch_embed.pos_emb.weight",
        ),
        (r"^model\.vision_tower\.patch_embed\.", "vision_tower.patch_embed."),
        (r"^model\.vision_tower\.", "vision_tower.encoder."),
        (r"^(vision_tower\.encoder)\.layers\.", r"\1.blocks."),
        (r"\.attn\.[qkv]_proj\.", ".wqkv."),
        (r"\.attn\.proj\.", ".wo."),
        (r"\.norm1\.", ".norm0."),
        (r"\.norm2\.", ".norm1."),
        (r"\.mlp\.fc1\.", ".mlp.fc0."),
        (r"\.mlp\.fc2\.", ".mlp.fc1."),
    ),
    "kolibri1": (
        (r"mlp\.gate\.e_score_correction_bias", "moe.router.expert_bias"),
        (r"\.post_self_attn_layernorm\.", ".post_attn_norm."),
        (r"\.post_mlp_layernorm\.", ".post_ffn_norm."),
    ),
    "lfm3": ((r"\.self_attn\.g_proj\.", ".self_attn.gate_proj."),),
    "nomic_bert": (
        (r"(^|\.)embeddings\.LayerNorm\.", r"\1emb_ln."),
        (r"(^|\.)layers\.", r"\1encoder.layers."),
        (r"\.self_attn\.[qkv]_proj\.", ".attn.Wqkv."),
        (r"\.self_attn\.o_proj\.", ".attn.out_proj."),
        (r"\.mlp\.up_proj\.", ".mlp.fc11."),
        (r"\.mlp\.gate_proj\.", ".mlp.fc12."),
        (r"\.mlp\.down_proj\.", ".mlp.fc2."),
        (r"\.post_attention_layernorm\.", ".norm1."),
        (r"\.post_mlp_layernorm\.", ".norm2."),
    ),
    "sarvam_moe": (
        (r"^model\.embed_tokens\.", "model.word_embeddings."),
        (r"\.self_attn\.[qkv]_proj\.", ".attention.query_key_value."),
        (r"\.self_attn\.o_proj\.", ".attention.dense."),
        (r"\.self_attn\.q_norm\.", ".attention.query_layernorm."),
        (r"\.self_attn\.k_norm\.", ".attention.key_layernorm."),
        (r"mlp\.gate\.e_score_correction_bias", "mlp.gate.expert_bias"),
    ),
    "t5gemma2": ((r"\.encoder\.text_model\.", ".encoder."),),
    "ultrabert": ((r"^model\.", "ultrabert."), (r"^head\.decoder\.", "cls.")),
    "ultravbert": ((r"^projection_head\.", "head."), (r"^lm_head\.", "head.decoder.")),
    "flint": ((r"self_attn\.sinks", "self_attn.softmax_offset"),),
    "lara_mini": ((r"linear_attn\.norm\.", "linear_attn.out_norm."),),
    "mimo_v2_flash": ((r"self_attn\.sinks", "self_attn.attention_sink_bias"),),
    "nemotron_h": ((r"^model\.", "backbone."),),
}

_VIT = (
    (r"(^|\.)layers\.", r"\1encoder.layer."),
    (r"\.attention\.q_proj\.", ".attention.attention.query."),
    (r"\.attention\.k_proj\.", ".attention.attention.key."),
    (r"\.attention\.v_proj\.", ".attention.attention.value."),
    (r"\.attention\.o_proj\.", ".attention.output.dense."),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
)
_BEIT = (
    (r"(layers\.[^.]+)\.relative_position_bias\.", r"\1.attention.attention.relative_position_bias."),
    (r"(^|\.)shared_position_bias\.", r"\1encoder.relative_position_bias."),
    *_VIT,
)
_DINO = _VIT[1:5]
_WRAPPED = (
    (r"^model\.language_model\.", "language_model.model."),
    (r"^lm_head\.", "language_model.lm_head."),
    (r"^model\.(vision_tower|multi_modal_projector|image_newline)\b", r"\1"),
)
_SWIGLU = ((r"\.mlp\.(gate|up)_proj\.", ".mlp.weights_in."), (r"\.mlp\.down_proj\.", ".mlp.weights_out."))


def wrapped(*beside: str) -> tuple[tuple[str, str], ...]:
    """A whole text model under `language_model`, and what stands beside it at the top."""
    at_top = "|".join((*beside, "multi_modal_projector"))
    return (*_WRAPPED[:2], (rf"^model\.({at_top})\b", r"\1"))


_VISUAL = ((r"^model\.language_model\.", "model."), (r"^model\.visual\.", "visual."))
RENAMED |= dict.fromkeys("deit ijepa vit vit_mae vit_msn vivit audio-spectrogram-transformer".split(), _VIT)
RENAMED["beit"] = _BEIT
RENAMED |= dict.fromkeys(("dinov2", "dinov2_with_registers"), _DINO)
RENAMED |= dict.fromkeys("aria aya_vision gemma3 internvl llava mistral3 paligemma vipllava".split(), _WRAPPED)
RENAMED |= dict.fromkeys("llava_next llava_next_video llava_onevision".split(), _WRAPPED)
RENAMED |= dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), _VISUAL)
RENAMED |= {"dinov2": _DINO + _SWIGLU, "dinov2_with_registers": _DINO + _SWIGLU}
_HEARING = "audioflamingo3 glmasr musicflamingo qwen2_audio voxtral voxtral_realtime".split()
RENAMED |= dict.fromkeys(_HEARING, wrapped("audio_tower"))
RENAMED |= dict.fromkeys(("granite_speech", "granite_speech_plus"), wrapped("encoder", "projector"))
RENAMED |= {"fuyu": wrapped("vision_embed_tokens"), "got_ocr2": _WRAPPED, "mllama": wrapped("vision_model")}
RENAMED |= {"granitemoehybrid": RENAMED["granitemoe"], "granitemoeshared": RENAMED["granitemoe"]}


def publish(model_type: str, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The segments with the names that published files of this type give their weights."""
    if not any(model_type in table for table in (EXPERTS, RENAMED, SPLIT)):
        return segments
    return tuple(_named(segment, model_type) for segment in segments)


def _named(segment: Segment, model_type: str) -> Segment:
    stored = {name: published(name, where, model_type) for name, where in segment.block.stored.items()}
    other = segment.absorbed
    return replace(
        segment,
        block=replace(segment.block, stored=stored),
        absorbed=None if other is None else replace(other, stored={**other.stored, **stored}),
    )


@lru_cache(maxsize=4096)
def published(name: str, where: Weight, model_type: str) -> Weight:
    """A weight with its published name, where that is another."""
    import re  # of few families' configs

    path = where.path
    ending = EXPERTS.get(model_type, {}).get(name)
    if ending is not None:
        axis = "E" if (where.layout or "").startswith("E ") else "e"  # fewer experts there than chosen from
        path = f"{path.rpartition('.')[0]}.{{{axis}}}.{ending}.weight"
    for pattern, ours in filter(None, (SPLIT.get(model_type, {}).get(name), *RENAMED.get(model_type, ()))):
        path = re.sub(pattern, ours, path)
    layout = LAYOUTS.get(model_type, {}).get(name)
    if path == where.path and layout is None:
        return where
    return replace(where, published=path, published_layout=layout)
