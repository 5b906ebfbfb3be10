"""The graphs of models: every op once, every arrow from where its value is made to where it is read."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import assay
from assay.readings.binding import bind, placed
from assay.readings.graph import Graph, Stage, graph
from assay.sources.presets import presets
from assay.spec import Model

SHOWN = ("llama-3-8b", "gpt-2", "t5-small", "deepseek-v3", "granite-4.0-h-small", "gemma-2-9b", "albert-base")


@cache
def drawn(name: str, unrolled: bool = False) -> tuple[Model, Any, Graph]:
    model = assay.load(name)
    counted = assay.count(model, batch=2, tokens=48, images=1 if "images" in model.settings else None)
    return model, counted, graph(model, counted.setting, unrolled)


@pytest.mark.parametrize("name", [name for name, _ in presets()])
@pytest.mark.parametrize("unrolled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_op_stands_once_and_costs_add_up(name: str, unrolled: bool) -> None:
    model, counted, made = drawn(name, unrolled)
    for segment, stage in zip(model.segments, made.stages, strict=True):
        held = sorted(str(row.op) for node in stage.nodes for row in node.rows)
        assert held == sorted(map(str, segment.block.ops))
        assert {node.part for node in stage.nodes} <= {op.part.partition(".")[0] for op in segment.block.ops}
    spent = sum(stage.times * sum(node.flops for node in stage.nodes) for stage in made.stages)
    assert spent == counted.flops.total
    own = sum((len(s.layers) or 1) * sum(node.parameters for node in s.nodes) for s in made.stages)
    assert own == counted.parameters.total


@pytest.mark.parametrize("name", [name for name, _ in presets()])
@pytest.mark.parametrize("unrolled", [False, True])
def test_shapes_on_arrows_are_those_of_the_setting(name: str, unrolled: bool) -> None:
    model, counted, made = drawn(name, unrolled)
    for segment, stage in zip(model.segments, made.stages, strict=True):
        sizes = bind(segment.block, placed(segment, counted.setting.sizes())).sizes
        for flow in stage.flows:
            for value in flow.values:
                assert value.shape == tuple(sizes[axis] for axis in value.axes)


@pytest.mark.parametrize("name", [name for name, _ in presets()])
def test_unrolled_arrows_are_the_reads_of_the_ops(name: str) -> None:
    model, _, made = drawn(name, True)
    for segment, stage in zip(model.segments, made.stages, strict=True):
        reads = set()
        last: dict[str, int] = {}
        for reader, op in enumerate(segment.block.ops):
            reads |= {
                (last.get(t.name), t.name, reader) for t in op.inputs if not t.name.rpartition(".")[2][0].isupper()
            }
            last[op.name] = reader
        arrows = {(f.source, v.name, target) for f in stage.flows for v in f.values for target in f.targets}
        assert arrows == reads


@pytest.mark.parametrize("name", [name for name, _ in presets()])
def test_no_sub_layer_lies_before_and_behind_another(name: str) -> None:
    for stage in drawn(name)[2].stages:
        waiting = dict(enumerate(stage.nodes))
        while waiting:
            blocked = {t for f in stage.flows if f.source in waiting for t in f.targets}
            ready = [index for index in waiting if index not in blocked]
            assert ready, f"{stage.name} runs in a circle"
            for index in ready:
                del waiting[index]


def parts(stage: Stage) -> list[str]:
    return [node.part if len(node.rows) > 1 else node.rows[0].op.kind for node in stage.nodes]


def stage_of(name: str, stage: str, place: int = 0) -> Stage:
    return [one for one in drawn(name)[2].stages if one.name == stage][place]


@pytest.mark.parametrize(
    ("name", "stage", "boxes"),
    [
        ("llama-3-8b", "layer", ["rmsnorm", "attention", "add", "rmsnorm", "mlp", "add"]),
        ("gpt-2", "embedding", ["embedding"]),
        ("bert-base", "layer", ["attention", "add", "layernorm", "mlp", "add", "layernorm"]),
        ("deepseek-v3", "sparse", ["rmsnorm", "attention", "add", "rmsnorm", "router", "experts", "add"]),
        ("granite-4.0-h-small", "scan", ["rmsnorm", "mixer", "add", "rmsnorm", "router", "experts", "add"]),
        ("falcon-7b", "layer", ["layernorm", "attention", "mlp", "add"]),
    ],
)
def test_a_box_is_a_sub_layer(name: str, stage: str, boxes: list[str]) -> None:
    assert parts(stage_of(name, stage)) == boxes


def test_norms_within_attention_belong_to_it() -> None:
    held = [row.op.kind for row in stage_of("deepseek-v3", "dense").nodes[1].rows]
    assert held.count("rmsnorm") == 2


def test_the_residual_stream_goes_round_the_sub_layers() -> None:
    stage = stage_of("llama-3-8b", "layer")
    stream = [(f.source, f.targets, f.leaves) for f in stage.flows if f.values[0].name == "x"]
    assert stream == [(None, (0, 2), False), (2, (3, 5), False), (5, (), True)]
    assert [f.origin for f in stage.flows if f.carried] == ["embedding"]


def test_router_and_experts() -> None:
    stage = stage_of("deepseek-v3", "sparse")
    assert [([v.name for v in f.values], f.targets) for f in stage.flows if f.source == 4] == [(["i", "w"], (5,))]
    assert [f.targets for f in stage.flows if f.source == 3] == [(4, 5)]


def test_cross_attention_reads_the_memory() -> None:
    for place in (0, 1):
        stage = stage_of("t5-small", "decoder layer", place)
        crossed = [index for index, node in enumerate(stage.nodes) if node.crossed]
        memory = [flow for flow in stage.flows if flow.crosses]
        assert [flow.targets for flow in memory] == [tuple(crossed)]
        assert memory[0].origin == "encoder final"
        assert not memory[0].carried


def test_what_one_layer_makes_for_later_ones() -> None:
    first, later = (stage_of("t5-small", "encoder layer", place) for place in (0, 1))
    assert [flow.leaves for flow in first.flows if flow.values[0].name == "rel"] == [True]
    assert [(f.origin, f.carried) for f in later.flows if f.values[0].name == "rel"] == [("encoder layer", False)]


@pytest.mark.parametrize(
    ("name", "stacks"),
    [
        ("deepseek-v3", [["embedding"], ["dense"], ["sparse"], ["head"]]),
        ("granite-4.0-h-small", [["embedding"], ["scan", "attend"], ["head"]]),
        ("gemma-2-9b", [["embedding"], ["local", "global"], ["head"]]),
    ],
)
def test_layers_that_take_turns_stand_beside_each_other(name: str, stacks: list[list[str]]) -> None:
    assert [[stage.name for stage in stack] for stack in drawn(name)[2].stacks()] == stacks


@pytest.mark.parametrize("name", SHOWN)
def test_costs_are_under_the_convention(name: str) -> None:
    model = assay.load(name)
    counted = assay.count(model, tokens=64, convention="scalar")
    made = graph(model, counted.setting)
    assert sum(s.times * sum(node.flops for node in s.nodes) for s in made.stages) == counted.flops.total
    assert not any(node.adds for stage in made.stages for node in stage.nodes)  # a sum costs something


def test_one_sub_layer_is_not_drawn_within_another() -> None:
    """Gemma 3n's layer begins and ends with products that count as MLP: attention between them is a box of its own,
    with its norms of queries, keys and values.
    """
    config = {
        "model_type": "gemma3n_text",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 5,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "num_kv_shared_layers": 0,
        "layer_types": ["sliding_attention"] * 4 + ["full_attention"],
        "activation_sparsity_pattern": [0.0] * 5,
    }
    model = assay.load(config)
    stage = next(s for s in assay.draw(model).graph.stages if s.name == "sliding")
    (box,) = [node for node in stage.nodes if node.part == "attention"]
    kinds = [row.op.kind for row in box.rows]
    assert kinds.count("softmax") == 1
    assert kinds.count("rmsnorm") == 3
    assert not any(row.op.kind == "softmax" for node in stage.nodes if node is not box for row in node.rows)
