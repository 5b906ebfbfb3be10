"""Recurrences over tokens: scans by their rule, each state decayed, written and read in turn."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from assay.errors import BuildError
from assay.execution.recurrence import (
    Frame,
    alone,
    correct_and_read,
    kept,
    only,
    present,
    steps,
    write_and_read,
)
from assay.execution.sites import Call, Rule, Run, Site, runs
from assay.registry import entered

SCANS: dict[str, Rule] = {}


def recurs(rule: str) -> Callable[[Rule], Rule]:
    """How a scan of a rule runs. Raises BuildError where it runs otherwise already."""
    return entered(SCANS, (rule,), lambda name: BuildError(f"the scan {name!r} runs in two ways"))


@runs("scan")
def scan(site: Site) -> Run:
    """By its rule."""
    rule = SCANS.get(site.op.attr("rule"))
    if rule is None:
        raise site.refuse(f"no rule says how it runs; known: {', '.join(sorted(SCANS))}")
    return rule(site)


@recurs("mamba2")
def mamba2(site: Site) -> Run:
    """A decay a head, exp(-exp(A) t), and t u written at w, read at r (Dao & Gu 2024, section 6)."""
    frame = Frame(site, 2)
    row, column = frame.own
    u, t, w, r = site.op.activations
    ins, steps_, writes, reads = (
        frame.given(u, row),
        frame.given(t),
        frame.given(w, column),
        frame.given(r, column),
    )
    rate = frame.stored(site.op.weights[0])
    least, most = site.value("least"), site.value("most")

    def run(call: Call, u: Tensor, t: Tensor, w: Tensor, r: Tensor) -> Tensor:
        batch, like = u.shape[0], u
        time = steps_(t)
        if least is not None or most is not None:
            time = time.clamp(least, most)
        decays = frame.flat(torch.exp(kept(call, -torch.exp(rate()) * time)))
        rows = frame.flat(only(call, ins(u) * time.unsqueeze(-1)))
        state = frame.begin(call, batch, like).flatten(0, -3)
        made, state = write_and_read(
            state, steps(decays[..., None, None]), rows, frame.flat(writes(w)), frame.flat(reads(r)), False
        )
        frame.leave(call, state, batch)
        return frame.result(made, like, row)

    return run


@recurs("mamba")
def mamba(site: Site) -> Run:
    """A decay a channel and state element, exp(-exp(A) t), and t u written at w, read at r (Gu & Dao 2023)."""
    frame = Frame(site, 2)
    row, column = frame.own
    u, t, w, r = site.op.activations
    ins, times, writes, reads = frame.given(u, row), frame.given(t, row), frame.given(w, column), frame.given(r, column)
    rate = frame.stored(site.op.weights[0], row, column)

    def run(call: Call, u: Tensor, t: Tensor, w: Tensor, r: Tensor) -> Tensor:
        batch, like = u.shape[0], u
        time = times(t)
        rows = frame.flat(only(call, ins(u) * time))
        spans = frame.flat(kept(call, time)).unsqueeze(-1)
        a = -torch.exp(rate())
        a = a.expand(1, batch, *frame.sizes).flatten(1, -3)[0] if frame.lead else a
        state = frame.begin(call, batch, like).flatten(0, -3)
        made, state = write_and_read(
            state, lambda i: torch.exp(spans[i] * a), rows, frame.flat(writes(w)), frame.flat(reads(r)), False
        )
        frame.leave(call, state, batch)
        return frame.result(made, like, row)

    return run


@recurs("delta")
def delta(site: Site) -> Run:
    """The delta rule with decays of a head or of each element of its keys, w its rate (Yang et al. 2024; Kimi 2025).

    Queries and keys are brought to length one, queries times `scale`. The logarithm of a decay is -exp(A) t, or with a
    `floor` that times sigmoid(exp(A) t).
    """
    frame = Frame(site, 2)
    row, column = frame.own
    q, k, v, w, t = site.op.activations
    inner = (row,) if row in t.axes else ()
    queries, keys, values = frame.given(q, row), frame.given(k, row), frame.given(v, column)
    rates, times = frame.given(w), frame.given(t, *inner)
    rate = frame.stored(site.op.weights[0], *inner)
    unit, scale, floor = site.value("unit"), site.value("scale"), site.value("floor")
    if scale is None:
        raise site.refuse("what queries are scaled by is not known")

    def run(call: Call, q: Tensor, k: Tensor, v: Tensor, w: Tensor, t: Tensor) -> Tensor:
        batch, like = q.shape[0], q
        q, k, time = queries(q), keys(k), torch.exp(rate()) * times(t)
        logs = kept(call, -time if floor is None else floor * torch.sigmoid(time))
        decays = frame.flat(torch.exp(logs))
        if unit is not None:
            q, k = _unit(q, unit), _unit(k, unit)
        state = frame.begin(call, batch, like).flatten(0, -3)
        made, state = correct_and_read(
            state,
            steps(decays.unsqueeze(-1) if inner else decays[..., None, None]),
            frame.flat(k),
            frame.flat(values(v)),
            frame.flat(only(call, rates(w))),
            frame.flat(q * scale),
        )
        frame.leave(call, state, batch)
        return frame.result(made, like, column)

    return run


def _unit(x: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + eps)


@recurs("linear")
def linear(site: Site) -> Run:
    """Keys times values summed under the decay of a head, exp(-slope), read by queries (Qin et al. 2024)."""
    frame = Frame(site, 2)
    row, column = frame.own
    q, k, v = site.op.activations
    queries, keys, values = frame.given(q, row), frame.given(k, row), frame.given(v, column)
    slope = frame.stored(site.op.weights[0])

    def run(call: Call, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        batch, like = q.shape[0], q
        rows = frame.flat(only(call, keys(k)))
        logs = kept(call, -slope().expand(1 if call.mask is None else rows.shape[0], batch, *frame.heads))
        decays = frame.flat(torch.exp(logs))[..., None, None]
        state = frame.begin(call, batch, like).flatten(0, -3)
        made, state = write_and_read(
            state,
            (lambda i: decays[0]) if call.mask is None else steps(decays),
            rows,
            frame.flat(values(v)),
            frame.flat(queries(q)),
            True,
        )
        frame.leave(call, state, batch)
        return frame.result(made, like, column)

    return run


@recurs("lru")
def lru(site: Site) -> Run:
    """h = a h + sqrt(1 - a^2) u, a = exp(-power r softplus(A)); the first token of all is taken whole (De et al. 2024,
    section 2.4).
    """
    frame = Frame(site, 0)
    u, r = site.op.activations
    ins, gates = frame.given(u), frame.given(r)
    rate = frame.stored(site.op.weights[0])
    power = site.value("power")
    if power is None:
        raise site.refuse("the power of its decay is not known")

    def run(call: Call, u: Tensor, r: Tensor) -> Tensor:
        batch, like = u.shape[0], u
        logs = -power * gates(r) * functional.softplus(rate())
        scale = torch.sqrt(-torch.expm1(2 * logs))
        first = _first(call, scale)
        if first is not None:
            scale = scale.masked_fill(first, 1.0)
        decays, rows = torch.exp(kept(call, logs)), only(call, ins(u) * scale)
        state = frame.begin(call, batch, like)
        found = []
        for i in range(rows.shape[0]):
            state = alone(decays[i], state, rows[i])
            found.append(state)
        frame.leave(call, state, batch)
        return frame.result(torch.stack(found).flatten(1), like)

    return run


def _first(call: Call, like: Tensor) -> Tensor | None:
    """True where a token is the first of all, `[n b 1…]`; None where none of this pass is."""
    if call.mask is not None:
        counted = call.mask.to(torch.int64).cumsum(1)[:, call.past :].transpose(0, 1) == 1
        there = present(call, 2)
        return (counted & there).reshape(*counted.shape, *[1] * (like.dim() - 2))
    if call.past:
        return None
    at = torch.arange(like.shape[0], device=like.device) == 0
    return at.reshape(-1, *[1] * (like.dim() - 1))
