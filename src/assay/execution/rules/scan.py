"""Recurrences over tokens: short convolutions, the token before, scans by their rule, and the largest so far."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

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
from assay.execution.sites import Call, Rule, Run, Site, fit, runs
from assay.spec import Axes
from assay.spec import Tensor as Operand

SCANS: dict[str, Rule] = {}


def recurs(rule: str) -> Callable[[Rule], Rule]:
    """How a scan of a rule runs."""

    def add(run: Rule) -> Rule:
        SCANS[rule] = run
        return run

    return add


@runs("scan")
def scan(site: Site) -> Run:
    """By its rule."""
    rule = SCANS.get(site.op.attr("rule"))
    if rule is None:
        raise site.refuse(f"no rule says how it runs; known: {', '.join(sorted(SCANS))}")
    return rule(site)


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


@runs("peak")
def peak(site: Site) -> Run:
    """The largest exponent so far, each step less a decay: m = max(m + log f, i) of gates i and f, or of keys with a
    decay that is stored, m = max(m - exp(Decay), k).
    """
    frame = Frame(site, 0)
    first = frame.given(site.op.activations[0])
    second = frame.given(site.op.activations[1]) if len(site.op.activations) > 1 else None
    stored = frame.stored(site.op.weights[0]) if site.op.weights else None
    start = site.value("start")
    if start is None:
        raise site.refuse("what it starts from is not known")
    key = site.key

    def run(call: Call, x: Tensor, f: Tensor | None = None) -> Tensor:
        batch, values = x.shape[0], first(x)
        logs = -torch.exp(stored()) if stored is not None else functional.logsigmoid(second(f))  # type: ignore[misc]
        logs = kept(call, logs.expand(values.shape))
        there = present(call, values.dim())
        if there is not None:
            values = values.masked_fill(~there, float("-inf"))
        m = frame.begin(call, batch, x, start)
        call.memo["before", key] = m
        found = []
        for i in range(values.shape[0]):
            m = torch.maximum(m + logs[i], values[i])
            found.append(m)
        frame.leave(call, m, batch)
        # float32 whatever the dtype of the operands: exponents are taken less of it
        order = [("n", "b", *frame.lead).index(a) for a in site.op.axes]
        return torch.stack(found).permute(order)

    return run


def _before(site: Site, operand: Operand) -> Callable[[Call], Tensor]:
    """What a peak was before the first token of this pass."""
    made = next((i for i in range(site.index - 1, -1, -1) if site.block.ops[i].name == operand.name), None)
    if made is None or site.block.ops[made].kind != "peak":
        raise site.refuse(f"{operand} is the largest exponent so far, which peak makes")
    key = ("before", Site(site.model, site.root, site.stored, made, site.layer, site.turn).key)
    return lambda call: call.memo[key]


@recurs("mlstm")
def mlstm(site: Site) -> Run:
    """Keys times values under gates, exponents less the largest so far, m (Beck et al. 2024, equations 19 to 27).

    Without values it is their normalizer: the sum of keys, as queries read it, at least exp(-m), plus `eps`.
    """
    given = site.op.activations
    valued = len(given) == 6
    frame = Frame(site, 2 if valued else 1)
    row = frame.own[0]
    frames = [
        frame.given(t, *((row,) if row in t.axes else frame.own[1:] if i == 2 and valued else ()))
        for i, t in enumerate(given)
    ]
    scale, eps, before = site.value("scale"), site.value("eps"), _before(site, given[-1])
    if scale is None or (eps is None and not valued):
        raise site.refuse("its constants are not known: scale, and eps of a normalizer")

    def run(call: Call, *tensors: Tensor) -> Tensor:
        batch, like = tensors[0].shape[0], tensors[0]
        q, k, *rest = [frame(x) for frame, x in zip(frames, tensors, strict=True)]
        i, f, m = rest[-3:]
        earlier = torch.cat((before(call).unsqueeze(0), m[:-1]))
        decays = frame.flat(torch.exp(kept(call, functional.logsigmoid(f)) + earlier - m))
        gates = frame.flat(only(call, torch.exp(i - m)))
        q, k = frame.flat(q * scale), frame.flat(k)
        # a normalizer is the same with a single value, one
        values = frame.flat(rest[0]) * gates.unsqueeze(-1) if valued else gates.unsqueeze(-1)
        state = frame.begin(call, batch, like)
        state = (state if valued else state.unsqueeze(-1)).flatten(0, -3)
        made, state = write_and_read(state, steps(decays[..., None, None]), k, values, q, True)
        frame.leave(call, state, batch)
        if valued:
            return frame.result(made, like, frame.own[1])
        least = frame.flat(torch.exp(-m))
        return frame.result(torch.maximum(made.squeeze(-1).abs(), least) + eps, like)

    return run


@recurs("wkv")
def wkv(site: Site) -> Run:
    """Values weighed by exp(k) under a decay, the present one by exp(k + First) (Peng et al. 2023, equation 16); or,
    without values, the sum of these weights. Exponents are less m, the largest so far.
    """
    given = site.op.activations
    valued = len(given) == 3
    frame = Frame(site, 0)
    keys, peaks = frame.given(given[0]), frame.given(given[-1])
    values = frame.given(given[1]) if valued else None
    decay, first = (frame.stored(weight) for weight in site.op.weights)
    before = _before(site, given[-1])

    def run(call: Call, *tensors: Tensor) -> Tensor:
        batch, like = tensors[0].shape[0], tensors[0]
        k, m, v = keys(tensors[0]), peaks(tensors[-1]), None if values is None else values(tensors[1])
        earlier = torch.cat((before(call).unsqueeze(0), m[:-1]))
        bonus = k + first()
        most = torch.maximum(earlier, bonus)
        old, new = torch.exp(earlier - most), torch.exp(bonus - most)
        fade = torch.exp(kept(call, (-torch.exp(decay())).expand(k.shape)) + earlier - m)
        added = only(call, torch.exp(k - m))
        if v is not None:
            new, added = new * v, added * v
        state = frame.begin(call, batch, like)
        found = []
        for i in range(k.shape[0]):
            found.append(alone(old[i], state, new[i]))
            state = alone(fade[i], state, added[i])
        frame.leave(call, state, batch)
        return frame.result(torch.stack(found).flatten(1), like)

    return run
