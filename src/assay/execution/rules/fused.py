"""Several ops as one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional

from assay.execution.masks import seen
from assay.execution.sites import Call, Run, Site, fit, runs
from assay.kinds.fused import whole
from assay.spec import Axes


@runs("attend")
def attend(site: Site) -> Run:
    """softmax(q k) v in one kernel, of grouped heads without their copies where it can."""
    op = site.op
    scores, *rest = whole(op)
    q, k, v = (operand.axes for operand in op.inputs)
    *lead, n, c = scores.axes
    (summed,) = [axis for axis in q if axis not in scores.axes]
    (width,) = [axis for axis in v if axis not in scores.axes]
    heads = lead[1:]
    shared = [axis for axis in heads if axis in k]
    if not {axis for axis in heads if axis in v} <= set(shared) or heads[: len(shared)] != shared:
        raise site.refuse("values are of other heads than keys")
    group = math.prod(site.size(axis) for axis in heads[len(shared) :])
    q_in = _laid(q, ("b", *heads, n, summed), len(heads))
    k_in = _laid(k, ("b", *shared, c, summed), len(shared))
    v_in = _spread(v, ("b", *shared, c, width), [site.size(axis) for axis in shared])
    by = next((_by(part, site, q) for part in rest if part.kind == "scale"), 1.0)
    masked = any(part.kind == "mask" for part in rest)
    visible = seen(site, scores.axes) if masked else None
    queries, keys = q.index(n), k.index(c)
    sizes = [site.size(axis) for axis in heads]
    back = fit(("b", n, *heads, width), op.axes)

    def run(call: Call, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        causal, mask = (False, None) if visible is None else visible(call, q.shape[queries], k.shape[keys], q)
        q, k, v = q_in(q), k_in(k), v_in(v)
        if q.shape[2] == 0 or k.shape[2] == 0:
            return q.new_zeros((q.shape[0], q.shape[2], *sizes, v.shape[-1]))
        y = functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=causal, scale=by, enable_gqa=group > 1
        ).transpose(1, 2)
        if len(sizes) != 1:
            y = y.unflatten(2, sizes) if sizes else y.squeeze(2)
        return y if back is None else back(y)

    return run


def _by(scale: Any, site: Site, q: Axes) -> float:
    by = scale.attr("by")
    if by is None:
        (summed,) = [axis for axis in q if axis not in scale.axes]
        return float(site.size(summed) ** -0.5)
    return float(by)


def _spread(axes: Axes, to: Axes, sizes: list[int]) -> Callable[[Tensor], Tensor]:
    """The same, where it may lack axes of the heads: it is the same for all of them."""
    if set(to) == set(axes):
        return _laid(axes, to, len(sizes))
    turned = fit(axes, to)

    def change(x: Tensor) -> Tensor:
        x = x if turned is None else turned(x)
        return x.expand(-1, *sizes, -1, -1).flatten(1, len(sizes))

    return change


def _laid(axes: Axes, to: Axes, heads: int) -> Callable[[Tensor], Tensor]:
    """How an operand becomes [b heads tokens width]."""
    order = [axes.index(axis) for axis in to]
    ordered = order == sorted(order)

    def change(x: Tensor) -> Tensor:
        if not ordered:
            x = x.permute(order)
        if heads == 1:
            return x
        return x.unsqueeze(1) if heads == 0 else x.flatten(1, heads)

    return change
