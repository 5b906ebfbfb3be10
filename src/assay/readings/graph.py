"""What flows where: the ops of a model as graphs, a node a sub-layer or an op, with shapes and costs.

A name stands for what the last op of that name made. A name that no op of a block made before comes from an earlier
block, from the same block's layer before, or from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assay.kinds import kind_of
from assay.readings.ops import Operand, OpRow, list_ops
from assay.readings.order import MEMORY, halves
from assay.readings.setting import Setting
from assay.readings.words import is_expression
from assay.records import dataclass, replace
from assay.size import Size
from assay.spec import Model, Segment

LOOSE = ("", "norm", "other")  # parts whose ops are pieces of what they lie within, or stand for themselves
WHOLE = ("attention", "mlp", "experts")  # parts that are never taken for a piece of another
HOLDS = (*WHOLE, "mixer", "tower")  # parts that are asked first what lies within them, the innermost first


@dataclass(frozen=True)
class Node:
    """A box: one op, or the ops of a sub-layer. Costs are of one run in one layer; `shared` as of an op."""

    rows: tuple[OpRow, ...]
    part: str
    crossed: bool = False  # it reads what the other half of the model made

    @property
    def parameters(self) -> Size:
        """Parameters that no earlier op holds."""
        return sum((row.parameters for row in self.rows), start=0)

    @property
    def shared(self) -> bool:
        """True where an earlier op holds some of the weights."""
        return any(row.shared for row in self.rows)

    @property
    def flops(self) -> Size:
        """FLOPs under the setting's convention."""
        return sum((row.flops for row in self.rows), start=0)

    @property
    def adds(self) -> bool:
        """True for a sum of two activations that costs nothing under the convention: a point where arrows meet."""
        return len(self.rows) == 1 and _adds(self.rows[0]) and not self.rows[0].flops

    def inner(self) -> dict[str, Size]:
        """The axes of its ops' operands and results, in order."""
        found: dict[str, Size] = {}
        for row in self.rows:
            for tensor in (*row.inputs, row.output):
                found |= dict(zip(tensor.axes, tensor.shape, strict=True))
        return found


@dataclass(frozen=True)
class Flow:
    """An arrow: one value, or several that go from one node to the same ones.

    `source` is a node's index, None for what comes from before; `targets` are nodes' indices; `leaves` where a later
    layer or block reads it, or nobody does. `origin` is the stage that made what comes from before, "" for what is
    given from outside; `carried` where it comes along the stream: from layer to layer, or from the stage right before;
    `onward` where it leaves along it, and `unread` where nothing reads it.
    """

    values: tuple[Operand, ...]
    source: int | None
    targets: tuple[int, ...]
    leaves: bool = False
    origin: str = ""
    carried: bool = False
    onward: bool = False
    unread: bool = False

    @property
    def crosses(self) -> bool:
        """True where it comes from the other half of an encoder-decoder."""
        return bool(self.origin) and self.values[0].name == MEMORY


@dataclass(frozen=True)
class Stage:
    """A distinct block: its nodes in order, the arrows between them, the sizes of axes and of what attributes name.

    `says` is what the field calls the axes, `keys` where they came from; `parameters` and `flops` are of all its
    layers.
    """

    name: str
    layers: tuple[int, ...]
    times: int
    encodes: bool  # it runs over the source of an encoder-decoder
    nodes: tuple[Node, ...]
    flows: tuple[Flow, ...]
    sizes: Mapping[str, Size]
    parameters: Size
    flops: Size
    says: Mapping[str, str]
    keys: Mapping[str, str]


@dataclass(frozen=True)
class Graph:
    """The stages of a model in order."""

    stages: tuple[Stage, ...]

    def stacks(self) -> list[list[Stage]]:
        """Stages that run behind each other, those whose layers take turns together."""
        made: list[list[Stage]] = []
        for stage in self.stages:
            last = made[-1] if made else []
            reach = max((layer for other in last for layer in other.layers), default=-1)
            known = {layer for other in last for layer in other.layers}
            turns = bool(last) and last[-1].encodes == stage.encodes and bool(stage.layers)
            if turns and stage.layers[0] < reach and known.isdisjoint(stage.layers):
                last.append(stage)
            else:
                made.append([stage])
        return made


def graph(model: Model, asked: Setting, unrolled: bool = False) -> Graph:
    """The graphs of a model's distinct blocks; `unrolled`, a node is an op, else a sub-layer."""
    encoders = {id(segment) for segment in halves(model)[0]}
    listings = list_ops(model, asked)
    wanted, origins = _links(model, encoders)
    stages = []
    for index, (segment, listing) in enumerate(zip(model.segments, listings, strict=True)):
        encodes = id(segment) in encoders
        rows = listing.rows
        links, free = _reads(rows)
        stream = free.keys() & {row.op.name for row in rows}
        owners = list(range(len(rows))) if unrolled else _boxes(rows, links, stream)
        crossed = {i for i, row in enumerate(rows) for t in row.op.activations if t.name == MEMORY and not encodes}
        nodes = []
        for box in sorted(set(owners)):
            mine = [i for i, owner in enumerate(owners) if owner == box]
            held = tuple(rows[i] for i in mine)
            nodes.append(Node(held, _part(held), any(i in crossed for i in mine)))
        flows = _flows(rows, links, free, owners, wanted[index])
        known = tuple(_placed(flow, origins[index]) for flow in flows)
        stages.append(
            Stage(
                segment.name,
                segment.layers,
                segment.times,
                encodes,
                tuple(nodes),
                known,
                {**_named(segment), **listing.sizes},
                listing.parameters,
                listing.flops,
                listing.says,
                _keys(segment),
            )
        )
    return Graph(tuple(_handed(stage, after) for stage, after in zip(stages, [*stages[1:], None], strict=True)))


def _handed(stage: Stage, after: Stage | None) -> Stage:
    """A stage that knows which of what leaves it is the stream: what the stage behind it goes on with."""
    on = next((flow.values[0].name for flow in after.flows if flow.carried), "") if after else ""
    flows = (
        replace(flow, onward=True) if flow.leaves and any(value.name == on for value in flow.values) else flow
        for flow in stage.flows
    )
    return replace(stage, flows=tuple(flows))


def _keys(segment: Segment) -> dict[str, str]:
    """The keys that axes came from, of those that came from one."""
    return {axis: key for axis, key in segment.block.origins.items() if key and not is_expression(key)}


def _named(segment: Segment) -> dict[str, Size]:
    """The sizes that attributes name."""
    values = {v for op in segment.block.ops for _, v in op.attrs if isinstance(v, str)}
    return {axis: size for axis, size in segment.block.sizes.items() if axis in values}


def _placed(flow: Flow, origins: Mapping[str, str]) -> Flow:
    """A flow from before with where it comes from."""
    if flow.source is not None:
        return flow
    origin = origins.get(flow.values[0].name, "")
    known = replace(flow, origin=origin)
    return replace(known, carried=bool(origin) and flow.carried and not known.crosses)


def _links(model: Model, encoders: set[int]) -> tuple[list[set[str]], list[dict[str, str]]]:
    """For each segment the names that are read behind it, and which segment made what it reads from before."""
    wanted: list[set[str]] = [set() for _ in model.segments]
    origins: list[dict[str, str]] = [{} for _ in model.segments]
    makers: dict[str, list[int]] = {}
    last_encoder = max((i for i, s in enumerate(model.segments) if id(s) in encoders), default=None)
    for _ in range(2):  # layers that take turns read each other's
        for index, segment in enumerate(model.segments):
            made: set[str] = set()
            for op in segment.block.ops:
                for name in (tensor.name for tensor in op.activations if tensor.name not in made):
                    if name == MEMORY and last_encoder is not None and id(segment) not in encoders:
                        wanted[last_encoder].add(model.segments[last_encoder].block.ops[-1].name)
                        origins[index][name] = model.segments[last_encoder].name
                        continue
                    for maker in makers.get(name, ()):
                        if maker <= index or _turn(model.segments[maker], segment):
                            wanted[maker].add(name)
                            origins[index].setdefault(name, model.segments[maker].name)
                made.add(op.name)
            for name in made:
                # layers beside each other in one stack all hand on; what stands alone replaces what was before
                kept = [i for i in makers.get(name, ()) if _turn(model.segments[i], segment) and i != index]
                makers[name] = [*kept, index]
    return wanted, origins


def _turn(one: Segment, other: Segment) -> bool:
    """True where the layers of two segments run in turns."""
    if not one.layers or not other.layers:
        return False
    return one.layers[0] < other.layers[-1] and other.layers[0] < one.layers[-1]


def _reads(rows: Sequence[OpRow]) -> tuple[list[list[int | str]], dict[str, Operand]]:
    """For each op where its activations come from: an op, or a name from before; and what these are."""
    made: dict[str, int] = {}
    free: dict[str, Operand] = {}
    links: list[list[int | str]] = []
    for index, row in enumerate(rows):
        found: list[int | str] = []
        for tensor in row.inputs:
            if tensor.weight:
                continue
            if tensor.name not in made:
                free.setdefault(tensor.name, tensor)
            found.append(made.get(tensor.name, tensor.name))
        links.append(list(dict.fromkeys(found)))
        made[row.op.name] = index
    return links, free


def _flows(
    rows: Sequence[OpRow],
    links: Sequence[Sequence[int | str]],
    free: Mapping[str, Operand],
    owners: Sequence[int],
    wanted: set[str],
) -> list[Flow]:
    """The arrows between nodes: values that leave a node, each once; those with the same ends together."""
    numbers = {box: node for node, box in enumerate(sorted(set(owners)))}
    readers: dict[int | str, dict[int, None]] = {}
    for index, found in enumerate(links):
        for source in found:
            readers.setdefault(source, {})[numbers[owners[index]]] = None
    last = {row.op.name: index for index, row in enumerate(rows)}  # the last op of each name
    flows = []
    for name, operand in free.items():
        carried = name in last or len(free) == 1
        flows.append(Flow((operand,), None, tuple(readers[name]), name in wanted and name not in last, "", carried))
    inner: dict[tuple[int, tuple[int, ...], bool, bool], list[Operand]] = {}
    for index, row in enumerate(rows):
        node = numbers[owners[index]]
        targets = tuple(t for t in readers.get(index, ()) if t != node)
        unread = index not in readers
        leaves = last[row.op.name] == index and (row.op.name in wanted or unread)
        if targets or leaves:
            inner.setdefault((node, targets, leaves, unread and row.op.name not in wanted), []).append(row.output)
    return flows + [
        Flow(tuple(held), node, targets, leaves, unread=unread)
        for (node, targets, leaves, unread), held in inner.items()
    ]


def _part(rows: Sequence[OpRow]) -> str:
    """The part that most of the ops belong to."""
    parts = [row.op.part.partition(".")[0] for row in rows]
    return max(dict.fromkeys(parts), key=parts.count)


def _boxes(rows: Sequence[OpRow], links: Sequence[Sequence[int | str]], stream: Iterable[str]) -> list[int]:
    """For each op the box that it is drawn in, by the index of the box's first op.

    Each op that makes the stream stands alone. Of what hangs together without the stream, the ops of one part are a
    box; so is what lies between them, such as a norm of queries within attention.
    """
    on = set(stream)
    spine = [row.op.name in on for row in rows]
    piece = list(range(len(rows)))  # what hangs together
    for index, found in enumerate(links):
        for source in found:
            if not isinstance(source, str) and not spine[index] and not spine[source]:
                old, new = piece[index], piece[source]
                piece = [new if p == old else p for p in piece]
    label: list[tuple[int, str]] = [
        (index, "") if spine[index] else (index if _adds(row) and _sort(row) in LOOSE else piece[index], _sort(row))
        for index, row in enumerate(rows)
    ]
    above = _ancestors(links)
    sizes = {one: label.count(one) for one in label}
    within = {one: _within(one, label, above) for one in sizes}
    for one in sorted(sizes, key=lambda found: (found[1] in LOOSE, found[1] not in HOLDS, len(within[found]))):
        if one[1] in ("head", "norm"):  # what a head begins and ends with is apart, and so are norms
            continue
        for i in _within(one, label, above):
            loose = label[i][1] in LOOSE and one[1] not in LOOSE
            small = label[i][1] not in WHOLE and sizes[label[i]] <= sizes[one]
            if (loose or small) and not spine[i]:
                label[i] = one
    label = _untangled(label, links)
    first = {one: label.index(one) for one in label}
    return [first[one] for one in label]


def _within(one: tuple[int, str], label: Sequence[tuple[int, str]], above: Sequence[set[int]]) -> list[int]:
    """The ops between those of a box: below one of them, and above another."""
    mine = [i for i, found in enumerate(label) if found == one]
    below = set().union(*(above[b] for b in mine))
    return [i for i in range(len(label)) if i in below and any(a in above[i] for a in mine)]


def _adds(row: OpRow) -> bool:
    """True for a sum of activations."""
    return kind_of(row.op).sums and len(row.op.activations) == len(row.op.inputs) > 1


def _sort(row: OpRow) -> str:
    """What a box is of: a part, but that the norms of a tower stand alone as all norms do."""
    part = row.op.part.partition(".")[0]
    return "norm" if part == "tower" and row.op.kind.endswith("norm") else part


def _ancestors(links: Sequence[Sequence[int | str]]) -> list[set[int]]:
    """For each op all ops that it depends on."""
    above: list[set[int]] = []
    for found in links:
        mine: set[int] = set()
        for source in found:
            if not isinstance(source, str):
                mine |= {source} | above[source]
        above.append(mine)
    return above


def _untangled(label: list[tuple[int, str]], links: Sequence[Sequence[int | str]]) -> list[tuple[int, str]]:
    """Boxes of which none lies both before and behind another: each begins anew where it would, and goes on there."""
    made: list[tuple[int, str]] = []
    now: dict[tuple[int, str], tuple[int, str]] = {}
    for index, one in enumerate(label):
        made.append(now.get(one, one))
        if _circular(made, links):
            made[-1] = (index, one[1] + " ")
            if one[1] not in LOOSE:
                now[one] = made[-1]
    return made


def _circular(label: Sequence[tuple[int, str]], links: Sequence[Sequence[int | str]]) -> bool:
    """True where boxes read each other in a circle."""
    reads: dict[tuple[int, str], set[tuple[int, str]]] = {one: set() for one in label}
    for index, one in enumerate(label):
        reads[one] |= {label[source] for source in links[index] if not isinstance(source, str)} - {one}
    while reads:
        done = {one for one, found in reads.items() if not found}
        if not done:
            return True
        reads = {one: found - done for one, found in reads.items() if one not in done}
    return False
