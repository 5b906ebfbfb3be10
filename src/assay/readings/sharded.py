"""What each rank of a plan holds, for inference or for a training step, and which of them holds the most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.readings.exchanged import exchanged, synchronized
from assay.readings.memory import Memory, memory
from assay.readings.step import TrainingMemory, training_memory
from assay.records import dataclass, field
from assay.rewrites.plan import Plan, Rank
from assay.rewrites.recompute import recompute
from assay.rewrites.shard import shard
from assay.spec import Model


@dataclass(frozen=True)
class RankMemory:
    """Bytes that one of `rank.count` ranks holds at its fullest moment, by part, and what it sends to others.

    `sent` is of one pass over a batch, of training forward and backward, by the sort of parallelism; `data` of a step.
    """

    rank: Rank
    parts: Mapping[str, int]
    sent: Mapping[str, int]
    memory: Memory | TrainingMemory = field(repr=False)

    @property
    def bytes(self) -> int:
        """All parts together."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Sharded:
    """Every distinct rank of a plan, in order of its stages."""

    plan: Plan
    ranks: tuple[RankMemory, ...]

    @property
    def most(self) -> RankMemory:
        """The rank that holds the most."""
        return max(self.ranks, key=lambda one: one.bytes)

    @property
    def total(self) -> int:
        """Bytes of all ranks together."""
        return sum(one.rank.count * one.bytes for one in self.ranks)


def sharded(model: Model, plan: Plan, *, train: bool = False, **asked: Any) -> Sharded:
    """What the ranks of a plan hold: of a pass as `assay.memory` is asked, or of a step as `assay.training_memory`.

    Batches are those of one rank, and in a pipeline of one microbatch. Raises SettingError and SizeError.
    """
    ranks = shard(model, plan)
    return Sharded(plan, tuple(_trained(rank, asked) if train else _served(rank, asked) for rank in ranks))


def _served(rank: Rank, asked: Mapping[str, Any]) -> RankMemory:
    made = memory(rank.model, **asked)
    sent = exchanged(rank.model, made.setting, made.setting.cache)
    return RankMemory(rank, {part.name: part.bytes for part in made.parts}, _ints(sent), made)


def _trained(rank: Rank, asked: Mapping[str, Any]) -> RankMemory:
    plan = rank.plan
    given = dict(asked)
    if plan.pipeline > 1:
        passes = plan.pipeline if plan.microbatches is None else plan.microbatches
        given["accumulation"] = max(passes, given.get("accumulation", 1))
    given |= {"zero": plan.zero, "shards": plan.data, "expert_shards": plan.replicas, "in_flight": rank.in_flight}
    made = training_memory(rank.model, **given)
    policy = made.states.precision
    sent = exchanged(recompute(rank.model, made.recompute), made.setting, policy.compute, backward=True)
    if plan.data > 1:
        sent |= synchronized(made.states, policy.main_gradients or policy.gradients or policy.parameters)
    return RankMemory(rank, {n: size for n, size in made.peak.parts.items() if size}, _ints(sent), made)


def _ints(sent: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(size) for name, size in sent.items()}
