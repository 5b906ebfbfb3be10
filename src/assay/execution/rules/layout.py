"""Renaming and picking."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.execution.sites import Call, Run, Site, fit, runs


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
    """A part along one axis: what the slices of the same tensor before it left."""
    op = site.op
    operand = op.inputs[0]
    dim = _axis(site)
    (made,) = [a for a in op.axes if a not in operand.axes]
    start = 0
    for other in reversed(site.block.ops[: site.index]):
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
    """The first along an axis, or the one `at` an index."""
    dim, at = _axis(site), site.value("at", 0)
    at = site.layer if at == "layer" else at  # of what each layer has one of, this layer's
    if not isinstance(at, int):
        raise site.refuse(f"which one {at} is, is not known")
    return lambda call, x: x.select(dim, at)


@runs("repeat")
def repeat(site: Site) -> Run:
    """The same along further axes."""
    given, made = site.op.inputs[0].axes, site.op.axes
    index = tuple(slice(None) if a in given else None for a in made)
    order = [given.index(a) for a in made if a in given]
    sizes = [-1 if a in given else site.size(a) for a in made]
    return lambda call, x: x.permute(order)[index].expand(sizes)


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
    if values.is_weight and len(values.axes) == 1 and op.axes == index.axes:  # a number for each index
        get = site.weight(values)
        return lambda call, i: get()[i]
    lost = [a for a in values.axes if a not in op.axes]
    made = [a for a in index.axes if a not in values.axes]
    if len(lost) != 1 or len(made) != 1 or values.axes[-1] != lost[0] or op.axes != (*values.axes[:-1], made[0]):
        raise site.refuse("take picks along the last axis")
    beside = fit(index.axes, op.axes)
    return lambda call, x, i: x.gather(-1, i if beside is None else beside(i).expand(*x.shape[:-1], i.shape[-1]))


@runs("idle")
def idle(site: Site) -> Run:
    """Stored, and not used in this pass."""
    get = site.weight(site.op.weights[0])
    return lambda call: get()
