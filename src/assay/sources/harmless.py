"""Keys of any config that change no tensor and no operation of the model itself, by name or by what they end in.

A key that a family reads never gets here. What is not listed might change the model, and is refused.
"""

from __future__ import annotations

from typing import Any

HARMLESS = frozenset(
    # where the config comes from, and what saved it
    """
    _name_or_path name_or_path _commit_hash transformers_version model_type architectures auto_map custom_pipelines
    _from_model_config adapters_auto_loading transformers.js_config unsloth_fixed unsloth_version unsloth
    pretrained_model_name_or_path trust_remote_code kwargs resume_path license model_name
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
    max_sequence_length max_seq_len max_seq_length model_max_length seq_length seq_len
    """.split()
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
    """.split()
)

# ids of tokens, probabilities of dropping, weights of losses, ranges of initial values, small constants of norms
ENDINGS = (
    *("_token_id", "_token_ids", "_token_index"),
    *("_dropout", "_pdrop", "_dropout_prob", "_dropout_rate", "_layerdrop", "drop_path_rate", "_dropout_p"),
    *("_loss_coef", "_loss_weight", "_loss_alpha", "_loss_gamma", "_init_range", "_init_std"),
    *("norm_eps", "norm_epsilon"),
)

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
    if value is None or path in HARMLESS or key in HARMLESS or key.endswith(ENDINGS):
        return True
    return any(type(value) is type(inert) and value == inert for inert in INERT.get(key, ()))
