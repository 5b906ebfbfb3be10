"""Published laws of how large a model a budget of training FLOPs is best spent on.

N is parameters, D training tokens, C FLOPs, taken as C = 6 N D. A law is as good as its data: English text, dense
decoders, one pass. None says that a smaller model, trained longer, is not the better one to serve.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from assay.errors import among
from assay.records import dataclass
from assay.size import rate

PF_DAY = 86400 * 10**15  # FLOPs of 10^15 FLOP/s for a day


class Optimum(NamedTuple):
    """What a law makes of a budget: parameters, tokens, and tokens for each parameter."""

    law: str
    parameters: Any
    tokens: Any

    @property
    def ratio(self) -> Any:
        """Tokens for each parameter."""
        return self.tokens / self.parameters


@dataclass(frozen=True)
class Law:
    """N = `scale` (C / `unit`) ^ `exponent`, and D = C / 6N.

    Where the law is of the loss, L(N, D) = `floor` + A / N^alpha + B / D^beta in nats a token, `loss` says it, and the
    power follows from it. Where `embeddings` is False, N leaves them out.
    """

    name: str
    says: str
    source: str
    scale: float
    exponent: float
    unit: float = 1.0
    surface: tuple[float, float, float, float, float] | None = None  # floor, A, alpha, B, beta
    embeddings: bool = True

    def optimum(self, flops: Any) -> Optimum:
        """The best N and D for a budget of FLOPs, a number, an array or a symbol. Raises SizeError."""
        spent = rate(flops, "budget")
        parameters = self.scale * (spent / self.unit) ** self.exponent
        return Optimum(self.name, parameters, spent / (6 * parameters))

    def loss(self, parameters: Any, tokens: Any) -> Any:
        """The loss that a model of so many parameters is to have after so many tokens; None where no law of it is."""
        if self.surface is None:
            return None
        floor, a, alpha, b, beta = self.surface
        return floor + a / parameters**alpha + b / tokens**beta


def parametric(name: str, says: str, source: str, surface: tuple[float, float, float, float, float]) -> Law:
    """The law that follows from a loss: its least value where 6 N D is fixed (Hoffmann et al. 2022, equation 4)."""
    _, a, alpha, b, beta = surface
    scale = (alpha * a / (beta * b)) ** (1 / (alpha + beta))
    return Law(name, says, source, scale, beta / (alpha + beta), 6.0, surface)


_HOFFMANN = "Hoffmann et al. 2022, arXiv:2203.15556"
LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law(
            "hoffmann-1",
            "the least loss along training curves",
            f"{_HOFFMANN}, approach 1: exponent of table 2, through the 67 billion parameters of table 3",
            67e9,
            0.50,
            5.76e23,
        ),
        Law(
            "hoffmann-2",
            "profiles of equal FLOPs",
            f"{_HOFFMANN}, approach 2: exponent of table 2, through the 67 billion parameters of table A3",
            67e9,
            0.49,
            6.88e23,
        ),
        parametric(
            "hoffmann-3",
            "a fit of the loss",
            f"{_HOFFMANN}, approach 3, equation 10; its constants with the digits of the paper's TeX source, which"
            " Besiroglu et al. 2024 report",
            (1.6934, 406.4, 0.3392, 410.7, 0.2849),
        ),
        parametric(
            "besiroglu",
            "a fit of the loss to the same runs, read off the paper's plots",
            "Besiroglu et al. 2024, arXiv:2404.10102, table 1",
            (1.8172, 482.01, 0.3478, 2085.43, 0.3658),
        ),
        Law(
            "kaplan",
            "the earlier law, of parameters outside embeddings",
            "Kaplan et al. 2020, arXiv:2001.08361, table 6: 1.3e9 parameters for a PF-day, exponent 0.73",
            1.3e9,
            0.73,
            float(PF_DAY),
            embeddings=False,
        ),
    )
}


def law(name: str) -> Law:
    """The law of a name. Raises SettingError."""
    return LAWS[among(name, "law", LAWS)]
