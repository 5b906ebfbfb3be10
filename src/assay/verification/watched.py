"""A model that runs with each op as a module of its own, so that a counter tells them apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from assay.execution.module import Executable, Layer, Step
from assay.readings.binding import bind, placed
from assay.records import dataclass, replace
from assay.size import Size
from assay.verification.result import OpFigure

SOURCE, TARGET = "source", "plan"


@dataclass(frozen=True)
class Place:
    """Where an op stands: the tower that it belongs to, "" for none, its module's path, its layer and the step."""

    tower: str
    path: str
    layer: Layer
    step: Step


class Watched(nn.Module):  # type: ignore[misc]
    """Runs as the model does. `shapes` is how each result came out in the last pass, `failed` the op that did not."""

    def __init__(self, model: Executable) -> None:
        super().__init__()
        self.model = model
        self.ops = nn.ModuleDict()
        self.places: list[Place] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.failed: tuple[Place, str] | None = None
        plans = [("", SOURCE, model.source_plan), ("", TARGET, model.plan)]
        plans += [(name, name, tower.layers) for name, tower in towers(model).items()]
        for tower, name, plan in plans:
            plan[:] = [self._watch(tower, f"{name}-{index}", layer) for index, layer in enumerate(plan)]

    def _watch(self, tower: str, name: str, layer: Layer) -> Layer:
        steps = []
        for index, step in enumerate(layer.steps):
            place = Place(tower, f"{name}-{index}", layer, step)
            self.places.append(place)
            self.ops[place.path] = _Op(self, place)
            steps.append(replace(step, run=self.ops[place.path]))
        return replace(layer, steps=tuple(steps))

    def forward(self, *given: Any, **named: Any) -> Tensor:
        """The model's result."""
        self.shapes = {}
        return self.model(*given, **named)

    def of(self, tower: str) -> list[Place]:
        """The ops of a tower, of everything else for ""."""
        return [place for place in self.places if place.tower == tower]

    def compared(self, sizes: Mapping[str, Size]) -> list[OpFigure]:
        """The shape of every result that came out, beside what the description says in a setting of these sizes."""
        found = []
        extents: dict[int, Mapping[str, Size]] = {}
        for place in self.places:
            if place.path not in self.shapes:
                continue
            block = place.layer.block
            if id(block) not in extents:
                extents[id(block)] = bind(block, placed(place.layer.segment, sizes)).sizes
            said = [extents[id(block)][axis] for axis in place.step.op.axes]
            shape = list(self.shapes[place.path])
            found.append(OpFigure(place.layer.where(), str(place.step.op), "shape", str(said), str(shape)))
        return found


def towers(model: Executable) -> dict[str, Any]:
    """The towers of a model by what they see or hear."""
    return dict(getattr(model, "towers", {}))


class _Op(nn.Module):  # type: ignore[misc]
    """One op."""

    def __init__(self, whole: Watched, place: Place) -> None:
        super().__init__()
        self._whole = (whole,)  # not a module of this one
        self._place = place

    def forward(self, *given: Any) -> Tensor:
        """The op's result, its shape noted."""
        (whole,) = self._whole
        try:
            result = self._place.step.run(*given)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            whole.failed = self._place, " ".join(str(error).split())
            raise
        whole.shapes[self._place.path] = tuple(result.shape)
        return result
