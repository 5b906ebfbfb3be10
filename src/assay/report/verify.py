"""What was said, what was measured, and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay.report.table import WIDTH, Style, table, wrap
from assay.report.units import digits, plural, shorten

if TYPE_CHECKING:
    from assay.verification.result import Figure, OpFigure, Proof, Verdict

SHOWN = 20  # ops that differ; --json lists all
MATRIX = (
    ("parameters", "parameters"),
    ("prefill FLOPs", "prefill"),
    ("decode step FLOPs", "step"),
    ("cache bytes", "cache"),
    ("training FLOPs forward", "forward"),
    ("training FLOPs backward", "backward"),
    ("saved activations", "saved"),
)


def report(verdict: Verdict, style: Style) -> list[str]:
    """A table for each proof, then what differs op by op."""
    lines = [style.bold(shorten(verdict.name, WIDTH))]
    for proof in verdict.proofs:
        lines += ["", proof.name, *wrap(proof.setting), *_figures(proof, style), *_ops(proof, style)]
        lines += [line for without in proof.without for line in wrap(without)]
    return [*lines, "", "nothing differs" if verdict.alike else style.bold("said and measured differ")]


def _figures(proof: Proof, style: Style) -> list[str]:
    rows = [
        (f.name, _number(f.said, f.unit), _number(f.measured, f.unit), _number(f.difference, f.unit))
        for f in proof.figures
    ]
    return table(rows, "<>>>", ("", "said", "measured", "difference"), style) if rows else []


def _number(value: int | None, unit: str) -> str:
    return "" if value is None else f"{digits(value)} {unit}".rstrip()


def _ops(proof: Proof, style: Style) -> list[str]:
    if not proof.ops:
        return []
    ops = len({(one.layer, one.op) for one in proof.ops})
    if not proof.differing:
        return wrap(f"one by one: {plural(len(proof.ops), 'figure')} of {digits(ops)}, all alike")
    rows = [(one.layer, one.name, str(one.said), str(one.measured), one.op) for one in proof.differing[:SHOWN]]
    lines = wrap(f"one by one: {plural(len(proof.ops), 'figure')} of {digits(ops)}, {len(proof.differing):,} differ")
    lines += table(rows, "<<>><", ("layer", "figure", "said", "measured", "op"), style, indent="    ")
    if len(proof.differing) > SHOWN:
        lines.append(f"    and {len(proof.differing) - SHOWN:,} more; --json lists all")
    return lines


def matrix(verdicts: Sequence[Verdict], style: Style) -> list[str]:
    """A row for each model: = where said and measured are the same, else by how much they differ."""
    ran = [verdict for verdict in verdicts if verdict.refused is None]
    left = [verdict for verdict in verdicts if verdict.refused is not None]
    head = ("model type", *(short for _, short in MATRIX), "op by op")
    lines = table([_row(verdict) for verdict in ran], "<" + ">" * (len(MATRIX) + 1), head, style, indent="")
    if left:
        lines += ["", f"not run: {plural(len(left), 'model type')}"]
        lines += table([(one.name, str(one.refused)) for one in left], "<<", (), style)
    wrong = sum(not verdict.alike for verdict in ran)
    said = f"{plural(wrong, 'model type')} differ" if wrong else "no difference"
    return [*lines, "", f"{plural(len(ran), 'model type')} run: {said}; = is the same, - is not there"]


def _row(verdict: Verdict) -> tuple[str, ...]:
    (proof,) = verdict.proofs
    known = {figure.name: figure for figure in proof.figures}
    cells = [_cell(known.get(name)) for name, _ in MATRIX]
    return (verdict.name, *cells, "=" if not proof.differing else f"{len(proof.differing):,} differ")


def _cell(figure: Figure | None) -> str:
    if figure is None or figure.difference is None:
        return "-"
    return "=" if figure.alike else f"{figure.difference:+,}"


def document(version: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "alike": all(verdict.alike for verdict in verdicts),
        "models": [
            {
                "name": verdict.name,
                "refused": verdict.refused,
                "alike": verdict.alike,
                "proofs": [_proof(proof) for proof in verdict.proofs],
            }
            for verdict in verdicts
        ],
    }


def _proof(proof: Proof) -> dict[str, Any]:
    return {
        "name": proof.name,
        "setting": proof.setting,
        "alike": proof.alike,
        "figures": [
            {
                "name": figure.name,
                "said": figure.said,
                "measured": figure.measured,
                "difference": figure.difference,
                "unit": figure.unit or None,
            }
            for figure in proof.figures
        ],
        "compared": len(proof.ops),
        "differing": [_op(one) for one in proof.differing],
        "without": list(proof.without),
    }


def _op(one: OpFigure) -> dict[str, Any]:
    return {"layer": one.layer, "op": one.op, "figure": one.name, "said": one.said, "measured": one.measured}
