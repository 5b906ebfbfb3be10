"""Models side by side: figures are the counts, and the differences those that two configs have by hand."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.readings.words import is_expression
from assay.report.table import WIDTH, Style
from assay.studies.compare import Held, compare
from assay.studies.compared import _heads, report, to_json

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
}


def of(*names: str, **settings: Any) -> Any:
    return compare([assay.load(name) for name in names], **settings)


def text(made: Any) -> str:
    lines = report(made, Style(False))
    assert all(len(line) <= WIDTH and line == line.rstrip() for line in lines)
    return "\n".join(lines)


def test_figures_are_the_counts() -> None:
    made = of("llama-3-8b", "qwen3-8b", tokens=7, past=9)
    counts = [assay.count(assay.load(name), tokens=7, past=9) for name in ("llama-3-8b", "qwen3-8b")]
    assert made.figures["parameters.total"] == tuple(c.parameters.total for c in counts)
    assert made.figures["flops.by_part.mlp"] == tuple(c.flops.by_part["mlp"] for c in counts)
    assert made.figures["cache.bytes"] == tuple(c.cache.bytes for c in counts)
    assert made.ratios("flops.total") == (1, counts[1].flops.total / counts[0].flops.total)


def test_sizes_that_differ_with_the_keys_they_are_from() -> None:
    """Llama 3 8B and Qwen3 8B: the MLP and the vocabulary; heads and widths are the same."""
    made = of("llama-3-8b", "qwen3-8b")
    assert [(size.axis, size.part, size.held) for size in made.sizes] == [
        ("f", "mlp", ((Held(14336, 32, "mlp.width"),), (Held(12288, 36, "mlp.width"),))),
        ("V", "", ((Held(128256, 0, "vocab"),), (Held(151936, 0, "vocab"),))),
    ]


def test_keys_of_configs() -> None:
    made = compare([assay.load(CONFIG), assay.load({**CONFIG, "num_key_value_heads": 2})])
    grouped = next(size for size in made.sizes if size.axis == "g")
    assert [[(h.value, h.key) for h in held] for held in grouped.held] == [
        [(4, "num_key_value_heads")],
        [(2, "num_key_value_heads")],
    ]
    assert {size.axis for size in made.sizes} == {"g", "r"}


def test_sizes_of_some_layers() -> None:
    made = of("gemma-2-9b", "llama-3-8b")
    window = next(size for size in made.sizes if size.axis == "w")
    assert [[(h.value, h.layers) for h in held] for held in window.held] == [[(4096, 21)], []]
    assert "4,096 in 21" in text(made)


def test_the_same_letter_in_two_parts_is_two_sizes() -> None:
    made = of("llama-3-8b", "deepseek-v3")
    inner = {size.part: [[h.value for h in held] for held in size.held] for size in made.sizes if size.axis == "f"}
    assert inner == {"mlp": [[14336], [18432]], "experts": [[], [2048]]}


def test_ops_that_not_all_have() -> None:
    made = of("llama-3-8b", "qwen3-8b")
    assert [(op.part, op.notation, op.layers) for op in made.ops] == [
        ("norm", "q = rmsnorm(q, Gqn[k])", (0, 36)),
        ("norm", "k = rmsnorm(k, Gkn[k])", (0, 36)),
    ]
    assert made.parts == {}


def test_biases_are_seen() -> None:
    made = of("llama-3-8b", "qwen2.5-7b")
    notations = {op.notation: op.layers for op in made.ops if op.part == "attention"}
    assert notations["q = linear(xa, Wq[d g r k])"] == (32, 0)
    assert notations["q = linear(xa, Wq[d g r k], Bq[g r k])"] == (0, 28)


def test_parts_that_not_all_have() -> None:
    made = of("llama-3-8b", "jamba-v0.1")
    assert made.parts == {"router": (0, 16), "experts": (0, 16), "mixer": (0, 28)}
    assert not any(op.part in made.parts for op in made.ops)


def test_what_is_the_same_says_so() -> None:
    made = of("gpt-2", "gpt-2")
    assert (made.sizes, made.parts, made.ops) == ((), {}, ())
    assert text(made).endswith("no size differs")
    assert "A: GPT-2" in text(made), "columns of one name are told apart"


def test_heads_that_are_tied() -> None:
    made = of("llama-3-8b", "gpt-2", "dinov2-base", tokens=None)
    assert made.tied == (False, True, None)
    assert "head tied to the embedding" in text(made)


def test_formats_that_differ() -> None:
    quantized = {**CONFIG, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    made = compare([assay.load(CONFIG), assay.load(quantized)])
    assert made.formats[0] == "weights bf16"
    assert made.formats[1] != made.formats[0]
    assert made.formats[1] in text(made)
    assert made.sizes == ()


def test_all_get_as_many_tokens() -> None:
    made = of("llama-3-8b", "gpt-2")
    assert [c.setting.tokens for c in made.counts] == [1024, 1024]
    assert [c.setting.tokens for c in of("llama-3-8b", "qwen3-8b", context=500).counts] == [500, 500]


def test_many_models_take_several_tables() -> None:
    shown = text(of("llama-3-8b", "qwen3-8b", "gemma-2-9b", "jamba-v0.1", "gpt-2", "mixtral-8x7b"))
    assert len([line for line in shown.splitlines() if line.startswith("parameters ")]) > 1


def test_json_has_a_place_for_each_model() -> None:
    made = of("llama-3-8b", "jamba-v0.1", "gpt-2")
    held = to_json(made, "1")
    assert [one["name"] for one in held["models"]] == ["Llama 3 8B", "Jamba v0.1", "GPT-2"]
    assert all(len(row["values"]) == len(row["ratios"]) == 3 for row in held["figures"].values())
    assert held["figures"]["cache.fixed_bytes"]["ratios"] == [None, None, None]
    assert held["tied"] == [False, False, True]
    assert all(len(size["held"]) == 3 for size in held["sizes"])


def test_refusals() -> None:
    with pytest.raises(SettingError, match="a comparison is of two models or more; 1 given"):
        of("gpt-2")
    with pytest.raises(SettingError, match="source is 5; Llama 3 8B has no encoder to give it to"):
        of("llama-3-8b", "t5-base", source=5)


MANY = ["mixtral-8x7b", "llama-3-8b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b"]


@pytest.mark.parametrize("wide", [80, 100])
def test_narrow_pages_lose_nothing(wide: int) -> None:
    """Five models on a page: every op whole, every key, none cut, nothing wider than the page."""
    made = compare([assay.load(name) for name in MANY])
    lines = report(made, Style(False), wide)
    assert max(map(len, lines)) <= wide
    assert not [line for line in lines if "…" in line]
    said = " ".join(" ".join(lines).split())
    assert "layer.local.attention.window" in said
    assert "latent.plain + latent.rotary" in said
    first = said[said.index("What not all have") :]
    assert "Wq[d g r k])" in first
    assert "Wqb[l h k])" in first


def test_sources_and_images_of_some_are_said() -> None:
    made = compare([assay.load(name) for name in ("bert-base", "t5-base", "whisper-tiny", "vit-b-16")])
    said = " ".join(" ".join(report(made, Style(False))).split())
    assert "convention matmul · source 448 (T5 base) · source 3,000 (Whisper tiny) · images 1 (ViT-B/16)" in said
    other = compare([assay.load(name) for name in ("vit-b-16", "llama-3-8b")])
    assert "context 197 · images 1 (ViT-B/16) · logits all" in " ".join(report(other, Style(False)))


def test_more_models_than_letters() -> None:
    names = _heads(["a model"] * 28)
    assert (names[0], names[25], names[26], names[27]) == ("A", "Z", "AA", "AB")
    assert len(set(names)) == 28


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("llama-2-7b", "llama-3-8b"),
        ("gpt-2", "gpt-2-xl"),
        ("mixtral-8x7b", "mixtral-8x22b"),
        ("bert-base", "bert-large"),
        ("mamba-130m", "mamba-1.4b"),
        ("qwen2.5-7b", "qwen2.5-14b"),
    ],
)
def test_the_differences_are_all_there_are(one: str, other: str) -> None:
    """The first model with the sizes that are said to differ, set by the keys that they are said to be from, and with
    as many layers, has every figure of the second.
    """
    made = compare([assay.load(one), assay.load(other)])
    assert (made.parts, made.ops) == ({}, ())
    second = (held for size in made.sizes for held in size.held[1])
    sizes = {held.key: held.value for held in second if held.key and not is_expression(held.key)}
    turned = assay.load(one, sizes={**sizes, "layers": made.models[1].layers})
    setting = made.counts[1].setting
    assert compare([turned, made.models[1]], tokens=int(setting.tokens)).sizes == ()
    again = compare([turned, made.models[1]], tokens=int(setting.tokens)).figures
    assert all(mine == theirs for mine, theirs in again.values())
