"""Encoders, and encoders with decoders: the same logits as the public implementation, the same work as was counted."""

from __future__ import annotations

from typing import Any

import pytest
from execution import twins
from execution.twins import torch

import assay

ENCODER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 101,
    "max_position_embeddings": 40,
}
PADDED = ENCODER | {"pad_token_id": 1}
NARROW = ENCODER | {"embedding_size": 16}
ENCODERS: dict[str, dict[str, Any]] = {
    "bert": ENCODER,
    "roberta": PADDED,
    "xlm-roberta": PADDED,
    "camembert": PADDED,
    "data2vec-text": PADDED,
    "ibert": PADDED,
    "distilbert": {
        "dim": 32,
        "hidden_dim": 48,
        "n_layers": 2,
        "n_heads": 4,
        "vocab_size": 101,
        "max_position_embeddings": 40,
    },
    "electra": NARROW,
    "albert": NARROW | {"num_hidden_layers": 3},
    "mpnet": PADDED,
    "ernie": ENCODER,
    "megatron-bert": ENCODER,
    "nomic_bert": ENCODER,
    "rembert": ENCODER | {"input_embedding_size": 16, "output_embedding_size": 32},
    "modernbert": ENCODER
    | {"local_attention": 6, "global_attn_every_n_layers": 3, "num_hidden_layers": 4, "pad_token_id": 0},
}

PAIR: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "vocab_size": 101,
    "max_position_embeddings": 40,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
T5: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "vocab_size": 101,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": 0,
}
PAIRS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("bart", "mbart", "pegasus", "marian", "blenderbot", "blenderbot-small", "m2m_100", "plbart"), PAIR
    ),
    # no experts: the library takes its mask of the chosen for their indices
    "nllb-moe": PAIR | {"encoder_sparse_step": 0, "decoder_sparse_step": 0},
    "t5": T5,
    "mt5": T5,
    "umt5": T5,
    "longt5": T5 | {"local_radius": 3},
}


def spoken(model: Any, source: int = 11, target: int = 9) -> tuple[Any, Any]:
    """Token ids of a source and a target."""
    return twins.ids(model, source), twins.ids(model, target, seed=2)


@pytest.mark.parametrize("model_type", ENCODERS)
def test_encoders(model_type: str) -> None:
    their = twins.theirs({"model_type": model_type, **ENCODERS[model_type]}, "AutoModelForMaskedLM")
    own = twins.ours(their)
    given = twins.ids(their)
    with torch.no_grad():
        twins.agree(own(given), their(given).logits)
    said = assay.count(own.description, batch=2, tokens=given.shape[1]).flops.total
    assert assay.measure(own, given).flops.forward == said


@pytest.mark.parametrize("model_type", ["bert", "roberta", "modernbert", "mpnet", "albert"])
def test_padding_is_out_of_sight(model_type: str) -> None:
    their = twins.theirs({"model_type": model_type, **ENCODERS[model_type]}, "AutoModelForMaskedLM")
    own = twins.ours(their)
    given = twins.ids(their)
    there = torch.ones_like(given)
    there[1, 8:] = 0
    padded = torch.where(there.bool(), given, their.config.pad_token_id or 0)
    with torch.no_grad():
        expected = their(padded, attention_mask=there).logits
        found = own(padded, mask=there)
    twins.agree(found[0], expected[0])
    twins.agree(found[1, :8], expected[1, :8])


@pytest.mark.parametrize("model_type", PAIRS)
def test_pairs(model_type: str) -> None:
    twins.same_pair({"model_type": model_type, **PAIRS[model_type]})


@pytest.mark.parametrize("model_type", ["bart", "t5", "marian"])
def test_the_source_is_read_once(model_type: str) -> None:
    """A later step costs what is said of it: nothing of the encoder, nothing of its keys and values."""
    their = twins.theirs({"model_type": model_type, **PAIRS[model_type]}, "AutoModelForSeq2SeqLM")
    own = twins.ours(their)
    source, target = spoken(their)
    cache = own.cache()
    with torch.no_grad():
        own(target[:, :6], source, cache=cache)
    found = assay.measure(own, target[:, 6:7], cache=cache).flops.forward
    assert found == assay.count(own.description, batch=2, tokens=1, past=6, source=source.shape[1]).flops.total


@pytest.mark.parametrize("model_type", ["bart", "t5"])
def test_padding_of_a_source(model_type: str) -> None:
    their = twins.theirs({"model_type": model_type, **PAIRS[model_type]}, "AutoModelForSeq2SeqLM")
    own = twins.ours(their)
    source, target = spoken(their)
    there = torch.ones_like(source)
    there[1, 7:] = 0
    with torch.no_grad():
        expected = their(input_ids=source, attention_mask=there, decoder_input_ids=target).logits
        twins.agree(own(target, source, source_mask=there), expected)


def test_a_pair_asks_for_its_source() -> None:
    own = assay.build(assay.load("t5-small"), device="meta")
    with pytest.raises(assay.BuildError, match="reads a source: give it beside the tokens"):
        own(torch.zeros((1, 3), dtype=torch.long, device="meta"))
