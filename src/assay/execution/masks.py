"""Which keys a query sees: the mask of an axis of keys, as the op says that made it, and what the caller gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from assay.execution.sites import Call, Site
from assay.spec import Axes, Op

Hide = Callable[..., Tensor]  # (call, scores, perhaps an index of keys) -> scores
Rule = Callable[[Tensor, Tensor], Tensor]  # positions of queries and keys -> True where a query sees a key

MAKERS = ("append", "keys", "reuse", "hold")
_NOTHING = object()  # hides nothing: once made, it is not made again


def hide(site: Site) -> Hide:
    """Scores with what is out of sight set so low that a softmax gives exactly zero."""
    op = site.op
    axes = op.axes
    keys, queries = axes[-1], axes[-2] if len(axes) > 1 else ""
    makers = [made for made in site.makers(keys) if made.kind in MAKERS]
    if not makers:
        raise site.refuse(f"no op makes the keys {keys}")
    key, rule = sight(site, makers[0], chosen=len(op.activations) > 1)
    crossed = makers[0].kind == "hold"

    def run(call: Call, s: Tensor, index: Tensor | None = None) -> Tensor:
        if call.bias is not None and not crossed:
            s = s + _beside(call.bias, site, axes)
        n = s.shape[-2]
        hidden = call.once(("mask", key, n, s.shape[-1]), lambda: _hidden(call, rule, crossed, n, s))
        if index is not None:
            absent = torch.ones((*index.shape[:-1], s.shape[-1]), dtype=torch.bool, device=s.device)
            absent = absent.scatter(-1, index, False)
            hidden = absent if hidden is _NOTHING else hidden | absent
        if hidden is _NOTHING:
            return s
        return s.masked_fill(_placed(hidden, axes, queries), torch.finfo(s.dtype).min)

    return run


def _hidden(call: Call, rule: Rule | None, crossed: bool, n: int, s: Tensor) -> Any:
    """True where a key is out of sight, [n c] or [b n c]; nothing where all is in sight."""
    c, found = s.shape[-1], None
    if rule is not None:
        queries = torch.arange(call.past, call.past + n, device=s.device)[:, None]
        first = call.past + n - c
        keys = torch.arange(first, first + c, device=s.device)[None, :]
        found = ~rule(queries, keys)
    padding = call.source_mask if crossed else call.mask
    if padding is not None:
        there = padding.to(torch.bool)
        absent = ~there[:, there.shape[1] - c :][:, None, :]
        found = absent if found is None else found | absent
    return _NOTHING if found is None else found


def sight(site: Site, maker: Op, chosen: bool = False) -> tuple[Any, Rule | None]:
    """What queries see of the keys that an op makes: a name for it, and the rule; None where they see all.

    `chosen`: an index says which of those in sight are seen.
    """
    values = {name: site.stored.sizes.get(v, v) if isinstance(v, str) else v for name, v in maker.attrs}
    if maker.kind == "hold":
        return ("hold",), None
    if maker.kind == "keys":
        unknown = set(values) - {"causal", "reach"}
        if unknown:
            raise site.refuse(f"a mask by {', '.join(sorted(unknown))} is not run yet")
        reach = values.get("reach")
        if values.get("causal"):
            return ("causal",), lambda q, k: k <= q
        if reach is not None:
            return ("reach", reach), lambda q, k: (q - k).abs() <= reach
        return ("keys",), None
    window, chunk = values.get("window", values.get("near")), values.get("chunk")
    if values.get("top") is not None and (values.get("block") is not None or not chosen):
        raise site.refuse("attention to the best few keys is run where the mask is given their index")
    if window is not None:
        return ("window", window), lambda q, k: (k <= q) & (k > q - window)
    if chunk is not None:
        return ("chunk", chunk), lambda q, k: (k <= q) & (k // chunk == q // chunk)
    return ("causal",), lambda q, k: k <= q


def _placed(hidden: Tensor, axes: Axes, queries: str) -> Tensor:
    """[n c] or [b n c] beside the axes of scores."""
    if hidden.dim() == 2:
        return hidden
    index = tuple(slice(None) if a in ("b", queries, axes[-1]) else None for a in axes)
    return hidden[index]


def _beside(bias: Tensor, site: Site, axes: Axes) -> Tensor:
    """A bias over batch, heads, queries and keys, beside scores whose heads are several axes."""
    heads = [a for a in axes[:-2] if a != "b"]
    if bias.dim() < 3 or len(heads) < 2:
        return bias
    sizes = [site.size(a) for a in heads]
    count = bias.shape[-3]
    return bias.unflatten(-3, sizes if count != 1 else [1] * len(heads))
