"""Ops sorted once: layers of one structure share what readings ask of their ops, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.readings.count import count
from assay.readings.plans import _PLANS as PLANS
from assay.readings.plans import MOST, Known, plan_of
from assay.records import replace
from assay.spec import Model, ops

# models most of whose layers differ in a size or two
MIXED = ("inkling2_text", "inkling2_loop_text", "zamba2", "hy_v4", "deepseek_v4", "gemma3n_text", "jamba", "qwen3_next")
SETTINGS = (
    {"tokens": 7},
    {"tokens": 3, "past": 300},
    {"tokens": 40, "convention": "causal"},
    {"tokens": 5, "convention": "scalar"},
    {"tokens": 6, "logits": "last", "batch": 3},
)


def mixed(model_type: str) -> Model:
    """A model of its config class's own sizes."""
    return assay.load({"model_type": model_type})


@pytest.mark.parametrize("model_type", MIXED)
@pytest.mark.parametrize("asked", SETTINGS, ids=str)
def test_a_layer_costs_the_same_alone_as_behind_layers_like_it(model_type: str, asked: dict[str, Any]) -> None:
    model = mixed(model_type)
    together = count(model, **asked)
    for segment, row in zip(model.segments, together.rows, strict=True):
        alone = count(replace(model, segments=(segment,)), **asked)
        assert (alone.flops, alone.cache) == (row.flops, row.cache)


@pytest.mark.parametrize("model_type", MIXED)
def test_parts_add_up(model_type: str) -> None:
    counted = count(mixed(model_type), tokens=9)
    assert sum(counted.flops.by_part.values()) == counted.flops.total
    assert all(row.flops.total == sum(row.flops.by_part.values()) for row in counted.rows)


def test_layers_of_one_structure_have_one_plan() -> None:
    model = mixed("inkling2_text")
    plans = {plan_of(segment.block.ops) for segment in model.segments}
    assert len(plans) < len(model.segments) / 2


def test_a_plan_holds_its_ops() -> None:
    made = tuple(ops("mlp", "y = linear(x[b n d], W[d f]) -> [b n f]", "y = gelu(y[b n f]) -> [b n f]"))
    plan = plan_of(made)
    assert plan_of(tuple(made)) is plan
    assert plan.ops == made
    assert [line.op for line in plan.contracting] == [made[0]]


def test_plans_do_not_pile_up() -> None:
    for index in range(MOST + 10):
        plan_of(tuple(ops("mlp", f"y{index} = view(x[b n d]) -> [b n d]")))
    assert len(PLANS) <= MOST


def test_arrays_and_symbols_are_always_looked_at() -> None:
    numpy = pytest.importorskip("numpy")
    model = mixed("inkling2_text")
    lengths = numpy.array([3, 40, 700])
    swept = count(model, tokens=lengths)
    for index, tokens in enumerate((3, 40, 700)):
        assert int(swept.flops.total[index]) == count(model, tokens=tokens).flops.total


def test_news_are_axes_of_other_sizes() -> None:
    from assay.kinds import Extent

    known = Known()
    assert known.turn(Extent({"b": 1, "n": 4, "d": 8})).news is None
    assert known.turn(Extent({"b": 1, "n": 4, "d": 9})).news == {"d"}
    assert known.turn(Extent({"b": 1, "n": 4, "d": 9})).news == set()
