"""A measurement as text: totals, the tree of modules, the ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from assay.report.table import table, wrap
from assay.report.units import binary_bytes, digits, flop, layer_ranges, plural, share, short

if TYPE_CHECKING:
    from assay.counter.result import Measurement, ModuleRow, OpRow

HEAD = ("module", "", "calls", "parameters", "forward", "backward", "share")

_Children: TypeAlias = "dict[str, list[ModuleRow]]"


def measured_table(measured: Measurement, depth: int) -> str:
    """Totals, modules down to `depth` levels below the root, and ops, in lines of text."""
    lines = [measured.name, *_totals(measured), ""]
    lines += table(
        _modules(measured, depth), "<<>>>>>", ("module", "", "calls", "parameters", "forward", "backward", "share")
    )
    counted = [row for row in measured.ops if row.sort == "counted"]
    if counted:
        lines += ["", *table(_ops(counted), "<>>>", ("op", "calls", "forward", "backward"))]
    return "\n".join([*lines, "", *_free(measured.ops)])


def _totals(measured: Measurement) -> list[str]:
    flops, saved = measured.flops, measured.saved
    split = f"forward {digits(flops.forward)}, backward {digits(flops.backward)}" if flops.backward else "forward"
    kept = (
        f"activations {digits(saved.activations)}, inputs {digits(saved.inputs)}; and weights {digits(saved.weights)}"
    )
    rows = [
        ("FLOPs", digits(flops.total), split),
        ("parameters", digits(measured.parameters), "each once"),
        ("saved", f"{digits(measured.saved_bytes)} B", kept if saved.total else "nothing: no gradients are asked for"),
        (
            "peak",
            f"{digits(measured.peak_bytes)} B",
            f"{binary_bytes(measured.peak_bytes)}; {digits(measured.resident_bytes)} B were there before",
        ),
    ]
    return table(rows, "<><")


def _modules(measured: Measurement, depth: int) -> Iterator[Sequence[str]]:
    children: _Children = {}
    for row in measured.modules:
        if row.path:
            children.setdefault(row.path.rpartition(".")[0], []).append(row)
    for level, name, rows in _walk([row for row in measured.modules if not row.path], children, 0, depth):
        forward, backward = (sum(getattr(row, part) for row in rows) for part in ("forward", "backward"))
        yield (
            "  " * level + (name or measured.name),
            "" if not name else rows[0].kind if len(rows) == 1 else f"{len(rows)} × {rows[0].kind}",
            digits(sum(row.calls for row in rows)),
            short(sum(row.parameters for row in rows)),
            _work(forward),
            _work(backward),
            share(forward + backward, measured.flops.total),
        )


def _walk(
    rows: list[ModuleRow], children: _Children, level: int, depth: int
) -> Iterator[tuple[int, str, list[ModuleRow]]]:
    """Level, name and rows of each line; alike modules side by side are one line, and so are those below them."""
    for alike in _runs(rows, children):
        yield level, _label(alike), alike
        if level < depth:
            below = [children.get(row.path, []) for row in alike]
            yield from _walk_alike(below, children, level + 1, depth)


def _walk_alike(
    below: list[list[ModuleRow]], children: _Children, level: int, depth: int
) -> Iterator[tuple[int, str, list[ModuleRow]]]:
    """The children of alike modules, place by place."""
    if len(below) == 1:
        yield from _walk(below[0], children, level, depth)
        return
    for alike in zip(*below, strict=True):
        yield level, _name(alike[0]), list(alike)
        if level < depth:
            yield from _walk_alike([children.get(row.path, []) for row in alike], children, level + 1, depth)


def _runs(rows: list[ModuleRow], children: _Children) -> list[list[ModuleRow]]:
    """Numbered siblings, those alike in all that they hold together: layers of one sort."""
    runs: dict[object, list[ModuleRow]] = {}
    for row in rows:
        key = _shape(row, children) if _name(row).isdecimal() else row.path
        runs.setdefault(key, []).append(row)
    return list(runs.values())


def _shape(row: ModuleRow, children: _Children) -> tuple[object, ...]:
    below = tuple((_name(child), _shape(child, children)) for child in children.get(row.path, ()))
    return row.kind, row.calls, row.parameters, row.forward, row.backward, below


def _label(rows: list[ModuleRow]) -> str:
    return _name(rows[0]) if len(rows) == 1 else layer_ranges([int(_name(row)) for row in rows])


def _name(row: ModuleRow) -> str:
    return row.path.rpartition(".")[2]


def _ops(rows: list[OpRow]) -> Iterator[Sequence[str]]:
    for row in rows:
        yield row.name, digits(row.calls), _work(row.forward), _work(row.backward)


def _work(flops: int) -> str:
    """7.169 P for 7,169,159,410,483,200 FLOPs: the column says of what."""
    return flop(flops).removesuffix("FLOP").rstrip()


def _free(rows: Sequence[OpRow]) -> list[str]:
    """What was not counted, by sort; what was allowed by name, by name."""
    sorts: dict[str, int] = {}
    for row in rows:
        if row.sort not in ("counted", "allowed"):
            sorts[row.sort] = sorts.get(row.sort, 0) + row.calls
    said = [f"{sort} {calls:,}" for sort, calls in sorted(sorts.items(), key=lambda item: -item[1])]
    lines = wrap(f"free, by calls: {', '.join(said) or 'nothing'}", rest="    ")
    allowed = [f"{row.name} ({plural(row.calls, 'call')})" for row in rows if row.sort == "allowed"]
    return lines + (wrap(f"allowed without a rule: {', '.join(allowed)}", rest="    ") if allowed else [])
