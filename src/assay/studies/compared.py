"""A comparison as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from assay.readings.words import is_expression
from assay.records import dataclass
from assay.report.contract import setting_object
from assay.report.model import about, asked_for, has_latent
from assay.report.table import NARROW, WIDTH, Style, table, wrap
from assay.report.units import decimal_bytes, digits, flop, plain, short, shorten

if TYPE_CHECKING:
    from assay.studies.compare import Comparison, Held, Size

GAP = 2
KEPT = "\N{NO-BREAK SPACE}"
LONGEST = 20  # a name that heads a column
OPS = 16  # that a report lists of those that not all have

# what the report shows of the figures, and how it says them; `by_part` stands for all parts
ROWS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("model.layers", "layers", digits),
    ("model.width", "width", digits),
    ("parameters.total", "parameters", short),
    ("parameters.active", "active", short),
    ("parameters.by_part", "", short),
    ("flops.total", "FLOPs", flop),
    ("flops.visible_total", "visible to the mask", flop),
    ("flops.per_token", "a token", flop),
    ("flops.attention_scores", "attention scores", flop),
    ("flops.by_part", "", flop),
    ("cache.bytes", "cache", decimal_bytes),
    ("cache.marginal_bytes_per_token", "one token more", decimal_bytes),
    ("cache.fixed_bytes", "whatever the context", decimal_bytes),
    ("weights.bytes", "weights", decimal_bytes),
)
HEADS = ("model.layers", "parameters.total", "flops.total", "cache.bytes", "weights.bytes")  # the others are below one


def report(made: Comparison, style: Style, wide: int = WIDTH) -> list[str]:
    """The figures side by side, then what explains them, on lines of at most `wide` characters."""
    names = _heads([model.name for model in made.models])
    lines = [*map(style.bold, wrap(" and ".join(names) if len(names) == 2 else ", ".join(names), "", wide=wide))]
    for name, model in zip(names, made.models, strict=True):
        whole = model.name if name == model.name else f"{name}: {model.name}"
        lines += wrap(f"{whole} · {about(model)}", "", "  ", wide=wide)
    lines += [style.dim(line) for line in wrap(_asked(made, names), "", wide=wide)]
    page = _Page(tuple(names), style, wide)
    lines += ["", *_figures(made, page), *_sizes(made, page), *_parts(made, page)]
    if len(set(made.formats)) > 1:
        rows = list(zip(names, made.formats, strict=True))
        lines += ["", style.bold("Formats"), *table(rows, "<<", wide=wide)]
    return lines


@dataclass(frozen=True)
class _Page:
    """What heads the columns, how lines look, and how wide they are."""

    names: tuple[str, ...]
    style: Style
    wide: int


def _asked(made: Comparison, names: Sequence[str]) -> str:
    """The setting, and what only some of the models are given."""
    first = made.counts[0]
    said = asked_for(first, any(map(has_latent, made.models)))
    for key in ("source", "images", "sounds"):
        given = [getattr(counted.setting, key) for counted in made.counts]
        if len(set(given)) > 1:
            of = {value: [n for n, v in zip(names, given, strict=True) if v == value] for value in given if value}
            told = " · ".join(f"{key} {digits(value)} ({', '.join(who)})" for value, who in of.items())
            here = f"{key} {digits(given[0])}" if given[0] else ""
            said = said.replace(here, told, 1) if here else f"{said} · {told}"
    return said


def _heads(names: Sequence[str]) -> list[str]:
    """The models as columns are headed: by letters where their names are long or alike."""
    fit = len(set(names)) == len(names) and all(len(name) <= LONGEST for name in names)
    return list(names) if fit else [_letter(place) for place in range(len(names))]


def _letter(place: int) -> str:
    """A, B, … Z, AA, AB and so on."""
    before, last = divmod(place, 26)
    return (_letter(before - 1) if before else "") + chr(ord("A") + last)


def _figures(made: Comparison, page: _Page) -> list[str]:
    rows: list[list[str]] = []
    for path, label, form in ROWS:
        known = [p for p in made.figures if p == path or p.startswith(f"{path}.")]
        for name in known:
            values = made.figures[name]
            if not any(values) or (name == "parameters.active" and values == made.figures["parameters.total"]):
                continue
            if name == "flops.visible_total" and values == made.figures["flops.total"]:
                continue
            said = label or name.rpartition(".")[2]
            indent = "" if name in HEADS or name == "model.width" else "  "
            rows.append([indent + said, *_side_by_side(values, form, made.ratios(name))])
    return _paged(rows, page)


def _side_by_side(values: Sequence[Any], form: Callable[[Any], str], ratios: Sequence[float | None]) -> list[str]:
    """Each value, and behind all but the first its ratio to that."""
    said = ["?" if value is None else form(value) for value in values]
    behind = ["–" if ratio is None else _ratio(ratio) for ratio in ratios]
    return [said[0], *(cell for pair in zip(said[1:], behind[1:], strict=True) for cell in pair)]


def _ratio(ratio: float) -> str:
    return f"× {ratio:.3f}" if 0.0005 <= ratio < 999.95 else f"× {plain(ratio)}"


def _paged(rows: list[list[str]], page: _Page) -> list[str]:
    """A table as wide as a page, the models that have no room on it below, the first model on each."""
    names, lines = page.names, list[str]()
    start = 1
    while start < len(names):
        stop = len(names)
        while stop > start + 1 and _width(rows, names, start, stop) > page.wide:
            stop -= 1
        head = ["", names[0], *(cell for name in names[start:stop] for cell in (name, ""))]
        cut = [row[:2] + row[2 * start : 2 * stop] for row in rows]
        align = "<" + ">" * (len(head) - 1)
        lines += [*([""] if lines else []), *table(cut, align, head, page.style, indent="", gap=GAP, wide=page.wide)]
        start = stop
    return lines


def _width(rows: list[list[str]], names: Sequence[str], start: int, stop: int) -> int:
    heads = ["", names[0], *(cell for name in names[start:stop] for cell in (name, ""))]
    cut = [row[:2] + row[2 * start : 2 * stop] for row in rows]
    return sum(GAP + max(len(row[i]) for row in [heads, *cut]) for i in range(len(heads))) - GAP


def _sizes(made: Comparison, page: _Page) -> list[str]:
    """Sizes that differ, a row a letter, and the keys that they are from."""
    rows: list[list[str]] = []
    for size in made.sizes:
        cells = [_held(held, model.layers) for held, model in zip(size.held, made.models, strict=True)]
        for line in range(max(map(len, cells))):
            values = [cell[line] if line < len(cell) else "" for cell in cells]
            rows.append(
                [*([size.axis, _says(size)] if line == 0 else ["", ""]), *values, _keys(size) if line == 0 else ""]
            )
    if len(set(made.tied)) > 1:
        said = {True: "yes", False: "no", None: "–"}
        rows.append(["", "head tied to the embedding", *(said[tied] for tied in made.tied), ""])
    if not rows:
        return ["", "no size differs"]
    return ["", page.style.bold("Sizes that differ"), *_beside(rows, 2, "from", page)]


def _beside(rows: list[list[str]], labels: int, last: str, page: _Page) -> list[str]:
    """A table of a column a model behind some of labels, in as many pieces as it takes.

    `last` heads a last column of text: beside the last piece, or below it where there is no room.
    """
    head = [*[""] * labels, *page.names, *([last] if last else [])]
    columns = list(range(labels, labels + len(page.names)))

    def width(shown: Sequence[int]) -> int:
        cells = [[row[i] for i in (*range(labels), *shown)] for row in [head, *rows]]
        return 2 + sum(GAP + max(map(len, column)) for column in zip(*cells, strict=True)) - GAP

    pieces: list[list[int]] = [[]]
    for column in columns:
        if pieces[-1] and width([*pieces[-1], column]) > page.wide:
            pieces.append([])
        pieces[-1].append(column)
    if last and width(pieces[-1]) + GAP + NARROW > page.wide:
        pieces.append([])
    lines: list[str] = []
    for place, piece in enumerate(pieces):
        behind = [len(head) - 1] if last and place == len(pieces) - 1 else []
        shown = [*range(labels), *piece, *behind]
        align = "<" * labels + ">" * len(piece) + "<" * len(behind)
        cut = [[row[i] for i in shown] for row in rows]
        drawn = table(cut, align, [head[i] for i in shown], page.style, gap=GAP, wide=page.wide)
        lines += [*([""] if lines else []), *drawn]
    return lines


def _says(size: Size) -> str:
    """What a letter stands for: the field's word for it, or the last of the key it came from."""
    key = next((held.key for several in size.held for held in several if held.key), "")
    words = size.says or ("" if is_expression(key) else key.rpartition(".")[2].replace("_", " "))
    place = size.part if size.part in ("experts", "tower", "mixer") and size.part not in words else ""
    return shorten(f"{words} ({place})" if words and place else words or place, 34)


def _keys(size: Size) -> str:
    """The keys that it came from, each once."""
    return " or ".join(dict.fromkeys(held.key for several in size.held for held in several if held.key))


def _held(held: tuple[Held, ...], depth: int) -> list[str]:
    """What a model has: one value, or each with the layers that have it."""
    if not held:
        return ["–"]
    whole = len(held) == 1 and held[0].layers in (0, depth)
    return [digits(one.value) if whole or not one.layers else f"{digits(one.value)} in {one.layers}" for one in held]


def _parts(made: Comparison, page: _Page) -> list[str]:
    """Parts and ops that some have and others lack, with the layers that have them."""
    rows = [[f"{part}, as a whole", *map(_layers, held)] for part, held in made.parts.items()]
    rows += [[f"{op.part}: {op.notation}", *map(_layers, op.layers)] for op in made.ops[:OPS]]
    if not rows:
        return []
    room = page.wide - 2 - sum(GAP + max(6, len(name)) for name in page.names)
    folded = [row for whole in rows for row in _folded(whole, max(34, room))]
    lines = _beside(folded, 1, "", page)
    more = len(made.ops) - OPS
    left = [f"  and {more} more ops; --json lists all"] if more > 0 else []
    return ["", page.style.bold("What not all have, and in how many layers"), *lines, *left]


def _folded(row: list[str], room: int) -> list[list[str]]:
    """A row whose first cell takes as many lines as it needs."""
    held = re.sub(r"\[[^]]*\]", lambda axes: axes[0].replace(" ", KEPT), row[0])  # axes are not parted
    first, *rest = (line.replace(KEPT, " ") for line in wrap(held, "", "    ", wide=room))
    return [[first, *row[1:]], *([line] + [""] * (len(row) - 1) for line in rest)]


def _layers(many: int | None) -> str:
    return digits(many) if many else "–"


def to_json(made: Comparison, version: str) -> dict[str, Any]:
    """The same as one object of JSON; each list has a place for each model."""
    return {
        "assay": version,
        "models": [
            {
                "name": m.name,
                "family": m.family,
                "class": m.cls,
                "source": m.source,
                "layers": m.layers,
                "width": m.width,
            }
            for m in made.models
        ],
        "settings": [setting_object(counted.setting) for counted in made.counts],
        "figures": {
            name: {"values": list(values), "ratios": list(made.ratios(name))} for name, values in made.figures.items()
        },
        "sizes": [
            {
                "axis": size.axis,
                "says": size.says,
                "part": size.part,
                "held": [[{"value": h.value, "layers": h.layers, "key": h.key} for h in held] for held in size.held],
            }
            for size in made.sizes
        ],
        "parts": {part: list(held) for part, held in made.parts.items()},
        "ops": [{"part": op.part, "op": op.notation, "layers": list(op.layers)} for op in made.ops],
        "tied": list(made.tied),
        "formats": list(made.formats),
    }
