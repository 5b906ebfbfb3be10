"""A pass forward on a tape: every layer in order, each op by the rule of its kind."""

from __future__ import annotations

from itertools import takewhile

from assay.kinds import Extent
from assay.kinds.resizing import is_index
from assay.kinds.training import Passing, Tape, Value, passes, rule_of
from assay.kinds.training.values import FLAG, INDEX
from assay.readings.binding import bind, placed
from assay.readings.order import MEMORY
from assay.readings.setting import Setting
from assay.readings.stored import Seen
from assay.size import Table, decides, witness
from assay.spec import Block, Segment

TOWERS = ("images", "sounds")  # what the layers of a tower have a batch of
INDICES = ("ids", "labels", "type")  # inputs that are whole numbers


class Ran:
    """A layer that has run forward: its ops and which of their operands need gradients."""

    def __init__(self, segment: Segment, block: Block, layer: int | None, extent: Extent) -> None:
        self.segment = segment
        self.block = block
        self.layer = layer
        self.extent = extent
        self.needs: list[tuple[bool, ...]] = []

    @property
    def tower(self) -> str | None:
        """What a layer of a tower has a batch of, None for any other layer."""
        batch = self.segment.axes.get("b")
        return batch if isinstance(batch, str) and batch in TOWERS else None

    @property
    def senses(self) -> bool:
        """True for a layer of a tower that has something to see or hear."""
        many = self.extent.sizes["b"]
        return self.tower is not None and not (decides(many) and many == 0)

    @property
    def idle(self) -> bool:
        """True for a layer of a tower that has nothing to see or hear, and so does not run."""
        return self.tower is not None and not self.senses


class Forward:
    """A pass forward over a model; `needed` are the names that layers hand on to later ones."""

    def __init__(self, asked: Setting, needed: frozenset[str], tape: Tape) -> None:
        self.needed = needed
        self.asked = asked
        self.sizes = asked.sizes()
        self.plain = all(map(decides, self.sizes.values()))
        self.shown = {} if self.plain else {axis: witness(size) for axis, size in self.sizes.items()}
        self.tape = tape
        self.values: dict[str, Value] = {}
        self.layers: list[Ran] = []
        self.seen: dict[int, Seen] = {}
        self.extent: Extent | None = None  # of the layer at work
        self.idle = False  # of the layer at work

    def turn(self) -> None:
        """From here on another pass, over what the layers so far left: what they shared is made anew."""
        self.values = {MEMORY: self.values["x"]}
        self.tape.memo = Table()

    def layer(self, segment: Segment, layer: int | None, block: Block | None = None) -> Ran:
        """One layer forward, by another block of the segment's where one is named."""
        block, tape = block or segment.block, self.tape
        extent = bind(block, placed(segment, self.sizes))
        self.extent = extent
        tape.layer = Table()
        tape.real = extent.sizes
        tape.sizes = dict(extent.sizes if self._plain(block) else self._shown(segment, block))
        seen = self.seen.setdefault(id(block), Seen(block))
        known: dict[str, Value] = {}
        row = Ran(segment, block, layer, extent)
        self.idle = row.idle
        place = len(self.layers)
        for index, op in enumerate(block.ops):
            for operand in op.activations:
                if operand.name not in known or (operand.name == "at" and known["at"].axes != operand.axes):
                    known[operand.name] = self._given(operand.name, operand.axes, block)
            given = [known[t.name] for t in op.activations]
            own = iter(given)
            row.needs.append(tuple(seen.trained(t) if t.is_weight else next(own).grad for t in op.inputs))
            tape.now = (place, index)
            at = Passing(
                tape,
                op,
                index,
                block.ops,
                tape.sizes,
                lambda t, groups: seen.view(tape, t, groups, layer),
                tape.sizes.get("past", 0),
                known,
            )
            known[op.name] = self.run(at, given, any(row.needs[-1]) and passes(op))
            tape.read(known[op.name], *given)  # what an op is given is there until it has run
            if index == 0 and op.activations and row.tower is None:
                for _ in self._sensed_before():  # where in a text stands what each tower made
                    tape.keep(tape.new(op.activations[0].axes, dtype=FLAG))
        made = {op.name for op in block.ops} & self.needed
        self.values |= {name: known[name] for name in made}
        self.layers.append(row)
        return row

    def _sensed_before(self) -> set[str]:
        """What the towers right before the layer at work have seen and heard."""
        towers = takewhile(lambda layer: layer.tower is not None, reversed(self.layers))
        return {layer.tower for layer in towers if layer.tower is not None and layer.senses}

    def _plain(self, block: Block) -> bool:
        """True where every size is a number, at every point."""
        return self.plain and all(map(decides, block.sizes.values()))

    def _shown(self, segment: Segment, block: Block) -> dict[str, int]:
        """Numbers that stand for the sizes of a block."""
        own = block.resize(**{axis: witness(size) for axis, size in block.sizes.items()})
        return bind(own, {axis: witness(size) for axis, size in placed(segment, self.shown).items()}).sizes

    def run(self, at: Passing, given: list[Value], grad: bool) -> Value:
        """One op, which has a gradient where nobody knows its rule; of one that does not run nothing is kept."""
        rule = None if self.idle else rule_of(at.op, self.tape.dtype)
        return self.tape.new(at.op.axes, grad) if rule is None else rule(at, *given)

    def _given(self, name: str, axes: tuple[str, ...], block: Block) -> Value:
        """What comes from the layer before, or from nobody."""
        found = self.values.get(name)
        if found is not None:
            return found.called(axes)
        if name == "at":
            key = ("positions", *(self.tape.sizes[axis] for axis in axes))
            return self.tape.once(key, lambda: self.tape.new(axes, dtype=INDEX)).called(axes)
        if name == "type":
            return self.tape.new(axes, dtype=INDEX)
        if self.idle:
            return self.tape.new(axes)
        given = self.tape.given(axes, INDEX if name in INDICES or is_index(name, block.ops) else None)
        self.values[name] = given
        return given
