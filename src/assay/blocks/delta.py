"""The delta rule with a gate: each token corrects what the state holds for its key, so that it reads the state once to
write and once to answer (Yang et al. 2024).

Axes: J key heads, H value heads of each, S the width of a key, Q of a value, K the columns of the convolution, R the
rank of a gate.
"""

from __future__ import annotations

from assay.blocks.ends import Norm
from assay.blocks.recurrent import convolve, emit, gate, project, step
from assay.records import dataclass
from assay.spec import Op, ops

UNIT = 1e-6  # added to the squared length of queries and keys, which are brought to one


@dataclass(frozen=True)
class GatedDelta:
    """The gated delta rule (Yang et al. 2024, arXiv:2412.06464): a decay a value head."""

    key_heads: int
    value_heads: int
    key_width: int
    value_width: int
    kernel: int = 4
    norm: Norm | None = Norm()  # of each head's output
    overshoot: bool = False  # a token may move the state by up to twice its error: eigenvalues down to -1

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {
            "J": self.key_heads,
            "H": self.value_heads // self.key_heads,
            "S": self.key_width,
            "Q": self.value_width,
            "K": self.kernel,
        }

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source = f"{x}[b n d]"
        made = read_write(source, "J H Q") + project("z", "Wz", "J H Q", source=source)
        made += project("w", "Wb", "J H", source=source) + ops("mixer", "w = sigmoid(w[b n J H]) -> [b n J H]")
        if self.overshoot:
            made += ops("mixer", "w = scale(w[b n J H], by=2.0) -> [b n J H]")
        made += project("t", "Wa", "J H", source=source) + step("J H")
        scanned = "q[b n J S], k[b n J S], v[b n J H Q], w[b n J H], t[b n J H], mixer.A[J H]"
        line = f"o = scan({scanned}, state=('J', 'H', 'S', 'Q'), reads=2, rule=delta) -> [b n J H Q]"
        made += ops("mixer", line, scale=self.key_width**-0.5, unit=UNIT)
        if self.norm is not None:
            made += self.norm.ops("o", "o", "mixer", "b n J H Q", "Q")
        return made + gate("o", "z", "J H Q") + emit(y, "J H Q", False)


@dataclass(frozen=True)
class KimiDelta:
    """Kimi delta attention (Kimi Team 2025, arXiv:2510.26692): a decay for each element of a key."""

    heads: int
    head_width: int
    kernel: int = 4
    rank: int | None = None  # of the decay's and the output gate's matrices, which are whole where None
    floor: float | None = None  # the least logarithm of a decay, where it is kept above one
    norm: Norm = Norm()  # of each head's output

    part = "mixer"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"J": self.heads, "S": self.head_width, "Q": self.head_width, "R": self.rank, "K": self.kernel}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        source = f"{x}[b n d]"
        made = read_write(source, "J Q") + self.narrow("t", "f", "J S", source)
        # above a floor the decay is a sigmoid of the time step, else a softplus
        made += step("J S")[: 1 if self.floor is not None else 2]
        made += project("w", "Wb", "J", source=source) + ops("mixer", "w = sigmoid(w[b n J]) -> [b n J]")
        scanned = "q[b n J S], k[b n J S], v[b n J Q], w[b n J], t[b n J S], mixer.A[J]"
        line = f"o = scan({scanned}, state=('J', 'S', 'Q'), reads=2, rule=delta) -> [b n J Q]"
        made += ops("mixer", line, scale=self.head_width**-0.5, unit=UNIT, floor=self.floor)
        made += self.norm.ops("o", "o", "mixer", "b n J Q", "Q")
        return made + self.narrow("z", "g", "J Q", source) + gate("o", "z", "J Q", "sigmoid") + emit(y, "J Q", False)

    def narrow(self, name: str, letter: str, axes: str, source: str) -> list[Op]:
        """One matrix, or two of a rank between them."""
        if self.rank is None:
            return project(name, f"W{letter}", axes, source=source)
        down = project(name, f"W{letter}a", "R", source=source)
        return down + project(name, f"W{letter}b", axes, source=f"{name}[b n R]")


def read_write(source: str, value: str) -> list[Op]:
    """Queries, keys and values, each through a short convolution."""
    made: list[Op] = []
    for name, axes in (("q", "J S"), ("k", "J S"), ("v", value)):
        made += project(name, f"W{name}", axes, source=source) + convolve(name, f"K{name}", axes)
    return made
