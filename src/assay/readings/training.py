"""A training step: FLOPs forward and backward, and what autograd keeps between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.errors import SettingError, among
from assay.kinds import Visible, kind_of
from assay.kinds.training import INPUT, MADE, WEIGHT, Passing, Tape, Value, backward, passes, remade, rule_of
from assay.kinds.training.values import INDEX
from assay.readings.binding import as_model
from assay.readings.conventions import convention as convention_of
from assay.readings.count import add_parts
from assay.readings.order import MEMORY, halves, in_order, unordered
from assay.readings.passing import Forward, Ran
from assay.readings.precision import Precision
from assay.readings.precision import precision as precision_of
from assay.readings.printed import listed, said
from assay.readings.setting import Setting, setting
from assay.records import dataclass, field
from assay.rewrites.fuse import fuse
from assay.size import Size
from assay.spec import Block, Model, Op, Segment, carried

Parts = Mapping[str, Size]
ATTENTION = ("plain", "fused")  # op by op, or in one kernel wherever one can run it
CONVENTIONS = ("matmul", "causal")  # what a backward pass is known in: products alone


@dataclass(frozen=True)
class TrainedOp:
    """An op in one layer: FLOPs forward and backward, and bytes that autograd keeps from it on, None if not known.

    `passing` bytes are those that it drops again before the pass ends, `inputs` those of the model's inputs; `remade`
    are those FLOPs of `backward` that a kernel spends on what forward made and nobody kept.
    """

    segment: Segment
    layer: int | None
    op: Op
    forward: Size
    backward: Size
    saved: Size | None
    passing: Size = 0
    inputs: Size = 0
    remade: Size = 0

    @property
    def kept(self) -> Size | None:
        """All bytes that autograd keeps from this op on, for however long."""
        return None if self.saved is None else self.saved + self.passing + self.inputs


@dataclass(frozen=True)
class TrainingRow:
    """One distinct block, all its layers together."""

    name: str
    layers: tuple[int, ...]
    forward: Size
    backward: Size
    saved: Size | None


@dataclass(frozen=True)
class Training:
    """A training step of a model in a setting.

    `forward` and `backward` are FLOPs, `saved` the bytes of activations that autograd keeps between the two, each
    storage once; None where `unknown` names kinds of which nobody knows it. Weights, which are there anyway, are not
    in it, nor are `inputs`, the bytes of token ids that are kept.
    """

    forward: Size
    backward: Size
    saved: Size | None
    inputs: Size
    forward_by_part: Parts
    backward_by_part: Parts
    saved_by_part: Parts
    setting: Setting
    rows: tuple[TrainingRow, ...] = field(default=(), repr=False)
    unknown: tuple[str, ...] = ()

    @property
    def flops(self) -> Size:
        """Forward and backward."""
        return self.forward + self.backward

    def __str__(self) -> str:
        kept = ("unknown", f"of {', '.join(self.unknown)}") if self.saved is None else (self.saved, "for backward")
        rows = (
            ("forward FLOPs", self.forward, self.setting.convention),
            ("backward FLOPs", self.backward, ""),
            ("saved bytes", *kept),
        )
        return listed(said(batch=self.setting.batch, tokens=self.setting.tokens), rows)


def training(
    model: Model | Block,
    batch: object = 1,
    tokens: object = None,
    *,
    logits: str = "all",
    convention: str = "matmul",
    precision: str | Precision = "fp32",
    attention: str = "plain",
    source: object = None,
    images: object = None,
    image_tokens: object = None,
    sounds: object = None,
    **sizes: object,
) -> Training:
    """A training step: forward, and backward to every parameter.

    `batch` and `tokens` are each an int, an array or a symbol, as in `count`. What autograd keeps is exact for the
    eager execution of `assay.build` on a CPU, in the `precision` asked for and with `attention` plain or fused; a
    symbol stands for a size above 1. Raises SettingError and SizeError.
    """
    whole = as_model(model, sizes, training)
    if convention not in CONVENTIONS:
        raise SettingError(f"convention is {convention!r}; a backward pass is known in {' and '.join(CONVENTIONS)}")
    policy = precision_of(precision)
    among(attention, "attention", ATTENTION)
    if attention == "fused":
        whole = fuse(whole)
    asked = setting(
        whole,
        batch=batch,
        tokens=tokens,
        logits=logits,
        convention=convention,
        weights=policy.parameters,
        source=source,
        images=images,
        image_tokens=image_tokens,
        sounds=sounds,
    )
    return trained(whole, asked, [op for _, ops in trace(whole, asked, policy=policy) for op in ops])


def trained(model: Model, asked: Setting, every: Sequence[TrainedOp]) -> Training:
    """The figures of a training step from those of its ops."""
    rows: dict[tuple[str, tuple[int, ...]], list[TrainedOp]] = {(s.name, s.layers): [] for s in model.segments}
    for op in every:
        rows[op.segment.name, op.segment.layers].append(op)
    return Training(
        _sum(op.forward for op in every),
        _sum(op.backward for op in every),
        _known(op.saved for op in every),
        _sum(op.inputs for op in every),
        _parts((op.op.part, op.forward) for op in every),
        _parts((op.op.part, op.backward) for op in every),
        _parts((op.op.part, op.saved) for op in every if op.saved is not None),
        asked,
        tuple(
            TrainingRow(
                name,
                layers,
                _sum(op.forward for op in ops),
                _sum(op.backward for op in ops),
                _known(op.saved for op in ops),
            )
            for (name, layers), ops in rows.items()
        ),
        tuple(dict.fromkeys(op.op.kind for op in every if op.saved is None)),
    )


def _sum(sizes: Any) -> Size:
    return sum(sizes, start=0)


def _known(sizes: Any) -> Size | None:
    found = list(sizes)
    return None if any(size is None for size in found) else _sum(found)


def _parts(pairs: Any) -> Parts:
    made: dict[str, Size] = {}
    for part, size in pairs:
        made = add_parts(made, {part.partition(".")[0]: size})
    return made


def trace(
    model: Model, asked: Setting, whole: Model | None = None, policy: Precision | None = None, stored: bool = True
) -> Iterator[tuple[Segment, list[TrainedOp]]]:
    """Every layer in the order in which they run, with its ops; of a part, what the `whole` model needs of it.

    Where nothing `stored` is asked for, only FLOPs are told. Raises SettingError and SizeError.
    """
    if stored and (why := unordered(model.segments)) is not None:
        raise SettingError(f"what a step of {model.name} keeps is not known: {why}")
    run = (Traced if stored else Priced)(asked, carried((whole or model).segments), policy or precision_of("fp32"))
    encoders, rest = halves(model)
    if encoders:
        for segment, layer, _ in in_order(encoders):
            run.layer(segment, layer)
        run.turn()
    for segment, layer, _ in in_order(rest):
        run.layer(segment, layer)
    if whole is None:
        run.sees(model.name)
    yield from run.finish()


class Traced(Forward):
    """A pass forward over a model, each op by the rule of its kind; and which ops a gradient comes back to."""

    def __init__(self, asked: Setting, needed: frozenset[str], policy: Precision, device: str = "cpu") -> None:
        super().__init__(asked, needed, Tape(policy.parameters, policy.compute if policy.autocast else None, device))
        self.prices = convention_of(asked.convention)
        self.encoders = 0

    def turn(self) -> None:
        """From here on another pass, over what the layers so far left."""
        self.encoders = len(self.layers)
        super().turn()

    def finish(self) -> Iterator[tuple[Segment, list[TrainedOp]]]:
        """Every layer's ops, with the backward pass of those that the last result depends on."""
        reached = self._reached(set())
        last = self.layers[-1].segment.block.ops if self.layers else ()  # what earlier layers left is let go of
        saved = self._saved(self._reached({op.name for op in last} & self.needed), reached)
        for place, row in enumerate(self.layers):
            yield row.segment, [self._op(row, place, index, reached, saved) for index in range(len(row.needs))]

    def _saved(
        self, left: set[tuple[int, int]], reached: set[tuple[int, int]]
    ) -> dict[tuple[int, int], dict[str, Size]]:
        """Bytes of storages by the op that first keeps them: those that stay, those that pass, those of inputs.

        What only ops keep of whose results nothing is left in the end is gone with these.
        """
        saved: dict[Any, dict[str, Size]] = {}
        for store in self.tape.kept:
            shared = store.shared and any(now in reached for now, _ in store.keepers)
            stays = shared or any(not passing and now in left for now, passing in store.keepers)
            sort = INPUT if store.origin == INPUT else MADE if stays else "passing"
            if store.origin != WEIGHT:
                own = saved.setdefault(store.keepers[0][0], {})
                own[sort] = own.get(sort, 0) + store.bytes
        return saved

    def _op(self, row: Ran, place: int, index: int, reached: set[tuple[int, int]], saved: Any) -> TrainedOp:
        op = row.segment.block.ops[index]
        extent = Visible(row.extent.sizes).shared_with(row.extent) if self.prices.visible else row.extent
        kept = saved.get((place, index), {})
        told = (op, extent, row.needs[index])
        work, again = (backward(*told), remade(*told)) if (place, index) in reached else ({}, {})
        return TrainedOp(
            row.segment,
            row.layer,
            op,
            self.prices.flops(kind_of(op).work(op, extent)),
            self.prices.flops(work),
            kept.get(MADE, 0) if row.idle or rule_of(op, self.tape.dtype) is not None else None,
            kept.get("passing", 0),
            kept.get(INPUT, 0),
            self.prices.flops(again),
        )

    def sees(self, name: str, reached: set[tuple[int, int]] | None = None) -> None:
        """Raise SettingError where a tower makes what no text is described to read, or a text reads what none makes.

        One vector of an image, of all its positions together, may be made in vain.
        """
        towers = [layer.tower for layer in self.layers if layer.senses]
        if not towers:
            return
        found = self._reached(set()) if reached is None else reached
        given = {key for key, value in self.values.items() if value.store.origin == INPUT and value.dtype != INDEX}
        for place, layer in enumerate(self.layers):
            block = layer.segment.block
            last = block.ops[-1]
            unread = layer.senses and layer.layer is None and (place, len(block.ops) - 1) not in found
            lost = unread and kind_of(last).contracts and len(last.axes) > 2
            reads = {t.name for op in block.ops for t in op.activations}
            if lost or (layer.tower is None and reads & given):
                axis = layer.tower or str(towers[0])
                raise SettingError(
                    f"{axis} is {getattr(self.asked, axis)}; how the text of {name} reads what its tower makes is not "
                    f"described, nor so what a step keeps of {axis}"
                )

    def _reached(self, wanted: set[str]) -> set[tuple[int, int]]:
        """Ops that the last result depends on through gradients, or what has these names in the end."""
        found: set[tuple[int, int]] = set()
        end = self._end()
        last = self.layers[end[0]].segment.block.ops[end[1]] if self.layers else None
        losses = last if last is not None and not last.axes else None  # each of several that are added up
        for place in range(len(self.layers) - 1, -1, -1):
            if place == self.encoders - 1:
                wanted = (wanted - {MEMORY, "x"}) | ({"x"} if MEMORY in wanted else set())
            ops = self.layers[place].segment.block.ops
            left = self._last(place) if self._sensed(place) else None
            for index in range(len(ops) - 1, -1, -1):
                op = ops[index]
                if (place, index) == end or index == left or op is losses or op.name in wanted:
                    wanted.discard(op.name)
                    found.add((place, index))
                    if passes(op):
                        wanted |= {t.name for t in op.activations}
        return found

    def _sensed(self, place: int) -> bool:
        """True for the last layer of a tower at work: what it makes stands in the places of a text's tokens."""
        row, following = self.layers[place], self.layers[place + 1 : place + 2]
        return row.senses and any(self._begins(one.segment.block) for one in following)

    @staticmethod
    def _begins(block: Block) -> bool:
        """True where a block takes nothing from the layer before: it makes the stream anew."""
        first = next((op for op in block.ops if op.name == "x" or "x" in {t.name for t in op.activations}), None)
        return first is not None and "x" not in {t.name for t in first.activations}

    def _end(self) -> tuple[int, int]:
        """The op whose result is the model's: the last that reads anything."""
        for place in range(len(self.layers) - 1, -1, -1):
            last = self._last(place)
            if last is not None:
                return place, last
        return -1, -1

    def _last(self, place: int) -> int | None:
        """The last op of a layer that reads anything."""
        ops = self.layers[place].segment.block.ops
        return next((index for index in range(len(ops) - 1, -1, -1) if ops[index].activations), None)


class Priced(Traced):
    """The same where only FLOPs are asked for: which kinds keep what need not be known."""

    def run(self, at: Passing, _: list[Value], grad: bool) -> Value:
        """What an op makes, of which nothing is kept."""
        return self.tape.new(at.op.axes, grad)
