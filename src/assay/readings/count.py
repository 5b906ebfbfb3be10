"""Parameters, FLOPs, cache and weight bytes: one fold over the ops of each distinct layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import SettingError
from assay.kinds import Extent, Visible
from assay.readings.binding import as_model, bind, identity, placed
from assay.readings.conventions import Convention
from assay.readings.conventions import convention as convention_of
from assay.readings.dtypes import bytes_of
from assay.readings.plans import Known, Line, Plan, plan_of
from assay.readings.printed import listed, said
from assay.readings.setting import Setting, setting
from assay.records import dataclass, field
from assay.size import Size, per
from assay.spec import Block, Model, Op, Segment

Parts = Mapping[str, Size]


def _both(a: Size | None, b: Size | None) -> Size | None:
    """The sum of two figures, unknown where one is."""
    return None if a is None or b is None else a + b


def add_parts(a: Parts, b: Parts) -> dict[str, Size]:
    """Two tables by part, summed."""
    made = dict(a)
    for part, size in b.items():
        made[part] = made[part] + size if part in made else size
    return made


@dataclass(frozen=True)
class Parameters:
    """Unique parameters. `active` leaves out the routed experts that a token does not pass.

    `embedding` holds tables and their projections, a tied head's too; `head` is an untied head's matrix.
    `buffers` are elements that checkpoints store and that are no parameters. `frozen` are those that training leaves
    as they are.
    """

    total: Size = 0
    active: Size = 0
    buffers: Size = 0
    head: Size = 0
    by_part: Parts = field(default_factory=dict)
    frozen: Size = 0

    @property
    def trained(self) -> Size:
        """Those that training changes."""
        return self.total - self.frozen

    @property
    def embedding(self) -> Size:
        """Input tables, positions, and their projections."""
        return self.by_part.get("embedding", 0)

    @property
    def non_embedding(self) -> Size:
        """The total without the embedding and without an untied head's matrix."""
        rest = sum((size for part, size in self.by_part.items() if part not in ("embedding", "head")), start=0)
        return rest + (self.by_part.get("head", 0) - self.head)

    def __add__(self, other: Parameters) -> Parameters:
        return Parameters(
            self.total + other.total,
            self.active + other.active,
            self.buffers + other.buffers,
            self.head + other.head,
            add_parts(self.by_part, other.by_part),
            self.frozen + other.frozen,
        )

    def times(self, n: int) -> Parameters:
        """n such layers."""
        by_part = {p: n * s for p, s in self.by_part.items()}
        return Parameters(n * self.total, n * self.active, n * self.buffers, n * self.head, by_part, n * self.frozen)


@dataclass(frozen=True)
class Flops:
    """FLOPs of a pass under a convention; `visible_total` counts only pairs that the mask lets through."""

    total: Size = 0
    visible_total: Size = 0
    attention_scores: Size = 0
    by_part: Parts = field(default_factory=dict)

    def __add__(self, other: Flops) -> Flops:
        return Flops(
            self.total + other.total,
            self.visible_total + other.visible_total,
            self.attention_scores + other.attention_scores,
            add_parts(self.by_part, other.by_part),
        )

    def times(self, n: int) -> Flops:
        """n such layers."""
        return Flops(
            n * self.total,
            n * self.visible_total,
            n * self.attention_scores,
            {p: n * s for p, s in self.by_part.items()},
        )


@dataclass(frozen=True)
class Cache:
    """Bytes that a step at this context reads of earlier passes: `fixed_bytes` of them whatever the context.

    `marginal_bytes_per_token` is what one more token of one sequence adds.
    """

    bytes: Size = 0
    marginal_bytes_per_token: Size = 0
    fixed_bytes: Size = 0

    def __add__(self, other: Cache) -> Cache:
        return Cache(
            self.bytes + other.bytes,
            self.marginal_bytes_per_token + other.marginal_bytes_per_token,
            self.fixed_bytes + other.fixed_bytes,
        )

    def times(self, n: int) -> Cache:
        """n such layers."""
        return Cache(n * self.bytes, n * self.marginal_bytes_per_token, n * self.fixed_bytes)


@dataclass(frozen=True)
class Row:
    """What one distinct block adds, all its layers together."""

    name: str
    layers: tuple[int, ...]
    parameters: Parameters
    flops: Flops
    cache: Cache


@dataclass(frozen=True)
class Count:
    """The figures of a model or block; counts add.

    `setting` is what was asked for; of a sum, what the first was asked for.
    """

    parameters: Parameters = Parameters()
    flops: Flops = Flops()
    cache: Cache = Cache()
    weight_bytes: Size | None = 0  # None where the weights are stored in a format that is not known
    setting: Setting = Setting()
    rows: tuple[Row, ...] = field(default=(), repr=False)
    mixed: bool = False  # a sum over several settings, whose tokens are not one number

    @property
    def flops_per_token(self) -> Any:
        """FLOPs over batch x tokens: an int where that divides.

        Raises SettingError for a sum over several settings: it has no one number of tokens.
        """
        if self.mixed:
            raise SettingError("counts of several settings were added; their FLOPs have no one number of tokens")
        return per(self.flops.total, self.setting.batch * self.setting.tokens)

    def __str__(self) -> str:
        asked, held = self.setting, self.weight_bytes
        setting = said(batch=asked.batch, tokens=asked.tokens, past=asked.past)
        rows = (
            ("parameters", self.parameters.total, ""),
            ("FLOPs", self.flops.total, asked.convention),
            ("weight bytes", "unknown" if held is None else held, "" if asked.quantized else asked.weights),
            ("cache bytes", self.cache.bytes, asked.cache),
        )
        return listed("a sum over several settings" if self.mixed else setting, rows)

    def __add__(self, other: Count) -> Count:
        alike = not self.rows or not other.rows or self.setting.does_as(other.setting)
        return Count(
            self.parameters + other.parameters,
            self.flops + other.flops,
            self.cache + other.cache,
            _both(self.weight_bytes, other.weight_bytes),
            self.setting if self.rows else other.setting,  # what has no rows is the start of a sum
            self.rows + other.rows,
            self.mixed or other.mixed or not alike,
        )


def count(
    model: Model | Block,
    batch: object = 1,
    tokens: object = None,
    past: object = None,
    *,
    context: object = None,
    logits: str = "all",
    convention: str = "matmul",
    weights: str | None = None,
    cache: str | None = None,
    state: str = "fp32",
    source: object = None,
    images: object = None,
    image_tokens: object = None,
    sounds: object = None,
    latent: str = "expanded",
    **sizes: object,
) -> Count:
    """Count a model, or a block with `sizes` for the axes that it leaves open.

    `batch`, `tokens` and `past` are each an int, a NumPy array or a SymPy symbol; `context` is past + tokens.
    `source` is the number of source tokens of an encoder-decoder, `images` the number of images (or sounds) in a
    sequence, `image_tokens` how many tokens each makes if images may have any size, `sounds` the number of sounds if a
    model has towers of both. `logits` is all or last; `latent`, how latent attention runs, is expanded or absorbed;
    `convention` says what counts as a FLOP. `weights`, `cache` and `state` are dtypes; without `weights`, weights are
    in the model's own format. Raises SettingError and SizeError.
    """
    whole = as_model(model, sizes, count)
    asked = setting(
        whole,
        batch=batch,
        tokens=tokens,
        past=past,
        context=context,
        logits=logits,
        convention=convention,
        weights=weights,
        cache=cache,
        state=state,
        source=source,
        images=images,
        image_tokens=image_tokens,
        sounds=sounds,
        latent=latent,
    )
    return count_setting(whole, asked)


def count_setting(model: Model, asked: Setting) -> Count:
    """The figures of a model in a checked setting."""
    prices = convention_of(asked.convention)
    seen: set[str] = set()  # what an earlier block holds: a tied head, shared layers
    sizes = asked.sizes()
    memory: dict[Plan, Known] = {}
    rows = tuple(count_segment(segment, asked, sizes, prices, seen, memory) for segment in model.segments)
    weights = sum((row.parameters for row in rows), start=Parameters())
    return Count(
        weights,
        sum((row.flops for row in rows), start=Flops()),
        sum((row.cache for row in rows), start=Cache()),
        weight_bytes(model, weights, asked),
        asked,
        rows,
    )


def weight_bytes(model: Model, weights: Parameters, asked: Setting) -> Size | None:
    """Bytes of all that a checkpoint stores: in the model's own formats, or every element in the dtype asked for.

    Raises SettingError where the model's own file holds another number of elements than its architecture has.
    """
    held = None if model.scheme is None else model.scheme.elements
    if held not in (None, weights.total + weights.buffers):
        raise SettingError(
            f"{model.source}: its tensors hold {held:,} elements, and the architecture that its metadata name has "
            f"{weights.total + weights.buffers:,}"
        )
    if not asked.quantized:
        return bytes_of(weights.total + weights.buffers, asked.weights)
    from assay.readings.weights import stored_bytes

    return stored_bytes(model, asked.weights)


def count_segment(
    segment: Segment,
    asked: Setting,
    sizes: Mapping[str, Size],
    prices: Convention,
    seen: set[str],
    memory: dict[Plan, Known],
) -> Row:
    """One distinct block, times its layers. `memory` holds what blocks before it came to."""
    block = segment.absorbed if segment.absorbed is not None and asked.latent == "absorbed" else segment.block
    plan = plan_of(block.ops)
    extent = bind(block, placed(segment, sizes), plan)
    known = memory.setdefault(plan, Known()).turn(extent)
    return Row(
        segment.name,
        segment.layers,
        parameters(segment, block, plan, known.of("held", plan.weight_axes, lambda: _held(plan, extent)), seen),
        _flops(plan, extent, prices, Visible(extent.sizes).shared_with(extent), known).times(segment.times),
        known.of("cache", plan.state_axes, lambda: cache(block, extent, asked)).times(segment.times),
    )


def flops(block: Block, extent: Extent, prices: Convention, seen: Extent | None = None) -> Flops:
    """FLOPs of the block's ops, dense over `extent` and visible over `seen`, the same pass by default."""
    seen = Visible(extent.sizes).shared_with(extent) if seen is None else seen
    return _flops(plan_of(block.ops), extent, prices, seen, Known())


def _flops(plan: Plan, extent: Extent, prices: Convention, seen: Extent, known: Known) -> Flops:
    """The same; of another block of the same ops, only those that some changed size touches are looked at again."""
    lines = plan.contracting if prices.contractions_only else plan.lines
    figures: dict[Line, tuple[Size, Size]] = known.figures.setdefault("work", {})
    by_part: dict[str, Size] = {}
    scores: Size = 0
    lit: Size = 0  # what the mask lets through
    if known.news is not None:
        last: Flops = known.figures["flops"]
        by_part, scores, lit = {**last.by_part}, last.attention_scores, last.visible_total
        lines = [line for line in lines if not line.axes.isdisjoint(known.news)]
    for line in lines:
        now = spent, shown = _spent(line, extent, seen, prices)
        if known.news is not None:
            was, knew = figures[line]
            spent, shown = spent - was, shown - knew
        figures[line] = now
        lit = lit + shown
        by_part[line.part] = by_part.get(line.part, 0) + spent
        if line.scores:
            scores = scores + spent
    found = known.figures["flops"] = Flops(sum(by_part.values(), start=0), lit, scores, by_part)
    return found


def _spent(line: Line, extent: Extent, seen: Extent, prices: Convention) -> tuple[Size, Size]:
    """FLOPs of an op, and those that the mask lets through."""
    spent = prices.flops(line.work(line.op, extent))
    if not touches(line.op, extent):
        return spent, spent
    shown = prices.flops(line.work(line.op, seen))
    return (shown if prices.visible else spent), shown


def touches(op: Op, extent: Extent) -> bool:
    """True where the op's work spans an axis of keys."""
    keys = extent.keys.keys()
    return bool(keys) and not all(keys.isdisjoint(tensor.axes) for tensor in op.inputs)


def _held(plan: Plan, extent: Extent) -> list[tuple[Size, Size]]:
    """Elements of each weight, and those that one token passes."""
    made = []
    for op, weight, active, _, _ in plan.weights:
        elements = extent(weight.axes)
        made.append((elements, elements if active is None else active(op, extent, weight)))
    return made


def parameters(segment: Segment, block: Block, plan: Plan, held: list[tuple[Size, Size]], seen: set[str]) -> Parameters:
    """Weights that no earlier block holds, each once; those of a layer times its layers."""
    by_part: dict[str, Size] = {}
    active: Size = 0
    buffers: Size = 0
    head: Size = 0
    frozen: Size = 0
    layers = segment.copies
    here: set[str] = set()  # a path with {i} is another tensor in another segment's layers
    stored = block.stored
    for (_, weight, _, part, rows), (elements, passed) in zip(plan.weights, held, strict=True):
        where = stored.get(weight.name) or block.weight(weight.name)
        key = identity(weight.name, where)
        known, copies = (here, layers) if "{i}" in where.path else (seen, 1)
        if key in known:
            continue
        known.add(key)
        if where.buffer:
            buffers = buffers + copies * elements
            continue
        by_part[part] = by_part.get(part, 0) + copies * elements
        active = active + copies * passed
        if rows:
            head = head + copies * elements
        if where.frozen:
            frozen = frozen + copies * elements
    return Parameters(sum(by_part.values(), start=0), active, buffers, head, by_part, frozen)


def cache(block: Block, extent: Extent, asked: Setting) -> Cache:
    """State that the block's ops leave, and what one more token of one sequence adds."""
    total: Size = 0
    more: Size = 0
    lasting: Size = 0
    for op, kind, left in plan_of(block.ops).stateful:
        kept = asked.state if kind.kept == "state" else asked.cache
        held = bytes_of(left(op, extent), kept)
        total = total + held
        if kind.grows is None:
            lasting = lasting + held
        else:
            more = more + bytes_of(kind.grows(op, extent), kept)
    return Cache(total, more, lasting)
