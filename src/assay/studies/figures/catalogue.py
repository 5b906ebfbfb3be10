"""The figures by name: what each shows, the columns that it needs, and the module that draws it."""

from __future__ import annotations

from collections.abc import Collection

from assay.errors import SettingError
from assay.records import dataclass
from assay.report.units import shorten


@dataclass(frozen=True)
class Figure:
    """What a figure shows and the columns that it needs; `split` where attention has to be taken apart.

    `ranged` says that an axis is needed, `table` which columns a table of it shows where those are not the usual ones.
    """

    name: str
    says: str
    columns: tuple[str, ...]
    split: bool = False
    ranged: bool = True
    convention: str | None = None  # where nothing is said: what a softmax costs is no matmul
    table: tuple[str, ...] = ()


_PIECES = ("attention.projections", "attention.scores", "attention.softmax", "attention.output")

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("flops", "FLOPs of a token by part, stacked", ("flops",)),
        Figure("shares", "the same as shares of the whole", ("flops",), table=("flops.by_part",)),
        Figure("flops-per-token", "FLOPs of a token, a line for each model or setting", ("flops",)),
        Figure("attention-share", "the share of QKᵀ and AV in all FLOPs", ("flops",)),
        Figure("memory", "bytes of the cache against those of the weights", ("cache", "weights")),
        Figure(
            "parameters",
            "where the parameters sit",
            ("parameters", "blocks"),
            ranged=False,
            table=("parameters.by_part", "parameters.total"),
        ),
        Figure(
            "attention",
            "what attention is made of: projections, QKᵀ, softmax, AV",
            ("attention", "flops"),
            split=True,
            convention="stable-softmax",
            table=(*_PIECES, "flops.by_part.mlp", "flops.by_part.experts"),
        ),
        Figure(
            "core",
            "the shares of QKᵀ, softmax and AV among themselves",
            ("attention",),
            split=True,
            ranged=False,
            convention="stable-softmax",
            table=_PIECES[1:],
        ),
    )
}


def figure_of(name: str) -> Figure:
    """The figure of that name. Raises SettingError."""
    if name in FIGURES:
        return FIGURES[name]
    from difflib import get_close_matches

    near = get_close_matches(name, FIGURES, 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(FIGURES)}"
    raise SettingError(f"figure is {shorten(name)!r}; {hint}")


def usual(swept: Collection[str]) -> str:
    """The figure of a sweep where none is asked for."""
    lengths = ("setting.context", "setting.tokens", "setting.past", "setting.source")
    if any(name in swept for name in lengths):
        return "flops" if "model.name" not in swept else "flops-per-token"
    return "memory" if "setting.batch" in swept else "parameters"
