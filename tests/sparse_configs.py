"""Small configs of families with sparse attention, shared keys and values, several streams; every option turned."""

from __future__ import annotations

from typing import Any

from assay.readings.count import Count, count
from assay.sources.huggingface import read_config
from assay.spec import Model

IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LATENT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 4,
    "v_head_dim": 20,
    "index_topk": 4,
    "index_head_dim": 8,
    "index_n_heads": 2,
    **IDS,
}
GLM = {
    **LATENT,
    "model_type": "glm_moe_dsa",
    "index_topk_freq": 3,
    "index_skip_topk_offset": 2,
    "first_k_dense_replace": 2,
}
V32 = {
    **LATENT,
    "model_type": "deepseek_v32",
    "n_group": 2,
    "topk_group": 1,
    "attention_bias": True,
    "n_shared_experts": 2,
}
AXK2 = {**LATENT, "model_type": "axk2", "gated_norm_rank": 3, "attention_bias": True}
HY4 = {**LATENT, "model_type": "hy_v4", "hc_mult": 3}
DOTS3 = {
    **LATENT,
    "model_type": "dots3_note_text",
    "head_dim": 16,
    "sliding_window": 5,
    "swa_num_attention_heads": 2,
    "swa_num_key_value_heads": 2,
    "swa_kv_lora_rank": 20,
    "swa_q_lora_rank": 28,
    "swa_head_dim": 16,
    "swa_qk_nope_head_dim": 10,
    "swa_v_head_dim": 6,
}
SPARSE, HEAVY, SLIDING = "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"
V4 = {
    **IDS,
    "model_type": "deepseek_v4",
    "vocab_size": 99,
    "hidden_size": 64,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "head_dim": 32,
    "q_lora_rank": 24,
    "num_experts_per_tok": 2,
    "n_routed_experts": 8,
    "o_groups": 2,
    "o_lora_rank": 12,
    "index_n_heads": 2,
    "index_head_dim": 16,
    "index_topk": 3,
    "sliding_window": 8,
    "layer_types": [SLIDING, SPARSE, HEAVY, SPARSE, SLIDING],
    "compress_rates": {SPARSE: 4, HEAVY: 16},
    "hc_mult": 3,
    "num_hash_layers": 2,
    "partial_rotary_factor": 0.25,
}
LONGCAT = {
    **IDS,
    "model_type": "longcat_flash",
    "vocab_size": 99,
    "hidden_size": 64,
    "ffn_hidden_size": 96,
    "expert_ffn_hidden_size": 32,
    "num_layers": 3,
    "num_attention_heads": 4,
    "n_routed_experts": 8,
    "moe_topk": 2,
    "zero_expert_num": 3,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 4,
    "v_head_dim": 20,
}
M3 = {
    **IDS,
    "model_type": "minimax_m3_vl_text",
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 24,
    "dense_intermediate_size": 80,
    "shared_intermediate_size": 20,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "rotary_dim": 4,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_block_size": 4,
    "index_topk_blocks": 2,
    "layer_types": ["full_attention", "minimax_m3_sparse"] * 2,
    "mlp_layer_types": ["dense", "dense", "sparse", "sparse"],
}
TURNS = ["sliding_attention", "full_attention"] * 3
GEMMA: dict[str, Any] = {
    **IDS,
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "sliding_window": 4,
}
GEMMA3N = {
    **GEMMA,
    "model_type": "gemma3n_text",
    "vocab_size_per_layer_input": 77,
    "intermediate_size": [96, 80, 96, 96, 72, 96],
    "hidden_size_per_layer_input": 10,
    "altup_num_inputs": 3,
    "num_kv_shared_layers": 2,
    "laurel_rank": 5,
    "layer_types": TURNS,
    "activation_sparsity_pattern": [0.9, 0.0, 0.0, 0.0, 0.5, 0.0],
}
GEMMA4 = {
    **GEMMA,
    "model_type": "gemma4_text",
    "vocab_size_per_layer_input": 77,
    "global_head_dim": 20,
    "hidden_size_per_layer_input": 10,
    "num_kv_shared_layers": 2,
    "layer_types": TURNS,
    "use_double_wide_mlp": True,
}
GEMMA4_EXPERTS = {
    **GEMMA,
    "model_type": "gemma4_text",
    "global_head_dim": 20,
    "hidden_size_per_layer_input": 0,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
    "enable_moe_block": True,
    "num_experts": 8,
    "top_k_experts": 3,
    "moe_intermediate_size": 24,
    "attention_bias": True,
}
GEMMA4_UNIFIED = {
    **GEMMA,
    "model_type": "gemma4_unified_text",
    "global_head_dim": 20,
    "num_kv_shared_layers": 2,
    "layer_types": TURNS,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
}
ASSISTANT = {
    "model_type": "gemma4_unified_assistant",
    "backbone_hidden_size": 40,
    "text_config": {**GEMMA4_UNIFIED, "num_kv_shared_layers": 6},
}
INKLING: dict[str, Any] = {
    **IDS,
    "vocab_size": 99,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "swa_num_attention_heads": 6,
    "swa_num_key_value_heads": 3,
    "swa_head_dim": 10,
    "sliding_window_size": 5,
    "d_rel": 7,
    "rel_extent": 9,
    "log_scaling_n_floor": 20,
    "conv_kernel_size": 3,
    "moe_intermediate_size": 24,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
}
INKLING1 = {
    **INKLING,
    "model_type": "inkling_text",
    "num_hidden_layers": 6,
    "mlp_layer_types": ["dense"] + ["sparse"] * 5,
    "intermediate_size": 80,
    "n_shared_experts": 2,
    "local_layer_ids": [0, 2, 3],
}
INKLING2 = {
    **INKLING,
    "model_type": "inkling2_text",
    "num_hidden_layers": 7,
    "unpadded_vocab_size": 90,
    "n_layers_per_attn_res_block": 3,
    "layer_types": ["hybrid", "hybrid_sliding"] * 3 + ["hybrid"],
}
INKLING2_LOOP = {
    **INKLING2,
    "model_type": "inkling2_loop_text",
    "num_hidden_layers": 8,
    "n_layers_per_attn_res_block": 2,
    "loop_layer_index_start": 2,
    "loop_layer_index_end": 6,
    "loop_num_passes": 3,
    "loop_gate_rank": 5,
    "layer_types": [
        *("hybrid_sliding", "hybrid", "hybrid_sliding", "hybrid_sliding"),
        *("hybrid", "hybrid", "hybrid_sliding", "hybrid"),
    ],
}
TROCR = {
    **IDS,
    "model_type": "trocr",
    "vocab_size": 99,
    "d_model": 64,
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 80,
    "max_position_embeddings": 40,
    "cross_attention_hidden_size": 48,
}
MOSHI = {
    "model_type": "moshi",
    "vocab_size": 99,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "ffn_dim": 80,
    "head_dim": 12,
    "sliding_window": 20,
}
XLM = {
    **IDS,
    "model_type": "xlm",
    "vocab_size": 99,
    "emb_dim": 64,
    "n_layers": 3,
    "n_heads": 4,
    "n_langs": 3,
    "max_position_embeddings": 40,
}
XLNET = {**IDS, "model_type": "xlnet", "vocab_size": 99, "d_model": 64, "n_layer": 3, "n_head": 4, "d_inner": 80}
FLAUBERT = {**XLM, "model_type": "flaubert", "pre_norm": True, "n_langs": 1, "gelu_activation": False}
V3 = {
    key: value
    for key, value in {**LATENT, "model_type": "deepseek_v3", "n_group": 2, "topk_group": 1}.items()
    if not key.startswith("index")
}

# every option turned, with the tokens of a FLOP count where the library's own is the architecture's: it runs every
# expert of Gemma 4 and LongCat on every token, and sums the scores of V4's indexer element by element
VARIED: dict[str, tuple[dict[str, Any], int]] = {
    "deepseek_v32": (V32, 13),
    "glm_moe_dsa": (GLM, 13),
    "glm_moe_dsa, a pattern": ({**GLM, "index_topk_pattern": "FSFFSS"}, 13),
    "axk2": (AXK2, 13),
    "axk2, groups": ({**AXK2, "n_group": 2, "topk_group": 1, "moe_layer_freq": 2}, 13),
    "hy_v4": (HY4, 13),
    "dots3_note_text": (DOTS3, 13),
    "deepseek_v4": (V4, 0),
    "longcat_flash": (LONGCAT, 0),
    "minimax_m3_vl_text": (M3, 13),
    "gemma3n_text": (GEMMA3N, 13),
    "gemma4_text": (GEMMA4, 13),
    "gemma4_text, experts": (GEMMA4_EXPERTS, 0),
    "gemma4_unified_text": (GEMMA4_UNIFIED, 13),
    "gemma4_unified_assistant": (ASSISTANT, 0),
    "inkling_text": (INKLING1, 0),
    "inkling2_text": (INKLING2, 0),
    "inkling2_text, a window first": ({**INKLING2, "layer_types": ["hybrid_sliding", "hybrid"] * 3 + ["hybrid"]}, 0),
    "inkling2_loop_text": (INKLING2_LOOP, 0),
    "trocr": (TROCR, 13),
    "trocr, sines": (
        {**TROCR, "use_learned_position_embeddings": False, "layernorm_embedding": False, "scale_embedding": True},
        13,
    ),
    "moshi": (MOSHI, 13),
    "xlm": (XLM, 13),
    "xlnet": (XLNET, 13),
}


def model(config: dict[str, Any], **changed: Any) -> Model:
    """Our reading of a config, some of its keys at other values."""
    return read_config({**config, **changed}, "config", "model")


def counted(config: dict[str, Any], tokens: int, past: int = 0, **changed: Any) -> Count:
    """The figures of one pass, with a cache of two bytes an element."""
    return count(model(config, **changed), tokens=tokens, past=past, cache="bf16")
