"""Formulas of sizes as text, as LaTeX, or with numbers in the place of letters.

Terms stand in the order in which the field writes them: of the highest degree first, of one degree those of fewer
tokens first; in a term layers, batch and tokens stand before widths: L(8nd² + 4n²d).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.readings.letters import bound
from assay.records import dataclass

_POWERS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_CEIL = (("⌈", r"\lceil "), ("⌉", r" \rceil"))
_BELOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")

# letters in the order in which a term has them; others stand behind these
ORDER = "L b images sounds frames n m M c t image_tokens keys pairs w chunk e a V d h g r k v f".split()
TOKENS = ("n", "m", "M", "c", "t", "image_tokens", "frames", "w", "chunk", "keys", "pairs")
FEW = ("L", "b", "images", "sounds", "h", "g", "r")  # what there are of something, which does not count as a degree


@dataclass(frozen=True)
class Script:
    """How a formula is written: letters, products, powers, functions."""

    latex: bool = False
    values: Mapping[Any, int] | None = None  # numbers in the place of letters

    def letter(self, symbol: Any) -> str:
        """A letter; a number behind it stands below the line."""
        if self.values is not None:
            return f"{self.values[symbol]:,}"
        name, index = split(symbol.name)
        if self.latex:
            plain = name.replace("_", r"\_")
            shown = plain if len(name) == 1 else rf"\mathit{{{plain}}}"
            return f"{shown}_{{{index}}}" if index else shown
        return name + index.translate(_BELOW)

    def power(self, base: str, exponent: Any) -> str:
        """base to an exponent."""
        if exponent == 1:
            return base
        return f"{base}^{{{exponent}}}" if self.latex else base + str(exponent).translate(_POWERS)

    def product(self, pieces: list[str]) -> str:
        """Pieces side by side; long names and numbers apart."""
        if self.values is not None:
            return " × ".join(pieces)
        if self.latex:
            return r" \, ".join(pieces) if any("mathit" in piece for piece in pieces) else " ".join(pieces)
        text, before = "", 0
        for piece in pieces:
            length = len(_bare(piece))
            text += ("·" if text and max(length, before) > 1 else "") + piece
            before = length
        return text

    def fraction(self, top: str, bottom: str, simple: bool) -> str:
        """top / bottom."""
        if self.latex:
            return rf"\frac{{{top}}}{{{bottom}}}"
        if self.values is not None:
            return f"{top} / {bottom}" if simple else f"{top} / ({bottom})"
        return f"{top}/{bottom}" if simple else f"{top}/({bottom})"

    def call(self, name: str, pieces: list[str]) -> str:
        """min(a, b)."""
        return f"{chr(92) if self.latex else ''}{name}({', '.join(pieces)})"

    def rounded(self, inner: str, up: bool) -> str:
        """⌊x⌋ or ⌈x⌉."""
        if self.latex:
            word = "ceil" if up else "floor"
            return rf"\left\l{word} {inner} \right\r{word}"
        return f"⌈{inner}⌉" if up else f"⌊{inner}⌋"

    @property
    def least(self) -> str:
        """The sign between what is at most as large and what it is held against."""
        return r"\le" if self.latex else "≤"

    def words(self, text: str) -> str:
        """Words between formulas."""
        return rf"\text{{{text}}}" if self.latex else text

    def cases(self, pieces: list[tuple[str, str]]) -> str:
        """Values, each with when it holds; of the last no other does."""
        if self.latex:
            rows = r" \\ ".join(rf"{value} & {condition or self.words('else')}" for value, condition in pieces)
            return rf"\begin{{cases}} {rows} \end{{cases}}"
        told = [f"{value} if {condition}" if condition else f"else {value}" for value, condition in pieces]
        return f"({', '.join(told)})"

    def keys(self, expression: str) -> str:
        """An expression of config keys and letters."""
        if not self.latex:
            return expression
        made = re.sub(r"[A-Za-z_][\w.]+", lambda key: rf"\mathtt{{{key[0].replace('_', chr(92) + '_')}}}", expression)
        for sign, command in (("·", r" \cdot "), ("−", "-"), ("⌊", r"\lfloor "), ("⌋", r" \rfloor"), *_CEIL):
            made = made.replace(sign, command)
        return made

    def number(self, value: int) -> str:
        """An integer."""
        return f"{value:,}".replace(",", "{,}") if self.latex else f"{value:,}"


TEXT = Script()
LATEX = Script(latex=True)


def split(name: str) -> tuple[str, str]:
    """A letter's name and the number behind it: f_2 is f, 2."""
    base, mark, index = name.rpartition("_")
    return (base, index) if mark and index.isdigit() else (name, "")


def _bare(piece: str) -> str:
    """A piece without numbers and what stands above or below the line."""
    return "".join(c for c in piece if c.isascii() and c.isalpha())


def rank(symbol: Any) -> tuple[int, str]:
    """Where a letter stands in a term."""
    name, _ = split(symbol.name)
    return (ORDER.index(name) if name in ORDER else len(ORDER), symbol.name)


def write(expression: Any, script: Script = TEXT) -> str:
    """A formula."""
    return joined(terms(expression, script), script)


def joined(pieces: list[tuple[bool, str]], script: Script = TEXT) -> str:
    """Terms with their signs between them."""
    minus = "-" if script.latex else "−"
    text = ""
    for positive, term in pieces:
        sign = (f" {'+' if positive else minus} ") if text else ("" if positive else minus)
        text += sign + term
    return text or "0"


def terms(expression: Any, script: Script = TEXT) -> list[tuple[bool, str]]:
    """The terms of a formula in order, each with whether it is added."""
    import sympy

    made = sympy.Add.make_args(sympy.expand(expression))
    parsed = sorted((_Term.of(term) for term in made if term != 0), key=lambda term: term.order)
    return [(term.coefficient > 0, term.write(script)) for term in parsed]


@dataclass(frozen=True)
class _Term:
    """A number times powers of letters and functions."""

    coefficient: Any
    factors: tuple[tuple[Any, Any], ...]

    @staticmethod
    def of(term: Any) -> _Term:
        import sympy

        coefficient, rest = term.as_coeff_Mul()
        powers = rest.as_powers_dict() if rest != 1 else {}
        factors = []
        for base, exponent in powers.items():
            if isinstance(base, sympy.floor) and base.args[0].could_extract_minus_sign() and exponent == 1:
                coefficient, base = -coefficient, sympy.ceiling(-base.args[0], evaluate=False)
            factors.append((base, exponent))
        return _Term(
            coefficient, tuple(sorted(factors, key=lambda f: rank(f[0]) if f[0].is_Symbol else (99, str(f[0]))))
        )

    @property
    def order(self) -> tuple[Any, ...]:
        """Highest degree first, fewest tokens first, then by letters."""
        degree = sum(exponent for base, exponent in self.factors if split(str(base))[0] not in FEW)
        tokens = sum(exponent for base, exponent in self.factors if split(str(base))[0] in TOKENS)
        return (
            -degree,
            tokens,
            bool(self.coefficient < 0),
            not self.factors,
            [(rank(base), -exponent) for base, exponent in self.factors if base.is_Symbol],
        )

    def write(self, script: Script) -> str:
        """Without its sign."""
        top, bottom = abs(self.coefficient).p, abs(self.coefficient).q
        above = [script.power(_base(base, script), e) for base, e in self.factors if e > 0]
        below = [script.power(_base(base, script), -e) for base, e in self.factors if e < 0]
        if top != 1 or not above:
            above = [script.number(top), *above]
            if script.values is None and len(above) > 1:
                first = f"{above[0]}{above[1]}" if not above[1][0].isdigit() else f"{above[0]}·{above[1]}"
                above = [first, *above[2:]] if not script.latex else [f"{above[0]} {above[1]}", *above[2:]]
        over = script.product(above)
        if bottom != 1:
            below = [script.number(bottom), *below]
        return script.fraction(over, script.product(below), len(below) == 1) if below else over


def _base(base: Any, script: Script) -> str:
    import sympy

    if base.is_Symbol:
        return script.letter(base)
    if isinstance(base, sympy.Min | sympy.Max):
        name = "min" if isinstance(base, sympy.Min) else "max"
        return script.call(name, [write(arg, script) for arg in sorted(base.args, key=str)])
    if isinstance(base, sympy.floor | sympy.ceiling):
        return script.rounded(write(base.args[0], script), isinstance(base, sympy.ceiling))
    if isinstance(base, sympy.Piecewise):
        return script.cases([(write(value, script), _condition(condition, script)) for value, condition in base.args])
    return f"({write(base, script)})" if base.args else str(base)


def _condition(condition: Any, script: Script) -> str:
    """When a case holds; nothing for the one that holds where no other does."""
    import sympy

    if condition == sympy.true:
        return ""
    if isinstance(condition, sympy.And | sympy.Or):
        word = " and " if isinstance(condition, sympy.And) else " or "
        return script.words(word).join(_condition(one, script) for one in condition.args)
    if isinstance(condition, sympy.Eq) and 0 in condition.args and any(map(_at_least_none, condition.args)):
        (over,) = [arg for one in condition.args if one != 0 for arg in one.args if arg != 0]
        room = bound(over, sympy.Integer(0))
        return f"{write(room.low, script)} {script.least} {write(room.high, script)}"
    return f"{write(condition.lhs, script)} = {write(condition.rhs, script)}"


def _at_least_none(expression: Any) -> bool:
    import sympy

    return isinstance(expression, sympy.Max) and len(expression.args) == 2 and 0 in expression.args


def quotient(expression: Any, script: Script = TEXT) -> str:
    """A formula, as one fraction where what it is divided by is a sum."""
    import sympy

    top, bottom = sympy.fraction(sympy.cancel(sympy.together(expression)))
    if not isinstance(sympy.expand(bottom), sympy.Add):
        return write(expression, script)
    pieces = []
    for factor in sympy.Mul.make_args(sympy.factor(bottom)):
        base, exponent = factor.as_base_exp()
        whole = f"({write(base, script)})" if isinstance(base, sympy.Add) else write(base, script)
        pieces.append(script.power(whole, exponent))
    pieces.sort(key=lambda piece: (piece.startswith("("), piece))
    below = pieces[0] if len(pieces) == 1 else f"({''.join(pieces)})"
    several = isinstance(sympy.expand(top), sympy.Add)
    return script.fraction(f"({write(top, script)})" if several else write(top, script), below, simple=True)
