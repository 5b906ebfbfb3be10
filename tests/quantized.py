"""A small Llama with a quantization table: what it weighs, and the matrices that a sum by hand goes over."""

from __future__ import annotations

from typing import Any

from assay.readings.count import count
from assay.sources.huggingface import read_config
from assay.spec import Model

LLAMA = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
}
# the matrices of one layer, outputs and inputs, and of all that is no matrix of a layer
LAYER = [(96, 96), (48, 96), (48, 96), (96, 96), (160, 96), (160, 96), (96, 160)]
PLAIN = 2 * 100 * 96 + (2 * 3 + 1) * 96


def read(config: dict[str, Any], **more: Any) -> Model:
    return read_config({**config, **more}, "config", "model")


def weight_bytes(config: dict[str, Any], **more: Any) -> Any:
    return count(read(config, **more), tokens=1).weight_bytes


def quantized(**table: Any) -> Any:
    return weight_bytes(LLAMA, quantization_config=table)


def matrices(one: Any) -> Any:
    """A figure of one matrix, summed over all matrices of the small Llama."""
    return 3 * sum(one(o, i) for o, i in LAYER)
