"""A config.json as a model: the family by `model_type`, every key accounted for, nothing guessed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from assay.errors import SourceError
from assay.sources.config import Config
from assay.sources.families import FAMILIES
from assay.spec import Model

# keys of any config that change no tensor and no operation of the model itself
HARMLESS = frozenset(
    """
    _name_or_path name_or_path _commit_hash _attn_implementation _attn_implementation_internal attn_implementation
    _attn_implementation_autoset transformers_version torch_dtype dtype model_type architectures auto_map use_cache
    torchscript use_bfloat16 custom_pipelines adapters_auto_loading is_decoder pruned_heads chunk_size_feed_forward
    bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id cls_token_id mask_token_id
    decoder_start_token_id forced_bos_token_id forced_eos_token_id tokenizer_class prefix
    initializer_range initializer_factor attention_dropout hidden_dropout embd_pdrop attn_pdrop resid_pdrop
    embedding_dropout residual_dropout hidden_dropout_prob attention_probs_dropout_prob dropout activation_dropout
    classifier_dropout output_router_logits router_aux_loss_coef router_z_loss_coef
    output_attentions output_hidden_states return_dict return_dict_in_generate remove_invalid_values
    task_specific_params problem_type finetuning_task id2label label2id num_labels
    max_length min_length max_new_tokens do_sample early_stopping num_beams num_beam_groups diversity_penalty
    temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size
    encoder_no_repeat_ngram_size bad_words_ids num_return_sequences output_scores exponential_decay_length_penalty
    suppress_tokens begin_suppress_tokens tf_legacy_loss use_flash_attn gradient_checkpointing
    pretraining_tp tokenizer max_sequence_length model_max_length cache_implementation transformers.js_config
    unsloth_fixed unsloth_version _from_model_config _flash_attn_2_enabled use_flash_attention neftune_noise_alpha
    """.split()
)


# keys of any config that change nothing while they have one of these values
INERT: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (),
    "is_encoder_decoder": (False,),
    "tie_encoder_decoder": (False,),
}


def check_inert(c: Config, allow: Collection[str]) -> None:
    """Raise SourceError for a key that nobody read, here or below, and that does not have its inert value."""
    for key in INERT.keys() & c.data.keys() - c.used - set(allow):
        c.inert(key, *INERT[key])
    for child in c.children.values():
        check_inert(child, allow)


def read_config(data: Mapping[str, Any], where: str, name: str, allow: Collection[str] = ()) -> Model:
    """The model that a config describes. Raises SourceError naming file, key, value and what is allowed."""
    c = Config(data, where)
    model_type = c.word("model_type", None)
    found = FAMILIES.get(model_type)
    if found is None:
        raise SourceError(f"{where}: model_type is {model_type!r}; known: {', '.join(sorted(FAMILIES))}")
    made = found.read(c)
    quantization = c.table("quantization_config") or c.table("compression_config")
    check_inert(c, allow)
    known = HARMLESS | found.harmless | set(allow)
    unknown = [key for key in c.unread() if not known & {key, key.rpartition(".")[2]} and data.get(key, True) is not None]
    if unknown:
        raise SourceError(
            f"{where}: {', '.join(unknown)}: not known for {model_type}, and might change the model; --allow KEY lets one pass"
        )
    kept = data.get("dtype", data.get("torch_dtype"))
    return Model(
        name,
        made.segments(found.names),
        family=model_type,
        cls=found.cls,
        source=where,
        layers=made.depth,
        width=made.width,
        positions=made.limit,
        trained=made.trained,
        dtype=kept if isinstance(kept, str) else None,
        quantization=quantization,
        ignored=tuple(c.unread()),
    )
