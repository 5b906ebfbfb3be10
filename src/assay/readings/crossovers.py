"""Where one cost of a model comes to equal another as the context grows: found in integers, solved in letters.

What is compared is measured on the model's own ops, over all of its layers; authors who say where "attention
overtakes the MLP" differ by which ops they mean, so each comparison says what stands on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assay.errors import SettingError
from assay.kinds import Extent, Visible, kind_of, matrix_axes
from assay.readings.binding import as_model, bind, parted, placed
from assay.readings.conventions import Convention
from assay.readings.conventions import convention as convention_of
from assay.readings.count import touches
from assay.readings.dtypes import bytes_of
from assay.readings.letters import Bound, Letter, Tie, algebra, bound, symbols_of
from assay.readings.ops import average_bytes, own_weights, weighed
from assay.readings.roots import first, lasting, reduced, roots_of, strictest, within_chunks
from assay.readings.setting import Setting, setting
from assay.readings.symbolic import Named, Symbols, running
from assay.readings.tensors import tensors
from assay.readings.weights import stored_bytes
from assay.records import dataclass, replace
from assay.size import Size, is_integer
from assay.spec import Block, Model, Op, Segment, Tensor, check_model

MLP = ("mlp", "experts", "router")

# what is measured: over all layers, in one pass
AMOUNTS = {
    "attention": "FLOPs of attention, its projections and scores",
    "scores": "FLOPs of scores: QKᵀ and AV",
    "mlp": "FLOPs of the MLP, experts and routers",
    "layers' weights": "FLOPs of all products with weights in the layers",
    "all weights": "FLOPs of all products with weights, the head's too",
    "score matrix": "elements of the scores, written out for each head",
    "hidden": "elements that the MLP's last matrix reads",
    "cache": "bytes of the cache",
    "weights": "bytes of all weights",
    "weights read": "bytes of weights that the step reads",
}


@dataclass(frozen=True)
class Comparison:
    """Two amounts that one pass is measured by: `left` grows faster."""

    name: str
    says: str
    left: str
    right: str
    ways: tuple[str, ...] = ("prefill", "decode")


COMPARISONS = (
    Comparison("attention-mlp", "attention with its projections = MLP", "attention", "mlp"),
    Comparison("scores-mlp", "scores (QKᵀ, AV) alone = MLP", "scores", "mlp"),
    Comparison("scores-layers", "scores = all weights of the layers", "scores", "layers' weights"),
    Comparison("scores-weights", "scores = all weights, head included", "scores", "all weights"),
    Comparison("matrix-hidden", "scores written out = hidden of the MLP", "score matrix", "hidden", ("prefill",)),
    Comparison("cache-weights", "cache = weights, in bytes held", "cache", "weights", ("decode",)),
    Comparison("cache-read", "cache = weights, in bytes read", "cache", "weights read", ("decode",)),
)


@dataclass(frozen=True)
class Crossover:
    """Where the left side of a comparison reaches the right one.

    `at` is the smallest number of tokens (of a prefill, or the context of a decode step) at which it does, None if it
    never does. `lasting` is the smallest from which on it stays so, more than `at` if the keys at hand drop with each
    new chunk. `exact` is where the two are equal, a SymPy number; `formula` is the same in letters, and `equation` the
    expression that is 0 there. All three are None without SymPy, or if a bound that moves with the length makes the
    sides no sums. `bounds` are those within which the formula holds.
    """

    comparison: Comparison
    way: str
    at: int | None
    lasting: int | None = None
    exact: Any = None
    formula: Any = None
    equation: Any = None
    legend: tuple[Letter, ...] = ()
    ties: tuple[Tie, ...] = ()
    bounds: tuple[Bound, ...] = ()

    def __str__(self) -> str:
        said = "never" if self.at is None else f"{self.at:,} tokens"
        return f"{self.comparison.says}, {self.way}: {said}" + ("" if self.formula is None else f"; n = {self.formula}")


def crossovers(model: Model, **asked: Any) -> tuple[Crossover, ...]:
    """Every crossover of a model, in a prefill and in a decode step; `asked` is what `count` takes, except lengths.

    Raises SettingError where the model has no attention to compare.
    """
    check_model(model)
    no_lengths(asked, "crossovers are over all lengths")
    for name in ("batch", "source", "images", "image_tokens"):
        if asked.get(name) is not None and not is_integer(asked[name]):
            raise SettingError(f"{name} is {asked[name]}; crossovers are found for an integer")
    endless, asked = lengthened(model, asked)
    measured = {way: Measured(endless, way, asked) for way in ("prefill", "decode")}
    if not measured["prefill"](2)["scores"]:
        raise SettingError(f"{model.name} has no attention scores; nothing in it grows with the square of the context")
    ways = [way for way in measured if way == "prefill" or "past" in model.settings]
    known = [one for one in COMPARISONS if one.right != "all weights" or not images_alone(model)]
    pairs = [(comparison, measured[way]) for comparison in known for way in comparison.ways if way in ways]
    return tuple(found.crossover(comparison) for comparison, found in pairs if found.has(comparison))


def no_lengths(asked: Mapping[str, Any], why: str) -> None:
    """Raise SettingError where a length is asked for."""
    lengths = [name for name in ("tokens", "past", "context") if asked.get(name) is not None]
    if lengths:
        raise SettingError(f"{', '.join(lengths)} cannot be set: {why}")


def common(model: Model, **asked: Any) -> Setting:
    """What holds at all lengths: batch, dtypes, convention and how latent attention runs."""
    endless, known = lengthened(model, asked)
    return Measured(endless, "prefill", known).setting(2)


def images_alone(model: Model) -> int | None:
    """The positions of an image in a model of images alone."""
    return None if model.sight is None else model.sight.alone


def lengthened(model: Model, asked: Mapping[str, Any]) -> tuple[Model, dict[str, Any]]:
    """A model that takes any length, and what is asked of it; of images alone, as many positions as are asked for.

    The patches of an image stay as many: what is compared is in the layers. Raises SettingError where some layers have
    other positions than an image has.
    """
    endless = as_model(replace(model, positions=None, trained=None), parted(asked, setting)[1], setting)
    alone = images_alone(model)
    if alone is None:
        return endless, dict(asked)
    segments = []
    for segment in model.segments:
        axes = {axis: to for axis, to in segment.axes.items() if to not in (alone, "images")}
        if segment.layers and ("n" in axes or "b" in axes):
            raise SettingError(f"{model.name} has layers whose positions are no image's; no length can be asked of it")
        segments.append(replace(segment, axes=axes))
    known = {name: value for name, value in asked.items() if name != "images"}
    each = asked.get("images") or 1
    plain = replace(endless, segments=tuple(segments), sight=None, settings=())
    return plain, {**known, "batch": (asked.get("batch") or 1) * each}


def amounts(model: Model, asked: Setting) -> dict[str, Size]:
    """What a pass of a model is measured by."""
    prices = convention_of(asked.convention)
    average = average_bytes(model) if asked.quantized else None
    sizes = asked.sizes()
    total: dict[str, Size] = dict.fromkeys(AMOUNTS, 0)
    for segment in model.segments:
        block = running(segment, asked)
        extent = bind(block, placed(segment, sizes))
        seen = Visible(extent.sizes).shared_with(extent)
        for op in block.ops:
            for name, amount in measures(segment, op, extent, seen, prices, asked).items():
                total[name] = total[name] + segment.times * amount
            total["weights read"] += segment.times * weighed(op, block, extent, asked, average)
    return total


def measures(
    segment: Segment, op: Op, extent: Extent, seen: Extent, prices: Convention, asked: Setting
) -> dict[str, Size]:
    """What one run of an op adds to each amount."""
    kind = kind_of(op)
    part, _, sub = op.part.partition(".")
    work = kind.work(op, extent)
    lit = prices.visible and bool(extent.keys) and touches(op, extent)
    spent = prices.flops(kind.work(op, seen) if lit else work)
    made: dict[str, Size] = {}
    if part == "attention":
        made["attention"] = spent
        if sub == "scores":
            made["scores"], made["score matrix"] = spent, work.get("softmax", 0)
    elif part in MLP:
        made["mlp"] = spent
        made["hidden"] = sum((extent(op.activations[0].axes) for w in op.weights[:1] if _returns(op, w)), start=0)
    if kind.contracts and op.weights:
        made["all weights"] = spent
        if segment.layers:
            made["layers' weights"] = spent
    if kind.state is not None:
        made["cache"] = bytes_of(kind.state(op, extent), asked.state if kind.kept == "state" else asked.cache)
    return made


def _returns(op: Op, weight: Tensor) -> bool:
    """True for the matrix that leads back to the model's width."""
    axes = matrix_axes(op, weight)
    return axes is not None and axes[0] == ("d",) and axes[1] != ("d",)


class Measured:
    """The amounts of passes of all lengths, each found once."""

    def __init__(self, model: Model, way: str, asked: Mapping[str, Any]) -> None:
        self.model, self.way, self.asked = model, way, asked
        self.known: dict[int, dict[str, Size]] = {}
        self.held: int | None = None

    def setting(self, length: int) -> Setting:
        """A prefill of so many tokens, or a decode step at such a context."""
        lengths = {"tokens": length} if self.way == "prefill" else {"tokens": 1, "past": length - 1}
        source = self.asked.get("source")
        more = {"source": length} if source is None and self.follows else {}
        return setting(self.model, **{**self.asked, **more, **lengths})

    @property
    def follows(self) -> bool:
        """True where a source is as long as its target where nothing is said."""
        return "source" in self.model.settings and self.model.source_tokens is None

    def __call__(self, length: int) -> dict[str, Size]:
        """Every amount at a length."""
        if length not in self.known:
            asked = self.setting(length)
            found = amounts(self.model, asked)
            if self.held is None:
                total = (
                    stored_bytes(self.model, asked.weights)
                    if asked.quantized
                    else bytes_of(self._elements(), asked.weights)
                )
                self.held = -1 if total is None else total
            self.known[length] = {**found, "weights": self.held}
        return self.known[length]

    def _elements(self) -> Size:
        return sum((entry.times * entry.elements for entry in tensors(self.model)), start=0)

    def has(self, comparison: Comparison) -> bool:
        """True where both sides are something."""
        found = self(2)
        sides: tuple[int, int] = (found[comparison.left], found[comparison.right])
        return min(sides) > 0

    def gap(self, comparison: Comparison) -> Callable[[int], int]:
        """By how much the left side is the larger one, at a length."""

        def difference(length: int) -> int:
            found = self(length)
            left, right = found[comparison.left], found[comparison.right]
            return int(left - right)

        return difference

    @property
    def chunk(self) -> int | None:
        """How many tokens a chunk of attention has, where it comes in chunks."""
        chunks = {int(size) for one in self.model.segments if (size := one.block.sizes.get("chunk")) is not None}
        return max(chunks, default=None)

    def reach(self, comparison: Comparison) -> tuple[int | None, int | None]:
        """The fewest tokens at which the left side has come to the right one, and from which on it stays there."""
        gap = self.gap(comparison)
        at = first(gap, self.chunk)
        return at, lasting(gap, at, self.chunk)

    def crossover(self, comparison: Comparison) -> Crossover:
        """Both, and the exact place in letters."""
        at, stays = self.reach(comparison)
        if at is None or at <= 2:
            return Crossover(comparison, self.way, at, stays)
        return self.solved(comparison, at, stays)

    def solved(self, comparison: Comparison, at: int, stays: int | None) -> Crossover:
        """The same with the place where both sides are equal, where SymPy is installed and can tell."""
        plain = Crossover(comparison, self.way, at, stays)
        try:
            algebra()
        except SettingError:
            return plain
        asked = self.setting(at)
        if asked.quantized and "weights" in comparison.right and comparison.left == "cache":
            return plain
        symbols = Symbols(self.model, asked)
        sides = self._sides(symbols, asked)
        named = symbols.named(sides.values())  # all of them, so that a letter is the same in each comparison
        left, right = sides[comparison.left], sides[comparison.right]
        difference = self._in_length(named.closed(left) - named.closed(right), named)
        length = algebra().Symbol("n", positive=True, integer=True)
        values = {symbol: algebra().Integer(value) for symbol, value in named.values.items()}
        difference, filled = within_chunks(difference, length, at, values)
        for root in roots_of(difference, length):
            exact = root.xreplace(values)
            if exact.is_real and at - 1 < exact <= at:
                break
        else:  # another piece of the sides than the one they cross on
            return plain
        used = symbols_of(root)
        mentioned = symbols_of(named.general(left)) | symbols_of(named.general(right))
        return Crossover(
            comparison,
            self.way,
            at,
            stays,
            exact,
            root,
            reduced(difference),
            tuple(letter for letter in named.legend if letter.symbol in used),
            tuple(tie for tie in named.ties if symbols_of(tie.left) & mentioned),
            tuple(strictest([*self._bounds(named, length, at, values), *filled], length)),
        )

    def _bounds(self, named: Named, length: Any, at: int, values: Mapping[Any, Any]) -> Iterable[Bound]:
        """What decided bounds at the place, in n."""
        for one in named.bounds:
            low, high = (
                within_chunks(self._in_length(side, named), length, at, values)[0] for side in (one.low, one.high)
            )
            yield bound(low, high)

    def _sides(self, symbols: Symbols, asked: Setting) -> dict[str, Size]:
        """Every amount in letters."""
        prices = convention_of(asked.convention)
        total: dict[str, Size] = dict.fromkeys(AMOUNTS, 0)
        held: tuple[set[str], set[str]] = (set(), set())
        for place in symbols.places():
            seen = symbols.visible(place)
            held = (set(), held[1])
            for op in place.block.ops:
                found = measures(place.segment, op, place.symbols, seen, prices, asked)
                for name, amount in found.items():
                    total[name] = total[name] + place.runs * amount
                read = bytes_of(kind_of(op).weighs(op, place.symbols), asked.weights)
                total["weights read"] = total["weights read"] + place.runs * read
                new, buffers, _ = own_weights(place.segment, place.block, op, place.symbols, held)
                copies = place.segment.copies
                each = sum(((place.stored if times == copies else 1) * size for size, times in new), start=0)
                each = each + (place.stored if _layered(place.block, op) else 1) * buffers
                total["weights"] = total["weights"] + bytes_of(each, asked.weights)
        return total

    def _in_length(self, formula: Any, named: Named) -> Any:
        """A formula in n, the length of the pass: of a decode step, n tokens are at hand."""
        length = algebra().Symbol("n", positive=True, integer=True)
        defined = {letter.symbol: letter.definition for letter in named.legend if letter.definition is not None}
        while symbols_of(formula) & defined.keys():
            formula = named.closed(formula.xreplace(defined))
        lengths = {"c", "m"} if self.follows and self.asked.get("source") is None else {"c"}
        known = [one.symbol for one in named.legend if one.symbol.name in lengths and not one.where]
        return algebra().expand(formula.xreplace(dict.fromkeys(known, length)))


def _layered(block: Block, op: Op) -> bool:
    """True where an op's weights are those of a layer."""
    return any("{i}" in block.weight(weight.name).path for weight in op.weights)
