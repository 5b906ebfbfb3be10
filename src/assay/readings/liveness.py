"""Which tensors are there at once: each from the op that makes it to the last that reads it.

A pass is run on a tape, which notes when each storage is made and last read, those within an op among them. What is
kept for the next pass stays, so does what several layers share, and what is given. Of layers that are alike one is
run: the others differ by what has come to stay before them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from assay.errors import KindError
from assay.formats import bytes_of
from assay.kinds import kind_of
from assay.kinds.training import INPUT, Passing, Store, Tape, Value, rule_of
from assay.kinds.training.rows import in_float32, leaves
from assay.kinds.training.values import BEFORE, CACHE, STATES, Keeping
from assay.readings.binding import placed
from assay.readings.generate import chosen
from assay.readings.order import carried, halves, in_order
from assay.readings.passing import Forward
from assay.readings.setting import Setting
from assay.records import dataclass, field
from assay.spec import Model, Op, Segment

STREAM, SHARED, SCORES, LOGITS = "residual stream", "masks and positions", "attention scores", "logits"
GIVEN = "inputs"
VOCABULARY = "V"
Place = tuple[int, int]  # a layer that was run, an op of it


@dataclass(frozen=True)
class Alive:
    """A tensor that is there: its name in the notation, the layer whose op made it, its group, its bytes."""

    name: str
    group: str
    bytes: int
    where: str = ""


@dataclass(frozen=True)
class Moment:
    """The fullest moment of an op in one layer: bytes that are there, by group; of the peak the largest tensors."""

    segment: Segment
    layer: int | None
    op: Op
    live: Mapping[str, int]
    tensors: tuple[Alive, ...] = field(default=(), repr=False)

    @property
    def bytes(self) -> int:
        """All of them."""
        return sum(self.live.values())

    @property
    def where(self) -> str:
        """The layer as a report names it."""
        return named(self.segment, self.layer)


@dataclass(frozen=True)
class Liveness:
    """The moments of a pass, one an op of each layer that was run; the fullest of all; what is there at the end.

    `unknown` are kinds of which nobody knows what they make beside their results.
    """

    moments: tuple[Moment, ...]
    peak: Moment
    left: Mapping[str, int]
    unknown: tuple[str, ...] = ()


def named(segment: Segment, layer: int | None) -> str:
    """A layer by its segment's name and its index, where it has one."""
    return segment.name if layer is None else f"{segment.name} {layer}"


def liveness(
    model: Model,
    asked: Setting,
    *,
    dtype: str = "fp32",
    cache: Keeping | None = None,
    device: str = "cpu",
    holds: Iterable[str] = (),
    shuffles: bool = True,
) -> Liveness:
    """A pass forward without gradients in a setting of integers, activations of a `dtype`.

    `cache` says how keys, values and states are kept for a later pass, None where they are not. `holds` says what an
    implementation has longer than it needs: `layer`, what goes into a layer until it has run; `part`, what goes into
    its attention or MLP until that has run; `layers`, what goes into the first of them, and what they share, until the
    last has run. `shuffles`: weights that do not lie as an op takes them are copied, as `assay.build` does.
    """
    tape = Tape(dtype, device=device)
    tape.grads, tape.cache, tape.shuffles = False, cache, shuffles
    run = _Run(asked, carried(model), tape, frozenset(holds))
    run.whole(model)
    return run.told()


class _Alike:
    """A layer that was run; of those like it the one before which most has come to stay, and how much more that is."""

    def __init__(self, place: int, stays: Mapping[str, int], left: Sequence[tuple[str, int, int]]) -> None:
        self.place = place
        self.stays = dict(stays)
        self.left = left
        self.more: dict[str, int] = {}
        self.layer: int | None = None


class _Run(Forward):
    """The pass: when each op ran, and what layers that were not run left."""

    def __init__(self, asked: Setting, needed: frozenset[str], tape: Tape, holds: frozenset[str]) -> None:
        super().__init__(asked, needed, tape)
        self.holds = holds
        self.spans: dict[Place, tuple[int, int]] = {}  # the clock before an op and behind it
        self.alike: dict[Hashable, _Alike] = {}
        self.skipped: list[tuple[int, str, int, int]] = []  # when, group, bytes there before, and from then on
        self.ended: dict[Store, int] = {}
        self.unknown: dict[str, None] = {}
        self.stays: dict[str, int] = {}  # bytes that came to be there to stay, less those that went, by group
        self.first: Value | None = None  # what goes into the layers
        self.part, self.entered = "", list[Value]()  # at work, and what went into it
        self.last: Value | None = None

    # --- running ---

    def whole(self, model: Model) -> None:
        """Every layer, those of an encoder first."""
        encoders, rest = halves(model)
        beside = {id(s) for s in model.segments if model.sight is not None and s.axes.get("z") == "images"}
        for segment, layer, _ in in_order(encoders):
            self.next(segment, layer)
        if encoders:
            self.ended |= {value.store: self.tape.clock for value in self.tape.memo.values()}
            self.turn()
            self.first = None
        for segment, layer, _ in in_order([s for s in rest if id(s) not in beside]):
            if placed(segment, self.sizes)["b"]:  # a tower that is shown nothing does not run
                self.next(segment, layer)

    def next(self, segment: Segment, layer: int | None) -> None:
        """A layer: run, or told by one that was and is like it."""
        block, tape = chosen(segment, self.asked), self.tape
        key = (id(block), tuple(segment.axes.items()), self._given_alike())
        known = self.alike.get(key)
        if known is not None:
            self._skip(known, layer)
            return
        shared, stays, start, given = len(tape.memo), dict(self.stays), len(self.layers), dict(self.values)
        self.layer(segment, layer, block)
        left = [self._left(store) for store in self._all() if store.held and store.maker[0] == start]
        self._stay(left)
        if layer is not None:
            self._hold(given.values() if "layer" in self.holds else ())
            if "layers" in self.holds:
                self._hold([self.first] if self.first is not None else [])
                self.ended |= {value.store: tape.clock for value in tape.memo.values()}
        if len(tape.memo) == shared:
            self.alike[key] = _Alike(start, stays, left)
        if self.first is None and layer is None and "x" in self.values:
            self.first = self.values["x"]

    def run(self, at: Passing, given: list[Value], grad: bool) -> Value:
        """One op, and what it leaves for the next pass."""
        tape, place = self.tape, (len(self.layers), at.index)
        start = tape.clock
        if rule_of(at.op) is None:
            self.unknown.setdefault(at.op.kind)
        try:
            made = self._wide(at, given, grad) if in_float32(at.op) else super().run(at, given, grad)
        except KindError:  # of this one
            self.unknown.setdefault(at.op.kind)
            made = tape.new(at.op.axes)
        self._leave(at.op)
        tape.read(made, *given)
        if "part" in self.holds:
            part = at.op.part.partition(".")[0]
            if part != self.part:
                self.part, self.entered = part, given
            self._hold(self.entered)
        self.spans[place] = (start, tape.clock)
        if at.op.activations:
            self.last = made
        return made

    def _wide(self, at: Passing, given: list[Value], grad: bool) -> Value:
        """A recurrence: whatever goes in is made float32, and what comes out as what went in."""
        tape, dtype = self.tape, self.tape.dtype
        wide = [tape.cast(value, "fp32") for value in given]
        tape.dtype = "fp32"
        try:
            made = super().run(at, wide, grad)
        finally:
            tape.dtype = dtype
        return tape.cast(made, dtype)

    def _hold(self, values: Iterable[Value]) -> None:
        """They are there until now."""
        for value in values:
            value.store.read = self.tape.clock

    def _leave(self, op: Op) -> None:
        kind, tape = kind_of(op), self.tape
        if kind.state is None or tape.cache is None or leaves(op) or self.extent is None:
            return
        dtype = tape.cache.state if kind.kept == "state" else tape.cache.dtype
        held = bytes_of(kind.state(op, self.extent), dtype)
        grown = tape.cache.grown
        new = Store(held, maker=tape.now)
        new.born = tape.clock if grown else 0
        tape.there.append(new)
        group = STATES if kind.grows is None else CACHE
        tape.leave(new, group, held if grown and self.sizes["past"] else 0)

    def _all(self) -> Iterator[Store]:
        yield from self.tape.there
        yield from self.tape.made

    def _given_alike(self) -> Hashable:
        """What layers see of what is handed on: how it lies, and what of it is one tensor."""
        stores = {id(store): i for i, store in enumerate(dict.fromkeys(v.store for v in self.values.values()))}
        return tuple((n, v.axes, v.strides, v.dtype, stores[id(v.store)]) for n, v in self.values.items())

    def _left(self, store: Store) -> tuple[str, int, int]:
        """Group, bytes before the layer that made it and from then on, of what stays."""
        size = int(store.bytes)
        return store.held, 0 if store.born else size, 0 if store.origin == BEFORE else size

    def _stay(self, left: Sequence[tuple[str, int, int]]) -> None:
        for group, before, later in left:
            self.stays[group] = self.stays.get(group, 0) + later - before

    def _skip(self, known: _Alike, layer: int | None) -> None:
        more = {group: size - known.stays.get(group, 0) for group, size in self.stays.items()}
        if sum(more.values()) > sum(known.more.values()):
            known.more, known.layer = more, layer
        self.skipped += [(self.tape.clock, *one) for one in known.left]
        self._stay(known.left)

    # --- telling ---

    def _group(self, store: Store) -> str:
        if store.held or store.origin == INPUT:
            return store.held or GIVEN
        place, index = store.maker
        op = self.layers[place].block.ops[index]
        if store.shared:
            return SHARED
        if op.part.startswith("head") and VOCABULARY in op.axes:
            return LOGITS
        if op.name == "x":
            return STREAM
        keys = self.layers[place].extent.keys
        pairs = any(a in keys and keys[a].queries in op.axes for a in op.axes)
        return SCORES if pairs and op.part.endswith(".scores") else op.part.partition(".")[0]

    def _ends(self, store: Store) -> int:
        """The clock until which a storage is there, the pass's end behind all."""
        end = self.tape.clock + 1
        lasts = store.held or store.origin == INPUT or (self.last is not None and store is self.last.store)
        if lasts and store.origin != BEFORE:
            return end
        return self.ended.get(store, end) if store.shared else store.read

    def told(self) -> Liveness:
        """The moments of all ops, each layer that was not run as far above the one that was as it is."""
        end = self.tape.clock + 1
        lives = [(store, store.born, self._ends(store), self._group(store)) for store in self._all()]
        births: list[list[tuple[str, int]]] = [[] for _ in range(end + 2)]
        for store, born, until, group in lives:
            births[born].append((group, int(store.bytes)))
            births[min(until, end) + 1].append((group, -int(store.bytes)))
        for when, group, before, later in self.skipped:
            births[0].append((group, before))
            births[when + 1].append((group, later - before))
        totals, total = [], 0
        for changes in births[: end + 1]:
            total += sum(size for _, size in changes)
            totals.append(total)
        fullest = {place: _fullest(totals, *span) for place, span in self.spans.items()}
        more = {known.place: known for known in self.alike.values()}
        live: dict[str, int] = {}
        at: dict[int, dict[str, int]] = {}
        wanted = {*fullest.values(), end}
        for clock, changes in enumerate(births[: end + 1]):
            for group, size in changes:
                live[group] = live.get(group, 0) + size
            if clock in wanted:
                at[clock] = {group: size for group, size in live.items() if size}
        moments = [self._moment(place, at[clock], more.get(place[0])) for place, clock in fullest.items()]
        best = max(range(len(moments)), key=lambda i: moments[i].bytes)
        clock = list(fullest.values())[best]
        there = [(store, group) for store, born, until, group in lives if born <= clock <= until]
        peak = _with_tensors(moments[best], [self._alive(store, group) for store, group in there])
        return Liveness(tuple(moments), peak, at[end], tuple(self.unknown))

    def _moment(self, place: Place, live: Mapping[str, int], above: _Alike | None) -> Moment:
        row = self.layers[place[0]]
        op = row.block.ops[place[1]]
        if above is None or not above.more:
            return Moment(row.segment, row.layer, op, live)
        grown = {group: live.get(group, 0) + size for group, size in above.more.items()}
        return Moment(row.segment, above.layer, op, {**live, **grown})

    def _alive(self, store: Store, group: str) -> Alive:
        if store.maker is None:
            return Alive(group, group, int(store.bytes))
        row = self.layers[store.maker[0]]
        op = row.block.ops[store.maker[1]]
        name = f"of {op.kind}" if group == SHARED else op.name
        return Alive(name, group, int(store.bytes), named(row.segment, row.layer))


def _fullest(totals: Sequence[int], start: int, end: int) -> int:
    """The clock of an op at which most is there."""
    return max(range(min(start + 1, end), end + 1), key=totals.__getitem__)


def _with_tensors(moment: Moment, tensors: list[Alive]) -> Moment:
    tensors.sort(key=lambda one: -one.bytes)
    return Moment(moment.segment, moment.layer, moment.op, moment.live, tuple(tensors))
