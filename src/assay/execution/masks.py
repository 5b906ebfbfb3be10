"""Which keys a query sees: the mask of an axis of keys, as the op says that made it, and what the caller gave."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

from assay.execution import admit
from assay.execution.sites import Call, Site, fit
from assay.spec import Axes, Op

Hide = Callable[..., Tensor]  # (call, scores, perhaps an index of keys) -> scores
Rule = Callable[[Tensor, Tensor], Tensor]  # positions of queries and keys -> True where a query sees a key

MAKERS = ("append", "keys", "reuse", "hold", "collect")
_NOTHING = object()  # hides nothing: once made, it is not made again


class Windows:
    """A query sees what stands for windows of `rate` tokens that ended before it, or with it."""

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def __call__(self, queries: Tensor, entries: Tensor) -> Tensor:
        """True where a query sees an entry."""
        return entries < (queries + 1) // self.rate


def hide(site: Site) -> Hide:
    """Scores with what is out of sight set so low that a softmax gives exactly zero."""
    op = site.op
    axes = op.axes
    made = site.makers(axes[-1])
    if made and made[0].kind == "concat":
        return _hide_behind(site, made[0])
    key, rule, crossed = _rule(site, axes, chosen=len(op.activations) > 1)

    def run(call: Call, s: Tensor, index: Tensor | None = None) -> Tensor:
        if call.bias is not None and not crossed:
            s = s + _beside(_at_hand(call.bias, s.shape[-1]), site, axes)
        n, c = s.shape[-2:]
        hidden = call.once(("mask", key, n, c), lambda: _hidden(call, rule, crossed, n, c, s.device))
        if index is not None:
            absent = torch.ones((*index.shape[:-1], c), dtype=torch.bool, device=s.device).scatter(-1, index, False)
            hidden = absent if hidden is _NOTHING else hidden | absent
        if hidden is _NOTHING:
            return s
        return s.masked_fill(_placed(hidden, axes), torch.finfo(s.dtype).min)

    return run


def favoured(site: Site, keep: int | None) -> Hide:
    """The same with a number of each key added to scores, and of those in sight only the `keep` best by it left."""
    op = site.op
    axes = op.axes
    key, rule, crossed = _rule(site, axes, chosen=True)
    beside = fit(op.inputs[1].axes, axes)

    def run(call: Call, s: Tensor, m: Tensor) -> Tensor:
        n, c = s.shape[-2:]
        lowest = torch.finfo(s.dtype).min
        m = m if beside is None else beside(m)
        hidden = call.once(("mask", key, n, c), lambda: _hidden(call, rule, crossed, n, c, s.device))
        if hidden is not _NOTHING:
            m = m.masked_fill(_placed(hidden, axes), lowest)
        if call.bias is not None:
            s = s + _beside(_at_hand(call.bias, s.shape[-1]), site, axes)
        if keep is not None and c > keep:
            best = torch.topk(m, keep, dim=-1, sorted=False).indices
            m = m.masked_fill(torch.ones_like(m, dtype=torch.bool).scatter(-1, best, False), lowest)
        return torch.where(m == lowest, m, s + m)

    return run


def _hide_behind(site: Site, joined: Op) -> Hide:
    """The same where entries of windows stand behind keys; an index says which of the entries are seen."""
    axes, chosen = site.op.axes, len(site.op.activations) > 1
    parts = [next(a for a in t.axes if a not in joined.axes) for t in joined.inputs]
    makers = [next((made for made in site.makers(part) if made.kind in MAKERS), None) for part in parts]
    rules = [sight(site, made, chosen) for made in makers if made is not None]
    if len(rules) != 2 or len(parts) != 2 or rules[0][1] is None or not isinstance(rules[1][1], Windows):
        raise site.refuse("which keys a query sees is not described", f"of the keys {axes[-1]}")
    (key, near), other, far = rules[0], rules[1][0], rules[1][1]

    def run(call: Call, s: Tensor, index: Tensor | None = None) -> Tensor:
        if call.bias is not None:
            raise site.refuse("a bias is of tokens, and some of its keys stand for several: it is not run")
        n, c = s.shape[-2:]
        count = (call.past + n) // far.rate
        left = call.once(("mask", key, n, c - count), lambda: _hidden(call, near, False, n, c - count, s.device))
        right = call.once(("mask", other, n, count), lambda: _hidden(call, far, False, n, count, s.device))
        if index is not None and count:
            right = right | torch.ones((*index.shape[:-1], count), dtype=torch.bool, device=s.device).scatter(
                -1, index, False
            )
        lead = max((left, right), key=Tensor.dim).shape[:-1]
        hidden = torch.cat((left.expand(*lead, c - count), right.expand(*lead, count)), -1)
        return s.masked_fill(_placed(hidden, axes), torch.finfo(s.dtype).min)

    return run


def seen(site: Site, axes: Axes) -> Callable[[Call, int, int, Tensor], tuple[bool, Tensor | None]]:
    """The same for a kernel that takes a mask [n c] or [b 1 n c]: whether it is the plain causal one, else the mask."""
    key, rule, crossed = _rule(site, axes)
    heads = prod(site.size(a) for a in axes[:-2] if a != "b")

    def run(call: Call, n: int, c: int, q: Tensor) -> tuple[bool, Tensor | None]:
        padding = call.source_mask if crossed else call.mask
        bias = None if crossed else call.bias
        if bias is not None:
            admit.heads(bias, heads, _scores(site, axes))
        if padding is None and bias is None:
            if rule is None or (n == 1 and key[0] in ("causal", "window")):  # all that is at hand is in sight
                return False, None
            if n == c and (key[0] == "causal" or (key[0] in _LIMITED and c <= key[1] and not call.past)):
                return True, None
        return False, call.once(("seen", key, n, c, q.dtype), lambda: _mask(call, rule, crossed, bias, n, c, q))

    return run


_LIMITED = ("window", "near", "chunk")  # causal as long as there are no more tokens


def _mask(call: Call, rule: Rule | None, crossed: bool, bias: Tensor | None, n: int, c: int, q: Tensor) -> Tensor:
    bias = None if bias is None else _at_hand(bias, c)
    hidden = _hidden(call, rule, crossed, n, c, q.device)
    if hidden is _NOTHING:
        hidden = torch.zeros((n, c), dtype=torch.bool, device=q.device)
    if hidden.dim() == 2 and bias is None:
        return ~hidden
    hidden = hidden if hidden.dim() == 2 else hidden[:, None]
    given = torch.zeros((), dtype=q.dtype, device=q.device) if bias is None else bias.to(q.dtype)
    # a number and not a truth: a token that sees nothing, one of padding, must not divide by nothing
    return given.expand(torch.broadcast_shapes(given.shape, hidden.shape)).masked_fill(hidden, torch.finfo(q.dtype).min)


def _rule(site: Site, axes: Axes, chosen: bool = False) -> tuple[Any, Rule | None, bool]:
    """What scores' last axis of keys shows to queries: a name, the rule, and whether the keys are a source's."""
    makers = [made for made in site.makers(axes[-1]) if made.kind in MAKERS]
    if not makers:
        raise site.refuse(f"no op makes the keys {axes[-1]}")
    key, rule = sight(site, makers[0], chosen)
    return key, rule, makers[0].kind == "hold"


def _hidden(call: Call, rule: Rule | None, crossed: bool, n: int, c: int, device: torch.device) -> Any:
    """True where a key is out of sight, [n c] or [b n c]; nothing where all is in sight."""
    found = None
    if rule is not None:
        queries = torch.arange(call.past, call.past + n, device=device)[:, None]
        first = 0 if isinstance(rule, Windows) else call.past + n - c
        keys = torch.arange(first, first + c, device=device)[None, :]
        found = ~rule(queries, keys)
    padding = call.source_mask if crossed else call.mask
    if padding is not None and not isinstance(rule, Windows):  # which refuse padding where they are made
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
        return _of_this_pass(site, values)
    if maker.kind == "collect":
        rate = int(values["rate"])
        return ("windows", rate), Windows(rate)
    if values.get("whole"):
        raise site.refuse("a prompt whose tokens all see each other is not run yet")
    window, near, chunk = (values.get(name) for name in ("window", "near", "chunk"))
    if values.get("top") is not None and (values.get("block") is not None or not chosen):
        raise site.refuse("attention to the best few keys is run where the mask is given their index")
    if window is not None:
        return ("window", window), lambda q, k: (k <= q) & (k > q - window)
    if near is not None:  # everything is kept, and the last token does not see all of it
        return ("near", near), lambda q, k: (k <= q) & (k > q - near)
    if chunk is not None:
        return ("chunk", chunk), lambda q, k: (k <= q) & (k // chunk == q // chunk)
    return ("causal",), lambda q, k: k <= q


def _of_this_pass(site: Site, values: dict[str, Any]) -> tuple[Any, Rule | None]:
    """What queries see of the keys of the same pass."""
    unknown = set(values) - {"causal", "last", "reach", "block", "offset", "coarse"}
    if unknown:
        raise site.refuse(f"attention to {' and '.join(sorted(unknown))} keys is not run yet")
    if values.get("coarse"):
        raise site.refuse("attention that reads far keys block by block is counted in full and not run")
    last, reach, block, offset = (values.get(name) for name in ("last", "reach", "block", "offset"))
    if values.get("causal"):
        return ("causal",), lambda q, k: k <= q
    if last is not None:
        return ("last", last), lambda q, k: (k <= q) & (k > q - last)
    if reach is not None:
        return ("reach", reach), lambda q, k: (q - k).abs() <= reach
    if block is not None:
        first = offset or 0  # tokens of a block that is not whole, before all others
        return ("block", block, first), lambda q, k: (q - first) // block == (k - first) // block
    return ("keys",), None


def _placed(hidden: Tensor, axes: Axes) -> Tensor:
    """[n c] or [b n c] beside the axes of scores."""
    if hidden.dim() == 2:
        return hidden
    index = tuple(slice(None) if a in ("b", *axes[-2:]) else None for a in axes)
    return hidden[index]


def _scores(site: Site, axes: Axes) -> str:
    layer = "" if site.layer is None else f" {site.layer}"
    return f"{site.segment.name}{layer}: scores[{' '.join(axes)}]"


def _at_hand(bias: Tensor, keys: int) -> Tensor:
    """A bias over all keys, of the last of them: a layer with a window has no others."""
    if bias.dim() == 0 or bias.shape[-1] in (1, keys):
        return bias
    return bias[..., bias.shape[-1] - keys :]


def _beside(bias: Tensor, site: Site, axes: Axes) -> Tensor:
    """A bias over batch, heads, queries and keys, beside scores whose heads are several axes."""
    heads = [a for a in axes[:-2] if a != "b"]
    if bias.dim() < 3:
        return bias
    sizes = [site.size(a) for a in heads]
    admit.heads(bias, prod(sizes), _scores(site, axes))
    if len(heads) < 2:
        return bias if heads else bias.squeeze(-3)
    count = bias.shape[-3]
    return bias.unflatten(-3, sizes if count != 1 else [1] * len(heads))
