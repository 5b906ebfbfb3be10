"""A sweep as a table for people: what is swept and what moves with it, exact where that fits, else in four digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from assay.records import dataclass, replace
from assay.report.table import WIDTH, Style, table, wrap
from assay.report.units import decimal_bytes, digits, flop, plain, share, short

if TYPE_CHECKING:
    from assay.studies.result import Sweep

GAP = 2  # blanks between columns
ROWS = 40  # that a table shows; of more, the first and the last

# figures of a table where nothing is asked for; one that never moves stands above it
USUAL = ("parameters.total", "flops.total", "flops.per_token", "cache.bytes", "weights.bytes")
SHARE = "scores / all"  # what no column holds: attention's scores in all FLOPs

# settings that are said above a table, as the report says them
SAID = ("batch", "tokens", "past", "context", "source", "images", "convention")


def heading(name: str) -> str:
    """A column's head: shorter where nothing is lost."""
    known = {
        "model.name": "model",
        "parameters.total": "parameters",
        "flops.total": "FLOPs",
        "flops.per_token": "FLOPs a token",
        "cache.bytes": "cache",
        "weights.bytes": "weights",
    }
    if name in known:
        return known[name]
    group, _, last = name.rpartition(".")
    return (
        last
        if group == "attention" or group.endswith("by_part")
        else name.removeprefix("setting.").removeprefix("set.")
    )


def headings(names: Sequence[str]) -> list[str]:
    """The heads of a table: whole names where short ones would be alike."""
    short_ones = [heading(name) for name in names]
    return [name if short_ones.count(one) > 1 else one for name, one in zip(names, short_ones, strict=True)]


def moves(swept: Sweep, name: str) -> bool:
    """True where a column takes more than one value."""
    column = swept.columns[name]
    if column.strides == (0,) or len(column) < 2:
        return False
    return bool((column != column[0]).any())


def stored(swept: Sweep) -> str:
    """What the weights are stored in, where it is the same everywhere or each model's own; "" where it is swept."""
    if "setting.weights" in swept.swept or "weights.format" not in swept.columns:
        return ""
    held = [word for word in dict.fromkeys(swept.columns["weights.format"].tolist()) if word]
    return f"weights {held[0]}" if len(held) == 1 else "weights as each model is stored" if held else ""


def usual_columns(swept: Sweep) -> list[str]:
    """What a table shows where nothing is asked for: what is swept, what is set with it, and the figures that move."""
    following = [name for name in swept.columns if name.startswith("set.") and moves(swept, name)]
    tokens = ["setting.tokens"] if "setting.tokens" in swept.columns and moves(swept, "setting.tokens") else []
    figures = [name for name in USUAL if name in swept.columns and (moves(swept, name) or name == "flops.per_token")]
    return list(dict.fromkeys([*(n for n in swept.swept if n in swept.columns), *following, *tokens, *figures]))


def spread_rows(many: int, most: int) -> list[int]:
    """Rows to show of many, evenly spread, both ends among them."""
    if many <= most:
        return list(range(many))
    return [round(i * (many - 1) / (most - 1)) for i in range(most)]


def report(swept: Sweep, style: Style, columns: Sequence[str] | None = None) -> list[str]:
    """The title, what all rows have in common, and the table."""
    names = list(columns) if columns is not None else usual_columns(swept)
    lines = [style.bold(_title(swept))]
    common = _common(swept, names)
    lines += [style.dim(line) for line in wrap(common, "")] if common else []
    return [*lines, "", *plain_table(swept, names, style, columns is None)]


def plain_table(
    swept: Sweep, names: Sequence[str] | None = None, style: Style | None = None, shared: bool = True
) -> list[str]:
    """The rows as a table, the first and the last of many; `shared` adds the share of attention's scores.

    What is wider than a page goes on below, behind what is swept.
    """
    names = usual_columns(swept) if names is None else names
    many, half = len(swept), ROWS // 2
    places = list(range(many)) if many <= ROWS else [*range(half), *range(many - half, many)]
    for exact in (True, False):
        columns = [
            _Column(head, _cells(name, swept.columns[name][places].tolist(), exact), _is_word(swept, name))
            for name, head in zip(names, headings(names), strict=True)
        ]
        scores = _scores(swept, places) if shared else None
        columns += [_Column(SHARE, scores, False)] if scores else []
        if sum(column.width for column in columns) - GAP <= WIDTH:
            break
    if many > ROWS:
        columns = [replace(c, cells=[*c.cells[:half], "…", *c.cells[half:]]) for c in columns]
    leading = [column for name, column in zip(names, columns, strict=False) if name in swept.swept]
    lines: list[str] = []
    for page in _pages(leading, [column for column in columns if column not in leading]):
        rows = zip(*(column.cells for column in page), strict=True)
        align = "".join("<" if column.word else ">" for column in page)
        lines += [*([""] if lines else []), *table(rows, align, [c.head for c in page], style, indent="")]
    return [*lines, "", f"{many:,} rows, {2 * half} shown"] if many > ROWS else lines


@dataclass(frozen=True)
class _Column:
    head: str
    cells: list[str]
    word: bool

    @property
    def width(self) -> int:
        return GAP + max(map(len, [self.head, *self.cells]))


def _pages(leading: list[_Column], columns: list[_Column]) -> Iterator[list[_Column]]:
    """As many columns as a page is wide, the leading ones on each."""
    room = WIDTH + GAP - sum(column.width for column in leading)
    page: list[_Column] = []
    for column in columns:
        if page and sum(c.width for c in [*page, column]) > room:
            yield [*leading, *page]
            page = []
        page.append(column)
    yield [*leading, *page]


def _title(swept: Sweep) -> str:
    names = list(dict.fromkeys(swept.columns["model.name"].tolist())) if "model.name" in swept.columns else []
    bare = list(dict.fromkeys(name.partition(" with ")[0] for name in names))
    return bare[0] if len(bare) == 1 else f"{len(bare)} models" if bare else "sweep"


def _common(swept: Sweep, names: Sequence[str]) -> str:
    said = _settings(swept, names, SAID)
    said += [stored(swept)] if stored(swept) and "weights.format" not in names else []
    said += _settings(swept, names, ("cache",))
    for name in swept.columns:
        fixed = name.startswith("set.") or name in ("parameters.total", "weights.bytes")
        if fixed and name not in names and not moves(swept, name):
            value = swept.columns[name][:1].tolist()[0]
            said.append(f"{heading(name)} {_form(name)(value)}") if value is not None else None
    return " · ".join(said)


def _settings(swept: Sweep, names: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Settings that are the same in all rows."""
    said = []
    for key in keys:
        name = f"setting.{key}"
        if name in swept.columns and name not in names and not moves(swept, name):
            value = swept.columns[name][:1].tolist()[0]
            if value is not None and (value or key != "images"):
                said.append(f"{key} {digits(value) if isinstance(value, int) else value}")
    return said


def _is_word(swept: Sweep, name: str) -> bool:
    return isinstance(swept.columns[name][:1].tolist()[0], str)


def _scores(swept: Sweep, places: Sequence[int]) -> list[str] | None:
    """Attention's share, where it is anything."""
    needed = ("flops.attention_scores", "flops.total")
    if not all(name in swept.columns for name in needed):
        return None
    part, whole = (swept.columns[name][places].tolist() for name in needed)
    return [share(a, b) for a, b in zip(part, whole, strict=True)] if any(part) else None


def _cells(name: str, values: Sequence[Any], exact: bool) -> list[str]:
    if name.endswith(".ratio"):
        return ["–" if v is None else f"{v:.3f}" for v in values]
    if exact:
        return ["–" if v is None else _exact(v) if isinstance(v, int | float) else str(v) for v in values]
    form = _form(name)
    return ["–" if v is None else form(v) if isinstance(v, int | float) else str(v) for v in values]


def _exact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"
    return digits(value)


def _form(name: str) -> Callable[[Any], str]:
    """How a figure is written in four digits."""
    if name.startswith(("setting.", "set.", "model.")):
        return lambda value: digits(value) if isinstance(value, int) else plain(value)
    if "bytes" in name or name.startswith(("memory.", "training.")):
        return decimal_bytes
    if name.startswith(("flops.", "attention.", "generate.")) or name.endswith(".flops"):
        return flop
    return short
