"""The ledger of a model's stored tensors as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.readings.tensors import Entry
from assay.report.contract import model_object
from assay.report.model import about
from assay.report.table import WIDTH, Style, table, wrap
from assay.report.units import digits, layer_ranges, shorten
from assay.spec import Model

HEAD = ("tensor", "times", "shape", "axes", "elements")


def report(model: Model, entries: Sequence[Entry], style: Style) -> list[str]:
    """Every tensor below its part: path, how often it occurs, its shape by number and by name, elements in all."""
    lines = [style.bold(shorten(model.name, WIDTH)), *([about(model)] if about(model) else []), ""]
    lines += _ledger(entries, style)
    buffers = sum((e.times * e.elements for e in entries if e.buffer), start=0)
    stored = f"{digits(total(entries) - buffers)} parameters"
    lines += ["", stored + (f" and {digits(buffers)} elements of buffers, stored beside them" if buffers else "")]
    said = ["(a b) is one stored dimension of a·b"]
    said += ["{i} is the number of the layer"] if any("{i}" in e.path for e in entries) else []
    said += ["+ marks where several weights lie behind each other"] if any(len(e.weights) > 1 for e in entries) else []
    return [*lines, *(style.dim(line) for line in wrap("; ".join(said), ""))]


def _ledger(entries: Sequence[Entry], style: Style) -> list[str]:
    rows = [[entry.path, *_figures(entry)] for entry in entries]
    rows.append(["total", digits(sum(e.times for e in entries)), "", "", digits(total(entries))])
    head, *made = table(rows, "<>><>", HEAD)
    tall = max(map(len, made)) > WIDTH
    if tall:  # a path on a line of its own
        head, *made = table([["  ", *row[1:]] if row[0] != "total" else row for row in rows], "<>><>", HEAD)
    lines, said = [style.dim(head)], ""
    for entry, line in zip(entries, made, strict=False):
        layers = f"   layers {shorten(layer_ranges(entry.layers), 60)}" if entry.layers else ""
        if entry.part + layers != said:
            said = entry.part + layers
            lines.append(style.dim(said))
        lines += [f"  {entry.path}", line] if tall else [line]
    return [*lines, style.bold(made[-1])]


def total(entries: Sequence[Entry]) -> Any:
    """Elements of all tensors together."""
    return sum((entry.times * entry.elements for entry in entries), start=0)


def _figures(entry: Entry) -> list[str]:
    return [
        digits(entry.times),
        "×".join(map(str, entry.shape)),
        f"[{' '.join(entry.dims)}]{' buffer' if entry.buffer else ''}",
        digits(entry.times * entry.elements),
    ]


def document(version: str, model: Model, entries: Sequence[Entry]) -> dict[str, Any]:
    """The same as one object of JSON; `count` is of one occurrence, `elements` of all.

    `path` is the public implementation's name, `checkpoint` what published files hold for it, before quantization:
    as it is, or one tensor for each expert.
    """
    buffers = sum((e.times * e.elements for e in entries if e.buffer), start=0)
    return {
        "assay": version,
        "model": model_object(model),
        "tensors": [
            {
                "path": e.path,
                "shape": list(e.shape),
                "axes": list(e.dims),
                "count": e.elements,
                "times": e.times,
                "layers": layer_ranges(e.layers),
                "elements": e.times * e.elements,
                "part": e.part,
                "buffer": e.buffer,
                "weights": list(e.weights),
                "checkpoint": [{"name": s.path, "shape": list(s.shape), "times": s.times} for s in e.checkpoint],
            }
            for e in entries
        ],
        "total": total(entries),
        "parameters": total(entries) - buffers,
        "buffers": buffers,
    }
