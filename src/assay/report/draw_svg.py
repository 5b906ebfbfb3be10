"""A diagram as SVG: one column of stages, two where an encoder hands a memory to a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from assay.readings.count import Count
from assay.readings.graph import Graph, Stage
from assay.records import dataclass
from assay.report.captions import (
    box,
    end_of,
    folded,
    heading,
    legend,
    listed,
    name_of,
    origin,
    painted,
    setting_of,
    shape,
    stream,
    together,
    totals,
)
from assay.report.geometry import Drawing, Path, Units, corners, draw
from assay.report.layout import ENTER, LEAVE, OUTSIDE, Grid, place
from assay.report.palette import PARTS
from assay.spec import Model

SMALL, LINE = 6.65, 15  # the width of a character of 11 pixels, the height of a line
TITLE = 8.3  # the widest that a character of a title of 13 pixels is, but for rare ones
UNITS = Units(between=30, track=14, enters=26, leaves=13, label=9, head=18, point=9)
PAD, GAP, MARGIN, TOP = 18, 34, 28, 42  # within a frame, between frames, around all, above what a frame holds
HEADER = 92
LAYERS = 48  # characters of a list of layers

STYLE = """\
.assay-diagram text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
font-size:11px;fill:#24292f}
.assay-diagram .t{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;\
font-size:13px;font-weight:600}
.assay-diagram .h{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;\
font-size:20px;font-weight:600}
.assay-diagram .dim{fill:#6e7781}
.assay-diagram .paper{fill:#ffffff}
.assay-diagram .frame{fill:#f6f8fa;stroke:#d0d7de}
.assay-diagram .line{fill:none;stroke:#57606a;stroke-width:1.3}
.assay-diagram .stream{stroke-width:2.6;stroke:#24292f}
.assay-diagram .tip{fill:#57606a}
.assay-diagram .tip.on{fill:#24292f}
.assay-diagram .box{fill:#ffffff;stroke:#8c959f;stroke-width:1.2}
LIGHT@media (prefers-color-scheme:dark){
.assay-diagram text{fill:#e6edf3}
.assay-diagram .dim{fill:#9da7b1}
.assay-diagram .paper{fill:#0d1117}
.assay-diagram .frame{fill:#161b22;stroke:#30363d}
.assay-diagram .line{stroke:#9da7b1}
.assay-diagram .stream{stroke:#e6edf3}
.assay-diagram .tip{fill:#9da7b1}
.assay-diagram .tip.on{fill:#e6edf3}
.assay-diagram .box{fill:#21262d;stroke:#6e7681}
DARK}
"""


def _style() -> str:
    """The style, with the colours of parts."""
    made = STYLE
    for at, name in enumerate(("LIGHT", "DARK")):
        rules = [f".assay-diagram .{p}{{fill:{c[at][0]};stroke:{c[at][1]}}}\n" for p, c in PARTS.items()]
        made = made.replace(name, "".join(rules))
    return made


@dataclass(frozen=True)
class Frame:
    """A stage with its drawing; `left` and `right` of the stream's line."""

    stage: Stage
    grid: Grid
    drawing: Drawing
    texts: tuple[tuple[str, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    along: frozenset[tuple[int, int]]  # the stream: lines with the items where they go straight on
    left: float
    right: float

    @property
    def height(self) -> float:
        """With its heading."""
        return self.drawing.height + TOP + 2 * PAD


def svg(model: Model, counted: Count, graph: Graph, unrolled: bool) -> str:
    """The whole picture."""
    return _Picture(model, counted, graph, unrolled).text()


def _heading(stage: Stage) -> tuple[str, str]:
    name, layers = heading(stage)
    return name, listed(layers, LAYERS)


def _frame(stage: Stage, unrolled: bool) -> Frame:
    grid = place(stage)
    enters, goes = stream(stage)
    texts = tuple(tuple(_texts(stage, grid, i, unrolled, enters, goes)) for i in range(len(grid.items)))
    labels = tuple(
        tuple(part for v in flow.values for part in (f"{v.name}  {' '.join(v.axes)}", shape(v))) for flow in stage.flows
    )

    def box_size(item: int) -> tuple[float, float]:
        sort, lines = grid.items[item].sort, texts[item]
        if sort == "meet":
            return 2 * UNITS.point, 2 * UNITS.point
        if not lines:
            return 0, 0
        wide = max([len(lines[0]) * TITLE, *(len(line) * SMALL for line in lines[1:])])
        return round(wide + 24), 14 + LINE * len(lines)

    def label_size(line: int) -> tuple[float, float]:
        held = labels[grid.lines[line].flow]
        return max(map(len, held)) * SMALL, len(held) * 13 + 5

    drawing = draw(grid, box_size, label_size, UNITS)
    middle = _stream_x(grid, drawing, enters, goes)
    name, layers = _heading(stage)
    head = max(len(name) * TITLE + len(layers) * SMALL, len(together(stage)) * SMALL) + 34
    entered = any(item.sort == ENTER for item in grid.items)
    right = max(drawing.width - middle, head if entered else head - middle)
    return Frame(stage, grid, drawing, texts, labels, grid.straight(enters, goes), middle, right)


def _texts(stage: Stage, grid: Grid, item: int, unrolled: bool, enters: int | None, goes: int | None) -> list[str]:
    held = grid.items[item]
    if held.sort == "node" and held.node is not None:
        return box(stage, item, unrolled)
    if held.sort == LEAVE and held.flow != goes:
        return [end_of(stage.flows[held.flow])]
    if held.sort == OUTSIDE or (held.sort == ENTER and held.flow != enters):
        flow = stage.flows[held.flow]
        return [flow.values[0].name, origin(flow)]
    return []


def _stream_x(grid: Grid, drawing: Drawing, enters: int | None, goes: int | None) -> float:
    """Where the stream runs through a stage."""
    for i, item in enumerate(grid.items):
        if item.sort == ENTER and item.flow == enters:
            return drawing.boxes[i][0]
    for i, item in enumerate(grid.items):
        if item.sort == LEAVE and item.flow == goes:
            return drawing.boxes[i][0]
    return drawing.boxes[0][0]


class _Picture:
    """The frames at their places, and the lines between them."""

    def __init__(self, model: Model, counted: Count, graph: Graph, unrolled: bool) -> None:
        self.model, self.counted, self.graph = model, counted, graph
        self.columns: list[list[list[Frame]]] = []
        for encodes in (True, False):
            stacks = [[_frame(s, unrolled) for s in stack] for stack in graph.stacks() if stack[0].encodes == encodes]
            self.columns += [stacks] if stacks else []
        self.made: list[str] = []
        self.memory: list[tuple[float, float]] = []  # where the encoder leaves it, then where it is read

    def text(self) -> str:
        """The file."""
        x, bottom = float(MARGIN), 0.0
        for at, column in enumerate(self.columns):
            wide, low = self._column(column, x, at)
            x += wide + (74 if at + 1 < len(self.columns) else MARGIN)
            bottom = max(bottom, low)
        if len(self.memory) > 1:
            self._memory()
        letters = folded(legend(self.graph), min(150, int((max(x, 640) - 2 * MARGIN) / 6.9)))
        letters.append("in a box: parameters and FLOPs of one layer; below a name on an arrow: its shape")
        asked, name = setting_of(self.model, self.counted), escape(self.model.name)
        width, height = max(x, 640, 2 * MARGIN + 6.9 * len(asked)), bottom + 24 + LINE * len(letters) + MARGIN
        size = f'width="{_n(width)}" height="{_n(height)}"'
        opening = f'class="assay-diagram" role="img" aria-label="{name}" {size} viewBox="0 0 {_n(width)} {_n(height)}"'
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {opening}>',
            f"<title>{name}: what flows where, with shapes and costs</title>",
            f"<desc>{escape(_described(self.graph))}</desc>",
            f"<style>{_style()}</style>",
            f'<rect class="paper" {size}/>',
            _text(MARGIN, MARGIN + 18, self.model.name, "h"),
            _text(MARGIN, MARGIN + 38, totals(self.model, self.counted)),
            _text(MARGIN, MARGIN + 54, asked, "dim"),
        ]
        foot = [_text(MARGIN, bottom + 30 + LINE * i, line, "dim") for i, line in enumerate(letters)]
        return "\n".join([*head, *self.made, *foot, "</svg>\n"])

    def _column(self, stacks: list[list[Frame]], x: float, at: int) -> tuple[float, float]:
        """Stacks below each other, their streams in one line; the width and the lower end."""
        left = max(stack[0].left for stack in stacks) + PAD
        right = (
            max(stack[0].right for stack in stacks if len(stack) == 1) + PAD if any(len(s) == 1 for s in stacks) else 0
        )
        y, wide = float(HEADER + MARGIN), 0.0
        before: list[tuple[float, float]] = []
        for at_, stack in enumerate(stacks):
            many = len(stack) > 1
            ports = []
            edge = x
            enters: list[tuple[float, float]] = []
            tall = max(frame.height for frame in stack)
            for place_, frame in enumerate(stack):
                middle = x + left if not place_ else edge + frame.left + PAD
                reach = middle + (right if not many and right else frame.right + PAD)
                self._stage(frame, edge, y, middle, reach, tall)
                has = any(item.sort == ENTER for item in frame.grid.items)
                enters += [(middle, y)] if has else []
                ports.append((middle, y + tall))
                edge = reach + 24
            wide = max(wide, edge - 24 - x)
            self._between(before, enters)
            before = ports
            y += tall + GAP + (14 if many or stacks[min(at_ + 1, len(stacks) - 1)][1:] else 0)
        if at == 0 and len(self.columns) > 1:
            self.memory.append(before[0])
        elif len(before) == 1:
            bx, by = before[0]
            self._line([(bx, by), (bx, by + 22)], True)
        return wide, y

    def _between(self, before: Sequence[tuple[float, float]], enters: Sequence[tuple[float, float]]) -> None:
        """The stream from the frames above to those below."""
        if not before or not enters:
            return
        bus = (max(y for _, y in before) + enters[0][1]) / 2 - 2
        for n, (x, y) in enumerate(enters):
            fx, fy = before[min(n, len(before) - 1)] if len(before) == len(enters) == 1 else before[0]
            self._line([(fx, fy), (x, y)] if fx == x else [(fx, fy), (fx, bus), (x, bus), (x, y)], True)
        if len(enters) > 1:
            self.made.append(_text(enters[0][0] + 14, bus - 7, "layers in the order of their indices", "dim"))
        for fx, fy in before[1:]:
            self._line([(fx, fy), (fx, bus), (enters[0][0], bus)], True, tip=False)

    def _stage(self, frame: Frame, x: float, y: float, middle: float, reach: float, tall: float) -> None:
        """A frame with all that is in it."""
        made = self.made
        name, layers = _heading(frame.stage)
        size = f'width="{_n(reach - x)}" height="{_n(tall)}"'
        made.append(f'<g><rect class="frame" x="{_n(x)}" y="{_n(y)}" {size} rx="10"/>')
        dx, dy = middle - frame.left, y + TOP + PAD
        has = any(item.sort == ENTER for item in frame.grid.items)
        enters, goes = stream(frame.stage)
        for item, (bx, by, _, _) in zip(frame.grid.items, frame.drawing.boxes, strict=True):
            ex, ey = dx + bx, dy + by
            if item.sort == ENTER and item.flow == enters:
                self._line([(middle, y), (middle, ey)], True, tip=False)
            if item.sort == LEAVE and item.flow == goes:
                half = y + tall - PAD / 2
                turn = [] if ex == middle else [(ex, half), (middle, half)]
                self._line([(ex, ey), *turn, (middle, y + tall)], True, tip=False)
        start = middle + 12 if has else x + 14
        where = (
            f' <tspan class="dim" dx="6" font-weight="400" font-size="11">{escape(layers)}</tspan>' if layers else ""
        )
        made.append(f'<text class="t" x="{_n(start)}" y="{_n(y + 22)}">{escape(name)}{where}</text>')
        made.append(_text(start, y + 38, together(frame.stage), "dim"))
        for path in frame.drawing.paths:
            self._path(frame, path, dx, dy, goes)
        for i in range(len(frame.grid.items)):
            self._item(frame, i, dx, dy)
        for label in frame.drawing.labels:
            held = frame.labels[frame.grid.lines[label.line].flow]
            for n, part in enumerate(held):
                anchor = "end" if label.left else "start"
                made.append(_text(dx + label.x, dy + label.y + 13 + 13 * n, part, "dim" if n % 2 else "", anchor))
        made.append("</g>")

    def _path(self, frame: Frame, path: Path, dx: float, dy: float, goes: int | None) -> None:
        """An arrow; the stream's are thicker."""
        line = frame.grid.lines[path.line]
        sort = frame.grid.items[path.target].sort
        along = (path.line, path.target) in frame.along
        self._line([(x + dx, y + dy) for x, y in corners(path.points)], along, sort != LEAVE or line.flow != goes)

    def _item(self, frame: Frame, item: int, dx: float, dy: float) -> None:
        held, lines = frame.grid.items[item], frame.texts[item]
        bx, by, wide, tall = frame.drawing.boxes[item]
        x, y = bx + dx, by + dy
        if held.sort == "meet":
            r = UNITS.point
            self.made.append(f'<circle class="box" cx="{_n(x)}" cy="{_n(y + r)}" r="{_n(r)}"/>')
            self.made.append(f'<path class="line" d="M{_n(x - 4)} {_n(y + r)}h8M{_n(x)} {_n(y + r - 4)}v8"/>')
            return
        if not lines:
            return
        if held.sort == OUTSIDE and frame.stage.flows[held.flow].crosses:
            self.memory.append((x - wide / 2, y + tall / 2))
        part = "" if held.node is None else painted(held.node)
        corner = 'rx="14" stroke-dasharray="3 3"' if held.node is None else 'rx="6"'
        size = f'width="{_n(wide)}" height="{_n(tall)}"'
        self.made.append(f'<rect class="box {part}" x="{_n(x - wide / 2)}" y="{_n(y)}" {size} {corner}/>')
        for n, line in enumerate(lines):
            self.made.append(
                _text(x, y + 18 + LINE * n, line, "" if n and held.node else "dim" if n else "t", "middle")
            )

    def _memory(self) -> None:
        """From the encoder's end to where it is read."""
        (x, y), readers = self.memory[0], self.memory[1:]
        gutter = min(rx for rx, _ in readers) - 52
        for rx, ry in readers:
            self._line([(x, y), (x, y + 20), (gutter, y + 20), (gutter, ry), (rx, ry)], True)
        self.made.append(_text(gutter - 8, y + 15, "memory", "dim", "end"))

    def _line(self, points: Sequence[tuple[float, float]], on: bool = False, tip: bool = True) -> None:
        """A line with round corners, and its head."""
        self.made.append(f'<path class="line{" stream" if on else ""}" d="{_way(points, tip)}"/>')
        if tip:
            (ax, ay), (x, y) = points[-2], points[-1]
            sx, sy = (x > ax) - (x < ax), (y > ay) - (y < ay)
            wide, long = (4.5, 9) if on else (3.8, 8)
            bx, by = x - sx * long, y - sy * long
            way = (
                f"M{_n(x)} {_n(y)}L{_n(bx + sy * wide)} {_n(by + sx * wide)}L{_n(bx - sy * wide)} {_n(by - sx * wide)}Z"
            )
            self.made.append(f'<path class="tip{" on" if on else ""}" d="{way}"/>')


def _text(x: float, y: float, said: str, cls: str = "", anchor: str = "start") -> str:
    """A text; of a name with axes behind it the name is bold."""
    name, gap, axes = said.partition("  ")
    bold = gap and anchor == "start"  # not all viewers move what has several weights to a line's end
    inner = f'<tspan font-weight="700">{escape(name)}</tspan> {escape(axes)}' if bold else escape(said)
    sort = f' class="{cls}"' if cls else ""
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{sort}{where} x="{_n(x)}" y="{_n(y)}">{inner}</text>'


def _way(points: Sequence[tuple[float, float]], tip: bool, radius: float = 6) -> str:
    """The path of a line, its corners round; it ends within the head."""
    made = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for i in range(1, len(points)):
        (ax, ay), (x, y) = points[i - 1], points[i]
        sx, sy = (x > ax) - (x < ax), (y > ay) - (y < ay)
        if i == len(points) - 1:
            short = 6 if tip else 0
            made.append(f"L{_n(x - sx * short)} {_n(y - sy * short)}")
            break
        nx, ny = points[i + 1]
        r = min(radius, (abs(x - ax) + abs(y - ay)) / 2, (abs(nx - x) + abs(ny - y)) / 2)
        tx, ty = (nx > x) - (nx < x), (ny > y) - (ny < y)
        made.append(f"L{_n(x - sx * r)} {_n(y - sy * r)}Q{_n(x)} {_n(y)} {_n(x + tx * r)} {_n(y + ty * r)}")
    return "".join(made)


def _described(graph: Graph) -> str:
    """The picture in words, for those who do not see it."""
    said = []
    for stage in graph.stages:
        name, layers = heading(stage)
        boxes = ", ".join(name_of(node) for node in stage.nodes)
        said.append(f"{name}{f' ({layers})' if layers else ''}: {boxes}.")
    return " ".join(said)


def _n(value: float) -> str:
    """A coordinate, to a tenth."""
    return f"{value:.1f}".rstrip("0").rstrip(".")
