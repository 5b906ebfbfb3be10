"""A figure drawn by its name, and written as PNG, SVG, or a page of HTML that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from assay.errors import SettingError
from assay.sources.shown import name as shown
from assay.studies.figures import bars, lines, stacked, style
from assay.studies.figures.catalogue import FIGURES, figure_of
from assay.studies.figures.data import TITLES
from assay.studies.names import chosen

if TYPE_CHECKING:
    from assay.studies.result import Sweep

SORTS = ("png", "svg", "html")

# what stands in titles
SAID = ("model.name", "model.latent", *(f"setting.{key}" for key in TITLES))

DRAWN: dict[str, Callable[[Sweep], Any]] = {
    "flops": stacked.flops,
    "shares": stacked.shares,
    "flops-per-token": lines.flops_per_token,
    "attention-share": lines.attention_share,
    "memory": lines.memory,
    "parameters": bars.parameters,
    "attention": stacked.attention,
    "core": bars.core,
}


def sort_of(path: str) -> str:
    """What a file's ending says it is to be. Raises SettingError."""
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending not in SORTS:
        raise SettingError(f"{shown(path)} ends in none of {', '.join('.' + sort for sort in SORTS)}")
    return ending


def draw(swept: Sweep, name: str) -> Any:
    """The figure of that name, as matplotlib has it. Raises SettingError."""
    wanted = figure_of(name)
    absent = [column for column in (*SAID, *swept.swept) if column not in swept.columns]
    if absent:
        raise SettingError(f"a figure says {absent[0]}, which this sweep has not kept; sweep without columns=")
    chosen([column for column in wanted.columns if not (wanted.split and column == "attention")], swept.columns)
    if wanted.split and not any(column.startswith("attention.") for column in swept.columns):
        raise SettingError(f"{name} needs attention taken apart: sweep(..., also=['attention'])")
    with style.pyplot().rc_context(style.RC):
        return DRAWN[name](swept)


def save(swept: Sweep, name: str, path: str) -> None:
    """Draw a figure into a file. Raises SettingError."""
    sort = sort_of(path)
    with style.pyplot().rc_context(style.RC), catch_warnings():
        filterwarnings("ignore", "Glyph .* missing")  # of a name that no font at hand can write
        figure = draw(swept, name)
        try:
            if sort == "html":
                from assay.studies.figures.page import page

                with open(path, "w", encoding="utf-8") as file:
                    file.write(page(swept, FIGURES[name].says, svg(figure)))
            else:
                undated = {"Date": None} if sort == "svg" else {"Software": None}
                figure.savefig(path, format=sort, metadata={**undated, "Description": provenance(swept, name)})
        except OSError as error:
            raise SettingError(f"{shown(path)} cannot be written: {error.strerror or type(error).__name__}") from None


def provenance(swept: Sweep, name: str) -> str:
    """What a file says of its origin: the figure, and a digest of the rows that it shows."""
    from hashlib import sha256

    wanted = chosen(FIGURES[name].columns, swept.columns)
    rows = swept.only(list(dict.fromkeys([*swept.swept, *wanted]))).to_csv() or ""
    return f"assay sweep: {name}; rows sha256 {sha256(rows.encode()).hexdigest()}"


def svg(figure: Any) -> str:
    """A figure as text that a page may hold: without the head of a file."""
    from io import StringIO

    held = StringIO()
    figure.savefig(held, format="svg", metadata={"Date": None})
    text = held.getvalue()
    return text[text.index("<svg") :]
