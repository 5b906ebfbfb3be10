"""A derivation as a person reads it: op by op in letters and numbers, sums, the closed form, what the letters are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.readings.conventions import CONVENTIONS
from assay.readings.explain import FIGURES, Derivation, Stage, Step, Sum
from assay.report.algebra import TEXT, Script, joined, terms, write
from assay.report.legend import legend_lines
from assay.report.model import has_latent
from assay.report.table import WIDTH, Style, wrap
from assay.report.units import digits, layer_ranges, shorten
from assay.spec import Model, Op

MARK = "    "


def report(made: Derivation, style: Style, wide: int = WIDTH) -> list[str]:
    """All of it, in lines of at most `wide` characters."""
    lines = [*map(style.bold, wrap(title(made), "", wide=wide)), *map(style.dim, wrap(basis(made), "", wide=wide)), ""]
    known: dict[Any, str] = {}
    widths = _widths(made)
    for stage in made.stages:
        lines += _stage(made, stage, known, widths, style, wide)
    if len(made.stages) > 1 or made.stages[0].times > 1:
        lines += [style.bold("all"), *_whole(made, style, wide), ""]
    lines += [*_conditions(made, style, wide), style.dim("letters"), *legend_lines(made.legend, made.model, wide)]
    return lines


def title(made: Derivation) -> str:
    """What is derived, of what, in which setting."""
    what = {"flops": "FLOPs", "cache": "cache bytes", "activations": "elements written"}.get(made.figure, made.figure)
    part = f"{made.part}: " if made.part else ""
    asked = made.setting
    sizes = [f"batch {digits(asked.batch)}"] if asked.batch > 1 else []
    sizes += [f"tokens {digits(asked.tokens)}"] if made.figure != "parameters" else []
    if made.figure != "parameters":
        others = ("past", "source", "images", "sounds")
        sizes += [f"{name} {digits(size)}" for name in others if (size := getattr(asked, name))]
    return f"{part}{what} of {made.model.name}" + (f" · {' · '.join(sizes)}" if sizes else "")


def basis(made: Derivation) -> str:
    """What is counted, and how latent attention runs where that is counted too."""
    asked = made.setting
    if made.figure == "cache":
        return f"{FIGURES['cache']}: {asked.cache}, states {asked.state}"
    said = counted_as(asked.convention) if made.figure == "flops" else FIGURES[made.figure]
    return said if made.figure == "parameters" else said + latent_as(made.model, asked.latent)


def counted_as(convention: str) -> str:
    """What a FLOP is."""
    return f"{convention}: {CONVENTIONS[convention].says}"


def latent_as(model: Model, way: str) -> str:
    """How latent attention runs: nothing of a model that has none."""
    if not has_latent(model):
        return ""
    made = "keys and values made of all latents at hand" if way == "expanded" else "scores of the latents themselves"
    return f"; latent attention {way}: {made}"


def call(op: Op) -> str:
    """`q = linear(x, Wq)`: the op without axes."""
    return f"{op.name} = {op.kind}({', '.join(t.name for t in op.inputs)})"


def values(made: Derivation) -> Script:
    """Numbers in the place of letters."""
    return Script(values={letter.symbol: letter.value for letter in made.legend})


def heading(stage: Stage) -> str:
    """`layer, 32 times: layers 0-31`."""
    often = f" × {stage.times}" if stage.times > 1 else ""
    where = f"   layers {layer_ranges(stage.layers)}" if stage.layers else ""
    return f"{stage.name}{often}{where}"


def signature(part: Sum) -> Any:
    """What makes two parts one: their ops and formulas."""
    return (part.part, tuple((call(step.op), step.formula) for step in part.steps))


Widths = tuple[int, int, int, int]


def _row(made: Derivation, step: Step) -> tuple[str, str, str, str]:
    return call(step.op), write(step.formula), write(step.formula, values(made)), digits(step.value)


def _widths(made: Derivation) -> Widths:
    rows = [_row(made, step) for stage in made.stages for part in stage.parts for step in part.steps]
    first, second, third, last = (max(len(row[i]) for row in rows) for i in range(4))
    return min(first, 44), min(second, 30), third, last


def _stage(made: Derivation, stage: Stage, known: dict[Any, str], widths: Widths, style: Style, wide: int) -> list[str]:
    lines = [style.bold(shorten(heading(stage), wide))]
    for part in stage.parts:
        mark = signature(part)
        if mark in known and len(part.steps) > 1:
            lines += [f"  {part.part}   as in {known[mark]}: {digits(part.value)}"]
            continue
        known[mark] = stage.name
        lines += [f"  {part.part}"] if len(stage.parts) > 1 or not stage.name.endswith(part.part) else []
        for step in part.steps:
            lines += _line(_row(made, step), widths, wide)
        if len(part.steps) > 1:
            lines += _sums(part, style, wide)
    if len(stage.parts) > 1:
        lines += ["  one layer" if stage.times > 1 else "  together", *_sums(stage, style, wide)]
    return [*lines, ""]


def _line(row: tuple[str, str, str, str], widths: Widths, wide: int) -> list[str]:
    """One op: in one line where it fits, else its numbers below it."""
    op, formula, numbers, value = row
    first, second, third, last = widths
    edge = min(wide, len(MARK) + first + second + third + last + 6)  # where values end
    start = f"{MARK}{op:<{first}}  {formula:<{second}}"
    for text in (f"{start}  {numbers}", start):
        if len(text) + 2 + len(value) <= edge:
            below = [] if text != start else folded(f"= {numbers}", MARK + "    ", wide)
            return [f"{text:<{edge - len(value)}}{value}", *below]
    said = f"= {numbers} = {value}"
    return [MARK + op, *folded(f"  {formula}", MARK + "  ", wide), *folded(said, MARK + "    ", wide)]


def folded(text: str, indent: str, wide: int = WIDTH) -> list[str]:
    """A formula cut between its terms."""
    for sign in " + ", " − ":
        text = text.replace(sign, f"\0{sign[1]} ")
    lines = [""]
    for piece in text.split("\0"):
        first = not lines[-1]
        if not first and len(indent) + len(lines[-1]) + 1 + len(piece) > wide:
            lines.append("    " + piece)
        else:
            lines[-1] += piece if first else f" {piece}"
    return [(indent + line).rstrip() for line in lines]


def _sums(of: Sum | Stage, style: Style, wide: int) -> list[str]:
    """The sum in general, in the letters of this model, and as a number."""
    general, closed = write(of.formula), write(of.closed)
    lines = folded(f"= {general}", MARK, wide)
    if closed != general:
        lines += [style.bold(line) for line in folded(f"= {closed}", MARK, wide)]
    return [*lines, f"{MARK}= {digits(of.value)}"]


def whole(stages: Iterable[Stage], script: Script, closed: bool = True) -> str:
    """Each kind of layer in brackets behind how often there is one, then what occurs once: L(8nd² + 4n²d) + 2nVd."""
    pieces = []
    once: Any = 0
    for stage in stages:
        formula = stage.closed if closed else stage.formula
        written = terms(formula, script)
        if stage.times == 1:
            once = once + formula
        elif len(written) == 1:
            pieces += terms(stage.often * formula, script)
        else:
            left, right = (r"\left(", r"\right)") if script.latex else ("(", ")")
            pieces.append((True, f"{write(stage.often, script)}{left}{joined(written, script)}{right}"))
    return joined([*pieces, *terms(once, script)], script)


def _whole(made: Derivation, style: Style, wide: int) -> list[str]:
    general, closed = whole(made.stages, TEXT, closed=False), whole(made.stages, TEXT)
    lines = folded(f"= {general}", MARK, wide)
    if closed != general:
        lines += [style.bold(line) for line in folded(f"= {closed}", MARK, wide)]
    return [*lines, style.bold(f"{MARK}= {digits(made.number)}")]


def conditions(made: Derivation, script: Script = TEXT) -> tuple[str, str]:
    """The ties that closed forms use, and the bounds that hold in this setting."""
    tied = ", ".join(f"{write(tie.left, script)} = {write(tie.right, script)}" for tie in made.ties)
    bound = ", ".join(f"{write(one.low, script)} {script.least} {write(one.high, script)}" for one in made.bounds)
    return tied, bound


def _conditions(made: Derivation, style: Style, wide: int) -> list[str]:
    tied, bound = conditions(made)
    lines = wrap(f"closed forms use that here {tied}", "", wide=wide) if tied else []
    lines += wrap(f"{'and' if tied else 'closed forms use'} that {bound}", "", wide=wide) if bound else []
    return [*map(style.dim, lines), ""] if lines else []
