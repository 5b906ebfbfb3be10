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

Tell = Callable[[dict[str, Size]], Mapping[str, Size]]


class Apart(Exception):  # noqa: N818 (no error, and nobody sees it)
    """At some points a program goes another way than at others: `groups` numbers the way of each."""

    def __init__(self, groups: Any) -> None:
        super().__init__("points of which something else holds")
        self.groups = groups


@cache
def _kind() -> Any:
    """The class of these arrays, made when there is NumPy."""
    import numpy

    class Many(numpy.ndarray):
        """A size at each of many points."""

        decides = True
        __hash__ = None  # what is looked up is compared instead

        def __bool__(self) -> bool:
            return bool(_one(self.astype(bool)))

        def __index__(self) -> int:
            return int(_one(self))

    for name in ("add", "sub", "mul", "floordiv", "mod"):  # what has another name, too, stays as it is
        setattr(Many, f"__i{name}__", getattr(Many, f"__{name}__"))

    def _one(array: Any) -> Any:
        """What an array holds at all its points. Raises Apart."""
        plain = array.view(numpy.ndarray)
        if plain.ndim == 0:
            return plain.item()
        if (plain == plain[0]).all():
            return plain[0]
        raise Apart(numpy.unique(plain, return_inverse=True)[1])

    return Many


def at_each(sizes: Mapping[str, Size], tell: Tell) -> dict[str, Size]:
    """What `tell` says at each of many points, given by arrays of one length among `sizes`, all of it by name.

    What `tell` makes is made with as few calls as there are courses that it takes. Raises whatever it raises.
    """
    arrays = {name: size for name, size in sizes.items() if hasattr(size, "dtype")}
    if not arrays:
        return dict(tell(dict(sizes)))
    numpy = sys.modules["numpy"]
    many = len(next(iter(arrays.values())))
    exact = any(size.dtype.kind == "O" for size in arrays.values())
    made: dict[str, Size] = {}
    waiting = [numpy.arange(many)]
    while waiting:
        places = waiting.pop()
        try:
            told = tell({**sizes, **{name: _taken(size[places]) for name, size in arrays.items()}})
        except Apart as apart:
            waiting += [places[apart.groups == group] for group in range(apart.groups.max() + 1)]
            continue
        if len(places) == many:
            return {name: _plain(size) for name, size in told.items()}
        for name, size in told.items():
            if name not in made:
                made[name] = numpy.zeros(many, dtype=object if exact else float)
            made[name][places] = _plain(size)
    return made


def _taken(size: Any) -> Size:
    """A size at some points: a number where it is one at all of them."""
    first = size[0]
    return int(first) if (size == first).all() else size.view(_kind())


def _plain(size: Size) -> Size:
    """A figure as an array like others."""
    numpy = sys.modules["numpy"]
    return size.view(numpy.ndarray) if isinstance(size, numpy.ndarray) else size
