"""The notation: what parses, what is written back, what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from drawn import LLAMA3_8B, block, draw, read
from hypothesis import given
from hypothesis import strategies as st
from witness import WITNESSES

from assay.errors import NotationError
from assay.spec import Block, Op, Segment, Tensor, Weight, ops, parse, parse_lines

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}(\.[A-Za-z_][A-Za-z0-9_]{0,4})?", fullmatch=True)
axis = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,3}", fullmatch=True)
axes = st.lists(axis, max_size=5, unique=True).map(tuple)
kinds = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
words = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
literals = st.one_of(
    words,
    st.integers(-(10**25), 10**25),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=8),
    st.tuples(words, st.integers()),
)
operations = st.builds(
    Op,
    names,
    kinds,
    st.lists(st.builds(Tensor, names, axes), max_size=4).map(tuple),
    axes,
    st.lists(st.tuples(words, literals), max_size=3, unique_by=lambda pair: pair[0]).map(tuple),
)


@given(op=operations)
def test_round_trip_of_any_op(op: Op) -> None:
    assert parse(str(op)) == op
    assert str(parse(str(op))) == str(op)


@pytest.mark.parametrize("line", [w.line for w in WITNESSES])
def test_round_trip_of_every_kind(line: str) -> None:
    assert str(parse(line)) == line


def test_round_trip_of_whole_models() -> None:
    sparse = draw(layers=2, d=8, heads=2, vocab=9, experts=4, chosen=2, expert_ff=6, shared_ff=3, window=lambda i: 5)
    for model in (read(LLAMA3_8B), read({"model_type": "gpt2"}), sparse):
        for segment in model.segments:
            assert parse_lines(str(segment.block)) == segment.block.ops


def test_what_a_line_says() -> None:
    op = parse("  q = linear(x[b n d], Wq[d g r k], Bq[g r k]) -> [b n g r k]  ", part="attention")
    assert (op.name, op.kind, op.axes, op.part) == ("q", "linear", ("b", "n", "g", "r", "k"), "attention")
    assert [t.name for t in op.activations] == ["x"]
    assert [t.name for t in op.weights] == ["Wq", "Bq"]
    assert [str(t) for t in op.inputs] == ["x[b n d]", "Wq[d g r k]", "Bq[g r k]"]


@pytest.mark.parametrize(
    ("name", "is_weight"),
    [("W", True), ("w", False), ("Wq", True), ("mlp.Wd", True), ("Mlp.wd", False), ("_W", False)],
)
def test_capital_initials_are_weights(name: str, is_weight: bool) -> None:
    assert Tensor(name, ("d",)).is_weight == is_weight


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-0.5", -0.5),
        ("1e-6", 1e-6),
        ("w", "w"),
        ("True", True),
        ("None", None),
        ("'True'", "True"),
        ("'a, b'", "a, b"),
        ("('g', 'k')", ("g", "k")),
        ("(('factor', 8.0), ('type', 'llama3'))", (("factor", 8.0), ("type", "llama3"))),
        ("'-> [b]'", "-> [b]"),
    ],
)
def test_attributes(text: str, value: Any) -> None:
    op = parse(f"y = f(x[b], key={text}, last=1) -> [b]")
    assert op.attr("key") == value
    assert op.attr("last") == 1
    assert op.attr("absent", 7) == 7
    assert parse(str(op)) == op


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "is no op; write name = kind"),
        ("y = linear(x[b d], W[d f])", r"is no op; write name = kind\(x\[a b\], W\[b c\]\) -> \[a c\]"),
        ("y linear(x[b d]) -> [b]", "is no op"),
        ("y = Linear(x[b d]) -> [b]", "is no op"),
        ("y = linear(x[b d] -> [b]", "is no op"),
        ("y = linear(x) -> [b]", "'x' is neither x.axes. nor key=value"),
        ("y = linear(x[b d] W[d f]) -> [b f]", "is neither"),
        ("y = linear(x[b-d]) -> [b]", "'b-d' is no axis name"),
        ("y = linear(x[b 2]) -> [b]", "'2' is no axis name"),
        ("y = linear(x[b b]) -> [b]", r"\[b b\] names an axis twice"),
        ("y = linear(x[b]) -> [b b]", r"\[b b\] names an axis twice"),
        ("y = linear(x[b], k=1+) -> [b]", r"'1\+' is no name, number or literal"),
        ("y = linear(x[b], k=f(1)) -> [b]", "is no name, number or literal"),
        ("y = linear(x[b], k=__import__('os')) -> [b]", "is no name, number or literal"),
    ],
)
def test_lines_that_are_refused(line: str, says: str) -> None:
    with pytest.raises(NotationError, match=says):
        parse(line)


def test_a_text_with_headings_and_comments() -> None:
    made = parse_lines(
        """
        # one head
        attention:
          q = linear(x[n d], Wq[d k]) -> [n k]   # queries

        attention.scores:
          s = contract(q[n k], k[c k]) -> [n c]
        mlp:
        y = gelu(x[n d]) -> [n d]
        """
    )
    assert [(op.name, op.part) for op in made] == [("q", "attention"), ("s", "attention.scores"), ("y", "mlp")]
    assert parse_lines("y = gelu(x[n]) -> [n]")[0].part == "other"


@pytest.mark.parametrize("text", ["", "  \n# nothing\n", "attention:\n"])
def test_a_text_without_ops(text: str) -> None:
    with pytest.raises(NotationError, match="the block has no ops"):
        parse_lines(text)


def test_a_name_keeps_its_axes() -> None:
    with pytest.raises(NotationError, match=r"q\[n d\].*was q\[n k\] before"):
        parse_lines("q = linear(x[n d], Wq[d k]) -> [n k]\ny = gelu(q[n d]) -> [n d]")
    with pytest.raises(NotationError, match=r"Wq\[k d\].*was Wq\[d k\] before"):
        parse_lines("q = linear(x[n d], Wq[d k]) -> [n k]\ny = linear(q[n k], Wq[k d]) -> [n d]")
    # a later definition under the same name counts from there on
    parse_lines("x = linear(x[n d], W1[d f]) -> [n f]\nx = linear(x[n f], W2[f d]) -> [n d]")


def test_ops_add_attributes() -> None:
    (op,) = ops("norm", "y = rmsnorm(x[n d], G[d]) -> [n d]", eps=1e-6, unit_offset=None)
    assert (op.part, op.attrs) == ("norm", (("eps", 1e-6),))


def test_blocks() -> None:
    made = block("y = linear(x[n d], W[d f]) -> [n f]", d=2, f=3)
    assert made.weight("W") == Weight("block.W")
    stored = Block("b", made.ops, made.sizes, {"W": Weight("mlp.weight", "f d")})
    assert stored.weight("W").path == "mlp.weight"
    wider = made.resize(f=5)
    assert (wider.sizes["f"], made.sizes["f"], wider.ops) == (5, 3, made.ops)


def test_segments_count_layers() -> None:
    made = block("y = gelu(x[n]) -> [n]")
    assert Segment("once", made).times == 1
    assert Segment("layers", made, (0, 2, 5)).times == 3


def test_an_op_is_hashed_by_its_fields_in_each_process_anew() -> None:
    line = "y = scale(x[b n d], by=2.0) -> [b n d]"
    op, same = parse(line), parse(line + " ")
    assert hash(op) == hash(same)
    assert pickle.loads(pickle.dumps(op)).__dict__.keys() == Op(op.name, op.kind, op.inputs, op.axes).__dict__.keys()
    assert pickle.loads(pickle.dumps(op)) == op


def test_a_list_is_a_tuple_and_a_table_is_no_value() -> None:
    assert parse("y = scan(x[b n d], state=['d', 'k']) -> [b n d]").attr("state") == ("d", "k")
    with pytest.raises(NotationError, match=r"\{'a': 1\}\"? is no name, number or literal"):
        parse("y = gelu(x[b n d], k={'a': 1}) -> [b n d]")
