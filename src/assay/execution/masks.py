"""Which keys a query sees: the mask of an axis of keys, as the op says that made it, and what the caller gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from assay.execution.sites import Call, Site
from assay.spec import Axes, Op

Hide = Callable[[Call, Tensor], Tensor]


def hide(site: Site) -> Hide:
    """Scores with what is out of sight set so low that a softmax gives exactly zero."""
    op = site.op
    axes = op.axes
    keys = axes[-1]
    makers = [made for made in site.makers(keys) if made.kind in ("append", "keys", "reuse", "hold")]
    if not makers:
        raise site.refuse(f"no op makes the keys {keys}")
    rule = sight(site, makers[0])
    queries = _queries(makers[0], keys, axes)
    crossed = makers[0].kind == "hold"

    def run(call: Call, s: Tensor) -> Tensor:
        if call.bias is not None and not crossed:
            s = s + _beside(call.bias, site, axes)
        n = s.shape[axes.index(queries)] if queries in axes else 1
        hidden = call.once(
            ("mask", rule.key, n, s.shape[-1], crossed), lambda: rule.hidden(call, n, s.shape[-1], s.device)
        )
        if hidden is _NOTHING:
            return s
        return s.masked_fill(_placed(hidden, axes, queries), torch.finfo(s.dtype).min)

    return run


_NOTHING = object()


class Sight:
    """What a query sees of an axis of keys, and under which name a pass may keep it."""

    def __init__(self, key: Any, rule: Callable[[Tensor, Tensor], Tensor] | None, crossed: bool) -> None:
        self.key, self.rule, self.crossed = key, rule, crossed

    def hidden(self, call: Call, n: int, c: int, device: torch.device) -> Any:
        """True where a key is out of sight, [n c] or [b n c]; nothing where all is in sight."""
        found: Any = None
        if self.rule is not None and not (n == 1 and self.key[0] == "append" and self.key[1:] == (None,) * 4):
            queries = torch.arange(call.past, call.past + n, device=device)[:, None]
            first = call.past + n - c
            keys = torch.arange(first, first + c, device=device)[None, :]
            found = ~self.rule(queries, keys)
        padding = call.source_mask if self.crossed else call.mask
        if padding is not None:
            there = padding.to(torch.bool)
            absent = ~there[:, there.shape[1] - c :][:, None, :]
            found = absent if found is None else found | absent
        return _NOTHING if found is None else found


def sight(site: Site, maker: Op) -> Sight:
    """The rule of an op that makes keys at hand."""
    values = {name: site.stored.sizes.get(v, v) if isinstance(v, str) else v for name, v in maker.attrs}
    if maker.kind == "hold":
        return Sight(("hold",), None, True)
    if maker.kind == "keys":
        unknown = set(values) - {"causal", "reach"}
        if unknown:
            raise site.refuse(f"a mask by {', '.join(sorted(unknown))} is not run yet")
        reach = values.get("reach")
        if values.get("causal"):
            return Sight(("keys", "causal"), lambda q, k: k <= q, False)
        if reach is not None:
            return Sight(("keys", reach), lambda q, k: (q - k).abs() <= reach, False)
        return Sight(("keys",), None, False)
    window, chunk = values.get("window", values.get("near")), values.get("chunk")
    if values.get("top") is not None:
        raise site.refuse("attention to the best few keys is not run yet")
    key = ("append", window, chunk, None, None)
    if window is not None:
        return Sight(key, lambda q, k: (k <= q) & (k > q - window), False)
    if chunk is not None:
        return Sight(key, lambda q, k: (k <= q) & (k // chunk == q // chunk), False)
    return Sight(key, lambda q, k: k <= q, False)


def _queries(maker: Op, keys: str, axes: Axes) -> str:
    """The axis of the queries that see the keys: the one before them."""
    return axes[-2] if len(axes) > 1 else ""


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
