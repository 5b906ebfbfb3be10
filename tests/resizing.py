"""Models with other sizes by the letters of a formula, so that the formula can be compared with a count of integers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from assay.readings.explain import Derivation
from assay.readings.letters import Letter
from assay.records import replace
from assay.spec import Model, Segment

TOKENS = {"n": "tokens", "b": "batch", "m": "source"}
REACHES = ("w", "chunk", "reach", "T")  # how far attention sees
Values = dict[str, int]


def free(made: Derivation) -> list[Letter]:
    """The letters that can be chosen."""
    return [letter for letter in made.legend if letter.definition is None]


def axis_of(letter: Letter) -> str:
    """The axis that a letter is of: f of f_2."""
    name = str(letter.symbol.name)
    base, mark, index = name.rpartition("_")
    return base if mark and index.isdigit() else name


def resized(model: Model, made: Derivation, values: Values) -> Model:
    """The same ops with the sizes that the letters of a derivation are given."""
    letters = free(made)
    often = {
        (stage.name, stage.layers): symbol.name
        for stage in made.stages
        for symbol in getattr(stage.often, "free_symbols", ())
    }

    def of(segment: Segment) -> Segment:
        block = segment.block
        sizes = dict(block.sizes)
        for axis, size in block.sizes.items():
            for letter in letters:
                known = (axis_of(letter), letter.value, letter.origin)
                if segment.name in letter.where and known == (axis, size, block.origins.get(axis, "")):
                    sizes[axis] = values[letter.symbol.name]
        layers = segment.layers
        name = often.get((segment.name, layers), "")
        if name in values:
            layers = tuple(range(values[name]))
        return replace(segment, block=replace(block, sizes=sizes), layers=layers)

    return replace(model, segments=tuple(map(of, model.segments)), positions=None, source_positions=None)


def setting(made: Derivation, values: Values) -> dict[str, int]:
    """What a count is asked, from the letters of a setting."""
    asked = {letter.symbol.name for letter in free(made) if not letter.where} - fixed(made).keys()
    given = {TOKENS[name]: values[name] for name in TOKENS if name in asked}
    for letter in contexts(made):
        given["tokens"] = values.get("n", 1)
        given["past"] = values[letter] - given["tokens"]
    if made.setting.source is not None and made.model.source_stride != 1:
        given["source"] = made.setting.source
    return given


def fixed(made: Derivation) -> dict[str, int]:
    """Letters of a setting that other settings follow from: images, positions of a source of frames."""
    model = made.model
    names = {"frames", "images", "image_tokens"} | ({"m"} if model.source_stride != 1 else set())
    if model.sight is not None and model.sight.alone is not None:
        names |= {"n"}
    known = {letter.symbol.name: letter.value for letter in free(made) if not letter.where}
    return {name: value for name, value in known.items() if name in names}


def drawn(made: Derivation, rng: random.Random) -> Values:
    """Sizes for all letters, those of a setting larger than widths, reaches now longer than they and now shorter."""
    values: Values = {}
    reach = rng.choice((90, 900))
    kept = fixed(made)
    for letter in free(made):
        name = letter.symbol.name
        axis = axis_of(letter)
        most = 9 if axis == "L" else reach if axis in REACHES else 40 if letter.where else 400
        values[name] = kept.get(name, rng.randint(2 if axis == "L" else 1, most))
    for context in contexts(made):
        values[context] += values.get("n", 1)  # the tokens that there are now, and others before them
    return values


def contexts(made: Derivation) -> list[str]:
    """The letter of past and present tokens, where there is one."""
    return [letter.symbol.name for letter in free(made) if axis_of(letter) == "c" and not letter.where]


def tied(made: Derivation, values: Values) -> Values | None:
    """The same with every tie of the model kept, None where two of them cannot both be."""
    values = dict(values)
    ties = [(sympy.sympify(tie.left), sympy.sympify(tie.right)) for tie in made.ties]
    ordered = sorted(ties, key=lambda tie: (tie[0].is_Symbol, not tie[1].is_number))

    def value(expression: Any) -> int:
        return int(expression.subs({symbol: values[symbol.name] for symbol in expression.free_symbols}))

    for left, right in [tie for tie in ties if tie[1].is_number]:
        values[str(left)] = int(right)
    held: set[str] = set()
    for left, right in ordered:
        if left.is_Symbol:
            values[str(left)] = value(right)
        elif str(right) not in held:
            held.add(str(right))
            values[str(right)] = value(left)
        else:  # two products are one size: the second one's first factor is what is left
            first, rest = left.as_two_terms()
            if not value(right) % value(rest) and first.is_Symbol:
                values[str(first)] = value(right) // value(rest)
    return values if all(value(left) == value(right) for left, right in ties) else None


def compiled(made: Derivation, expression: Any) -> Callable[[Values], int]:
    """An expression as a function of its letters' values, in exact integers."""
    whole = sympy.expand(made.unfolded(expression))
    if whole.has(sympy.floor):  # of exact fractions: a float may fall on the wrong side
        exactly = fractional(whole)
        return lambda values: whole_number(exactly(values))
    terms = sympy.Add.make_args(whole)
    common = math.lcm(*(int(sympy.fraction(term.as_coeff_Mul()[0])[1]) for term in terms))
    letters = [letter.symbol for letter in free(made)]
    function = sympy.lambdify(letters, sympy.expand(whole * common), modules=[{"Min": min, "Max": max}, "math"])

    def at(values: Values) -> int:
        top = function(*(values[letter.name] for letter in letters))
        if not isinstance(top, int):
            assert top == int(top), f"{top} is no integer"
        quotient, rest = divmod(int(top), common)
        assert not rest, f"{top} / {common} is no integer"
        return quotient

    return at


def fractional(expression: Any) -> Callable[[Values], Fraction]:
    """An expression as a function of its letters' values, in exact fractions."""
    constants = {one: sympy.Dummy() for one in expression.atoms(sympy.Rational) if not one.is_Integer}
    letters = sorted(expression.free_symbols, key=lambda symbol: str(symbol.name))
    given = [Fraction(int(one.p), int(one.q)) for one in constants]
    known = {"Min": min, "Max": max, "floor": math.floor, "ceiling": math.ceil}
    function = sympy.lambdify([*letters, *constants.values()], expression.xreplace(constants), modules=[known])
    return lambda values: Fraction(function(*(Fraction(values[letter.name]) for letter in letters), *given))


def whole_number(found: Fraction) -> int:
    """A fraction that is an integer."""
    assert found.denominator == 1, f"{found} is no integer"
    return int(found)


def bounding(made: Derivation) -> Callable[[Values], bool]:
    """True where the bounds that a closed form uses hold."""
    rooms = [fractional(made.unfolded(bound.high - bound.low)) for bound in made.bounds]
    return lambda values: all(room(values) >= 0 for room in rooms)
