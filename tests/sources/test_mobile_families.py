"""Gemma 3n whole: its MobileNet-V5, its encoder of sound, what leads from both to the text model."""

from __future__ import annotations

import math
from typing import Any

import pytest
from library import check_against_library, flops_of, needs_library, runnable
from mobilenet import FLOPS, NAME, PARAMETERS, TENSORS, flops, shapes

from assay.errors import SourceError
from assay.readings.check import check
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config

SEEN = "AutoModelForImageTextToText"
TEXT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "sliding_window": 4,
    "pad_token_id": 0,
    "vocab_size_per_layer_input": 77,
    "intermediate_size": [96, 80, 96, 96, 72, 96],
    "hidden_size_per_layer_input": 10,
    "altup_num_inputs": 3,
    "num_kv_shared_layers": 2,
    "laurel_rank": 5,
    "layer_types": ["sliding_attention", "full_attention"] * 3,
}
EAR = {"hidden_size": 32, "conf_num_attention_heads": 4, "conf_num_hidden_layers": 2, "input_feat_size": 20}
MOBILE: dict[str, dict[str, Any]] = {
    "gemma3n": {"model_type": "gemma3n"},
    "gemma3n, small": {
        "model_type": "gemma3n",
        "text_config": TEXT,
        "vision_config": {"vocab_size": 9},
        "audio_config": {**EAR, "sscp_conv_channel_size": [8, 6], "vocab_size": 7},
    },
    "gemma3n, another ear": {
        "model_type": "gemma3n",
        "text_config": TEXT,
        "audio_config": {
            **EAR,
            "conf_conv_kernel_size": 3,
            "sscp_conv_channel_size": [8, 6],
            "sscp_conv_kernel_size": [[3, 5], [5, 3]],
            "sscp_conv_stride_size": [[2, 2], [3, 1]],
            "conf_reduction_factor": 3,
            "conf_attention_chunk_size": 5,
            "conf_attention_context_left": 4,
            "conf_attention_context_right": 2,
        },
    },
}


@needs_library
@pytest.mark.parametrize("case", MOBILE)
def test_text_models_beside_a_mobile_tower(case: str) -> None:
    check_against_library(MOBILE[case], auto=SEEN)


@needs_library
def test_the_base_model_lacks_a_head() -> None:
    check_against_library({**MOBILE["gemma3n, small"], "architectures": ["Gemma3nModel"]}, auto="AutoModel")


def test_the_tower_by_hand() -> None:
    """Name by name, what a drawing of the stages holds; it is compared with timm's model below."""
    prefix = "model.vision_tower.timm_model."
    ours = {
        entry.path.removeprefix(prefix).replace("{i}", str(layer)): entry.shape
        for entry in tensors(read_config(MOBILE["gemma3n"], "config", "model"))
        if entry.path.startswith(prefix)
        for layer in entry.layers or ("",)
    }
    assert ours == shapes()
    assert (len(ours), sum(map(math.prod, ours.values()))) == (TENSORS, PARAMETERS)


def test_flops_of_an_image() -> None:
    """Each kernel's elements wherever it is applied, scores and values; 16 x 16 tokens of 2,048 to the text's width."""
    model = read_config(MOBILE["gemma3n, small"], "config", "model")
    assert flops() == FLOPS
    assert count(model, images=1).flops.by_part["tower"] == FLOPS + 2 * 256 * 2048 * 64
    assert count(model, images=3).flops.by_part["tower"] == 3 * count(model, images=1).flops.by_part["tower"]
    assert count(model, images=0).flops.by_part["tower"] == 0
    assert count(model, tokens=1, past=300, images=1).flops.by_part["tower"] == 0


@needs_library
def test_the_tower_is_timms() -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed: its figures are recorded")
    import torch

    from assay.counter.run import measure

    with torch.device("meta"):
        theirs = timm.create_model(NAME, num_classes=0).eval()
    assert {name: tuple(p.shape) for name, p in theirs.named_parameters()} == shapes()
    assert measure(theirs, torch.zeros((1, 3, 768, 768), device="meta")).flops.forward == FLOPS


@needs_library
@pytest.mark.parametrize(
    ("case", "tokens", "filled"),
    # 750 positions are filled up to 63 chunks of 12, 6 queries more that meet 24 keys and values and 13 distances
    [("gemma3n, small", 188, 2 * 2 * 6 * (24 + 24 + 13) * 32), ("gemma3n, another ear", 167, 0)],
)
def test_flops_of_a_sound(case: str, tokens: int, filled: int) -> None:
    import torch

    hears = runnable(MOBILE[case], SEEN).model.get_audio_features
    sound = torch.zeros((1, 3000, 20)), torch.zeros((1, 3000), dtype=torch.bool)
    assert hears(*sound).pooler_output.shape[1] == tokens
    ours = read_config(MOBILE[case], "config", "model")
    assert count(ours, sounds=2).flops.by_part["tower"] == 2 * (flops_of(hears, *sound) - filled)
    assert count(ours, sounds=0).flops.by_part["tower"] == 0


@needs_library
def test_tokens_of_text_pass_no_matrix_of_a_tower() -> None:
    """The library runs every token through both towers' last matrices, and keeps what it makes of few."""
    import torch

    config, n = MOBILE["gemma3n, small"], 7
    theirs = flops_of(runnable(config, SEEN), input_ids=torch.zeros((1, n), dtype=torch.long), use_cache=False)
    ours = count(read_config(config, "config", "model"), tokens=n)
    assert ours.flops.total + 2 * n * (2048 + 32) * 64 == theirs


@pytest.mark.parametrize(
    ("layers", "width", "shared", "said"),
    [(35, 16384, 15, 7.85), (30, 8192, 10, 5.44)],
    ids=["gemma-3n-E4B", "gemma-3n-E2B"],
)
def test_published_sizes(layers: int, width: int, shared: int, said: float) -> None:
    """Billions of parameters on the models' pages: of files that keep, for the layers that use others' keys, the two
    matrices and the norm of keys that these had in training, 2 heads of 256.
    """
    text = {"num_hidden_layers": layers, "intermediate_size": [width] * layers, "num_kv_shared_layers": shared}
    total = count(read_config({"model_type": "gemma3n", "text_config": text}, "config", "model")).parameters.total
    assert round((total + shared * (2 * 2048 * 2 * 256 + 256)) / 1e9, 2) == said
    assert round(total / 1e9, 2) != said


def test_files_that_keep_keys_of_layers_that_use_others() -> None:
    """The last two of six layers use others' keys, and had matrices and a norm for their own in training."""
    model = read_config(MOBILE["gemma3n, small"], "config", "model")
    held: dict[str, tuple[int, ...]] = {
        entry.path.replace("{i}", str(layer)).replace("{Q}", str(stream)): entry.shape
        for entry in tensors(model)
        for layer in entry.layers or ("",)
        for stream in range(2)
    }
    plain = check(model, held)
    assert (plain.agree, plain.differences, plain.unused) == (len(held), (), 0)
    last = "model.language_model.layers.5.self_attn."
    more = {f"{last}k_proj.weight": (24, 64), f"{last}v_proj.weight": (24, 64), f"{last}k_norm.weight": (12,)}
    found = check(model, {**held, **more})
    assert (found.agree, found.differences, found.unused) == (len(held), (), 3)
    odd = check(model, {**held, f"{last}k_proj.bias": (24,), f"{last.replace('5', '6')}k_proj.weight": (24, 64)})
    assert [one.what for one in odd.differences] == ["unexpected", "unexpected"]
    assert odd.unused == 0


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("architecture", "resnet50", r"vision_config\.architecture is 'resnet50'; it must be one of mobilenetv5_300m_"),
        ("model_args", {"depth": 3}, r"vision_config\.model_args is \{'depth': 3\}; it must be null or \{\}"),
        ("hidden_size", 1024, r"vision_config\.hidden_size is 1024; it must be 2048, the channels that"),
    ],
)
def test_another_tower_is_refused(key: str, value: Any, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_config({"model_type": "gemma3n", "vision_config": {key: value}}, "config", "model")


def test_an_ear_that_cannot_be_is_refused() -> None:
    ear = {"input_feat_size": 2, "sscp_conv_kernel_size": [[3, 7], [3, 3]]}
    with pytest.raises(SourceError, match=r"sscp_conv_kernel_size is .*; it must be kernels no wider than the pitches"):
        read_config({"model_type": "gemma3n", "audio_config": ear}, "config", "model")
    with pytest.raises(SourceError, match=r"vision_soft_tokens_per_image is 64; it must be 256, which is what the"):
        read_config({"model_type": "gemma3n", "vision_soft_tokens_per_image": 64}, "config", "model")
