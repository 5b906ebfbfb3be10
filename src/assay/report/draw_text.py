"""A diagram as text, no wider than a terminal of 100 columns: boxes and arrows, or a line for each op beside rails."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from assay.readings.count import Count
from assay.readings.graph import Flow, Graph, Node, Stage
from assay.readings.ops import Operand
from assay.records import replace
from assay.report.captions import (
    box,
    costs,
    end_of,
    folded,
    heading,
    legend,
    name_of,
    origin,
    setting_of,
    shape,
    stream,
    together,
    totals,
    value,
)
from assay.report.geometry import Drawing, Units, corners, draw
from assay.report.layout import ENTER, LEAVE, OUTSIDE, Grid, place
from assay.report.table import WIDTH, Style, wrap
from assay.report.units import shorten
from assay.spec import Model

UNITS = Units(between=2, track=1, enters=4, leaves=2, label=2, head=1, point=1)
NARROW = replace(UNITS, between=1)
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
STROKES = {
    UP: "│", DOWN: "│", UP | DOWN: "│", LEFT: "─", RIGHT: "─", LEFT | RIGHT: "─",
    DOWN | RIGHT: "┌", DOWN | LEFT: "┐", UP | RIGHT: "└", UP | LEFT: "┘",
    UP | DOWN | RIGHT: "├", UP | DOWN | LEFT: "┤", DOWN | LEFT | RIGHT: "┬", UP | LEFT | RIGHT: "┴",
    UP | DOWN | LEFT | RIGHT: "┼",
}  # fmt: skip
INDENT = 2
SAID = 9  # characters of what is computed: where there are fewer, shapes stand below


def text(model: Model, counted: Count, graph: Graph, unrolled: bool, style: Style, wide: int = WIDTH) -> list[str]:
    """The whole diagram, on lines of at most `wide` characters."""
    lines = [style.bold(shorten(model.name, wide))]
    lines += [style.dim(line) for said in (totals, setting_of) for line in wrap(said(model, counted), "", wide=wide)]
    drawn = [None] * len(graph.stages) if unrolled else _boxed(graph.stages, wide)
    paint = dict(zip(map(id, graph.stages), drawn, strict=True))
    for stack in graph.stacks():
        if len(stack) > 1:
            names = ", ".join(stage.name for stage in stack)
            lines += [
                "",
                *(style.dim(line) for line in wrap(f"layers in the order of their indices: {names}", "", wide=wide)),
            ]
        for stage in stack:
            lines += ["", *_heading(stage, style, wide)]
            painted = paint[id(stage)]
            lines += _columns(_Rails(stage, unrolled).all(), style, wide) if painted is None else painted
    lines += ["", *(style.dim(line) for line in folded(legend(graph), wide))]
    return lines


def _heading(stage: Stage, style: Style, wide: int) -> list[str]:
    """The stage's name on a rule with what it costs; its layers beside the name, or below where they are too many."""
    name, layers = heading(stage)
    right = together(stage)
    room = wide - len(right) - 8
    both = f"{name} · {layers}" if layers else name
    said = both if len(both) <= room else shorten(name, room)
    rule = "─" * (wide - len(said) - len(right) - 6)
    below = wrap(layers, " " * INDENT, wide=wide) if said != both and layers else []
    return [f"── {style.bold(said)} {rule} {style.dim(right)}", *map(style.dim, below)]


class _Paper:
    """Characters at places, and strokes that join where they are of one line."""

    def __init__(self, width: int, height: int) -> None:
        self.cells = [[" "] * width for _ in range(height)]
        self.strokes: dict[tuple[int, int], dict[int, int]] = {}

    def write(self, x: int, y: int, said: str) -> None:
        """Write over what is there."""
        for i, ch in enumerate(said):
            if 0 <= y < len(self.cells) and 0 <= x + i < len(self.cells[y]):
                self.cells[y][x + i] = ch

    def line(self, owner: int, points: Sequence[tuple[float, float]]) -> None:
        """A line corner by corner."""
        for (ax, ay), (bx, by) in pairwise(points):
            x, y, tx, ty = int(ax), int(ay), int(bx), int(by)
            sx, sy = (tx > x) - (tx < x), (ty > y) - (ty < y)
            to = RIGHT if sx > 0 else LEFT if sx < 0 else DOWN if sy > 0 else UP
            back = {RIGHT: LEFT, LEFT: RIGHT, UP: DOWN, DOWN: UP}[to]
            while (x, y) != (tx, ty):
                self._mark(owner, x, y, to)
                x, y = x + sx, y + sy
                self._mark(owner, x, y, back)

    def _mark(self, owner: int, x: int, y: int, way: int) -> None:
        held = self.strokes.setdefault((x, y), {})
        held[owner] = held.get(owner, 0) | way

    def lines(self) -> list[str]:
        """What stands on it; where lines cross, the one up and down is on top."""
        for (x, y), held in self.strokes.items():
            if not (0 <= y < len(self.cells) and 0 <= x < len(self.cells[y])) or self.cells[y][x] != " ":
                continue
            ways = set(held.values())
            crossed = ways == {UP | DOWN, LEFT | RIGHT}
            self.cells[y][x] = "│" if crossed else STROKES[_all(ways)]
        return ["".join(row).rstrip() for row in self.cells]


def _all(ways: set[int]) -> int:
    made = 0
    for way in ways:
        made |= way
    return made


class _Boxes:
    """The boxes and arrows of a stage, before they are painted; `narrow` with more and shorter lines."""

    def __init__(self, stage: Stage, narrow: bool) -> None:
        self.grid = place(stage)
        enters, self.goes = stream(stage)
        fold = 18 if narrow else 34
        items = range(len(self.grid.items))
        self.texts = [_texts(stage, self.grid, i, enters, self.goes, fold) for i in items]
        values = [stage.flows[line.flow].values for line in self.grid.lines]
        self.labels = [[line for v in held for line in _label(v, narrow)] for held in values]
        self.drawing = draw(self.grid, self._box, self._label, NARROW if narrow else UNITS)
        main = [
            i
            for i in items
            if (self.grid.items[i].sort, self.grid.items[i].flow) in ((ENTER, enters), (LEAVE, self.goes))
        ]
        self.stream = int(self.drawing.boxes[main[0]][0]) if main else 0

    @property
    def width(self) -> int:
        """Characters, without an indent."""
        return int(self.drawing.width) + 1

    def _box(self, item: int) -> tuple[float, float]:
        lines = self.texts[item]
        if self.grid.items[item].sort == "node":
            return (max(map(len, lines)) + 4) | 1, len(lines) + 2
        return (max(map(len, lines)) | 1, len(lines)) if lines else (1, 0)

    def _label(self, line: int) -> tuple[float, float]:
        return max(map(len, self.labels[line])), len(self.labels[line])


def _boxed(stages: Sequence[Stage], wide: int) -> list[list[str] | None]:
    """For each stage boxes and arrows, their streams below each other; None where they are wider than a page."""
    made = [_Boxes(stage, False) for stage in stages]
    if any(one.width > wide for one in made):
        made = [_Boxes(stage, True) for stage in stages]
    fits = [one.width <= wide for one in made]
    middle = {True: 0, False: 0}  # of an encoder and of the rest
    for stage, one, fit in zip(stages, made, fits, strict=True):
        middle[stage.encodes] = max(middle[stage.encodes], one.stream if fit else 0)
    lines: list[list[str] | None] = []
    for stage, one, fit in zip(stages, made, fits, strict=True):
        indent = min(INDENT + middle[stage.encodes] - one.stream, wide - one.width)
        lines.append(_painted(one.grid, one.drawing, one.texts, one.labels, one.goes, indent, wide) if fit else None)
    return lines


def _label(of: Operand, narrow: bool) -> list[str]:
    return [f"{of.name}  {' '.join(of.axes)}", f"{shape(of)}"] if narrow else [value(of)]


def _painted(
    grid: Grid,
    drawing: Drawing,
    texts: list[list[str]],
    labels: list[list[str]],
    goes: int | None,
    indent: int,
    room: int,
) -> list[str]:
    paper = _Paper(room, int(drawing.height) + 1)
    for item, lines in enumerate(texts):
        x, y, wide, tall = map(int, drawing.boxes[item])
        left = indent + x - wide // 2
        if grid.items[item].sort == "node":
            paper.write(left, y, f"┌{'─' * (wide - 2)}┐")
            paper.write(left, y + tall - 1, f"└{'─' * (wide - 2)}┘")
            for n, line in enumerate(lines):
                paper.write(left, y + 1 + n, f"│{line:^{wide - 2}}│")
        else:
            for n, line in enumerate(lines):
                paper.write(left, y + n, f"{line:^{wide}}")
    for path in drawing.paths:
        points = [(x + indent, y) for x, y in corners(path.points)]
        paper.line(path.line, points)
        (before, _), (end, low) = points[-2], points[-1]
        leaves = grid.items[path.target].sort == LEAVE
        if before != end:
            paper.write(int(end), int(low), "◄" if before > end else "►")
        elif not leaves or grid.lines[path.line].flow == goes:
            paper.write(int(end), int(low) - (0 if leaves else 1), "▼")
    for label in drawing.labels:
        for n, line in enumerate(labels[label.line]):
            x = int(label.x) + indent - (len(line) - 1 if label.left else 0)
            paper.write(x, int(label.y) + n, line)
    return paper.lines()


def _texts(stage: Stage, grid: Grid, item: int, enters: int | None, goes: int | None, fold: int) -> list[str]:
    held = grid.items[item]
    if held.sort == "meet":
        return ["⊕"]
    if held.node is not None:
        return box(stage, item, False, fold)
    if held.sort == LEAVE and held.flow != goes:
        return [end_of(stage.flows[held.flow])]
    if held.sort == OUTSIDE or (held.sort == ENTER and held.flow != enters):
        flow = stage.flows[held.flow]
        return [f"({flow.values[0].name} {origin(flow)})"]
    return []


Key = tuple[str, int]  # what runs in a lane: a flow from before, or what a node made
Row = tuple[str, str, str, str, str]  # rails, what is computed, its shape, its cost, and the rails that go on below


class _Rails:
    """A line for each node behind the rails of what is still to be read."""

    def __init__(self, stage: Stage, unrolled: bool) -> None:
        self.stage, self.unrolled = stage, unrolled
        self.lanes: list[tuple[Key, int] | None] = []  # with how many still read it
        self.rows: list[Row] = []
        self.left: dict[Key, int] = {("node", index): 0 for index in range(len(stage.nodes))}
        for i, flow in enumerate(stage.flows):
            key = _key(i, flow)
            self.left[key] = self.left.get(key, 0) + len(flow.targets) + flow.leaves

    def all(self) -> list[Row]:
        """Every row; what is given from outside right above where it is read first."""
        order = _order(self.stage)
        given = [(i, flow) for i, flow in enumerate(self.stage.flows) if flow.source is None]
        for i, flow in given:
            if flow.carried:
                self._enter(i, flow)
        for index in order:
            for i, flow in given:
                if not flow.carried and index == min(flow.targets, key=order.index):
                    self._enter(i, flow)
            self._node(index)
        return self.rows

    def _enter(self, index: int, flow: Flow) -> None:
        at = self._free()
        self.lanes[at] = (("in", index), self.left["in", index])
        name = flow.values[0].name if flow.carried else f"{flow.values[0].name} {origin(flow)}"
        self.rows.append((_rail(self.lanes, at, [], "╷"), name, _shape(flow.values[0]), "", _rail(self.lanes)))

    def _node(self, index: int) -> None:
        joins = []
        for i, flow in enumerate(self.stage.flows):
            if index in flow.targets:
                key = _key(i, flow)
                at = next(n for n, lane in enumerate(self.lanes) if lane is not None and lane[0] == key)
                self.left[key] -= 1
                joins.append((at, not self.left[key]))
        ended = [at for at, ends in joins if ends]
        spot = min(ended) if ended else self._free()
        node = self.stage.nodes[index]
        made = [v for flow in self.stage.flows if flow.source == index for v in flow.values]
        rail = _rail(self.lanes, spot, [join for join in joins if join[0] != spot], "⊕" if node.adds else "●")
        said = _call(node) if self.unrolled else name_of(node)
        for at in ended:
            self.lanes[at] = None
        key = ("node", index)
        self.lanes[spot] = (key, self.left[key]) if self.left[key] else None
        shape_of = _shape(made[0]) if made else ""
        self.rows.append((rail, said, shape_of, " · ".join(costs(node)), _rail(self.lanes)))

    def _free(self) -> int:
        """A lane where nothing runs."""
        if None not in self.lanes:
            self.lanes.append(None)
        return self.lanes.index(None)


def _key(index: int, flow: Flow) -> Key:
    return ("in", index) if flow.source is None else ("node", flow.source)


def _order(stage: Stage) -> list[int]:
    """Nodes, each behind those that it reads."""
    before: dict[int, set[int]] = {i: set() for i in range(len(stage.nodes))}
    for flow in stage.flows:
        for target in flow.targets:
            before[target] |= {flow.source} - {None}  # type: ignore[arg-type]
    made: list[int] = []
    while before:
        ready = min(i for i, found in before.items() if found <= set(made))
        made.append(ready)
        del before[ready]
    return made


def _call(node: Node) -> str:
    """q = linear(xa, Wq)."""
    op = node.rows[0].op
    return f"{op.name} = {op.kind}({', '.join(t.name for t in op.inputs)})"


def _shape(of: Operand) -> str:
    return f"{' '.join(of.axes)} · {shape(of)}"


def _rail(lanes: Sequence[object], spot: int = -1, joins: Sequence[tuple[int, bool]] = (), mark: str = "") -> str:
    """One line of rails: a node at `spot`, if there is one, joined to lanes that end there or go on."""
    cells = [" "] * (2 * len(lanes))
    for i, lane in enumerate(lanes):
        if lane is not None:
            cells[2 * i] = "│"
    if joins:
        low, high = min(spot, *(at for at, _ in joins)), max(spot, *(at for at, _ in joins))
        for x in range(2 * low + 1, 2 * high):
            cells[x] = "│" if cells[x] == "│" else "─"
        for at, ends in joins:
            here = UP | (0 if ends else DOWN) | (LEFT if at > low else 0) | (RIGHT if at < high else 0)
            cells[2 * at] = STROKES[here]
    if spot >= 0:
        cells[2 * spot] = mark
    return "".join(cells).rstrip()


def _columns(rows: Sequence[Row], style: Style, wide: int) -> list[str]:
    """Rails, what is computed, its shape, its cost; a shape stands below where one line has no room for it."""
    rails, names, shapes, cost = (max(len(row[i]) for row in rows) for i in range(4))
    room = wide - INDENT - rails - cost - 4
    said = min(names, room - shapes - 2)
    lines = []
    for rail, name, axes, price, on in rows:
        start = f"{' ' * INDENT}{rail:<{rails}}  "
        if len(name) <= said and said >= SAID:
            lines.append(f"{start}{name:<{said}}  {style.dim(f'{axes:<{shapes}}')}  {price:>{cost}}".rstrip())
            continue
        first, *rest = wrap(name, "", "  ", wide=room)
        lines.append(f"{start}{first:<{room}}  {price:>{cost}}".rstrip())
        rest += [style.dim(shorten(axes, wide - INDENT - rails - 2))] if axes else []
        lines += [f"{' ' * INDENT}{on:<{rails}}  {below}" for below in rest]
    return lines
