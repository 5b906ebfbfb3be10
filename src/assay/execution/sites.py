"""What the function of an op knows before it runs (its site), and what it is told each time (the call)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from assay.errors import BuildError
from assay.execution.storage import Getter, Tree, Weights
from assay.records import dataclass, field
from assay.registry import entered
from assay.spec import Axes, Model, Op
from assay.spec import Tensor as Operand

Run = Callable[..., Tensor]  # (call, *activations) -> result
Rule = Callable[["Site"], Run]

RULES: dict[str, Rule] = {}
# kinds that are counted and not run, and why
NOT_RUN: dict[str, str] = {
    "blocks": "sums of blocks are seen by tokens of other blocks, and which these are is not said",
    "collision": "hashed attention needs queries and keys of length one, which the description does not make",
    "offsets": "relative positions of a conformer are not run yet",
    "batchnorm": "the convolution beside a conformer's attention is not run yet",
    "sparsify": "what is above a share of a normal distribution is not run yet",
    "running_norm": "norms of all that came so far are not run yet",
    **dict.fromkeys(
        ("cast", "copy", "dropout", "log_softmax", "nll", "power", "rsqrt"),
        "how another implementation runs a description is counted, and not run",
    ),
    **dict.fromkeys(
        ("all_to_all", "receive", "send"),
        "what experts and stages send each other is counted, and not run",
    ),
}


def runs(*kinds: str) -> Callable[[Rule], Rule]:
    """A rule is how ops of these kinds run. Raises BuildError where one of them runs otherwise already."""
    return entered(RULES, kinds, lambda kind: BuildError(f"the kind {kind!r} runs in two ways"))


@dataclass()
class Call:
    """One pass: how many tokens, how many before them, and what was given with them.

    `mask` is True where a token of the context is there, [b, past + tokens]; `source_mask` the same of the source;
    `bias` is added to attention scores; `positions` are those of the tokens where they are not one behind the other,
    [n], [b n], or [3 b n] in time, height and width. `state` holds what ops leave for the next pass, None where
    nothing is kept.
    """

    tokens: int
    past: int = 0
    logits: str = "all"
    mask: Tensor | None = None
    source_mask: Tensor | None = None
    bias: Tensor | None = None
    given: dict[str, Tensor] = field(default_factory=dict)
    state: dict[Hashable, Any] | None = None
    device: Any = None
    positions: Tensor | None = None
    batch: int = 1
    memo: dict[Hashable, Any] = field(default_factory=dict)  # what several layers need, made once
    near: dict[Hashable, Any] = field(default_factory=dict)  # the same of ops of one layer
    seen: tuple[Tensor, Tensor] | None = None  # where in the text what a tower made stands, and that

    def where(self) -> Tensor:
        """The positions of the tokens of this pass, [n] where the caller gave no others."""
        if self.positions is not None:
            return self.positions
        found: Tensor = self.once(
            ("where",), lambda: torch.arange(self.past, self.past + self.tokens, device=self.device)
        )
        return found

    def distances(self) -> Tensor:
        """How far each key at hand is behind each token of this pass, [n c]: below zero where it is before."""

        def make() -> Tensor:
            tokens = torch.arange(self.past, self.past + self.tokens, device=self.device)
            return torch.arange(self.past + self.tokens, device=self.device)[None, :] - tokens[:, None]

        found: Tensor = self.once(("distances",), make)
        return found

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, made at the first asking in this pass."""
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = make()
        return found

    def in_layer(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, made at the first asking in this layer."""
        found = self.near.get(key)
        if found is None:
            found = self.near[key] = make()
        return found


class Site:
    """Where an op stands: its layer, its operands, its weights, the sizes that no setting changes."""

    def __init__(
        self, model: Model, root: Tree, weights: Weights, index: int, layer: int | None, turn: int = 0
    ) -> None:
        self.model, self.root, self.stored, self.index, self.layer = model, root, weights, index, layer
        self.turn = turn  # where layers run several times
        self.block, self.segment = weights.block, weights.segment
        self.op: Op = self.block.ops[index]

    def size(self, axis: str) -> int:
        """The size of an axis of the architecture."""
        size = self.stored.sizes.get(axis)
        if size is None:
            raise self.refuse("a size that it needs is known only while it runs", f"the axis {axis}")
        return size

    def value(self, name: str, default: Any = None) -> Any:
        """An attribute; where it names a size of the block, that size."""
        value = self.op.attr(name, default)
        return self.stored.sizes.get(value, value) if isinstance(value, str) else value

    def weight(self, weight: Operand, *groups: Axes) -> Getter:
        """How to get a weight with a dimension for each group of axes; for each axis where no groups are named."""
        wanted: Sequence[Axes] = groups or [(axis,) for axis in weight.axes]
        return self.stored.view(self.root, weight, self.layer, wanted)

    def makers(self, axis: str) -> list[Op]:
        """The ops of this block whose results are the first to have an axis."""
        ops = self.block.ops
        return [op for op in ops if axis in op.axes and all(axis not in t.axes for t in op.activations)]

    def source_of(self, operand: Operand) -> Op | None:
        """The op before this one that made an operand."""
        return next((op for op in reversed(self.block.ops[: self.index]) if op.name == operand.name), None)

    @property
    def key(self) -> Hashable:
        """What tells the state of this op from all others."""
        return (self.segment.name, self.segment.layers, self.layer, self.index, self.turn)

    def where(self) -> str:
        """The op as an error names it."""
        layer = "" if self.layer is None else f" {self.layer}"
        return f"{self.segment.name}{layer}: {self.op}"

    def refuse(self, why: str, detail: str = "") -> BuildError:
        """An error that names the op. `why` is said of all models alike, `detail` what is so in this one."""
        error = BuildError(f"{self.where()}: {why}{f'; {detail}' if detail else ''}")
        error.why = why
        return error


def fit(axes: Axes, to: Axes) -> Callable[[Tensor], Tensor] | None:
    """How a tensor of some axes is brought beside one of others: in their order, 1 where it lacks an axis.

    None where there is nothing to do: the same axes in the same order, or the last of them.
    """
    have = [axis for axis in to if axis in axes]
    if tuple(have) == axes and to[len(to) - len(axes) :] == axes:
        return None
    order = [axes.index(axis) for axis in have]
    index = tuple(slice(None) if axis in axes else None for axis in to)
    if order == sorted(order):
        return lambda tensor: tensor[index]
    return lambda tensor: tensor.permute(order)[index]


def fitted(get: Getter, axes: Axes, to: Axes) -> Getter:
    """The same of a weight."""
    change = fit(axes, to)
    return get if change is None else lambda: change(get())
