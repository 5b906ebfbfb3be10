"""Models that go through the same layers several times: weights stored once, keys and values kept each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.blocks.ends import Norm
from assay.blocks.stacks import Decoder, Layer, layer_segments, make_block
from assay.records import dataclass, field, replace
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class Hierarchy(Decoder):
    """A slow and a fast state, each with a stack of its own (Wang et al. 2025, hierarchical reasoning model).

    `layers` holds the fast stack, then the slow one, alike. In each of `slow` cycles the fast stack runs `fast` times
    on the sum of both states, then the slow one once; a stack ends in `norm`. `states` are the two stacks' names.
    """

    slow: int = 1
    fast: int = 1
    norm: Norm = Norm()
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The embedding, the first sum, the two stacks, what joins them, the head."""
        first, *_, last = super().segments(names)
        half = self.depth // 2
        start = ops("other", "slow = view(x[b n d]) -> [b n d]", "x = add(x[b n d], Start[d]) -> [b n d]")
        made, joins = [first, self._once("start", start, names)], []
        for layers, (state, own), turns, (mine, other) in zip(
            (self.layers[:half], self.layers[half:]),
            self.states.items(),
            self.turns(),
            (("fast", "slow"), ("slow", "fast")),
            strict=True,
        ):
            made += [replace(found, passes=len(turns), turns=turns) for found in self._stack(state, layers, own)]
            turn = [
                *self.norm.ops("x", mine, "c"),
                *ops("other", f"x = add({mine}[b n d], {other}[b n d]) -> [b n d]"),
            ]
            again = tuple(t for t in turns if t < self.slow * (self.fast + 1) - 1)  # the head norms what comes last
            if again:
                joins.append(replace(self._once(f"{mine} turn", turn, names), passes=len(again), turns=again))
        return (*made, *joins, last)

    def turns(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """When the fast stack runs, and when the slow one."""
        period = self.fast + 1
        slow = tuple(cycle * period + self.fast for cycle in range(self.slow))
        return tuple(turn for turn in range(self.slow * period) if turn not in slow), slow

    def _once(self, name: str, made: Sequence[Op], names: Mapping[str, str]) -> Segment:
        return Segment(name, make_block(name, made, {"d": self.width}, names))

    def _stack(self, state: str, layers: Sequence[Layer], names: Mapping[str, str]) -> list[Segment]:
        return [replace(found, name=state) for found in layer_segments(layers, self.embedding.width, names)]
