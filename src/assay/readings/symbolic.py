"""A model in letters: each block bound once with numbers and once with a symbol for every size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assay.errors import SettingError
from assay.kinds import Extent, Visible
from assay.readings.binding import bind, placed
from assay.readings.letters import (
    Bound,
    Letter,
    Letters,
    Tie,
    algebra,
    settled,
    symbols_of,
    tied,
    ties,
    value_of,
)
from assay.readings.setting import Setting
from assay.readings.words import SAYS, depth_of, dimension, meaning
from assay.records import dataclass, replace
from assay.size import Size, is_integer
from assay.spec import Block, Model, Segment


@dataclass(frozen=True)
class Place:
    """A block of a model, its extents in numbers and in symbols, and how often it stands there and runs."""

    segment: Segment
    block: Block
    numbers: Extent
    symbols: Extent
    stored: Size
    runs: Size


def running(segment: Segment, asked: Setting) -> Block:
    """The block that runs: latent attention one way or the other."""
    return segment.absorbed if segment.absorbed is not None and asked.latent == "absorbed" else segment.block


def _given(model: Model, asked: Setting) -> Iterator[tuple[str, Size]]:
    """Every size of a setting and of an architecture."""
    for name in ("batch", "tokens", "past", "source", "images", "image_tokens"):
        size = getattr(asked, name)
        if size is not None:
            yield name, size
    for segment in model.segments:
        yield from segment.block.sizes.items()


class Symbols:
    """The letters of a model in a setting, given out block by block and named when all are known."""

    def __init__(self, model: Model, asked: Setting) -> None:
        self.model, self.asked = model, asked
        for name, size in _given(model, asked):
            if not is_integer(size):
                raise SettingError(
                    f"{name} is {size}; it must be an integer here: formulas have a letter for it anyway"
                )
        self.letters = Letters()
        self.sizes = self._setting()
        self.axes: list[Mapping[str, tuple[Any, int]]] = []

    def _setting(self) -> dict[str, Size]:
        """The setting's axes as symbols; what is one or none of stays a number, and so leaves the formulas."""
        of, asked = self.letters.of, self.asked

        def symbol(axis: str, value: Size) -> Size:
            return of(axis, value) if value > 1 else value

        tokens = symbol("n", asked.tokens)
        context = of("c", asked.context, says="context, past and present tokens") if asked.past else tokens
        lettered = replace(
            asked,
            batch=symbol("b", asked.batch),
            tokens=tokens,
            past=context - tokens,
            images=of("images", asked.images),
            sounds=of("sounds", asked.sounds),
            image_tokens=None if asked.image_tokens is None else symbol("image_tokens", asked.image_tokens),
            source=None if asked.source is None else symbol("m", asked.source),
            stride=(1, 0),
        )
        made, values = lettered.sizes(), asked.sizes()
        if asked.source is not None and asked.stride != (1, 0):  # positions are fewer than the source's tokens
            step, more = asked.stride
            padded = f"(--source + {more})" if more else "--source"
            whole = not (asked.source + more) % step
            made["M"] = of(
                "m",
                values["M"],
                f"{padded}/{step}" if whole else f"⌈{padded}/{step}⌉",
                says="positions of the source",
            )
            made["m"] = made["M"] if values["m"] else 0
            made["frames"] = symbol("frames", values["frames"])
        return {axis: size if values[axis] else 0 for axis, size in made.items()}

    def places(self) -> Iterator[Place]:
        """Each distinct block."""
        for segment in self.model.segments:
            block = running(segment, self.asked)
            numbers = bind(block, placed(segment, self.asked.sizes()))
            symbols = self._bound(segment, block, numbers)
            stored: Size = segment.copies
            if stored > 1:
                origin = depth_of(self.model, segment)
                stored = self.letters.of("L", stored, origin, segment.name, apart=str(len(self.axes)))
            yield Place(segment, block, numbers, symbols, stored, stored * segment.passes)

    def _bound(self, segment: Segment, block: Block, numbers: Extent) -> Extent:
        """The block in symbols, with a letter for each size that the pass makes and that is no letter itself."""
        lettered = {
            axis: self.letters.of(axis, size, block.origins.get(axis, ""), segment.name, says=meaning(axis, block))
            for axis, size in block.sizes.items()
        }
        self.axes.append({axis: (symbol, block.sizes[axis]) for axis, symbol in lettered.items() if block.sizes[axis]})
        given = placed(segment, self.sizes)
        extent = bind(replace(block, sizes=lettered), given)
        for axis, size in list(extent.sizes.items()):
            size = extent.sizes[axis] = self.decided(size)
            if axis in given or axis in lettered or numbers.sizes[axis] == 0:
                continue
            if symbols_of(size) and not size.is_Symbol:
                name = "keys" if axis == "c" else axis  # c is the context
                says = SAYS.get(name) or dimension(axis, block)
                extent.sizes[axis] = self.letters.of(name, numbers.sizes[axis], "", segment.name, size, says=says)
        return extent

    def decided(self, formula: Size) -> Size:
        """A formula without what would be if nothing were past, where something is."""
        if not self.asked.past or is_integer(formula) or not symbols_of(formula):
            return formula
        sympy = algebra()
        context = self.letters.of("c", self.asked.context)
        later = {context: self.sizes["n"] + sympy.Dummy(positive=True, integer=True)}

        def known(condition: Any) -> Any:
            made = condition.xreplace(later)
            return made if made in (sympy.true, sympy.false) else condition

        return formula.replace(sympy.Eq, lambda *sides: known(sympy.Eq(*sides)))

    def visible(self, place: Place) -> Extent:
        """The symbols over pairs that the mask lets through, which get a letter of their own."""

        def letter(pairs: Any) -> Any:
            pairs = self.decided(pairs)
            if not symbols_of(pairs) or pairs.is_Symbol or pairs.is_Pow:
                return pairs
            return self.letters.of("pairs", value_of(pairs, self.letters.values), "", place.segment.name, pairs)

        return _Pairs(place.symbols, letter)

    def named(self, formulas: Iterable[Any]) -> Named:
        """The letters that some formulas use, and how the formulas are written with them."""
        known = ties(self.axes)
        used = {symbol for formula in formulas for symbol in symbols_of(formula)}
        for tie in known:
            if symbols_of(tie.left) <= used:
                used |= symbols_of(tie.right)
        return Named(self.letters.named(used), known)


class Named:
    """Letters by name: writes formulas with them, in general and closed, and keeps what closing took for granted."""

    def __init__(self, legend: Mapping[Any, Letter], known: Iterable[Tie]) -> None:
        self.names = {old: letter.symbol for old, letter in legend.items()}
        self.legend = tuple(legend.values())
        self.values = {letter.symbol: letter.value for letter in self.legend}
        self.ties = tuple(
            Tie(tie.left.xreplace(self.names), algebra().sympify(tie.right).xreplace(self.names))
            for tie in known
            if symbols_of(tie.left) <= self.names.keys()
        )
        self.bounds: dict[Bound, None] = {}
        # pairs are written out; keys at hand where that makes them a letter that is there already
        self.plain = {}
        for letter in self.legend:
            if letter.definition is not None:
                made = settled(letter.definition, self.values)[0]
                if letter.symbol.name.startswith("pairs") or made.is_Symbol or made.is_Integer:
                    self.plain[letter.symbol] = letter.definition

    def general(self, formula: Any) -> Any:
        """A formula with the letters' names."""
        return algebra().sympify(formula).xreplace(self.names)

    def closed(self, formula: Any) -> Any:
        """The same with ties and bounds put to use."""
        made, decided = settled(tied(self.general(formula).xreplace(self.plain), self.ties), self.values)
        self.bounds.update(dict.fromkeys(decided))
        return tied(made, self.ties)


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
