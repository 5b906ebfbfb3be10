"""The ops of a model, or of one attention alone, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.readings.count import Count
from assay.readings.ops import Listing, Operand, OpRow, activation_dtype
from assay.report.contract import model_object, setting_object
from assay.report.model import asked_for, has_latent, stored_as
from assay.report.table import WIDTH, Style, wrap
from assay.report.units import decimal_bytes, digits, flop, layer_ranges, plain, short, shorten
from assay.spec import Model, Op

COLUMNS = (("parameters", 10), ("FLOPs", 11), ("reads", 9), ("writes", 9), ("FLOP/B", 7))
_FIGURES = sum(width for _, width in COLUMNS) + 2 * (len(COLUMNS) - 1)
_LEFT = WIDTH - _FIGURES - 2


def report(model: Model, counted: Count, listings: Sequence[Listing], style: Style) -> list[str]:
    """Every op of every distinct block: the notation, then shapes and figures of one run in one layer."""
    asked = counted.setting
    lines = [style.bold(shorten(model.name, WIDTH)), style.dim(asked_for(counted, has_latent(model)))]
    said = wrap(
        f"One run of each op. FLOPs are exact ({asked.convention}); bytes are modelled: {stored_as(model, counted)}, "
        f"activations {activation_dtype(asked)}, cache {asked.cache}; operands read once, results written once, "
        "nothing fused, views free.",
        "",
    )
    lines += [style.dim(line) for line in said]
    for listing in listings:
        lines += ["", *_listing(listing, style)]
    total = ["total", short(counted.parameters.total), flop(counted.flops.total)]
    exact = f"{digits(counted.parameters.total)} parameters · {digits(counted.flops.total)} FLOP"
    return [*lines, "", style.bold("  ".join(total)), exact]


def _listing(listing: Listing, style: Style) -> list[str]:
    times = f" × {listing.times:,}" if listing.times > 1 else ""
    where = f"   layers {shorten(layer_ranges(listing.layers), 60)}" if listing.layers else ""
    head = "  ".join(f"{name:>{width}}" for name, width in COLUMNS)
    lines = [f"{style.bold(shorten(listing.name, 40) + times)}{style.dim(where)}"]
    lines += [style.dim(line) for line in _axes(listing)]
    lines.append(style.dim(f"{'':{_LEFT + 2}}{head}"))
    part = None
    for row in listing.rows:
        if row.op.part != part:
            part = row.op.part
            lines.append(style.dim(f"  {part}"))
        lines += _row(row, style)
    every = ", all layers" if listing.times > 1 else ""
    lines.append(
        style.bold(f"  together{every}: {digits(listing.parameters)} parameters · {digits(listing.flops)} FLOP")
    )
    return lines


def _axes(listing: Listing) -> list[str]:
    """What each letter is and its size."""
    said = [f"{a} {digits(size)} {listing.says.get(a, '')}".rstrip() for a, size in listing.sizes.items()]
    return wrap(" · ".join(said))


def _row(row: OpRow, style: Style) -> list[str]:
    lines = wrap(notation(row.op), "    ", "        ")
    shapes = f"      {shape_text(row)}"
    figures = _figures(row)
    if len(shapes) > _LEFT + 2:
        return [*lines, *(style.dim(line) for line in wrap(shapes.strip(), "      ")), f"{'':{_LEFT + 2}}{figures}"]
    return [*lines, f"{style.dim(f'{shapes:{_LEFT + 2}}')}{figures}"]


def _figures(row: OpRow) -> str:
    reads = row.weight_bytes + row.read_bytes
    parameters = short(row.parameters) if row.parameters else "shared" if row.shared else "–"
    cells = [
        parameters,
        flop(row.flops) if row.flops else "–",
        decimal_bytes(reads) if reads else "–",
        decimal_bytes(row.written_bytes) if row.written_bytes else "–",
        plain(row.intensity) if row.intensity else "–",
    ]
    return "  ".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, COLUMNS, strict=True))


def notation(op: Op) -> str:
    """The op as written, without attributes too long to read: those of positions and of execution."""
    kept = tuple((key, value) for key, value in op.attrs if len(repr(value)) <= 24)
    text = str(Op(op.name, op.kind, op.inputs, op.axes, kept, op.part))
    return text if len(kept) == len(op.attrs) else text.replace(") -> [", ", …) -> [")


def shape_text(row: OpRow) -> str:
    """q 1×2048×4096, Wq 4096×8×4×128 → 1×2048×8×4×128."""
    return f"{', '.join(f'{t.name} {_shape(t)}' for t in row.inputs)} → {_shape(row.output)}"


def _shape(operand: Operand) -> str:
    return "×".join(map(str, operand.shape)) or "1"


def document(version: str, model: Model, counted: Count, listings: Sequence[Listing]) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "model": model_object(model),
        "setting": setting_object(counted.setting),
        "blocks": [
            {
                "name": listing.name,
                "layers": list(listing.layers),
                "times": listing.times,
                "axes": dict(listing.sizes),
                "parameters": listing.parameters,
                "flops": listing.flops,
                "ops": [row_object(row) for row in listing.rows],
            }
            for listing in listings
        ],
        "parameters": {"total": counted.parameters.total},
        "flops": {"total": counted.flops.total},
    }


def row_object(row: OpRow) -> dict[str, Any]:
    """One op: figures of one run in one layer."""
    return {
        "name": row.op.name,
        "kind": row.op.kind,
        "part": row.op.part,
        "notation": str(row.op),
        "inputs": [
            {"name": t.name, "axes": list(t.axes), "shape": list(t.shape), "weight": t.weight} for t in row.inputs
        ],
        "output": {"name": row.output.name, "axes": list(row.output.axes), "shape": list(row.output.shape)},
        "parameters": row.parameters,
        "buffers": row.buffers,
        "shared": row.shared,
        "flops": row.flops,
        "weight_bytes": row.weight_bytes,
        "read_bytes": row.read_bytes,
        "written_bytes": row.written_bytes,
        "intensity": row.intensity,
    }
