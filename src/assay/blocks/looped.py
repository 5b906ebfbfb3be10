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
        made = [first, self._once("start", ops("other", "x = add(x[b n d], Start[d]) -> [b n d]"), names)]
        runs = (self.slow * self.fast, self.slow)
        for passes, layers, (state, own) in zip(
            runs, (self.layers[:half], self.layers[half:]), self.states.items(), strict=True
        ):
            made += [replace(found, passes=passes) for found in self._stack(state, layers, own)]
        turn = [*self.norm.ops("x", "x", "c"), *ops("other", "x = add(x[b n d], z[b n d]) -> [b n d]")]
        made.append(replace(self._once("turn", turn, names), passes=sum(runs) - 1))
        return (*made, last)

    def _once(self, name: str, made: Sequence[Op], names: Mapping[str, str]) -> Segment:
        return Segment(name, make_block(name, made, {"d": self.width}, names))

    def _stack(self, state: str, layers: Sequence[Layer], names: Mapping[str, str]) -> list[Segment]:
        return [replace(found, name=state) for found in layer_segments(layers, self.embedding.width, names)]
