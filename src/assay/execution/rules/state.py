"""What a pass leaves for the next."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from assay.execution.sites import Call, Run, Site, fit, runs
from assay.kinds.base import traded


def _renamed(site: Site) -> tuple[int, Callable[[Tensor], Tensor]]:
    """Which dimension of keys the operand's tokens become, and how the operand is brought there."""
    queries, keys = traded(site.op)
    given, made = site.op.inputs[0].axes, site.op.axes
    turned = fit(tuple(keys if a == queries else a for a in given), made)
    return made.index(keys), turned or (lambda x: x)


@runs("append")
def append(site: Site) -> Run:
    """Keys or values of these tokens behind those kept: all of them, or as many as a window or chunk can still see."""
    dim, turned = _renamed(site)
    window = site.value("window") if site.op.attr("window") is not None else site.value("chunk")
    key = site.key

    def run(call: Call, x: Tensor) -> Tensor:
        x = turned(x)
        if call.state is None:
            return x
        held = call.state.get(key)
        if held is not None:
            x = torch.cat((held, x), dim)
        kept = x
        if window is not None and x.shape[dim] > window - 1:
            kept = x.narrow(dim, x.shape[dim] - (window - 1), window - 1)
            if x.shape[dim] > window:  # a long prefill would be kept alive by what is seen of it
                kept = kept.clone()
        call.state[key] = kept
        return x

    return run


@runs("reuse")
def reuse(site: Site) -> Run:
    """Keys or values at hand that an earlier layer made: the same tensor."""
    _, turned = _renamed(site)
    return lambda call, x: turned(x)


@runs("hold")
def hold(site: Site) -> Run:
    """Keys or values of a source, made in the first pass."""
    _, turned = _renamed(site)
    key = site.key

    def run(call: Call, x: Tensor) -> Tensor:
        x = turned(x)
        if call.state is None:
            return x
        held = call.state.get(key)
        if held is not None:
            return held
        call.state[key] = x
        return x

    return run
