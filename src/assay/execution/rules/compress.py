"""Entries that stand for whole windows of tokens (DeepSeek-AI 2026, DeepSeek-V4, section 2.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.execution.sites import Call, Run, Site, fit, runs
from assay.kinds.compress import slots_of


@runs("pool")
def pool(site: Site) -> Run:
    """One entry for each window that fills up: values summed under a softmax of their gates, element by element.

    Where windows overlap, an entry is made of the first half of the window before and of the second half of its own.
    What is left of an open window waits for later passes, and so does the half that the next entry needs.
    """
    op = site.op
    tokens, slots, halves = slots_of(op)
    values, gates = op.activations
    if values.axes != gates.axes or values.axes[:2] != ("b", tokens) or len(halves) > 1 or tokens != "n":
        raise site.refuse("values and gates span batch, tokens, perhaps halves, and an element")
    own = values.axes[2:]
    rate, width = site.size(slots), values.axes[-1]
    overlaps = bool(halves)
    if halves and (own[0] != halves[0] or site.size(halves[0]) != 2):
        raise site.refuse("windows overlap by halves, which stand before the elements")
    bias = site.weight(op.weights[0], (slots,), *((a,) for a in own))
    made = next(a for a in op.axes if a not in values.axes)
    turned = fit(("b", made, width), op.axes)
    key = site.key

    def run(call: Call, v: Tensor, g: Tensor) -> Tensor:
        refuse_padding(call, site)
        held = () if call.state is None else call.state.get(key, ())
        if held:
            v, g = torch.cat((held[0], v), 1), torch.cat((held[1], g), 1)
        full = v.shape[1] // rate * rate
        left, last = (v[:, full:].clone(), g[:, full:].clone()), held[2:]
        v, g = (x[:, :full].unflatten(1, (-1, rate)) for x in (v, g))
        g = g + bias()
        if overlaps:
            v, g, last = _overlapped(v, g, last)
        if call.state is not None:
            call.state[key] = (*left, *last)
        y = (v * torch.softmax(g.float(), 2).to(v.dtype)).sum(2)
        return y if turned is None else turned(y)

    return run


def _overlapped(v: Tensor, g: Tensor, last: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Windows `[b j R 2 v]` as `[b j 2R v]`: the first half of the one before, the second of this; and the first half
    of the last, for the next entry.
    """
    before = last or (torch.zeros_like(v[:, :1, :, 0]), torch.full_like(g[:, :1, :, 0], float("-inf")))
    if not v.shape[1]:
        return v[:, :, :, 1], g[:, :, :, 1], last
    first = [torch.cat((old, x[:, :-1, :, 0]), 1) for old, x in zip(before, (v, g), strict=True)]
    both = [torch.cat((old, x[:, :, :, 1]), 2) for old, x in zip(first, (v, g), strict=True)]
    return both[0], both[1], tuple(x[:, -1:, :, 0].clone() for x in (v, g))


def refuse_padding(call: Call, site: Site) -> None:
    """Raise BuildError for padding: windows are counted from the first position."""
    mask = call.mask
    if mask is not None and not call.once(("whole",), lambda: (bool(mask.all()),))[0]:
        raise site.refuse("windows are counted from the first position, which must be no padding")


@runs("collect")
def collect(site: Site) -> Run:
    """Entries of this pass behind those kept."""
    given, made = site.op.inputs[0].axes, site.op.axes
    (new,) = [a for a in made if a not in given]
    called = tuple(a if a in made else new for a in given)
    dim, turned, key = made.index(new), fit(called, made), site.key

    def run(call: Call, x: Tensor) -> Tensor:
        x = x if turned is None else turned(x)
        if call.state is None:
            return x
        held = call.state.get(key)
        call.state[key] = x = x if held is None else torch.cat((held, x), dim)
        return x

    return run
