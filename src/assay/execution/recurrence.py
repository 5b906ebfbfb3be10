"""States that tokens update and read in turn, in their recurrent form.

Every multiply-add that a scan is said to cost is made by a product: the update is an outer product added to the decayed
state, a read-out a product of the state and a vector, and where each element of a state stands alone, both are products
of one-by-one matrices. So a counter of products sees what the description says: 2 FLOPs for each element of the state
that is updated, and 2 for each that is read. States are float32, whatever the model's dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from assay.execution.sites import Call, Site, fit, fitted
from assay.execution.storage import Getter
from assay.spec import Axes
from assay.spec import Tensor as Operand

Decay = Callable[[int], Tensor]  # of the state at each token, [B 1 1] or what broadcasts to the state


class Frame:
    """The axes of a scan: tokens first, then the batch, then the state's. Refuses what has other ones."""

    def __init__(self, site: Site, inner: int) -> None:
        """`inner` of the state's axes are those of one matrix or vector; the others tell such states apart."""
        named = site.op.attr("state")
        self.state: Axes = (named,) if isinstance(named, str) else tuple(named)
        self.site = site
        self.lead = self.state[: len(self.state) - inner]
        self.own = self.state[len(self.state) - inner :]
        for operand in site.op.activations:
            others = set(operand.axes) - set(self.state)
            if others != {"b", "n"} or operand.axes[0] != "b":
                raise site.refuse(f"{operand} has other axes than batch, tokens and those of the state")
        self.sizes = [site.size(a) for a in self.state]
        self.heads = [site.size(a) for a in self.lead]

    def given(self, operand: Operand, *own: str) -> Callable[[Tensor], Tensor]:
        """An operand as float32 `[n b lead… own…]`, 1 where it lacks an axis."""
        change = fit(operand.axes, ("n", "b", *self.lead, *own))
        return lambda x: (x if change is None else change(x)).float()

    def stored(self, operand: Operand, *own: str) -> Getter:
        """A weight as float32 beside such an operand."""
        get = fitted(self.site.weight(operand), operand.axes, ("n", "b", *self.lead, *own))
        return lambda: get().float()

    def flat(self, x: Tensor) -> Tensor:
        """`[n b lead… own…]` as `[n B own…]`, alike along axes of the lead that it lacks."""
        count = len(self.heads)
        if not count:
            return x
        whole = x.expand(*x.shape[:2], *self.heads, *x.shape[2 + count :])
        return whole.reshape(x.shape[0], -1, *x.shape[2 + count :])

    def begin(self, call: Call, batch: int, like: Tensor, at: float = 0.0) -> Tensor:
        """The state that earlier passes left, `[b state…]`, or what it is before any token."""
        held = None if call.state is None else call.state.get(self.site.key)
        if held is not None:
            return held
        return torch.full((batch, *self.sizes), at, dtype=torch.float32, device=like.device)

    def leave(self, call: Call, state: Tensor, batch: int) -> None:
        """Keep a state for later passes."""
        if call.state is not None:
            call.state[self.site.key] = state.reshape(batch, *self.sizes)

    def result(self, made: Tensor, like: Tensor, *own: str) -> Tensor:
        """`[n B own…]` with the axes of the op, in the dtype of its operands."""
        batch = made.shape[1]
        for size in self.heads:
            batch //= size
        named = made.reshape(made.shape[0], batch, *self.heads, *made.shape[2:])
        order = [("n", "b", *self.lead, *own).index(a) for a in self.site.op.axes]
        return named.permute(order).to(like.dtype)


def present(call: Call, axes: int) -> Tensor | None:
    """True where a token of this pass is one and not padding, `[n b 1…]` with so many axes; None where all are."""
    mask = call.mask
    if mask is None:
        return None
    there: Tensor = call.once(("present",), lambda: mask[:, call.past :].to(torch.bool).transpose(0, 1))
    return there.reshape(*there.shape, *[1] * (axes - 2))


def kept(call: Call, logs: Tensor) -> Tensor:
    """Logarithms of decays `[n b …]`, zero where a token is padding: it leaves no trace."""
    there = present(call, logs.dim())
    return logs if there is None else logs * there


def only(call: Call, x: Tensor) -> Tensor:
    """What tokens write, `[n b …]`, zero where they are padding."""
    there = present(call, x.dim())
    return x if there is None else x.masked_fill(~there, 0.0)


def write_and_read(
    state: Tensor, decay: Decay, rows: Tensor, columns: Tensor, read: Tensor, by_rows: bool
) -> tuple[Tensor, Tensor]:
    """The state decayed, rows x columns added, read along its rows or columns: `[n B R]`, `[n B C]` and a state
    `[B R C]` give what each token reads, and the state at the end.
    """
    down, across = rows.unsqueeze(-1), columns.unsqueeze(-2)
    ask = read.unsqueeze(-2) if by_rows else read.unsqueeze(-1)
    found = []
    for i in range(rows.shape[0]):
        state = torch.baddbmm(state * decay(i), down[i], across[i])
        found.append(torch.bmm(ask[i], state) if by_rows else torch.bmm(state, ask[i]))
    return torch.stack(found).squeeze(-2 if by_rows else -1), state


def correct_and_read(
    state: Tensor, decay: Decay, keys: Tensor, values: Tensor, rates: Tensor, queries: Tensor
) -> tuple[Tensor, Tensor]:
    """The delta rule: each token moves what the state holds for its key towards its value, by a rate, and reads."""
    down, across, key = keys.unsqueeze(-1), values.unsqueeze(-2), keys.unsqueeze(-2)
    ask, rate = queries.unsqueeze(-2), rates.reshape(*rates.shape[:2], 1, 1)
    found = []
    for i in range(keys.shape[0]):
        state = state * decay(i)
        error = (across[i] - torch.bmm(key[i], state)) * rate[i]
        state = torch.baddbmm(state, down[i], error)
        found.append(torch.bmm(ask[i], state))
    return torch.stack(found).squeeze(-2), state


def alone(x: Tensor, y: Tensor, onto: Tensor) -> Tensor:
    """x y + onto of vectors, element by element: products of one-by-one matrices."""
    shape = onto.shape
    return torch.baddbmm(onto.reshape(-1, 1, 1), x.reshape(-1, 1, 1), y.reshape(-1, 1, 1)).reshape(shape)


def steps(decays: Tensor | Sequence[Tensor]) -> Decay:
    """Decays by the index of a token."""
    return lambda i: decays[i]
