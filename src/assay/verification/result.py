"""What was said and what was measured."""

from __future__ import annotations

from assay.records import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One figure both ways; None where one side has none."""

    name: str
    said: int | None
    measured: int | None
    unit: str = ""

    @property
    def difference(self) -> int | None:
        """Measured less said."""
        return None if self.said is None or self.measured is None else self.measured - self.said

    @property
    def alike(self) -> bool:
        """True where there is no difference."""
        return self.difference == 0


@dataclass(frozen=True)
class OpFigure:
    """A figure of one op in one layer; a shape, or an error in place of one, as text."""

    layer: str
    op: str
    name: str
    said: int | str
    measured: int | str

    @property
    def alike(self) -> bool:
        """True where there is no difference."""
        return self.said == self.measured


@dataclass(frozen=True)
class Proof:
    """What a model was held against: itself shrunk and run op by op, or its public implementation.

    `setting` says what was run; `ops` are all figures op by op; `without` what was left out, and why.
    """

    name: str
    setting: str
    figures: tuple[Figure, ...]
    ops: tuple[OpFigure, ...] = field(default=(), repr=False)
    without: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[OpFigure, ...]:
        """Figures of ops that differ."""
        return tuple(figure for figure in self.ops if not figure.alike)

    @property
    def alike(self) -> bool:
        """True where nothing differs."""
        return not self.differing and all(figure.alike for figure in self.figures)


@dataclass(frozen=True)
class Verdict:
    """All that was compared of one model, or why it cannot be run."""

    name: str
    proofs: tuple[Proof, ...] = ()
    refused: str | None = None

    @property
    def alike(self) -> bool:
        """True where nothing that was compared differs."""
        return all(proof.alike for proof in self.proofs)
