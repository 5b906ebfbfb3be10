"""How a measurement prints: totals exact, modules that are alike in one row, depth; and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from assay import Measurement, measure


class Layer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = torch.nn.Linear(4, width)
        self.down = torch.nn.Linear(width, 4)

    def forward(self, x: Any) -> Any:
        return x + self.down(self.up(x).relu())


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(width) for width in widths)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.fixture(scope="module")
def found() -> Measurement:
    return measure(Net((8, 8, 16, 8)), torch.ones(10, 4), backward=True)


def test_the_table(found: Measurement) -> None:
    """A layer of width w takes 2 · 10 · 2 · 4 w forward, the head 2 · 10 · 4 · 2; the first `up` gives x nothing."""
    lines = found.table(depth=3).splitlines()
    assert lines[:4] == [
        "Net",
        "  FLOPs        19,040  forward 6,560, backward 12,480",
        "  parameters      386  each once",
        # x; in each layer relu's result, that `down` reads too, and what the next layer reads
        "  saved       2,400 B  activations 2,240, inputs 160; and weights 1,184",
    ]
    assert (
        "\n".join(lines[6:17])
        == """\
  module                  calls  parameters  forward  backward    share
  Net                         1         386  6.560 k   12.48 k  100.0 %
    layers    ModuleList      0         376  6.400 k   12.16 k   97.5 %
      0       Layer           1          76  1.280 k   1.920 k   16.8 %
        up    Linear          1          40      640       640    6.7 %
        down  Linear          1          36      640   1.280 k   10.1 %
      1, 3    2 × Layer       2         152  2.560 k   5.120 k   40.3 %
        up    2 × Linear      2          80  1.280 k   2.560 k   20.2 %
        down  2 × Linear      2          72  1.280 k   2.560 k   20.2 %
      2       Layer           1         148  2.560 k   5.120 k   40.3 %
        up    Linear          1          80  1.280 k   2.560 k   20.2 %"""
    )
    assert lines[-5:-2] == [
        "  op           calls  forward  backward",
        "  aten::mm        17        0   12.48 k",
        "  aten::addmm      9  6.560 k         0",
    ]
    assert str(found) == found.table()


def test_depth(found: Measurement) -> None:
    assert "layers" not in found.table(depth=0)
    assert "2 × Layer" not in found.table(depth=1)
    assert "up" not in found.table(depth=2)
    assert "up" in found.table(depth=3)
    assert found.table(depth=3) == found.table(depth=30)


def test_no_figure_is_lost_by_joining_rows(found: Measurement) -> None:
    assert sum(row.flops for row in found.modules if row.path.count(".") == 2) + found.flops.by_module["head"] == (
        found.flops.total
    )


def test_json_holds_exact_integers(found: Measurement) -> None:
    made = json.loads(found.to_json(), parse_float=lambda text: pytest.fail(f"{text} is no integer"))
    assert made["flops"]["total"] == made["flops"]["forward"] + made["flops"]["backward"] == found.flops.total
    assert made["saved_bytes"] == made["saved"]["activations"] + made["saved"]["inputs"]
    assert made["flops"]["by_module"]["layers.2"] == 3 * 2 * 10 * 2 * 4 * 16
    assert {row["name"]: row["calls"] for row in made["ops"]}["aten::addmm"] == 9
    assert [row["path"] for row in made["modules"]][:3] == ["", "layers", "layers.0"]
    assert made == found.as_dict() | {"ops": made["ops"], "modules": made["modules"]}


def test_figures_beyond_64_bits_are_exact() -> None:
    rows, columns = torch.empty(10**7, 10**7, device="meta"), torch.empty(10**7, 10**7, device="meta")
    assert measure(torch.mm, rows, columns).flops.total == 2 * 10**21
