"""Records behave as the standard library's frozen dataclasses, and are taken for them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

import assay
from assay.records import FEW, dataclass, field, replace


@dataclass(frozen=True)
class Point:
    """A record with every sort of field."""

    x: int
    y: int = 2
    tags: dict[str, int] = field(default_factory=dict, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        """Derive a field."""
        object.__setattr__(self, "size", self.x + self.y)


@dataclass(frozen=True)
class Named(Point):
    """A record of a record."""

    name: str = "n"


@dataclasses.dataclass(frozen=True)
class Standard:
    """The same by the standard library."""

    x: int
    y: int = 2
    tags: dict[str, int] = dataclasses.field(default_factory=dict, compare=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        """Derive a field."""
        object.__setattr__(self, "size", self.x + self.y)


def test_it_is_taken_for_a_standard_dataclass() -> None:
    known: Any = Point  # a checker of types knows it for a dataclass already
    assert known.__dataclass_params__.frozen
    assert dataclasses.is_dataclass(known)
    ours, theirs = dataclasses.fields(known), dataclasses.fields(Standard)
    assert [(f.name, f.init, f.repr, f.compare, f.type) for f in ours] == [
        (f.name, f.init, f.repr, f.compare, f.type) for f in theirs
    ]
    point: Any = Point(1)
    assert dataclasses.asdict(point) == dataclasses.asdict(Standard(1))
    assert dataclasses.replace(point, x=5) == Point(5)


def test_repr_equality_and_hash() -> None:
    assert repr(Point(1)) == repr(Standard(1)).replace("Standard", "Point")
    assert Point(1, tags={"a": 1}) == Point(1)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Point(2)
    assert Point(1) != Standard(1)  # type: ignore[comparison-overlap]
    assert Named(1) != Point(1)
    assert Named(1, name="m").size == 3
    assert {Point(1): "found"}[Point(1, 2)] == "found"


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        Point(1).x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del Point(1).x
    with pytest.raises(TypeError, match="records are frozen"):
        dataclass(frozen=False)


def test_defaults_are_not_shared_and_arguments_are_checked() -> None:
    assert Point(1).tags is not Point(1).tags
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=1)  # type: ignore[call-arg]


def test_replace_copy_pickle_and_match() -> None:
    named = Named(1, name="m")
    assert replace(named, y=7) == Named(1, 7, name="m")
    assert replace(named, y=7).size == 8
    assert copy.deepcopy(named) == named
    assert pickle.loads(pickle.dumps(named)) == named
    match Point(4):
        case Point(x, y):
            assert (x, y) == (4, 2)


def test_the_signature_is_known_before_and_after_the_first_instance() -> None:
    @dataclass(frozen=True)
    class Fresh:
        """A record that nobody has made."""

        x: int
        y: int = 2

    for _ in range(2):
        assert [(p.name, p.default) for p in inspect.signature(Fresh).parameters.values()] == [
            ("x", inspect.Parameter.empty),
            ("y", 2),
        ]
        assert Fresh(1, y=3) == Fresh(x=1, y=3)
        with pytest.raises(TypeError, match=r"Fresh.__init__\(\) got an unexpected keyword argument 'z'"):
            Fresh(1, z=3)  # type: ignore[call-arg]


def test_first_instances_are_as_later_ones() -> None:
    @dataclass(frozen=True)
    class Fresh:
        """Made field by field, then by what was compiled."""

        x: int
        y: int = 2
        tags: dict[str, int] = field(default_factory=dict)

    makers: list[Any] = []
    for index in range(FEW + 2):
        makers.append(Fresh.__init__)
        assert Fresh(index, tags={"a": 1}).__dict__ == {"x": index, "y": 2, "tags": {"a": 1}}
    assert makers[0] is makers[FEW - 1] is not makers[FEW]
    assert makers[FEW] is makers[FEW + 1]


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((), {"y": 1}, r"missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, r"takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"x": 2}, r"got multiple values for argument 'x'"),
        ((1,), {"z": 2}, r"got an unexpected keyword argument 'z'"),
    ],
)
def test_the_first_instance_takes_no_other_arguments(given: Any, named: Any, said: str) -> None:
    @dataclass(frozen=True)
    class Fresh:
        """A record that nobody has made."""

        x: int
        y: int = 2

    with pytest.raises(TypeError, match=rf"Fresh\.__init__\(\) {said}"):
        Fresh(*given, **named)


def test_no_module_brings_the_standard_ones() -> None:
    """They cost a short command more than all else it does; this project's own module asks for them when it must."""
    source = Path(assay.__file__).parent
    brought = re.compile(r"^(from|import) dataclasses\b", re.MULTILINE)
    assert [path.name for path in source.rglob("*.py") if brought.search(path.read_text(encoding="utf-8"))] == []


def test_a_hash_is_found_once_and_stays_in_its_process() -> None:
    named = Named(1, name="m")
    assert hash(named) == hash(Named(1, name="m")) == hash(copy.copy(named))
    assert replace(named, y=7) == Named(1, 7, name="m")
    assert hash(replace(named, y=7)) == hash(Named(1, 7, name="m")) != hash(named)
    assert pickle.loads(pickle.dumps(named)).__dict__ == Named(1, name="m").__dict__
