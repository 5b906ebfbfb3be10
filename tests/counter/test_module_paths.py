"""FLOPs by module: forward where a module is called, backward where its nodes were made."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.checkpoint import checkpoint

from assay import Measurement, measure

ONE = 2 * 3 * 4 * 4  # FLOPs of a Linear(4, 4) on 3 rows
ROWS = torch.ones(3, 4)


class Twice(torch.nn.Module):  # type: ignore[misc]
    """One linear map, called directly and within a block that holds it too."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = torch.nn.Linear(4, 4)
        self.block = torch.nn.Sequential(self.shared, torch.nn.ReLU(), torch.nn.Linear(4, 4))

    def forward(self, x: Any) -> Any:
        return self.block(self.shared(x)) @ torch.ones(4, 4)


class Checkpointed(torch.nn.Module):  # type: ignore[misc]
    """Its block's activations are dropped and computed again."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.block = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 4), torch.nn.GELU())
        self.reentrant = reentrant

    def forward(self, x: Any) -> Any:
        return checkpoint(self.block, self.first(x), use_reentrant=self.reentrant)


class Doubled(torch.autograd.Function):  # type: ignore[misc]
    """A gradient written by hand, with a product in it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad @ torch.eye(4) * 2


class ByHand(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return Doubled.apply(x)


def split(found: Measurement) -> dict[str, tuple[int, int]]:
    return {row.path: (row.forward, row.backward) for row in found.modules}


def test_a_shared_module_counts_per_call() -> None:
    net = Twice()
    found = measure(net, ROWS, backward=True)
    assert split(found) == {
        "shared": (ONE, ONE),  # x needs no gradient
        "block": (2 * ONE, 4 * ONE),
        "block.0": (ONE, 2 * ONE),
        "block.1": (0, 0),
        "block.2": (ONE, 2 * ONE),
        "": (4 * ONE, 6 * ONE),  # its own product too: the gradient of one factor
    }
    calls = {row.path: row.calls for row in found.modules}
    assert calls == {"": 1, "shared": 1, "block": 1, "block.0": 1, "block.1": 1, "block.2": 1}
    assert {row.path: row.parameters for row in found.modules}["block"] == 40
    assert found.parameters == 40


def test_the_same_module_called_again() -> None:
    layer = torch.nn.Linear(4, 4)
    net = torch.nn.Sequential(layer, layer, layer)
    found = measure(net, ROWS, backward=True)
    assert split(found) == {"0": (3 * ONE, 5 * ONE), "": (3 * ONE, 5 * ONE)}
    assert [row.calls for row in found.modules if row.path == "0"] == [3]
    assert found.parameters == 20


def test_paths_sum_to_the_total() -> None:
    net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16), 3, enable_nested_tensor=False)
    found = measure(net, torch.ones(5, 2, 8, requires_grad=True), backward=True)
    tree = found.flops.by_module
    assert tree[""] == found.flops.total == sum(found.flops.by_op.values())
    assert tree["layers"] == tree["layers.0"] * 3 == found.flops.total
    inner = ("self_attn", "linear1", "linear2", "norm1", "norm2", "dropout", "dropout1", "dropout2")
    assert tree["layers.2"] == sum(tree[f"layers.2.{name}"] for name in inner)


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_runs_again_is_backward_and_its_modules(reentrant: bool) -> None:
    """The block's two maps run again; what they keep is not kept before: only the block's input is."""
    given = torch.ones(3, 4, requires_grad=True)
    found = measure(Checkpointed(reentrant), given, backward=True)
    assert split(found)["first"] == (ONE, 2 * ONE)
    assert split(found)["block"] == (2 * ONE, (4 + 2) * ONE)
    assert split(found)["block.0"] == (ONE, (2 + 1) * ONE)
    assert found.flops.by_module[""] == found.flops.total == (3 + 8) * ONE
    assert (found.saved.activations, found.saved.inputs) == (3 * 4 * 4, 3 * 4 * 4)


def test_a_gradient_written_by_hand() -> None:
    found = measure(torch.nn.Sequential(torch.nn.Linear(4, 4), ByHand()), ROWS, backward=True)
    assert split(found) == {"0": (ONE, ONE), "1": (0, ONE), "": (ONE, 2 * ONE)}


def test_modules_of_a_function_go_by_their_class() -> None:
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def both(x: Any) -> Any:
        return second(first(second(x)))

    found = measure(both, ROWS)
    assert found.name == "both"
    assert split(found) == {"": (3 * ONE, 0), "Linear": (2 * ONE, 0), "Linear_2": (ONE, 0)}


def test_modules_made_by_the_code() -> None:
    """Each is one of its own, though the memory of one may be that of the last."""

    def make(x: Any) -> Any:
        for _ in range(3):
            x = torch.nn.Linear(4, 4)(x)
        return x

    with torch.no_grad():
        found = measure(make, ROWS)
    assert split(found) == {"": (3 * ONE, 0)} | dict.fromkeys(("Linear", "Linear_2", "Linear_3"), (ONE, 0))
    assert found.parameters == 60
    assert found.peak_bytes == 4 * (12 + 12 + 20 + 12)  # x, a step's input, its weights and its result


def test_a_method_has_its_modules_tree() -> None:
    net = Twice()
    assert measure(net.forward, ROWS).flops.by_module == measure(net, ROWS).flops.by_module


def test_an_error_of_the_code_leaves_no_hooks() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(5, 5))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        measure(net, ROWS)
    assert not torch.nn.modules.module._global_forward_pre_hooks
    assert not torch.nn.modules.module._global_forward_hooks
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_compiled_code_is_measured_as_written() -> None:
    with pytest.warns(UserWarning, match="global hooks"):  # its own second name for the module
        found = measure(torch.compile(torch.nn.Linear(4, 4), backend="eager"), ROWS)
    assert found.flops.total == ONE


def test_measuring_twice_gives_the_same() -> None:
    net = Twice()
    assert measure(net, ROWS, backward=True) == measure(net, ROWS, backward=True)
