"""Training steps: by hand, against autograd op by op, in symbols and arrays."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.kinds.training import SAVES
from assay.kinds.training.tape import Tape
from assay.kinds.training.values import Value
from assay.spec import Block, parse_lines

B, N = 2, 6
MLP = """
mlp:
  z = linear(x[b n d], Wg[d f]) -> [b n f]
  u = linear(x[b n d], Wu[d f]) -> [b n f]
  z = silu(z[b n f]) -> [b n f]
  u = mul(z[b n f], u[b n f]) -> [b n f]
  y = linear(u[b n f], Wd[f d]) -> [b n d]
"""


def mlp() -> Block:
    return Block("mlp", parse_lines(MLP), {"d": 32, "f": 48})


def test_a_gated_mlp_by_hand() -> None:
    step = assay.training(mlp(), B, N)
    product = 2 * B * N * 32 * 48
    assert step.forward == 3 * product
    # weights need gradients and so does what the first two make, but x does not
    assert step.backward == (1 + 1 + 2) * product
    # SiLU keeps what it is of; the product both factors; the last map what it multiplies: 4 tensors of [b n f]
    assert step.saved == 4 * B * N * 48 * 4
    assert step.inputs == B * N * 32 * 4
    assert step.flops == step.forward + step.backward
    assert step.saved_by_part == {"mlp": step.saved}


def test_a_norm_keeps_its_operand_its_root_and_what_it_gives_before_the_gain() -> None:
    ops = """
norm:
  x = linear(x[b n d], W[d e]) -> [b n e]
  y = rmsnorm(x[b n e], G[e]) -> [b n e]
"""
    step = assay.training(Block("norm", parse_lines(ops), {"d": 3, "e": 5}), B, N)
    assert step.saved == (2 * B * N * 5 + B * N) * 4
    assert step.backward == step.forward == 2 * B * N * 3 * 5


def test_a_view_of_a_kept_tensor_is_kept_already() -> None:
    ops = """
other:
  q = linear(x[b n d], W[d h k]) -> [b n h k]
  p = slice(q[b n h k]) -> [b n h j]
  p = silu(p[b n h j]) -> [b n h j]
  q = silu(q[b n h k]) -> [b n h k]
"""
    step = assay.training(Block("other", parse_lines(ops), {"d": 3, "h": 2, "k": 4, "j": 2}), B, N)
    assert step.saved == B * N * 2 * 4 * 4  # once, and whole


def test_what_no_gradient_comes_back_to_costs_no_backward() -> None:
    ops = """
other:
  l = linear(x[b n d], W[d e]) -> [b n e]
  i = topk(l[b n e]) -> [b n a]
  y = select(x[b n d], We[e d f], i[b n a]) -> [b n a f]
"""
    step = assay.training(Block("other", parse_lines(ops), {"d": 3, "e": 8, "a": 2, "f": 5}), B, N)
    assert step.backward == 2 * B * N * 2 * 3 * 5  # of the experts' weights alone: the index has no gradient


def test_the_embedding_has_no_backward_products_and_keeps_ids_alone() -> None:
    model = assay.load("gpt-2")
    step = assay.training(model, 1, 16)
    assert step.backward == 2 * step.forward
    assert step.inputs == 16 * 8
    assert step.saved_by_part["embedding"] == 16 * 8  # positions


def test_causal_pairs() -> None:
    model = assay.load("llama-3-8b")
    dense, seen = assay.training(model, 1, 64), assay.training(model, 1, 64, convention="causal")
    assert seen.forward == assay.count(model, 1, 64, convention="causal").flops.total
    assert seen.backward == 2 * seen.forward < dense.backward
    assert seen.saved == dense.saved


def test_other_conventions_are_refused() -> None:
    with pytest.raises(
        assay.SettingError, match="convention is 'scalar'; a backward pass is known in matmul and causal"
    ):
        assay.training(mlp(), B, N, convention="scalar")


@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b", "gpt-2"])
def test_symbols_stand_for_the_numbers(name: str) -> None:
    sympy = pytest.importorskip("sympy")
    b, n = sympy.symbols("b n", positive=True, integer=True)
    model = assay.load(name)
    symbolic = assay.training(model, b, n)
    for batch, tokens in ((2, 3), (3, 40)):
        plain = assay.training(model, batch, tokens)
        values = {b: batch, n: tokens}
        assert (symbolic.forward.subs(values), symbolic.backward.subs(values)) == (plain.forward, plain.backward)
        assert symbolic.saved is not None
        assert symbolic.saved.subs(values) == plain.saved


def test_arrays_are_the_numbers_side_by_side() -> None:
    numpy = pytest.importorskip("numpy")
    model = assay.load("llama-3-8b")
    many = assay.training(model, 2, numpy.array([16, 32, 64]))
    each = [assay.training(model, 2, tokens) for tokens in (16, 32, 64)]
    assert many.saved is not None
    assert list(many.saved) == [one.saved for one in each]
    assert list(many.backward) == [one.backward for one in each]


def test_an_array_with_and_without_one_is_refused() -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(assay.SizeError, match="holds 1 beside larger sizes"):
        assay.training(mlp(), numpy.array([1, 2]), N)


def test_what_all_sequences_share_is_kept_once() -> None:
    model = assay.load("llama-3-8b")
    one, two = assay.training(model, 1, 32), assay.training(model, 2, 32)
    tables = 2 * 2 * 32 * 128 * 4  # cosines and sines, laid out for queries and for keys
    assert one.saved is not None
    assert 2 * one.saved - two.saved == tables + 32 * 32  # and the mask


# --- the tape beside PyTorch ---


def tape(**sizes: int) -> Tape:
    made = Tape("fp32")
    made.sizes, made.real = dict(sizes), dict(sizes)
    return made


@pytest.mark.parametrize(
    ("axes", "groups"),
    [
        ("b n d", [("b", "n"), ("d",)]),
        ("n b d", [("b", "n"), ("d",)]),
        ("b g n k", [("b", "g"), ("n",), ("k",)]),
        ("b n g k", [("b", "g"), ("n",), ("k",)]),
        ("u n d", [("n", "u"), ("d",)]),
        ("b n g k", [("b",), ("n",), ("g", "k")]),
    ],
)
def test_a_reshape_copies_where_pytorch_does(axes: str, groups: list[tuple[str, ...]]) -> None:
    torch = pytest.importorskip("torch")
    sizes = {"b": 2, "n": 3, "g": 4, "k": 5, "d": 6, "u": 1}
    given = tuple(axes.split())
    made = tape(**sizes)
    x = made.new(given)
    real = torch.zeros([sizes[a] for a in given])
    order = [a for group in groups for a in group]
    joined = real.permute([given.index(a) for a in order]).reshape([_extent(sizes, group) for group in groups])
    assert (made.join(x, *groups).store is x.store) == (joined.data_ptr() == real.data_ptr())


def _extent(sizes: dict[str, int], axes: tuple[str, ...]) -> int:
    found = 1
    for axis in axes:
        found *= sizes[axis]
    return found


@pytest.mark.parametrize("order", ["b n d", "n b d", "d b n"])
@pytest.mark.parametrize("wanted", ["b n q w", "m d", "b y", "m q w", "z", "u b n d", "b h e d"])
def test_a_reshape_to_other_axes_is_seen_where_pytorch_sees_it(order: str, wanted: str) -> None:
    torch = pytest.importorskip("torch")
    sizes = {"b": 2, "n": 6, "d": 8, "q": 4, "w": 2, "m": 12, "y": 48, "z": 96, "u": 1, "h": 2, "e": 3}
    made, lies = tape(**sizes), tuple(order.split())
    real = torch.zeros([sizes[a] for a in lies]).permute([lies.index(a) for a in "bnd"])
    x = made.order(made.new(lies), ("b", "n", "d"))
    seen, expected = made.reshape(x, tuple(wanted.split())), real.reshape([sizes[a] for a in wanted.split()])
    assert (seen.store is x.store) == (expected.data_ptr() == real.data_ptr())
    if seen.store is x.store:
        assert seen.strides == expected.stride()


@pytest.mark.parametrize("order", ["b n g", "g n b", "n b g", "b g n"])
@pytest.mark.parametrize("other", ["b n g", "g", "n b g", "n"])
def test_results_of_elements_lie_as_in_pytorch(order: str, other: str) -> None:
    torch = pytest.importorskip("torch")
    sizes = {"b": 2, "n": 3, "g": 4}
    made, axes = tape(**sizes), ("b", "n", "g")

    def both(lies: tuple[str, ...]) -> tuple[Value, Any]:
        real = torch.zeros([sizes[a] for a in lies])
        seen = real.permute([lies.index(a) for a in axes if a in lies])
        spread = seen[tuple(slice(None) if a in lies else None for a in axes)]
        return made.beside(made.new(lies), axes), spread

    (x, a), (y, b) = both(tuple(order.split())), both(tuple(other.split()))
    assert made.pointwise(x, y, axes=axes).strides == (a + b).stride()


def test_every_kind_that_runs_says_what_training_keeps() -> None:
    pytest.importorskip("torch")
    import assay.execution.module  # noqa: F401
    from assay.execution.sites import RULES

    assert RULES.keys() - SAVES.keys() <= UNKNOWN
    assert not UNKNOWN & SAVES.keys(), "these have a row now"


UNKNOWN: set[str] = set()
