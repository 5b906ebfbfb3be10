"""The counter of a lesson: models as it sees them, a token at the end of a context."""

from __future__ import annotations

from functools import cache

from drawn import LLAMA3_8B, LLAMA3_70B, draw, read

from assay.readings.count import Count, count
from assay.spec import Model

CONTEXTS = (2048, 8192, 131072)


@cache
def counter_view(name: str) -> Model:
    """A model as the lesson's counter sees it: matrices and gains alone."""
    if name == "GPT-3 175B":
        return draw(layers=96, d=12288, heads=96, ff=4 * 12288, vocab=50257, gated=False, tied=True)
    return read(LLAMA3_8B if name == "Llama-3-8B" else LLAMA3_70B)


def at_the_end(model: Model, context: int) -> Count:
    """A token at the end of a context: what the lesson's table and counter price."""
    return count(model, tokens=1, past=context - 1)


def per_layer(model: Model) -> dict[str, int]:
    parts = count(model, tokens=1).parameters.by_part
    return {part: parts[part] // model.layers for part in ("attention", "mlp")}


def share(model: Model, context: int) -> float:
    flops = at_the_end(model, context).flops
    return float(flops.attention_scores / flops.total)
