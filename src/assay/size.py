"""A size is an int, a NumPy array or a SymPy expression; this module alone asks which.

Ints and symbols are exact at any magnitude. NumPy's int64 wraps in silence at 9.2e18, so arrays
become float64 at the door (`lift`): a figure below 2**53 is exact, for kinds count sums and never differences of larger
numbers; beyond it each step is to 1e-16. An array of dtype object keeps its ints, exact at any magnitude and a hundred
times slower.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeGuard, TypeVar

from assay.errors import SizeError

# int | numpy.ndarray | sympy.Expr: neither library is imported unless the caller brought it
Size: TypeAlias = Any
Held = TypeVar("Held")


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _holds_ints(value: object) -> bool:
    """True for an array that keeps ints as they are."""
    return _is_array(value) and value.dtype.kind == "O"  # type: ignore[attr-defined]


def is_symbol(value: object) -> bool:
    """True for a SymPy expression that is not a plain number."""
    sympy = sys.modules.get("sympy")
    return sympy is not None and isinstance(value, sympy.Expr) and not value.is_number


def is_integer(value: object) -> TypeGuard[int]:
    """True for a plain integer: neither an array nor a symbol, nor true or false."""
    return isinstance(value, int) and not isinstance(value, bool)


def decides(value: object) -> bool:
    """True for what comparisons of sizes can be decided of: a plain integer, or sizes at points (`points`)."""
    return is_integer(value) or getattr(value, "decides", False) is True


def all_integers(values: Iterable[object]) -> bool:
    """True where each is a plain integer, which compares and sums as numbers do."""
    return all(type(value) is int for value in values)


def lift(value: object, name: str, least: int = 1) -> Size:
    """The size that `value` stands for: int, float64 array (one of ints where it is of dtype object) or symbol.

    Raises SizeError for a bool, a fraction, a value below `least`, NaN or an infinity.
    """
    if type(value) is int:
        if value < least:
            raise SizeError(f"{name} is {value}; it must be an integer of at least {least}")
        return value
    sympy = sys.modules.get("sympy")
    if sympy is not None and isinstance(value, sympy.Expr):
        if not value.is_number:
            return value
        if not value.is_integer:
            raise SizeError(f"{name} is {value}; it must be an integer of at least {least}")
        return lift(int(value), name, least)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return _lift_array(numpy, value, name, least)
    if isinstance(value, int) and not isinstance(value, bool):
        return lift(int(value), name, least)
    raise SizeError(f"{name} is {value!r}; it must be an integer of at least {least}, an array or a symbol")


def _lift_array(numpy: Any, value: Any, name: str, least: int) -> Size:
    if value.dtype == object:
        return _lift_ints(numpy, value, name, least)
    if value.dtype.kind not in "iuf":
        raise SizeError(f"{name} is an array of {value.dtype}; it must hold integers")
    lifted = numpy.asanyarray(value, dtype=numpy.float64)
    whole = numpy.isfinite(lifted) & (lifted == numpy.floor(lifted)) & (lifted >= least)
    if not whole.all():
        worst = lifted[~whole].flat[0]
        raise SizeError(f"{name} holds {worst:g}; every element must be an integer of at least {least}")
    return lifted if value.shape else int(value)


def _lift_ints(numpy: Any, value: Any, name: str, least: int) -> Size:
    """An array of ints as they are."""
    if set(map(type, value.flat)) == {int} and min(value.flat) >= least:
        return value if value.shape else value.item()
    kept = numpy.empty(value.shape, dtype=object)
    for place, element in enumerate(value.flat):
        if not is_integer(element) and not isinstance(element, numpy.integer):
            raise SizeError(f"{name} holds {element!r}; every element must be an integer of at least {least}")
        if element < least:
            raise SizeError(f"{name} holds {element}; every element must be an integer of at least {least}")
        kept.flat[place] = int(element)
    return kept if value.shape else kept.item()


def rate(value: object, name: str) -> Any:
    """A positive finite number, array or symbol that counts nothing, such as FLOPs per second. Raises SizeError."""
    if is_symbol(value):
        return value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.integer | numpy.floating):
        value = value.item()
    if _is_array(value):
        held: Any = value
        if held.dtype.kind in "iuf" and ((held > 0) & (held < math.inf)).all():
            return held.astype(float)
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return value
    raise SizeError(f"{name} is {value!r}; it must be a finite number above 0")


def fraction(value: object, name: str) -> Any:
    """A share above 0 and at most 1: a number, an array or a symbol. Raises SizeError."""
    try:
        found = rate(value, name)
    except SizeError:
        found = None
    if found is not None and not surely_above(found, 1):
        return found
    percent = f"; {found} % is {found / 100:g}" if isinstance(found, int | float) and 1 < found <= 100 else ""
    raise SizeError(f"{name} is {value}; it must be a fraction above 0 and at most 1{percent}")


def largest(values: Sequence[Size]) -> int:
    """The place of the largest of some sizes that decide, the first of several."""
    if not any(map(_is_array, values)):
        return max(range(len(values)), key=values.__getitem__)
    numpy = sys.modules["numpy"]
    best = next(value for value in values if _is_array(value)) * 0 + values[0]
    place = numpy.zeros_like(best, dtype=int)
    for index, value in enumerate(values[1:], 1):
        above = (value > best).view(numpy.ndarray)
        place[above] = index
        best = numpy.maximum(best, value)
    return operator.index(place)


def whole(value: Any) -> Any:
    """The integer below a number that counts something; an array or a symbol as it is."""
    return int(value) if isinstance(value, int | float) else value


def check_broadcast(sizes: Mapping[str, Size | None]) -> None:
    """Raises SizeError where arrays among the sizes have shapes that do not fit each other."""
    arrays: dict[str, Any] = {name: size for name, size in sizes.items() if _is_array(size)}
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(shapes) < 2:
        return
    try:
        sys.modules["numpy"].broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} is of shape {shape}" for name, shape in shapes.items())
        raise SizeError(f"{said}; arrays must have shapes that broadcast") from None


def shown(value: Any, spec: str) -> str:
    """A number in a format of numbers; an array or a symbol, which have none, as they are."""
    return str(value) if _is_array(value) or is_symbol(value) else format(value, spec)


def _are_ints(a: Size, b: Size) -> bool:
    return isinstance(a, int) and isinstance(b, int)


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes, element by element for arrays, `Min` for symbols."""
    if _are_ints(a, b):
        return a if a < b else b
    if _is_array(a) or _is_array(b):
        return sys.modules["numpy"].minimum(a, b)
    return _of_symbols("Min", a, b)


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes, element by element for arrays, `Max` for symbols."""
    if _are_ints(a, b):
        return a if a > b else b
    if _is_array(a) or _is_array(b):
        return sys.modules["numpy"].maximum(a, b)
    return _of_symbols("Max", a, b)


@lru_cache(maxsize=4096, typed=True)
def _of_symbols(name: str, a: Size, b: Size) -> Size:
    """A function of symbols: which of two may be smaller is much to ask, and asked again for each layer."""
    return getattr(sys.modules["sympy"], name)(a, b)


def exact_div(a: Size, b: Size) -> Size:
    """a / b where b is known to divide a. Raises SizeError where integers, or an array of them, leave a remainder."""
    if _are_ints(a, b):
        quotient, rest = divmod(a, b)
        if rest:
            raise SizeError(f"{a} does not divide by {b}")
        return quotient
    if _holds_ints(a) or _holds_ints(b):
        if (a % b).any():
            raise SizeError(f"not every element divides by {b}")
        return a // b
    return a / b


def per(a: Size, b: Size) -> Any:
    """a for each of b: an int where integers divide, of an array of ints each by itself, else a quotient."""
    if _holds_ints(a) or _holds_ints(b):
        return sys.modules["numpy"].frompyfunc(_per, 2, 1)(a, b)
    try:
        return exact_div(a, b)
    except SizeError:
        return a / b


def _per(a: int, b: int) -> int | float:
    quotient, rest = divmod(a, b)
    return a / b if rest else quotient


def floor_div(a: Size, b: Size) -> Size:
    """The integer part of a / b."""
    if _are_ints(a, b) or _is_array(a) or _is_array(b):
        return a // b
    return sys.modules["sympy"].floor(a / b)


def remainder(a: Size, b: Size) -> Size:
    """What a / b leaves; exact for arrays of any magnitude, as a less its multiple of b is not."""
    if _are_ints(a, b) or _is_array(a) or _is_array(b):
        return a % b
    return a - b * sys.modules["sympy"].floor(a / b)


def ceil_div(a: Size, b: Size) -> Size:
    """The least integer not below a / b."""
    return -floor_div(-a, b)


def only_at_zero(value: Size, where: Size, otherwise: Size = 0) -> Size:
    """`value` where `where` is 0, else 0 or another size."""
    if isinstance(where, int):
        return value if where == 0 else otherwise
    if _is_array(where):
        numpy = sys.modules["numpy"]
        kept = [numpy.asarray(a, dtype=object) if _holds_ints(where) else a for a in (value, otherwise)]
        return numpy.where(where == 0, *kept).view(type(where))
    sympy = sys.modules["sympy"]
    return sympy.Piecewise((value, sympy.Eq(where, 0)), (otherwise, True))


class Table(Generic[Held]):
    """Few values by keys that may hold sizes of any sort: keys are compared, not hashed."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, Held]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, key: object) -> Held | None:
        """The value of a key, None where there is none."""
        return next((value for known, value in self.rows if known == key), None)

    def add(self, key: object, value: Held) -> Held:
        """Enter the value of a key that has none."""
        self.rows.append((key, value))
        return value

    def values(self) -> list[Held]:
        """All values."""
        return [value for _, value in self.rows]

    def items(self) -> list[tuple[Any, Held]]:
        """Keys with their values."""
        return self.rows


def product(sizes: Iterable[Size]) -> Size:
    """The product, 1 for none; works on sizes that `math.prod` would wrap or force."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def same(a: Size | None, b: Size | None) -> bool:
    """True where two sizes are alike, arrays element by element; None is like None alone."""
    if _is_array(a) or _is_array(b):
        return bool(sys.modules["numpy"].array_equal(a, b))
    return bool(a == b)


def differ(a: Size, b: Size) -> bool:
    """True where two sizes are not alike somewhere, floats by more than what they are rounded by."""
    if not _is_array(a) and not _is_array(b):
        return bool(a != b)
    rounded = 0 if _holds_ints(a) or _holds_ints(b) else 1e-9 * abs(b)
    return bool((abs(a - b) > rounded).any())


def first_above(a: Size, b: Size) -> tuple[Size, Size]:
    """Of sizes of which a is surely above b somewhere: the two of the first such place."""
    if not _is_array(a) and not _is_array(b):
        return a, b
    over, under = sys.modules["numpy"].broadcast_arrays(a, b)
    place = (over > under).argmax()
    return int(over.flat[place]), int(under.flat[place])


def surely_above(a: Size, b: Size) -> bool:
    """True where a > b holds for a number or for some element; a symbol is never sure."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a > b
    if _is_array(a) or _is_array(b):
        return bool((a > b).any())
    return False


def witness(size: Size) -> int:
    """An integer that stands for a size where only whether it is 1 matters: a symbol, or an array, none of it 1.

    Raises SizeError for an array that holds 1 beside other sizes.
    """
    if is_integer(size):
        return int(size)
    if _is_array(size):
        ones = size == 1
        if ones.any() and not ones.all():
            raise SizeError("an array holds 1 beside larger sizes, of which not the same is kept; ask for 1 by itself")
        return int(size.flat[0])
    # a symbol is always the same large number, so that sizes that hold it fit each other
    spelled = {symbol: 1024 + 16 * (sum(map(ord, str(symbol))) % 97) for symbol in size.free_symbols}
    return int(size.subs(spelled))
