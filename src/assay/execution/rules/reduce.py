"""Over an axis: softmax, norms, sums, top-k."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from assay.execution.sites import Call, Run, Site, fit, fitted, runs
from assay.kinds.reduce import over
from assay.spec import Axes


@runs("softmax")
def softmax(site: Site) -> Run:
    """exp(x) over its sum; a learned sink is one more term of the sum."""
    op = site.op
    dim = op.axes.index(op.attr("over", op.axes[-1]))
    turned = fit(op.activations[0].axes, op.axes)
    if not op.weights:
        return lambda call, x: torch.softmax(x if turned is None else turned(x), dim)
    sink = op.weights[0]
    get = fitted(site.weight(sink), sink.axes, tuple(a for a in op.axes if a != op.axes[dim]))

    def run(call: Call, x: Tensor) -> Tensor:
        x = x if turned is None else turned(x)
        sinks = get()
        while sinks.dim() < x.dim() - 1:
            sinks = sinks.unsqueeze(0)
        sinks = sinks.unsqueeze(dim).expand(*(1 if i == dim else s for i, s in enumerate(x.shape)))
        both = torch.softmax(torch.cat((x, sinks), dim), dim)
        return both.narrow(dim, 0, x.shape[dim])

    return run


def _normed(site: Site) -> tuple[list[int], Callable[[Tensor], Tensor] | None, Axes]:
    """The sizes normed over, how they come last, and in which order the axes then stand."""
    axes = site.op.axes
    last = tuple(a for a in axes if a in over(site.op))
    order = tuple(a for a in axes if a not in last) + last
    return [site.size(a) for a in last], fit(site.op.activations[0].axes, order), order


def _norm(site: Site, function: Callable[..., Tensor], default: float) -> Run:
    op = site.op
    sizes, turn, order = _normed(site)
    back = fit(order, op.axes) if order != op.axes else None
    eps = site.value("eps")
    eps = default if eps is None else eps
    offset = bool(op.attr("unit_offset"))
    plain = all(w.axes == order[len(order) - len(sizes) :] for w in op.weights)
    groups = [tuple(order[len(order) - len(sizes) :])] if plain else []
    if plain:
        gets = [site.weight(w, *((a,) for a in w.axes)) for w in op.weights]
    else:
        gets = [fitted(site.weight(w), w.axes, order) for w in op.weights]
    del groups

    def run(call: Call, x: Tensor) -> Tensor:
        if turn is not None:
            x = turn(x)
        weights = [get() for get in gets]
        if offset and weights:
            weights[0] = weights[0] + 1.0
        if plain:
            y = function(x, sizes, *weights, eps=eps)
        else:
            y = function(x, sizes, eps=eps)
            if weights:
                y = y * weights[0]
            if len(weights) > 1:
                y = y + weights[1]
        return y if back is None else back(y)

    return run


def _rms(x: Tensor, sizes: list[int], gain: Tensor | None = None, *, eps: float) -> Tensor:
    return functional.rms_norm(x, sizes, gain, eps)


def _layer(
    x: Tensor, sizes: list[int], gain: Tensor | None = None, bias: Tensor | None = None, *, eps: float
) -> Tensor:
    return functional.layer_norm(x, sizes, gain, bias, eps)


@runs("rmsnorm")
def rmsnorm(site: Site) -> Run:
    """x over its root mean square, times a gain."""
    return _norm(site, _rms, 1e-6)


@runs("layernorm")
def layernorm(site: Site) -> Run:
    """x less its mean over its deviation, times a gain, plus a bias."""
    return _norm(site, _layer, 1e-5)


def _dropped(site: Site) -> tuple[list[int], Callable[[Tensor], Tensor] | None]:
    given = site.op.inputs[0].axes
    kept = tuple(a for a in given if a in site.op.axes)
    return [i for i, a in enumerate(given) if a not in site.op.axes], fit(kept, site.op.axes)


@runs("sum")
def sum_(site: Site) -> Run:
    """Over the axes that the result lacks."""
    dims, after = _dropped(site)
    return lambda call, x: x.sum(dims) if after is None else after(x.sum(dims))


@runs("mean")
def mean(site: Site) -> Run:
    """Over the axes that the result lacks."""
    dims, after = _dropped(site)
    return lambda call, x: x.mean(dims) if after is None else after(x.mean(dims))


@runs("rms")
def rms(site: Site) -> Run:
    """The root of the mean of squares, of which no mean is below `least`."""
    given = site.op.inputs[0]
    dims, after = _dropped(site)
    get = None if site.op.activations else site.weight(given)
    least = site.value("least")

    def run(call: Call, *x: Tensor) -> Tensor:
        squares = (x[0] if get is None else get()).square().mean(dims)
        y = (squares if least is None else squares.clamp(min=least)).sqrt()
        return y if after is None else after(y)

    return run


@runs("near_softmax")
def near_softmax(site: Site) -> Run:
    """Of each choice its share among the scores near it, those of earlier choices left out: of a score s and the best
    one m, (m - s) / max(|s|, m) is no more than twice the jitter (Liu et al. 2023, as it is evaluated).
    """
    scores, index = site.op.activations
    if scores.axes[:-1] != index.axes[:-1] or site.op.axes != index.axes:
        raise site.refuse("scores and choices are along the last axis")
    limit = 2 * site.value("jitter", 0.0)

    def run(call: Call, s: Tensor, i: Tensor) -> Tensor:
        left, shares = s, []
        for at in i.unbind(-1):
            here = at.unsqueeze(-1)
            with torch.no_grad():
                best = s.gather(-1, here)
                far = (best - s) / torch.maximum(s.abs(), best) > limit
            shares.append(left.masked_fill(far, -torch.inf).softmax(-1).gather(-1, here))
            left = left.scatter(-1, here, -torch.inf)
        return torch.cat(shares, -1)

    return run


@runs("normalize")
def normalize(site: Site) -> Run:
    """x over its sum."""
    dim = site.op.axes.index(site.op.attr("over", site.op.axes[-1]))
    return lambda call, x: x / (x.sum(dim, keepdim=True) + 1e-20)


@runs("shorten")
def shorten(site: Site) -> Run:
    """No longer than a limit: rows whose length is beyond it are scaled down to it."""
    limit, eps = site.value("limit"), site.value("eps", 0.0)
    dims = [site.op.axes.index(a) for a in over(site.op)]
    turned = fit(site.op.inputs[0].axes, site.op.axes)

    def run(call: Call, x: Tensor) -> Tensor:
        x = x if turned is None else turned(x)
        length = torch.linalg.vector_norm(x, dim=dims, keepdim=True)
        return x * (limit / (length + eps)).clamp(max=1.0)

    return run


@runs("sinkhorn")
def sinkhorn(site: Site) -> Run:
    """Rows and columns of a matrix to sums of one, in turn; `eps` is added to what is given and to every sum."""
    times, eps = site.value("times", 1), site.value("eps", 0.0)
    turned = fit(site.op.inputs[0].axes, site.op.axes)

    def run(call: Call, x: Tensor) -> Tensor:
        x = (x if turned is None else turned(x)) + eps
        x = x / (x.sum(-2, keepdim=True) + eps)
        for _ in range(times - 1):
            x = x / (x.sum(-1, keepdim=True) + eps)
            x = x / (x.sum(-2, keepdim=True) + eps)
        return x

    return run


@runs("topk")
def topk(site: Site) -> Run:
    """Indices of the largest along the axes that are traded; of the best groups alone where there are groups."""
    op = site.op
    given = op.inputs[0].axes
    lost = tuple(a for a in given if a not in op.axes)
    (made,) = [a for a in op.axes if a not in given]
    lead = tuple(a for a in given if a not in lost)
    if given != (*lead, *lost) or op.axes != (*lead, made):
        raise site.refuse("topk chooses along the last axis")
    groups, kept, judged = site.value("groups"), site.value("keep_groups"), site.value("judged", 2)
    count = site.size(made)
    joined = len(lost)

    def run(call: Call, x: Tensor) -> Tensor:
        x = x if joined == 1 else x.flatten(-joined)
        if not x.shape[-1]:  # nothing to choose from: what makes scores of them knows
            return torch.zeros((*x.shape[:-1], count), dtype=torch.int64, device=x.device)
        if groups and kept and kept < groups:
            x = _best_groups(x, groups, kept, judged)
        indices = torch.topk(x, min(count, x.shape[-1]), dim=-1, sorted=False).indices
        if indices.shape[-1] < count:  # fewer than are to be chosen: one of them again
            indices = torch.cat((indices, indices[..., :1].expand(*indices.shape[:-1], count - indices.shape[-1])), -1)
        return indices

    return run


def _best_groups(x: Tensor, groups: int, kept: int, judged: int) -> Tensor:
    """Scores of the groups whose best `judged` experts sum highest; those of others zero (DeepSeek-AI 2024)."""
    each = x.unflatten(-1, (groups, -1))
    best = each.topk(min(judged, each.shape[-1]), dim=-1).values.sum(-1)
    chosen = best.topk(kept, dim=-1, sorted=False).indices
    open_ = torch.zeros_like(best, dtype=torch.bool).scatter(-1, chosen, True)
    return each.masked_fill(~open_.unsqueeze(-1), 0.0).flatten(-2)


@runs("differential")
def differential(site: Site) -> Run:
    """1 and -l for the two sides, l of the layer's vectors and of its depth (Ye et al. 2024, 2.1)."""
    gets = [site.weight(weight) for weight in site.op.weights]
    first = initial_share(site)

    def run(call: Call) -> Tensor:
        q1, k1, q2, k2 = (get() for get in gets)
        share = (q1 * k1).sum(dtype=torch.float32).exp() - (q2 * k2).sum(dtype=torch.float32).exp() + first
        return torch.stack((torch.ones_like(share), -share)).to(q1.dtype)

    return run


def initial_share(site: Site) -> float:
    """0.8 - 0.6 exp(-0.3 layer), the first layer being 0."""
    if site.layer is None:
        raise site.refuse("it stands in no layer")
    return 0.8 - 0.6 * math.exp(-0.3 * site.layer)
