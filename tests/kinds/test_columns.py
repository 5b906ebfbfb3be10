"""Every column of every kind against a hand sum, and lines that a kind must refuse."""

from __future__ import annotations

import pytest
from witness import WITNESSES
from witnessed.base import SIZES, Witness

from assay.errors import AssayError, KindError, NotationError
from assay.kinds import KINDS, SORTS, Extent, Kind, Stepped, check, kind_of, register
from assay.readings.binding import bind
from assay.spec import Block, Op, parse, parse_lines

NAMES = [witness.line for witness in WITNESSES]


def bound(witness: Witness) -> tuple[Op, Kind, Extent]:
    """The line's op, its kind, and an extent with what came before it bound."""
    made = parse_lines(witness.text)
    check(made)
    return made[-1], kind_of(made[-1]), bind(Block("block", made, {}), SIZES)


def test_every_kind_has_a_witness_and_a_misfit() -> None:
    """A kind that is added must be counted here by hand."""
    assert {witness.kind for witness in WITNESSES} == KINDS.keys()
    assert {witness.kind for witness in WITNESSES if witness.misfits} == KINDS.keys()


@pytest.mark.parametrize("witness", WITNESSES, ids=NAMES)
def test_work(witness: Witness) -> None:
    op, kind, extent = bound(witness)
    assert kind.work(op, extent) == witness.work
    assert witness.work.keys() <= SORTS.keys()
    assert kind.contracts == ("multiply_add" in witness.work)  # a convention of matmuls alone looks at these


@pytest.mark.parametrize("witness", WITNESSES, ids=NAMES)
def test_elements_moved(witness: Witness) -> None:
    op, kind, extent = bound(witness)
    moved = (kind.reads(op, extent), kind.weighs(op, extent), kind.writes(op, extent))
    assert moved == (witness.reads, witness.weighs, witness.writes)


@pytest.mark.parametrize("witness", WITNESSES, ids=NAMES)
def test_state(witness: Witness) -> None:
    op, kind, extent = bound(witness)
    assert (None if kind.state is None else kind.state(op, extent)) == witness.state
    assert (None if kind.grows is None else kind.grows(op, extent)) == witness.grows


@pytest.mark.parametrize("witness", WITNESSES, ids=NAMES)
def test_what_a_rank_sends(witness: Witness) -> None:
    op, kind, extent = bound(witness)
    assert (None if kind.moves is None else kind.moves(op, extent)) == witness.moves
    assert (None if kind.moves_back is None else kind.moves_back(op, extent)) == witness.moves_back


@pytest.mark.parametrize("witness", WITNESSES, ids=NAMES)
def test_views_move_nothing(witness: Witness) -> None:
    op, kind, extent = bound(witness)
    moves = kind.writes(op, extent) != 0
    assert moves == (kind.storage != "view")
    assert (kind.storage == "state") == (witness.kind in ("append", "hold", "collect"))


@pytest.mark.parametrize("witness", WITNESSES, ids=NAMES)
def test_layout_and_active(witness: Witness) -> None:
    op, kind, extent = bound(witness)
    assert {w.name: kind.layout(op, w.axes) for w in op.weights} == witness.layout
    active = None if kind.active is None else kind.active(op, extent, op.weights[0])
    assert active == witness.active


@pytest.mark.parametrize("line", [misfit for witness in WITNESSES for misfit in witness.misfits])
def test_misfits_are_refused(line: str) -> None:
    op = parse(line)
    with pytest.raises(NotationError, match=op.kind):
        check([op])


def test_attributes_of_another_kind_are_refused() -> None:
    with pytest.raises(NotationError, match=r"mul takes no attributes, not 'window'"):
        check([parse("y = mul(x[n d], z[n d], window=3) -> [n d]")])
    with pytest.raises(NotationError, match=r"append takes window, chunk.*not 'eps'"):
        check([parse("k = append(k[n d], eps=3) -> [c d]")])


def test_unknown_kinds_are_errors_never_zero() -> None:
    with pytest.raises(KindError, match=r"no kind 'conv3d' in 'y = conv3d\(.*known: add, alibi"):
        kind_of(parse("y = conv3d(x[n d]) -> [n d]"))


def test_no_kind_twice() -> None:
    with pytest.raises(KindError, match="the kind 'linear' is registered twice"):
        register(KINDS["linear"])


def test_every_kind_says_what_it_computes() -> None:
    for name, kind in KINDS.items():
        assert kind.name == name
        assert len(kind.says) > 5
        with pytest.raises(AssayError, match=name):
            check([Op("y", name, (), ("n",))])


@pytest.mark.parametrize("witness", WITNESSES, ids=NAMES)
def test_a_sum_over_steps_is_the_steps_one_by_one(witness: Witness) -> None:
    """n tokens, one a pass: what the passes cost, each with the keys that are then at hand."""
    made = parse_lines(witness.text)
    op, kind = made[-1], kind_of(made[-1])

    def one(past: int) -> Extent:
        return bind(Block("block", made, {}), {**SIZES, "n": 1, "t": 1, "past": past})

    whole = bind(Block("block", made, {}), {**SIZES, "t": SIZES["n"]})
    summed = kind.work(op, Stepped(whole.sizes).shared_with(whole))
    passes = [kind.work(op, one(SIZES["past"] + i)) for i in range(SIZES["n"])]
    assert summed == {sort: sum(each[sort] for each in passes) for sort in summed}
