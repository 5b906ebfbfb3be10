"""What weights are called in published files, where that is not their name in the public implementation.

The implementation packs experts that files hold one by one, and has renamed modules since files were written.
"""

from __future__ import annotations

from functools import lru_cache

from assay.records import replace
from assay.spec import Segment, Weight

# endings of the names of an expert's matrices, by the letter of the weight
_BY_NAME = {"Eg": "gate_proj", "Eu": "up_proj", "Ed": "down_proj"}
_BY_NUMBER = {"Eg": "w1", "Eu": "w3", "Ed": "w2"}

_NAMED = """
    afmoe axk1 bailing_hybrid bailing_moe beam cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 dots1 ernie4_5_moe
    exaone_moe flex_olmo flint glm4_moe glm4_moe_lite glm4v_moe glm4v_moe_text glm_moe_dsa hunyuan_v1_moe hy_v3 jamba
    kolibri1 laguna lara_mini mellum mimo_v2_flash nemotron_h olmoe qwen2_moe qwen3_5_moe qwen3_5_moe_text qwen3_moe
    qwen3_next qwen3_omni_moe_text sarvam_mla
    sarvam_moe solar_open
"""
_NUMBERED = "kimi_linear minimax minimax_m2 mixtral phimoe"
EXPERTS = dict.fromkeys(_NAMED.split(), _BY_NAME) | dict.fromkeys(_NUMBERED.split(), _BY_NUMBER)

# convolutions that the implementation packs and files keep apart
_CONVOLUTIONS = {f"mixer.K{letter}": (r"\.conv1d\.", f".{letter}_conv1d.") for letter in "qkv"}
SPLIT = dict.fromkeys(("bailing_hybrid", "kimi_linear", "olmo_hybrid"), _CONVOLUTIONS)
# projections that files pack and the implementation keeps apart
SPLIT["lara_mini"] = {f"mixer.W{letter}": (r"\.in_proj_\w+\.", ".in_proj.") for letter in "qkvzba"}

_SPARSE = (r"\.mlp\.(experts|shared_experts|gate|e_score_correction_bias|router)\b", r".block_sparse_moe.\1")
# an expression on the implementation's name, and the published one: each applied in turn
RENAMED: dict[str, tuple[tuple[str, str], ...]] = {
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
_DINO = _VIT[1:5]
_WRAPPED = (
    (r"^model\.language_model\.", "language_model.model."),
    (r"^lm_head\.", "language_model.lm_head."),
    (r"^model\.(vision_tower|multi_modal_projector|image_newline)\b", r"\1"),
)
_VISUAL = ((r"^model\.language_model\.", "model."), (r"^model\.visual\.", "visual."))
RENAMED |= dict.fromkeys("deit ijepa vit vit_mae vit_msn vivit audio-spectrogram-transformer".split(), _VIT)
RENAMED |= dict.fromkeys(("dinov2", "dinov2_with_registers"), _DINO)
RENAMED |= dict.fromkeys("aria aya_vision gemma3 internvl llava mistral3 paligemma vipllava".split(), _WRAPPED)
RENAMED |= dict.fromkeys("llava_next llava_next_video llava_onevision".split(), _WRAPPED)
RENAMED |= dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), _VISUAL)
RENAMED |= {"granitemoehybrid": RENAMED["granitemoe"], "granitemoeshared": RENAMED["granitemoe"]}


def publish(model_type: str, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The segments with the names that published files of this type give their weights."""
    if model_type not in EXPERTS and model_type not in RENAMED:
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
        path = f"{path.rpartition('.')[0]}.{{e}}.{ending}.weight"
    for pattern, ours in filter(None, (SPLIT.get(model_type, {}).get(name), *RENAMED.get(model_type, ()))):
        path = re.sub(pattern, ours, path)
    return where if path == where.path else replace(where, published=path)
