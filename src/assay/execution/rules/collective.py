"""What ranks exchange. Each runs its own module; sums and parts cross between them, gradients too."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from assay.execution.ranks import AllGather, AllGatherAlike, AllReduce, Copies, ReduceScatter, Scatter, ranks_here
from assay.execution.sites import Call, Run, Site, fit, runs


def _exchanged(site: Site, function: Any) -> Run:
    """An exchange along the dimension that has another axis behind it, if any has."""
    op = site.op
    given, made = op.inputs[0].axes, op.axes
    ranks = ranks_here(op.attr("ranks"))
    lost = [at for at, axis in enumerate(given) if axis not in made]
    named = tuple(axis if axis in made else next(a for a in made if a not in given) for axis in given)
    turned = fit(named, made)
    dim = lost[0] if lost else 0

    def run(call: Call, x: Tensor) -> Tensor:
        y: Tensor = function.apply(x, dim, ranks)
        return y if turned is None else turned(y)

    return run


@runs("all_reduce")
def all_reduce(site: Site) -> Run:
    """A sum over ranks."""
    if set(site.op.axes) != set(site.op.inputs[0].axes):
        raise site.refuse("a norm over a row of which ranks hold parts is not run yet")
    return _exchanged(site, AllReduce)


@runs("copies")
def copies(site: Site) -> Run:
    """The same on every rank."""
    return _exchanged(site, Copies)


@runs("all_gather")
def all_gather(site: Site) -> Run:
    """Parts behind each other."""
    return _exchanged(site, AllGatherAlike if site.op.attr("alike") else AllGather)


@runs("reduce_scatter")
def reduce_scatter(site: Site) -> Run:
    """A part of a sum."""
    return _exchanged(site, ReduceScatter)


@runs("scatter")
def scatter(site: Site) -> Run:
    """A part of what all have."""
    return _exchanged(site, Scatter)
