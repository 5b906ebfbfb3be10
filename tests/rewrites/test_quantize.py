"""Quantization as a rewrite: the same model, other formats."""

from __future__ import annotations

from typing import Any

from assay.formats import Rule, Scheme, make
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.readings.weights import stored_bytes
from assay.rewrites.quantize import module, quantize
from assay.sources import load
from assay.sources.huggingface import read_config

HALF = make("half a byte", "w:int4[o i]")
BYTE = make("a byte", "w:int8[o i]")
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def test_nothing_but_formats_changes() -> None:
    for name in ("llama-3-8b", "mixtral-8x7b", "deepseek-v3"):
        model = load(name)
        rewritten = quantize(model, Scheme("half a byte", default=HALF))
        before, after = count(model, tokens=3, past=5), count(rewritten, tokens=3, past=5)
        assert before.parameters == after.parameters
        assert before.flops == after.flops
        assert before.cache == after.cache
        assert before.weight_bytes is not None
        assert after.weight_bytes is not None
        assert before.weight_bytes // 4 < after.weight_bytes < before.weight_bytes


def test_matrices_alone_are_quantized() -> None:
    model = quantize(read_config(LLAMA, "config", "model"), Scheme("half a byte", default=HALF))
    found = {entry.path.rpartition(".")[0].rpartition(".")[2] for entry in tensors(model) if entry.checkpoint[0].format}
    assert found == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_layers_that_differ_are_blocks_of_their_own() -> None:
    model = read_config(LLAMA, "config", "model")
    rules = (
        Rule(r"layers\.{i}\.mlp\.up_proj", BYTE, 1),
        Rule(r"layers\.{i}\.mlp\.up_proj", BYTE, 3),
        Rule(r".*\.q_proj", None),
    )
    rewritten = quantize(model, Scheme("two", rules, HALF))
    assert [s.layers for s in rewritten.segments] == [(), (0, 2), (1, 3), ()]
    kept = {
        (entry.path.split(".")[4], entry.layers): entry.checkpoint[0].format
        for entry in tensors(rewritten)
        if "proj" in entry.path
    }
    assert kept["up_proj", (1, 3)] == BYTE
    assert kept["up_proj", (0, 2)] == HALF
    assert kept["q_proj", (0, 2)] is None
    assert stored_bytes(rewritten, "bf16") == (
        2 * (2 * 100 * 64 + 9 * 64)  # embedding, head, norms
        + 4 * 2 * 64 * 64  # queries
        + 4 * 3 * 64 * 64 // 2
        + 4 * 2 * 64 * 96 // 2  # gate and down
        + 2 * 64 * 96 // 2
        + 2 * 64 * 96
    )


def test_rules_that_come_to_the_same_make_one_block() -> None:
    model = read_config(LLAMA, "config", "model")
    rules = tuple(Rule(r"layers\.{i}\.input_layernorm", None, layer) for layer in (0, 2))
    assert len(quantize(model, Scheme("half a byte", rules, HALF)).segments) == len(model.segments)


def test_an_expression_may_count_layers() -> None:
    model = read_config(LLAMA, "config", "model")
    rewritten = quantize(model, Scheme("half a byte", (Rule(r"layers\.[13]\..*", numbered=True),), HALF))
    assert [s.layers for s in rewritten.segments] == [(), (0, 2), (1, 3), ()]


def test_modules_are_named_without_what_wraps_them() -> None:
    for path in (
        "model.layers.{i}.mlp.gate.weight",
        "model.language_model.layers.{i}.mlp.gate.weight",
        "language_model.model.layers.{i}.mlp.gate.weight",
        "layers.{i}.mlp.gate",
    ):
        assert module(path) == "layers.{i}.mlp.gate"
