"""Where a figure comes from: the derivation as a result that can be printed."""

from __future__ import annotations

from typing import Any

from assay.readings.explain import Derivation, derive
from assay.records import dataclass
from assay.spec import Block, Model


@dataclass(frozen=True)
class Explanation(Derivation):
    """A derivation that can be printed: `str()` of it for a terminal, `markdown()`, `latex()`, `document()`."""

    def __str__(self) -> str:
        from assay.report.explain_text import report
        from assay.report.table import Style

        return "\n".join(report(self, Style(False)))

    def __repr__(self) -> str:
        part = f"{self.part}, " if self.part else ""
        return f"<{part}{self.figure} of {self.model.name}: {self.number:,}>"

    def markdown(self) -> str:
        """Headings, tables and formulas between $ signs."""
        from assay.report.explain_markup import markdown

        return markdown(self)

    def latex(self) -> str:
        """Aligned equations for a document that loads amsmath."""
        from assay.report.explain_markup import latex

        return latex(self)


def explain(model: Model | Block, figure: str = "flops", part: str | None = None, **asked: Any) -> Explanation:
    """Derive a figure of a model, or of one part or kind of layer, from its ops, in the usual letters.

    `figure` is parameters, flops, cache (bytes) or activations (elements written); `part` is a part such as attention,
    attention.scores, mlp, head, or the name of a kind of layer; `asked` is what `count` takes: batch, tokens, past,
    convention, ... The result has `stages`, each with its steps; `formula`, true at any sizes; `closed`, the same with
    the relations between this model's sizes used; `number`; and `legend`, the letters and the config keys behind them.
    Needs SymPy. Raises SettingError and SizeError.
    """
    return Explanation(**vars(derive(model, figure, part, **asked)))
