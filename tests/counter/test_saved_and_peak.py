"""Bytes that autograd keeps and bytes alive at once, by hand: x is [2 3 8] in float32, 192 bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

F = torch.nn.functional

from assay import measure  # noqa: E402
from assay.counter.result import Saved  # noqa: E402

X = 2 * 3 * 8 * 4


def x(device: str = "cpu") -> Any:
    return torch.ones(2, 3, 8, device=device, requires_grad=True)


def twice_viewed(a: Any) -> Any:
    """One storage several times: as it is, transposed, and a part of it."""
    return (a * a).sum() + (a.transpose(0, 1) ** 2).sum() + (a[:1] ** 2).sum()


SAVED: dict[str, tuple[Callable[..., Any], Saved]] = {
    # its input, a mean and a reciprocal deviation of each of 6 rows, its own weight and bias
    "LayerNorm": (torch.nn.LayerNorm(8), Saved(activations=2 * 6 * 4, inputs=X, weights=2 * 8 * 4)),
    "GELU": (torch.nn.GELU(), Saved(0, X, 0)),
    "SiLU": (torch.nn.SiLU(), Saved(0, X, 0)),
    "ReLU": (torch.nn.ReLU(), Saved(X, 0, 0)),  # its result tells what passed
    "softmax": (torch.nn.Softmax(-1), Saved(X, 0, 0)),  # so does a softmax's
    # on the CPU the factors themselves, 0 or 2; as one kernel (on CUDA) which elements stayed, a byte each
    "dropout": (torch.nn.Dropout(0.5), Saved(X, 0, 0)),
    "dropout as one kernel": (lambda a: torch.native_dropout(a, 0.5, True)[0], Saved(2 * 3 * 8, 0, 0)),
    "no dropout": (torch.nn.Dropout(0.5).eval(), Saved(0, 0, 0)),
    "Linear": (torch.nn.Linear(8, 5), Saved(0, X, 5 * 8 * 4)),  # the weight for the gradient of x
    "a scaling": (lambda a: a * 2.0, Saved(0, 0, 0)),
    "a product": (lambda a: a * torch.ones(8, device=a.device), Saved(8 * 4, 0, 0)),  # the other factor
    "an exponential of a sum": (lambda a: (a + 1).exp(), Saved(X, 0, 0)),
    "one storage": (twice_viewed, Saved(0, X, 0)),
    "a part": (lambda a: (a + 1)[:, :1].exp().sum() + (a + 1)[:, :1].sigmoid().sum(), Saved(2 * 2 * 8 * 4, 0, 0)),
    "scores kept": (lambda a: F.softmax(a @ a.transpose(1, 2), -1) @ a, Saved(2 * 3 * 3 * 4, X, 0)),
    # flash on the CPU: queries, keys and values are one input; the result, and a logarithm of each row's sum
    "flash": (lambda a: F.scaled_dot_product_attention(a[None], a[None], a[None]), Saved(X + 2 * 3 * 4, X, 0)),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_for_backward(name: str) -> None:
    code, saved = SAVED[name]
    found = measure(code, x())
    assert found.saved == saved
    assert found.saved_bytes == saved.activations + saved.inputs
    assert measure(code, x(), backward=True).saved == saved
    if name != "flash":  # on meta attention is two products
        on_meta = copy.deepcopy(code).to("meta") if isinstance(code, torch.nn.Module) else code
        assert measure(on_meta, x("meta")).saved == saved
    with torch.no_grad():
        assert measure(code, x()).saved == Saved(0, 0, 0)


def test_buffers_are_weights_and_tensors_from_outside_are_inputs() -> None:
    norm = torch.nn.BatchNorm1d(3).eval()
    # its input; weight, running mean and running variance, 3 each
    assert measure(norm, x()).saved == Saved(0, X, 3 * 3 * 4)
    outside = torch.ones(8)
    assert measure(lambda a: a * outside, x()).saved == Saved(0, 8 * 4, 0)


def test_where_in_the_tree_it_is_saved() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
    found = measure(net, x())
    # x; the first one's result; GELU's result, that the second reads
    assert {row.path: row.saved for row in found.modules} == {"0": X, "1": 2 * X, "2": 2 * X, "": 5 * X}


def test_several_steps_hold_no_more_than_one() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())

    def steps(a: Any, times: int) -> None:
        for _ in range(times):
            net(a).sum().backward()
            net.zero_grad()

    one, three = (measure(steps, x().detach(), times) for times in (1, 3))
    assert one.saved == three.saved
    assert one.peak_bytes == three.peak_bytes
    assert three.flops.total == 3 * one.flops.total == 3 * 2 * one.flops.forward


def chain(a: Any, length: int) -> Any:
    for _ in range(length):
        a = a + 1
    return a


@pytest.mark.parametrize("length", [2, 3, 9])
def test_peak_of_a_chain(length: int) -> None:
    """A step's operand and result live at once, the rest is gone: two beside the input."""
    with torch.no_grad():
        found = measure(chain, x(), length)
    assert (found.resident_bytes, found.peak_bytes) == (X, 3 * X)


def test_peak_with_all_kept() -> None:
    """exp keeps its result for backward: five of them, and the input."""
    found = measure(lambda a: a.exp().exp().exp().exp().exp(), x())
    assert found.peak_bytes == 6 * X
    on_meta = measure(lambda a: a.exp().exp().exp().exp().exp(), x("meta"))
    assert on_meta.peak_bytes == 6 * X


def test_peak_of_training_holds_gradients_too() -> None:
    """y and its gradient of ones, then the gradient of x beside the saved y."""
    found = measure(torch.exp, x(), backward=True)
    assert found.peak_bytes == (1 + 1 + 1 + 1) * X  # x, y, ones, ones * y


def test_what_was_there_counts_to_the_end() -> None:
    """x is the caller's to free, so it stays; beside it a step's operand and result."""

    def use_up(box: list[Any]) -> Any:
        y = box.pop() + 1
        return y + 1

    assert measure(use_up, [x().detach()]).peak_bytes == 3 * X


def test_storages_not_tensors_are_alive() -> None:
    with torch.no_grad():
        assert measure(lambda a: a.view(-1).view(6, 8).t().expand(4, 8, 6), x()).peak_bytes == X
        assert measure(lambda a: a.add_(1).mul_(2), x()).peak_bytes == X
        assert measure(lambda a: torch.add(a, 1, out=torch.empty(0)), x()).peak_bytes == 2 * X
        assert measure(lambda: torch.tensor([1.0, 2.0]) + 1).peak_bytes == 2 * 8


def test_weights_are_there_once() -> None:
    head = torch.nn.Linear(8, 10, bias=False)
    table = torch.nn.Embedding(10, 8)
    head.weight = table.weight
    net = torch.nn.Sequential(table, head)
    found = measure(net, torch.zeros(3, dtype=torch.long))
    assert found.parameters == 80
    assert found.resident_bytes == 80 * 4 + 3 * 8
    assert measure(lambda ids: head(table(ids)), torch.zeros(3, dtype=torch.long)).parameters == 80
    assert measure(F.linear, torch.ones(2, 8), head.weight).parameters == 80


def test_gradients_are_left_as_they_were() -> None:
    net = torch.nn.Linear(8, 2)
    given = x()
    net.weight.grad = torch.full((2, 8), 7.0)
    measure(net, given, backward=True)
    assert net.bias.grad is None
    assert given.grad is None
    assert net.weight.grad.unique().tolist() == [7.0]


def test_an_unused_result_that_its_op_keeps_is_gone_with_it() -> None:
    def code(x: Any) -> Any:
        for _ in range(9):
            torch.relu(2 * x)  # ReLU keeps its own result, which nobody asks for
        return (3 * x).square().sum()

    x = torch.ones(5, 7, requires_grad=True)
    assert measure(code, x, backward=True).saved.activations == 5 * 7 * 4  # one after the other, never two


def test_what_watching_takes_is_none_of_the_codes_ops() -> None:
    found = measure(lambda x: torch.relu(2 * x), torch.ones(5, 7, requires_grad=True))
    assert {row.name: row.calls for row in found.ops} == {"aten::mul": 1, "aten::relu": 1}
