"""One chip."""

from __future__ import annotations

from collections.abc import Mapping

from assay.errors import HardwareError
from assay.records import dataclass, field


@dataclass(frozen=True)
class Source:
    """Where figures are from: a document, its address, the figures that it gives.

    `copy` is the address of a page that repeats them, where that and not the document was read.
    """

    title: str
    address: str
    gives: tuple[str, ...]
    copy: str | None = None


@dataclass(frozen=True)
class Chip:
    """The peak figures of a chip or card.

    `memory` is in bytes: those that its driver says there are, where that is known, else those it is sold with.
    `bandwidth` is that of its memory in bytes/s. `rates` are FLOP/s (integer operations/s) of dense matrix products by
    the dtype of their factors; those of 16 bits and fewer accumulate in 32. `interconnect` is in bytes/s, all links to
    other chips and both directions together; `power` in watts, the most it is made for. None where nobody prints one.
    """

    name: str
    title: str
    sold: str
    memory: int
    bandwidth: int
    rates: Mapping[str, int]
    interconnect: int | None = None
    links: str | None = None
    power: float | None = None
    note: str | None = None
    aliases: tuple[str, ...] = ()
    sources: tuple[Source, ...] = field(default=(), repr=False)
    unverified: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        figures = [("memory", self.memory, "bytes"), ("bandwidth", self.bandwidth, "bytes/s")]
        figures += [] if self.interconnect is None else [("interconnect", self.interconnect, "bytes/s")]
        figures += [(dtype, rate, "OP/s" if dtype[:3] == "int" else "FLOP/s") for dtype, rate in self.rates.items()]
        lines = [f"{name:<12}  {value:>25,}  {unit}" for name, value, unit in figures]
        lines += [] if self.power is None else [f"{'power':<12}  {self.power:>25,g}  W"]
        return "\n".join([f"{self.title} · {self.name}", *lines])

    def rate(self, dtype: str) -> int:
        """FLOP/s of dense matrix products of a dtype. Raises HardwareError where the chip has none."""
        found = self.rates.get(dtype)
        if found is None:
            raise HardwareError(f"{self.title} has no products in {dtype}; it has {', '.join(self.rates)}")
        return found

    def source(self, figure: str) -> Source:
        """Where a figure is from: memory, bandwidth, rates, interconnect or power. Raises HardwareError."""
        for source in self.sources:
            if figure in source.gives:
                return source
        raise HardwareError(f"{self.title} has no {figure}")

    def verified(self, figure: str) -> bool:
        """Whether a figure, `power` or `rates.fp8`, was seen in its document or in another that repeats it."""
        return figure not in self.unverified
