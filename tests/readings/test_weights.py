"""Bytes of stored weights against published files and hand sums."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from quantized import LLAMA, PLAIN, matrices, quantized, read, weight_bytes

from assay.errors import SourceError
from assay.formats import make
from assay.readings.count import count
from assay.readings.ops import list_ops
from assay.readings.tensors import tensors
from assay.readings.weights import stored_bytes
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config

TRUTH = Path(__file__).resolve().parents[3] / "shared" / "truth"
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "vocab_size": 129280,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_shared_experts": 1,
    "n_routed_experts": 256,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "qk_nope_head_dim": 128,
    "n_group": 8,
    "topk_group": 4,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "torch_dtype": "bfloat16",
}
GPT_OSS = {
    "model_type": "gpt_oss",
    "vocab_size": 201088,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    },
}


@pytest.mark.parametrize(
    ("layers", "experts", "published"),
    # `total_size` in the index of the files of openai/gpt-oss-20b and -120b
    [(24, 32, 13_761_264_768), (36, 128, 65_248_815_744)],
)
def test_gpt_oss_weighs_what_its_files_do(layers: int, experts: int, published: int) -> None:
    sizes = {"num_hidden_layers": layers, "num_local_experts": experts, "num_experts_per_tok": 4}
    assert weight_bytes(GPT_OSS, **sizes) == published


def test_deepseek_v3_has_the_published_elements_of_each_dtype() -> None:
    """Elements by dtype that the model's page on the hub states, the module that predicts a further token with them."""
    model = read(DEEPSEEK_V3, quantization_config=FP8)
    found = {"fp8": 0, "fp32": 0, "bf16": 0}
    for entry in tensors(model):
        copies = len(entry.layers) or 1
        for stored in entry.checkpoint:
            times = copies * stored.times
            if stored.format is None:
                found["fp32" if entry.buffer else "bf16"] += times * stored.elements
                continue
            several, outputs, inputs = stored.matrices
            for piece in stored.format.pieces:
                elements = 1
                for extent in piece.shape(outputs, inputs):
                    elements *= extent
                found[piece.dtype] += times * several * elements
    # the further module: a layer with experts, an embedding and a head of its own, a projection 2d -> d, three norms
    d = 7168
    attention = [(1536, d), (24576, 1536), (576, d), (32768, 512), (d, 16384)]
    experts = 257 * [(2048, d), (2048, d), (d, 2048)]
    further = [*attention, *experts]
    found["fp8"] += sum(o * i for o, i in further)
    found["fp32"] += sum(ceil(o / 128) * ceil(i / 128) for o, i in further) + 256
    found["bf16"] += 2 * 129280 * d + 2 * d * d + 3 * d + 2 * d + 1536 + 512 + 256 * d
    assert found == {"fp8": 680_571_043_840, "fp32": 41_555_600, "bf16": 3_918_786_560}


def test_deepseek_v3_by_hand() -> None:
    def fp8(o: int, i: int) -> int:
        return o * i + 4 * ceil(o / 128) * ceil(i / 128)

    d = 7168
    layer = fp8(1536, d) + fp8(24576, 1536) + fp8(576, d) + fp8(32768, 512) + fp8(d, 16384) + 2 * (1536 + 512 + 2 * d)
    expert = 2 * fp8(2048, d) + fp8(d, 2048)
    sparse = 257 * expert + 2 * 256 * d + 4 * 256
    total = 61 * layer + 3 * (2 * fp8(18432, d) + fp8(d, 18432)) + 58 * sparse + 2 * (2 * 129280 * d + d)
    assert weight_bytes(DEEPSEEK_V3, quantization_config=FP8) == total


def test_gptq_of_a_published_report() -> None:
    """Qwen2.5-72B-Instruct in GPTQ-Int4, groups of 128: 41,620,750,336 bytes, files reported as about 42 GB."""
    qwen = {
        "model_type": "qwen2",
        "vocab_size": 152064,
        "hidden_size": 8192,
        "intermediate_size": 29696,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True},
    }
    assert weight_bytes(qwen) == 41_620_750_336


def test_awq_of_a_published_report() -> None:
    """Gemma-2B with int4 matrices in groups of 128: 1,029,611,520 bytes of them, all else as it was."""
    gemma = {
        "model_type": "gemma",
        "vocab_size": 256000,
        "hidden_size": 2048,
        "intermediate_size": 16384,
        "num_hidden_layers": 18,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "torch_dtype": "float32",
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"},
    }
    assert weight_bytes(gemma) == 1_029_611_520 + 4 * 256000 * 2048 + 37 * 2048 * 4


@pytest.mark.parametrize(
    ("table", "one", "more"),
    [
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 32},
            lambda o, i: o * i // 2 + i // 32 * (o // 2 + 2 * o) + 4 * i,
            0,
        ),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, lambda o, i: o * i + o + 2 * o + 4 * i, 0),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 32, "lm_head": True},
            lambda o, i: o * i // 2 + i // 32 * (o // 2 + 2 * o) + 4 * i,
            # 100 outputs of 4 bits are 12.5 integers of 32, so 13
            96 // 8 * 100 * 4 + 3 * (4 * 13 + 2 * 100) + 4 * 96 - 2 * 100 * 96,
        ),
        (
            {"quant_method": "awq", "w_bit": 4, "q_group_size": 48},
            lambda o, i: o * i // 2 + ceil(i / 48) * (o // 2 + 2 * o),
            0,
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, lambda o, i: o * i + 4 * o + 1, 0),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            lambda o, i: o * i // 2 + 4 * (o * i // 64) + 64,
            0,
        ),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": True,
            },
            lambda o, i: o * i // 2 + o * i // 64 + 4 * ceil(o * i / 64 / 256) + 4 * 256 + 64,
            0,
        ),
        ({"quant_method": "fbgemm_fp8"}, lambda o, i: o * i + 4 * o, 0),
        (
            {"quant_method": "fp8", "weight_block_size": [32, 64]},
            lambda o, i: o * i + 4 * ceil(o / 32) * ceil(i / 64),
            0,
        ),
        ({"quant_method": "fp8", "weight_block_size": None, "activation_scheme": "static"}, lambda o, i: o * i + 8, 0),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
            lambda o, i: o * i // 2 + o * i // 16 + 8,
            0,
        ),
        ({"quant_algo": "FP8", "exclude_modules": ["lm_head"]}, lambda o, i: o * i + 8, 0),
        # compressed-tensors quantizes the head too unless told not to: 100 x 96, in fp16 otherwise
        (
            {
                "quant_method": "compressed-tensors",
                "format": "int-quantized",
                "config_groups": {
                    "a": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}
                },
            },
            lambda o, i: o * i + 2 * o,
            100 * 96 + 2 * 100 - 2 * 100 * 96,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "ignore": ["lm_head"],
                "config_groups": {
                    "a": {
                        "targets": ["Linear"],
                        "weights": {
                            "num_bits": 4,
                            "type": "int",
                            "strategy": "group",
                            "group_size": 32,
                            "symmetric": False,
                        },
                    }
                },
            },
            lambda o, i: o * i // 2 + 2 * o * i // 32 + 16 + 4 * (o // 8) * (i // 32),
            0,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "nvfp4-pack-quantized",
                "ignore": ["lm_head"],
                "config_groups": {
                    "a": {
                        "targets": ["Linear"],
                        "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
                        "input_activations": {"num_bits": 4},
                    }
                },
            },
            lambda o, i: o * i // 2 + o * i // 16 + 8,
            0,
        ),
    ],
)
def test_formats_by_hand(table: dict[str, Any], one: Any, more: int) -> None:
    assert quantized(**table) == matrices(one) + 2 * PLAIN + more


@pytest.mark.parametrize(
    "table",
    [
        {"quant_method": "hqq"},
        {"bits": 4},
        {"quant_method": "awq", "version": "gemv"},
        {"quant_method": "bitsandbytes"},
        {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"},
        {
            "quant_method": "compressed-tensors",
            "format": "marlin-24",
            "config_groups": {"a": {"weights": {"num_bits": 4}}},
        },
        {"quant_method": "compressed-tensors"},
        {"quant_method": "auto-round", "bits": 4},
    ],
)
def test_an_unknown_format_has_no_bytes(table: dict[str, Any]) -> None:
    model = read(LLAMA, quantization_config=table)
    assert model.scheme is not None
    assert model.scheme.unknown
    assert count(model, tokens=1).weight_bytes is None
    both = count(model, tokens=1) + count(read(LLAMA), tokens=1)
    assert both.weight_bytes is None
    assert count(model, tokens=1, weights="bf16").weight_bytes == count(read(LLAMA), tokens=1).weight_bytes


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"quant_method": "gptq", "bits": "four"}, "quantization_config.bits is 'four'; it must be an integer"),
        ({"quant_method": "gptq"}, "quantization_config.bits is missing"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "group_size is 0; it must be an integer of at least 1"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size has 1 items"),
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "weight_block_size is"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "it must be a list of module names"),
        ({"quant_method": 8}, "quant_method is 8; it must be a string"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": "yes"}, "load_in_4bit is 'yes'; it must be true or false"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": 1}},
            "config_groups.a is 1; it must be an object",
        ),
    ],
)
def test_wrong_values_are_one_line(table: dict[str, Any], line: str) -> None:
    with pytest.raises(SourceError, match="config: quantization_config") as caught:
        read(LLAMA, quantization_config=table)
    assert line in str(caught.value)


def recorded() -> list[str]:
    """Recorded configs that are quantized, of families that are read."""
    folder = TRUTH / "configs"
    found = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        text = path.read_text()
        if '"quantization_config"' in text and json.loads(text).get("model_type") in FAMILIES:
            found.append(path.name)
    return found


@pytest.mark.parametrize("name", recorded() or ["absent"])
def test_recorded_configs_weigh_about_what_their_bits_say(name: str) -> None:
    """Between the format's own bits and those of the dtype of all else; or said to be unknown."""
    if name == "absent":
        pytest.skip(f"{TRUTH} is absent: the recorded configs are not part of the project")
    try:
        model = read_config(json.loads((TRUTH / "configs" / name).read_text()), name, name)
    except SourceError as error:
        pytest.skip(str(error))  # a family that refuses this config, which another test lists
    counted = count(model, tokens=1)
    assert model.scheme is not None
    if model.scheme.unknown:
        assert counted.weight_bytes is None
        return
    assert counted.weight_bytes is not None
    bits = 8 * counted.weight_bytes / counted.parameters.total
    least = 4.25 if any(word in model.scheme.says for word in ("4 bits", "FP4", "int4")) else 8
    assert least < bits < 12


def test_without_a_scheme_every_element_has_the_dtype() -> None:
    model = read(LLAMA)
    counted = count(model, tokens=1)
    assert stored_bytes(model, "fp16") == counted.weight_bytes == 2 * counted.parameters.total


def test_a_tied_head_is_stored_once() -> None:
    weights = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    table = {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"a": {"targets": ["Linear"], "weights": weights}},
    }
    tied = weight_bytes(LLAMA, tie_word_embeddings=True, quantization_config=table)
    assert tied == matrices(lambda o, i: o * i + 2) + 2 * (PLAIN - 100 * 96)


def test_ops_read_what_a_matrix_weighs() -> None:
    model = read(LLAMA, quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 32})
    counted = count(model, tokens=1)
    rows = list_ops(model, counted.setting)[1].rows
    queries = next(row for row in rows if any(weight.name == "Wq" for weight in row.op.weights))
    o, i = 96, 96
    assert queries.weight_bytes == o * i // 2 + i // 32 * (o // 2 + 2 * o) + 4 * i
    of_layers = 3 * sum(row.weight_bytes for row in rows)
    assert of_layers == matrices(lambda o, i: o * i // 2 + i // 32 * (o // 2 + 2 * o) + 4 * i) + 2 * 6 * 96


def test_a_format_is_written_as_data() -> None:
    made = make("halves", "w:int4[o i] s:fp16[o/3 1] t:fp32[oi/10] u:uint8[]")
    assert [piece.shape(7, 5) for piece in made.pieces] == [(7, 5), (3, 1), (4,), ()]
    assert made.bytes(7, 5) == 18 + 6 + 16 + 1
