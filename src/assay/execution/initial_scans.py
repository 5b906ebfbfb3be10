"""Recurrences before any training: decays, time steps and mixtures as those who proposed them set them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from assay.records import dataclass

if TYPE_CHECKING:
    from assay.execution.module import Layer
    from assay.spec import Op

Draw = Callable[..., Tensor]  # (shape, low, high): uniform, from the generator in use

TIME_STEPS = (0.001, 0.1)  # drawn evenly in their logarithm (Gu & Dao 2023, section 3.6)


@dataclass(frozen=True)
class Start:
    """An op whose weights are to be set, in its layer of `depth`."""

    op: Op
    layer: Layer
    depth: int
    draw: Draw

    def stored(self, index: int = 0) -> Tensor:
        """What is stored of one of its weights."""
        return self.layer.stored(self.op.weights[index].name)

    def part(self, of: int) -> float:
        """How many of so many layers stand before."""
        return (self.layer.layer or 0) / max(1, of)


def start_scan(at: Start) -> None:
    """Set the weights of a scan, and the bias that its time steps have."""
    rule = _RULES.get(at.op.attr("rule"))
    if rule is not None:
        rule(at)
    _start_steps(at)


def start_gain(at: Start) -> None:
    """What is multiplied as it is: gains are one."""
    for index, weight in enumerate(at.op.weights):
        if not at.layer.block.weight(weight.name).buffer:
            at.stored(index).fill_(1.0)


def start_mixture(at: Start) -> None:
    """How much of the present token a channel takes: more from channel to channel, less from layer to layer
    (Peng et al. 2023, appendix E).
    """
    for index in range(len(at.op.weights)):
        stored = at.stored(index)
        count = stored.numel()
        _fill(stored, (torch.arange(count) / count) ** (1.0 - at.part(at.depth)))


def _fill(stored: Tensor, values: Tensor) -> None:
    stored.copy_(values.reshape(stored.shape))


def _growing(at: Start) -> None:
    """Rates 1 … S along the state (Gu & Dao 2023, section 3.6)."""
    stored = at.stored()
    _fill(stored, torch.log(torch.arange(1.0, stored.shape[-1] + 1)).expand(stored.shape))


def _even(low: float) -> Callable[[Start], None]:
    """Rates from `low` to 16, a head each."""

    def set_rates(at: Start) -> None:
        stored = at.stored()
        _fill(stored, torch.log(at.draw(stored.shape, low, 16.0)))

    return set_rates


def _slopes(at: Start) -> None:
    """Those of ALiBi, less from layer to layer; and the tables of a block (Qin et al. 2024)."""
    slope, past, rest, within = (at.stored(i) for i in range(4))
    heads, block = slope.numel(), past.shape[-2]
    rate = 2.0 ** (-8.0 / heads * torch.arange(1.0, heads + 1))
    rate = (rate * (1 - (at.layer.layer or 0) / (at.depth - 1 + 1e-5) + 1e-5)).reshape(-1, 1)
    place = torch.arange(1.0, block + 1)
    _fill(slope, rate)
    _fill(past, torch.exp(-rate * place))
    _fill(rest, torch.exp(-rate * (block - place)))
    gaps = place[:, None] - place[None, :]
    _fill(within, torch.exp(-rate[..., None] * gaps).masked_fill(gaps < 0, 0.0))


def _slow(at: Start) -> None:
    """Decays whose squares are drawn from 0.9² to 0.999² (De et al. 2024, section 2.4)."""
    stored = at.stored()
    _fill(stored, torch.log(torch.expm1(-0.5 * torch.log(at.draw(stored.shape, 0.9**2, 0.999**2)))))


def _channels(at: Start) -> None:
    """Decays from channel to channel, and what the present token counts for more (Peng et al. 2023, appendix E)."""
    decay, first = at.stored(), at.stored(1)
    count, deep = decay.numel(), at.part(at.depth - 1)
    place = torch.arange(count) / max(1, count - 1)
    _fill(decay, -5.0 + 8.0 * place ** (0.7 + 1.3 * deep))
    _fill(first, math.log(0.3) + 0.5 * ((torch.arange(count) + 1) % 3 - 1))


_RULES: dict[str, Callable[[Start], None]] = {
    "mamba": _growing,
    "mamba2": _even(1.0),
    "delta": _even(0.01),
    "linear": _slopes,
    "lru": _slow,
    "wkv": _channels,
}


def _start_steps(at: Start) -> None:
    """The bias behind which a softplus makes a time step: its inverse of a step that is drawn."""
    named = {t.name for t in at.op.activations}
    ops = at.layer.block.ops
    for index, soft in enumerate(ops):
        made = next((one for one in reversed(ops[:index]) if one.name == soft.name), None)
        if soft.kind != "softplus" or soft.name not in named or made is None:
            continue
        biases = made.weights[1:] if made.kind == "linear" else made.weights if made.kind == "add" else ()
        for bias in biases:
            stored = at.layer.stored(bias.name)
            low, high = map(math.log, TIME_STEPS)
            step = torch.exp(at.draw(stored.shape, low, high))
            _fill(stored, step + torch.log(-torch.expm1(-step)))
