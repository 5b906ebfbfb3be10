"""A table of a description as a frozen dataclass, field by field, by the fields' own annotations."""

from __future__ import annotations

import math
import types
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NoReturn, Union, get_args, get_origin

from assay.errors import SourceError
from assay.records import MISSING, annotation_of, defaults_of, is_record
from assay.sources.config import Config

Words = Mapping[type[Any], Mapping[str, Any]]


class Section(Config):
    """A table of a description. Laid over another, it remembers which of the two a key is from."""

    def __init__(
        self, data: Mapping[str, Any], where: str, prefix: str = "", origins: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(data, where, prefix)
        self.origins = origins or {}

    def within(self, data: Mapping[str, Any], prefix: str, origins: Mapping[str, str]) -> Section:
        """A table of the same file, whose defaults are its own as well."""
        made = Section(data, self.where, prefix, origins)
        made.among(self)
        return made

    def path(self, key: str) -> str:
        """A key as the file has it: below the layer's table where that set it."""
        whole = self.prefix + key
        part = whole
        while part:
            if part in self.origins:
                return self.origins[part] + whole
            part = part.rpartition(".")[0]
        return whole

    def child(self, key: str) -> Section:
        """The table under a key, empty where there is none. Raises SourceError."""
        value = self.data.get(key, {})
        self.used.add(key)
        if not isinstance(value, dict):
            self.fail(key, "a table")
        return self.within(value, f"{self.prefix}{key}.", self.origins)

    def number(self, key: str, default: float | None = None) -> float | None:
        """A finite number; absent is `default`."""
        if key not in self.data:
            self.used.add(key)
            return default
        if not _is_number(self.data[key]):
            self.fail(key, "a finite number")
        return float(self.data[key])

    def known(self, names: Iterable[str]) -> None:
        """Raise SourceError for a key that is none of `names`, with the nearest one."""
        allowed = list(names)
        for key in self.data:
            if key not in allowed:
                self.refuse(key, "is no key of a description", key, allowed)

    def refuse(self, key: str, why: str, word: str, allowed: Collection[str]) -> NoReturn:
        """Raise SourceError for a word that is none of those allowed: the nearest one, or all of them."""
        import difflib

        near = difflib.get_close_matches(word, allowed, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(allowed) or 'none'}"
        raise SourceError(f"{self.where}: {self.path(key)} {why}; {hint}")

    def block(self, key: str, cls: type[Any], words: Mapping[str, Any], default: Any, **how: Any) -> Any:
        """What a word stands for, or a table of the fields of `cls` over `default` (over the word under `kind`)."""
        value = self.data.get(key, default)
        self.used.add(key)
        if not isinstance(value, dict):
            return value if key not in self.data else words[self._word(key, words)]
        table = self.child(key)
        table.known(defaults_of(cls))
        base = words.get(value["kind"], default) if isinstance(value.get("kind"), str) else default
        return build(cls, table, {}, base, words={cls: words}, **how)

    def _word(self, key: str, words: Collection[str]) -> str:
        value = self.data[key]
        if not isinstance(value, str) or value not in words:
            self.fail(key, f"one of {', '.join(sorted(words))}, or a table")
        return value

    def overlaid(self, data: Mapping[str, Any], tables: Section, kinds: Iterable[str]) -> Section:
        """`data` with the tables of some kinds laid over it, one after the other."""
        merged, origins = dict(data), dict(self.origins)
        for kind in kinds:
            table = tables.child(kind)
            _lay(merged, table.data, "", table.prefix, origins)
        return self.within(merged, self.prefix, origins)


def _lay(below: dict[str, Any], above: Mapping[str, Any], path: str, prefix: str, origins: dict[str, str]) -> None:
    """Tables merge, anything else replaces."""
    for key, value in above.items():
        known = below.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            below[key] = merged = dict(known)
            _lay(merged, value, f"{path}{key}.", prefix, origins)
        else:
            below[key] = value
            origins[path + key] = prefix


def build(
    cls: type[Any],
    c: Section,
    given: Mapping[str, Any],
    base: Any = None,
    *,
    words: Words,
    norm: Any = None,
    letters: str = "",
    skip: Collection[str] = (),
) -> Any:
    """An instance of a frozen dataclass from a table: `given` as it is, the rest from the table, else from `base`,
    else the field's default. `norm` is what `true` stands for where a norm may be; `letters` are those of `bias`.
    """
    made = dict(given)
    reader = Reader(c, words, norm, letters)
    for name, default in defaults_of(cls).items():
        if name in given or name in skip:
            continue
        if base is not None:
            default = getattr(base, name)
        elif norm is not None and isinstance(default, type(norm)):
            default = norm  # a block that norms something within does it as its layer does
        made[name] = reader.read(name, default, cls)
    return cls(**made)


class Reader:
    """Reads a key of a table as its annotation says."""

    def __init__(self, c: Section, words: Words, norm: Any, letters: str) -> None:
        self.c = c
        self.words = words
        self.norm = norm
        self.letters = letters

    def read(self, key: str, default: Any, cls: type[Any]) -> Any:
        """The value of a key of `cls`. Raises SourceError."""
        if key not in self.c.data and default is not MISSING:
            self.c.used.add(key)
            return self.c.sized(key, default) if type(default) is int else default
        hint = annotation_of(cls, key)
        options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        if type(None) in options and self.c.data.get(key) == "none":
            return None
        nested = [option for option in options if is_record(option)]
        if nested:
            return self.nested(key, nested[0], default)
        return self.plain(key, options[0])

    def nested(self, key: str, cls: Any, default: Any) -> Any:
        """A block within a block: true, a word or a table."""
        if key not in self.c.data:
            self.c.fail(key, "a table")
        usual = self.norm if isinstance(self.norm, cls) else None if default is MISSING else default
        if self.c.data[key] is True and isinstance(self.norm, cls):
            return self.norm
        return self.c.block(key, cls, self.words.get(cls, {}), usual, norm=self.norm)

    def plain(self, key: str, hint: Any) -> Any:
        """A size, a number, a flag, a word, a list of numbers or a table of them."""
        if get_origin(hint) is Literal:
            return self.c.word(key, None, get_args(hint))
        if get_origin(hint) is tuple:
            return self.several(key, get_args(hint))
        if hint is str and key.endswith("bias"):
            return self.biases(key)
        read: Any = READERS[hint]
        return read(self.c, key)

    def several(self, key: str, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """A list of as many numbers or words, or a table of names and numbers."""
        if items[-1] is Ellipsis:
            return self.many(key, items[0])
        kinds = [_sort(item) for item in items]
        value = self.c.data[key]
        if not isinstance(value, list) or len(value) != len(items) or not all(map(_fits, value, items)):
            self.c.fail(key, f"a list: {'; '.join(kinds)}")
        return tuple(v if isinstance(v, str) else float(v) for v in value)

    def many(self, key: str, item: Any) -> tuple[Any, ...]:
        """A list of numbers or words of any length, or a table of names and numbers."""
        if item in (float, str):
            kind = "words" if item is str else "finite numbers"
            return tuple(self.c.sequence(key, lambda v: _fits(v, item), kind) or ())
        table = self.c.child(key)
        read = table.size if get_args(item)[1] is int else table.number
        return tuple((name, read(name)) for name in table.data)

    def biases(self, key: str) -> str:
        """True for all, false for none, or the letters of those that have one."""
        value = self.c.data[key]
        if isinstance(value, bool):
            return self.letters if value else ""
        if not isinstance(value, str) or not set(value) <= set(self.letters):
            self.c.fail(key, f"true, false or some of the letters {self.letters}")
        return value


def _word(c: Section, key: str) -> str:
    """A word; an activation is one of those that there are."""
    from assay.kinds.pointwise import ACTIVATIONS

    return c.word(key, None, ACTIVATIONS if key.endswith("activation") else ())


def _free(c: Section, key: str) -> Any:
    """A table kept for execution, as nested tuples so that specs stay hashable."""
    return _frozen(c.child(key).data)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _sort(item: Any) -> str:
    """What a list holds at a place, in a message."""
    if get_origin(item) is Literal:
        return f"one of {', '.join(map(str, get_args(item)))}"
    return "a word" if item is str else "a finite number"


def _fits(value: object, item: Any) -> bool:
    if get_origin(item) is Literal:
        return isinstance(value, str) and value in get_args(item)
    return isinstance(value, str) if item is str else _is_number(value)


def _is_number(value: object) -> bool:
    """Finite as a float: an integer of a thousand digits is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


READERS: dict[Any, Any] = {
    int: lambda c, key: c.size(key),
    float: lambda c, key: c.number(key),
    bool: lambda c, key: c.flag(key, False),
    str: _word,
    Any: _free,
}
