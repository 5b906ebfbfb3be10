"""Frozen dataclasses that cost little to define.

The standard decorator compiles six methods a class and brings `inspect` along: with the project's sixty classes that
is most of what a short command spends. This one compiles `__init__` alone, once many instances are made, and shares
the rest; what `dataclasses` needs to work with an instance (`fields`, `replace`, `asdict`, `is_dataclass`) and the
signature are made when they are first asked for.
Classes are always frozen; equality and hash go by the fields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


class Missing:
    """No default."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class Field:
    """What `field` says of one attribute."""

    __slots__ = ("compare", "default", "default_factory", "init", "repr")

    def __init__(self, default: Any, default_factory: Any, init: bool, repr: bool, compare: bool) -> None:
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare


def field(
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | Missing = MISSING,
    init: bool = True,
    repr: bool = True,
    compare: bool = True,
) -> Any:
    """An attribute with more to say than a default, as `dataclasses.field`."""
    return Field(default, default_factory, init, repr, compare)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def dataclass(*, frozen: bool = True) -> Callable[[type[T]], type[T]]:
    """A class decorator, as `dataclasses.dataclass(frozen=True)`."""
    if not frozen:
        raise TypeError("records are frozen")
    return _record


def replace(record: T, **changes: Any) -> T:
    """A copy with some attributes changed, as `dataclasses.replace`."""
    kept = record.__dict__
    fields: dict[str, Field] = type(record).__record_fields__  # type: ignore[attr-defined]
    for name, spec in fields.items():
        if spec.init and name not in changes:
            changes[name] = kept[name]
    return type(record)(**changes)


def is_record(cls: object) -> bool:
    """True for a class made here, or an instance of one."""
    return hasattr(cls, "__record_fields__")


def defaults_of(cls: type) -> dict[str, Any]:
    """Name -> default of each field of a record, MISSING where there is none."""
    fields: dict[str, Field] = cls.__record_fields__  # type: ignore[attr-defined]
    return {name: spec.default for name, spec in fields.items() if spec.init}


def _written(cls: type, name: str) -> tuple[type, str]:
    """The class that declares a field, and its annotation as it is written there."""
    for base in cls.__mro__:
        if name in base.__dict__.get("__annotations__", {}):
            return base, base.__dict__["__annotations__"][name]
    raise TypeError(f"{cls.__name__} has no field {name}")


def annotation_of(cls: type, name: str) -> Any:
    """What a field of a record is annotated with, evaluated where its class was written."""
    base, text = _written(cls, name)
    return eval(text, vars(sys.modules[base.__module__]))  # noqa: S307 (an annotation of our own)


def _record(cls: type[T]) -> type[T]:
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields.update(base.__dict__.get("__record_fields__", {}))
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():
        if not annotation.startswith("ClassVar"):
            fields[name] = _declared(cls, name)
    space: dict[str, Any] = {"__init__": _init(cls, fields), "__record_fields__": fields}
    space["__match_args__"] = tuple(name for name, spec in fields.items() if spec.init)
    compared = [name for name, spec in fields.items() if spec.compare]
    key = attrgetter(*compared) if compared else lambda _: ()
    space["__record_key__"] = staticmethod(key)
    shared = (_eq, _hash, _repr, _setattr, _delattr, _getstate)
    names = ("__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__", "__getstate__")
    space |= {name: method for name, method in zip(names, shared, strict=True) if name not in cls.__dict__}
    space |= {"__dataclass_fields__": _OnDemand("__dataclass_fields__")}
    space |= {"__dataclass_params__": _OnDemand("__dataclass_params__")}
    space["__signature__"] = _Signature()
    for name, value in space.items():
        setattr(cls, name, value)
    return cls


def _declared(cls: type, name: str) -> Field:
    """The field of an annotation, its default left on the class as the standard decorator leaves it."""
    default = cls.__dict__.get(name, MISSING)
    if not isinstance(default, Field):
        return Field(default, MISSING, True, True, True)
    if default.default is MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, default.default)
    return default


FEW = 24  # instances made one field at a time: compiling costs as much as so many


def _init(cls: type, fields: dict[str, Field]) -> Any:
    """`__init__`: field by field for the first instances, then compiled; a short command makes few of most classes."""
    taken = {name: spec for name, spec in fields.items() if spec.init}
    names, lasting = tuple(taken), hasattr(cls, "__post_init__")
    left = FEW

    def first(self: Any, *args: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        values = self.__dict__
        given = dict(zip(names, args), **named)  # noqa: B905 (too many are seen below)
        for name, spec in taken.items():
            if name in given:
                values[name] = given[name]
            elif spec.default is not MISSING:
                values[name] = spec.default
            elif spec.default_factory is not MISSING:
                values[name] = spec.default_factory()
        plain = len(args) + len(named) == len(given) and len(values) == len(taken) and given.keys() <= taken.keys()
        if left and plain:
            if lasting:
                self.__post_init__()
            return
        values.clear()
        made = _compiled(cls, fields)  # which refuses arguments that do not fit
        cls.__init__ = made  # type: ignore[misc]
        made(self, *args, **named)

    return first


def _compiled(cls: type, fields: dict[str, Field]) -> Any:
    """`__init__` as source would have it: it runs for every block of every model."""
    space: dict[str, Any] = {"MISSING": MISSING}
    heads, body = ["self"], ["d = self.__dict__"]
    for name, spec in fields.items():
        if not spec.init:
            continue
        if spec.default is not MISSING:
            space[f"_{name}"] = spec.default
            heads.append(f"{name}=_{name}")
        elif spec.default_factory is not MISSING:
            space[f"_{name}"] = spec.default_factory
            heads.append(f"{name}=MISSING")
            body.append(f"if {name} is MISSING: {name} = _{name}()")
        else:
            heads.append(name)
        body.append(f"d['{name}'] = {name}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(heads)}):\n " + "\n ".join(body), space)  # noqa: S102 (names of our own classes)
    made = space["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self is other or self.__record_key__(self) == self.__record_key__(other)


def _hash(self: Any) -> int:
    """That of its fields, found once: records are looked up again and again."""
    known: int | None = self.__dict__.get(_HASH)
    if known is None:
        known = self.__dict__[_HASH] = hash(self.__record_key__(self))
    return known


def _getstate(self: Any) -> dict[str, Any]:
    """Without the hash, which another process makes otherwise."""
    return {name: value for name, value in self.__dict__.items() if name != _HASH}


_HASH = "__record_hash__"  # where an instance keeps it


def _repr(self: Any) -> str:
    shown = [f"{name}={getattr(self, name)!r}" for name, spec in self.__record_fields__.items() if spec.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _setattr(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _OnDemand:
    """What `dataclasses` keeps on a class, made from a standard twin of it on first use."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        import dataclasses

        space: dict[str, Any] = {"__annotations__": {}}
        for name, spec in owner.__record_fields__.items():  # type: ignore[attr-defined]
            space["__annotations__"][name] = _written(owner, name)[1]
            given = {"init": spec.init, "repr": spec.repr, "compare": spec.compare}
            if spec.default is not MISSING:
                given["default"] = spec.default
            if spec.default_factory is not MISSING:
                given["default_factory"] = spec.default_factory
            space[name] = dataclasses.field(**given)
        twin: Any = dataclasses.dataclass(frozen=True, eq=False)(type(owner.__name__, (), space))
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(owner, name, getattr(twin, name))
        return getattr(owner, self.name)


class _Signature:
    """What `inspect` tells of a class: the arguments that make an instance, as the compiled `__init__` has them."""

    def __get__(self, instance: object, owner: type) -> Any:
        import inspect

        fields: dict[str, Field] = owner.__record_fields__  # type: ignore[attr-defined]
        said = inspect.signature(_compiled(owner, fields))
        return said.replace(parameters=list(said.parameters.values())[1:])
