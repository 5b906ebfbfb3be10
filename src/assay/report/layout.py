"""Where the boxes of a stage stand and how its arrows run: rows from top to bottom, arrows in columns of their own.

A node stands below all that it reads, in the column of one of its arrows where that ends there, else in the next free
one. An arrow keeps its column from row to row and changes it only between two rows, on a track that it shares with no
other arrow. So the residual stream is a straight line at the left, and what branches off it comes back from the right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.readings.graph import Node, Stage
from assay.records import dataclass

ENTER, OUTSIDE, LEAVE = "enter", "outside", "leave"


@dataclass(frozen=True)
class Item:
    """What stands at a place: a node, or where an arrow enters, comes from outside, or leaves."""

    sort: str  # node, meet, enter, outside, leave
    row: int
    column: int
    node: Node | None = None
    flow: int = -1


@dataclass(frozen=True)
class Line:
    """An arrow: from an item to items, in a column of its own between them. `sides` of the items it meets from a side:
    -1 left, 1 right, 0 from above.
    """

    flow: int
    source: int
    targets: tuple[int, ...]
    column: int
    sides: tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """The items of a stage at their places, and the lines between them."""

    items: tuple[Item, ...]
    lines: tuple[Line, ...]
    rows: int
    columns: int

    def incoming(self, item: int) -> list[tuple[int, int]]:
        """Lines that end at an item, with the sides on which they meet it."""
        return [(i, line.sides[line.targets.index(item)]) for i, line in enumerate(self.lines) if item in line.targets]

    def outgoing(self, item: int) -> list[int]:
        """Lines that begin at an item, the one in its column first."""
        found = [i for i, line in enumerate(self.lines) if line.source == item]
        return sorted(found, key=lambda i: self.lines[i].column != self.items[item].column)

    def straight(self, enters: int | None, goes: int | None) -> frozenset[tuple[int, int]]:
        """The stream: lines, each with the item where it goes straight on, from where flow `enters` does, and those of
        the flow that `goes`.
        """
        on = {i for i, item in enumerate(self.items) if item.sort == ENTER and item.flow == enters}
        found: set[tuple[int, int]] = set()
        for item in sorted(range(len(self.items)), key=lambda i: self.items[i].row):
            for number, line in enumerate(self.lines):
                for target in line.targets if line.source == item else ():
                    ends = self.items[target].sort == LEAVE and line.flow == goes
                    level = line.column == self.items[item].column == self.items[target].column
                    if ends or (item in on and level):
                        found.add((number, target))
                        on.add(target)
        return frozenset(found)


def place(stage: Stage) -> Grid:
    """The grid of a stage."""
    sorts, nodes, flows, ends = _items(stage)
    rows = _rows(sorts, ends)
    columns, lanes = _columns(sorts, rows, ends, [flow.crosses for flow in stage.flows])
    meets = [
        "meet" if node is not None and node.adds and _meets(i, rows, columns, lanes, ends) else sorts[i]
        for i, node in enumerate(nodes)
    ]
    least = min(columns)
    items = tuple(Item(meets[i], rows[i], columns[i] - least, nodes[i], flows[i]) for i in range(len(sorts)))
    lines = []
    for flow, (source, targets) in enumerate(ends):
        sides = tuple(
            (0 if lanes[flow] == columns[t] else 1 if lanes[flow] > columns[t] else -1) if meets[t] == "meet" else 0
            for t in targets
        )
        lines.append(Line(flow, source, targets, lanes[flow] - least, sides))
    return Grid(items, tuple(lines), max(rows) + 1, max(*columns, *lanes) - least + 1)


Ends = list[tuple[int, tuple[int, ...]]]


def _items(stage: Stage) -> tuple[list[str], list[Node | None], list[int], Ends]:
    """Every item: its sort, node, flow; and for each flow the items where it begins and ends."""
    sorts = ["node"] * len(stage.nodes)
    nodes: list[Node | None] = list(stage.nodes)
    flows = [-1] * len(sorts)
    ends: Ends = []
    for index, flow in enumerate(stage.flows):
        source, targets = flow.source, list(flow.targets)
        if source is None:
            source = len(sorts)
            sorts.append(ENTER if flow.carried else OUTSIDE)
            nodes.append(None)
            flows.append(index)
        if flow.leaves:
            targets.append(len(sorts))
            sorts.append(LEAVE)
            nodes.append(None)
            flows.append(index)
        ends.append((source, tuple(targets)))
    return sorts, nodes, flows, ends


def _rows(sorts: Sequence[str], ends: Ends) -> list[int]:
    """The row of each item: below all that it reads; what comes from outside right above where it is read first."""
    inputs: list[list[int]] = [[] for _ in sorts]
    for source, targets in ends:
        for target in targets:
            inputs[target].append(source)
    known: dict[int, int] = {}

    def row(item: int) -> int:
        if item not in known:
            before = [row(i) + 1 for i in inputs[item]]
            known[item] = max(before, default=0)
        return known[item]

    rows = [row(i) for i in range(len(sorts))]
    for source, targets in ends:
        if sorts[source] == OUTSIDE:
            rows[source] = min(rows[t] for t in targets) - 1
    # a source that reads nothing but such stands right above its reader, too
    for index in sorted(range(len(sorts)), key=lambda i: -rows[i]):
        readers = [t for source, targets in ends if source == index for t in targets if sorts[t] != LEAVE]
        if sorts[index] == "node" and readers and all(sorts[i] == OUTSIDE for i in inputs[index]):
            rows[index] = min(rows[t] for t in readers) - 1
            for i in inputs[index]:
                rows[i] = min(rows[i], rows[index] - 1) if len(_targets(ends, i)) > 1 else rows[index] - 1
    least = min(rows)
    rows = [r - least for r in rows]
    last = max(r for r, sort in zip(rows, sorts, strict=True) if sort != LEAVE) + 1
    return [last if sort == LEAVE else r for r, sort in zip(rows, sorts, strict=True)]


def _targets(ends: Ends, item: int) -> list[int]:
    return [t for source, targets in ends if source == item for t in targets]


def _columns(
    sorts: Sequence[str], rows: Sequence[int], ends: Ends, crosses: Sequence[bool]
) -> tuple[list[int], list[int]]:
    """The column of each item and of each flow."""
    taken: dict[tuple[int, int], int] = {}  # (column, row): the flow that runs there, -1 a box
    columns: dict[int, int] = {}
    lanes: dict[int, int] = {}
    reach = [max((rows[t] for t in targets), default=rows[source]) for source, targets in ends]

    def free(column: int, first: int, last: int, ending: Sequence[int] = ()) -> bool:
        return all(
            (column, r) not in taken or (r == first and taken[column, r] in ending) for r in range(first, last + 1)
        )

    order = sorted(range(len(sorts)), key=lambda i: (rows[i], sorts[i] != ENTER, i))
    for item in order:
        here = rows[item]
        own = sorted((f for f, (source, _) in enumerate(ends) if source == item), key=lambda f: -reach[f])
        down = reach[own[0]] if own else here
        inputs = [f for f, (_, targets) in enumerate(ends) if item in targets]
        ending = [f for f in inputs if reach[f] == here]
        straight = [lanes[f] for f in ending if lanes[f] >= 0 and free(lanes[f], here, down, ending)]
        crossing = sorts[item] == OUTSIDE and crosses[own[0]]
        if straight:
            column = min(straight)
        else:
            start = min((lanes[f] for f in inputs), default=-1 if crossing else 0)
            column = start
            step = -1 if start < 0 else 1
            while not free(column, here, down):
                column += step
        columns[item] = column
        taken[column, here] = -1
        for place, flow in enumerate(own):
            lane = column
            while place and not free(lane, here + 1, reach[flow]):
                lane += 1
            lanes[flow] = lane
            for r in range(here + 1, reach[flow] + 1):
                taken[lane, r] = flow
    return [columns[i] for i in range(len(sorts))], [lanes[f] for f in range(len(ends))]


def _meets(item: int, rows: Sequence[int], columns: Sequence[int], lanes: Sequence[int], ends: Ends) -> bool:
    """True where arrows can meet in a point: one from above, the others from the sides, and no box between."""
    lines = [lanes[f] for f, (_, targets) in enumerate(ends) if item in targets]
    here = columns[item]
    sides = [(lane > here) - (lane < here) for lane in lines]
    if sides.count(0) != 1:
        return False
    between = [columns[i] for i in range(len(rows)) if rows[i] == rows[item] and i != item]
    return not any(
        min(lane, here) < c < max(lane, here) or c == lane for lane in lines if lane != here for c in between
    )


def tracks(spans: Sequence[tuple[int, float, float]], before: Callable[[int, int], bool]) -> dict[int, int]:
    """A track for each horizontal stretch (its line, left and right end), stretches that touch on different ones.

    `before(a, b)` where line a has to turn above line b.
    """
    rows: list[list[tuple[int, float, float]]] = []
    found: dict[int, int] = {}
    waiting = sorted(spans, key=lambda span: (span[1], span[2]))
    while waiting:
        ready = [
            s for s in waiting if not any(before(o[0], s[0]) and not before(s[0], o[0]) for o in waiting if o != s)
        ]
        span = (ready or waiting)[0]
        waiting.remove(span)
        least = max((found[o] + 1 for o in found if before(o, span[0])), default=0)
        track = least
        while track < len(rows) and any(span[1] <= right and left <= span[2] for _, left, right in rows[track]):
            track += 1
        while track >= len(rows):
            rows.append([])
        rows[track].append(span)
        found[span[0]] = track
    return found
