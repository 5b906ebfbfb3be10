"""Models of text and sound against the public implementation, tensor by tensor; FLOPs of what hears."""

from __future__ import annotations

from typing import Any

import pytest
from library import built, check_against_library, collapse, flops_of, needs_library, runnable
from towers import TEXT

from assay.errors import SettingError, SourceError
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config

EAR = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
EAR |= {"num_mel_bins": 10, "max_source_positions": 20}
WINDOWED = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 40, "num_mel_bins": 11}
WINDOWED |= {"n_window": 50, "n_window_infer": 500, "downsample_hidden_size": 6, "output_dim": 32}
WAVES: dict[str, Any] = {
    "model_type": "omniasr",
    "text_config": {**TEXT, "model_type": "llama"},
    "audio_config": {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 40,
        "conv_dim": [6, 8, 10],
        "conv_kernel": [10, 4, 3],
        "conv_stride": [80, 4, 3],
        "num_conv_pos_embeddings": 6,
        "num_conv_pos_embedding_groups": 3,
    },
}
HEARD: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": {**TEXT, "head_dim": 8, "hidden_size_per_layer_input": 0, "num_hidden_layers": 6},
    "audio_config": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "conv_kernel_size": 3}
    | {"subsampling_conv_channels": [8, 6], "output_proj_dims": 20, "use_clipped_linears": False},
}
BOTH: dict[str, Any] = {
    **HEARD,
    "audio_config": {**HEARD["audio_config"], "use_clipped_linears": True, "attention_context_right": 2},
    "vision_config": {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}
    | {"num_key_value_heads": 2, "head_dim": 12, "patch_size": 4, "use_clipped_linears": True},
}
STREAMED: dict[str, Any] = {
    "model_type": "voxtral_realtime",
    "text_config": {**TEXT, "head_dim": 6, "sliding_window": 9},
    "audio_config": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 10}
    | {"intermediate_size": 40, "num_mel_bins": 10, "sliding_window": 7},
}
SOUNDS: dict[str, tuple[dict[str, Any], str]] = {
    "qwen2_audio": ({"model_type": "qwen2_audio"}, "AutoModelForMultimodalLM"),
    "qwen2_audio, small": (
        {
            "model_type": "qwen2_audio",
            "text_config": {**TEXT, "model_type": "qwen2"},
            "audio_config": {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 40}
            | {"num_mel_bins": 10, "max_source_positions": 20},
        },
        "AutoModelForMultimodalLM",
    ),
    "audioflamingo3": ({"model_type": "audioflamingo3"}, "AudioFlamingo3ForConditionalGeneration"),
    "audioflamingo3, small": (
        {"model_type": "audioflamingo3", "text_config": {**TEXT, "model_type": "qwen2"}, "audio_config": EAR}
        | {"projector_bias": False},
        "AudioFlamingo3ForConditionalGeneration",
    ),
    "musicflamingo": ({"model_type": "musicflamingo"}, "MusicFlamingoForConditionalGeneration"),
    "voxtral": ({"model_type": "voxtral"}, "AutoModelForMultimodalLM"),
    "voxtral, small": (
        {"model_type": "voxtral", "text_config": {**TEXT, "head_dim": 6}, "audio_config": EAR},
        "AutoModelForMultimodalLM",
    ),
    "voxtral_realtime": ({"model_type": "voxtral_realtime"}, "AutoModelForMultimodalLM"),
    "voxtral_realtime, small": (STREAMED, "AutoModelForMultimodalLM"),
    "voxtral_realtime, others": (
        {**STREAMED, "text_config": {**TEXT, "head_dim": 6, "sliding_window": None}, "downsample_factor": 2}
        | {"tie_word_embeddings": False},
        "AutoModelForMultimodalLM",
    ),
    "glmasr": ({"model_type": "glmasr"}, "AutoModelForMultimodalLM"),
    "glmasr, small": (
        {
            "model_type": "glmasr",
            "text_config": {**TEXT, "vocab_size": 100},
            "audio_config": {key: value for key, value in EAR.items() if key != "max_source_positions"}
            | {"num_key_value_heads": 2, "max_position_embeddings": 20},
            "tie_word_embeddings": False,
        },
        "AutoModelForMultimodalLM",
    ),
    "moss_transcribe_diarize": ({"model_type": "moss_transcribe_diarize"}, "AutoModelForMultimodalLM"),
    "moss_transcribe_diarize, small": (
        {"model_type": "moss_transcribe_diarize", "text_config": {**TEXT, "head_dim": 8}, "audio_config": EAR}
        | {"audio_merge_size": 5},
        "AutoModelForMultimodalLM",
    ),
    "gemma4": ({**HEARD, "audio_config": {}}, "AutoModelForMultimodalLM"),
    "gemma4, sound": (HEARD, "AutoModelForMultimodalLM"),
    "gemma4, both": (BOTH, "AutoModelForMultimodalLM"),
    "omniasr": ({"model_type": "omniasr"}, "AutoModelForMultimodalLM"),
    "omniasr, small": (WAVES, "AutoModelForMultimodalLM"),
    "omniasr, without biases": (
        {**WAVES, "audio_config": {**WAVES["audio_config"], "conv_bias": False, "layer_norm_eps": 1e-3}},
        "AutoModelForMultimodalLM",
    ),
    "qwen3_asr": ({"model_type": "qwen3_asr"}, "AutoModelForMultimodalLM"),
    "qwen3_asr, small": (
        {"model_type": "qwen3_asr", "text_config": {**TEXT, "head_dim": 8}, "audio_config": WINDOWED},
        "AutoModelForMultimodalLM",
    ),
}


@needs_library
@pytest.mark.parametrize("case", SOUNDS)
def test_text_models_that_hear(case: str) -> None:
    config, auto = SOUNDS[case]
    check_against_library(config, auto=auto)


APART = ("omniasr", "voxtral_realtime")  # sounds of samples, and of any length


@needs_library
@pytest.mark.parametrize("case", [case for case in SOUNDS if "small" in case and not case.startswith(APART)])
def test_flops_of_a_sound(case: str) -> None:
    import torch

    config, auto = SOUNDS[case]
    inner = runnable(config, auto).model
    tones, frames = config["audio_config"]["num_mel_bins"], 3000 if case.startswith("qwen3_asr") else 40
    features, mask = torch.zeros((1, tones, frames)), torch.ones((1, frames), dtype=torch.long)

    def hear() -> None:
        if case.startswith(("qwen2_audio", "audioflamingo3")):
            given = {"input_features_mask": mask} if case.startswith("audio") else {}
            inner.multi_modal_projector(inner.audio_tower(features, **given).last_hidden_state)
        elif case.startswith("moss"):
            inner.get_audio_features(features, mask, padding_mask=torch.ones((1, 100)))
        elif case.startswith("voxtral"):
            inner.get_audio_features(features)
        else:
            inner.get_audio_features(features, mask)

    ours = count(read_config(config, "config", "model"), tokens=30, images=1)
    assert ours.flops.by_part["tower"] == flops_of(hear)


@needs_library
def test_flops_of_a_stream_of_sound() -> None:
    """120 frames are 60 positions, of which 4 make a token; the words, and the delay once a pass in each layer."""
    import torch

    tokens = 15
    features, words = torch.zeros((1, 10, 8 * tokens)), torch.zeros((1, tokens), dtype=torch.long)
    given = {"input_ids": words, "input_features": features, "num_delay_tokens": 6}
    ours = count(read_config(STREAMED, "config", "model"), tokens=tokens, images=1, image_tokens=tokens)
    assert ours.flops.total == flops_of(runnable(*SOUNDS["voxtral_realtime, small"]), use_cache=False, **given)
    width, layers = TEXT["hidden_size"], TEXT["num_hidden_layers"]
    assert ours.flops.by_part["norm"] == layers * 2 * (2 * 32 * width)


def test_what_a_stream_of_sound_lets_through() -> None:
    """Each of 60 positions sees the last 7: 28 + 53 x 7 pairs of 3,600 in each of two layers, 4 heads of 10."""
    model = read_config(STREAMED, "config", "model")
    ours = count(model, tokens=15, images=1, image_tokens=15)
    words = sum(min(i, 9) for i in range(1, 16))
    hidden = 2 * 2 * 40 * 2 * (3600 - (28 + 53 * 7)) + 2 * 2 * 24 * 2 * (15 * 15 - words)
    assert ours.flops.total - ours.flops.visible_total == hidden
    later = count(model, tokens=1, past=15, images=1)
    assert later.flops.by_part["tower"] == 0
    assert later.cache.bytes == 2 * 2 * 2 * 12 * 9  # two layers' keys and values of 9 positions, 2 heads of 6, 2 bytes


@needs_library
def test_flops_of_half_a_minute_of_samples() -> None:
    """480,000 samples leave 6,000, then 1,500, then 500 steps.

    The library runs the convolution for positions at one step more, which it throws away: 24 x 8 x 6 products.
    """
    import torch

    hears = runnable(*SOUNDS["omniasr, small"]).model.get_audio_features
    ours = count(read_config(WAVES, "config", "model"), tokens=30, images=1).flops.by_part["tower"]
    assert ours == flops_of(hears, torch.zeros((1, 1, 480_000))) - 2 * 24 * 8 * 6
    waves = 6_000 * 10 * 6 + 1_500 * 6 * 4 * 8 + 500 * 8 * 3 * 10
    layer = 4 * 500 * 24 * 24 + 2 * 500 * 500 * 24 + 2 * 500 * 24 * 40
    assert ours == 2 * (waves + 500 * (10 * 24 + 24 * 8 * 6 + 24 * TEXT["hidden_size"]) + 2 * layer)


def test_convolutions_over_samples_are_listed_alike() -> None:
    audio = WAVES["audio_config"]
    with pytest.raises(SourceError, match=r"audio_config\.conv_kernel has 2 items; it must be a list of 3 items"):
        read_config({**WAVES, "audio_config": {**audio, "conv_kernel": [10, 4]}}, "config", "model")
    with pytest.raises(SourceError, match=r"audio_config\.conv_dim is \[\]; it must be a list of at least one"):
        read_config({**WAVES, "audio_config": {**audio, "conv_dim": []}}, "config", "model")


SPEECH: dict[str, dict[str, Any]] = {
    "granite_speech": {"model_type": "granite_speech"},
    "granite_speech, small": {
        "model_type": "granite_speech",
        "text_config": {**TEXT, "model_type": "granite"},
        "encoder_config": {"input_dim": 10, "num_layers": 3, "hidden_dim": 24, "feedforward_mult": 2, "num_heads": 4}
        | {"dim_head": 5, "output_dim": 7, "context_size": 6, "max_pos_emb": 9, "conv_kernel_size": 3},
        "projector_config": {"model_type": "blip_2_qformer", "hidden_size": 16, "num_hidden_layers": 3}
        | {"num_attention_heads": 2, "intermediate_size": 20, "encoder_hidden_size": 24},
        "downsample_rate": 2,
        "window_size": 4,
    },
}


@needs_library
@pytest.mark.parametrize("case", SPEECH)
def test_queries_to_a_sound(case: str) -> None:
    check_against_library(SPEECH[case], auto="AutoModelForMultimodalLM")


@needs_library
def test_flops_of_queries_to_a_sound() -> None:
    """24 positions, six windows of four, two queries to each."""
    import torch

    config = SPEECH["granite_speech, small"]
    model = runnable(config, "AutoModelForMultimodalLM").model
    theirs = flops_of(lambda: model.projector(model.encoder(torch.zeros((1, 24, 10))).last_hidden_state))
    ours = count(read_config(config, "config", "model"), tokens=30, images=1, image_tokens=12)
    # in the first layer the queries of all windows are alike, and the library runs them once: five windows less of
    # four matrices, scores and values of two queries, and the query of the attention to the sound
    once = 5 * (2 * 4 * 2 * 16 * 16 + 2 * 2 * 2 * 2 * 16 + 2 * 2 * 16 * 16)
    assert ours.flops.by_part["tower"] == theirs + once


@needs_library
def test_flops_of_a_conformer_of_chunks() -> None:
    """Gemma 4: 750 positions; the library fills the last of its chunks of 12 up, 6 more queries in two layers.

    Each of these meets 24 keys and as many values, and 13 distances, in four heads of 8.
    """
    import torch

    hears = runnable(HEARD, "AutoModelForMultimodalLM").model.get_audio_features
    theirs = flops_of(hears, torch.zeros((1, 3000, 8)), torch.ones((1, 3000), dtype=torch.bool))
    ours = read_config(HEARD, "config", "model")
    filled = 2 * 2 * 6 * (24 + 24 + 13) * 4 * 8
    assert count(ours, images=1).flops.by_part["tower"] == theirs - filled
    assert count(ours, images=0).flops.by_part["tower"] == 0


@needs_library
def test_bounds_of_matrices_are_stored() -> None:
    """Four for each matrix that is clamped: 10 in each of two layers of sound, 7 in each of three of images."""
    theirs = built(BOTH, "AutoModelForMultimodalLM")
    stored = set(theirs.state_dict()) - {name for name, _ in theirs.named_parameters(remove_duplicate=False)}
    ours = [entry for entry in tensors(read_config(BOTH, "config", "model")) if entry.buffer]
    assert {entry.path for entry in ours} == {collapse(name) for name in stored}
    bounds = [entry for entry in ours if entry.path.endswith(("_min", "_max"))]
    assert sum(entry.times for entry in bounds) == 4 * (2 * 10 + 3 * 7)
    assert sum(entry.times for entry in ours) == len(stored)


def test_sounds_beside_images_are_asked_for_apart() -> None:
    model = read_config(BOTH, "config", "model")
    seen = {key: value for key, value in BOTH.items() if key != "audio_config"}
    deaf = read_config(seen, "config", "model")
    assert count(model, images=2).flops.total == count(deaf, images=2).flops.total
    blind = {key: value for key, value in BOTH.items() if key != "vision_config"}
    heard = count(read_config(blind, "config", "model"), images=3).flops.by_part["tower"]
    both = count(model, batch=2, images=2, sounds=3).flops.by_part["tower"]
    assert both == 2 * (heard + count(deaf, images=2).flops.by_part["tower"])
    assert count(model, tokens=1, past=9, sounds=3).flops.by_part["tower"] == 0  # heard in an earlier pass
    assert "each of --sounds is a sound of half a minute, 750 tokens" in model.notes
    with pytest.raises(SettingError, match="sounds is 3; model has towers of one sort, for --images"):
        count(read_config(blind, "config", "model"), sounds=3)
    with pytest.raises(SettingError, match="sounds is 3; llama has no tower to hear them"):
        count(read_config({"model_type": "llama"}, "config", "llama"), sounds=3)
