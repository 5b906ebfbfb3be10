"""What products cost: by hand, and as PyTorch's own counter has it where it has a rule."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

F = torch.nn.functional

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from assay import measure  # noqa: E402
from assay.counter.rules import RULES, Call  # noqa: E402

LSTM = torch.nn.LSTM


def t(*shape: int, grad: bool = True, device: str = "cpu") -> Any:
    return torch.ones(*shape, requires_grad=grad, device=device)


# name: what runs, on what, FLOPs forward and backward (gradients of all inputs) by hand
PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int, int]] = {
    # [2 3] x [3 5]: 2 * 2 * 3 * 5; each gradient is such a product
    "mm": (torch.mm, (t(2, 3), t(3, 5)), 60, 120),
    "addmm": (torch.addmm, (t(5), t(2, 3), t(3, 5)), 60, 120),
    "bmm": (torch.bmm, (t(4, 2, 3), t(4, 3, 5)), 240, 480),
    "baddbmm": (torch.baddbmm, (t(4, 2, 5), t(4, 2, 3), t(4, 3, 5)), 240, 480),
    "addbmm": (torch.addbmm, (t(2, 5), t(4, 2, 3), t(4, 3, 5)), 240, 480),
    "matmul": (torch.matmul, (t(7, 2, 3), t(3, 5)), 7 * 60, 7 * 120),
    "linear": (F.linear, (t(7, 2, 3), t(5, 3), t(5)), 7 * 60, 7 * 120),
    # [4 3] x [3]: 2 * 4 * 3; the matrix's gradient is an outer product, which multiplies element by element
    "mv": (torch.mv, (t(4, 3), t(3)), 24, 24),
    "addmv": (torch.addmv, (t(4), t(4, 3), t(3)), 24, 24),
    "dot": (torch.dot, (t(6), t(6)), 12, 0),
    # [4 3] + [4] x [3]: a multiply-add an element; the gradients of the vectors are matrices with vectors
    "addr": (torch.addr, (t(4, 3), t(4), t(3)), 24, 48),
    "outer": (torch.outer, (t(4), t(3)), 0, 0),
    # b i j, b j k -> b i k with b 2, i 3, j 4, k 5: 2 * 2 * 3 * 4 * 5
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), (t(2, 3, 4), t(2, 4, 5)), 240, 480),
    # two products: i j, j k -> i k (2 * 3 * 4 * 5), then i k, k l -> i l (2 * 3 * 5 * 6)
    "einsum of three": (
        lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c),
        (t(3, 4), t(4, 5), t(5, 6)),
        120 + 180,
        240 + 360,
    ),
    "embedding": (F.embedding, (torch.zeros(9, dtype=torch.long), t(11, 4)), 0, 0),
    # b i, o i j, b j -> b o with b 5, i 2, j 3, o 4: over i first (2 * 5 * 4 * 2 * 3), then over j (2 * 5 * 4 * 3)
    "bilinear forward": (F.bilinear, (t(5, 2, grad=False), t(5, 3, grad=False), t(4, 2, 3, grad=False)), 240 + 120, 0),
}

# batch 2; 4 channels to 6, kernel 3, length 8 -> 6: 2 * 2 * 6 places * 6 * 4 * 3
CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "plain": (F.conv1d, (t(2, 4, 8), t(6, 4, 3), t(6)), 2 * 2 * 6 * 6 * 4 * 3),
    # two groups: half the inputs for each output
    "grouped": (lambda x, w: F.conv1d(x, w, groups=2), (t(2, 4, 8), t(6, 2, 3)), 2 * 2 * 6 * 6 * 2 * 3),
    # depthwise, padded as Mamba's: one input for each output, 8 + 2 places
    "depthwise": (lambda x, w: F.conv1d(x, w, padding=2, groups=4), (t(2, 4, 8), t(4, 1, 3)), 2 * 2 * 10 * 4 * 3),
    # patches of 2 x 2 side by side on 6 x 4: 3 * 2 places
    "patches": (lambda x, w: F.conv2d(x, w, stride=2), (t(2, 3, 6, 4), t(5, 3, 2, 2)), 2 * 2 * 6 * 5 * 3 * 4),
    "of three axes": (F.conv3d, (t(1, 2, 3, 3, 3), t(4, 2, 2, 2, 2)), 2 * 8 * 4 * 2 * 8),
    "without a batch": (F.conv1d, (t(4, 8), t(6, 4, 3)), 2 * 6 * 6 * 4 * 3),
    # transposed: each of the 8 places of the input meets all weights
    "transposed": (F.conv_transpose1d, (t(2, 4, 8), t(4, 6, 3)), 2 * 2 * 8 * 4 * 6 * 3),
    "transposed, grouped": (
        lambda x, w: F.conv_transpose1d(x, w, stride=2, groups=2),
        (t(2, 4, 8), t(4, 3, 3)),
        2 * 2 * 8 * 4 * 3 * 3,
    ),
}


def theirs(code: Callable[..., Any], inputs: tuple[Any, ...], backward: bool) -> int:
    """The stock counter's total."""
    with FlopCounterMode(display=False) as counter:
        made = code(*inputs)
        if backward:
            torch.autograd.backward(made, torch.ones_like(made))
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_by_hand(name: str) -> None:
    code, inputs, forward, backward = PRODUCTS[name]
    back = any(one.requires_grad for one in inputs)
    found = measure(code, *inputs, backward=back)
    assert (found.flops.forward, found.flops.backward) == (forward, backward)
    with torch.no_grad():
        assert measure(code, *inputs).flops.total == forward
    with torch.inference_mode():
        assert measure(code, *inputs).flops.total == forward
    on_meta = [one.detach().to("meta") for one in inputs]
    assert measure(code, *on_meta).flops.total == forward


@pytest.mark.parametrize("name", sorted(PRODUCTS.keys() - {"mv", "addmv", "dot", "addr", "addbmm", "bilinear forward"}))
def test_products_as_the_stock_counter_has_them(name: str) -> None:
    code, inputs, forward, backward = PRODUCTS[name]
    assert theirs(code, inputs, True) == forward + backward


@pytest.mark.parametrize("name", ["mv", "addmv", "dot", "addr", "addbmm"])
def test_the_stock_counter_passes_over_some(name: str) -> None:
    code, inputs, forward, _ = PRODUCTS[name]
    assert theirs(code, inputs, False) == 0 < forward


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    code, inputs, forward = CONVOLUTIONS[name]
    found = measure(code, *inputs, backward=True)
    assert (found.flops.forward, found.flops.backward) == (forward, 2 * forward)
    assert theirs(code, inputs, False) == forward
    data, *weights = inputs
    assert measure(code, data.detach(), *weights, backward=True).flops.backward == forward  # the weight's alone


def test_grouped_convolutions_backward_are_no_dearer_by_groups() -> None:
    """The stock counter takes the gradient of a grouped weight for that of a full one."""
    code, inputs, forward = CONVOLUTIONS["grouped"]
    assert theirs(code, inputs, True) == 3 * forward + forward


def test_products_of_experts() -> None:
    """Rows [12 8], experts [3 8 16]: each row meets one expert, 2 * 12 * 8 * 16. The stock counter says 0."""
    rows, experts = t(12, 8).bfloat16(), t(3, 8, 16).bfloat16()
    ends = torch.tensor([4, 8, 12], dtype=torch.int32)
    found = measure(torch._grouped_mm, rows, experts, offs=ends, backward=True)
    assert (found.flops.forward, found.flops.backward) == (3072, 6144)
    on_meta = [one.detach().to("meta") for one in (rows, experts)]
    assert measure(torch._grouped_mm, *on_meta, offs=ends.to("meta")).flops.total == 3072


def test_triangular_systems() -> None:
    """Two triangles [4 4] with 5 right sides each: n² m."""
    a, b = torch.eye(4).expand(2, 4, 4), t(2, 4, 5)
    found = measure(torch.linalg.solve_triangular, a, b, upper=False, backward=True)
    assert (found.flops.forward, found.flops.backward) == (2 * 4 * 4 * 5, 2 * 4 * 4 * 5)  # the same with its transpose
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is of old
        assert measure(torch.triangular_solve, b.detach()[0], a[0]).flops.total == 4 * 4 * 5
    from_the_right = torch.linalg.solve_triangular
    assert measure(from_the_right, a[0], t(5, 4), upper=True, left=False).flops.total == 4 * 4 * 5


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_networks(kind: str, gates: int, layers: int) -> None:
    """6 steps, batch 2, 3 -> 4: each step meets [3 4] and [4 4] of every gate, a second layer [4 4] twice."""
    net = getattr(torch.nn, kind)(3, 4, layers)
    weights = gates * (4 * 3 + 4 * 4 + (layers - 1) * 2 * 4 * 4)
    assert measure(net, t(6, 2, 3, grad=False)).flops.total == 2 * 6 * 2 * weights
    with torch.no_grad():
        assert measure(net, t(6, 2, 3, grad=False)).flops.total == 2 * 6 * 2 * weights


def test_recurrent_networks_backward() -> None:
    """The kernel gives all gradients: of inputs and states, and of the weights, as much as forward each."""
    found = measure(torch.nn.LSTM(3, 4), t(6, 2, 3), backward=True)
    assert found.flops.by_op == {
        "aten::mkldnn_rnn_layer": 2 * 6 * 2 * 4 * (4 * 3 + 4 * 4),
        "aten::mkldnn_rnn_layer_backward": 2 * 2 * 6 * 2 * 4 * (4 * 3 + 4 * 4),
    }
    weights = [torch.empty(12, 3), torch.empty(12, 4), torch.empty(12), torch.empty(12)]
    named = {"weight": weights, "output_mask": [True, True, False, True]}
    call = Call("aten::_cudnn_rnn", [torch.empty(6, 2, 3)], named, None)
    assert RULES["aten::_cudnn_rnn"](call) == 2 * 6 * 2 * 12 * (3 + 4)
    assert RULES["aten::_cudnn_rnn_backward"](call) == 2 * 2 * 6 * 2 * 12 * (3 + 4)


def test_training_is_three_times_forward() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 2, bias=False))
    found = measure(net, t(5, 6), backward=True)
    assert found.flops.forward == 2 * 5 * (6 * 8 + 8 * 2)
    assert found.flops.total == 3 * found.flops.forward == theirs(net, (t(5, 6),), True)
    frozen = measure(net.requires_grad_(False), t(5, 6), backward=True)
    assert frozen.flops.total == 2 * found.flops.forward  # gradients of the input alone
