"""Which costs dominate a prefill of some length: in compute the MLP or attention, in memory hidden or scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.errors import SettingError
from assay.readings.crossovers import COMPARISONS, Measured, images_alone, lengthened, no_lengths
from assay.records import dataclass
from assay.spec import Model, check_model


@dataclass(frozen=True)
class Regime:
    """Which costs dominate a prefill of so many tokens, over all layers together.

    Attention (projections and scores) against the MLP in FLOPs, and, in elements that a plain implementation writes,
    the scores of all heads against what the MLP's last matrix reads.
    """

    tokens: int
    attention: int
    mlp: int
    scores: int
    hidden: int

    @property
    def compute(self) -> str:
        """What most FLOPs go to."""
        return "attention" if self.attention >= self.mlp else "MLP"

    @property
    def memory(self) -> str:
        """What is the larger of the two."""
        return "scores" if self.scores >= self.hidden else "hidden"


def regimes(model: Model, contexts: Iterable[int], **asked: Any) -> tuple[Regime, ...]:
    """Which costs dominate at each of some lengths. Raises SettingError where the model has no attention or no MLP."""
    check_model(model)
    no_lengths(asked, "regimes are of the contexts that are given")
    given: object = contexts
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SettingError(f"contexts is {contexts!r}; it must be integers, such as [512, 8192]")
    stretched, asked = lengthened(model, asked)
    measured = Measured(stretched if images_alone(model) else model, "prefill", asked)
    made = []
    for length in contexts:
        found = measured(length)
        if not found["scores"] or not found["mlp"]:
            raise SettingError(f"{model.name} has no {'MLP' if found['scores'] else 'attention'} to compare")
        made.append(Regime(length, found["attention"], found["mlp"], found["score matrix"], found["hidden"]))
    return tuple(made)


def edges(model: Model, **asked: Any) -> tuple[int | None, int | None]:
    """The fewest tokens from which on attention leads over the MLP, and scores over what its last matrix reads."""
    stretched, known = lengthened(model, asked)
    measured = Measured(stretched, "prefill", known)
    compute, memory = COMPARISONS[0], next(one for one in COMPARISONS if one.left == "score matrix")
    return measured.reach(compute)[1], measured.reach(memory)[1]
