"""Encoders against the public implementation: every tensor, the total, FLOPs; heads of every class."""

from __future__ import annotations

from typing import Any

import pytest
from encoder_configs import (
    BLOCKS,
    CLASSES,
    MASKED,
    MOBILE,
    PADDED,
    RELATIVE,
    SEQUENCE,
    SHAPED,
    SMALL,
    STORED,
    TOKEN,
    VARIED,
    named,
    read,
    small,
)
from library import built, check_against_library, flops_of, needs_library, runnable, their_flops

from assay.errors import SourceError
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config

# the library's own default configs, of the class that is read where none is named
DEFAULTS = [
    *("bert", "roberta", "xlm-roberta", "camembert", "data2vec-text", "distilbert", "electra", "albert", "mpnet"),
    *("rembert", "roc_bert", "ibert", "modernbert", "eurobert", "esmc", "nomic_bert", "gte", "jina_embeddings_v3"),
    *("deberta", "deberta-v2", "xlm-roberta-xl", "roberta-prelayernorm", "megatron-bert", "ernie", "layoutlm"),
    *("tapas", "roformer", "yoso", "nystromformer", "squeezebert", "convbert", "fnet", "mobilebert"),
    "funnel",
    *("longformer", "big_bird", "mra", "luke", "ultrabert"),
]


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_defaults_equal_the_library(model_type: str) -> None:
    check_against_library({"model_type": model_type}, auto=MASKED)


@needs_library
@pytest.mark.parametrize("config", VARIED, ids=named)
def test_varied_configs_equal_the_library(config: dict[str, Any]) -> None:
    check_against_library(config, tokens=11, auto=MASKED)


@needs_library
@pytest.mark.parametrize("config", STORED, ids=named)
def test_stored_tensors_equal_the_library(config: dict[str, Any]) -> None:
    check_against_library(config, auto=MASKED)


@needs_library
@pytest.mark.parametrize("config", [small("esm"), small("esm", position_embedding_type="absolute"), small("mra")])
def test_buffers_are_those_that_checkpoints_store(config: dict[str, Any]) -> None:
    theirs = built(config, MASKED)
    own = {name for name, _ in theirs.named_parameters(remove_duplicate=False)}
    held = sum(tensor.numel() for name, tensor in theirs.state_dict().items() if name not in own)
    assert count(read_config(config, "config", "model"), tokens=1).parameters.buffers == held


@needs_library
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"languages": ["de_DE", "en_XX", "th_TH"]},
        {"languages": ["de_DE", "en_XX"], "pre_norm": True, "adapter_layer_norm": True, "ln_before_adapter": False},
        {"adapter_reuse_layer_norm": False, "adapter_reduction_factor": 4, "tie_word_embeddings": False},
    ],
)
def test_adapters_of_each_language(more: dict[str, Any]) -> None:
    """The library names an adapter by its language, we by its place: totals are compared, and FLOPs of one language."""
    config = {"model_type": "xmod", **SMALL, "default_language": "en_XX", **more}
    read = read_config(config, "config", "model")
    theirs = built(config, MASKED)
    counted = count(read, tokens=11)
    assert counted.parameters.total == sum(p.numel() for p in theirs.parameters())
    assert counted.flops.total == their_flops(config, 11, MASKED)


@needs_library
@pytest.mark.parametrize(
    ("model_type", "cls", "auto"),
    [(kind, stem + suffix, auto) for kind, stem, endings in CLASSES for suffix, auto in endings.items()],
)
def test_classes_equal_the_library(model_type: str, cls: str, auto: str) -> None:
    labelled = {"id2label": {str(i): f"l{i}" for i in range(3)}} if auto in (SEQUENCE, TOKEN) else {}
    config = small(model_type, architectures=[cls], **labelled)
    check_against_library(config, tokens=0 if auto in SHAPED or model_type in PADDED else 11, auto=auto)


@needs_library
@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "bert", **SMALL},
        {"model_type": "deberta-v2", **SMALL, **RELATIVE, "share_att_key": True, "position_buckets": 8},
        {"model_type": "albert", **SMALL, "embedding_size": 16},
        {"model_type": "convbert", **SMALL, "embedding_size": 16},
        {"model_type": "mobilebert", **SMALL, **MOBILE},
    ],
    ids=named,
)
def test_several_sequences(config: dict[str, Any]) -> None:
    """Three sequences at once: relative positions are projected once whatever the batch."""
    import torch

    theirs = flops_of(runnable(config, MASKED), input_ids=torch.zeros((3, 11), dtype=torch.long))
    assert count(read(config), batch=3, tokens=11).flops.total == theirs


@needs_library
def test_whole_numbers_beside_the_weights() -> None:
    """I-BERT's buffers, name by name; on the meta device as well."""
    config = small("ibert")
    model = built(config, MASKED)
    weights = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    theirs = {name: tuple(kept.shape) for name, kept in model.state_dict().items() if name not in weights}
    made = [entry for entry in tensors(read_config(config, "config", "model")) if entry.buffer]
    ours = {entry.path.replace("{i}", str(i)): entry.shape for entry in made for i in entry.layers or (0,)}
    assert ours == theirs
    with pytest.raises(SourceError, match=r"config: quant_mode is true; it must be false or null"):
        read_config({**config, "quant_mode": True}, "config", "model")


@needs_library
@pytest.mark.parametrize("tokens", [5, 6, 7, 8, 9, 12, 17])
def test_a_funnel_over_any_length(tokens: int) -> None:
    """Half of an odd number is rounded up; the library runs no sequence of which a block leaves one or two."""
    config = {"model_type": "funnel", **BLOCKS}
    assert count(read(config), tokens=tokens).flops.total == their_flops(config, tokens, MASKED)
