"""Rotary positions: angles by position, made once a pass, and pairs turned by them (Su et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from assay.execution.sites import Call, Site

Turn = Callable[[Call, Tensor], Tensor]


def rotation(site: Site) -> Turn:
    """How the last axis of an operand is turned, its first `width` elements, each pair by its own frequency."""
    op = site.op
    axes = op.axes
    width = site.value("width") or site.size(axes[-1])
    theta = site.value("theta") or 10000.0
    scaling = dict(op.attr("scaling") or ())
    style = op.attr("style")
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        raise site.refuse(f"rotary scaling {kind} is not run yet")
    at = next(a for a in axes if a in ("n", "m", "c"))
    turned = _adjacent if style in ("interleaved", "adjacent") else _halves
    whole = width == site.size(axes[-1])
    behind = len(axes) - 2 - axes.index(at)  # axes between the tokens and the width

    def angles(call: Call, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        inverse = 1.0 / theta ** (torch.arange(0, width, 2, dtype=torch.float32, device=device) / width)
        where = torch.arange(call.past, call.past + call.tokens, dtype=torch.float32, device=device)
        angle = where[:, None] * inverse
        angle = angle.repeat_interleave(2, -1) if turned is _adjacent else torch.cat((angle, angle), -1)
        shape = [angle.shape[0], *([1] * behind), width]
        return angle.cos().to(dtype).reshape(shape), angle.sin().to(dtype).reshape(shape)

    key = ("rope", width, theta, kind, turned, behind)

    def run(call: Call, x: Tensor) -> Tensor:
        cos, sin = call.once((key, x.dtype), lambda: angles(call, x.device, x.dtype))
        if whole:
            return x * cos + turned(x) * sin
        part, rest = x[..., :width], x[..., width:]
        return torch.cat((part * cos + turned(part) * sin, rest), -1)

    return run


def _halves(x: Tensor) -> Tensor:
    """The first half beside minus the second, swapped."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def _adjacent(x: Tensor) -> Tensor:
    """Neighbours swapped, the second negative."""
    pairs = x.unflatten(-1, (-1, 2))
    return torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)
