"""A report as a test: its input as a model, and the figure that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drawn import LLAMA3_8B, LLAMA3_70B, block, draw, read

from assay.readings.count import Count, count
from assay.spec import Block, Model

GIB = 2**30
MIB = 2**20


@dataclass(frozen=True)
class Case:
    """What a report should have had: what we count, what is right, and how the report prints it."""

    ours: Callable[[], Any]
    right: Any
    printed: tuple[str, ...]


REPORTED: dict[str, Case] = {}


def case(name: str, right: Any, *printed: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a case; `printed` are the report's words, the figures with thousands set off where not given."""

    def add(ours: Callable[[], Any]) -> Callable[[], Any]:
        assert name not in REPORTED
        values = right if isinstance(right, tuple) else (right,)
        REPORTED[name] = Case(ours, right, printed or tuple(v if isinstance(v, str) else f"{v:,}" for v in values))
        return ours

    return add


def one(model: Model | Block, **setting: Any) -> Count:
    """One token, where no length is given."""
    return count(model, **{"tokens": 1, **setting})


def total(model: Model) -> int:
    return int(one(model).parameters.total)


def per_token(model: Model, **setting: Any) -> int:
    """Cache bytes that one more token adds."""
    return int(one(model, **setting).cache.marginal_bytes_per_token)


def cached(model: Model, context: int, **setting: Any) -> int:
    """Cache bytes at a context, in fp16."""
    return int(one(model, past=context - 1, **{"cache": "fp16", **setting}).cache.bytes)


def training(model: Model, **setting: Any) -> int:
    """Three times the forward pass."""
    return 3 * int(one(model, **setting).flops.total)


ATTENTION = """
attention:
  q = linear(x[b n d], Wq[d g r k], Bq[g r k]) -> [b n g r k]
  k = linear(x[b n d], Wk[d g k], Bk[g k]) -> [b n g k]
  v = linear(x[b n d], Wv[d g k], Bv[g k]) -> [b n g k]
  kc = append(k[b n g k]) -> [b c g k]
  vc = append(v[b n g k]) -> [b c g k]
attention.scores:
  s = contract(q[b n g r k], kc[b c g k]) -> [b g r n c]
  p = softmax(s[b g r n c]) -> [b g r n c]
  o = contract(p[b g r n c], vc[b c g k]) -> [b n g r k]
attention:
  y = linear(o[b n g r k], Wo[g r k d], Bo[d]) -> [b n d]
"""


def attention(d: int, heads: int, kv: int | None = None, width: int | None = None) -> Block:
    """One attention with biases."""
    kv = kv or heads
    return block(ATTENTION, d=d, g=kv, r=heads // kv, k=width or d // heads)


def pairs(tokens: int, past: int = 0) -> int:
    """Visible (query, key) pairs."""
    return int(one(attention(1, 1), tokens=tokens, past=past, convention="causal").flops.attention_scores) // 4


LLAMA2_70B = {**LLAMA3_70B, "vocab_size": 32000}
LLAMA31_405B = {
    **LLAMA3_8B,
    "hidden_size": 16384,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "intermediate_size": 53248,
}


def qwen(layers: int, d: int, heads: int, kv: int, ff: int, vocab: int, *, tied: bool = False) -> Model:
    """Llama's layer with biases of q, k and v."""
    return draw(layers=layers, d=d, heads=heads, kv=kv, ff=ff, vocab=vocab, tied=tied, biases="qkv")


def mixtral(layers: int, d: int, heads: int, ff: int, vocab: int) -> Model:
    return read(
        {
            "model_type": "mixtral", "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads,
            "num_key_value_heads": 8, "intermediate_size": ff, "vocab_size": vocab,
        }
    )  # fmt: skip


def llama4(experts: int, every: int) -> Model:
    return read(
        {
            "model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202_048, "intermediate_size": 8192,
            "intermediate_size_mlp": 16_384, "num_local_experts": experts, "interleave_moe_layer_step": every,
        }
    )  # fmt: skip


def gpt_oss(layers: int, experts: int) -> Model:
    return read({"model_type": "gpt_oss", "num_hidden_layers": layers, "num_local_experts": experts})


def deepseek_v3() -> Model:
    return read({"model_type": "deepseek_v3"})  # the config class's own values are the model's
