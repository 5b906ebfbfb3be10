"""Whether a model runs and where it does not, why: building it small and without values is the one source of that."""

from __future__ import annotations

from assay.errors import AssayError, BuildError
from assay.execution.entry import build
from assay.records import dataclass
from assay.rewrites.shrink import shrink
from assay.spec import Model


@dataclass(frozen=True)
class Runs:
    """What of a model runs: all of it, all but `without` and why, or nothing, for the reason `why`."""

    why: str | None = None
    without: tuple[str, ...] = ()


def runs(model: Model) -> Runs:
    """Build a model's structure, small and on the meta device."""
    try:
        made = build(shrink(model), device="meta", attention="plain")
    except AssayError as error:
        return Runs(_reason(error))
    towers = made.towers.items()
    return Runs(without=tuple(tower.why or "" for _, tower in towers if tower.refused is not None))


def _reason(error: AssayError) -> str:
    return (error.why if isinstance(error, BuildError) else None) or str(error)
