"""An op by hand: a line of the notation, what each of its columns holds, and lines that do not fit.

Sizes are distinct primes, so that no product of some axes equals one of others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.kinds import SORTS

SIZES = {
    "b": 2, "n": 3, "past": 5, "d": 7, "f": 11, "g": 13, "r": 17, "k": 19, "e": 23, "a": 29, "V": 31, "P": 37,
    "w": 41, "chunk": 43, "t": 47, "m": 53, "s": 59, "rot": 61, "i": 67, "o": 6,
}  # fmt: skip
B, N, PAST, D, F, G, R, K, E, A, V = (SIZES[axis] for axis in "b n past d f g r k e a V".split())
M, S, W, CHUNK, T, ROT = (SIZES[axis] for axis in "m s w chunk t rot".split())
C = N + PAST  # keys at hand behind all that came before


@dataclass(frozen=True)
class Witness:
    """One line and its columns at SIZES; `after` are lines that bind axes before it."""

    line: str
    work: dict[str, int] = field(default_factory=dict)
    reads: int = 0
    weighs: int = 0
    writes: int = 0
    state: int | None = None
    grows: int | None = None
    active: int | None = None
    moves: int | None = None
    moves_back: int | None = None
    layout: dict[str, tuple[str, ...]] = field(default_factory=dict)
    after: str = ""
    misfits: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the line."""
        return self.line.split("=", 1)[1].split("(")[0].strip()

    @property
    def text(self) -> str:
        """The lines as a block."""
        return f"{self.after}\n{self.line}"


BND = B * N * D
KEYS = "k0 = append(k[b n g k]) -> [b c g k]"
SCORES = B * G * R * N * C
ROWS = B * T


def element(name: str, misfit: str = "", **work: int) -> Witness:
    """An activation of one operand: the work of one element times all."""
    assert work.keys() <= SORTS.keys()
    return Witness(
        f"y = {name}(x[b n d]) -> [b n d]",
        work={sort: times * BND for sort, times in work.items()},
        reads=BND,
        writes=BND,
        misfits=(f"y = {name}(x[b n d]) -> [b n f]", f"y = {name}(x[b n d]) -> [b n]", misfit)
        if misfit
        else (f"y = {name}(x[b n d]) -> [b n f]", f"y = {name}(x[b n d]) -> [b n]"),
    )
