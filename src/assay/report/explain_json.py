"""A derivation as one object of JSON."""

from __future__ import annotations

from typing import Any

from assay.readings.explain import Derivation, Stage, Sum
from assay.report.algebra import LATEX, TEXT, write
from assay.report.explain_text import values, whole
from assay.report.legend import default, origin


def document(version: str, made: Derivation) -> dict[str, Any]:
    """The same as one object of JSON. Formulas are texts that SymPy reads; `closed_text` as people write it."""

    def formulas(of: Sum | Stage | Derivation) -> dict[str, Any]:
        return {"formula": str(of.formula), "closed": str(of.closed), "closed_text": write(of.closed)}

    def part(one: Sum) -> dict[str, Any]:
        steps = [
            {
                "op": str(step.op),
                "formula": str(step.formula),
                "numbers": write(step.formula, values(made)),
                "value": step.value,
            }
            for step in one.steps
        ]
        return {"part": one.part, **formulas(one), "value": one.value, "steps": steps}

    asked = made.setting
    return {
        "assay": version,
        "model": made.model.name,
        "figure": made.figure,
        "part": made.part or None,
        "setting": {
            name: getattr(asked, name) for name in ("batch", "tokens", "past", "source", "convention", "latent")
        },
        "stages": [
            {
                "name": stage.name,
                "layers": list(stage.layers),
                "times": stage.times,
                "often": str(stage.often),
                **formulas(stage),
                "value": stage.value,
                "parts": list(map(part, stage.parts)),
            }
            for stage in made.stages
        ],
        **formulas(made),
        "text": whole(made.stages, TEXT),
        "latex": whole(made.stages, LATEX),
        "value": made.number,
        "ties": [{"left": str(tie.left), "right": str(tie.right)} for tie in made.ties],
        "bounds": [{"low": str(one.low), "high": str(one.high)} for one in made.bounds],
        "letters": [
            {
                "letter": letter.symbol.name,
                "value": letter.value,
                "says": letter.says,
                "origin": origin(letter, made.model, made.legend),
                "by_default": bool(default(letter, made.model, made.legend)),
                "where": list(letter.where),
            }
            for letter in made.legend
        ],
    }
