"""Parameters before any training: gains one, biases zero, decays as their scans have them, the rest normal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from assay.execution.initial_scans import Start, start_gain, start_mixture, start_scan

if TYPE_CHECKING:
    from assay.execution.module import Executable
    from assay.spec import Op

DEVIATION = 0.02  # of a normal distribution, where the family says no other (Radford et al. 2019)
SLOPES = (math.log(math.expm1(0.8)), math.log(math.expm1(0.8 - 0.5)), 0.5, -1e-6)  # Huang & Schlag 2025


def start_slopes(at: Start) -> None:
    """Both slopes of xIELU before their softplus, what is linear, and the bound near zero."""
    for index, value in enumerate(SLOPES):
        at.stored(index).fill_(value)


STARTS = {"scan": start_scan, "lerp": start_mixture, "mul": start_gain, "xielu": start_slopes}
NORMS = ("rmsnorm", "layernorm")


SHIFTED = ("linear", "select", "conv", "layernorm", "batchnorm")  # kinds whose second weight is a bias


def biases(op: Op) -> list[str]:
    """The weights that are added, however many axes they are stored along: experts' biases have two."""
    if op.kind in SHIFTED:
        return [weight.name for weight in op.weights[1:2]]
    if op.kind == "add":  # one number for each channel; tables of positions have more axes
        return [weight.name for weight in op.weights if len(weight.axes) == 1]
    return []


def initialize(module: Executable, seed: int | None = None) -> None:
    """Set every parameter; the same ones for the same seed. Tensors on the meta device are left alone."""
    rng = None if seed is None else torch.Generator(device="cpu").manual_seed(seed)
    spread = module.description.deviation or DEVIATION
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_meta:
                continue
            if tensor.dim() >= 2:
                own = next((by for end, by in module.description.starts if name.endswith(end)), spread)
                drawn = torch.empty(tensor.shape, dtype=torch.float32).normal_(0.0, own, generator=rng)
                tensor.copy_(drawn)
            else:
                tensor.zero_()

        def draw(shape: torch.Size, low: float, high: float) -> Tensor:
            return torch.empty(shape, dtype=torch.float32).uniform_(low, high, generator=rng)

        if any(tensor.is_meta for tensor in module.parameters()):
            return
        towers = (layer for tower in module.towers.values() for layer in tower.layers)
        for layer in [*module.source_plan, *module.plan, *towers]:
            for step in layer.steps:
                _start(Start(step.op, layer, module.description.layers, draw))


def _start(at: Start) -> None:
    """What of an op's weights is not drawn as others are."""
    op = at.op
    for bias in biases(op):
        for tensor in at.layer.tensors(bias):
            tensor.zero_()
    start = STARTS.get(op.kind)
    if start is not None and op.weights:
        start(at)
    if op.kind in NORMS and op.weights and not op.attr("unit_offset"):
        for gain in at.layer.tensors(op.weights[0].name):
            gain.fill_(1.0)
