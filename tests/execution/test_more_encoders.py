"""Encoders that save, that convolve, that score positions; pairs with experts or long sources; heads of encoders."""

from __future__ import annotations

from typing import Any

import pytest
from execution import twins
from execution.test_encoders import ENCODER, NARROW, PADDED, PAIR, T5
from execution.twins import torch

import assay

MASKED = "AutoModelForMaskedLM"
POSITIONS = PADDED | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "deberta": ("deberta", POSITIONS | {"max_relative_positions": -1}),
    "deberta, few distances": ("deberta", POSITIONS | {"max_relative_positions": 5}),
    "deberta-v2": ("deberta-v2", POSITIONS | {"conv_kernel_size": 3, "conv_act": "gelu"}),
    "deberta-v3": (
        "deberta-v2",
        POSITIONS
        | {
            "position_buckets": 8,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
        },
    ),
    "albert, groups": ("albert", ENCODER | {"embedding_size": 16, "num_hidden_layers": 4, "num_hidden_groups": 2}),
    "albert, groups of two": (
        "albert",
        ENCODER | {"embedding_size": 16, "num_hidden_layers": 5, "num_hidden_groups": 2, "inner_group_num": 2},
    ),
    "convbert": ("convbert", ENCODER | {"embedding_size": 32, "head_ratio": 2, "conv_kernel_size": 5}),
    "roformer": ("roformer", ENCODER | {"embedding_size": 32}),
    "mobilebert": (
        "mobilebert",
        NARROW | {"intra_bottleneck_size": 16, "true_hidden_size": 16, "num_feedforward_networks": 2},
    ),
    "squeezebert": ("squeezebert", ENCODER | {"embedding_size": 32}),
    "esm": ("esm", PADDED | {"mask_token_id": 5}),
    "esm-2": ("esm", PADDED | {"mask_token_id": 5, "position_embedding_type": "rotary"}),
    "eurobert": (
        "eurobert",
        ENCODER
        | {"num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "mask_token_id": 3},
    ),
    "nystromformer": (
        "nystromformer",
        ENCODER | {"num_landmarks": 4, "segment_means_seq_len": 4, "conv_kernel_size": 3},
    ),
    "roberta-prelayernorm": ("roberta-prelayernorm", PADDED),
    "xlm-roberta-xl": ("xlm-roberta-xl", PADDED),
    "longformer": ("longformer", PADDED | {"attention_window": 4}),
    "luke": ("luke", PADDED | {"entity_vocab_size": 20, "entity_emb_size": 16, "use_entity_aware_attention": False}),
}


@pytest.mark.parametrize("case", ENCODERS)
def test_encoders(case: str) -> None:
    model_type, config = ENCODERS[case]
    their = twins.theirs({"model_type": model_type, **config}, MASKED)
    own = twins.ours(their)
    given = twins.ids(their)
    with torch.no_grad():
        twins.agree(own(given), their(given).logits)
    said = assay.count(own.description, batch=2, tokens=given.shape[1]).flops.total
    assert assay.measure(own, given).flops.forward == said


def test_a_fourier_transform_is_no_product() -> None:
    their = twins.theirs({"model_type": "fnet", **ENCODER}, MASKED)
    own = twins.ours(their)
    given = twins.ids(their)
    with torch.no_grad():
        twins.agree(own(given), their(given).logits)
    said = assay.count(own.description, batch=2, tokens=given.shape[1]).flops.total
    assert assay.measure(own, given, allow=("aten::_fft_c2c",)).flops.forward == said


def test_each_text_passes_the_adapter_of_its_language() -> None:
    config = PADDED | {"languages": ["en", "de"], "default_language": "en"}
    their = twins.theirs({"model_type": "xmod", **config}, MASKED)
    own = assay.build(assay.load(their.config)).eval()
    state = {
        name.replace("adapter_modules.en.", "adapter_modules.0.").replace(
            "adapter_modules.de.", "adapter_modules.1."
        ): t
        for name, t in their.state_dict().items()
    }
    own.load_state_dict({name: state[name] for name in own.state_dict()})
    given, language = twins.ids(their), torch.tensor([1, 0])
    with torch.no_grad():
        expected = their(given, lang_ids=language).logits
        twins.agree(own(given, language=language[:, None]), expected)
        assert (own(given, language=1 - language[:, None]) - expected).abs().max() > 1e-3
    with pytest.raises(assay.BuildError, match="give it by that name"):
        own(given)


def test_places_on_a_page_are_given_by_name() -> None:
    their = twins.theirs({"model_type": "layoutlm", **ENCODER, "max_2d_position_embeddings": 64}, MASKED)
    own = twins.ours(their)
    given = twins.ids(their)
    low, more = (torch.randint(0, 30, (*given.shape, 2), generator=torch.Generator().manual_seed(i)) for i in (5, 6))
    box = torch.cat((low, low + more), -1)
    places = {"x0": box[..., 0], "y0": box[..., 1], "x1": box[..., 2], "y1": box[..., 3], "w": more[..., 0]}
    with torch.no_grad():
        twins.agree(own(given, h=more[..., 1], **places), their(given, bbox=box).logits)


HEADS = {
    "BertForSequenceClassification": ("bert", ENCODER),
    "BertForTokenClassification": ("bert", ENCODER),
    "BertForQuestionAnswering": ("bert", ENCODER),
    "RobertaForSequenceClassification": ("roberta", PADDED),
    "DistilBertForSequenceClassification": ("distilbert", {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}),
    "DebertaV2ForSequenceClassification": ("deberta-v2", POSITIONS),
    "ElectraForTokenClassification": ("electra", NARROW),
    "ModernBertForSequenceClassification": ("modernbert", ENCODER | {"pad_token_id": 0}),
}


@pytest.mark.parametrize("cls", HEADS)
def test_heads(cls: str) -> None:
    model_type, config = HEADS[cls]
    # as many labels as the head of answers has, which are the start and the end of one
    labels = {} if cls.endswith("Answering") else {"num_labels": 5}
    their = twins.theirs({"model_type": model_type, "vocab_size": 101, **config, **labels}, cls)
    own = assay.build(assay.load(their.config, cls=cls)).eval()
    state = their.state_dict()
    own.load_state_dict({name: state[name] for name in own.state_dict()})
    given = twins.ids(their)
    with torch.no_grad():
        found = their(given)
        expected = torch.stack((found[0], found[1]), -1) if cls.endswith("Answering") else found.logits
        twins.agree(own(given), expected)
    assert assay.measure(own, given).flops.forward == assay.count(own.description, batch=2, tokens=13).flops.total


@pytest.mark.parametrize(("cls", "model_type"), [("BertModel", "bert"), ("AlbertModel", "albert")])
def test_poolers(cls: str, model_type: str) -> None:
    their = twins.theirs({"model_type": model_type, **(NARROW if model_type == "albert" else ENCODER)}, cls)
    own = assay.build(assay.load(their.config, cls=cls)).eval()
    state = their.state_dict()
    own.load_state_dict({name: state[name] for name in own.state_dict()})
    with torch.no_grad():
        twins.agree(own(twins.ids(their)), their(twins.ids(their)).pooler_output)


PAIRS: dict[str, dict[str, Any]] = {
    "led": {
        **{key: value for key, value in PAIR.items() if key != "max_position_embeddings"},
        "attention_window": 4,
        "max_encoder_position_embeddings": 40,
        "max_decoder_position_embeddings": 40,
    },
    "bigbird_pegasus": PAIR | {"attention_type": "original_full"},
    "mvp": PAIR,
    "switch_transformers": T5
    | {"num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "expert_capacity": 64},
}


@pytest.mark.parametrize("model_type", PAIRS)
def test_pairs(model_type: str) -> None:
    twins.same_pair({"model_type": model_type, **PAIRS[model_type]})


def test_pairs_with_stored_sines() -> None:
    """FSMT. Without a cache: with one the library masks nothing of what its first pass is given."""
    config = {key: value for key, value in PAIR.items() if key != "vocab_size"}
    config |= {"src_vocab_size": 101, "tgt_vocab_size": 103, "langs": ["en", "de"], "use_cache": False}
    their = twins.theirs({"model_type": "fsmt", **config}, "AutoModelForSeq2SeqLM")
    for module in (their.model.encoder.embed_positions, their.model.decoder.embed_positions):
        module.make_weight(*module.weight.shape, module.padding_idx)  # which are no weights, and were drawn
    own = twins.ours(their)
    source, target = (torch.randint(3, 100, (2, n), generator=torch.Generator().manual_seed(n)) for n in (11, 9))
    with torch.no_grad():
        expected = their(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        twins.agree(own(target, source), expected)
        cache = own.cache()
        steps = [own(target[:, :4], source, cache=cache)]
        steps += [own(target[:, i : i + 1], cache=cache) for i in range(4, 9)]
        twins.agree(torch.cat(steps, 1), expected)


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "big_bird": (ENCODER | {"attention_type": "block_sparse", "block_size": 2}, "attention to random keys", MASKED),
    "funnel": (
        {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [1, 1], "vocab_size": 101},
        "a constant that it multiplies by is not described",
        MASKED,
    ),
    "mra": (ENCODER, "is counted in full and not run", MASKED),
    "yoso": (ENCODER, "queries and keys of length one", MASKED),
    "esm": (PADDED | {"mask_token_id": 5, "token_dropout": True}, "share of words not masked is not run yet", MASKED),
    "longt5": (T5 | {"encoder_attention_type": "transient-global"}, "sums of blocks", "AutoModelForSeq2SeqLM"),
}


@pytest.mark.parametrize("model_type", REFUSED)
def test_what_is_not_run_is_refused_when_it_is_built(model_type: str) -> None:
    config, why, auto = REFUSED[model_type]
    import transformers

    made = transformers.AutoConfig.for_model(model_type, **config)
    made.architectures = [type(twins.theirs({"model_type": model_type, **config}, auto)).__name__]
    with pytest.raises(assay.BuildError, match=why):
        assay.build(assay.load(made), device="meta")
