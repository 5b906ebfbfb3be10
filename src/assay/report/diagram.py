"""A model as a picture: what flows where, the shape on every arrow, the cost on every box."""

from __future__ import annotations

from typing import Any

from assay.errors import SettingError
from assay.readings.binding import as_model, parted
from assay.readings.count import Count, count
from assay.readings.graph import Graph, graph
from assay.records import dataclass
from assay.report.units import shorten
from assay.spec import Block, Model

ENDINGS = (".svg", ".mmd", ".md", ".txt")
LONGEST = 200  # characters of a path in a message


@dataclass(frozen=True)
class Diagram:
    """A diagram that can be printed: `str()` of it for a terminal, `svg()`, `mermaid()`; a notebook shows the picture.

    `graph` holds the nodes and arrows themselves, with shapes and costs.
    """

    model: Model
    counted: Count
    graph: Graph
    unrolled: bool = False

    def __str__(self) -> str:
        from assay.report.draw_text import text
        from assay.report.table import Style

        return "\n".join(text(self.model, self.counted, self.graph, self.unrolled, Style(False)))

    def __repr__(self) -> str:
        return f"<diagram of {self.model.name}{', unrolled' if self.unrolled else ''}>"

    def svg(self) -> str:
        """The picture as SVG, light or dark as the viewer is."""
        from assay.report.draw_svg import svg

        return svg(self.model, self.counted, self.graph, self.unrolled)

    def mermaid(self) -> str:
        """A flowchart in the language of Mermaid."""
        from assay.report.mermaid import mermaid

        return mermaid(self.model, self.counted, self.graph, self.unrolled)

    def save(self, path: str) -> None:
        """Write it to a file: .svg, .mmd (Mermaid), .md (Mermaid within Markdown) or .txt. Raises SettingError."""
        ending = ending_of(path)
        if ending == ".svg":
            made = self.svg()
        elif ending == ".txt":
            made = f"{self}\n"
        else:
            made = self.mermaid() if ending == ".mmd" else f"```mermaid\n{self.mermaid()}```\n"
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(made)
        except OSError as error:
            raise SettingError(f"{shorten(path, LONGEST)} cannot be written: {error.strerror}") from None
        except ValueError as error:  # a null byte
            raise SettingError(f"{path!r} is no path: {error}") from None

    def _repr_svg_(self) -> str:
        return self.svg()


def ending_of(path: str) -> str:
    """How a picture's file ends. Raises SettingError for another than those known."""
    for ending in ENDINGS:
        if path.lower().endswith(ending):
            return ending
    said = shorten(path, LONGEST) or "an empty name"
    raise SettingError(f"{said} is no picture's name; it must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")


def draw(model: Model | Block, *, unrolled: bool = False, **asked: Any) -> Diagram:
    """Draw a model, or a block with `sizes` for axes that it leaves open; each distinct layer once.

    A box is a sub-layer, or an op where `unrolled`; `asked` is what `count` takes: batch, tokens, past, convention, ...
    The result has `graph`, `svg()`, `mermaid()` and `save(path)`. Sizes are integers, for they stand in the picture.
    Raises SettingError and SizeError.
    """
    given, sizes = parted(asked, count)
    whole = as_model(model, sizes, count)
    counted = count(whole, **given)
    if not isinstance(counted.flops.total, int):
        raise SettingError("a picture is of one setting; its sizes must be integers")
    return Diagram(whole, counted, graph(whole, counted.setting, unrolled), unrolled)
