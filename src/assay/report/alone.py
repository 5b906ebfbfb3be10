"""One attention alone, as articles cost it: the numbers, and the formulas that the same ops give in symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.blocks.attention import alone
from assay.errors import SettingError
from assay.readings.binding import as_model
from assay.readings.ops import OpRow, list_ops
from assay.readings.setting import setting
from assay.records import dataclass
from assay.report.formula import symbol, written
from assay.report.table import WIDTH, Style, table
from assay.report.units import digits
from assay.size import Size, is_symbol

CONVENTIONS = ("matmul", "scalar", "stable-softmax")
SYMBOLS = {"tokens": "n", "qk_width": "d_k", "v_width": "d_v", "heads": "h"}
MISSING = "SymPy is not installed; pip install sympy"
SAYS = {
    "matmul": "the dominant cost: 2 FLOPs per multiply-add of QKᵀ and AV",
    "scalar": "exact: every multiplication, addition, division and exponential is one",
    "stable-softmax": "the dominant cost and 5 for each element of the softmax",
}

Sizes = Mapping[str, int | str]  # a letter stands for a symbol


@dataclass(frozen=True)
class Costed:
    """FLOPs of each op under each convention, in sizes that are integers or symbols."""

    rows: tuple[OpRow, ...]
    flops: Mapping[str, tuple[Size, ...]]

    def total(self, convention: str) -> Size:
        """All ops together."""
        return sum(self.flops[convention], start=0)


def cost(sizes: Mapping[str, Size]) -> Costed:
    """One attention of these sizes; no `heads` is one head."""
    model = as_model(alone(sizes["qk_width"], sizes["v_width"], sizes.get("heads")), {})
    rows: tuple[OpRow, ...] = ()
    flops: dict[str, tuple[Size, ...]] = {}
    for convention in CONVENTIONS:
        (listing,) = list_ops(model, setting(model, tokens=sizes["tokens"], convention=convention))
        rows = tuple(row for row in listing.rows if row.op.part == "attention.scores")
        flops[convention] = tuple(row.flops for row in rows)
    return Costed(rows, flops)


@dataclass(frozen=True)
class Alone:
    """The cost asked for, and in symbols: with widths of their own, and with one width d. None without SymPy."""

    sizes: Sizes
    here: Costed
    general: Costed | None
    equal: Costed | None
    lead: Any  # the symbol of the tokens

    def text(self, value: Size) -> str:
        """An integer with separators, a symbolic figure as a formula."""
        return written(value, self.lead) if is_symbol(value) else digits(int(value))


def read(sizes: Sizes) -> Alone:
    """The readings of one attention. Raises SettingError for a letter where SymPy is not installed."""
    lettered = any(isinstance(size, str) for size in sizes.values())
    try:
        here = cost({name: symbol(s) if isinstance(s, str) else s for name, s in sizes.items()})
        names = {name: s if isinstance(s, str) else SYMBOLS[name] for name, s in sizes.items()}
        general = cost({name: symbol(s) for name, s in names.items()})
        width = names["qk_width"] if names["qk_width"] == names["v_width"] else "d"
        equal = cost({name: symbol(width if name.endswith("width") else s) for name, s in names.items()})
    except ImportError:
        if lettered:
            raise SettingError(f"sizes that are letters or not given are symbols: {MISSING}") from None
        return Alone(sizes, cost(sizes), None, None, None)
    return Alone(sizes, here, general, equal, symbol(names["tokens"]))


def report(made: Alone, style: Style) -> list[str]:
    """Each op and what it costs, then the totals as numbers and formulas."""
    said = " · ".join(f"{name.replace('_', ' ')} {_shown(size)}" for name, size in made.sizes.items())
    lines = [style.bold("one attention, no projections: softmax(q kᵀ / √d_k + B) v"), style.dim(said), ""]
    rows = [
        [str(row.op), *(made.text(made.here.flops[c][i]) for c in CONVENTIONS)] for i, row in enumerate(made.here.rows)
    ]
    total = ["total", *(made.text(made.here.total(c)) for c in CONVENTIONS)]
    head = ("op", *CONVENTIONS)
    if max(map(len, table([*rows, total], "<>>>", head))) <= WIDTH:
        rows.append(total)  # else the formulas of the totals below are enough
    lines += [*table(rows, "<>>>", head, style), ""]
    for convention in CONVENTIONS:
        lines += [f"{style.bold(convention)}  {SAYS[convention]}"]
        lines += table(_formulas(made, convention), "<<", style=style, indent="    ")
    if made.general is None:
        lines += ["", f"formulas in symbols: {MISSING}"]
    return lines


def _shown(size: int | str) -> str:
    return size if isinstance(size, str) else digits(size)


def _formulas(made: Alone, convention: str) -> list[list[str]]:
    rows = []
    if made.general is not None and made.equal is not None:
        formula, same = (written(c.total(convention), made.lead) for c in (made.general, made.equal))
        rows.append(["formula", formula])
        if same != formula:
            rows.append(["d_k = d_v = d", same])
    value = made.text(made.here.total(convention))
    return rows if rows and value == rows[0][1] else [*rows, ["here", value]]


def document(version: str, made: Alone) -> dict[str, Any]:
    """The same as one object of JSON; a figure in symbols is a string, a formula without SymPy null."""

    def value(size: Size) -> int | str:
        return made.text(size) if is_symbol(size) else int(size)

    def each(figure: Callable[[str], Any]) -> dict[str, Any]:
        return {convention: figure(convention) for convention in CONVENTIONS}

    def formula(costed: Costed | None) -> dict[str, Any]:
        return each(lambda c: None if costed is None else written(costed.total(c), made.lead))

    def ops(rows: Sequence[OpRow]) -> list[dict[str, Any]]:
        return [
            {
                "name": row.op.name,
                "kind": row.op.kind,
                "notation": str(row.op),
                "flops": {c: value(made.here.flops[c][i]) for c in CONVENTIONS},
            }
            for i, row in enumerate(rows)
        ]

    return {
        "assay": version,
        "block": "attention",
        "setting": dict(made.sizes),
        "ops": ops(made.here.rows),
        "flops": each(lambda c: value(made.here.total(c))),
        "formula": formula(made.general),
        "formula_of_equal_widths": formula(made.equal),
    }
