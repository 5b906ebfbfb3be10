"""What training holds of each parameter: the parameter, its gradient, a master copy, the optimizer's states.

Bytes by name, from the stored tensors of a model, an optimizer and a precision policy. Where data-parallel ranks
divide states among them (ZeRO; Rajbhandari et al. 2020, arXiv:1910.02054), the figures are one rank's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.errors import SettingError
from assay.kinds.dividing import HERE
from assay.readings.binding import as_model
from assay.readings.dtypes import bytes_of, dtype
from assay.readings.optimizers import Optimizer, State
from assay.readings.optimizers import optimizer as optimizer_of
from assay.readings.precision import Precision
from assay.readings.precision import precision as precision_of
from assay.readings.printed import listed
from assay.readings.tensors import Entry, tensors
from assay.readings.weights import tensor_bytes
from assay.records import dataclass, replace
from assay.size import Size, ceil_div, floor_div, lift, maximum, only_at_zero
from assay.spec import Block, Model

ZERO = (0, 1, 2, 3)  # what ranks divide: nothing, optimizer states, gradients too, parameters too


@dataclass(frozen=True)
class States:
    """Bytes held by one rank for all parameters, by name.

    `parameters` are those that are trained, `frozen` those that are not, each in its own format; `main_gradients` a
    copy in which gradients are added up, `master` the copy that is stepped, `optimizer` the states by name. `gathered`
    is what the largest layer adds while its divided gradients and parameters are whole on each rank, `beside` what the
    optimizer makes while it steps; they are not in the total.
    """

    parameters: Size
    frozen: Size
    buffers: Size
    gradients: Size
    main_gradients: Size
    master: Size
    optimizer: Mapping[str, Size]
    trained: Size  # elements
    elements: Size  # of all parameters
    precision: Precision
    name: str  # of the optimizer
    shards: Size = 1
    zero: int = 0
    gathered: Size = 0
    accumulation: int = 1
    beside: Size = 0

    @property
    def parts(self) -> dict[str, Size]:
        """Every part by name; they sum to the total."""
        named = ("parameters", "frozen", "buffers", "gradients", "main_gradients", "master")
        return {name: getattr(self, name) for name in named} | {f"optimizer.{n}": s for n, s in self.optimizer.items()}

    @property
    def total(self) -> Size:
        """Everything together, as it is while the optimizer steps."""
        return sum(self.parts.values(), start=0)

    @property
    def between(self) -> Size:
        """What stays from step to step, gradients dropped; a copy in which they are added up stays."""
        return self.total - self.gradients

    @property
    def forward(self) -> Size:
        """What is held while a forward pass runs: with several passes a step, the gradients of the passes before."""
        return self.total if self.accumulation > 1 else self.between

    def __str__(self) -> str:
        kept = [(name, size, "") for name, size in self.parts.items() if str(size) != "0"]
        return listed(f"{self.name} · {self.precision.name} · bytes", [*kept, ("total", self.total, "")])


def states(
    model: Model | Block,
    *,
    optimizer: str | Optimizer = "adamw",
    precision: str | Precision = "bf16",
    frozen: str | None = None,
    accumulation: int = 1,
    zero: int = 0,
    shards: object = 1,
    expert_shards: object = None,
    **sizes: object,
) -> States:
    """What training holds of a model's parameters, in bytes.

    `frozen` is the dtype of weights that are not trained and have no format of their own, by default the policy's of
    parameters. `accumulation` is how many passes are added up before a step; `zero` is what `shards` data-parallel
    ranks divide: 0 nothing, 1 the optimizer's states and the master copy, 2 gradients too, 3 parameters too; a rank
    holds as many elements as the largest share. `expert_shards` ranks divide those of routed experts that expert ranks
    divide already, as many as others where None. Raises SettingError and SizeError.
    """
    whole = as_model(model, sizes, states)
    chosen, policy = optimizer_of(optimizer), precision_of(precision)
    if zero not in ZERO or isinstance(zero, bool):
        raise SettingError(f"zero is {zero!r}; known: 0, 1, 2, 3")
    ranks = lift(shards, "shards")
    divided = _Shares(ranks, ranks if expert_shards is None else lift(expert_shards, "expert_shards"), zero)
    plain = policy.parameters if frozen is None else dtype(frozen, "frozen")
    every = tensors(whole)
    trained = [e for e in every if not e.buffer and not e.frozen]
    held = {stage: sum((divided(e, e.elements, stage) for e in _groups(trained)), start=0) for stage in (1, 2, 3)}
    return States(
        _bytes(held[3], policy.parameters),
        sum((_stored(e, plain, divided) for e in every if e.frozen and not e.buffer), start=0),
        sum((bytes_of(e.elements * e.times, policy.parameters) for e in every if e.buffer), start=0),
        _bytes(held[2], policy.gradients),
        _bytes(held[2], policy.main_gradients),
        _bytes(held[1], policy.master),
        {name: _sum(found, divided) for name, found in _kept(trained, chosen, policy).items()},
        sum((e.elements * e.times for e in trained), start=0),
        sum((e.elements * e.times for e in every if not e.buffer), start=0),
        policy,
        chosen.name,
        divided.ranks,
        zero,
        _gathered(_largest(whole, every), policy, zero) if zero > 1 else 0,
        lift(accumulation, "accumulation"),
        sum((_sum(found, divided) for found in _kept(trained, _beside(chosen), policy).values()), start=0),
    )


@dataclass(frozen=True)
class _Group:
    """Elements of trained tensors that as many ranks divide."""

    elements: Size
    routed: bool


def _routed(entry: Entry) -> bool:
    """True for experts that expert ranks divide."""
    return any(HERE in dim for dim in entry.dims) or HERE in entry.path


def _groups(trained: list[Entry]) -> list[_Group]:
    """Routed experts of a rank apart from the rest."""
    return [
        _Group(sum((e.elements * e.times for e in trained if _routed(e) == routed), start=0), routed)
        for routed in (False, True)
    ]


class _Shares:
    """How many elements a rank holds of what ranks divide: as many as the largest share."""

    def __init__(self, ranks: Size, expert_ranks: Size, zero: int) -> None:
        self.ranks = ranks
        self.expert_ranks = expert_ranks
        self.zero = zero

    def __call__(self, of: _Group | Entry, elements: Size, stage: int) -> Size:
        """Of what is divided from a stage on."""
        if self.zero < stage:
            return elements
        routed = of.routed if isinstance(of, _Group) else _routed(of)
        return ceil_div(elements, self.expert_ranks if routed else self.ranks)


def _bytes(elements: Size, kept: str | None) -> Size:
    return 0 if kept is None else bytes_of(elements, kept)


def _sum(found: Mapping[tuple[str, bool], Size], divided: _Shares) -> Size:
    """Bytes of a state, by the dtypes that it has, of routed experts and of the rest."""
    return sum(
        (bytes_of(divided(_Group(size, routed), size, 1), kept) for (kept, routed), size in found.items()), start=0
    )


def _stored(entry: Entry, plain: str, divided: _Shares) -> Size:
    """Bytes of a frozen tensor as it is stored, its share where parameters are divided."""
    if entry.checkpoint and any(one.format is not None for one in entry.checkpoint):
        copies = len(entry.layers) or 1
        whole = sum((copies * one.times * tensor_bytes(one, plain) for one in entry.checkpoint), start=0)
        return divided(entry, whole, 3)
    return bytes_of(divided(entry, entry.elements * entry.times, 3), plain)


def _kept(trained: list[Entry], chosen: Optimizer, policy: Precision) -> dict[str, dict[tuple[str, bool], Size]]:
    """Elements of the states by name, and by dtype and whether they are of routed experts."""
    made: dict[str, dict[tuple[str, bool], Size]] = {}
    for entry in trained:
        for state, elements in _states_of(entry, chosen):
            own = made.setdefault(state.name, {})
            key = (state.dtype or policy.kept, _routed(entry))
            own[key] = own.get(key, 0) + entry.times * elements
    return made


def _beside(chosen: Optimizer) -> Optimizer:
    """An optimizer that keeps what the step of another makes."""
    return replace(chosen, states=chosen.beside or (), least=0, others=None)


def _states_of(entry: Entry, chosen: Optimizer) -> Iterator[tuple[State, Size]]:
    """The states of one tensor, and how many elements each has."""
    if chosen.others is not None and (entry.part in ("embedding", "head") or len(entry.shape) < 2):
        chosen = optimizer_of(chosen.others)
    if not chosen.least:
        yield from ((state, state.elements(entry.shape)) for state in chosen.states)
        return
    large = floor_div(entry.elements, chosen.least)  # 0 for a small one
    for state in chosen.states:
        yield state, only_at_zero(0, large, state.elements(entry.shape))
    for state in chosen.small:
        yield state, only_at_zero(state.elements(entry.shape), large)


def _gathered(elements: Size, policy: Precision, zero: int) -> Size:
    """Bytes of one layer's gradients until ranks have added them up, and of its parameters while it runs."""
    gradients = _bytes(elements, policy.gradients or policy.parameters)
    return gradients if zero < ZERO[-1] else gradients + _bytes(elements, policy.compute)


def _largest(model: Model, every: tuple[Entry, ...]) -> Size:
    """Elements of the parameters that are whole together at once: of the largest layer, or of what occurs once."""
    found: Size = 0
    for segment in model.segments:
        paths = {segment.block.weight(w.name).path for op in segment.block.ops for w in op.weights}
        own = [e for e in every if e.path in paths and e.layers in ((), segment.layers) and not e.buffer]
        found = maximum(found, sum((e.elements * (e.times // (len(e.layers) or 1)) for e in own), start=0))
    return found
