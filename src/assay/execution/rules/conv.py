"""Short convolutions over the last tokens, and the token before."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from assay.execution.recurrence import present
from assay.execution.sites import Call, Run, Site, fit, runs
from assay.spec import Axes


@runs("conv")
def conv(site: Site) -> Run:
    """A kernel over the last tokens, those of earlier passes among them; before the first there are zeros."""
    op = site.op
    x, weight = op.activations[0], op.weights[0]
    (column,) = [a for a in weight.axes if a not in x.axes and a not in op.axes]
    mixed = tuple(a for a in weight.axes if a in x.axes and a not in op.axes)
    apart = tuple(a for a in weight.axes if a in x.axes and a in op.axes)
    made = tuple(a for a in weight.axes if a not in x.axes and a != column)
    channels, results = (*apart, *mixed), (*apart, *made)
    if set(x.axes) != {"b", "n", *channels} or set(op.axes) != {"b", "n", *results}:
        raise site.refuse("the kernel spans every axis but batch and tokens")
    groups, width = _count(site, apart), site.size(column)
    back = op.attr("order") == "back"
    taps = _taps(site, channels, column) if len(op.activations) > 1 else None
    if mixed and (back or taps is not None):
        raise site.refuse("taps of a token's own are of each channel alone")
    kernel = site.weight(weight, results, mixed, (column,)) if mixed else site.weight(weight, results, (column,))
    bias = site.weight(op.weights[1], results) if len(op.weights) > 1 else None
    before = _joined(x.axes, channels)
    sizes, named = [site.size(a) for a in results], ("b", *results, "n")
    order = [named.index(a) for a in op.axes]
    past, start = width - 1, _before_first(site, channels)
    held = past if op.attr("held", "kernel") == "past" else width
    key = site.key

    def run(call: Call, x: Tensor, more: Tensor | None = None) -> Tensor:
        x = before(x)
        if call.mask is not None:
            there = present(call, 2).transpose(0, 1).unsqueeze(1)  # type: ignore[union-attr]
            x = x.masked_fill(~there, 0.0) if start is None else torch.where(there, x, start().unsqueeze(-1))
        count = past if call.state is None else held
        left = None if call.state is None else call.state.get(key)
        if left is None and start is not None:
            left = start().unsqueeze(-1).expand(x.shape[0], -1, count)
        x = functional.pad(x, (count, 0)) if left is None else torch.cat((left, x), -1)
        if call.state is not None:
            call.state[key] = x[..., x.shape[-1] - held :].contiguous()
            x = x[..., held - past :]
        matrix = kernel().flip(-1) if back else kernel()
        if taps is not None:
            return taps(x, matrix, more, back).permute([("b", "n", *results).index(a) for a in op.axes])
        shift = None if bias is None else bias()
        y = functional.conv1d(x, matrix if mixed else matrix.unsqueeze(1), shift, groups=groups)
        return y.unflatten(1, sizes).permute(order)

    return run


def _taps(site: Site, channels: Axes, column: str) -> Callable[..., Tensor]:
    """A kernel of each token's own, the stored one and its taps: a product of each channel's columns with it."""
    if len(site.op.weights) > 1:
        raise site.refuse("a bias beside taps is not run")
    beside = fit(site.op.activations[1].axes, ("b", "n", *channels, column))
    sizes = [site.size(a) for a in channels]

    def run(x: Tensor, kernel: Tensor, taps: Tensor, back: bool) -> Tensor:
        width = kernel.shape[-1]
        seen = x.unfold(-1, width, 1).transpose(1, 2)  # [b n channels columns]
        own = taps if beside is None else beside(taps)
        own = kernel.reshape(*sizes, width) + (own.flip(-1) if back else own)
        made = torch.bmm(own.expand(*seen.shape[:2], *sizes, width).reshape(-1, 1, width), seen.reshape(-1, width, 1))
        return made.reshape(*seen.shape[:2], *sizes)

    return run


def _before_first(site: Site, channels: Axes) -> Callable[[], Tensor] | None:
    """What stands before the first token: a weight of these channels; None where zeros do."""
    named = site.op.attr("before")
    if named is None:
        return None
    found = next((w for op in site.block.ops for w in op.weights if w.name == named), None)
    if found is None or set(found.axes) != set(channels):
        raise site.refuse(f"{named} is no weight of the block with the axes {' '.join(channels)}")
    return site.weight(found, channels)


def _count(site: Site, axes: Axes) -> int:
    found = 1
    for axis in axes:
        found *= site.size(axis)
    return found


def _joined(axes: Axes, channels: Axes) -> Callable[[Tensor], Tensor]:
    """As convolutions take it: batch, channels, tokens."""
    order = [axes.index(a) for a in ("b", *channels, "n")]
    if len(channels) == 1:
        return lambda x: x.permute(order)
    return lambda x: x.permute(order).flatten(1, -2)


@runs("shift")
def shift(site: Site) -> Run:
    """The token before; zeros before the first."""
    dim, key = site.op.axes.index("n"), site.key
    turned = fit(site.op.inputs[0].axes, site.op.axes)
    channels = tuple(a for a in site.op.axes if a not in ("b", "n"))
    sizes = [site.size(a) for a in channels]
    start = _before_first(site, channels)
    if site.op.axes != ("b", "n", *channels):
        raise site.refuse("batch and tokens come first")

    def run(call: Call, x: Tensor) -> Tensor:
        if turned is not None:
            x = turned(x)
        if call.mask is not None:
            there = present(call, x.dim()).transpose(0, 1)  # type: ignore[union-attr]
            x = x.masked_fill(~there, 0.0) if start is None else torch.where(there, x, start().reshape(sizes))
        count = x.shape[dim]
        left = None if call.state is None else call.state.get(key)
        if left is None:
            left = torch.zeros_like(x.narrow(dim, 0, 1))
            left = left if start is None else left + start().reshape(sizes)
        if call.state is not None:
            call.state[key] = x.narrow(dim, count - 1, 1).clone()
        return torch.cat((left, x.narrow(dim, 0, count - 1)), dim)

    return run
