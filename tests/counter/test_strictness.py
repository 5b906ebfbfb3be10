"""No op is passed over: it is counted, known to be free, allowed by name, or an error."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import library

import assay.counter.attention  # noqa: F401 (registers its rules)
from assay import MeasureError, measure
from assay.counter.free import FREE, sort_of
from assay.counter.rules import RULES, Call, rule


@library.custom_op("assay_tests::squared", mutates_args=())  # type: ignore[untyped-decorator]
def squared(x: torch.Tensor) -> torch.Tensor:
    """A product that the dispatcher knows by this name alone."""
    return x @ x


@squared.register_fake  # type: ignore[untyped-decorator]
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Squared(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return squared(x)


class BackThroughUnknown(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x + 1

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return squared(grad)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_unknown_op_is_named_with_its_shapes(device: str) -> None:
    said = (
        'no rule says what assay_tests::squared(3×3) in inner costs; allow=("assay_tests::squared",) takes it for free'
    )
    net = torch.nn.Sequential()
    net.add_module("inner", Squared())
    with pytest.raises(MeasureError, match=re.escape(said)):
        measure(net, torch.ones(3, 3, device=device))


def test_an_unknown_op_backward() -> None:
    given = torch.ones(3, 3, requires_grad=True)
    with pytest.raises(MeasureError, match=r"no rule says what assay_tests::squared\(3×3\) costs"):
        measure(BackThroughUnknown.apply, given, backward=True)
    assert given.grad is None


def test_all_unknown_ops_are_named_at_once() -> None:
    with pytest.raises(
        MeasureError, match=r"_fft_r2c\(8\); aten::_cdist_forward\(4×2, 3×2\) costs; allow=\(\"aten::_fft"
    ):
        measure(lambda: (torch.fft.rfft(torch.ones(8)), torch.cdist(torch.ones(4, 2), torch.ones(3, 2), p=1.0)))


def test_allowed_by_name_is_free_and_said() -> None:
    found = measure(Squared(), torch.ones(3, 3), allow=["assay_tests::squared"])
    assert found.flops.total == 0
    assert [(row.name, row.sort) for row in found.ops] == [("assay_tests::squared", "allowed")]
    assert "allowed without a rule: assay_tests::squared (1 call)" in found.table()


@pytest.mark.parametrize(
    ("allow", "said"),
    [
        ("aten::mm", "allow is 'aten::mm'; it must be a list of names"),
        (["squared"], "allow holds 'squared'; it must hold names such as"),
        (["aten::mm"], "allow holds 'aten::mm', which has a rule"),
        (["aten::add"], "allow holds 'aten::add', which has a rule"),
    ],
)
def test_what_can_be_allowed(allow: Any, said: str) -> None:
    with pytest.raises(MeasureError, match=re.escape(said)):
        measure(Squared(), torch.ones(3, 3), allow=allow)


def test_what_cannot_be_measured() -> None:
    with pytest.raises(MeasureError, match="measure takes a module or a function, not int"):
        measure(3)
    with pytest.raises(MeasureError, match="backward=True, but nothing in the result needs a gradient"):
        measure(torch.mm, torch.ones(2, 2), torch.ones(2, 2), backward=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the other layout were better
        nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    with pytest.raises(MeasureError, match="works on nested tensors without a shape; use those of layout="):
        measure(torch.nn.Linear(4, 5), nested)


def test_a_padded_batch_of_an_encoder() -> None:
    """Without gradients PyTorch leaves padding out: 8 tokens of 10 are projected, attention is of 2 times 5 by 5."""
    d, f, layers = 16, 32, 2
    layer = torch.nn.TransformerEncoderLayer(d, 4, f, batch_first=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = torch.nn.TransformerEncoder(layer, layers).eval()
        padding = torch.zeros(2, 5, dtype=torch.bool)
        padding[1, 3:] = True
        with torch.no_grad():
            found = measure(encoder, torch.ones(2, 5, d), src_key_padding_mask=padding)
    assert found.flops.forward == layers * (2 * 8 * (4 * d * d + 2 * d * f) + 2 * 2 * 2 * 5 * 5 * d)
    assert {op.name for op in found.ops if op.sort == "counted"} == {"aten::_transformer_encoder_layer_fwd"}


def test_what_cannot_be_followed() -> None:
    with pytest.raises(MeasureError, match=r"what autograd keeps cannot be followed here: torch.func.\{grad"):
        measure(torch.func.grad(lambda x: x.sum()), torch.ones(3))


def test_without_pytorch() -> None:
    code = "import sys; sys.modules['torch'] = None; import assay; assay.measure(print)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = "measuring runs PyTorch, which is not installed: pip install torch"
    assert done.stderr.splitlines()[-1] == f"assay.errors.MeasureError: {said}"


def test_tensors_made_of_tensors_are_counted_within() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    rows = TwoTensor(torch.ones(3, 4), torch.ones(3, 4))
    assert measure(torch.mm, rows, torch.ones(4, 5)).flops.total == 2 * (2 * 3 * 4 * 5)
    ragged = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged)
    assert measure(torch.nn.Linear(4, 5), ragged).flops.total == 2 * 5 * 4 * 5


def test_fake_tensors() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        net, rows = torch.nn.Linear(4, 5), torch.ones(3, 4)
        found = measure(net, rows, backward=True)
    assert (found.flops.forward, found.flops.backward) == (2 * 3 * 4 * 5, 2 * 3 * 4 * 5)


def test_sorts() -> None:
    net = torch.nn.Sequential(
        torch.nn.Embedding(9, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 4), torch.nn.Softmax(-1)
    )
    found = measure(net, torch.zeros(2, 3, dtype=torch.long))
    assert {row.name: row.sort for row in found.ops if row.sort != "view"} == {
        "aten::addmm": "counted",
        "aten::embedding": "gather",
        "aten::native_layer_norm": "norm",
        "aten::_softmax": "softmax",
    }
    assert {row.name: row.elements for row in found.ops}["aten::_softmax"] == 2 * 3 * 4
    assert {row.name: row.elements for row in found.ops}["aten::view"] == 0


def test_views_in_place() -> None:
    with torch.no_grad():
        found = measure(lambda: torch.ones(2, 3).clone().as_strided_((3, 2), (1, 3)).unsqueeze_(0))
    assert {row.sort for row in found.ops} == {"new", "copy", "view"}
    assert found.peak_bytes == 2 * 6 * 4


def test_an_optimizer_of_sparse_gradients() -> None:
    table = torch.nn.Embedding(9, 4, sparse=True)
    step = torch.optim.SGD(table.parameters(), lr=0.1)

    def train() -> None:
        table(torch.zeros(3, dtype=torch.long)).sum().backward()
        step.step()

    assert measure(train).flops.total == 0


def test_lists_of_tensors_are_of_the_sort_of_one() -> None:
    assert [sort_of(f"aten::_foreach_{name}") for name in ("mul", "norm", "nonsense")] == [
        "pointwise",
        "reduction",
        None,
    ]
    net = torch.nn.Linear(4, 2)
    step = torch.optim.AdamW(net.parameters(), foreach=True)

    def train(x: Any) -> None:
        net(x).sum().backward()
        step.step()

    assert measure(train, torch.ones(3, 4)).flops.total == 2 * (2 * 3 * 4 * 2)


def test_the_lists_hold_no_slips() -> None:
    """Each name is PyTorch's, stands once, and has a rule or a sort, not both."""
    names = [name for name in (*FREE, *RULES) if name.startswith("aten::")]
    ops = torch.ops.aten
    assert [n for n in names if not (hasattr(ops, n[6:]) or hasattr(ops, f"{n[6:]}_"))] == []
    assert not FREE.keys() & RULES.keys()
    with pytest.raises(MeasureError, match="aten::mm has a rule already"):
        rule("aten::mm")(lambda call: 0)


PRODUCT = re.compile(r"(^|_)((add|badd)?b?mm|matmul|conv\d?d?|convolution|attention|mv|linear|rnn|lstm|gru)(_|$)")


def test_no_op_that_multiplies_is_on_the_free_list() -> None:
    """By its name: an op with a product in it is counted, or unknown and so an error."""
    named = {name.removeprefix("aten::") for name in FREE if PRODUCT.search(name.removeprefix("aten::"))}
    cells = {f"_thnn_fused_{cell}_cell{end}" for cell in ("lstm", "gru") for end in ("", "_backward", "_backward_impl")}
    copies = {"_cudnn_rnn_flatten_weight", "mkldnn_reorder_conv2d_weight", "mkldnn_reorder_conv3d_weight"}
    assert named - cells == copies  # cells take products as their inputs
    assert all(map(PRODUCT.search, ("slow_conv_dilated2d", "baddbmm", "mkldnn_rnn_layer")))


def test_a_call_reads_by_name_and_by_place() -> None:
    call = Call("aten::mm", (torch.ones(2, 3),), {"groups": 2}, None)
    assert (call.shape(0), call[1], call["groups"], call["absent"]) == ((2, 3), None, 2, None)
