"""Where a figure comes from: each op's share of it as a formula, the sums of them, and the closed form.

The formulas are what the same ops give where their sizes are symbols; nothing here knows what a formula should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from assay.errors import SettingError, among
from assay.kinds import Extent, Visible, kind_of
from assay.readings.binding import as_model, parted
from assay.readings.conventions import convention as convention_of
from assay.readings.count import touches
from assay.readings.dtypes import bytes_of
from assay.readings.letters import Bound, Letter, Tie, algebra, binding, symbols_of, value_of
from assay.readings.ops import own_weights
from assay.readings.setting import Setting, setting
from assay.readings.symbolic import Named, Place, Symbols
from assay.records import dataclass, replace
from assay.size import Size, is_integer
from assay.spec import Block, Model, Op

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
        known = {letter.symbol.name: letter for letter in self.legend}
        for name in sizes:
            if name not in known or known[name].definition is not None:
                free = ", ".join(n for n, letter in known.items() if letter.definition is None)
                raise SettingError(f"{name} is no letter of this formula; its letters: {free}")
        for name, size in sizes.items():
            if not is_integer(size) or size < 1:
                raise SettingError(f"{name} is {size!r}; it must be an integer of at least 1")
        values = {letter.symbol: sizes.get(letter.symbol.name, letter.value) for letter in self.legend}
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
    `count` takes, sizes as integers. Raises SettingError, SizeError.
    """
    among(figure, "figure", FIGURES)
    if not isinstance(part, str | None):
        raise SettingError(f"part is {part!r}; it must be the name of a part, such as attention")
    given, sizes = parted(asked, setting)
    whole = as_model(model, sizes, setting)
    return _Fold(whole, figure, part, setting(whole, **given)).derivation()


class _Fold:
    """One derivation under way."""

    def __init__(self, model: Model, figure: str, part: str | None, asked: Setting) -> None:
        self.model, self.figure, self.part, self.asked = model, figure, part, asked
        self.symbols = Symbols(model, asked)
        every = (op.part for segment in model.segments for op in segment.block.ops)
        self.parts = dict.fromkeys(name for part in every for name in (part.partition(".")[0], part))
        self.prices = convention_of(asked.convention)
        self.seen: tuple[set[str], set[str]] = (set(), set())  # weights of earlier ops, as numbers and as symbols

    def derivation(self) -> Derivation:
        """All stages, with the letters that they turn out to need."""
        stages = [stage for place in self.symbols.places() for stage in self._stages(place)]
        if not stages:
            raise SettingError(self._nothing())
        formula = sum((stage.often * stage.formula for stage in stages), start=0)
        formulas = [part.formula for stage in stages for part in stage.parts]
        named = self.symbols.named([formula, *formulas])
        made = tuple(_named(stage, named) for stage in stages)
        used = {symbol for one in (formula, *formulas) for symbol in symbols_of(named.general(one))}
        return Derivation(
            self.figure,
            self.model,
            self.asked,
            self.part or "",
            made,
            named.general(formula),
            sum((stage.often * stage.closed for stage in made), start=0),
            sum((stage.times * stage.value for stage in made), start=0),
            named.legend,
            tuple(tie for tie in named.ties if symbols_of(tie.left) & used),
            binding(named.bounds),
        )

    def _wanted(self, name: str, part: str) -> bool:
        """Whether an op is asked for: by its part, or, where no part is called so, by its kind of layer."""
        if self.part in self.parts:
            return self.part in (part, part.partition(".")[0])
        return self.part in (None, name)

    def _nothing(self) -> str:
        if self.part is None:
            return f"{self.model.name} has no {self.figure} in this setting"
        known = dict.fromkeys([*self.parts, *(segment.name for segment in self.model.segments)])
        if self.part in known:
            return f"{self.part} of {self.model.name} adds nothing to {self.figure} in this setting"
        return f"part is {self.part!r}; {self.model.name} has {', '.join(known)}; figures are {', '.join(FIGURES)}"

    def _stages(self, place: Place) -> list[Stage]:
        """One kind of layer, and what its layers share; neither where it adds nothing."""
        segment = place.segment
        here: tuple[set[str], set[str]] = (set(), set())
        seen = self.symbols.visible(place)
        each: list[Step] = []
        shared: list[Step] = []
        for op in place.block.ops:
            values = self._share(place, op, place.numbers, Visible, (here[0], self.seen[0]))
            general = self._share(place, op, place.symbols, lambda _: seen, (here[1], self.seen[1]))
            formulas = [self.symbols.decided(formula) for formula in general]
            if self._wanted(segment.name, op.part):
                for steps, value, formula in zip((each, shared), values, formulas, strict=True):
                    if value != 0 or formula != 0:  # of one expert nothing is added up, of more there is
                        steps.append(Step(op, formula, value))
        own = self.figure == "parameters"
        often, times = (place.stored, segment.copies) if own else (place.runs, segment.times)
        made = [_stage(segment.name, segment.layers, each, often, times)] if each else []
        return [*made, _stage(segment.name, segment.layers, shared, 1, 1)] if shared else made

    def _share(
        self,
        place: Place,
        op: Op,
        extent: Extent,
        visible: Callable[[dict[str, Size]], Extent],
        held: tuple[set[str], set[str]],
    ) -> tuple[Size, Size]:
        """What an op adds in each layer, and for all layers together: tensors that they share."""
        kind = kind_of(op)
        if self.figure == "parameters":
            new, _, _ = own_weights(place.segment, place.block, op, extent, held)
            each = sum((elements for elements, times in new if times == place.segment.copies), start=0)
            return each, sum((elements for elements, times in new if times != place.segment.copies), start=0)
        if self.figure == "flops":
            lit = self.prices.visible and bool(extent.keys) and touches(op, extent)
            return self.prices.flops(kind.work(op, visible(extent.sizes).shared_with(extent) if lit else extent)), 0
        if self.figure == "cache":
            if kind.state is None:
                return 0, 0
            return bytes_of(kind.state(op, extent), self.asked.state if kind.kept == "state" else self.asked.cache), 0
        return kind.writes(op, extent), 0


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


def _named(stage: Stage, named: Named) -> Stage:
    """A stage with the letters' names, its sums closed."""

    def part(one: Sum) -> Sum:
        steps = tuple(replace(step, formula=named.general(step.formula)) for step in one.steps)
        return replace(one, steps=steps, formula=named.general(one.formula), closed=named.closed(one.formula))

    return replace(
        stage,
        parts=tuple(map(part, stage.parts)),
        often=named.general(stage.often),
        formula=named.general(stage.formula),
        closed=named.closed(stage.formula),
    )
