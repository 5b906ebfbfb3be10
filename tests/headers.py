"""Small weight files for tests, written byte by byte, and a small Llama to stand in them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from assay.errors import SourceError
from assay.sources.checkpoints import Checkpoint, read_checkpoint

Tensors = dict[str, tuple[str, tuple[int, ...], int]]  # name -> dtype, shape, bytes


def safetensors(path: Path, tensors: Tensors, **metadata: str) -> Path:
    """A .safetensors file whose data are zeros."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    return raw_safetensors(path, json.dumps(header).encode(), at)


def raw_safetensors(path: Path, header: bytes, data: int = 0, length: int | None = None) -> Path:
    """A file with this header, `length` what it claims of it."""
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + bytes(data))
    return path


def text(value: str) -> bytes:
    """A string of GGUF."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(item: Any) -> bytes:
    """A value of GGUF's metadata with its type before it."""
    if isinstance(item, bool):
        return struct.pack("<I?", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + text(item)
    inner = b"".join(value(one)[4:] for one in item)
    return struct.pack("<I", 9) + value(item[0])[:4] + struct.pack("<Q", len(item)) + inner


def gguf(
    path: Path,
    metadata: dict[str, Any],
    tensors: dict[str, tuple[int, tuple[int, ...], int]],
    version: int = 3,
    short: int = 0,
) -> Path:
    """A .gguf file: name -> block type, shape as PyTorch has it, bytes; `short` of so many bytes at its end."""
    made = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    made += b"".join(text(key) + value(item) for key, item in metadata.items())
    at = 0
    for name, (sort, shape, size) in tensors.items():
        dims = tuple(reversed(shape))
        made += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, sort, at)
        at += -(-size // 32) * 32
    made += bytes(-len(made) % 32 + at)
    path.write_bytes(made[: len(made) - short])
    return path


TWO = {"a": ("F32", (2, 3), 24), "b.norm": ("BF16", (5,), 10)}
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
}


def llama_tensors(prefix: str = "model.") -> dict[str, tuple[str, tuple[int, ...], int]]:
    shapes: dict[str, tuple[int, ...]] = {f"{prefix}embed_tokens.weight": (64, 32)}
    for i in range(2):
        at = f"{prefix}layers.{i}."
        for name, shape in {
            "input_layernorm": (32,),
            "self_attn.q_proj": (32, 32),
            "self_attn.k_proj": (16, 32),
            "self_attn.v_proj": (16, 32),
            "self_attn.o_proj": (32, 32),
            "post_attention_layernorm": (32,),
            "mlp.gate_proj": (96, 32),
            "mlp.up_proj": (96, 32),
            "mlp.down_proj": (32, 96),
        }.items():
            shapes[f"{at}{name}.weight"] = shape
    shapes |= {f"{prefix}norm.weight": (32,), "lm_head.weight": (64, 32)}
    return {name: ("F16", shape, 2 * elements(shape)) for name, shape in shapes.items()}


def elements(shape: tuple[int, ...]) -> int:
    made = 1
    for extent in shape:
        made *= extent
    return made


def shapes(held: Checkpoint) -> dict[str, Any]:
    return {tensor.name: tensor.shape for tensor in held.tensors}


def wrong(path: Path) -> str:
    """The line that a file is refused with."""
    with pytest.raises(SourceError, match=r"\S") as caught:
        read_checkpoint(str(path))
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 700
    return line


SIZES = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 128,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.tokens": [str(i) for i in range(64)],
}
BLOCK_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def llama_gguf() -> dict[str, tuple[int, tuple[int, ...], int]]:
    """The small Llama in Q4_0: 18 bytes for each 32 elements; norms in F32."""
    made: dict[str, tuple[int, tuple[int, ...], int]] = {}
    ends = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, (_, shape, _) in llama_tensors().items():
        stem = name.removesuffix(".weight")
        if stem in ends:
            spelled = ends[stem]
        else:
            _, _, layer, rest = stem.split(".", 3)
            spelled = f"blk.{layer}.{BLOCK_NAMES[rest]}"
        made[f"{spelled}.weight"] = (
            (0, shape, 4 * shape[0]) if len(shape) == 1 else (2, shape, elements(shape) // 32 * 18)
        )
    return made
