"""Renaming and picking."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from assay.execution.sites import Call, Run, Site, fit, fitted, runs


@runs("keep")
def keep(site: Site) -> Run:
    """The positions that get logits: all, or the last."""
    dim = _axis(site)
    return lambda call, x: x if call.logits == "all" else x.narrow(dim, x.shape[dim] - 1, 1)


def _axis(site: Site) -> int:
    """Where the one axis stands that the result has under another name."""
    return next(i for i, a in enumerate(site.op.inputs[0].axes) if a not in site.op.axes)


@runs("rename", "view")
def same(site: Site) -> Run:
    """The same elements."""
    given, made = site.op.inputs[0].axes, site.op.axes
    new = [a for a in made if a not in given]
    lost = [a for a in given if a not in made]
    if [site.stored.sizes.get(a) for a in lost] != [site.stored.sizes.get(a) for a in new]:
        raise site.refuse(f"{' '.join(lost)} and {' '.join(new)} are not of one size")
    called = tuple(a if a in made else new[0] for a in given)
    turned = fit(called, made)
    if site.op.inputs[0].is_weight:
        stored = fitted(site.weight(site.op.inputs[0]), called, made)
        return lambda call: stored()
    return lambda call, x: x if turned is None else turned(x)


@runs("behind")
def behind(site: Site) -> Run:
    """Of a profile over distances, what each key has: its own token the first, none where it is beyond or before."""
    given, made = site.op.inputs[0].axes, site.op.axes
    profile, keys = given[-1], next(a for a in made if a not in given)
    if profile in made or made[-1] != keys or "n" not in made:
        raise site.refuse("the profile is the last axis, and keys stand in its place")
    extent = site.size(profile)
    makers = [one for one in site.block.ops if one.kind == "append" and keys in one.axes]
    if not makers:
        raise site.refuse(f"no op keeps the keys {keys}")
    kept = makers[0].attr("window")
    window = None if kept is None else site.size(kept) if isinstance(kept, str) else int(kept)
    order = [given.index(a) for a in (*made[:-1], profile)]
    index = tuple(slice(None) if a in ("n", keys) else None for a in made)
    key = ("behind", extent, window, tuple(a in ("n", keys) for a in made))

    def distances(call: Call, device: torch.device) -> tuple[Tensor, Tensor]:
        count = call.past + call.tokens if window is None else call.tokens + min(call.past, window - 1)
        last = call.past + call.tokens
        tokens = torch.arange(call.past, last, device=device)[:, None]
        far = tokens - torch.arange(last - count, last, device=device)[None, :]
        return far.clamp(0, extent - 1)[index], ((far < 0) | (far >= extent))[index]

    def run(call: Call, x: Tensor) -> Tensor:
        x = x.permute(order)
        at, beyond = call.once(key, lambda: distances(call, x.device))
        return x.gather(-1, at.expand(*x.shape[:-1], at.shape[-1])).masked_fill(beyond, 0.0)

    return run


@runs("slice")
def slice_(site: Site) -> Run:
    """A part along one axis: from `at` on, or what the slices of the same tensor before it left."""
    op = site.op
    operand = op.inputs[0]
    dim = _axis(site)
    (made,) = [a for a in op.axes if a not in operand.axes]
    start = site.value("at", 0)
    for other in reversed(site.block.ops[: site.index] if op.attr("at") is None else ()):
        if other.name == operand.name:
            break
        if other.kind == "slice" and other.inputs[0] == operand:
            start += sum(site.size(a) for a in other.axes if a not in operand.axes)
    if made not in site.stored.sizes:
        return _whole_part(site, made, dim)
    length = site.size(made)
    turned = fit(tuple(made if i == dim else a for i, a in enumerate(operand.axes)), op.axes)
    if operand.is_weight:
        get = site.weight(operand)
        return lambda call: get().narrow(dim, start, length)

    def run(call: Call, x: Tensor) -> Tensor:
        y = x.narrow(dim, start, length)
        return y if turned is None else turned(y)

    return run


def _whole_part(site: Site, made: str, dim: int) -> Run:
    """A part as long as a setting makes it: of what was joined of parts, all but the others."""
    operand = site.op.inputs[0]
    joined = site.makers(operand.axes[dim])
    parts = [a for t in joined[0].inputs for a in t.axes if a not in joined[0].axes] if joined else []
    if made not in parts or joined[0].kind != "concat" or any(a not in site.stored.sizes for a in parts if a != made):
        raise site.refuse(f"where {made} begins and how long it is are not known")
    start = sum(site.size(a) for a in parts[: parts.index(made)])
    others = sum(site.size(a) for a in parts if a != made)
    turned = fit(tuple(made if i == dim else a for i, a in enumerate(operand.axes)), site.op.axes)

    def run(call: Call, x: Tensor) -> Tensor:
        y = x.narrow(dim, start, x.shape[dim] - others)
        return y if turned is None else turned(y)

    return run


@runs("first")
def first(site: Site) -> Run:
    """The first along an axis, or the one `at` an index, below zero from the end; or where a text has its first
    `token` of a number, `largest` of all where the end of a text is the largest there is.
    """
    dim, at, token = _axis(site), site.value("at", 0), site.op.attr("token")
    at = site.layer if at == "layer" else at  # of what each layer has one of, this layer's
    if not isinstance(at, int):
        raise site.refuse(f"which one {at} is, is not known")
    if token is None:
        return lambda call, x: x.select(dim, at)
    if site.op.inputs[0].axes[:2] != ("b", "n") or dim != 1:
        raise site.refuse("tokens stand along n, behind the batch")

    def run(call: Call, x: Tensor) -> Tensor:
        ids = call.given["ids"]
        where = (ids if token == "largest" else (ids == token).to(torch.int64)).argmax(-1)
        return x[torch.arange(x.shape[0], device=x.device), where]

    return run


@runs("repeat")
def repeat(site: Site) -> Run:
    """The same along further axes."""
    if site.op.attr("of") is not None:
        raise site.refuse(f"outputs of several {site.op.attr('of')} beside each other are not run yet")
    given, made = site.op.inputs[0].axes, site.op.axes
    index = tuple(slice(None) if a in given else None for a in made)
    order = [given.index(a) for a in made if a in given]
    get = site.weight(site.op.inputs[0]) if site.op.inputs[0].is_weight else None
    batch = made.index("b") if "b" in made and "b" not in given else None
    sizes = [-1 if a in given else 1 if i == batch else site.size(a) for i, a in enumerate(made)]
    if batch is None:
        if get is not None:
            return lambda call: get().permute(order)[index].expand(sizes)
        return lambda call, x: x.permute(order)[index].expand(sizes)
    before, behind = sizes[:batch], sizes[batch + 1 :]

    def run(call: Call, *given: Tensor) -> Tensor:
        x = given[0] if get is None else get()
        return x.permute(order)[index].expand([*before, call.batch, *behind])

    return run


@runs("concat")
def concat(site: Site) -> Run:
    """Operands behind each other along an axis; one that lacks other axes is the same along them."""
    op = site.op
    (made,) = [a for a in op.axes if all(a not in t.axes for t in op.inputs)]
    dim = op.axes.index(made)
    changes = []
    for operand in op.inputs:
        (lost,) = [a for a in operand.axes if a not in op.axes]
        called = tuple(made if a == lost else a for a in operand.axes)
        changes.append(fit(called, op.axes))
    gets = [site.weight(t) if t.is_weight else None for t in op.inputs]

    def run(call: Call, *given: Tensor) -> Tensor:
        left = iter(given)
        parts = [next(left) if get is None else get() for get in gets]
        parts = [part if change is None else change(part) for part, change in zip(parts, changes, strict=True)]
        whole = [max(sizes) for sizes in zip(*(_padded(part, len(op.axes)) for part in parts), strict=True)]
        parts = [part.expand(*(-1 if i == dim else size for i, size in enumerate(whole))) for part in parts]
        return torch.cat(parts, dim)

    return run


def _padded(tensor: Tensor, dims: int) -> list[int]:
    return [1] * (dims - tensor.dim()) + list(tensor.shape)


@runs("take")
def take(site: Site) -> Run:
    """Values at an index, along the axis that the values lose."""
    op = site.op
    values, index = op.inputs
    if op.attr("centred"):
        return _centred(site)
    if values.is_weight and len(values.axes) == 1 and op.axes == index.axes:  # a number for each index
        get = site.weight(values)
        return lambda call, i: get()[i]
    lost = [a for a in values.axes if a not in op.axes]
    made = [a for a in index.axes if a not in values.axes]
    if len(lost) != 1 or len(made) != 1 or values.axes[-1] != lost[0] or op.axes != (*values.axes[:-1], made[0]):
        raise site.refuse("picking rows of a tensor along any but its last axis is not run")
    beside = fit(index.axes, op.axes)
    return lambda call, x, i: x.gather(-1, i if beside is None else beside(i).expand(*x.shape[:-1], i.shape[-1]))


@runs("idle")
def idle(site: Site) -> Run:
    """Stored, and not used in this pass."""
    get = site.weight(site.op.weights[0])
    return lambda call: get()


@runs("reshape")
def reshape(site: Site) -> Run:
    """The same elements in their order: what both have in common first stays, the rest is as long as is known."""
    given, made = site.op.inputs[0].axes, site.op.axes
    same = 0
    while same < min(len(given), len(made)) and given[same] == made[same]:
        same += 1
    lost, new = given[same:], made[same:]
    sizes = [site.stored.sizes.get(a, -1) for a in new]
    if sizes.count(-1) > 1 or any(a in given[:same] for a in new):
        raise site.refuse("a size that it needs is known only while it runs", f"{' '.join(lost)} as {' '.join(new)}")
    return lambda call, x: x.reshape(*x.shape[:same], *sizes)


@runs("unfold")
def unfold(site: Site) -> Run:
    """Each position with its neighbours to either side, zeros where there are none; of an even number the first half
    and the position itself are the larger part. `order` is back where the last neighbour comes first.
    """
    given, made = site.op.inputs[0].axes, site.op.axes
    if made[: len(given)] != given or len(given) < 3:
        raise site.refuse("neighbours come last, and are those along the axis behind the batch")
    count = site.size(made[-1])
    left = count // 2
    edges = (0, 0) * (len(given) - 2) + (left, count - 1 - left)
    back = site.op.attr("order") == "back"

    def run(call: Call, x: Tensor) -> Tensor:
        y = functional.pad(x, edges).unfold(1, count, 1)
        return y.flip(-1) if back else y

    return run


@runs("columns")
def columns(site: Site) -> Run:
    """What a kernel sees at each of its places along the axis that is renamed, or the one behind the batch; `pad`
    zeros stand at either end.
    """
    given, made = site.op.inputs[0].axes, site.op.axes
    if site.op.attr("order") == "squares":
        return _squares(site)
    pad = site.value("pad")
    if pad is None:
        raise site.refuse("in which order a convolution gathers its positions is not described")
    dim = next((i for i, a in enumerate(given) if made[i] != a), 1)
    count, stride = site.size(made[-1]), site.value("stride", 1)
    edges = (0, 0) * (len(given) - 1 - dim) + (pad, pad)
    return lambda call, x: (functional.pad(x, edges) if pad else x).unfold(dim, count, stride)


def _squares(site: Site) -> Run:
    """Positions of a square grid, row by row, in squares side by side; those of a square row by row as well."""
    many, each = site.size(site.op.inputs[0].axes[1]), site.size(site.op.axes[-1])
    rows, side = math.isqrt(many), math.isqrt(each)
    count = rows // side
    if rows * rows != many or side * side != each or count * side != rows:
        raise site.refuse(
            "its positions are no square grid that smaller squares fill", f"{many} positions, {each} in a square"
        )

    def run(call: Call, x: Tensor) -> Tensor:
        y = x.unflatten(1, (count, side, count, side)).transpose(2, 3)
        return y.reshape(len(x), count * count, side * side, -1).transpose(2, 3)

    return run


def _centred(site: Site) -> Run:
    """Values at distances, which count from the middle of the axis that is lost; no further than its ends."""
    op = site.op
    values, index = op.inputs
    far = site.value("far")
    pair, lost = index.axes, values.axes[-1]
    own = next((a for a in pair if a in values.axes), None)
    (other,) = [a for a in pair if a != own] if own is not None and len(pair) == 2 else [None]
    if lost in op.axes or other is None or own != values.axes[-2]:
        raise site.refuse("distances are between the axis before the last one and another")
    made = (*values.axes[:-1], other)
    beside, after = fit(pair, made), fit(made, op.axes)

    def rows(at: Tensor, count: int) -> Tensor:
        half = count // 2
        if far is not None:
            at = _log_buckets(at, half, far)
        at = (at + half).clamp(0, 2 * half - 1)
        return at if beside is None else beside(at)

    def run(call: Call, x: Tensor, distance: Tensor) -> Tensor:
        at = call.once(("centred", x.shape[-1], far, pair, own), lambda: rows(distance, x.shape[-1]))
        y = x.gather(-1, at.expand(*x.shape[:-1], at.shape[-1]))
        return y if after is None else after(y)

    return run


def _log_buckets(at: Tensor, buckets: int, far: int) -> Tensor:
    """Distances: each its own up to half of the buckets to one side, then by their logarithm up to `far` (He et al.
    2021, DeBERTa-v2's code).
    """
    middle = buckets // 2
    size = at.abs().clamp(min=middle - 1)
    wide = torch.ceil(torch.log(size / middle) / math.log((far - 1) / middle) * (middle - 1)) + middle
    return torch.where(size <= middle, at, (wide * at.sign()).long())


@runs("distances")
def distances(site: Site) -> Run:
    """Of a table whose middle is distance nought, the rows that so many tokens have."""
    table = site.op.inputs[0]
    limit = site.value("limit")
    if site.op.attr("tokens") != "n" or site.stored.sizes.get(table.axes[0]) != 2 * limit:
        raise site.refuse(
            "relative positions are run only from a table that reaches as far to either side as they are told apart"
        )

    def run(call: Call, x: Tensor) -> Tensor:
        reach = min(call.tokens, limit)
        return x.narrow(0, limit - reach, 2 * reach)

    return run
