"""Which modules of a model are stored in which format, and which are left as they are."""

from __future__ import annotations

from math import ceil
from typing import Any

from quantized import LAYER, LLAMA, PLAIN, matrices, quantized, weight_bytes

from assay.sources.config import Config
from assay.sources.quantization import read_scheme


def test_modules_left_as_they_are() -> None:
    def fp8(o: int, i: int) -> int:
        return o * i + 4 * ceil(o / 128) * ceil(i / 128)

    whole = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    everything = matrices(fp8) + 2 * PLAIN
    assert quantized(**whole) == everything
    one = 2 * 160 * 96 - fp8(160, 96)
    for names, more in [
        (["up_proj"], 3 * one),
        (["model.layers.1.mlp.up_proj"], one),
        (["language_model.model.layers.1.mlp.up_proj", "lm_head"], one),
        (["model.layers.1.mlp"], 2 * one + 2 * 96 * 160 - fp8(96, 160)),
        (["layers.0.mlp.up_proj", "model.layers.2.mlp.up_proj"], 2 * one),
        (["proj"], 0),  # a part of a name is none
    ]:
        assert quantized(**whole, modules_to_not_convert=names) == everything + more, names


def test_expressions_and_stars_of_ignored_modules() -> None:
    weights = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    groups = {"config_groups": {"a": {"targets": ["Linear"], "weights": weights}}, "format": "float-quantized"}

    def given(*ignored: str) -> Any:
        return quantized(quant_method="compressed-tensors", **groups, ignore=["lm_head", *ignored])

    everything = given()
    assert everything == matrices(lambda o, i: o * i + 2) + 2 * PLAIN
    one = 160 * 96 - 2
    assert given("re:.*mlp.up_proj") == everything + 3 * one
    assert given(r"re:.*layers\.[02]\.mlp.up_proj") == everything + 2 * one
    assert given("re:model.layers.1.mlp.up_proj$") == everything + one
    star = {"quant_method": "modelopt", "quant_algo": "FP8"}
    plain = quantized(**star, ignore=["lm_head"])
    assert quantized(**star, ignore=["lm_head", "model.layers.2*"]) == plain + sum(o * i - 8 for o, i in LAYER)


def test_a_star_behind_a_layers_number_is_more_layers() -> None:
    table = {"quant_method": "modelopt", "quant_algo": "FP8"}
    deep = {**LLAMA, "num_hidden_layers": 12}

    def given(*ignored: str) -> Any:
        return weight_bytes(deep, quantization_config={**table, "ignore": ["lm_head", *ignored]})

    one = sum(o * i - 8 for o, i in LAYER)
    assert given("model.layers.1*") == given() + 3 * one  # 1, 10, 11
    assert given("model.layers.0*") == given() + one
    assert given("model.layers.1.*") == given() + one


def test_groups_of_modules_in_formats_of_their_own() -> None:
    wide = {"num_bits": 8, "type": "float", "strategy": "channel"}
    groups = {
        "a": {"targets": ["re:.*self_attn.*"], "weights": wide, "format": "float-quantized"},
        "b": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"},
            "format": "nvfp4-pack-quantized",
        },
    }
    found = quantized(quant_method="compressed-tensors", config_groups=groups, ignore=["lm_head"], format="mixed")
    attention = 3 * sum(o * i + 2 * o for o, i in LAYER[:4])
    mlp = 3 * sum(o * i // 2 + o * i // 16 + 4 for o, i in LAYER[4:])
    assert found == attention + mlp + 2 * PLAIN


def test_mixed_precision_names_what_it_quantizes() -> None:
    layers = {"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16},
              "model.layers.1.mlp.up_proj": {"quant_algo": "FP8"}}  # fmt: skip
    found = quantized(quant_method="modelopt", quant_algo="MIXED_PRECISION", quantized_layers=layers)
    one = 160 * 96
    rest = 2 * (matrices(lambda o, i: o * i) - 2 * one)
    assert found == (one // 2 + one // 16 + 8) + (one + 8) + rest + 2 * PLAIN


def test_a_scheme_of_the_text_model_leaves_its_towers() -> None:
    table = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    whole = Config({"quantization_config": table}, "config")
    inner = Config({"text_config": {"quantization_config": table}}, "config").child("text_config")
    schemes = [read_scheme(c, "quantization_config", "kimi_k25", None) for c in (whole, inner)]
    assert [scheme is not None and "tower" in scheme.parts for scheme in schemes] == [True, False]


def test_rules_that_no_config_states_are_unknown() -> None:
    table = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    scheme = read_scheme(Config({"quantization_config": table}, "config"), "quantization_config", "deepseek_v4", None)
    assert scheme is not None
    assert scheme.unknown == "which matrices of deepseek_v4 stay as they are is not in its config"
