"""Where one amount comes to equal another as a length grows: in integers by search, in letters by roots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assay.readings.letters import Bound, algebra, binding, bound, symbols_of

MOST = 10**12  # tokens; what has not happened by then never does


def least(reached: Callable[[int], bool], most: int = MOST) -> int | None:
    """The fewest tokens from which something holds, None where it does not come to hold."""
    high = 1
    while not reached(high):
        high *= 2
        if high > most:
            return None
    return between(reached, high // 2, high)


def between(reached: Callable[[int], bool], low: int, high: int) -> int:
    """The fewest tokens above `low` from which something holds that holds at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def first(gap: Callable[[int], int], chunk: int | None = None) -> int | None:
    """The fewest tokens at which a difference is not below 0, None where it is everywhere.

    Keys at hand drop where a chunk begins: within one the difference is convex or rises, and so it does from the end
    of one chunk to the end of the next.
    """
    if chunk is None:
        return least(lambda n: gap(n) >= 0)
    full = least(lambda many: gap(many * chunk) >= 0, MOST // chunk)
    return None if full is None else between(lambda n: gap(n) >= 0, (full - 1) * chunk, full * chunk)


def lasting(gap: Callable[[int], int], at: int | None, chunk: int | None = None) -> int | None:
    """The fewest tokens from which on a difference is never below 0 again, `at` being the first; None if it always is.

    It falls below again within a chunk, or, where what does not grow with the length is there from the start, once.
    """
    if at is None or (at > 1 and chunk is None):
        return at
    wide = chunk or MOST

    def lowest(many: int) -> int:
        return bottom(gap, (many - 1) * wide + 1, many * wide)

    clear = least(lambda many: gap(lowest(many)) >= 0, MOST // wide) if chunk else 1 + (gap(lowest(1)) < 0)
    if clear is None or (clear > 1 and not chunk and gap(MOST) < 0):
        return None
    if clear == 1:
        return 1
    end = (clear - 1) * wide
    return between(lambda n: gap(n) >= 0, lowest(clear - 1), end) if gap(end) >= 0 else end + 1


def bottom(gap: Callable[[int], int], low: int, high: int) -> int:
    """Where a difference that is convex, or rises, is least."""
    while high > low:
        middle = (low + high) // 2
        low, high = (low, middle) if gap(middle) <= gap(middle + 1) else (middle + 1, high)
    return low


def roots_of(difference: Any, length: Any) -> list[Any]:
    """Where a difference is nothing, beside 0: none where letters stand in bounds, or powers are too far apart."""
    sympy = algebra()
    if difference == 0 or difference.has(sympy.Min, sympy.Max, sympy.floor, sympy.Piecewise):
        return []
    try:
        polynomial = sympy.Poly(difference, length)
    except sympy.PolynomialError:
        return []
    lowest = min(degree for (degree,), _ in polynomial.terms())
    third, second, first_ = (polynomial.coeff_monomial(length ** (lowest + power)) for power in range(3))
    if polynomial.degree() == lowest + 1:
        return [sympy.expand(sympy.cancel(-third / second))]
    if polynomial.degree() == lowest + 2:
        turn = sympy.sqrt(second**2 - 4 * first_ * third)
        return [(-second + turn) / (2 * first_), (-second - turn) / (2 * first_)]
    return []


def within_chunks(expression: Any, length: Any, at: int, values: Mapping[Any, Any]) -> tuple[Any, list[Bound]]:
    """An expression with how many chunks a length fills put as they are at `at`, and from where on it fills so many."""
    sympy = algebra()
    held = []
    for part in sympy.sympify(expression).atoms(sympy.floor):
        if length in part.free_symbols:
            many = part.xreplace({**values, length: sympy.Integer(at)})
            expression = expression.xreplace({part: many})
            over, under = sympy.fraction(sympy.together(part.args[0]))
            held.append(bound(many * under, over))
    return sympy.expand(expression), held


def reduced(difference: Any) -> Any:
    """A difference without what all of its terms have as a factor."""
    sympy = algebra()
    terms = sympy.expand(difference)
    if not terms.free_symbols:
        return sympy.sign(terms)
    _, rest = sympy.Poly(terms).terms_gcd()
    return (rest.primitive()[1] if rest.domain.is_ZZ else rest).as_expr()


def strictest(bounds: Iterable[Bound], length: Any) -> list[Bound]:
    """Those bounds on a length that do not follow from one of the others."""
    return [one for one in binding(bounds) if length in symbols_of(one.high - one.low)]
