"""A derivation as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.readings.explain import Derivation, Stage, Sum
from assay.report.algebra import LATEX, Script, write
from assay.report.explain_text import basis, call, conditions, heading, signature, title, whole
from assay.report.legend import legend_rows
from assay.report.units import digits


def markdown(made: Derivation) -> str:
    """Headings, tables, and formulas in $ signs, as GitHub and MathJax show them."""
    lines = [f"## {title(made)}", "", basis(made), ""]
    known: dict[Any, str] = {}
    for stage in made.stages:
        lines += [f"### {heading(stage)}", ""]
        for part in stage.parts:
            mark = signature(part)
            if mark in known and len(part.steps) > 1:
                lines += [f"**{part.part}** as in {known[mark]}: {digits(part.value)}", ""]
                continue
            known[mark] = stage.name
            rows = [(f"`{call(s.op)}`", _math(s.formula), _math(s.formula, made), digits(s.value)) for s in part.steps]
            lines += _table((part.part, "formula", "in numbers", "value"), rows, "<<<>")
            lines += ["", f"${_chain(part)}$", ""] if len(part.steps) > 1 else [""]
        if len(stage.parts) > 1:
            lines += [f"one layer: ${_chain(stage)}$" if stage.times > 1 else f"together: ${_chain(stage)}$", ""]
    if len(made.stages) > 1 or made.stages[0].times > 1:
        lines += ["### all", "", f"$${whole(made.stages, LATEX)} = {LATEX.number(made.number)}$$", ""]
    tied, bound = conditions(made, LATEX)
    said = [f"closed forms use that here ${tied}$"] if tied else []
    said += [f"${bound}$"] if bound else []
    lines += [", and ".join(said), ""] if said else []
    rows = [
        (f"${letter}$", value, says, " ".join(filter(None, (_code(origin), remark))))
        for letter, value, says, origin, remark in legend_rows(made.legend, made.model, LATEX)
    ]
    return "\n".join([*lines, *_table(("letter", "value", "", "from"), rows, "<><<"), ""])


def latex(made: Derivation) -> str:
    """Sections of aligned equations, and a table of the letters; the document loads amsmath."""
    lines = [f"% {title(made)}", f"% {basis(made)}"]
    for stage in made.stages:
        lines += [rf"\paragraph{{{_escaped(heading(stage))}}}", r"\begin{align*}"]
        rows = []
        for part in stage.parts:
            rows += [
                rf"\text{{{_escaped(step.op.name)}}} &: {write(step.formula, LATEX)} = {_numbers(step.formula, made)} "
                rf"= {LATEX.number(step.value)}"
                for step in part.steps
            ]
            if len(part.steps) > 1:
                rows.append(rf"\text{{{_escaped(part.part)}}} &: {_chain(part)}")
        if len(stage.parts) > 1:
            rows.append(rf"\textbf{{{_escaped(stage.name)}}} &: {_chain(stage)}")
        lines += ["  " + " \\\\\n  ".join(rows), r"\end{align*}"]
    lines += [r"\[", f"  {whole(made.stages, LATEX)} = {LATEX.number(made.number)}", r"\]"]
    tied, bound = conditions(made, LATEX)
    lines += [f"Here ${', '.join(filter(None, (tied, bound)))}$."] if tied or bound else []
    rows = [
        f"  ${letter}$ & {value} & {_escaped(says)} & {' '.join(map(_escaped, filter(None, known)))} \\\\"
        for letter, value, says, *known in legend_rows(made.legend, made.model, LATEX)
    ]
    return "\n".join([*lines, r"\begin{tabular}{lrll}", *rows, r"\end{tabular}", ""])


def _chain(of: Sum | Stage) -> str:
    """The sum in general, closed, and as a number."""
    written = dict.fromkeys((write(of.formula, LATEX), write(of.closed, LATEX), LATEX.number(of.value)))
    return " = ".join(written)


def _numbers(formula: Any, made: Derivation) -> str:
    values = {letter.symbol: letter.value for letter in made.legend}
    text = write(formula, Script(values=values))
    for old, new in (("×", r"\times"), ("−", "-"), (",", "{,}"), ("⌊", r"\lfloor "), ("⌋", r"\rfloor")):
        text = text.replace(old, new)
    for power in "⁰¹²³⁴⁵⁶⁷⁸⁹":
        text = text.replace(power, f"^{{{'⁰¹²³⁴⁵⁶⁷⁸⁹'.index(power)}}}")
    return text.replace("⌈", r"\lceil ").replace("⌉", r"\rceil")


def _math(formula: Any, made: Derivation | None = None) -> str:
    return f"${write(formula, LATEX) if made is None else _numbers(formula, made)}$"


def _code(text: str) -> str:
    return f"${text}$" if text.startswith("= ") else f"`{text}`" if text else ""


def _escaped(text: str) -> str:
    """Plain text in LaTeX."""
    if text.startswith("= "):
        return f"${text}$"
    for old, new in (("_", r"\_"), ("&", r"\&"), ("%", r"\%"), ("#", r"\#"), ("×", r"$\times$"), ("…", r"\dots{}")):
        text = text.replace(old, new)
    return text.replace("–", "--")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], align: str) -> list[str]:
    """A Markdown table."""
    made = [f"| {' | '.join(head)} |", "|" + "|".join("---:" if one == ">" else "---" for one in align) + "|"]
    return made + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
