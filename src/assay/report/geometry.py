"""Coordinates of a stage's diagram, in any unit: characters of a terminal or pixels of a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.records import dataclass
from assay.report.layout import LEAVE, Grid, tracks

Point = tuple[float, float]
Measure = Callable[[int], Point]  # width and height


@dataclass(frozen=True)
class Units:
    """Distances: between columns, of tracks, of ports where arrows enter and leave beside the middle, of labels from
    their line, the room of an arrow's head, and half the size of a point where arrows meet.
    """

    between: float
    track: float
    enters: float
    leaves: float
    label: float
    head: float
    point: float


@dataclass(frozen=True)
class Path:
    """One way of an arrow, from a box to a box."""

    line: int
    target: int
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Label:
    """Where the text of a line stands: at its left end, or at its right one where `left` of the line."""

    line: int
    x: float
    y: float
    left: bool


@dataclass(frozen=True)
class Drawing:
    """Boxes (x, y of the middle of the upper edge, width, height) by item, paths and labels; x and y begin at 0."""

    boxes: tuple[tuple[float, float, float, float], ...]
    paths: tuple[Path, ...]
    labels: tuple[Label, ...]
    width: float
    height: float


def draw(grid: Grid, box: Measure, label: Measure, units: Units) -> Drawing:
    """Coordinates of a grid whose items and labels have the sizes that `box` and `label` say."""
    return _Draw(grid, box, label, units).all()


class _Draw:
    """The steps of `draw`, and what they share."""

    def __init__(self, grid: Grid, box: Measure, label: Measure, units: Units) -> None:
        self.grid, self.units = grid, units
        self.label = [label(i) for i in range(len(grid.lines))]
        self.incoming = [grid.incoming(i) for i in range(len(grid.items))]
        self.outgoing = [grid.outgoing(i) for i in range(len(grid.items))]
        self.box = [self._wide(i, *box(i)) for i in range(len(grid.items))]
        self.middle = self._middles()

    def all(self) -> Drawing:
        """Everything at its place."""
        spans = [self._spans(row) for row in range(self.grid.rows - 1)]
        turns = [tracks(*found) for found in spans]
        heights = [max((self.box[i][1] for i in self._of(row)), default=0) for row in range(self.grid.rows)]
        labels = [self._label_room(row) for row in range(self.grid.rows)]
        tops = [0.0]
        for row in range(self.grid.rows - 1):
            gap = labels[row] + self.units.track * (max(turns[row].values(), default=-1) + 1) + self.units.head
            tops.append(tops[-1] + heights[row] + gap)
        self.tops, self.heights = tops, heights
        self.turns = [
            {line: tops[row] + heights[row] + labels[row] + self.units.track * at for line, at in turn.items()}
            for row, turn in enumerate(turns)
        ]
        paths = [path for line in range(len(self.grid.lines)) for path in self._paths(line)]
        boxes = tuple((self._x(i), self._y(i), *self.box[i]) for i in range(len(self.grid.items)))
        return Drawing(boxes, tuple(paths), tuple(self._labels()), self.width, tops[-1] + heights[-1])

    def _wide(self, item: int, wide: float, tall: float) -> Point:
        """The size of a box, with room for every arrow that meets it."""
        if self.grid.items[item].sort != "node":
            return wide, tall
        here = self.grid.items[item].column
        columns = [self.grid.lines[line].column for line, side in self.incoming[item] if side == 0]
        beside = max(sum(c < here for c in columns), sum(c > here for c in columns)) if len(columns) > 1 else 0
        ports = max(self.units.enters * beside, self.units.leaves * (len(self.outgoing[item]) - 1))
        return max(wide, 2 * ports + 2 * self.units.head + 1), tall

    def _of(self, row: int) -> list[int]:
        return [i for i, item in enumerate(self.grid.items) if item.row == row]

    def _middles(self) -> list[float]:
        """The x of each column, with room for its boxes and for the labels beside its lines."""
        columns = self.grid.columns
        left, right = [0.0] * columns, [0.0] * columns
        for i, item in enumerate(self.grid.items):
            half = self.box[i][0] / 2
            left[item.column], right[item.column] = max(left[item.column], half), max(right[item.column], half)
            several = len(self.outgoing[i]) > 1
            for place, line in enumerate(self.outgoing[i]):
                wide = self.label[line][0] + self.units.label
                if several and not place:
                    left[item.column] = max(left[item.column], wide)
                else:
                    port = self.units.leaves * (len(self.outgoing[i]) - 1)
                    right[item.column] = max(right[item.column], wide + port)
        made, x = [], 0.0
        for column in range(columns):
            x += left[column]
            made.append(float(round(x)))
            x = made[-1] + right[column] + self.units.between
        self.width = x - self.units.between
        return made

    def _x(self, item: int) -> float:
        return self.middle[self.grid.items[item].column]

    def _y(self, item: int) -> float:
        """The upper edge: boxes of a row stand on its lower one, what arrives on its upper one."""
        row = self.grid.items[item].row
        down = 0 if self.grid.items[item].sort == LEAVE else self.heights[row] - self.box[item][1]
        return self.tops[row] + (down / 2 if self.grid.items[item].sort == "meet" else down)

    def _port_in(self, line: int, item: int) -> float:
        """Where a line from above meets a box: in the middle where it comes straight or alone."""
        middle = self._x(item)
        others = [one for one, side in self.incoming[item] if side == 0]
        straight = [one for one in others if self._lane(one) == middle]
        if line in straight[:1] or len(others) == 1:
            return middle
        rest = [one for one in others if one not in straight[:1]]
        left = sorted((one for one in rest if self._lane(one) < middle), key=self._lane, reverse=True)
        right = sorted((one for one in rest if self._lane(one) >= middle), key=self._lane)
        if line in left:
            return middle - self.units.enters * (left.index(line) + 1)
        return middle + self.units.enters * (right.index(line) + 1)

    def _port_out(self, line: int) -> float:
        source = self.grid.lines[line].source
        return self._x(source) + self.units.leaves * self.outgoing[source].index(line)

    def _lane(self, line: int) -> float:
        return self.middle[self.grid.lines[line].column]

    def _ends(self, line: int, row: int) -> tuple[float, list[float]] | None:
        """Where a line enters the gap below a row and where it leaves it, or None where it is not there."""
        held = self.grid.lines[line]
        first = self.grid.items[held.source].row
        last = max(self.grid.items[t].row for t in held.targets)
        if not first <= row < last:
            return None
        top = self._port_out(line) if row == first else self._lane(line)
        bottoms = [
            self._port_in(line, t) if side == 0 else self._lane(line)
            for t, side in zip(held.targets, held.sides, strict=True)
            if self.grid.items[t].row == row + 1
        ]
        return top, bottoms + ([self._lane(line)] if last > row + 1 else [])

    def _spans(self, row: int) -> tuple[list[tuple[int, float, float]], Callable[[int, int], bool]]:
        """The horizontal stretches of a gap, and which has to be above which: none crosses another's way up or down."""
        ends = {line: found for line in range(len(self.grid.lines)) if (found := self._ends(line, row))}
        spans = []
        for line, (top, bottoms) in ends.items():
            if any(x != top for x in bottoms):
                spans.append((line, min(top, *bottoms), max(top, *bottoms)))

        def before(a: int, b: int) -> bool:
            return ends[a][0] in ends[b][1] and a != b

        return spans, before

    def _label_room(self, row: int) -> float:
        rooms = [0.0]
        for item in self._of(row):
            tall = [self.label[line][1] for line in self.outgoing[item]]
            rooms.append(max(tall[0], sum(tall[1:])) if tall else 0)
        return max(rooms)

    def _labels(self) -> list[Label]:
        made = []
        for item, lines in enumerate(self.outgoing):
            row = self.grid.items[item].row
            y = self.tops[row] + self.heights[row]
            for place, line in enumerate(lines):
                if len(lines) > 1 and not place:
                    made.append(Label(line, self._x(item) - self.units.label, y, True))
                    continue
                port = self._x(item) + self.units.leaves * (len(lines) - 1)
                made.append(Label(line, port + self.units.label, y, False))
                y += self.label[line][1]
        return made

    def _paths(self, line: int) -> list[Path]:
        """The way to each target, corner by corner."""
        held = self.grid.lines[line]
        first = self.grid.items[held.source].row
        made = []
        for target, side in zip(held.targets, held.sides, strict=True):
            x, y = self._port_out(line), self._y(held.source) + self.box[held.source][1]
            points: list[Point] = [(x, y)]
            row_of = self.grid.items[target].row
            for row in range(first, row_of):
                to = self._port_in(line, target) if side == 0 and row + 1 == row_of else self._lane(line)
                if to != x:
                    turn = self.turns[row][line]
                    points += [(x, turn), (to, turn)]
                    x = to
            if side == 0:
                points.append((x, self._y(target)))
            else:
                wide, tall = self.box[target]
                y = self._y(target) + (tall - 1) / 2 if tall == 1 else self._y(target) + tall / 2
                points += [(x, y), (self._x(target) + side * (wide / 2 if tall > 1 else 1), y)]
            made.append(Path(line, target, tuple(points)))
        return made


def corners(points: Sequence[Point]) -> list[Point]:
    """Without those that lie on a straight line."""
    kept: list[Point] = []
    for i, point in enumerate(points):
        if 0 < i < len(points) - 1 and (
            points[i - 1][0] == point[0] == points[i + 1][0] or points[i - 1][1] == point[1] == points[i + 1][1]
        ):
            continue
        kept.append(point)
    return kept
