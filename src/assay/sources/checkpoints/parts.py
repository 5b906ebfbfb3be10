"""Which part of a model a tensor belongs to, by the words in its name, where no config says more: *modelled*."""

from __future__ import annotations

import re

from assay.records import dataclass
from assay.sources.checkpoints.held import Checkpoint

# the first that fits; names of published files and of GGUF
_WORDS = (
    ("norm", r"norm|(^|\.)ln_|layernorm|\.ln\d?\."),
    ("embedding", r"embed_tokens|embeddings?\.|wte|wpe|word_embed|token_embd|position_embd|embed_positions|^shared\."),
    ("head", r"lm_head|embed_out|^output\.weight|^output\.bias|classifier|^score\."),
    ("router", r"router|\.gate\.|ffn_gate_inp|e_score_correction|exp_probs_b|shared_expert_gate"),
    ("experts", r"expert|_exps|shexp"),
    ("tower", r"vision|visual|audio|mm_projector|multi_modal|^v\.|^mm\."),
    ("mixer", r"mamba|mixer|ssm|linear_attn|conv|recurrent"),
    ("attention", r"attn|attention|self_attn|query|key|value"),
    ("mlp", r"mlp|ffn|feed_forward|fc1|fc2|intermediate|output\.dense|dense_h"),
)
_COMPILED = tuple((part, re.compile(words)) for part, words in _WORDS)


@dataclass(frozen=True)
class Total:
    """Tensors, their elements and bytes; totals add."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0

    def __add__(self, other: Total) -> Total:
        return Total(self.tensors + other.tensors, self.elements + other.elements, self.bytes + other.bytes)


def part_of(name: str) -> str:
    """The part that a name speaks of; `other` where it says nothing."""
    return next((part for part, words in _COMPILED if words.search(name)), "other")


def totals(checkpoint: Checkpoint) -> tuple[dict[str, Total], dict[str, Total]]:
    """Tensors, elements and bytes by dtype, most bytes first, and by part."""
    by_dtype: dict[str, Total] = {}
    by_part: dict[str, Total] = {}
    for tensor in checkpoint.tensors:
        one = Total(1, tensor.elements, tensor.bytes)
        for table, key in ((by_dtype, tensor.dtype), (by_part, part_of(tensor.name))):
            table[key] = table.get(key, Total()) + one
    return _sorted(by_dtype), _sorted(by_part)


def _sorted(table: dict[str, Total]) -> dict[str, Total]:
    return dict(sorted(table.items(), key=lambda item: -item[1].bytes))
