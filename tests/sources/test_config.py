"""Typed access to a config: what each asks for, what it takes, what it says of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.errors import SourceError
from assay.sources.config import DEPTH, LARGEST, Config, Read
from assay.sources.shown import LONGEST, LONGEST_NAME, name, short


def config(**data: Any) -> Config:
    return Config(data, "c.json")


def test_sizes_remember_their_key() -> None:
    c = config(width=8, heads=None)
    assert (c.size("width"), c.size("width").key) == (8, "width")
    assert (c.size("depth", 3), c.maybe("heads"), c.maybe("heads", 5), c.maybe("kv", 5)) == (3, None, None, 5)


MADE = {  # of a = 4096, b = 32, c = 5
    "a // b": "a/b",
    "2 * a": "2·a",
    "(a + b) * c": "(a + b)·c",
    "a - (b - c)": "a − (b − c)",
    "a - b - c": "a − b − c",
    "a // (b * 2)": "a/(b·2)",
    "a // (a // b)": "a/(a/b)",
    "a // c * 2": "⌊a/c⌋·2",
    "sum([a, b])": "a + b",
    "a * 1": "a",
    "a // 1": "a",
    "0 + a - 0": "a",
    "c - b": None,  # a difference below nothing is no size
    "-(-a // c)": None,
    "True * a": None,
}


@pytest.mark.parametrize("text", MADE)
def test_sizes_made_of_others_say_of_which(text: str) -> None:
    numbers = {"a": 4096, "b": 32, "c": 5}
    made = eval(text, {name: Read(value, name) for name, value in numbers.items()})
    assert made == eval(text, numbers)
    assert getattr(made, "key", None) == MADE[text]


def test_readings_give_plain_integers() -> None:
    """Sizes that segments and towers take of a config remember no key: figures are plain integers."""
    model = assay.load({"model_type": "vit", "num_hidden_layers": 2})
    assert type(model.segments[0].axes["n"]) is type(model.width) is int
    assert type(assay.count(model).flops.total) is int


@pytest.mark.parametrize("value", [True, 8.0, "8", None, [], {}, 0, -1, LARGEST + 1])
def test_what_is_no_size(value: Any) -> None:
    with pytest.raises(SourceError, match=r"c\.json: width is .*; it must be an integer of at (least|most) \d+"):
        config(width=value).size("width")


def test_bounds() -> None:
    assert config(n=0).size("n", least=0) == 0
    assert config(n=LARGEST).size("n") == LARGEST
    with pytest.raises(SourceError, match="n is 100001; it must be an integer of at most 100000"):
        config(n=DEPTH + 1).size("n", most=DEPTH)


def test_a_missing_key() -> None:
    for ask in (Config.size, Config.word):
        with pytest.raises(SourceError, match=r"c\.json: width is missing; it must be"):
            ask(config(), "width", None)


@pytest.mark.parametrize("value", ["x", True, [], {}, float("nan"), float("inf"), -float("inf"), 10**400])
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(SourceError, match=r"eps is .*; it must be a number"):
        config(eps=value).number("eps")
    with pytest.raises(SourceError, match=r"eps is .*; it must be a number above 0"):
        config(eps=value).positive("eps", 1.0)


def test_numbers() -> None:
    assert [config(eps=v).number("eps", 2.0) for v in (1, 1.5, -3, None)] == [1.0, 1.5, -3.0, None]
    assert config().number("eps", 2.0) == 2.0
    with pytest.raises(SourceError, match="eps is 0; it must be a number above 0"):
        config(eps=0).positive("eps", 1.0)


def test_flags_words_lists_tables() -> None:
    c = config(tied=True, act="silu", kinds=["a", "b"], table={"x": 1}, none=None)
    assert (c.flag("tied", False), c.flag("other", True), c.word("act", None, ["silu"])) == (True, True, "silu")
    assert c.sequence("kinds", lambda v: isinstance(v, str), "words", 2) == ["a", "b"]
    assert (c.table("table"), c.table("none"), c.child("table").size("x")) == ({"x": 1}, None, 1)
    for ask, said in (
        (lambda: config(tied=1).flag("tied", False), "tied is 1; it must be true or false"),
        (lambda: config(act="x").word("act", None, ["b", "a"]), "act is 'x'; it must be one of a, b"),
        (lambda: c.sequence("kinds", lambda v: v == "a", "a"), r"kinds is \['a', 'b'\]; it must be a list of a"),
        (lambda: config(x=[["a"]]).sequence("x", {"a"}.__contains__, "a"), r"x is \[\['a'\]\]; it must be a list of a"),
        (lambda: c.sequence("kinds", lambda v: True, "words", 3), "kinds has 2 items; it must be a list of 3 items"),
        (lambda: config(table=[]).table("table"), r"table is \[\]; it must be an object"),
        (lambda: c.child("table").size("y"), "table.y is missing"),
    ):
        with pytest.raises(SourceError, match=said):
            ask()


def test_inert_values_are_told_apart_by_type() -> None:
    config(x=None).inert("x")
    config(x=False).inert("x", False)
    config(x=0).inert("x", 0)
    values: tuple[object, ...] = (0, "", [], True)
    for value in values:
        with pytest.raises(SourceError, match=r"x is .*; it must be false or null for this model_type"):
            config(x=value).inert("x", False)


def test_renamed_keys() -> None:
    c = config(n_embd=8)
    c.rename(n_embd="hidden_size", n_head="heads")
    assert c.size("hidden_size") == 8
    assert c.unread() == []
    with pytest.raises(SourceError, match="n_embd is 8 and hidden_size is 9; they name one thing and must agree"):
        config(n_embd=8, hidden_size=9).rename(n_embd="hidden_size")
    bad = config(n_embd=-8)
    bad.rename(n_embd="hidden_size")
    with pytest.raises(SourceError, match="n_embd is -8"):
        bad.size("hidden_size")


def test_what_nobody_read() -> None:
    c = config(a=1, b=2, inner={"x": 1, "y": None, "z": 3})
    c.skip("a")
    c.child("inner").size("x")
    assert c.remaining() == {"b": 2, "inner.z": 3}
    assert c.unread() == ["b", "inner.z"]


def test_values_are_shown_as_a_config_writes_them() -> None:
    assert [short(v) for v in (None, True, False, 3, 1.5, "a\nb")] == ["null", "true", "false", "3", "1.5", r"'a\nb'"]
    assert short(10**100) == "an integer of about 100 digits"
    assert short(list(range(10**6))).startswith("[0, 1, 2, ")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_any_value_is_shown_short_on_one_line(value: Any) -> None:
    assert short(value).isprintable()
    assert len(short(value)) <= LONGEST


@given(st.text(min_size=1))
def test_any_name_is_shown_on_one_line(text: str) -> None:
    assert name(text).isprintable()
    assert len(name(text * 100)) <= LONGEST_NAME
    assert name(text) == text or not text.isprintable() or len(text) > LONGEST_NAME
