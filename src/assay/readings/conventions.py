"""What counts as a FLOP: each convention prices the sorts of scalar work."""

from __future__ import annotations

from collections.abc import Mapping

from assay.errors import among
from assay.kinds import Work
from assay.records import dataclass
from assay.size import Size


@dataclass(frozen=True)
class Convention:
    """FLOPs of each sort of scalar work; `visible` counts only pairs that the mask lets through."""

    name: str
    says: str
    prices: Mapping[str, int]
    visible: bool = False
    source: str = ""

    @property
    def contractions_only(self) -> bool:
        """True where nothing but contractions has a price."""
        return self.prices.keys() <= {"multiply_add", "start"}

    def flops(self, work: Work) -> Size:
        """The price of some work."""
        total: Size = 0
        for sort, amount in work.items():
            price = self.prices.get(sort)
            if price:
                total = total + price * amount
        return total


_SCALAR = dict.fromkeys(("multiply", "add", "divide", "exp", "root", "function", "compare"), 1)

CONVENTIONS = {
    c.name: c
    for c in (
        Convention(
            "matmul",
            "2 per multiply-add of every contraction; attention dense, n x (past + n)",
            {"multiply_add": 2},
            source="the usual count; what PyTorch's FLOP counter gives",
        ),
        Convention(
            "causal",
            "as matmul, attention only over the pairs that the mask lets through, exactly",
            {"multiply_add": 2},
            visible=True,
            source="what a kernel that skips masked blocks does",
        ),
        Convention(
            "scalar",
            "every scalar operation is one: a dot product of length k costs 2k - 1, a softmax row of n costs 3n - 1",
            {"multiply_add": 2, "start": -1, **_SCALAR},
            source="exact counts of textbooks; no row maximum is found or subtracted",
        ),
        Convention(
            "stable-softmax",
            "as matmul, plus 5 for each element of each head's softmax",
            {"multiply_add": 2, "softmax": 5},
            source="maximum, subtraction, exponential, sum, division",
        ),
    )
}


def convention(name: object) -> Convention:
    """The convention of that name. Raises SettingError."""
    return CONVENTIONS[among(name, "convention", CONVENTIONS)]
