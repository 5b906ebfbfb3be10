"""Where a figure comes from: each op's share of it as a formula, the sums of them, and the closed form.

The formulas are what the same ops give where their sizes are symbols; nothing here knows what a formula should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assay.errors import SettingError
from assay.kinds import Extent, Visible, kind_of
from assay.readings.binding import as_model, bind, placed
from assay.readings.conventions import convention as convention_of
from assay.readings.count import touches
from assay.readings.dtypes import bytes_of
from assay.readings.letters import Bound, Letter, Letters, Tie, algebra, settled, symbols_of, tied, ties, value_of
from assay.readings.ops import own_weights
from assay.readings.setting import Setting, setting
from assay.records import dataclass, replace
from assay.size import Size
from assay.spec import Block, Model, Op, Segment

FIGURES = {
    "parameters": "unique parameters; a tensor that several ops or layers share counts where it first occurs",
    "flops": "FLOPs of one pass",
    "cache": "bytes kept for later passes",
    "activations": "elements that ops write, each op its result once; views and what is kept in place write none",
}


@dataclass(frozen=True)
class Step:
    """What one op adds in one layer: a formula in letters, and its value."""

    op: Op
    formula: Any
    value: int


@dataclass(frozen=True)
class Sum:
    """Steps of one part in one kind of layer, summed."""

    part: str
    steps: tuple[Step, ...]
    formula: Any
    closed: Any
    value: int


@dataclass(frozen=True)
class Stage:
    """One kind of layer, or what occurs once: its parts, their sum, and how often it counts."""

    name: str
    layers: tuple[int, ...]
    parts: tuple[Sum, ...]
    often: Any  # a letter, or a number
    times: int
    formula: Any  # of one layer
    closed: Any
    value: int  # of one layer


@dataclass(frozen=True)
class Derivation:
    """A figure of a model from its ops: stages, the formula of the whole, and its value.

    `formula` holds at any sizes; `closed` is the same with the ties and bounds of this model put to use. Both are
    SymPy expressions in the letters of `legend`.
    """

    figure: str
    model: Model
    setting: Setting
    part: str
    stages: tuple[Stage, ...]
    formula: Any
    closed: Any
    number: int
    legend: tuple[Letter, ...]
    ties: tuple[Tie, ...]
    bounds: tuple[Bound, ...]

    def at(self, **sizes: int) -> int:
        """The formula at other sizes, by the names of letters; those not named are the model's own."""
        algebra()
        known = {str(letter.symbol): letter for letter in self.legend}
        for name in sizes:
            if name not in known or known[name].definition is not None:
                free = ", ".join(n for n, letter in known.items() if letter.definition is None)
                raise SettingError(f"{name} is no letter of this formula; its letters: {free}")
        values = {letter.symbol: sizes.get(str(letter.symbol), letter.value) for letter in self.legend}
        return value_of(self.unfolded(self.formula), values)

    def unfolded(self, expression: Any) -> Any:
        """An expression with letters that have a definition written out."""
        defined = {letter.symbol: letter.definition for letter in self.legend if letter.definition is not None}
        made = algebra().sympify(expression)
        while symbols_of(made) & set(defined):
            made = made.xreplace(defined)
        return made


def derive(model: Model | Block, figure: str = "flops", part: str | None = None, **asked: Any) -> Derivation:
    """The derivation of a figure, or of what one part of the model adds to it.

    `part` is a part (attention, attention.scores, mlp, head, ...) or the name of a kind of layer; `asked` is what
    `count` takes. Raises SettingError, SizeError.
    """
    if figure not in FIGURES:
        raise SettingError(f"figure is {figure!r}; known: {', '.join(FIGURES)}")
    whole = model if isinstance(model, Model) else as_model(model, {})
    return _Fold(whole, figure, part, setting(whole, **asked)).derivation()


class _Fold:
    """One derivation under way."""

    def __init__(self, model: Model, figure: str, part: str | None, asked: Setting) -> None:
        self.model, self.figure, self.part, self.asked = model, figure, part, asked
        self.letters = Letters()
        self.prices = convention_of(asked.convention)
        self.seen: tuple[set[str], set[str]] = (set(), set())  # weights of earlier ops, as numbers and as symbols
        self.symbols = self._setting_symbols()
        self.axes: list[Mapping[str, tuple[Any, int]]] = []

    def _setting_symbols(self) -> dict[str, Size]:
        """The setting's axes as symbols; what is one or none of stays a number, and so leaves the formulas."""
        of, asked = self.letters.of, self.asked

        def symbol(axis: str, value: Size) -> Size:
            return of(axis, value) if value > 1 else value

        lettered = replace(
            asked,
            batch=symbol("b", asked.batch),
            tokens=symbol("n", asked.tokens),
            past=symbol("past", asked.past) if asked.past else 0,
            images=symbol("images", asked.images) if asked.images else 0,
            image_tokens=None if asked.image_tokens is None else symbol("image_tokens", asked.image_tokens),
            source=None if asked.source is None else symbol("m", asked.source),
            stride=(1, 0),
        )
        made = lettered.sizes()
        values = asked.sizes()
        if asked.source is not None and asked.stride != (1, 0):  # positions are fewer than the source's tokens
            made["M"] = symbol("m", values["M"])
            made["m"] = made["M"] if values["m"] else 0
            made["frames"] = symbol("frames", values["frames"])
        return {axis: size if values[axis] else 0 for axis, size in made.items()}

    def derivation(self) -> Derivation:
        """All stages, with the letters that they turn out to need."""
        stages = [stage for segment in self.model.segments for stage in self._stages(segment)]
        if not stages:
            raise SettingError(self._nothing())
        known = ties(self.axes)
        formula = sum((stage.often * stage.formula for stage in stages), start=0)
        used = symbols_of(formula) | {s for stage in stages for p in stage.parts for s in symbols_of(p.formula)}
        for tie in known:
            if symbols_of(tie.left) <= used:
                used |= symbols_of(tie.right)
        legend = self.letters.named(used)
        return self._named(stages, formula, known, legend)

    def _named(
        self, stages: list[Stage], formula: Any, known: tuple[Tie, ...], legend: Mapping[Any, Letter]
    ) -> Derivation:
        """The same with the symbols' names, ties and bounds put to use."""
        names = {old: letter.symbol for old, letter in legend.items()}
        values = {letter.symbol: letter.value for letter in legend.values()}
        sympify = algebra().sympify
        mine = tuple(
            Tie(tie.left.xreplace(names), sympify(tie.right).xreplace(names))
            for tie in known
            if symbols_of(tie.left) <= set(names)
        )
        bounds: dict[Bound, None] = {}

        def name(expression: Any) -> Any:
            return sympify(expression).xreplace(names)

        def decide(expression: Any) -> Any:
            made, decided = settled(tied(expression, mine), values)
            bounds.update(dict.fromkeys(decided))
            return tied(made, mine)

        # pairs are written out; keys at hand where that makes them a letter that is there already
        defined = {letter.symbol: letter.definition for letter in legend.values() if letter.definition is not None}
        plain = {}
        for symbol, definition in defined.items():
            made = settled(definition, values)[0]
            if str(symbol).startswith("pairs") or made.is_Symbol or made.is_Integer:
                plain[symbol] = definition

        def close(expression: Any) -> Any:
            return decide(expression.xreplace(plain))

        def step(one: Step) -> Step:
            return replace(one, formula=name(one.formula))

        def part(one: Sum) -> Sum:
            return replace(
                one, steps=tuple(map(step, one.steps)), formula=name(one.formula), closed=close(name(one.formula))
            )

        def stage(one: Stage) -> Stage:
            made = name(one.formula)
            parts = tuple(map(part, one.parts))
            return replace(one, parts=parts, often=name(one.often), formula=made, closed=close(made))

        made = tuple(map(stage, stages))
        closed = sum((one.often * one.closed for one in made), start=0)
        needed = tuple(tie for tie in mine if symbols_of(tie.left) & _all_symbols(made, name(formula)))
        return Derivation(
            self.figure,
            self.model,
            self.asked,
            self.part or "",
            made,
            name(formula),
            closed,
            sum((one.times * one.value for one in stages), start=0),
            tuple(legend.values()),
            needed,
            tuple(bounds),
        )

    def _nothing(self) -> str:
        if self.part is None:
            return f"{self.model.name} has no {self.figure} in this setting"
        parts = dict.fromkeys(
            name
            for segment in self.model.segments
            for name in (segment.name, *(p for op in segment.block.ops for p in (op.part.partition(".")[0], op.part)))
        )
        if self.part in parts:
            return f"{self.part} of {self.model.name} adds nothing to {self.figure} in this setting"
        return f"part is {self.part!r}; {self.model.name} has {', '.join(parts)}"

    def _stages(self, segment: Segment) -> list[Stage]:
        """One kind of layer, and what its layers share; neither where it adds nothing."""
        absorbed = segment.absorbed if self.asked.latent == "absorbed" else None
        block = segment.block if absorbed is None else absorbed
        here: tuple[set[str], set[str]] = (set(), set())
        numbers = bind(block, placed(segment, self.asked.sizes()))
        symbols = self._bound(segment, block, numbers)
        each: list[Step] = []
        shared: list[Step] = []
        for op in block.ops:
            values = self._share(segment, block, op, numbers, (here[0], self.seen[0]))
            formulas = self._share(segment, block, op, symbols, (here[1], self.seen[1]))
            if self.part in (None, segment.name, op.part, op.part.partition(".")[0]):
                for steps, value, formula in zip((each, shared), values, formulas, strict=True):
                    if value != 0:
                        steps.append(Step(op, formula, value))
        runs = segment.copies if self.figure == "parameters" else segment.times
        origin = self.model.layers_key if segment.copies == self.model.layers else ""
        often: Size = self.letters.of("L", segment.copies, origin, segment.name, apart=str(len(self.axes)))
        often = often * (runs // segment.copies) if segment.copies > 1 else runs
        made = [_stage(segment.name, segment.layers, each, often, runs)] if each else []
        return [*made, _stage(segment.name, segment.layers, shared, 1, 1)] if shared else made

    def _bound(self, segment: Segment, block: Block, numbers: Extent) -> Extent:
        """The block in symbols, with a letter for each size that the pass makes and that is no letter itself."""
        lettered = {
            axis: self.letters.of(axis, size, block.origins.get(axis, ""), segment.name)
            for axis, size in block.sizes.items()
        }
        self.axes.append({axis: (symbol, block.sizes[axis]) for axis, symbol in lettered.items() if symbol != 0})
        given = placed(segment, self.symbols)
        extent = bind(replace(block, sizes=lettered), given)
        for axis, size in list(extent.sizes.items()):
            if axis in given or axis in lettered or numbers.sizes[axis] == 0:
                continue
            if symbols_of(size) and not size.is_Symbol:
                extent.sizes[axis] = self.letters.of(axis, numbers.sizes[axis], "", segment.name, size)
        return extent

    def _seen(self, extent: Extent, segment: Segment) -> Extent:
        """The extent over pairs that the mask lets through, which get a letter of their own."""

        def letter(pairs: Any) -> Any:
            if not symbols_of(pairs) or pairs.is_Symbol or pairs.is_Pow:
                return pairs
            return self.letters.of("pairs", value_of(pairs, self.letters.values), "", segment.name, pairs)

        return _Pairs(extent, letter)

    def _share(
        self, segment: Segment, block: Block, op: Op, extent: Extent, held: tuple[set[str], set[str]]
    ) -> tuple[Size, Size]:
        """What an op adds in each layer, and for all layers together: tensors that they share."""
        kind = kind_of(op)
        if self.figure == "parameters":
            new, _, _ = own_weights(segment, block, op, extent, held)
            each = sum((elements for elements, times in new if times == segment.copies), start=0)
            return each, sum((elements for elements, times in new if times != segment.copies), start=0)
        if self.figure == "flops":
            visible = self.prices.visible and bool(extent.keys) and touches(op, extent)
            return self.prices.flops(kind.work(op, self._seen(extent, segment) if visible else extent)), 0
        if self.figure == "cache":
            if kind.state is None:
                return 0, 0
            return bytes_of(kind.state(op, extent), self.asked.state if kind.kept == "state" else self.asked.cache), 0
        return kind.writes(op, extent), 0


class _Pairs(Visible):
    """Pairs that a mask lets through, as a letter where they are no plain product."""

    def __init__(self, extent: Extent, letter: Callable[[Any], Any]) -> None:
        super().__init__(extent.sizes)
        self.shared_with(extent)
        self.letter = letter

    def __call__(self, axes: Iterable[str]) -> Size:
        """Elements that the axes span."""
        axes = list(axes)
        result: Size = 1
        for axis in list(axes):
            keys = self.keys.get(axis)
            if keys is not None and keys.queries in axes:
                axes.remove(axis)
                axes.remove(keys.queries)
                result = result * self.letter(super().__call__((keys.queries, axis)))
        return result * super().__call__(axes)


def _stage(name: str, layers: tuple[int, ...], steps: list[Step], often: Size, times: int) -> Stage:
    """Steps by part, and their sums."""
    parts: dict[str, list[Step]] = {}
    for step in steps:
        parts.setdefault(step.op.part.partition(".")[0], []).append(step)
    sums = tuple(Sum(part, tuple(some), *_total(some)) for part, some in parts.items())
    return Stage(name, layers, sums, often, times, *_total(steps))


def _total(steps: Iterable[Step]) -> tuple[Any, Any, int]:
    """The formula, one more time to be closed, and the value."""
    formula, value = 0, 0
    for step in steps:
        formula, value = formula + step.formula, value + step.value
    return formula, formula, value


def _all_symbols(stages: tuple[Stage, ...], formula: Any) -> set[Any]:
    """Every symbol of the formulas."""
    used = symbols_of(formula)
    for stage in stages:
        for part in stage.parts:
            used |= symbols_of(part.formula)
    return used
