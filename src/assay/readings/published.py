"""What papers say of the same model: their formulas for a token's FLOPs, and other ways to count what is active."""

from __future__ import annotations

from typing import Literal

from assay.kinds import kind_of
from assay.kinds.base import no_work
from assay.readings.binding import bind, identity, placed
from assay.readings.count import Count
from assay.records import dataclass
from assay.size import Size
from assay.spec import Model, Segment


@dataclass(frozen=True)
class Formula:
    """A published formula's FLOPs per token beside the count: `ours` is forward, or three times that for training."""

    name: str
    text: str
    source: str
    work: Literal["forward", "training"]
    value: Size
    ours: Size


@dataclass(frozen=True)
class Active:
    """Parameters that one token passes, in the three ways that model cards count them.

    `all` has both vocabulary matrices; `without_input` leaves out tables that are only looked up, so a tied one stays;
    `without_both` leaves out everything of the embedding and the head.
    """

    all: Size
    without_input: Size
    without_both: Size


def active(model: Model, counted: Count) -> Active:
    """The three published conventions of a model's active parameters."""
    weights = counted.parameters
    return Active(
        weights.active,
        weights.active - looked_up(model, counted),
        weights.active - weights.embedding - weights.head,
    )


def looked_up(model: Model, counted: Count) -> Size:
    """Elements of the weights that no op does arithmetic with: they are looked up alone."""
    moved: dict[str, Size] = {}
    worked: set[str] = set()
    sizes = counted.setting.sizes()
    for segment in model.segments:
        extent = bind(segment.block, placed(segment, sizes))
        for op in segment.block.ops:
            idle = kind_of(op).work is no_work
            for weight in op.weights:
                where = segment.block.weight(weight.name)
                key = identity(weight.name, where)
                if not idle:
                    worked.add(key)
                elif not where.buffer:
                    moved[key] = extent(weight.axes) * (segment.copies if "{i}" in where.path else 1)
    return sum((elements for key, elements in moved.items() if key not in worked), start=0)


def formulas(model: Model, counted: Count) -> tuple[Formula, ...]:
    """The published formulas that this model has the sizes for. N is the parameters one token passes, c the context."""
    weights = counted.parameters
    n, c = weights.active, counted.setting.context
    outside = n - weights.embedding - weights.head
    layers = [s for s in model.segments if s.layers]
    attending = [s for s in layers if {"h", "k"} <= s.block.sizes.keys()]
    heads = sum((s.times * s.block.sizes["h"] * s.block.sizes["k"] for s in attending), start=0)
    forward = counted.flops_per_token
    made = [Formula("2N", "2 N", "the usual rule", "forward", 2 * n, forward)]
    if heads:
        kaplan = 2 * outside + 2 * c * heads
        made.append(Formula("Kaplan", "2 N' + 2 L c h k", "Kaplan et al. 2020, table 1", "forward", kaplan, forward))
    hoffmann = _chinchilla(layers, model, c)
    if hoffmann is not None:
        made.append(
            Formula(
                "Chinchilla",
                "4 V d + L (8 d h k + 4 c h k + 3 h c + 4 d f)",
                "Hoffmann et al. 2022, appendix F",
                "forward",
                hoffmann,
                forward,
            )
        )
    made.append(Formula("6ND", "6 N", "Kaplan et al. 2020, per token", "training", 6 * n, 3 * forward))
    if heads:
        palm = 6 * n + 12 * c * heads
        made.append(
            Formula("PaLM", "6 N + 12 L c h k", "Chowdhery et al. 2022, appendix B", "training", palm, 3 * forward)
        )
    vocabulary = _vocabulary(model)
    if vocabulary is not None and model.layers and attending and not any("e" in s.block.sizes for s in layers):
        d = model.width
        megatron = 72 * model.layers * d * d + 12 * model.layers * d * c + 6 * d * vocabulary
        text = "72 L d² (1 + c / 6d + V / 12 L d)"
        made.append(Formula("Megatron", text, "Korthikanti et al. 2022", "training", megatron, 3 * forward))
    return tuple(made)


def _vocabulary(model: Model) -> Size | None:
    """Rows of the vocabulary, where there is one."""
    return next((s.block.sizes["V"] for s in model.segments if "V" in s.block.sizes), None)


def _chinchilla(layers: list[Segment], model: Model, c: Size) -> Size | None:
    """Their forward pass over a token: a dense decoder, an MLP of two matrices, the look-up counted as a product."""
    vocabulary = _vocabulary(model)
    if vocabulary is None or not layers:
        return None
    total: Size = 4 * vocabulary * model.width
    for segment in layers:
        sizes = segment.block.sizes
        if not {"h", "k", "f"} <= sizes.keys() or "e" in sizes:
            return None
        h, k, f, d = sizes["h"], sizes["k"], sizes["f"], model.width
        total = total + segment.times * (8 * d * h * k + 4 * c * h * k + 3 * h * c + 4 * d * f)
    return total
