"""A figure as a page of HTML that needs nothing else: the picture as SVG, and the figures behind it as a table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from assay.report.units import digits
from assay.studies.figures.data import axis_of, groups, setting_of, title_of
from assay.studies.shown import headings, spread_rows, stored, usual_columns

if TYPE_CHECKING:
    from assay.studies.result import Sweep

ROWS = 40  # of the table: the others lie between them

_STYLE = """
:root { color-scheme: light; }
body { margin: 2.5rem auto; max-width: 62rem; padding: 0 1.5rem; color: #22252b; background: #fff;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
figure { margin: 0; }
svg { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; margin-top: 2rem; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid #e4e6ea; white-space: nowrap; }
th { color: #6b7078; font-weight: 600; }
.scroll { overflow-x: auto; }
footer { margin-top: 2rem; color: #6b7078; font-size: 13px; }
"""


def page(swept: Sweep, says: str, picture: str) -> str:
    """The page, as text."""
    import assay

    title = escape(f"{title_of(swept)}: {says}")
    said = " · ".join(filter(None, [setting_of(swept, cache=True), stored(swept)]))
    picture = picture.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n"
        f"<figure>\n{picture}\n</figure>\n{_table(swept)}\n"
        f"<footer>{escape(said)} · counted by assay {escape(assay.__version__)}</footer>\n"
        f"</html>\n"
    )


def _table(swept: Sweep) -> str:
    names = usual_columns(swept)
    rows = _rows(swept)
    units = ["<br>bytes" if name.endswith(".bytes") else "" for name in names]
    head = "".join(f"<th>{escape(said)}{unit}</th>" for said, unit in zip(headings(names), units, strict=True))
    columns = [[_cell(value) for value in swept.columns[name][rows].tolist()] for name in names]
    body = "\n".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in zip(*columns, strict=True)
    )
    left = f"<p>{len(rows)} of {len(swept):,} rows</p>" if len(rows) < len(swept) else ""
    return f'<div class="scroll"><table>\n<tr>{head}</tr>\n{body}\n</table></div>{left}'


def _rows(swept: Sweep) -> list[int]:
    """Rows of the table: of each line or panel the same places along the axis, both ends among them."""
    made = groups(swept, axis_of(swept), len(swept), "a table")
    each = max(2, ROWS // len(made))
    return [int(group.rows[place]) for group in made for place in spread_rows(len(group.rows), each)]


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return digits(value) if isinstance(value, int | float) else escape(str(value))
