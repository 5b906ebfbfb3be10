"""How a model is divided among ranks: the plan, and the ranks that differ under it."""

from __future__ import annotations

from assay.errors import SettingError
from assay.records import dataclass, field
from assay.size import is_integer
from assay.spec import Model


@dataclass(frozen=True)
class Plan:
    """Ranks of each sort of parallelism.

    `data` replicas, each with a batch of its own, divide states by `zero` (Rajbhandari et al. 2020): 0 nothing, 1 the
    optimizer's states, 2 gradients too, 3 parameters too, as FSDP does. `tensor` ranks divide heads, inner widths and
    the vocabulary (Shoeybi et al. 2019), with `sequence` the tokens of norms and of the residual stream too
    (Korthikanti et al. 2022). `pipeline` is stages of layers. `expert` ranks divide routed experts among them, each of
    which `expert_tensor` ranks divide: 1, or as many as `tensor` (also if None).
    `microbatches` pass the stages one after another in a step, as many as there are stages if None.
    """

    data: int = 1
    zero: int = 0
    tensor: int = 1
    sequence: bool = False
    pipeline: int = 1
    expert: int = 1
    expert_tensor: int | None = None
    microbatches: int | None = None

    def __post_init__(self) -> None:
        """Raise SettingError for numbers of ranks that no plan has."""
        for name in ("data", "tensor", "pipeline", "expert", "expert_tensor", "microbatches"):
            value = getattr(self, name)
            if value is None and name in ("expert_tensor", "microbatches"):
                continue
            if not is_integer(value) or value < 1:
                raise SettingError(f"{name} is {value!r}; it must be an integer of at least 1")
        if not is_integer(self.zero) or self.zero not in (0, 1, 2, 3):
            raise SettingError(f"zero is {self.zero!r}; known: 0, 1, 2, 3")
        if self.within not in (1, self.tensor):
            raise SettingError(f"expert_tensor is {self.within}; known: 1, or as many as tensor, {self.tensor}")
        if self.sequence and self.tensor == 1:
            raise SettingError("sequence divides tokens among tensor ranks, and tensor is 1")
        if self.microbatches is not None and self.pipeline == 1:
            raise SettingError(f"microbatches is {self.microbatches}; they pass stages, and pipeline is 1")
        if (self.data * self.tensor) % (self.expert * self.within):
            raise SettingError(
                f"expert x expert_tensor is {self.expert} x {self.within}; it must divide data x tensor, "
                f"{self.data} x {self.tensor}"
            )

    @property
    def within(self) -> int:
        """Ranks that divide each routed expert."""
        return self.tensor if self.expert_tensor is None else self.expert_tensor

    @property
    def world(self) -> int:
        """All ranks."""
        return self.data * self.tensor * self.pipeline

    @property
    def replicas(self) -> int:
        """Ranks that hold the same routed experts."""
        return self.data * self.tensor // (self.expert * self.within)

    def in_flight(self, stage: int) -> int:
        """Microbatches whose activations a stage holds at once: those that are on their way to the end and back."""
        given = self.pipeline if self.microbatches is None else self.microbatches
        return min(self.pipeline - stage, given)

    def __str__(self) -> str:
        said = [f"{name} {getattr(self, name)}" for name in ("data", "tensor", "pipeline", "expert")]
        made = [one for one in said if not one.endswith(" 1")]
        made += [f"zero {self.zero}"] if self.zero else []
        made += ["sequence"] if self.sequence else []
        return ", ".join(made) or "one rank"


@dataclass(frozen=True)
class Rank:
    """What `count` ranks hold alike: a model of their own. `stages` are where they stand, counted from 0."""

    name: str
    model: Model = field(repr=False)
    count: int
    plan: Plan
    stages: tuple[int, ...] = (0,)

    @property
    def in_flight(self) -> int:
        """Microbatches whose activations it holds at once; of several stages, the first."""
        return self.plan.in_flight(self.stages[0])
