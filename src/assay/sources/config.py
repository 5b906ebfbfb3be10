"""A config.json under examination: every key is asked for by name and type, and what nobody asked for is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from assay.errors import SourceError
from assay.records import replace
from assay.sources.shown import short
from assay.spec import Model, Segment

LARGEST = 10**12  # no width, depth or vocabulary is larger: a value beyond is a slip
DEPTH = 100_000  # nor is a model deeper


class Read(int):
    """An integer that remembers the config key it was read from, and of a sum, product or quotient what it is of.

    `key` is the key, or an expression of keys: `hidden_size/num_attention_heads`.
    """

    _key: str | tuple[int, str, int]

    def __new__(cls, value: int, key: str | tuple[int, str, int]) -> Read:
        """The value and its key, or the two sides and the sign that it is of, written out once it is asked for."""
        self = super().__new__(cls, value)
        self._key = key
        return self

    @property
    def key(self) -> str:
        """The key, or the expression of keys."""
        if isinstance(self._key, tuple):
            self._key = _written(int(self), *self._key)
        return self._key

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]  # int's own has the value alone
        return int(self), self.key

    def __add__(self, other: int, /) -> int:
        return _made(int.__add__(self, other), self, " + ", other)

    def __radd__(self, other: int, /) -> int:
        return _made(int.__radd__(self, other), other, " + ", self)

    def __sub__(self, other: int, /) -> int:
        return _made(int.__sub__(self, other), self, " − ", other)

    def __rsub__(self, other: int, /) -> int:
        return _made(int.__rsub__(self, other), other, " − ", self)

    def __mul__(self, other: int, /) -> int:
        return _made(int.__mul__(self, other), self, "·", other)

    def __rmul__(self, other: int, /) -> int:
        return _made(int.__rmul__(self, other), other, "·", self)

    def __floordiv__(self, other: int, /) -> int:
        return _made(int.__floordiv__(self, other), self, "/", other)

    def __rfloordiv__(self, other: int, /) -> int:
        return _made(int.__rfloordiv__(self, other), other, "/", self)


def fraction_of(size: int, share: float) -> int:
    """A share of a size, rounded down, that remembers the keys which the size is of."""
    made = int(size * share)
    return Read(made, f"{share:g}·{_side(size, ' ')}") if isinstance(size, Read) and made else made


# what leaves the other side as it is, on the right of the sign and on the left of it
_IDLE = {" + ": (0, 0), " − ": (0, None), "·": (1, 1), "/": (1, None)}


def plain(model: Model) -> Model:
    """The model with plain integers, which its readings give on: keys are kept beside the sizes of its blocks."""
    found = {name: _plain(value) for name, value in vars(model).items() if isinstance(value, Read)}
    if model.sight is not None:
        found["sight"] = replace(model.sight, **{name: _plain(value) for name, value in vars(model.sight).items()})
    return replace(model, segments=tuple(map(_settled, model.segments)), **found)


def _settled(segment: Segment) -> Segment:
    if not segment.axes and not isinstance(segment.passes, Read):
        return segment
    return replace(segment, axes=_plain(segment.axes), passes=int(segment.passes))


def _plain(value: Any) -> Any:
    if isinstance(value, Read):
        return int(value)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return {key: _plain(one) for key, one in value.items()} if isinstance(value, Mapping) else value


def _made(value: Any, left: int, sign: str, right: int) -> int:
    """The result of arithmetic, with the expression it is of; without one where a number in it is negative."""
    if value is NotImplemented or left < 0 or right < 0 or value < 0 or type(left) is bool or type(right) is bool:
        plain: int = value  # NotImplemented among it: the other side knows
        return plain
    after, before = _IDLE[sign]
    if isinstance(left, Read) and right == after and not isinstance(right, Read):
        return Read(value, left._key)
    if isinstance(right, Read) and left == before and not isinstance(left, Read):
        return Read(value, right._key)
    return Read(value, (left, sign, right))


def _written(value: int, left: int, sign: str, right: int) -> str:
    """A sum, difference, product or quotient."""
    inner = {" + ": "", " − ": " ", "·": " /", "/": " ·/"}[sign]  # signs on the right that need brackets
    text = f"{_side(left, '' if sign in ' + − ' else ' ')}{sign}{_side(right, inner)}"
    return f"⌊{text}⌋" if sign == "/" and value * right != left else text


def _side(side: int, signs: str) -> str:
    """The key of a number, or its digits; in brackets where one of some signs stands in it outside of brackets."""
    text = side.key if isinstance(side, Read) else str(side)
    if not any(map(text.__contains__, signs)):
        return text
    depth, open_ = 0, False
    for char in text:
        depth += (char in "(⌊") - (char in ")⌋")
        open_ = open_ or (not depth and char in signs)
    return f"({text})" if open_ else text


class Config:
    """Typed access to a config, with one clear line for what does not fit: file, key, value, what is allowed."""

    def __init__(self, data: Mapping[str, Any], where: str, prefix: str = "") -> None:
        self.data = data
        self.given = tuple(data)
        self.where = where
        self.prefix = prefix
        self.used: set[str] = set()
        self.children: dict[str, Config] = {}
        self.mtp = False  # modules that predict further tokens are asked for
        self.notes: list[str] = []  # what a report says of what was read
        self.starts: dict[str, float] = {}  # deviations of the initial values of tensors, by how their names end
        self.written: dict[str, str] = {}  # the key that a renamed one has in the file
        self.read: dict[str, Any] = {}  # what was asked for and taken, absent keys' own values among it
        # of children as well, with their tables: keys whose sizes are the class's own, and how many layers keys say
        self.unsaid: dict[str, None] = {}
        self.depths: dict[str, int] = {}

    def path(self, key: str) -> str:
        """A key as the file has it, below the tables that hold it."""
        return self.prefix + self.written.get(key, key)

    def fail(self, key: str, allowed: str) -> NoReturn:
        """Raise SourceError for the value of a key."""
        if key in self.data:
            raise SourceError(f"{self.where}: {self.path(key)} is {short(self.data[key])}; it must be {allowed}")
        raise SourceError(f"{self.where}: {self.path(key)} is missing; it must be {allowed}")

    def has(self, key: str) -> bool:
        """True where the key holds something other than null."""
        self.used.add(key)
        return self.data.get(key) is not None

    def _get(self, key: str, default: Any, allowed: str, fits: Callable[[Any], bool]) -> Any:
        self.used.add(key)
        if key not in self.data and default is not _REQUIRED:
            self.read[key] = default
            return default
        value = self.data.get(key)
        if key not in self.data or not fits(value):
            self.fail(key, allowed)
        self.read[key] = value
        return value

    def size(self, key: str, default: Any = None, *, least: int = 1, most: int = LARGEST) -> Read:
        """An integer; absent is `default`, the value that the config class has."""
        value = self._get(
            key,
            _REQUIRED if default is None else default,
            f"an integer of at least {least}",
            lambda v: _is_int(v) and v >= least,
        )
        if value > most:
            self.fail(key, f"an integer of at most {most}")
        return self.sized(key, value)

    def depth(self, key: str, default: int | None = None) -> Read:
        """How many layers there are."""
        made = self.size(key, default, most=DEPTH)
        self.depths[made.key] = int(made)
        return made

    def sized(self, key: str, value: int) -> Read:
        """A size with the key that it is from: the one of another key's where that was read in its place."""
        if isinstance(value, Read):
            return value
        if key not in self.given and key not in self.written:
            self.unsaid[self.path(key)] = None
        return Read(value, self.path(key))

    def maybe(self, key: str, default: int | None = None, *, least: int = 1) -> Read | None:
        """An integer or null; absent is `default`."""
        self.used.add(key)
        if key not in self.data and default is not None:
            return self.size(key, default, least=least)
        return self.size(key, least=least) if self.has(key) else None

    def flag(self, key: str, default: bool) -> bool:
        """True or false; absent is `default`."""
        return bool(self._get(key, default, "true or false", lambda v: isinstance(v, bool)))

    def number(self, key: str, default: float | None = None) -> float | None:
        """A number, or null; absent is `default`."""
        value = self._get(key, default, "a number", lambda v: v is None or _is_number(v))
        return None if value is None else float(value)

    def positive(self, key: str, default: float) -> float:
        """A finite number above zero; absent is `default`."""
        return float(self._get(key, default, "a number above 0", lambda v: _is_number(v) and 0 < v < math.inf))

    def inert(self, key: str, *values: Any) -> None:
        """A key that changes nothing while it is null or one of `values`, and is not modelled beyond."""
        if self.has(key) and not any(self.data[key] == v and _sort(self.data[key]) is _sort(v) for v in values):
            listed = ", ".join(short(v) for v in values)
            self.fail(key, f"{listed} or null for this model_type" if listed else "null for this model_type")

    def word(self, key: str, default: str | None, allowed: Collection[str] = ()) -> str:
        """A string, one of `allowed` where that is given; absent is `default`."""
        listed = f"one of {', '.join(sorted(allowed))}" if allowed else "a string"
        needed = _REQUIRED if default is None else default
        return str(self._get(key, needed, listed, lambda v: isinstance(v, str) and (not allowed or v in allowed)))

    def sequence(
        self, key: str, fits: Callable[[Any], bool], allowed: str, length: int | None = None
    ) -> list[Any] | None:
        """A list whose items fit, of `length` where given; null or absent is None."""
        if not self.has(key):
            return None
        wanted = f"a list of {allowed}" if length is None else f"a list of {length} items, each {allowed}"
        value = self._get(key, _REQUIRED, wanted, lambda v: isinstance(v, list) and all(_held(fits, one) for one in v))
        if length is not None and len(value) != length:
            raise SourceError(f"{self.where}: {self.path(key)} has {len(value)} items; it must be {wanted}")
        return [Read(one, self.path(key)) if type(one) is int else one for one in value]

    def table(self, key: str) -> dict[str, Any] | None:
        """An object, or null."""
        if not self.has(key):
            return None
        return dict(self._get(key, _REQUIRED, "an object", lambda v: isinstance(v, dict)))

    def child(self, key: str) -> Config:
        """The config nested under a key; what nobody asks it for is unread here too."""
        if key not in self.children:
            self.children[key] = made = Config(self.table(key) or {}, self.where, f"{self.prefix}{key}.")
            made.among(self)
        return self.children[key]

    def among(self, whole: Config) -> None:
        """Be a part of the same file: what is known of its keys is kept together."""
        self.unsaid, self.depths = whole.unsaid, whole.depths

    def divides(self, key: str, value: int, by: str, parts: int) -> int:
        """value / parts. Raises SourceError naming both keys where that leaves a rest."""
        if value % parts:
            rule = f"a multiple of {self.path(by)}, {int(parts)}"
            raise SourceError(f"{self.where}: {self.path(key)} is {int(value)}; it must be {rule}")
        return value // parts

    def rename(self, **names: str) -> None:
        """Read older keys under today's names: `rename(n_embd="hidden_size")`. Both may stand if they agree."""
        for old, new in names.items():
            value = self.data.get(old)
            if old not in self.data:
                continue
            self.used.add(old)
            if value is None:
                continue
            said = new in self.given or new in self.written  # otherwise it is the class's own value
            known = self.data.get(new) if said else None
            if known is not None and known != value:
                raise SourceError(
                    f"{self.where}: {self.prefix}{old} is {short(value)} and {self.prefix}{new} is {short(known)}; "
                    f"they name one thing and must agree"
                )
            if known is None:
                self.data = {**self.data, new: value}
                self.written[new] = self.written.get(old, old)

    def absent(self, **defaults: Any) -> None:
        """The config class's own values for keys that the file lacks."""
        self.data = {**defaults, **self.data}

    def skip(self, *keys: str) -> None:
        """Keys that change values and not sizes, or nothing that is counted."""
        self.used.update(keys)

    def remaining(self) -> dict[str, Any]:
        """Keys and values that nobody asked for; those within a table that was read are written `table.key`."""
        own = {key: self.data[key] for key in self.given if key not in self.used}
        for name, child in self.children.items():
            own |= {f"{name}.{key}": value for key, value in child.remaining().items() if value is not None}
        return own

    def holder(self, path: str) -> Config:
        """The table that holds a key of `remaining`."""
        child, dot, rest = path.partition(".")
        return self.children[child].holder(rest) if dot and child in self.children else self

    def unread(self) -> list[str]:
        """The keys nobody asked for."""
        return list(self.remaining())


class _Required:
    """No default: the key must be there."""


_REQUIRED = _Required()


def _held(fits: Callable[[Any], bool], value: object) -> bool:
    """Whether a value fits; one that cannot be looked up among words, a list say, does not."""
    try:
        return fits(value)
    except TypeError:
        return False


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    """A finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _LARGEST_FLOAT  # false for NaN, too


_LARGEST_FLOAT = 1e308


def _sort(value: Any) -> type:
    """The type of a value in JSON: an integer that was read from another key is one as well."""
    return int if isinstance(value, int) and not isinstance(value, bool) else type(value)
