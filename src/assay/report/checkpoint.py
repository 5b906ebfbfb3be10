"""What headers of weight files say, and how that compares with a model, as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.readings.check import Check, Difference
from assay.report.contract import model_object
from assay.report.table import WIDTH, Style, table
from assay.report.units import binary_bytes, decimal_bytes, digits, plural, shorten
from assay.spec import Model

if TYPE_CHECKING:  # a report is given what it prints
    from assay.sources.checkpoints import Checkpoint
    from assay.sources.checkpoints.parts import Total

SHOWN = 40  # differences in the text; JSON has them all


def report(held: Checkpoint, by_dtype: Mapping[str, Total], by_part: Mapping[str, Total], style: Style) -> list[str]:
    """Totals of a checkpoint, by dtype and by part."""
    files = plural(len(held.files), "file") if held.files else "an index alone: names, no shapes"
    lines = [
        style.bold(shorten(held.where, WIDTH)),
        f"{held.sort} · {files} · {plural(len(held.tensors), 'tensor')}",
        "",
    ]
    if not held.shaped:
        stated = "names no total" if held.stated is None else f"names {digits(held.stated)} bytes in all"
        return [*lines, f"the index {stated}; its files are not beside it"]
    lines.append(f"{decimal_bytes(held.bytes)} ({digits(held.bytes)} B, {binary_bytes(held.bytes)}) of tensors, exact")
    if held.stated not in (None, held.bytes):
        lines.append(f"the index names {digits(held.stated)} bytes")
    for head, rows in (("dtype", by_dtype), ("part, by name", by_part)):
        made = [[key, digits(t.tensors), digits(t.elements), digits(t.bytes)] for key, t in rows.items()]
        lines += ["", *table(made, "<>>>", (head, "tensors", "elements stored", "bytes"), style)]
    return lines


def document(
    version: str, held: Checkpoint, by_dtype: Mapping[str, Total], by_part: Mapping[str, Total]
) -> dict[str, Any]:
    """The same as one object of JSON."""

    def figures(rows: Mapping[str, Total]) -> dict[str, Any]:
        return {k: {"tensors": t.tensors, "elements": t.elements, "bytes": t.bytes} for k, t in rows.items()}

    return {
        "assay": version,
        "checkpoint": {
            "source": held.where,
            "format": held.sort,
            "files": len(held.files),
            "tensors": len(held.tensors),
            "bytes": held.bytes if held.shaped else None,
            "stated_bytes": held.stated,
            "by_dtype": figures(by_dtype) if held.shaped else {},
            "by_part": figures(by_part) if held.shaped else {},
        },
    }


def check_report(model: Model, held: Checkpoint, found: Check, style: Style) -> list[str]:
    """Whether a checkpoint is what the model implies, and each tensor that is not."""
    lines = [f"{style.bold(shorten(model.name, WIDTH))} against {shorten(held.where, WIDTH)}"]
    lines += [_line(one) for one in found.differences[:SHOWN]]
    if len(found.differences) > SHOWN:
        lines.append(f"  and {len(found.differences) - SHOWN:,} more; --json lists all")
    said = [f"{plural(found.agree, 'tensor')} {'agrees' if found.agree == 1 else 'agree'}"]
    said.append(plural(len(found.differences), "difference") if found.differences else "no difference")
    said += [f"{found.recomputed:,} that loaders make anew"] if found.recomputed else []
    said += [f"{found.further:,} of modules that predict further tokens"] if found.further else []
    said += [f"{found.unused:,} of layers that use another's keys"] if found.unused else []
    said += ["names alone were at hand"] if not held.shaped else []
    return [*lines, " · ".join(said)]


def _line(one: Difference) -> str:
    if one.what == "missing":
        return f"  missing      {one.name}  {_shape(one.expected)}"
    if one.what == "unexpected":
        return f"  unexpected   {one.name}  {_shape(one.held)}"
    return f"  wrong shape  {one.name}  {_shape(one.held)}, the model has {_shape(one.expected)}"


def _shape(shape: tuple[Any, ...] | None) -> str:
    return "" if shape is None else "×".join(map(str, shape)) or "one number"


def check_document(version: str, model: Model, held: Checkpoint, found: Check) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "model": model_object(model),
        "check": {
            "source": held.where,
            "agree": found.agree,
            "differences": [
                {
                    "what": one.what,
                    "name": one.name,
                    "expected": None if one.expected is None else list(one.expected),
                    "held": None if one.held is None else list(one.held),
                }
                for one in found.differences
            ],
            "recomputed": found.recomputed,
            "further": found.further,
            "unused": found.unused,
        },
    }
