"""A training step walked through: what is there at each op, forward, and backward with gradients and what runs again.

Forward a tensor is there from the op that makes it to the last that reads it, and what is kept until the backward pass
of the op that first keeps it. Backward, an op's results' gradients, those that it makes of its operands, and those of
parameters are there, and what its backward pass needs for itself; where a gradient goes on unchanged it is no tensor
of its own, and where several meet their sum is a new one, as PyTorch's engine adds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from assay.errors import KindError
from assay.kinds import kind_of
from assay.kinds.training import INPUT, MADE, WEIGHT, Passing, Store, Value, hands_on, rule_of, width_of
from assay.kinds.training import passes as has_gradient
from assay.readings.order import halves, in_order, unordered
from assay.readings.passing import Ran as Layer
from assay.readings.precision import Precision
from assay.readings.setting import Setting
from assay.readings.training import Traced
from assay.records import dataclass
from assay.size import Size, largest, maximum, minimum
from assay.spec import Block, Model, Op, Segment, Tensor, carried

Place = tuple[int, int]
LOSS = "head.loss"  # the part of the ops behind the logits


@dataclass(frozen=True)
class Spot:
    """What is there when an op has run: bytes by group, beside what is there all along.

    `saved` are activations kept for the backward pass, `passing` others and their gradients, `gradients` those of
    parameters, `again` what was made again.
    """

    phase: str  # forward or backward
    segment: str
    layer: int | None
    op: Op
    saved: Size
    passing: Size
    gradients: Size
    again: bool = False

    @property
    def bytes(self) -> Size:
        """All of them."""
        return self.saved + self.passing + self.gradients

    @property
    def where(self) -> str:
        """Phase and layer, in words."""
        name = f"{self.phase}, {self.segment}" + ("" if self.layer is None else f" {self.layer}")
        return f"{self.phase}, loss" if self.op.part == LOSS else name


class _Buffer:
    """A gradient of an activation."""

    __slots__ = ("bytes",)

    def __init__(self, held: Size) -> None:
        self.bytes = held


class Ran:
    """An op that has run: what it was given, what it gave, what of its own it made."""

    __slots__ = ("clock", "end", "given", "op", "place", "result", "sizes", "start", "weights")

    def __init__(self, place: Place, op: Op, given: list[Value], weights: list[tuple[Any, Size, Size]]) -> None:
        self.place = place
        self.op = op
        self.given = given
        self.weights = weights
        self.sizes: list[Size] = []
        self.result: Value | None = None
        self.start = self.end = self.clock = 0


class Walk(Traced):
    """A pass forward whose ops are remembered, and the walk back over them.

    Raises KindError for an op, or an order, of which nobody knows what training keeps.
    """

    def __init__(self, model: Model, asked: Setting, policy: Precision, device: str, accumulated: bool = False) -> None:
        super().__init__(asked, carried(model.segments), policy, device)
        self.model = model
        self.policy = policy
        self.accumulated = accumulated
        self.ran: dict[Place, Ran] = {}
        self.unknown: dict[str, None] = {}  # kinds of which nobody knows what they keep
        if (why := unordered(model.segments)) is not None:
            raise KindError(why)
        encoders, rest = halves(model)
        for segment, layer, _ in in_order(encoders):
            self.layer(segment, layer)
        if encoders:
            self.turn()
        for segment, layer, _ in in_order(rest):
            self.layer(segment, layer)
        self.order = sorted(self.ran)
        self.reached = self._reached(set())
        self.regions: dict[Any, Any] = self._regions()
        self._hold()

    # --- forward ---

    def layer(self, segment: Segment, layer: int | None, block: Block | None = None) -> Layer:
        """A layer forward; who computes a loss has logits, as they are and in float32, until it is there."""
        place = len(self.layers)
        row = super().layer(segment, layer, block)
        for index, op in enumerate(row.segment.block.ops):
            if op.part == LOSS:
                for value in self.ran[place, index].given:
                    value.store.read = max(value.store.read, self.tape.clock)
        return row

    def run(self, at: Passing, given: list[Value], grad: bool) -> Value:
        """One op, remembered."""
        tape, place = self.tape, (len(self.layers), at.index)
        own = [(w, tape.held(w.axes, tape.dtype), tape.held(w.axes, self._dtype_of(at.op))) for w in self._trained(at)]
        row = Ran(place, at.op, given, [(self._identity(at, w), full, made) for w, full, made in own])
        if not self.idle and rule_of(at.op, tape.dtype) is None:
            self.unknown.setdefault(at.op.kind)
        row.start = len(tape.made)
        row.result = super().run(at, given, grad)
        row.end = len(tape.made)
        row.clock = tape.clock
        row.sizes = [minimum(tape.held(v.axes, v.dtype), v.store.bytes) for v in given]
        self.ran[place] = row
        return row.result

    def _trained(self, at: Passing) -> list[Tensor]:
        return [w for w in at.op.weights if at.weight(w).grad]

    def _identity(self, at: Passing, weight: Tensor) -> Any:
        key = at.weight(weight).store.key
        return (len(self.layers), at.index, weight.name) if key is None else key

    def _dtype_of(self, op: Op) -> str:
        """In what the gradient of a weight comes: products under autocast give that of their copies."""
        return self.policy.compute if self.policy.autocast and kind_of(op).contracts else self.tape.dtype

    def _regions(self) -> dict[Place, Any]:
        """With which others each op runs again."""
        found: dict[Place, Any] = {}
        layers = 0
        for place, row in enumerate(self.layers):
            ops = row.segment.block.ops
            whole = any(op.again == "layer" for op in ops)
            for index, op in enumerate(ops):
                if op.again == "layer":
                    found[place, index] = ("layer", layers // self.model.stretch)
                elif op.again:
                    found[place, index] = (op.again, place)
            layers += whole
        return found

    def _hold(self) -> None:
        """Until when each storage is there: to the clock's time of a forward pass, or to an op's backward pass."""
        readers: dict[int, set[Any]] = {}
        for place in self.order:
            for value in self.ran[place].given:
                readers.setdefault(id(value.store), set()).add(self.regions.get(place))
        self.until: dict[int, Any] = {}  # whose backward pass is the last to need a storage
        self.within: dict[Any, list[tuple[Store, Place]]] = {}  # of a region: what is kept when it has run again
        copies = {id(value.store) for value in self.tape.copies.values()}
        for store in self.tape.kept:
            keepers = [now for now, passing in store.keepers if now in self.reached and not passing]
            if store.origin in (INPUT, WEIGHT) or not keepers:
                continue
            first = min(keepers)
            made_in = self.regions.get(store.maker)
            own = not store.shared or id(store) in copies  # autocast copies parameters again where it runs again
            if made_in is not None and own and all(self.regions.get(k) == made_in for k in keepers):
                self.within.setdefault(made_in, []).append((store, first))
            else:
                self.until[id(store)] = first
        self.kept = {id(s): s for s in self.tape.made}
        for store in self.tape.made:  # masks and tables that it is given
            if store.shared and id(store) not in {*self.until, *copies} and self.regions.get(store.maker) is not None:
                self.until[id(store)] = store.maker
        for place in self.order:  # what a region reads of others it is given again
            region = self.regions.get(place)
            if region is None or place not in self.reached:
                continue
            for value in self.ran[place].given:
                store = value.store
                outside = store.origin == MADE and self.regions.get(store.maker) != region
                if outside:
                    self.until[id(store)] = min(place, self.until.get(id(store), place))

    def held(self) -> Iterator[Store]:
        """What is kept when the forward pass has ended."""
        return (self.kept[key] for key in self.until)

    def maker(self, store: Store) -> Place:
        """The op that made it, or the first that keeps what none made."""
        made: Any = self.until[id(store)] if store.maker is None else store.maker
        place, index = made
        return place, index

    def saved_after(self) -> Size:
        """Bytes kept when the forward pass has ended."""
        return sum((store.bytes for store in self.held()), start=0)

    def forward(self) -> Iterator[Spot]:
        """The fullest moment of each op."""
        length = self.tape.clock + 2
        change: list[Size] = [0] * length
        kept: list[Size] = [0] * length
        for store in self.tape.made:
            change[store.born] += store.bytes
            if id(store) in self.until:
                kept[store.born] += store.bytes
            elif not store.shared:
                change[store.read + 1] -= store.bytes
        live, saved = list(accumulate(change)), list(accumulate(kept))
        clock = 1
        for place in self.order:
            row = self.ran[place]
            if clock <= row.clock:
                best = clock + largest(live[clock : row.clock + 1])
                yield self._spot("forward", row, saved[best], live[best] - saved[best], 0)
            clock = max(clock, row.clock + 1)

    def _spot(self, phase: str, row: Ran, saved: Size, passing: Size, gradients: Size, again: bool = False) -> Spot:
        where = self.layers[row.place[0]]
        return Spot(phase, where.segment.name, where.layer, row.op, saved, passing, gradients, again)

    # --- backward ---

    def backward(self) -> Iterator[Spot]:
        """The fullest moment of each op's backward pass, the last op first."""
        self.pending: dict[int, _Buffer] = {}  # gradients that wait, by what they are of
        self.parameters: dict[Any, Size] = {}
        self.joined: dict[int, _Buffer] = {}  # gradients of several results that lie in one tensor
        self.lies: dict[int, list[Place]] = {}  # which ops' results lie in a storage, none of them a view of another
        for place in self.order:
            row = self.ran[place]
            if row.result is not None and all(v.store is not row.result.store for v in row.given):
                self.lies.setdefault(id(row.result.store), []).append(place)
        self.saved = self.saved_after()
        self.again: Size = 0
        ends: dict[Place, list[int]] = {}
        for key, place in self.until.items():
            ends.setdefault(place, []).append(key)
        done: set[Any] = set()
        for place in reversed(self.order):
            if place not in self.reached:
                continue
            row, region = self.ran[place], self.regions.get(place)
            if region is not None and region not in done:
                done.add(region)
                yield self._run_again(region, row)
            freed = sum((self.kept[key].bytes for key in ends.get(place, ())), start=0)
            yield from self._back(row, freed)
            self.saved -= freed
            for store, first in self.within.get(region, ()) if region is not None else ():
                if first == place:
                    self.again -= store.bytes

    def _run_again(self, region: Any, row: Ran) -> Spot:
        """What a region keeps when it has run again, and at most had beside it."""
        own = {id(store) for store, _ in self.within.get(region, ())}
        times = [self.ran[place] for place in self.order if self.regions.get(place) == region]
        change: dict[int, Size] = {}
        for store in self.tape.made[times[0].start : times[-1].end]:
            if id(store) not in self.until:
                change[store.born] = change.get(store.born, 0) + store.bytes
                if id(store) not in own:
                    change[store.read + 1] = change.get(store.read + 1, 0) - store.bytes
        live: Size = 0
        most: Size = 0
        for clock in sorted(change):
            live = live + change[clock]
            most = maximum(most, live)
        spot = self._spot("backward", row, self.saved, most + self._waiting(), self._held(), True)
        self.again += sum((store.bytes for store, _ in self.within.get(region, ())), start=0)
        return spot

    def _waiting(self) -> Size:
        return sum({id(b): b.bytes for b in (*self.pending.values(), *self.joined.values())}.values(), start=0)

    def _back(self, row: Ran, freed: Size) -> Iterator[Spot]:
        """One op's backward pass, after which bytes of what was kept are freed."""
        result = row.result
        assert result is not None
        if not result.grad or any(value.store is result.store for value in row.given):
            return  # of what is seen otherwise the gradient is seen so too
        store = id(result.store)
        waited = self.pending.pop(store, None)
        buffer = self.joined.get(store) or waited
        later = store in self.joined  # one of several results in one tensor, whose gradients are one by now
        if len(self.lies[store]) > 1 and buffer is not None:
            buffer = self.joined[store] = buffer if later else _Buffer(result.store.bytes)
        if buffer is None:
            if row.place != self.order[-1] and result.axes:
                return  # nothing comes back to it
            buffer = _Buffer(result.store.bytes)
        onward = hands_on(row.op)
        extra = self.tape.apart.get(row.place, 0) + self._inside(row)
        narrow = self._narrow(row)
        if narrow:  # products under autocast make gradients of their copies first, which are cast when they have run
            passing = self._waiting() + buffer.bytes + narrow + extra
            yield self._spot("backward", row, self.saved + self.again, passing, self._held(), bool(self.again))
        made = [] if narrow else [buffer]
        for value, size in zip(row.given, row.sizes, strict=True):
            if value.grad and value.store.origin == MADE and has_gradient(row.op) and not later:
                own = buffer if onward and size == buffer.bytes else _Buffer(size)
                made += [own, *self._meet(id(value.store), own)]
        fresh = sum((self._parameter(*weight) for weight in row.weights), start=0)
        waiting = {id(b): b.bytes for b in (*self.pending.values(), *self.joined.values(), *made)}
        if self.lies[store][0] == row.place:
            self.joined.pop(store, None)
        passing = sum(waiting.values(), start=0) + fresh + (0 if narrow else extra)
        saved = self.saved + self.again - (freed if narrow else 0)
        yield self._spot("backward", row, saved, passing, self._held(), bool(self.again))

    def _narrow(self, row: Ran) -> Size:
        """Bytes of the gradients of copies that autocast made for a product."""
        if not self.policy.autocast or not kind_of(row.op).contracts:
            return 0
        low, full = (width_of(dtype) for dtype in (self.policy.compute, self.tape.dtype))
        given = (s for v, s in zip(row.given, row.sizes, strict=True) if v.grad and v.dtype == self.tape.dtype)
        return sum((s // full * low for s in given), start=0) + sum((made for _, _, made in row.weights), start=0)

    def _inside(self, row: Ran) -> Size:
        """Gradients of what lies between the functions that an op is composed of: as large as what is not kept."""
        region = self.regions.get(row.place)
        kept = {id(store) for store, _ in self.within.get(region, ())} | self.until.keys()
        inner = (s for s in self.tape.made[row.start : row.end] if row.result is not None and s is not row.result.store)
        return sum((s.bytes for s in inner if id(s) not in kept and s.grad), start=0)

    def _meet(self, store: int, made: _Buffer) -> list[_Buffer]:
        """A gradient arrives; where one waits already, their sum is a tensor of its own, for which both are there."""
        waiting = self.pending.get(store)
        self.pending[store] = made if waiting is None else _Buffer(made.bytes)
        return [] if waiting is None else [waiting]

    def _held(self) -> Size:
        return sum(self.parameters.values(), start=0)

    def _parameter(self, key: Any, full: Size, made: Size) -> Size:
        """The gradient of a parameter: bytes beside what is held, while it is cast or added to what is there."""
        if self.accumulated or self.policy.gradients is None:
            return made
        first = key not in self.parameters
        self.parameters[key] = full
        cast = made if made != full else 0
        return cast if first else full + full + cast
