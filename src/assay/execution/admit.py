"""What a pass is given: of the kind and shape that it reads, or one line that names it, the axis and both sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from assay.errors import BuildError
from assay.readings.setting import encoded

if TYPE_CHECKING:
    from assay.execution.module import Cache, Executable, Layer

BIASED = ("mask", "alibi", "attend")  # kinds that add what the caller gives to scores
AXES = ("batch", "heads", "tokens", "keys")  # of what is added to scores


def held(given: Iterable[Tensor | None]) -> tuple[tuple[int, ...] | None, ...]:
    """The shapes of what is given, which tell passes of one size apart."""
    return tuple(None if one is None else tuple(one.shape) for one in given)


def all_of(
    module: Executable,
    tokens: Tensor,
    source: Tensor | None,
    cache: Cache | None,
    mask: Tensor | None,
    source_mask: Tensor | None,
    bias: Tensor | None,
    positions: Tensor | None,
    given: Mapping[str, Tensor],
) -> None:
    """All that a pass is given. Raises BuildError for what is not as it is read, and for what nothing reads."""
    model, (batch, n) = module.description, tokens.shape
    past, texts = (0, None) if cache is None else (cache.tokens, cache.texts)
    ids("tokens", tokens, texts)
    if not module.paired and (source is not None or source_mask is not None):
        raise BuildError(f"{model.name} reads no source")
    if source is not None:
        rows("source", source, batch)
    if mask is not None:
        truths("mask", mask, batch, past + n)
    m = source.shape[1] if source is not None and not past else 0 if cache is None else cache.source
    if source_mask is not None and m:
        truths("source_mask", source_mask, batch, int(encoded(m, (model.source_stride, model.source_extra))))
    if bias is not None:
        if not any(step.op.kind in BIASED for layer in module.plan for step in layer.steps):
            raise BuildError(f"{model.name} has no scores that a bias is added to")
        added(bias, batch, n, past + n)
    if positions is not None:
        places(positions, batch, n)
    named(given, (*module.source_plan, *module.plan), model.name)


def ids(name: str, tokens: Tensor, batch: int | None = None) -> None:
    """Token ids are integers [b n], as many rows as texts. Raises BuildError."""
    if tokens.dim() != 2:
        raise BuildError(f"{name} has {tokens.dim()} axes; token ids have 2, batch and tokens")
    if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
        raise BuildError(f"{name} is of {_called(tokens)}; token ids are integers")
    rows(name, tokens, batch)


def rows(name: str, given: Tensor, batch: int | None) -> None:
    """As many rows as texts. Raises BuildError."""
    if batch is not None and given.shape[0] != batch:
        raise BuildError(f"{name}: axis batch has {given.shape[0]} elements; there are {batch} texts")


def truths(name: str, mask: Tensor, batch: int, length: int) -> None:
    """A mask [b tokens], true where a token is one. Raises BuildError."""
    if mask.dim() != 2:
        raise BuildError(f"{name} has {mask.dim()} axes; it has 2, batch and tokens")
    rows(name, mask, batch)
    if mask.shape[1] != length:
        raise BuildError(f"{name}: axis tokens has {mask.shape[1]} elements; there are {length}, earlier passes' too")


def added(bias: Tensor, batch: int, n: int, keys: int) -> None:
    """What is added to scores broadcasts to batch, heads, tokens and keys; heads are asked where they are known.

    Raises BuildError.
    """
    if bias.dtype == torch.bool:
        raise BuildError("bias is of truths; it is a number for each score, 0 where nothing is added")
    if bias.dim() > len(AXES):
        raise BuildError(f"bias has {bias.dim()} axes; at most {len(AXES)} are allowed, {', '.join(AXES)}")
    wanted: Sequence[int | None] = (batch, None, n, keys)
    known = list(zip(AXES, wanted, strict=True))[len(AXES) - bias.dim() :]
    for (axis, size), here in zip(known, bias.shape, strict=True):
        if size is not None and here not in (1, size):
            raise BuildError(f"bias: axis {axis} has {here} elements; 1 or {size} are allowed")


def hidden(mask: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """A mask over batch, heads, tokens and keys as what is added to scores: so little that softmax gives zero.

    Raises BuildError for a mask that is none of truths.
    """
    if mask.dtype != torch.bool:
        raise BuildError(f"mask is of {_called(mask)}; of {len(AXES)} axes it is of truths, and numbers are a bias")
    added = torch.zeros((), dtype=dtype, device=mask.device) if bias is None else bias
    shape = torch.broadcast_shapes(added.shape, mask.shape)
    return added.expand(shape).masked_fill(~mask, torch.finfo(added.dtype).min)


def heads(bias: Tensor, count: int, where: str) -> None:
    """A bias is the same for all heads or has one for each. Raises BuildError, which says where."""
    if bias.dim() > 2 and bias.shape[-3] not in (1, count):
        raise BuildError(f"{where}: bias: axis heads has {bias.shape[-3]} elements; 1 or {count} are allowed")


def places(positions: Tensor, batch: int, n: int) -> None:
    """Positions [n], [b n] or [3 b n]. Raises BuildError."""
    allowed = ((n,), (batch, n), (3, batch, n))
    if tuple(positions.shape) not in (*allowed, (1, n), (3, 1, n)):
        shapes = " or ".join(str(list(shape)) for shape in allowed)
        raise BuildError(f"positions have the shape {list(positions.shape)}; {shapes} are allowed")


def named(given: Mapping[str, Tensor], layers: Iterable[Layer], name: str) -> None:
    """Every further input is one that some layer reads. Raises BuildError."""
    if not given:
        return
    read: set[str] = set()
    made: set[str] = set()
    for layer in layers:
        read.update(one for one, _, _ in layer.reads if one not in made)
        made.update(one for one, _ in layer.gives)
    for one in given:
        if one not in read:
            rest = sorted(read - {"ids", "at", "distance", "memory"})
            raise BuildError(f"{name} reads no {one}" + (f"; it reads {', '.join(rest)}" if rest else ""))


def _called(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
