"""Which tensors are there at once: each from the op that makes it to the last that reads it.

A pass is run on a tape, which notes when each storage is made and last read, those within an op among them. What is
kept for the next pass stays, so does what several layers share, and what is given. Of layers that are alike one is
run: the others differ by what has come to stay before them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from assay.errors import KindError
from assay.formats import bytes_of
from assay.kinds import kind_of
from assay.kinds.training import INPUT, Passing, Store, Tape, Value, rule_of
from assay.kinds.training.rows import in_float32, leaves
from assay.kinds.training.values import BEFORE, CACHE, STATES, Keeping
from assay.readings.binding import placed
from assay.readings.generate import chosen
from assay.readings.order import halves, in_order
from assay.readings.passing import Forward
from assay.readings.setting import Setting
from assay.records import dataclass, field
from assay.size import Size, Table, largest, whole
from assay.spec import Model, Op, Segment, carried

STREAM, SHARED, SCORES, LOGITS = "residual stream", "masks and positions", "attention scores", "logits"
GIVEN = "inputs"
VOCABULARY = "V"
Place = tuple[int, int]  # a layer that was run, an op of it


@dataclass(frozen=True)
class Alive:
    """A tensor that is there: its name in the notation, the layer whose op made it, its group, its bytes."""

    name: str
    group: str
    bytes: Size
    where: str = ""


@dataclass(frozen=True)
class Moment:
    """The fullest moment of a pass or an op: its layer, the op, the bytes that are there, by group, and the tensors."""

    segment: Segment
    layer: int | None
    op: Op
    live: Mapping[str, Size]
    tensors: tuple[Alive, ...] = field(default=(), repr=False)

    @property
    def bytes(self) -> Size:
        """All of them."""
        return sum(self.live.values(), start=0)

    @property
    def largest(self) -> list[Alive]:
        """The tensors, the largest first."""
        return sorted(self.tensors, key=lambda one: -one.bytes)

    @property
    def where(self) -> str:
        """The layer as a report names it."""
        return named(self.segment, self.layer)


@dataclass(frozen=True)
class Liveness:
    """The fullest moment of a pass, and the groups of what is there in it at any time.

    `unknown` are kinds of which nobody knows what they make beside their results.
    """

    peak: Moment
    groups: tuple[str, ...]
    unknown: tuple[str, ...]
    run: _Run = field(repr=False, compare=False)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The fullest moment of each op of each layer that was run."""
        return tuple(self.run.moments())

    @property
    def left(self) -> Mapping[str, Size]:
        """Bytes that are there at the end, by group."""
        return self.run.left()


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
    run = _Run(asked, carried(model.segments), tape, frozenset(holds))
    run.whole(model)
    return run.told()


@dataclass(frozen=True)
class _Life:
    """Bytes of a group from one time of the clock to another, both in it."""

    group: str
    bytes: Size
    born: int
    until: int
    store: Store | None = None


class _Alike:
    """A layer that was run; of those like it the one before which most has come to stay, and how much more that is."""

    def __init__(self, place: int, stays: Mapping[str, Size], left: Sequence[tuple[str, Size, Size]]) -> None:
        self.place = place
        self.stays = dict(stays)
        self.left = left
        self.more: dict[str, Size] = {}
        self.layer: int | None = None


class _Run(Forward):
    """The pass: when each op ran, and what layers that were not run left."""

    def __init__(self, asked: Setting, needed: frozenset[str], tape: Tape, holds: frozenset[str]) -> None:
        super().__init__(asked, needed, tape)
        self.holds = holds
        self.spans: dict[Place, tuple[int, int]] = {}  # the clock before an op and behind it
        self.alike = Table[_Alike]()
        self.skipped: list[tuple[int, str, Size, Size]] = []  # when, group, bytes there before, and from then on
        self.ended: dict[Store, int] = {}
        self.unknown: dict[str, None] = {}
        self.stays: dict[str, Size] = {}  # bytes that came to be there to stay, less those that went, by group
        self.first: Value | None = None  # what goes into the layers
        self.lives: list[_Life] = []
        self.totals: list[Size] = []  # bytes that are there at each time of the clock
        self.end = 0  # of the pass, on the clock
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
            self.alike.add(key, _Alike(start, stays, left))
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

    def _left(self, store: Store) -> tuple[str, Size, Size]:
        """Group, bytes before the layer that made it and from then on, of what stays."""
        size = whole(store.bytes)
        return store.held, 0 if store.born else size, 0 if store.origin == BEFORE else size

    def _stay(self, left: Sequence[tuple[str, Size, Size]]) -> None:
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
        """What was there when, each layer that was not run as far above the one that was as it is."""
        self.end = self.tape.clock + 1
        self.lives = [_Life(self._group(s), whole(s.bytes), s.born, self._ends(s), s) for s in self._all()]
        for when, group, before, later in self.skipped:
            self.lives += [_Life(group, before, 0, when), _Life(group, later, when + 1, self.end)]
        change: list[Size] = [0] * (self.end + 2)
        for life in self.lives:
            last = min(life.until, self.end)
            change[life.born] = change[life.born] + life.bytes
            change[last + 1] = change[last + 1] - life.bytes
        self.totals = list(accumulate(change[: self.end + 1]))
        groups = dict.fromkeys(life.group for life in self.lives if life.bytes)
        return Liveness(self._fullest(self.spans), tuple(groups), tuple(self.unknown), self)

    def _fullest(self, places: Iterable[Place]) -> Moment:
        """The fullest moment of some ops."""
        above = {known.place: sum(known.more.values(), start=0) for known in self.alike.values()}
        spots = [(place, clock) for place in places for clock in self._clocks(*self.spans[place])]
        bytes_at = [self.totals[clock] + above.get(place[0], 0) for place, clock in spots]
        return self._moment(*spots[largest(bytes_at)])

    @staticmethod
    def _clocks(start: int, end: int) -> range:
        """The times of an op that ran from one clock to another."""
        return range(min(start + 1, end), end + 1)

    def _at(self, clock: int) -> tuple[list[_Life], dict[str, Size]]:
        """What is there at a time, and its bytes by group."""
        found = [life for life in self.lives if life.born <= clock <= life.until and life.bytes]
        live: dict[str, Size] = {}
        for life in found:
            live[life.group] = live.get(life.group, 0) + life.bytes
        return found, live

    def _moment(self, place: Place, clock: int) -> Moment:
        """A time of an op, in the layer of those alike before which most has come to stay."""
        row = self.layers[place[0]]
        found, live = self._at(clock)
        above = next((known for known in self.alike.values() if known.place == place[0] and known.more), None)
        if above is not None:
            live |= {group: live.get(group, 0) + size for group, size in above.more.items()}
        tensors = tuple(self._alive(life.store, life.group) for life in found if life.store is not None)
        return Moment(row.segment, row.layer if above is None else above.layer, row.block.ops[place[1]], live, tensors)

    def moments(self) -> Iterator[Moment]:
        """The fullest moment of each op of each layer that was run."""
        return (self._fullest([place]) for place in self.spans)

    def left(self) -> dict[str, Size]:
        """What is there at the end, by group."""
        return self._at(self.end)[1]

    def _alive(self, store: Store, group: str) -> Alive:
        if store.maker is None:
            return Alive(group, group, whole(store.bytes))
        row = self.layers[store.maker[0]]
        op = row.block.ops[store.maker[1]]
        name = f"of {op.kind}" if group == SHARED else op.name
        return Alive(name, group, whole(store.bytes), named(row.segment, row.layer))
