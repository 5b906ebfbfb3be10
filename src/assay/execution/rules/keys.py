"""Keys of the same pass."""

from __future__ import annotations

from assay.execution.sites import Run, Site, fit, runs


@runs("keys")
def keys(site: Site) -> Run:
    """The same tokens as keys: which of them a query sees, the mask says."""
    if site.op.attr("windows") is not None:
        raise site.refuse("attention within windows of a sequence is not run yet")
    given, made = site.op.inputs[0].axes, site.op.axes
    (new,) = [a for a in made if a not in given]
    turned = fit(tuple(a if a in made else new for a in given), made)
    return lambda call, x: x if turned is None else turned(x)
