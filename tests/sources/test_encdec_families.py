"""Encoder-decoders against the public implementation: every tensor, every FLOP, each class."""

from __future__ import annotations

from typing import Any

import pytest
from encdec import bart, long, model, named, paired, prophetnet, seamless, t5, t5gemma, t5gemma2, whisper
from library import built, check_against_library, differences, needs_library, our_ledger, runnable, their_ledger

from assay.errors import SettingError
from assay.readings.count import count
from assay.readings.training import training

SEQ2SEQ = "AutoModelForSeq2SeqLM"


SMALL = [
    bart(),
    bart(encoder_layers=1, scale_embedding=True, activation_function="relu"),
    bart(tie_word_embeddings=False),
    bart("mbart", scale_embedding=True),
    bart("mbart", tie_word_embeddings=False),
    bart("plbart"),
    bart("mvp"),
    bart("pegasus"),
    bart("marian"),
    bart("marian", share_encoder_decoder_embeddings=False, decoder_vocab_size=61),
    bart("marian", share_encoder_decoder_embeddings=False, tie_word_embeddings=False),
    bart("marian", tie_word_embeddings=False),
    bart("blenderbot"),
    bart("blenderbot-small"),
    bart("m2m_100"),
    bart("m2m_100", tie_word_embeddings=False, activation_function="gelu"),
    t5(),
    t5(feed_forward_proj="gated-gelu"),
    t5(feed_forward_proj="gated-silu", num_decoder_layers=1),
    t5("mt5"),
    t5("mt5", feed_forward_proj="relu"),
    t5("umt5"),
    bart("fsmt", src_vocab_size=61, vocab_size=67),
    bart("fsmt", src_vocab_size=67, vocab_size=67, tie_word_embeddings=True, pad_token_id=3),
    t5("switch_transformers", num_experts=3, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    t5("switch_transformers", num_experts=2, num_sparse_encoder_layers=0, num_sparse_decoder_layers=3),
    t5(
        "switch_transformers",
        num_sparse_encoder_layers=2,
        num_sparse_decoder_layers=1,
        router_bias=True,
        tie_word_embeddings=False,
    ),
    t5gemma(),
    t5gemma(source=48, tie_word_embeddings=False),
    t5gemma2(),
    prophetnet(),
    prophetnet(ngram=1, num_buckets=5, activation_function="relu"),
    prophetnet(ngram=3, tie_word_embeddings=False),
    paired("bert", "bert"),
    paired("roberta", "roberta", num_hidden_layers=1),
    paired("bert", "roberta", tie_word_embeddings=False),
]
# the library runs other experts than the architecture's, or pads blocks: no witness for FLOPs
TENSORS_ONLY = [
    long("led", attention_window=4, max_encoder_position_embeddings=24, max_decoder_position_embeddings=16),
    long("led", attention_window=[4, 8], tie_word_embeddings=False),
    long("pegasus_x", block_size=4, num_global_tokens=3),
    long("pegasus_x", block_size=5, stagger_local_blocks=False, tie_word_embeddings=False),
    long("bigbird_pegasus", block_size=2, num_random_blocks=1, max_position_embeddings=24),
    long("bigbird_pegasus", use_bias=True, tie_word_embeddings=False, attention_type="original_full"),
    t5("longt5", local_radius=3),
    t5("longt5", local_radius=3, encoder_attention_type="transient-global", global_block_size=2),
    t5("longt5", feed_forward_proj="gated-gelu", encoder_attention_type="transient-global"),
    bart("nllb-moe", num_experts=3, encoder_sparse_step=2, decoder_sparse_step=3),
    bart("nllb-moe", num_experts=2, encoder_sparse_step=1, decoder_sparse_step=0, router_bias=True),
    bart("nllb-moe", num_experts=2, encoder_sparse_step=1, decoder_sparse_step=1, tie_word_embeddings=False),
]


@needs_library
@pytest.mark.parametrize("config", SMALL, ids=named)
def test_small_models_are_the_librarys(config: dict[str, Any]) -> None:
    check_against_library(config, tokens=7, auto=SEQ2SEQ)
    check_against_library(config, tokens=7, source=11, auto=SEQ2SEQ)


@needs_library
@pytest.mark.parametrize("config", TENSORS_ONLY, ids=named)
def test_small_models_hold_the_librarys_tensors(config: dict[str, Any]) -> None:
    check_against_library(config, auto=SEQ2SEQ)


DEFAULTS = """
    bart mbart plbart mvp pegasus marian blenderbot blenderbot-small m2m_100 led bigbird_pegasus pegasus_x fsmt
    t5 mt5 umt5 longt5 switch_transformers t5gemma prophetnet
""".split()


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_defaults_are_the_config_classs(model_type: str) -> None:
    """A config that says nothing more."""
    check_against_library({"model_type": model_type}, auto=SEQ2SEQ)


@needs_library
@pytest.mark.parametrize(
    "config",
    [
        whisper(),
        whisper(num_mel_bins=7, encoder_layers=1, activation_function="relu", tie_word_embeddings=False),
        whisper(max_source_positions=6, decoder_layers=1),
    ],
    ids=["whisper", "whisper-untied", "whisper-short"],
)
def test_small_whisper_is_the_librarys(config: dict[str, Any]) -> None:
    frames = 2 * config["max_source_positions"]
    check_against_library(config, tokens=7, source=frames, auto="AutoModelForSpeechSeq2Seq")


SPEECH = [
    seamless(),
    seamless(conv_depthwise_kernel_size=3, activation_function="gelu", speech_encoder_hidden_act="relu"),
    seamless("seamless_m4t_v2", left_max_position_embeddings=6, right_max_position_embeddings=2),
    seamless("seamless_m4t_v2", adaptor_kernel_size=5, adaptor_stride=2),
]


@needs_library
@pytest.mark.parametrize("config", SPEECH, ids=["v1", "v1-others", "v2", "v2-overlapping"])
@pytest.mark.parametrize("frames", [9, 16, 23])
def test_small_models_of_speech_are_the_librarys(config: dict[str, Any], frames: int) -> None:
    check_against_library(config, tokens=5, source=frames, auto="AutoModelForSpeechSeq2Seq")


@needs_library
@pytest.mark.parametrize("model_type", ["seamless_m4t", "seamless_m4t_v2"])
def test_training_of_speech_reaches_all_that_hears(model_type: str) -> None:
    """Convolutions apart: PyTorch's counter takes the backward pass of grouped ones for more than it is."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    config = seamless(model_type)
    theirs = runnable(config, "AutoModelForSpeechSeq2Seq").requires_grad_()
    heard = torch.zeros(2, 16, config["feature_projection_input_dim"])
    with FlopCounterMode(display=False) as forward:
        told = theirs(input_features=heard, decoder_input_ids=torch.zeros((2, 5), dtype=torch.long)).logits.sum()
    with FlopCounterMode(display=False) as backward:
        told.backward()
    aten = torch.ops.aten
    convolved = forward.get_flop_counts()["Global"][aten.convolution]
    besides = backward.get_flop_counts()["Global"][aten.convolution_backward] - 2 * convolved
    ours = training(model(config), batch=2, tokens=5, source=16)
    assert ours.forward == forward.get_total_flops()
    assert ours.backward == backward.get_total_flops() - besides


@needs_library
def test_whispers_defaults_are_the_config_classs() -> None:
    check_against_library({"model_type": "whisper"}, auto="AutoModelForSpeechSeq2Seq")


@needs_library
@pytest.mark.parametrize("model_type", ["t5", "mt5", "umt5", "longt5"])
def test_a_t5_that_says_so_has_a_head_of_its_own(model_type: str) -> None:
    """The library ties it whatever the config says: it lacks V x d elements, and no more."""
    config = t5(model_type, tie_word_embeddings=False, feed_forward_proj="gated-gelu")
    theirs = sum(p.numel() for p in built(config, SEQ2SEQ).parameters())
    ours = count(model(config)).parameters
    assert ours.total == theirs + 97 * 32
    assert ours.head == 97 * 32
    assert ours.embedding == count(model(config | {"tie_word_embeddings": True})).parameters.embedding


@needs_library
@pytest.mark.parametrize("model_type", ["bart", "mbart", "pegasus", "marian", "m2m_100", "t5", "t5gemma"])
def test_base_models_lack_the_head(model_type: str) -> None:
    config = t5gemma() if model_type == "t5gemma" else t5() if model_type == "t5" else bart(model_type)
    ours, theirs = model(config, cls="base"), built(config, "AutoModel")
    assert differences(our_ledger(ours), their_ledger(theirs)) == []


@needs_library
@pytest.mark.parametrize("model_type", ["bart", "mbart", "plbart", "mvp", "bigbird_pegasus"])
def test_classifiers_end_in_a_dense_layer_and_labels(model_type: str) -> None:
    config = bart(model_type) | {"id2label": {str(i): str(i) for i in range(5)}, "architectures": ["X"]}
    ours = model(config, cls="sequence-classification")
    del config["architectures"]
    theirs = built(config, "AutoModelForSequenceClassification")
    assert differences(our_ledger(ours), their_ledger(theirs)) == []
    assert count(ours, tokens=3).flops.by_part["head"] == 2 * (32 * 32 + 32 * 5)


@needs_library
@pytest.mark.parametrize("config", [t5(), t5("umt5")], ids=named)
def test_encoders_alone_are_the_librarys(config: dict[str, Any]) -> None:
    ours, theirs = model(config, cls="encoder"), built(config, "AutoModelForTextEncoding")
    assert differences(our_ledger(ours), their_ledger(theirs)) == []
    with pytest.raises(SettingError, match="keeps nothing between passes"):
        count(ours, tokens=1, past=4)
    assert count(ours, tokens=5).cache.bytes == 0
