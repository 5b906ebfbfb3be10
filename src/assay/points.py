"""Sizes at many points at once, of which a program decides what it would decide of each of them alone.

A program whose course hangs on its sizes says the same of an array as of each element only where it takes the same
course for all. So these arrays are asked: one has a truth where it is true, or false, at all its points; else the
points are told `Apart`, and each group is gone through by itself (`at_each`). Whatever is compared on the way, nothing
can be told of a point that is not told of it alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from assay.size import Size

EXACT = 2**53  # below it floats hold every integer

Tell = Callable[[dict[str, Size]], Mapping[str, Size]]


class Apart(Exception):  # noqa: N818 (no error, and nobody sees it)
    """At some points a program goes another way than at others: `groups` numbers the way of each."""

    def __init__(self, groups: Any) -> None:
        super().__init__("points of which something else holds")
        self.groups = groups


class Vast(Exception):  # noqa: N818 (the same)
    """A number came up that floats do not hold exactly."""


@cache
def _kinds() -> tuple[Any, Any]:
    """The classes of these arrays, made when there is NumPy: as they are, and floats that stay exact or raise Vast."""
    import numpy

    class Many(numpy.ndarray):  # type: ignore[misc,unused-ignore] # Any where there is no NumPy
        """A size at each of many points."""

        decides = True
        __hash__ = None  # type: ignore[assignment,unused-ignore] # what is looked up is compared instead

        def __bool__(self) -> bool:
            return bool(_one(self.astype(bool)))

        def __index__(self) -> int:
            return int(_one(self))

    for name in ("add", "sub", "mul", "floordiv", "mod"):  # what has another name, too, stays as it is
        setattr(Many, f"__i{name}__", getattr(Many, f"__{name}__"))

    class Sure(Many):
        """The same, a hundred times faster than an array of Python's integers is."""

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
            found = getattr(ufunc, method)(*(_base(one) for one in inputs), **more)
            if not isinstance(found, numpy.ndarray):
                return found
            if found.dtype.kind == "f" and not (abs(found) < EXACT).all():
                raise Vast
            return found.view(Sure)

    def _base(array: Any) -> Any:
        return array.view(numpy.ndarray) if isinstance(array, numpy.ndarray) else array

    def _one(array: Any) -> Any:
        """What an array holds at all its points. Raises Apart."""
        plain = _base(array)
        if plain.ndim == 0:
            return plain.item()
        if (plain == plain[0]).all():
            return plain[0]
        raise Apart(numpy.unique(plain, return_inverse=True)[1])

    return Many, Sure


def at_each(sizes: Mapping[str, Size], tell: Tell) -> dict[str, Size]:
    """What `tell` says at each of many points, given by arrays of one length among `sizes`, all of it by name.

    What `tell` makes is made with as few calls as there are courses that it takes. Figures are floats; of arrays of
    integers they are integers, exact at any magnitude: counted in floats where no number on the way is too large for
    that. Raises whatever `tell` raises.
    """
    arrays = {name: size for name, size in sizes.items() if hasattr(size, "dtype")}
    if not arrays:
        return dict(tell(dict(sizes)))
    numpy = sys.modules["numpy"]
    many = len(next(iter(arrays.values())))
    exact = any(size.dtype.kind == "O" for size in arrays.values())
    plain, sure = _kinds()
    made: dict[str, Size] = {}
    waiting = [(numpy.arange(many), sure if exact else plain)]
    while waiting:
        places, kind = waiting.pop()
        try:
            told = tell({**sizes, **{name: _taken(size[places], kind, sure) for name, size in arrays.items()}})
        except Apart as apart:
            waiting += [(places[apart.groups == group], kind) for group in range(apart.groups.max() + 1)]
            continue
        except Vast:
            waiting.append((places, plain))
            continue
        figures = {name: _figure(size, exact) for name, size in told.items()}
        if len(places) == many:
            return figures
        for name, figure in figures.items():
            if name not in made:
                made[name] = numpy.zeros(many, dtype=object if exact else float)
            made[name][places] = figure
    return made


def _taken(size: Any, kind: Any, sure: Any) -> Size:
    """A size at some points: a number where it is one at all of them."""
    first = size[0]
    if (size == first).all():
        return int(first)
    if kind is sure:
        if max(size) >= EXACT:
            raise Vast
        size = size.astype(float)
    return size.view(kind)


def _figure(size: Size, exact: bool) -> Size:
    """A figure as an array like others."""
    numpy = sys.modules["numpy"]
    if not isinstance(size, numpy.ndarray):
        return size
    plain = size.view(numpy.ndarray)
    return plain.astype("int64").astype(object) if exact and plain.dtype.kind == "f" else plain
