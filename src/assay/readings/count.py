"""Parameters, FLOPs, cache and weight bytes: one fold over the ops of each distinct layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.errors import SettingError, SizeError
from assay.kinds import Extent, Visible, kind_of
from assay.readings.conventions import Convention, convention
from assay.readings.dtypes import bytes_of, dtype
from assay.size import Size, exact_div, lift, surely_above
from assay.spec import Block, Model, Op, Segment, Weight

Parts = Mapping[str, Size]

SCORES = "attention.scores"
DEFAULT_TOKENS = 2048


def add_parts(a: Parts, b: Parts) -> dict[str, Size]:
    """Two tables by part, summed."""
    return {part: a.get(part, 0) + b.get(part, 0) for part in dict.fromkeys([*a, *b])}


@dataclass(frozen=True, slots=True)
class Parameters:
    """Unique parameters. `active` leaves out the routed experts that a token does not pass.

    `embedding` holds tables and their projections, a tied head's too; `head` an untied head.
    `buffers` are elements that checkpoints store and that are no parameters.
    """

    total: Size = 0
    active: Size = 0
    buffers: Size = 0
    by_part: Parts = field(default_factory=dict)

    @property
    def embedding(self) -> Size:
        """Input tables, positions, and their projections."""
        return self.by_part.get("embedding", 0)

    @property
    def head(self) -> Size:
        """An untied head."""
        return self.by_part.get("head", 0)

    @property
    def non_embedding(self) -> Size:
        """The total without the embedding and without an untied head."""
        return self.total - self.embedding - self.head

    def __add__(self, other: Parameters) -> Parameters:
        return Parameters(
            self.total + other.total,
            self.active + other.active,
            self.buffers + other.buffers,
            add_parts(self.by_part, other.by_part),
        )

    def times(self, n: int) -> Parameters:
        """n such layers."""
        return Parameters(
            n * self.total, n * self.active, n * self.buffers, {p: n * s for p, s in self.by_part.items()}
        )


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Setting:
    """What a model is asked to do. Sizes may be ints, arrays or symbols."""

    batch: Size = 1
    tokens: Size = DEFAULT_TOKENS
    past: Size = 0
    logits: str = "all"
    convention: str = "matmul"
    weights: str = "bf16"
    cache: str = "bf16"
    state: str = "fp32"

    @property
    def context(self) -> Size:
        """Past and present tokens together."""
        return self.past + self.tokens

    def sizes(self) -> dict[str, Size]:
        """The axes that a setting binds."""
        return {
            "b": self.batch,
            "n": self.tokens,
            "past": self.past,
            "t": self.tokens if self.logits == "all" else 1,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """What one distinct block adds, all its layers together."""

    name: str
    layers: tuple[int, ...]
    parameters: Parameters
    flops: Flops
    cache: Cache


@dataclass(frozen=True, slots=True)
class Count:
    """The figures of a model or block; counts add."""

    parameters: Parameters = Parameters()
    flops: Flops = Flops()
    cache: Cache = Cache()
    weight_bytes: Size = 0
    setting: Setting = Setting()
    rows: tuple[Row, ...] = ()

    @property
    def flops_per_token(self) -> Any:
        """FLOPs over batch x tokens: an int where that divides."""
        tokens = self.setting.batch * self.setting.tokens
        try:
            return exact_div(self.flops.total, tokens)
        except SizeError:
            return self.flops.total / tokens

    def __add__(self, other: Count) -> Count:
        return Count(
            self.parameters + other.parameters,
            self.flops + other.flops,
            self.cache + other.cache,
            self.weight_bytes + other.weight_bytes,
            self.setting,
            self.rows + other.rows,
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
    **sizes: object,
) -> Count:
    """Count a model, or a block with `sizes` for axes that it leaves open.

    `batch`, `tokens` and `past` are each an int, a NumPy array or a SymPy symbol; `context` is past + tokens.
    Raises SettingError and SizeError.
    """
    whole = model if isinstance(model, Model) else as_model(model, sizes)
    if sizes and whole is model:
        raise SettingError(f"a model has no open sizes; {', '.join(sizes)} cannot be set")
    asked = setting(whole, batch, tokens, past, context, logits, convention, weights, cache, state)
    return count_setting(whole, asked)


def as_model(block: Block, sizes: Mapping[str, object]) -> Model:
    """A block alone, as a model of one segment."""
    if not isinstance(block, Block):
        raise SettingError(f"count takes a model or a block, not {type(block).__name__}; use assay.load first")
    lifted = {axis: lift(size, axis) for axis, size in sizes.items()}
    return Model(block.name, (Segment(block.name, block.resize(**lifted)),))


def setting(
    model: Model,
    batch: object = 1,
    tokens: object = None,
    past: object = None,
    context: object = None,
    logits: str = "all",
    convention_name: str = "matmul",
    weights: str | None = None,
    cache: str | None = None,
    state: str = "fp32",
) -> Setting:
    """The setting asked for, checked against the model. Raises SettingError and SizeError."""
    if past is not None and context is not None:
        raise SettingError("past and context cannot both be given: context is past + tokens")
    if tokens is None:
        tokens = DEFAULT_TOKENS if model.positions is None else min(DEFAULT_TOKENS, model.positions)
        if context is not None and type(context) is int:
            tokens = max(1, min(tokens, context))
    n = lift(tokens, "tokens")
    p = lift(past if past is not None else 0, "past", least=0)
    if context is not None:
        c = lift(context, "context")
        if surely_above(n, c):
            raise SettingError(f"context is {c}; it counts past and present, so at least the {n} tokens")
        p = c - n
    if model.positions is not None and surely_above(p + n, model.positions):
        raise SettingError(
            f"past + tokens is {p + n}; {model.name} has a learned position table of {model.positions} rows"
        )
    if logits not in ("all", "last"):
        raise SettingError(f"logits is {logits!r}; known: all, last")
    convention(convention_name)
    kept = dtype(weights or model.dtype or "bf16", "weights")
    return Setting(
        lift(batch, "batch"),
        n,
        p,
        logits,
        convention_name,
        kept,
        dtype(cache or (kept if kept in ("bf16", "fp16", "fp32") else "bf16"), "cache"),
        dtype(state, "state"),
    )


def count_setting(model: Model, asked: Setting) -> Count:
    """The figures of a model in a checked setting."""
    prices = convention(asked.convention)
    seen: set[str] = set()  # what an earlier block holds: a tied head, shared layers
    rows = tuple(count_segment(segment, asked, prices, seen) for segment in model.segments)
    weights = sum((row.parameters for row in rows), start=Parameters())
    return Count(
        weights,
        sum((row.flops for row in rows), start=Flops()),
        sum((row.cache for row in rows), start=Cache()),
        bytes_of(weights.total + weights.buffers, asked.weights),
        asked,
        rows,
    )


def count_segment(segment: Segment, asked: Setting, prices: Convention, seen: set[str]) -> Row:
    """One distinct block, times its layers."""
    extent = bind(segment.block, asked.sizes())
    return Row(
        segment.name,
        segment.layers,
        parameters(segment, extent, seen),
        flops(segment.block, extent, prices).times(segment.times),
        cache(segment.block, extent, asked).times(segment.times),
    )


def bind(block: Block, sizes: Mapping[str, Size]) -> Extent:
    """The extent of a block in a setting, with the axes that its ops make. Raises SizeError for an open axis."""
    extent = Extent({**sizes, **block.sizes})
    for op in block.ops:
        kind = kind_of(op)
        if kind.bind is not None:
            kind.bind(op, extent)
    return extent


def flops(block: Block, extent: Extent, prices: Convention) -> Flops:
    """FLOPs of the block's ops, dense and visible."""
    seen = Visible(extent.sizes).shared_with(extent)
    by_part: dict[str, Size] = {}
    scores: Size = 0
    hidden: Size = 0  # what the mask hides
    for op in block.ops:
        kind = kind_of(op)
        if prices.contractions_only and not kind.contracts:
            continue
        spent = prices.flops(kind.work(op, extent))
        if extent.keys and touches(op, extent):
            visible = prices.flops(kind.work(op, seen))
            if prices.visible:
                spent = visible
            else:
                hidden = hidden + spent - visible
        part, _, sub = op.part.partition(".")
        by_part[part] = by_part.get(part, 0) + spent
        if sub == "scores":
            scores = scores + spent
    total = sum(by_part.values(), start=0)
    return Flops(total, total - hidden, scores, by_part)


def touches(op: Op, extent: Extent) -> bool:
    """True where the op's work spans an axis of keys."""
    return any(axis in extent.keys for tensor in op.inputs for axis in tensor.axes)


def parameters(segment: Segment, extent: Extent, seen: set[str]) -> Parameters:
    """Weights that no earlier block holds, each once; those of a layer times its layers."""
    by_part: dict[str, Size] = {}
    active: Size = 0
    buffers: Size = 0
    block = segment.block
    here: set[str] = set()  # a path with {i} is another tensor in another segment's layers
    for op in block.ops:
        for weight in op.weights:
            where = block.weight(weight.name)
            key = identity(weight.name, where)
            held = here if "{i}" in where.path else seen
            if key in held:
                continue
            held.add(key)
            elements = extent(weight.axes)
            if "{i}" in where.path:
                elements = segment.times * elements
            if where.buffer:
                buffers = buffers + elements
                continue
            part = op.part.partition(".")[0]
            by_part[part] = by_part.get(part, 0) + elements
            passed = kind_of(op).active
            active = active + (elements if passed is None else passed(op, extent, elements))
    return Parameters(sum(by_part.values(), start=0), active, buffers, by_part)


def identity(name: str, where: Weight) -> str:
    """What makes two weights one tensor: their path, and their place in it where several lie behind each other."""
    return f"{where.path}:{name}" if where.layout and "+" in where.layout else where.path


def cache(block: Block, extent: Extent, asked: Setting) -> Cache:
    """State that the block's ops leave, and what one more token of one sequence adds."""
    held: Size = 0
    more: Size = 0
    longer: Extent | None = None
    for op in block.ops:
        kind = kind_of(op)
        if kind.state is None:
            continue
        if longer is None:
            one = {**asked.sizes(), "b": 1}
            longer = bind(block, {**one, "past": asked.past + 1})
            now = bind(block, one)
        held = held + kind.state(op, extent)
        more = more + kind.state(op, longer) - kind.state(op, now)
    return Cache(bytes_of(held, asked.cache), bytes_of(more, asked.cache), 0)
