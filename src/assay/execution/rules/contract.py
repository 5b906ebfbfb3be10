"""Sums of products, and the look-ups and weighted sums around them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from assay.errors import BuildError
from assay.execution.ranks import ranks_here
from assay.execution.sites import Call, Run, Site, fit, fitted, runs
from assay.execution.storage import Getter
from assay.spec import Axes
from assay.spec import Tensor as Operand


@runs("linear")
def linear(site: Site) -> Run:
    """x W, plus a bias: a matrix of outputs by inputs where no axis is in x, weight and result alike."""
    op = site.op
    x, weight = op.activations[0], op.weights[0]
    kept = tuple(a for a in weight.axes if a in x.axes and a in op.axes)
    if kept:
        return _per_matrix(site, x, weight)
    summed = tuple(a for a in x.axes if a in weight.axes)
    made = tuple(a for a in op.axes if a in weight.axes)
    lead = tuple(a for a in x.axes if a not in summed)
    matrix = site.weight(weight, made, summed)
    bias, later = None, None
    if len(op.weights) > 1:
        given = op.weights[1]
        if set(given.axes) == set(made):
            bias = site.weight(given, made)
        else:
            later = fitted(site.weight(given), given.axes, (*lead, *made))
    before = _flat(x.axes, lead, summed)
    sizes = [site.size(a) for a in made]
    after = fit((*lead, *made), op.axes)

    def run(call: Call, x: Tensor) -> Tensor:
        y = functional.linear(x if before is None else before(x), matrix(), None if bias is None else bias())
        if len(sizes) != 1:
            y = y.unflatten(-1, sizes) if sizes else y.squeeze(-1)
        if later is not None:
            y = y + later()
        return y if after is None else after(y)

    return run


def _flat(axes: Axes, lead: Axes, last: Axes) -> Callable[[Tensor], Tensor] | None:
    """How the axes `last` become one behind the others."""
    order = [axes.index(a) for a in (*lead, *last)]
    turned, joined = order != sorted(order), len(last)
    if not turned and joined == 1:
        return None
    if not joined:
        return lambda tensor: tensor.unsqueeze(-1)
    if not turned:
        return lambda tensor: tensor.flatten(-joined)
    return lambda tensor: tensor.permute(order).flatten(-joined)


def _per_matrix(site: Site, x: Operand, weight: Operand) -> Run:
    """One matrix for each index of the axes that all three have: of each head, say."""
    op = site.op
    product = products(x.axes, weight.axes, op.axes)
    get = site.weight(weight)
    bias = fitted(site.weight(op.weights[1]), op.weights[1].axes, op.axes) if len(op.weights) > 1 else None

    def run(call: Call, x: Tensor) -> Tensor:
        y = product(x, get())
        return y if bias is None else y + bias()

    return run


@runs("contract")
def contract(site: Site) -> Run:
    """Products of two tensors summed over the axes that the result lacks."""
    op = site.op
    product = products(op.inputs[0].axes, op.inputs[1].axes, op.axes)
    if not op.weights:
        return lambda call, a, b: product(a, b)
    gets = [site.weight(t) if t.is_weight else None for t in op.inputs]

    def run(call: Call, *tensors: Tensor) -> Tensor:
        left = iter(tensors)
        a, b = (next(left) if get is None else get() for get in gets)
        return product(a, b)

    return run


def products(a: Axes, b: Axes, out: Axes) -> Callable[[Tensor, Tensor], Tensor]:
    """A batched matrix product over named axes: those of both and the result are its batch, those of the operands
    alone are summed first where the result lacks them.
    """
    batch = tuple(x for x in out if x in a and x in b)
    left = _lying(a, tuple(x for x in out if x in a and x not in b))
    right = _lying(b, tuple(x for x in out if x in b and x not in a))
    summed = tuple(x for x in a if x in b and x not in out)
    order_a = [a.index(x) for x in (*batch, *left, *summed)] if set(a) == {*batch, *left, *summed} else None
    order_b = [b.index(x) for x in (*batch, *summed, *right)] if set(b) == {*batch, *summed, *right} else None
    if order_a is None or order_b is None:
        return _einsum(a, b, out)
    made = (*batch, *left, *right)
    order = [made.index(x) for x in out]
    nb, nl, nr, ns = len(batch), len(left), len(right), len(summed)

    def run(x: Tensor, y: Tensor) -> Tensor:
        x, y = x.permute(order_a), y.permute(order_b)
        lead, rows, columns = x.shape[:nb], x.shape[nb : nb + nl], y.shape[nb + ns :]
        if nl != 1 or ns != 1:
            x = x.reshape(*lead, _many(rows), _many(x.shape[nb + nl :]))
        if nr != 1 or ns != 1:
            y = y.reshape(*lead, _many(y.shape[nb : nb + ns]), _many(columns))
        z = torch.matmul(x, y)
        if nl != 1 or nr != 1:
            z = z.reshape(*lead, *rows, *columns)
        return z.permute(order)

    return run


def _lying(axes: Axes, wanted: Axes) -> Axes:
    """Some of a tensor's axes in the order in which they stand side by side there: joined so, nothing is copied."""
    own = tuple(x for x in axes if x in wanted)
    start = axes.index(own[0]) if own else 0
    return own if axes[start : start + len(own)] == own else wanted


def _many(sizes: Any) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _einsum(a: Axes, b: Axes, out: Axes) -> Callable[[Tensor, Tensor], Tensor]:
    letters = {axis: chr(97 + i) for i, axis in enumerate(dict.fromkeys((*a, *b)))}
    spelled = ["".join(letters[axis] for axis in axes) for axes in (a, b, out)]
    equation = f"{spelled[0]},{spelled[1]}->{spelled[2]}"
    return lambda x, y: torch.einsum(equation, x, y)


@runs("gather")
def gather(site: Site) -> Run:
    """Rows of a table."""
    op = site.op
    index, table = op.activations[0], op.weights[0]
    rows = site.weight(table)
    after = fit((*index.axes, *table.axes[1:]), op.axes)
    offset = site.value("offset", 0)
    if op.attr("far") is not None:
        return _bucketed(site, rows, after)
    if op.attr("ranks") is not None:
        return _of_a_part(site, rows, after)
    if index.name == "at" and index.axes == ("n", "c"):
        raise site.refuse("which relative position a query and a key have is not described")
    if len(table.axes) == 2:
        index_made = bool(op.attr("index"))

        def run(call: Call, ids: Tensor) -> Tensor:
            try:
                y = functional.embedding(ids + offset if offset else ids, rows())
            except IndexError:
                raise _beyond(site, ids + offset, rows()) from None
            y = y.long() if index_made else y
            return y if after is None else after(y)

        return run

    def several(call: Call, ids: Tensor) -> Tensor:
        stored = rows()
        try:
            y = functional.embedding(ids + offset if offset else ids, stored.flatten(1)).unflatten(-1, stored.shape[1:])
        except IndexError:
            raise _beyond(site, ids + offset, stored) from None
        return y if after is None else after(y)

    return several


def _of_a_part(site: Site, rows: Getter, after: Callable[[Tensor], Tensor] | None) -> Run:
    """Of a table that ranks divide: zero for the rows that others hold, which come before or behind one's own."""
    ranks = ranks_here(site.op.attr("ranks"))
    count = site.size(site.op.weights[0].axes[0])
    held: list[int] = []  # by each rank, asked in the first pass

    def run(call: Call, ids: Tensor) -> Tensor:
        if not held:
            held.extend(int(size) for size in ranks.all(torch.tensor([count])))
        here = ids - sum(held[: ranks.rank])
        mine = (here >= 0) & (here < count)
        y = functional.embedding(here.clamp(0, count - 1), rows()) * mine[..., None]
        return y if after is None else after(y)

    return run


def _beyond(site: Site, ids: Tensor, table: Tensor) -> BuildError:
    """An index that no row has."""
    return site.refuse(f"rows {int(ids.min())} to {int(ids.max())} are asked for; there are {len(table)}, from 0 on")


def _bucketed(site: Site, rows: Getter, after: Callable[[Tensor], Tensor] | None) -> Run:
    """Rows by the bucket of a distance: each its own up to half of them, then wider and wider ones up to `far`;
    keys behind the query have the other half where they are seen, `both` (Raffel et al. 2019, 2.1).
    """
    far, both = site.value("far"), bool(site.op.attr("both"))
    table = site.op.weights[0]
    count = site.size(table.axes[0])

    def buckets(at: Tensor) -> Tensor:
        half = count // 2 if both else count
        back = torch.where(at > 0, half, 0) if both else torch.zeros_like(at)
        distance = at.abs() if both else (-at).clamp(min=0)
        near = half // 2
        wide = torch.log(distance.clamp(min=1).float() / near) / math.log(far / near) * (half - near)
        return back + torch.where(distance < near, distance, (near + wide.long()).clamp(max=half - 1))

    def run(call: Call, at: Tensor) -> Tensor:
        found = call.once(("buckets", count, far, both), lambda: buckets(at))
        stored = rows()
        y = functional.embedding(found, stored.flatten(1)).unflatten(-1, stored.shape[1:])
        return y if after is None else after(y)

    return run


@runs("combine")
def combine(site: Site) -> Run:
    """Values times weights, summed over the axes that the result lacks."""
    op = site.op
    values, weights = op.inputs
    beside = fit(weights.axes, values.axes)
    summed = [i for i, a in enumerate(values.axes) if a not in op.axes]
    after = fit(tuple(a for a in values.axes if a in op.axes), op.axes)
    eps = site.value("eps")

    def run(call: Call, x: Tensor, w: Tensor) -> Tensor:
        w = w if eps is None else w + eps
        y = (x * (w if beside is None else beside(w))).sum(summed)
        return y if after is None else after(y)

    return run


@runs("select")
def select(site: Site) -> Run:
    """Each token through the matrices of the experts that its index names: tokens sorted by expert, one product an
    expert.
    """
    op = site.op
    x, index = op.activations
    weight = op.weights[0]
    (experts,) = [a for a in weight.axes if a not in op.axes and a not in x.axes]
    summed = tuple(a for a in x.axes if a in weight.axes)
    made = tuple(a for a in op.axes if a in weight.axes)
    matrices = site.weight(weight, (experts,), made, summed)
    bias = site.weight(op.weights[1], (experts,), made) if len(op.weights) > 1 else None
    lead = tuple(a for a in op.axes if a not in made)
    before = _flat(x.axes, tuple(a for a in x.axes if a not in summed), summed)
    rows_of = tuple(a for a in x.axes if a not in summed)
    spread = fit(rows_of, index.axes)  # tokens beside their choices
    sizes = [site.size(a) for a in made]
    after = fit((*index.axes, *made), op.axes)
    count, none = site.size(experts), bool(op.attr("none"))
    widened = None
    if set(lead) != set(index.axes):  # one choice for all tokens of a text
        if not set(index.axes) < set(lead) or not set(lead) <= {*index.axes, *rows_of}:
            raise site.refuse("the result of select has the axes of its index")
        widened, index = fit(index.axes, lead), Operand(index.name, lead)
        spread, after = fit(rows_of, lead), fit((*lead, *made), op.axes)
    places = [rows_of.index(a) if a in rows_of else None for a in lead]

    def run(call: Call, x: Tensor, chosen: Tensor) -> Tensor:
        if widened is not None:
            narrow, sizes_of = widened(chosen), [None if at is None else x.shape[at] for at in places]
            whole = [narrow.shape[i] if size is None else size for i, size in enumerate(sizes_of)]
            chosen = call.in_layer(("wide", id(chosen), *whole), lambda: (narrow.expand(whole), chosen))[0]
        flat = x if before is None else before(x)
        absent = chosen >= count if none else None
        if absent is not None:  # such a token passes the first, and what comes out is nothing
            chosen = call.in_layer(("none", id(chosen)), lambda: (chosen.clamp(max=count - 1), chosen))[0]
        if tuple(rows_of) != index.axes:
            flat = (flat if spread is None else flat[_beside(rows_of, index.axes)]).expand(
                *chosen.shape, flat.shape[-1]
            )
        y = _routed(call, flat, chosen, matrices(), None if bias is None else bias(), count)
        if absent is not None:
            y = y.masked_fill(absent.unsqueeze(-1), 0.0)
        if len(sizes) != 1:
            y = y.unflatten(-1, sizes)
        return y if after is None else after(y)

    return run


def _beside(axes: Axes, to: Axes) -> tuple[Any, ...]:
    return (*(slice(None) if a in axes else None for a in to), slice(None))


def _routed(call: Call, x: Tensor, chosen: Tensor, matrices: Tensor, bias: Tensor | None, count: int) -> Tensor:
    """x[... i], chosen[...], matrices[e o i] -> [... o]."""
    if x.is_meta:  # nobody knows who chose whom: as many rows as there are choices, whatever matrices they take
        y = torch.matmul(x, matrices[0].transpose(0, 1))
        return y if bias is None else y + bias[0]
    order, bounds = call.in_layer(("routing", id(chosen)), lambda: (*_sorted(chosen, count), chosen))[:2]
    rows = x.reshape(-1, x.shape[-1])[order]
    parts = [
        functional.linear(part, matrices[e], None if bias is None else bias[e])
        for e, part in enumerate(rows.split(bounds))
        if part.shape[0]
    ]
    del rows
    sorted_ = torch.cat(parts) if parts else None
    del parts
    y = torch.zeros((order.shape[0], matrices.shape[1]), dtype=x.dtype, device=x.device)
    return (y if sorted_ is None else y.index_copy(0, order, sorted_)).reshape(*chosen.shape, -1)


def _sorted(chosen: Tensor, count: int) -> tuple[Tensor, list[int]]:
    """The choices in the order of their experts, and how many each has."""
    flat = chosen.reshape(-1)
    return torch.argsort(flat, stable=True), torch.bincount(flat, minlength=count).tolist()
