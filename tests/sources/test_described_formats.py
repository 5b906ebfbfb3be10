"""The table `[quantization]` of a description against published files, configs that say the same, and hand sums."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from described import described

from assay.errors import SourceError
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.rewrites.shrink import shrink
from assay.sources.descriptions import read_table
from assay.sources.huggingface import read_config
from assay.sources.presets import presets, read_preset, table
from assay.sources.quantization import METHODS
from assay.spec import Model

CONFIGS = Path(__file__).resolve().parents[3] / "shared" / "truth" / "configs"
# the presets that are published in a format, and a recorded config of the same sizes and format
PUBLISHED = {
    "deepseek-r1": "deepseek-ai--DeepSeek-R1",
    "deepseek-v3": "deepseek-ai--DeepSeek-V3",
    "deepseek-v3.1": "",
    "deepseek-v3.2": "",
    "gpt-oss-120b": "",
    "gpt-oss-20b": "",
    "kimi-k2": "",
    "minimax-m2": "MiniMaxAI--MiniMax-M2.5",
}
SMALL = """\
vocab = 100
width = 96
layers = 3
attention = { heads = 4, kv_heads = 2 }
mlp = { width = 160 }
"""
FP8 = '[quantization]\nquant_method = "fp8"\n'
# the matrices of one layer by their letters, outputs and inputs
LAYER = {
    "Wq": (96, 96),
    "Wk": (48, 96),
    "Wv": (48, 96),
    "Wo": (96, 96),
    "Wg": (160, 96),
    "Wu": (160, 96),
    "Wd": (96, 160),
}


def weight_bytes(model: Model, **setting: Any) -> Any:
    return count(model, tokens=1, **setting).weight_bytes


def fp8(outputs: int, inputs: int) -> int:
    """A matrix in fp8 with an fp32 scale for each block of 128 x 128."""
    return outputs * inputs + 4 * ceil(outputs / 128) * ceil(inputs / 128)


def test_presets_published_in_a_format_say_so() -> None:
    assert sorted(name for name, _ in presets() if "quantization" in table(name)) == sorted(PUBLISHED)


@pytest.mark.parametrize(
    ("name", "published"),
    # `total_size` in the index of the files of openai/gpt-oss-20b and -120b
    [("gpt-oss-20b", 13_761_264_768), ("gpt-oss-120b", 65_248_815_744)],
)
def test_weighs_what_its_files_do(name: str, published: int) -> None:
    assert weight_bytes(read_preset(name)) == published


@pytest.mark.parametrize("name", [name for name, recorded in PUBLISHED.items() if recorded])
def test_weighs_what_its_config_says(name: str) -> None:
    path = CONFIGS / f"{PUBLISHED[name]}.json"
    if not path.is_file():
        pytest.skip(f"{path} is absent: recorded configs are not part of the project")
    config = read_config(json.loads(path.read_text(encoding="utf-8")), name, name)
    preset = read_preset(name)
    assert weight_bytes(preset) == weight_bytes(config)
    assert preset.scheme == config.scheme


def test_kimi_k2_by_hand() -> None:
    """1.03 TB: 61 layers, the first dense, 384 experts and a shared one in the others."""
    d = 7168
    matrices = fp8(1536, d) + fp8(64 * 192, 1536) + fp8(512 + 64, d) + fp8(64 * 256, 512) + fp8(d, 64 * 128)
    layer = matrices + 2 * (1536 + 512 + 2 * d)
    expert = 2 * fp8(2048, d) + fp8(d, 2048)
    sparse = 385 * expert + 2 * 384 * d + 4 * 384  # the router's matrix in bf16, its correction in fp32
    total = 61 * layer + 2 * fp8(18432, d) + fp8(d, 18432) + 60 * sparse + 2 * (2 * 163840 * d + d)
    assert weight_bytes(read_preset("kimi-k2")) == total


def test_an_indexer_keeps_its_weights_of_heads() -> None:
    """DeepSeek-V3.2 over V3, a layer: queries 1536 -> 64 x 128 and a key in fp8, a norm, and 64 weights in bf16."""
    d = 7168
    more = fp8(64 * 128, 1536) + fp8(128, d) + 2 * (2 * 128) + 2 * 64 * d
    assert weight_bytes(read_preset("deepseek-v3.2")) - weight_bytes(read_preset("deepseek-v3")) == 61 * more


@pytest.mark.parametrize("name", PUBLISHED)
def test_one_dtype_for_all_is_as_without_the_table(name: str) -> None:
    plain = {key: value for key, value in table(name).items() if key != "quantization"}
    ours, without = read_preset(name), read_table(plain, "mine.toml", name)
    assert weight_bytes(ours, weights="bf16") == weight_bytes(without) > 1.9 * weight_bytes(ours)
    one, other = count(ours, tokens=300), count(without, tokens=300)
    assert (one.parameters, one.flops, one.cache) == (other.parameters, other.flops, other.cache)


def test_shrunk_it_is_in_no_format() -> None:
    """What is built to be run has weights of one dtype."""
    small = shrink(read_preset("gpt-oss-20b"))
    assert small.scheme is None
    assert all(stored.format is None for entry in tensors(small) for stored in entry.checkpoint)


def test_modules_by_the_letters_of_a_description() -> None:
    kept = 'modules_to_not_convert = ["layers.1", "*.Wo"]\n'
    found = weight_bytes(described(SMALL + FP8 + kept))
    plain = 2 * (2 * 100 * 96 + 7 * 96)
    for layer in range(3):
        for letters, (outputs, inputs) in LAYER.items():
            elements = outputs * inputs
            plain += 2 * elements if layer == 1 or letters == "Wo" else elements + 4
    assert found == plain


def test_scales_share_the_dtype_of_the_rest() -> None:
    """Scales of compressed-tensors are as what is not quantized: 4 bytes an output where that is float32."""
    quantization = """
[quantization]
quant_method = "compressed-tensors"
format = "int-quantized"
ignore = ["head", "Wout"]
observer = "minmax"
[quantization.config_groups.a]
targets = ["Linear"]
weights = { num_bits = 8, type = "int", strategy = "channel" }
"""
    found = weight_bytes(described('dtype = "fp32"\n' + SMALL + quantization))
    matrices = sum(outputs * inputs + 4 * outputs for outputs, inputs in LAYER.values())
    assert found == 3 * matrices + 4 * (2 * 100 * 96 + 7 * 96)


GROUP = 'quant_method = "compressed-tensors"\nformat = "int-quantized"\n[quantization.config_groups.a]\n'
WEIGHTS = "quantization.config_groups.a.weights"
ERRORS = [
    ('quantization = "fp8"\n', "quantization is 'fp8'; it must be a table"),
    ("quantization = {}\n", f"quantization.quant_method is missing; it must be one of {', '.join(sorted(METHODS))}"),
    ('quantization = { quant_method = "fp9" }\n',
     f"quantization.quant_method is 'fp9'; it must be one of {', '.join(sorted(METHODS))}"),
    (FP8 + "weight_block_size = [128]\n",
     "quantization.weight_block_size has 1 items; it must be a list of 2 items, each an integer of at least 1"),
    (FP8 + "weight_block_sizes = [128, 128]\n",
     "quantization.weight_block_sizes is no key where quant_method is fp8; did you mean weight_block_size?"),
    ('quantization = { quant_method = "mxfp4", bits = 4 }\n',
     "quantization.bits is no key where quant_method is mxfp4; known: modules_to_not_convert, quant_method"),
    ('quantization = { quant_method = "gptq" }\n',
     "quantization.bits is missing; it must be an integer of at least 1"),
    ('quantization = { quant_method = "awq", version = "gemv" }\n',
     "bytes cannot be told by quantization: quant_method is awq, version 'gemv'"),
    ("[quantization]\n" + GROUP + 'weights = { num_bits = 8, strategi = "channel" }\n',
     f"{WEIGHTS}.strategi is no key where quant_method is compressed-tensors; did you mean strategy?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=r"^[^\n]*: ") as caught:
        described(SMALL + text)
    assert str(caught.value).partition(": ")[2] == message
