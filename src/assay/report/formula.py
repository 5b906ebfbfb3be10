"""A polynomial of SymPy as articles print it: 2n²(d_k + d_v) + 4n² - n(d_v + 1)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def symbol(name: str) -> Any:
    """A positive integer by that name. Raises ImportError without SymPy."""
    import sympy

    return sympy.Symbol(name, positive=True, integer=True)


def written(expression: Any, lead: Any) -> str:
    """The polynomial in descending powers of the symbol `lead`.

    Terms of one coefficient share a bracket; those of the highest power only with terms of their own degree, so
    that the dominant cost stands alone.
    """
    import sympy

    expanded = sympy.expand(expression)
    names = sorted(expanded.free_symbols - {lead}, key=str)
    if not names and lead not in expanded.free_symbols:
        return f"{int(expanded):,}"
    groups: dict[tuple[int, int, int], list[tuple[int, ...]]] = defaultdict(list)
    polynomial = sympy.Poly(expanded, lead, *names)
    highest = polynomial.degree(lead)
    for (power, *rest), coefficient in polynomial.terms():
        groups[power, sum(rest) if power == highest else 0, int(coefficient)].append(tuple(rest))
    ordered = sorted(groups.items(), key=lambda item: (-item[0][0], -_degree(item[1]), -item[0][2]))
    text = ""
    for (power, _, coefficient), terms in ordered:
        text += (" - " if text else "-") if coefficient < 0 else " + " if text else ""
        text += _term(abs(coefficient), (str(lead), power), terms, [str(n) for n in names])
    return text or "0"


def _degree(terms: list[tuple[int, ...]]) -> int:
    return max(map(sum, terms))


def _term(coefficient: int, lead: tuple[str, int], terms: list[tuple[int, ...]], names: list[str]) -> str:
    """coefficient · lead^power · what all terms share · (the sum of the rest)."""
    common = tuple(map(min, zip(*terms, strict=True))) if names else ()
    rests = [tuple(e - c for e, c in zip(term, common, strict=True)) for term in terms]
    outside = _monomial([lead, *zip(names, common, strict=True)])
    if len(rests) == 1:
        return (str(coefficient) if coefficient != 1 or not outside else "") + outside
    inside = " + ".join(_monomial(list(zip(names, rest, strict=True))) or "1" for rest in rests)
    return f"{coefficient if coefficient != 1 else ''}{outside}({inside})"


def _monomial(powers: list[tuple[str, int]]) -> str:
    """n²d: names of one letter stand side by side, longer ones apart."""
    text, before = "", ""
    for name, power in powers:
        if power:
            apart = before and (len(name) > 1 or len(before) > 1)
            text += (" " if apart else "") + name + (str(power).translate(_POWERS) if power > 1 else "")
            before = name if power == 1 else ""
    return text
