"""Recurrences whose exponents stand less the largest so far: that largest one, and the scans that it keeps finite."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from assay.execution.recurrence import Frame, alone, kept, only, present, steps, write_and_read
from assay.execution.rules.scan import recurs
from assay.execution.sites import Call, Run, Site, runs
from assay.spec import Tensor as Operand


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
