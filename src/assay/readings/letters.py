"""Sizes as letters: a symbol for each size of a model, ties between sizes, and which side of a bound a model is on.

A letter stands for a size by its axis, its value and the config key it was read from: one letter in two kinds of
layer is one symbol where all three agree, and gets a number behind it where they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.errors import SettingError
from assay.readings.words import SAYS
from assay.records import dataclass
from assay.size import Size, is_integer

MISSING = "formulas need SymPy; pip install sympy"

SETTING = {
    "b": "--batch",
    "n": "--tokens",
    "c": "--context",
    "m": "--source",
    "frames": "--source",
    "images": "--images",
    "sounds": "--sounds",
    "image_tokens": "--image-tokens",
}


def algebra() -> Any:
    """SymPy. Raises SettingError with what to install where it is missing."""
    try:
        import sympy
    except ImportError:
        raise SettingError(MISSING) from None
    return sympy


@dataclass(frozen=True)
class Letter:
    """A letter of a formula: what it is, its value, the config key or option it came from, where it is used.

    `definition` is what it is in other letters, for a size that a pass makes, such as keys at hand.
    """

    symbol: Any
    value: int
    says: str = ""
    origin: str = ""
    where: tuple[str, ...] = ()
    definition: Any = None


class Letters:
    """The symbols of a model under way: one for each axis, value and origin, named when all are known."""

    def __init__(self) -> None:
        self.sympy = algebra()
        self.known: dict[tuple[str, int, str], Letter] = {}
        self.values: dict[Any, int] = {}

    def of(
        self,
        axis: str,
        value: int,
        origin: str = "",
        where: str = "",
        definition: Any = None,
        apart: str = "",
        says: str | None = None,
    ) -> Any:
        """The symbol of a size; 0 stays the number it is. `apart` tells sizes from each other that look the same."""
        if value == 0:
            return 0
        key = (axis, value, apart or (origin if definition is None else str(definition)))
        held = self.known.get(key)
        if held is None:
            symbol = self.sympy.Symbol("|".join(map(str, key)), positive=True, integer=True)
            held = Letter(symbol, value, SAYS.get(axis, "") if says is None else says, origin, (), definition)
            self.values[symbol] = value
        if where and where not in held.where:
            held = Letter(held.symbol, value, held.says, origin, (*held.where, where), definition)
        self.known[key] = held
        return held.symbol

    def named(self, used: Iterable[Any]) -> dict[Any, Letter]:
        """What each of the symbols used is called: its axis, with a number behind it where there are several."""
        wanted = set(used)
        while (
            more := {s for held in self.known.values() if held.symbol in wanted for s in symbols_of(held.definition)}
            - wanted
        ):
            wanted |= more
        listed = [(key, held) for key, held in self.known.items() if held.symbol in wanted]
        axes = [axis for (axis, _, _), _ in listed]
        names: dict[Any, Any] = {}
        for index, ((axis, _, _), held) in enumerate(listed):
            name = axis if axes.count(axis) == 1 else f"{axis}_{axes[:index].count(axis) + 1}"
            names[held.symbol] = self.sympy.Symbol(name, positive=True, integer=True)
        return {
            held.symbol: Letter(
                names[held.symbol],
                held.value,
                held.says,
                held.origin,
                held.where,
                None if held.definition is None else held.definition.xreplace(names),
            )
            for _, held in listed
        }


def bound(low: Any, high: Any) -> Bound:
    """low ≤ high with nothing subtracted on either side: w - 1 ≤ c - 1 is w ≤ c."""
    sympy = algebra()
    rest = [(term, term.as_coeff_Mul()[0]) for term in sympy.Add.make_args(sympy.expand(high - low))]
    return Bound(
        sympy.Add(*(-term for term, coefficient in rest if coefficient < 0)),
        sympy.Add(*(term for term, coefficient in rest if coefficient > 0)),
    )


def binding(bounds: Iterable[Bound]) -> tuple[Bound, ...]:
    """Those of some bounds that follow from no other one: of n ≥ w and n ≥ w + 1 the second."""
    kept: list[Bound] = []
    for one in dict.fromkeys(bounds):
        room = one.high - one.low
        if any((room - other.high + other.low).is_nonnegative for other in kept):
            continue
        kept = [other for other in kept if not (other.high - other.low - room).is_nonnegative]
        kept.append(one)
    return tuple(kept)


def symbols_of(expression: Any) -> set[Any]:
    """The symbols of an expression; none of a number."""
    return set(getattr(expression, "free_symbols", ()))


def value_of(expression: Size, values: Mapping[Any, int]) -> int:
    """What an expression is at these values, exactly."""
    if is_integer(expression):
        return expression
    sympy = algebra()
    return int(expression.xreplace({symbol: sympy.Integer(value) for symbol, value in values.items()}))


# -- ties --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tie:
    """Sizes that hang together in this model: the product `left`, wherever it stands, is `right`."""

    left: Any
    right: Any


def ties(groups: Iterable[Mapping[str, tuple[Any, int]]]) -> tuple[Tie, ...]:
    """The ties that the field writes formulas with, as far as they hold in this model.

    `groups` are the (symbol, value) of each kind of layer's axes: a width of one is left out, values are as wide as
    keys, query heads are g r, all heads together are as wide as the model, the MLP is four times as wide.
    """
    found: dict[Any, Any] = {}
    for axes in groups:
        for left, right in _ties_of(axes):
            if left != right:
                found.setdefault(left, right)
    return tuple(Tie(left, right) for left, right in found.items())


def _ties_of(axes: Mapping[str, tuple[Any, int]]) -> Iterable[tuple[Any, Any]]:
    def at(axis: str) -> tuple[Any, int]:
        return axes.get(axis, (None, 0))

    (d, width), (h, heads), (g, groups), (r, each) = at("d"), at("h"), at("g"), at("r")
    (k, key), (v, value), (f, inner) = at("k"), at("v"), at("f")
    yield from ((symbol, 1) for axis, (symbol, size) in axes.items() if size == 1)
    if key == value > 1:
        yield v, k
    if heads == groups * each > 1:
        if each == 1:
            yield g, h
        elif groups > 1:
            yield g * r, h
        else:
            yield r, h
    if heads > 1 and key > 1 and heads * key == width:
        yield h * k, d
    if heads > 1 and value > 1 and value != key and heads * value == width:
        yield h * v, d
    if width > 1 and inner == 4 * width:
        yield f, 4 * d


def tied(expression: Size, known: Iterable[Tie]) -> Any:
    """The expression with each tie put to use: single letters everywhere, products in each term."""
    sympy = algebra()
    known = list(known)
    # one after the other: what one puts in place, the next may replace
    made = sympy.sympify(expression)
    for tie in known:
        if tie.left.is_Symbol:
            made = made.subs(tie.left, tie.right)
    products = [(tie.left.as_powers_dict(), tie.right) for tie in known if not tie.left.is_Symbol]
    if not products:
        return sympy.expand(made)
    terms = sympy.Add.make_args(sympy.expand(made))
    return sympy.expand(sympy.Add(*(_replaced(term, products) for term in terms)))


def _replaced(term: Any, products: list[tuple[Mapping[Any, Any], Any]]) -> Any:
    """One term, as often divided by a product and multiplied by what it is as that leaves no fraction."""
    for factors, right in products:
        powers = term.as_powers_dict()
        often = min((int(powers.get(symbol, 0)) // int(power) for symbol, power in factors.items()), default=0)
        if often > 0:
            for symbol, power in factors.items():
                term = term / symbol ** (power * often)
            term = term * right**often
    return term


# -- bounds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """An inequality that holds in this model and setting: `low` is at most `high`."""

    low: Any
    high: Any


def settled(expression: Any, values: Mapping[Any, int]) -> tuple[Any, tuple[Bound, ...]]:
    """The expression with each minimum, maximum and case decided as it is at these values, and what decided it."""
    sympy = algebra()
    at = _Settling(values)
    made = sympy.expand(at.settle(sympy.sympify(expression)))
    return made, tuple(dict.fromkeys(bound(low, high) for low, high in at.bounds))


class _Settling:
    """Decides minima, maxima and cases, and notes as (low, high) what each decision took for granted."""

    def __init__(self, values: Mapping[Any, int]) -> None:
        self.sympy = algebra()
        self.values = values
        self.bounds: dict[tuple[Any, Any], None] = {}

    def settle(self, part: Any) -> Any:
        """An expression without them."""
        if isinstance(part, self.sympy.Min | self.sympy.Max):
            return self._choose(part)
        if isinstance(part, self.sympy.Piecewise):
            return self.settle(next(value for value, condition in part.args if self._decide(condition)))
        if not part.args:
            return part
        return part.func(*map(self.settle, part.args))

    def _choose(self, function: Any) -> Any:
        args = [self.settle(arg) for arg in function.args]
        low = isinstance(function, self.sympy.Min)
        ordered = sorted(args, key=lambda arg: value_of(arg, self.values), reverse=not low)
        first = ordered[0]
        for other in ordered[1:]:
            pair = (first, other) if low else (other, first)
            if not (pair[1] - pair[0]).is_nonnegative:
                self.bounds[pair] = None
        return first

    def _decide(self, condition: Any) -> bool:
        """Whether a condition holds: equalities, and what SymPy makes of them where one stands in another."""
        sympy = self.sympy
        if condition in (sympy.true, sympy.false):
            return bool(condition)
        if isinstance(condition, sympy.ITE):
            first, then, other = condition.args
            return self._decide(then if self._decide(first) else other)
        if isinstance(condition, sympy.Not):
            return not self._decide(condition.args[0])
        if isinstance(condition, sympy.And | sympy.Or):
            held = [self._decide(one) for one in condition.args]
            return all(held) if isinstance(condition, sympy.And) else any(held)
        amount = self.settle(condition.lhs - condition.rhs)
        value, one = value_of(amount, self.values), sympy.Integer(1)
        self.bounds[(one, amount) if value > 0 else (amount, -one) if value < 0 else (amount, sympy.Integer(0))] = None
        return (value == 0) != isinstance(condition, sympy.Ne)
