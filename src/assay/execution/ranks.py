"""What ranks exchange while they run, through `torch.distributed` or whatever else hands tensors on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

from assay.errors import BuildError


class Ranks(Protocol):
    """Some ranks, of which this is one."""

    rank: int
    count: int

    def all(self, tensor: Tensor) -> list[Tensor]:
        """What each rank gives, in order: all of them call this together."""


class Distributed:
    """The ranks of the process group that `torch.distributed` was initialized with."""

    def __init__(self) -> None:
        self.rank = torch.distributed.get_rank()
        self.count = torch.distributed.get_world_size()

    def all(self, tensor: Tensor) -> list[Tensor]:
        """What each rank gives."""
        found = [torch.empty_like(tensor) for _ in range(self.count)]
        torch.distributed.all_gather(found, tensor.contiguous())
        return found


_HERE = threading.local()


@contextmanager
def among(ranks: Ranks) -> Iterator[None]:
    """Within this thread what is built exchanges with these ranks."""
    before = getattr(_HERE, "ranks", None)
    _HERE.ranks = ranks
    try:
        yield
    finally:
        _HERE.ranks = before


def ranks_here(count: int) -> Ranks:
    """The ranks to exchange with. Raises BuildError where there are none, or another number of them."""
    found: Ranks | None = getattr(_HERE, "ranks", None)
    if found is None and torch.distributed.is_available() and torch.distributed.is_initialized():
        found = Distributed()
    if found is None:
        raise BuildError(f"{count} ranks exchange what they make, and torch.distributed is not initialized")
    if found.count != count:
        raise BuildError(f"the description is of {count} ranks, and {found.count} run")
    return found


def own(tensor: Tensor, dim: int, ranks: Ranks) -> Tensor:
    """A rank's own part of a dimension. Raises BuildError where it does not divide."""
    if tensor.shape[dim] % ranks.count:
        raise BuildError(f"{tensor.shape[dim]} tokens do not divide among {ranks.count} ranks")
    return tensor.chunk(ranks.count, dim)[ranks.rank]


def summed(tensor: Tensor, ranks: Ranks) -> Tensor:
    """The sum over all ranks."""
    first, *others = ranks.all(tensor)
    for other in others:
        first = first + other
    return first


class AllReduce(torch.autograd.Function):  # type: ignore[misc]
    """A sum over ranks; each gets the gradient of the sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, ranks: Ranks) -> Tensor:
        """The sum."""
        return summed(x, ranks)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """As it comes."""
        return grads[0], None, None


class Copies(torch.autograd.Function):  # type: ignore[misc]
    """The same on every rank; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, ranks: Ranks) -> Tensor:
        """As it is."""
        ctx.ranks = ranks
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """The sum."""
        return summed(grads[0], ctx.ranks), None, None


class AllGather(torch.autograd.Function):  # type: ignore[misc]
    """Parts behind each other; a part's gradient is its own of the sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, ranks: Ranks) -> Tensor:
        """All parts."""
        ctx.dim, ctx.ranks = dim, ranks
        return torch.cat(ranks.all(x), dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """A part of the sum."""
        return own(summed(grads[0], ctx.ranks), ctx.dim, ctx.ranks), None, None


class AllGatherAlike(AllGather):
    """The same where all ranks go on alike: a part's gradient is its own of what each has."""

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """A part."""
        return own(grads[0], ctx.dim, ctx.ranks), None, None


class ReduceScatter(torch.autograd.Function):  # type: ignore[misc]
    """A part of a sum over ranks; the gradients of all parts are each rank's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, ranks: Ranks) -> Tensor:
        """A part of the sum."""
        ctx.dim, ctx.ranks = dim, ranks
        return own(summed(x, ranks), dim, ranks)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """All parts."""
        return torch.cat(ctx.ranks.all(grads[0]), ctx.dim), None, None


class Scatter(torch.autograd.Function):  # type: ignore[misc]
    """A part of what all ranks have; its gradient is that of all parts."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, ranks: Ranks) -> Tensor:
        """A part."""
        ctx.dim, ctx.ranks = dim, ranks
        return own(x, dim, ranks)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """All parts."""
        return torch.cat(ctx.ranks.all(grads[0]), ctx.dim), None, None
