"""Keys of any config that change no tensor and no operation of the model itself, by name, by word or by value.

A key that a family reads never gets here. What no rule lets through might change the model, and is refused:

- names: what a library, a trainer or a tokenizer leaves in configs (`HARMLESS`, `ENDINGS`, `WORDS`, a leading `_`);
- values: nothing is turned on by false, 0 or an empty value, nothing changed by a factor of 1 (`is_off`);
- other names of what was read, where they agree with it (`restates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HARMLESS = frozenset(
    # where the config comes from, and what saved it
    """
    _name_or_path name_or_path _commit_hash transformers_version model_type architectures auto_map custom_pipelines
    _from_model_config adapters_auto_loading transformers.js_config unsloth_fixed unsloth_version unsloth
    pretrained_model_name_or_path trust_remote_code kwargs resume_path license model_name
    is_composition js_config keys_to_ignore_at_inference sentence_transformers is_hybrid_model
    base_model base_model_name_or_path
    name title description version language tags library_name quantized_by license_name license_link author authors
    """.split()
    # how an implementation runs it: the kernel, the precision, the batch that it was made for
    + """
    _attn_implementation _attn_implementation_internal attn_implementation _attn_implementation_autoset
    _experts_implementation experts_implementation _flash_attn_2_enabled use_flash_attn use_flash_attention
    use_flash_attention_2 deterministic_flash_attn use_memory_efficient_attention unpad_inputs bias_dropout_fusion
    torch_dtype dtype model_dtype params_dtype bf16 fp16 fp32 use_bfloat16 onnx_safe init_device
    residual_in_fp32 fp32_residual_connection attention_softmax_in_fp32 scale_attention_softmax_in_fp32
    reorder_and_upcast_attn apply_query_key_layer_scaling
    use_cache cache_implementation chunk_size_feed_forward gradient_checkpointing pretraining_tp ep_size tp_size
    inference_runner max_batch_size pad_key_length pre_allocate_kv_cache validate_runner_input max_cache_length
    output_attentions output_hidden_states output_past output_router_logits output_scores return_dict
    return_dict_in_generate num_logits_to_keep is_decoder verbose rope_interleave rope_interleaved use_dynamic_ntk
    """.split()
    # training: initial values, dropout, losses
    + """
    initializer_range initializer_factor initializer_cutoff_factor init_std init_method init_config
    rescale_prenorm_residual dropout seq_aux aux_loss_alpha tf_legacy_loss ignore_index router_jitter_noise
    input_jitter_noise jitter_noise neftune_noise_alpha finetuning_task problem_type
    """.split()
    # the tokenizer, and the lengths it was given
    + """
    tokenizer tokenizer_class tokenizer_name tokenizer_type prefix template pad_token eos_token bos_token
    max_sequence_length max_seq_len max_seq_length model_max_length seq_length seq_len n_ctx context_length
    original_max_position_embeddings initial_context_length max_trained_positions predict_special_tokens
    """.split()
    # how an engine stretches rotary positions beyond them
    + "rope_condense_ratio dual_chunk_attention_config".split()
    # labels of a classifier: read where the class is one
    + "id2label label2id num_labels".split()
    # the summary of GPT-2's multiple-choice class
    + "summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj".split()
    # generation
    + """
    assistant_confidence_threshold assistant_lookbehind bad_words_ids begin_suppress_tokens diversity_penalty
    do_sample early_stopping encoder_no_repeat_ngram_size encoder_repetition_penalty epsilon_cutoff eta_cutoff
    exponential_decay_length_penalty forced_decoder_ids generation_config is_assistant length_penalty max_length
    max_new_tokens min_length no_repeat_ngram_size num_assistant_tokens num_assistant_tokens_schedule
    num_beam_groups num_beams num_return_sequences remove_invalid_values repetition_penalty suppress_tokens
    target_lookbehind task_specific_params temperature top_k top_p typical_p
    classifier_from_token is_original_qwen3_reranker lang_detection_threshold max_initial_timestamp_index
    is_multilingual median_filter_width
    """.split()
)

# ids of tokens, probabilities of dropping, weights of losses, ranges of initial values, small constants of norms
ENDINGS = (
    *("_token_id", "_token_ids", "_token_index", "_id"),
    *("_dropout", "_pdrop", "_layerdrop", "drop_path_rate"),
    *("_lambda", "_init_range", "_init_std"),
    *("norm_eps", "norm_epsilon"),
)

# what a key speaks of if it has one of these words: training, precision, kernels, tokenizers
WORDS = frozenset(
    """
    dropout loss losses init initializer xavier freeze frozen finetuning jitter seed tokenizer sbert
    fp16 bf16 fp32 dtype flash fused xentropy checkpointing
    train training trainer epochs warmup learning lr optimizer wandb deepspeed
    """.split()
)

# parts that a model may have whatever a key of these words says: its false or 0 does not go without saying
PARTS = frozenset(
    """
    affine bias causal elementwise embed embedding embeddings experts gate gated glu head ln layernorm norm
    parallel pool pooler pooling pos position positional positions prenorm proj projection qk qkv residual rope rotary
    scale share shared swiglu tie tied tying
    """.split()
)

FACTORS = ("_multiplier", "_scale", "_scaling", "_factor", "_alpha", "_beta", "_gain")

# names that configs of different makes have for one thing
SYNONYMS = tuple(
    frozenset(line.split())
    for line in """
    hidden_size d_model n_embd n_embed dim model_dim block_width
    num_attention_heads n_head n_heads num_heads
    num_hidden_layers n_layer n_layers num_layers
    num_key_value_heads num_kv_heads n_head_kv n_kv_heads kv_n_heads num_query_groups multi_query_group_num
    head_dim kv_channels attention_head_dim d_head head_size
    intermediate_size ffn_dim ffn_hidden_size n_inner d_ff mlp_hidden_size ffn_intermediate_size
    hidden_act hidden_activation activation_function activation act_fn activation_type
    rope_theta rotary_emb_base rope_base theta
    partial_rotary_factor rope_pct rotary_pct rope_percent rotary_percent rotary_emb_fraction
    num_experts num_local_experts n_routed_experts moe_num_experts num_moe_experts
    num_experts_per_tok experts_per_token num_experts_per_token moe_topk moe_top_k moe_k
    state_size ssm_state_size mamba_d_state d_state
    conv_kernel mamba_d_conv d_conv conv_kernel_size
    adapter_rank lora_rank
    sliding_window sliding_window_size attention_window_size window_size
    """.strip().splitlines()
)
_GATED = {"swiglu": "silu", "geglu": "gelu", "swish": "silu"}

# keys that say that something is absent: harmless at these values alone
INERT: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (),
    "is_encoder_decoder": (False,),
    "tie_encoder_decoder": (False,),
    "torchscript": (False,),  # true stores a tied head twice
    "pruned_heads": ({}, []),
    "use_sliding_window": (False,),
    "use_mrope": (False,),
    "use_mtp": (False,),
    "use_logn_attn": (False,),
    "num_nextn_predict_layers": (0,),
    "num_mtp_modules": (0,),
    "use_lora": (False,),
    "use_backbone_lora": (0, False),
    "use_llm_lora": (0, False),
}


def is_harmless(path: str, value: Any) -> bool:
    """True where a key, perhaps one within a table, changes nothing at this value; null says nothing."""
    key = path.rpartition(".")[2]
    if value is None or path in HARMLESS or key in HARMLESS or key.endswith(ENDINGS) or key.startswith("_"):
        return True
    if key in INERT:
        return any(type(value) is type(inert) and value == inert for inert in INERT[key])
    return not WORDS.isdisjoint(key.split("_")) or is_off(key, value)


def is_off(key: str, value: Any) -> bool:
    """True for a switch that is off, a number of nothing, a factor of 1, unless the part may be there all the same."""
    if key.endswith(FACTORS):
        return value is False or (isinstance(value, int | float) and value is not True and value == 1)
    off = value is False or value == "" or (isinstance(value, int | float | list | dict) and not value)
    return off and PARTS.isdisjoint(key.split("_")) and not _names(key)


def restates(path: str, value: Any, read: Mapping[str, Any]) -> bool:
    """True for another name of a key that was read, with the same value; `read` is of the table that holds the key."""
    return any(_same(value, read[name]) for name in _names(path.rpartition(".")[2]) if name in read)


def _names(key: str) -> frozenset[str]:
    return next((group for group in SYNONYMS if key in group), frozenset())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return _GATED.get(a, a) == _GATED.get(b, b)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b))
    return numbers and bool(a == b)
