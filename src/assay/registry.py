"""Rules by name: each is entered once, and a second one for a name is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from assay.errors import AssayError

T = TypeVar("T")


def entered(known: dict[str, T], names: Iterable[str], twice: Callable[[str], AssayError]) -> Callable[[T], T]:
    """A decorator: what it stands above is known by some names. Raises what `twice` makes of a name that is taken."""

    def enter(rule: T) -> T:
        for name in names:
            if name in known:
                raise twice(name)
            known[name] = rule
        return rule

    return enter
