"""The same structure small: every distinct block in a layer or two, each width cut down to what fits the others.

Sizes that are alike stay alike, parts of a slice still fill what they are parts of, rotated widths stay even, experts
stay more than those chosen, and windows become so small that a dozen tokens fill them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

from assay.kinds.resizing import chooses, looks_up, parts, reshared, shared, turned, whole
from assay.records import replace
from assay.size import Size, is_integer
from assay.spec import Block, Model, Op, Segment

LAYERS = 2  # of each distinct block
SMALL = 8  # what is no larger stays
WIDE = 32  # widths are halved down to this
VOCABULARY = 96

SPANS = ("window", "chunk", "near", "reach")  # attributes that say how far a query sees

Node = tuple[str, int]  # an axis and its size: the same axis may have another elsewhere


def shrink(model: Model) -> Model:
    """A model of the same structure, small enough to run; its weights in one dtype."""
    plan = _Plan(model)
    segments = tuple(_segment(segment, plan) for segment in model.segments)
    return replace(
        model,
        segments=segments,
        layers=len({layer for s in segments for layer in s.layers}),
        quantization=None,
        scheme=None,
        notes=(),
    )


def _segment(segment: Segment, plan: _Plan) -> Segment:
    other = segment.absorbed
    return replace(
        segment,
        block=plan.block(segment.block),
        layers=segment.layers[:LAYERS],
        absorbed=None if other is None else plan.block(other),
    )


class _Plan:
    """What becomes of each size: found from all blocks together, so that what they share stays the same."""

    def __init__(self, model: Model) -> None:
        self.parent: dict[Node, Node] = {}
        self.linked: list[set[Node]] = []
        self.fixed: set[Node] = set()
        self.tables: set[Node] = set()
        self.least: list[tuple[Node, Node]] = []  # the first at least twice the second
        self.spans: set[int] = set()
        self.carried: dict[tuple[str, int, int], Node] = {}  # by name, place and size
        self.stored: dict[str, list[Node]] = {}
        for segment in model.segments:
            for block in (segment.block, segment.absorbed):
                if block is not None:
                    self._read(block)
        kept = {size for segment in model.segments for size in segment.axes.values() if is_integer(size)}
        self.fixed |= {node for node in self.parent if node[1] in kept}  # as many as a segment has positions
        self.sizes = self._sizes()
        # a window must be smaller than what it is tried on, and no two of them alike
        self.window = {span: 4 + at for at, span in enumerate(sorted(self.spans))}

    # --- what is tied to what ---

    def _read(self, block: Block) -> None:
        spanned = {v for op in block.ops for k, v in op.attrs if k in SPANS and isinstance(v, str)}
        for axis, size in block.sizes.items():
            if axis in spanned:
                self.spans.add(size)
            elif is_integer(size):
                self._find((axis, size))
        made: set[str] = set()
        for op in block.ops:
            for operand in op.activations:
                if operand.name not in made:
                    self._carry(block, operand.name, operand.axes)
            self._tie(block, op)
            made.add(op.name)
        for op in block.ops:
            self._carry(block, op.name, op.axes)
            for weight in op.weights:
                where = block.weight(weight.name)
                nodes = [node for axis in weight.axes if (node := self._node(block, axis)) is not None]
                if "+" not in (where.layout or "") and len(nodes) == len(weight.axes):
                    self._store(where.path, nodes)
                self._fix_joined(block, weight.axes, where.layout)
                if where.buffer:  # a table of constants may be square
                    for node in nodes:
                        self._union(node, next(other for other in nodes if other[1] == node[1]))

    def _fix_joined(self, block: Block, axes: tuple[str, ...], layout: str | None) -> None:
        """Axes that are stored as the product of others: positions as rows and columns."""
        if layout is None:
            return
        words = {
            word for word in layout.replace("(", " ").replace(")", " ").replace("+", " ").split() if word.isidentifier()
        }
        others = words - set(axes)
        if others and set(axes) - words:
            for axis in others | (set(axes) - words):
                node = self._node(block, axis)
                if node is not None:
                    self.fixed.add(node)

    def _carry(self, block: Block, name: str, axes: tuple[str, ...]) -> None:
        """What one block hands to another is as wide in both."""
        for place, axis in enumerate(axes):
            node = self._node(block, axis)
            if node is not None:
                known = self.carried.setdefault((name, place, node[1]), node)
                self._union(known, node)

    def _store(self, path: str, nodes: list[Node]) -> None:
        """One tensor has one shape."""
        known = self.stored.setdefault(path, nodes)
        left = list(known)
        for node in nodes:
            same = next((other for other in left if other[1] == node[1]), None)
            if same is not None:
                left.remove(same)
                self._union(same, node)

    def _tie(self, block: Block, op: Op) -> None:
        own = {axis: node for axis in self._axes(op) if (node := self._node(block, axis)) is not None}
        before = {a for t in op.inputs for a in t.axes}
        if whole(op):
            self.fixed |= set(own.values())
        elif parts(op):
            changed = [a for a in own if (a in before) != (a in op.axes)] or [op.axes[-1]]
            group = {own[a] for a in changed if a in own}
            group |= {self._find(node) for node in self._named(block, op, turned(op) or "")}
            self.linked.append(group)
        elif chooses(op):
            lost = [own[a] for a in own if a not in op.axes]
            chosen = [own[a] for a in own if a not in before]
            if op.attr("groups") is not None:
                self.fixed |= set(lost)
            self.least += [(a, b) for a in lost for b in chosen]
        else:
            self._renamed(op, own, before)
        if looks_up(op):
            table = op.weights[0]
            node = self._node(block, table.axes[0])
            if node is not None:
                (self.tables if op.activations[0].name == "ids" else self.fixed).add(node)
        self.spans |= set(self._numbers(block, op, SPANS))

    def _renamed(self, op: Op, own: dict[str, Node], before: set[str]) -> None:
        """One axis in another's place, as long as it."""
        lost, new = sorted(before - set(op.axes)), sorted(set(op.axes) - before)
        if len(op.inputs) == len(lost) == len(new) == 1 and lost[0] in own and new[0] in own:
            a, b = own[lost[0]], own[new[0]]
            if a[1] == b[1]:
                self._union(a, b)

    def _numbers(self, block: Block, op: Op, names: tuple[str, ...]) -> Iterator[int]:
        for name, value in op.attrs:
            if name in names:
                value = block.sizes.get(value) if isinstance(value, str) else value
                if is_integer(value):
                    yield value

    def _named(self, block: Block, op: Op, name: str) -> Iterator[Node]:
        """The size that an attribute is, or names."""
        value = op.attr(name)
        size = block.sizes.get(value) if isinstance(value, str) else value
        if is_integer(size):
            yield value if isinstance(value, str) else "", size

    @staticmethod
    def _axes(op: Op) -> list[str]:
        return list(dict.fromkeys([a for t in op.inputs for a in t.axes] + list(op.axes)))

    @staticmethod
    def _node(block: Block, axis: str) -> Node | None:
        size = block.sizes.get(axis)
        return (axis, size) if is_integer(size) else None

    def _find(self, node: Node) -> Node:
        root = self.parent.setdefault(node, node)
        while self.parent[root] != root:
            root = self.parent[root]
        self.parent[node] = root
        return root

    def _union(self, a: Node, b: Node) -> None:
        self.parent[self._find(a)] = self._find(b)

    # --- what becomes of them ---

    def _sizes(self) -> dict[Node, int]:
        made: dict[Node, int] = {}
        roots = sorted({self._find(node) for node in [*self.parent]}, key=lambda node: (node[1], node[0]))
        fixed = {self._find(node) for node in self.fixed}
        for group in self._groups():
            sizes = [root[1] for root in group]
            by = 1 if group & fixed else _divisor(sizes)
            made |= {root: root[1] // by for root in group}
        made |= {root: root[1] for root in fixed}
        tables = {self._find(node) for node in self.tables}
        taken = set(made.values())
        for root in roots:
            if root in made:
                continue
            least = max((2 * made.get(self._find(b), b[1]) for a, b in self.least if self._find(a) == root), default=0)
            size = _halved(root[1], VOCABULARY if root in tables else WIDE, least)
            while size > SMALL and size in taken and size < root[1]:
                size += 2
            made[root] = size
            taken.add(size)
        return made

    def _groups(self) -> list[set[Node]]:
        """Sizes that can only be divided together."""
        groups: list[set[Node]] = []
        for linked in self.linked:
            group = {self._find(node) for node in linked}
            for other in [g for g in groups if g & group]:
                groups.remove(other)
                group |= other
            groups.append(group)
        return groups

    # --- the blocks ---

    def block(self, block: Block) -> Block:
        """The block with every size as it has become, its weights without formats."""
        spanned = {v for op in block.ops for k, v in op.attrs if k in SPANS and isinstance(v, str)}
        sizes: dict[str, Size] = {
            axis: self.window[size] if axis in spanned else self.size(axis, size) for axis, size in block.sizes.items()
        }
        stored = {name: replace(where, format=None, published=None) for name, where in block.stored.items()}
        return replace(block, ops=tuple(self._op(block, op) for op in block.ops), sizes=sizes, stored=stored)

    def size(self, axis: str, size: Size) -> Size:
        """What has become of a size."""
        return self.sizes.get(self._find((axis, size)), size) if is_integer(size) else size

    def _op(self, block: Block, op: Op) -> Op:
        attrs = tuple((name, self._attr(block, op, name, value)) for name, value in op.attrs)
        return op if attrs == op.attrs else replace(op, attrs=attrs)

    def _attr(self, block: Block, op: Op, name: str, value: Any) -> Any:
        if shared(name):
            along = op.attr(turned(op) or "", op.axes[-1])
            axis, size = (along, block.sizes[along]) if isinstance(along, str) else ("", along)
            return reshared(value, int(size) // 2, int(self.size(axis, size)) // 2)
        if not is_integer(value):
            return value
        if name in SPANS:
            return self.window[value]
        return self.size("", value) if name == turned(op) else value


def _divisor(sizes: list[int]) -> int:
    """The largest power of two that leaves all of them whole, even, and none below four."""
    by = 1
    while all(size % (4 * by) == 0 and size // (2 * by) >= 4 for size in sizes if size) and gcd(*sizes) // by > 4:
        by *= 2
    return by


def _halved(size: int, most: int, least: int) -> int:
    """Halved until it is no larger than `most`; cut where it is odd and large."""
    if size <= SMALL:
        return size
    made = size
    while made > most and made % 2 == 0 and made // 2 >= max(least, SMALL // 2):
        made //= 2
    return made if made <= 8 * most or made < least else max(least, most + 1)
