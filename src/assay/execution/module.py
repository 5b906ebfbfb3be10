"""The whole: segments in order, each op run by the function of its kind, each shape as the description says."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.errors import BuildError
from assay.execution import admit
from assay.execution.generate import generate
from assay.execution.reads import given, per_text
from assay.execution.sensed import Tower, cut, places, positions_of, towers
from assay.execution.shapes import checked
from assay.execution.sites import NOT_RUN, RULES, Call, Run, Site
from assay.execution.storage import Tree, Weights, allocate
from assay.execution.weights import load_weights, save_weights
from assay.kinds import kind_of
from assay.readings.binding import bind, placed
from assay.readings.order import MEMORY, halves, in_order, unordered
from assay.readings.setting import Setting, encoded, setting
from assay.records import dataclass, replace
from assay.rewrites.fuse import fuse
from assay.spec import Block, Model, Op, Segment, carried

for _module in (
    "collective",
    "compress",
    "contract",
    "conv",
    "fused",
    "keys",
    "layout",
    "pointwise",
    "reduce",
    "scan",
    "stabilized",
    "state",
):
    import_module(f"assay.execution.rules.{_module}")  # each registers the functions of its kinds


@dataclass(frozen=True)
class Step:
    """An op of a layer, ready to run: its function, where its operands stand, where its result goes."""

    op: Op
    run: Run
    inputs: tuple[int, ...]
    output: int
    last: tuple[int, ...]  # what nobody needs behind it


@dataclass(frozen=True)
class Layer:
    """One layer of a segment, or the segment that occurs once."""

    segment: Segment
    block: Block
    layer: int | None
    steps: tuple[Step, ...]
    slots: int
    reads: tuple[tuple[str, tuple[str, ...], int], ...]  # values from before: name, axes, where they go
    gives: tuple[tuple[str, int], ...]  # values for later
    result: int | None  # where what the last op made is, of those that read anything
    weights: Weights
    root: Tree
    drops: tuple[str, ...] = ()  # values from before that nobody reads behind it

    def stored(self, weight: str) -> Tensor:
        """What is stored of a weight by its name in the block, all of it where several lie in one tensor."""
        return self.weights.stored(self.root, weight, self.layer)()

    def tensors(self, weight: str) -> list[Tensor]:
        """The same, each tensor that holds some of it."""
        return [self.root.getter(name)() for name in self.weights.names(weight, self.layer)]

    def where(self) -> str:
        """As an error names it."""
        return self.segment.name if self.layer is None else f"{self.segment.name} {self.layer}"


class Cache:
    """What passes leave for later ones: keys and values, states; and how many tokens they were made of."""

    def __init__(self) -> None:
        self.tokens = 0
        self.source = 0
        self.texts: int | None = None
        self.state: dict[Hashable, Any] = {}

    def storages(self) -> Iterator[Tensor]:
        """Every tensor kept."""
        for kept in self.state.values():
            yield from (kept if isinstance(kept, tuple) else (kept,))

    def bytes(self) -> int:
        """Bytes of all tensors kept."""
        return sum(t.numel() * t.element_size() for t in self.storages() if isinstance(t, Tensor))


class Executable(Tree):
    """A model that runs. Its parameters have the names of the public implementation.

    Token ids are `[b n]`, a source `[b m]`, or `[b m j]` where it is frames of sound; images are `pixels`, as
    `[b i rows columns]` or cut into patches as the notation has them. What comes out is the last op's result, logits
    `[b t V]` of a model with a head. A model of text beside towers runs the text, or one of its towers.
    """

    def __init__(self, model: Model, dtype: torch.dtype, device: torch.device, fused: bool = False) -> None:
        super().__init__()
        self.description = model
        self._runs = model = fuse(model) if fused else model
        allocate(self, model, dtype, device)
        encoders, rest = halves(model)
        self.paired = bool(encoders)
        needed = carried(model.segments)
        self.source_plan = handed_on(self._layers(encoders, needed), {"x"})  # which the decoder reads as memory
        self.towers = self._towers(model, needed)
        beside = {id(s) for tower in self.towers.values() for s in tower.segments} | _comparing(model)
        self.plan = handed_on(self._layers([s for s in rest if id(s) not in beside], needed))
        self._each: list[Layer] | None = None
        self._checked: set[Hashable] = set()

    def forward(
        self,
        tokens: Tensor | None = None,
        source: Tensor | None = None,
        *,
        cache: Cache | None = None,
        mask: Tensor | None = None,
        source_mask: Tensor | None = None,
        bias: Tensor | None = None,
        positions: Tensor | None = None,
        logits: str = "all",
        **given: Tensor,
    ) -> Tensor:
        """Run a pass over `tokens` `[b n]`, behind those that `cache` has seen.

        `source` is an encoder-decoder's source, `[b m]`: needed in the first pass, and held in the cache for the later.
        `mask` `[b, past + n]` and `source_mask` `[b m]`, as many as the encoder has positions, are true where a token
        is one and not padding. `bias`, added to the scores of self-attention, spans batch, heads, tokens and keys, or
        broadcasts to them; a mask of these four axes is true where a query may see a key. `positions` are those of
        the tokens where they do not follow each other from `past` on: `[n]`, `[b n]`, or `[3 b n]` in time, height
        and width. `logits` is all or last. `given` are further inputs by the names that the notation has for them,
        such as `type`. What is given as `pixels` or `frames` is what a tower sees or hears: where no tokens are given
        the result is the tower's, else that stands in the places of the tokens that are an image's.
        Raises BuildError for a shape that is not the description's, and for what nothing reads.
        """
        if tokens is None or not self.plan:
            return self._sense(tokens, given)[1]
        given, seen = self._placed(tokens, given)
        past = 0 if cache is None else cache.tokens
        if tokens.dim() != 2:
            admit.ids("tokens", tokens)
        if mask is not None and mask.dim() == len(admit.AXES):
            mask, bias = None, admit.hidden(mask, bias, next(self.parameters()).dtype)
        batch, n = tokens.shape
        values: dict[str, Tensor] = {}
        state = None if cache is None else cache.state
        m = 0
        if self.paired:
            if source is None and not past:
                raise BuildError(f"{self.description.name} reads a source: give it beside the tokens")
            m = source.shape[1] if source is not None and not past else 0
        asked = self._asked(batch, n, past, (cache.source if past and cache else m) or None, logits)
        known = asked
        if given or not (mask is bias is positions is source is source_mask):
            known = (*asked, admit.held((mask, bias, positions, source, source_mask)), tuple(given))
        check = known not in self._checked or (cache is not None and cache.texts not in (None, batch))
        if check:
            admit.all_of(self, tokens, source, cache, mask, source_mask, bias, positions, given)
        if self.paired:
            if m and source is not None:
                count = int(encoded(m, (self.description.source_stride, self.description.source_extra)))
                read = {**given, "ids": source, "frames": source}
                call = Call(count, 0, "all", source_mask, source_mask, None, read, None, tokens.device, batch=batch)
                self._through(self.source_plan, call, values, asked if check else None)
                values[MEMORY] = values.pop("x")
            else:
                values[MEMORY] = self._empty_memory(batch, tokens.device)
        inputs = {**given, "ids": tokens}
        call = Call(
            n, past, logits, mask, source_mask, bias, inputs, state, tokens.device, positions, batch=batch, seen=seen
        )
        plan = self.plan if positions is None or positions.dim() < 2 else self.each()
        result = self._through(plan, call, values, asked if check else None)
        if check:
            self._checked.add(known)
        if cache is not None:
            cache.texts, cache.tokens = batch, past + n
            cache.source = cache.source or m
        return result

    def _placed(
        self, tokens: Tensor, given: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Tensor, Tensor] | None]:
        """What is given to the text, and what a tower makes of the rest with where in the text that stands."""
        if not given.keys() & self.towers.keys():
            return given, None
        name, made = self._sense(tokens, given)
        rest = {key: value for key, value in given.items() if key != name}
        return rest, (places(self.description, tokens, name, made), made)

    def _sense(self, tokens: Tensor | None, given: dict[str, Tensor]) -> tuple[str, Tensor]:
        """What a tower sees or hears, and what it makes of that."""
        name = next((name for name in self.towers if name in given), None)
        if name is None:
            known = " or ".join(("tokens", *self.towers)) if self.towers.keys() != {"pixels"} or self.plan else "pixels"
            raise BuildError(f"{self.description.name} runs on {known}: give it by that name")
        if tokens is not None and (self.description.sight is None or self.description.sight.token is None):
            raise BuildError(f"{self.description.name} runs its text or its tower: give tokens or {name}, not both")
        tower = self.towers[name]
        if tower.refused is not None:
            raise BuildError(f"{self.description.name} is run without its tower: {tower.refused}")
        layers: list[Layer] = tower.layers
        given = {name: given[name]} if tokens is not None else given
        admit.named(given, layers, f"its {name}")
        seen = given[name]
        first = layers[0]
        axes = next(axes for read, axes, _ in first.reads if read == name)
        seen = cut(seen, axes, first.weights.sizes)
        batch = seen.shape[0]
        n = first.weights.sizes.get("n") or positions_of(first.segment, axes[1], seen.shape[1])
        asked = (batch, n, 0, None, "all", name)
        check = asked not in self._checked
        call = Call(n, 0, "all", given={**given, name: seen}, device=seen.device, batch=batch)
        result = self._through(layers, call, {}, asked if check else None)
        if check:
            self._checked.add(asked)
        return name, result

    def each(self) -> list[Layer]:
        """The plan where every text of a batch has positions of its own."""
        if self._each is None:
            needed = carried(self._runs.segments)
            changed = {id(s): per_text(s) for s in self._runs.segments}
            again = {id(new): self._layers([new], needed) for old, new in changed.items() if id(new) != old}
            rows = {id(s): iter(again.get(id(changed[id(s)]), ())) for s in self._runs.segments}
            self._each = handed_on([next(rows[id(layer.segment)], layer) for layer in self.plan])
        return self._each

    def cache(self) -> Cache:
        """An empty cache, to be given to every pass of one text."""
        return Cache()

    def generate(self, tokens: Tensor, new: int, source: Tensor | None = None, **options: Any) -> Tensor:
        """`tokens` `[b n]` and up to `new` more, with a cache; see `assay.execution.generate` for the options."""
        return generate(self, tokens, new, source, **options)

    def load(self, path: str | Path) -> tuple[str, ...]:
        """Take every weight from a safetensors file, or a checkpoint's folder, by the library's or the published names.

        The names of tensors that are there and not needed. Raises BuildError for one that is missing or does not fit.
        """
        return load_weights(self, path)

    def save(self, path: str | Path) -> None:
        """Write every weight to a safetensors file, by the library's names."""
        save_weights(self, path)

    def _asked(self, batch: int, n: int, past: int, source: int | None, logits: str) -> tuple[Any, ...]:
        return (batch, n, past, source, logits)

    def _sizes(self, asked: tuple[Any, ...]) -> Mapping[str, Any]:
        """Every axis of the setting."""
        batch, n, past, source, logits, *sensed = asked
        if sensed:
            return self.towers[sensed[0]].setting(self.description, batch, n).sizes()
        made: Setting = setting(self.description, batch=batch, tokens=n, past=past, source=source, logits=logits)
        return made.sizes()

    def _empty_memory(self, batch: int, device: torch.device) -> Tensor:
        """No source positions: what the encoder left was turned into keys and values in the first pass."""
        width = next(
            layer.block.sizes[axes[-1]] for layer in self.plan for name, axes, _ in layer.reads if name == MEMORY
        )
        like = next(self.parameters())
        return torch.empty((batch, 0, int(width)), dtype=like.dtype, device=device)

    def _through(self, layers: list[Layer], call: Call, values: dict[str, Tensor], asked: Any) -> Tensor:
        """The result of the last op of some layers, each behind the other."""
        result: Any = None
        sizes = None if asked is None else self._sizes(asked)
        for layer in layers:
            slots: list[Any] = [None] * layer.slots
            for name, axes, slot in layer.reads:
                slots[slot] = values[name] if name in values else given(call, name, axes, layer)
            for name in layer.drops:
                values.pop(name, None)
            call.near.clear()
            if sizes is None:
                for step in layer.steps:
                    slots[step.output] = step.run(call, *[slots[i] for i in step.inputs])
                    for slot in step.last:
                        slots[slot] = None
            else:
                extent = bind(layer.block, placed(layer.segment, sizes)).sizes
                for step in layer.steps:
                    slots[step.output] = checked(layer, step, call, [slots[i] for i in step.inputs], extent)
                    for slot in step.last:
                        slots[slot] = None
            for name, slot in layer.gives:
                values[name] = slots[slot]
            if call.seen is not None and any(name == "ids" for name, _, _ in layer.reads):
                where, made = call.seen
                values["x"] = values["x"].masked_scatter(where[..., None], made.to(values["x"].dtype))
            result = result if layer.result is None else slots[layer.result]
        return result

    def _towers(self, model: Model, needed: frozenset[str]) -> dict[str, Tower]:
        """The towers by what they read, each ready to run or with the reason why it does not."""
        found = towers(model)
        for tower in found.values():
            try:
                tower.layers = handed_on(self._layers(tower.segments, needed))
            except BuildError as error:
                if len(tower.segments) == len(model.segments):  # nothing else is there to run
                    raise
                tower.refused, tower.why = str(error), error.why or str(error)
        return found

    def _layers(self, segments: Sequence[Segment], needed: frozenset[str]) -> list[Layer]:
        """The layers of some segments in the order in which they run, ready to. Raises BuildError."""
        if (why := unordered(segments)) is not None:
            raise BuildError(why)
        weights = {id(segment): Weights(segment, segment.block, _static(segment)) for segment in segments}
        return [self._layer(one, weights[id(one)], layer, turn, needed) for one, layer, turn in in_order(segments)]

    def _layer(self, segment: Segment, weights: Weights, layer: int | None, turn: int, needed: frozenset[str]) -> Layer:
        block = segment.block
        slots: dict[Hashable, int] = {}
        reads: list[tuple[str, tuple[str, ...], int]] = []
        rows: list[tuple[Op, Run, tuple[int, ...], int]] = []
        count = 0
        for index, op in enumerate(block.ops):
            for operand in op.activations:
                if operand.name not in slots and (operand.name, operand.axes) not in slots:
                    slots[operand.name, operand.axes] = count  # of positions there are several, along other axes
                    reads.append((operand.name, operand.axes, count))
                    count += 1
            inputs = tuple(slots.get(t.name, slots.get((t.name, t.axes), 0)) for t in op.activations)
            rule = RULES.get(op.kind)
            site = Site(self.description, self, weights, index, layer, turn)
            for operand in op.activations:
                maker = site.source_of(operand)
                if maker is not None and maker.axes != operand.axes:
                    raise site.refuse(f"{operand} is made along other axes, or in another order: {maker}")
            if rule is None:
                raise site.refuse(NOT_RUN.get(op.kind, f"the kind {kind_of(op).name} has no function in PyTorch yet"))
            rows.append((op, rule(site), inputs, count))
            slots[op.name] = count
            count += 1
        made = {op.name for op in block.ops}
        gives = tuple((name, slots[name]) for name in sorted(made & needed))
        result = max((output for op, _, _, output in rows if op.activations), default=None)
        kept = {slot for _, slot in gives} | ({result} if result is not None else set())
        used: set[int] = set(kept)
        steps: list[Step] = []
        for op, run, inputs, output in reversed(rows):
            last = tuple(slot for slot in dict.fromkeys((*inputs, output)) if slot not in used)
            used.update(inputs)
            steps.append(Step(op, run, inputs, output, last))
        return Layer(segment, block, layer, tuple(reversed(steps)), count, tuple(reads), gives, result, weights, self)


def handed_on(layers: list[Layer], ends: Iterable[str] = ()) -> list[Layer]:
    """The same layers, none of which has longer what a later one does not read."""
    wanted = set(ends)
    made: list[Layer] = []
    ended = False
    for layer in reversed(layers):
        own, read = {name for name, _ in layer.gives}, {name for name, _, _ in layer.reads}
        gives = tuple(one for one in layer.gives if one[0] in wanted or not made)
        drops = tuple(sorted(name for name in read if name in own or name not in wanted))
        made.append(replace(layer, gives=gives, drops=drops, result=None if ended else layer.result))
        ended = ended or layer.result is not None
        wanted = (wanted - own) | read
    return made[::-1]


def _comparing(model: Model) -> set[int]:
    """Segments that compare what towers and text leave: outputs of several passes."""
    return {id(s) for s in model.segments if model.sight is not None and s.axes.get("z") == "images"}


def _static(segment: Segment) -> dict[str, int]:
    """The axes that no setting changes."""
    sizes = {**segment.block.sizes, **{a: s for a, s in segment.axes.items() if isinstance(s, int)}}
    return {axis: int(size) for axis, size in sizes.items()}
