"""Layers gone through several times, where each pass but the first is told what the one before had found (Inkling 2
Mini, Thinking Machines 2026).

Axes: uw states of the pass before, U these and the blocks before the loop; t4 messages, for queries, keys, values and
the experts, t3 the first three of them; loops the looped layers; D two streams beside each other, Rg the rank of a
gate; the others as in the first pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.blocks.block_residual import PLAIN, StateDecoder, StateLayer, attend_states
from assay.blocks.stacks import layer_segments, make_block, stored
from assay.records import dataclass, replace
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class ToldLayer(StateLayer):
    """A layer in a pass behind the first."""

    told: int = 1  # states of the pass before
    loops: int = 1
    rank: int = 1
    index: int = 0  # of the looped layers

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        own = {"uw": self.told, "uw0": self.told - 1, "t4": 4, "two": 2, "loops": self.loops, "D": 2 * self.width}
        return {**super().sizes(), **own, "Rg": self.rank}

    def inputs(self, several: bool) -> list[Op]:
        """As in the first pass, each mixed with its message before its norm."""
        made = self.ask()
        queries = "Q3" if several else "Qa"
        made += attend_states("attention", "x", "xi", queries, "u", self.width, several=several)
        for at, name in enumerate("qkv"):
            if several:
                made += ops("attention", f"x{name} = first(xi[b n t3 d], at={at}) -> [b n d]")
            made += self.mix(f"x{name}" if several else "xi", f"x{name}", name, at)
            made += self.norm.ops(f"x{name}", f"x{name}", f"a{name}" if several else "a")
        return made

    def feed(self) -> list[Op]:
        """What the experts read, mixed with its message."""
        return attend_states("mlp", "x", "xm", "Qm", "um", self.width) + self.mix("xm", "xm", "mlp", 3)

    def ask(self) -> list[Op]:
        """Four messages `told[b n t4 d]` from the states of the pass before, by this layer's own queries."""
        made = ops(
            "attention",
            f"asked = slice(Qasked[loops two d], at={self.index}) -> [one two d]",
            f"kept = slice(Qkept[loops two d], at={self.index}) -> [one two d]",
            "asked = concat(asked[one two d], kept[one two d]) -> [one t4 d]",
            "asked = first(asked[one t4 d]) -> [t4 d]",
        )
        if self.told > 1:
            made += ops("attention", "latest = repeat(previous[b n d]) -> [b n one d]")
            made += ops("attention", "was = concat(before[b n uw0 d], latest[b n one d]) -> [b n uw d]")
        else:
            made += ops("attention", "was = repeat(previous[b n d]) -> [b n uw d]")
        made += PLAIN.ops("was", "was", "was", "b n uw d", "d")
        return made + ops(
            "attention",
            "w = contract(was[b n uw d], asked[t4 d]) -> [b n t4 uw]",
            "w = scale(w[b n t4 uw]) -> [b n t4 uw]",
            "w = softmax(w[b n t4 uw]) -> [b n t4 uw]",
            "told = contract(w[b n t4 uw], was[b n uw d]) -> [b n t4 d]",
        )

    def mix(self, x: str, y: str, name: str, at: int) -> list[Op]:
        """(1 - f) x + m message, f and m from a low rank of both: a feed-forward layer of its own."""
        part = "mlp"
        made = ops(part, f"message = first(told[b n t4 d], at={at}) -> [b n d]")
        made += PLAIN.ops(x, "nx", "nx") + PLAIN.ops("message", "nm", "nm")
        return made + ops(
            part,
            "both = concat(nx[b n d], nm[b n d]) -> [b n D]",
            f"low = linear(both[b n D], Wd_{name}[D Rg]) -> [b n Rg]",
            f"forget = linear(low[b n Rg], Wf_{name}[Rg d]) -> [b n d]",
            "forget = tanh(forget[b n d]) -> [b n d]",
            "forget = scale(forget[b n d], by=-1.0, plus=1.0) -> [b n d]",
            f"learn = linear(low[b n Rg], Wm_{name}[Rg d]) -> [b n d]",
            "learn = tanh(learn[b n d]) -> [b n d]",
            f"left = mul({x}[b n d], forget[b n d]) -> [b n d]",
            "come = mul(message[b n d], learn[b n d]) -> [b n d]",
            f"{y} = add(left[b n d], come[b n d]) -> [b n d]",
        )


@dataclass(frozen=True)
class LoopedDecoder(StateDecoder):
    """A decoder whose layers from `start` on run `passes` times, as `told` says in all passes but the first."""

    start: int = 0
    told: tuple[ToldLayer, ...] = ()
    passes: int = 2

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """Those of the decoder; a looped layer stands for itself, once for its first pass and once for the others.

        Before the loop its entry is kept, to which each further pass goes back with what the one before has left.
        """
        names = names if self.names is None else self.names
        end = self.start + len(self.told)
        own = {
            i: {weight: path.replace("{i}", str(i)) for weight, path in names.items()} for i in range(self.start, end)
        }
        first, *layers, states, head = super().segments(names)
        again = layer_segments(self.told, self.width, names)
        turns = tuple(range(1, self.passes))
        more = {self.start + i: replace(one, passes=len(turns), turns=turns) for one in again for i in one.layers}
        return (
            first,
            *_within(layers, range(self.start)),
            self._once("entry", _KEPT, names),
            *(numbered(one, i, own[i]) for one in layers for i in one.layers if i in own),
            replace(self._once("turn", self._turn(), names), passes=len(turns), turns=turns),
            *(numbered(more[i], i, own[i]) for i in own),
            *_within(layers, range(end, self.depth)),
            states,
            head,
        )

    def _turn(self) -> list[Op]:
        """What the pass before has left, behind the state that its first layer kept; and the entry."""
        made = ops("other", "previous = view(x[b n d]) -> [b n d]", "x = view(entry[b n d]) -> [b n d]")
        last = ops("other", "before = slice(blocks[b n U d]) -> [b n uw0 d]")
        told = [replace(op, attrs=(("at", self._entered + 1),)) for op in last] if self.told[0].told > 1 else []
        return [*made, *told, *ops("other", "blocks = view(entered[b n P d]) -> [b n P d]")]

    @property
    def _entered(self) -> int:
        """Blocks that have ended before the loop."""
        return self.told[0].blocks

    def _once(self, name: str, made: list[Op], names: Mapping[str, str]) -> Segment:
        told = self.told[0].told
        sizes = {"d": self.width, "P": self._entered, "U": self._entered + told, "uw0": told - 1}
        return Segment(name, make_block(name, made, sizes, names))


_KEPT = ops("other", "entry = view(x[b n d]) -> [b n d]", "entered = view(blocks[b n P d]) -> [b n P d]")


def _within(segments: Iterable[Segment], layers: range) -> list[Segment]:
    """The layers of segments that are among some."""
    found = [replace(s, layers=tuple(i for i in s.layers if i in layers)) for s in segments]
    return [segment for segment in found if segment.layers]


def numbered(segment: Segment, index: int, names: Mapping[str, str]) -> Segment:
    """One layer of a segment under names of its own, which other passes share."""
    kept = {weight: stored(weight, names, f"layers.{index}.") for weight in segment.block.stored}
    return replace(segment, layers=(index,), block=replace(segment.block, stored=kept))
