"""Embeddings, norms, heads and residual arrangements by hand."""

from __future__ import annotations

from typing import Any

import pytest

from assay.blocks import Attention, Branch, Decoder, Embedding, Head, Layer, Mlp, Norm, Step
from assay.errors import SizeError
from assay.kinds import check
from assay.readings.count import Count, count
from assay.readings.tensors import tensors
from assay.spec import Block, Model

V, D, J, P, N, B = 50, 8, 3, 20, 5, 2
LAYER = 4 * D * D + 3 * D * 12  # attention of one head, a gated MLP of 12


def alone(part: Any, convention: str = "matmul", **setting: Any) -> Count:
    made = tuple(part.ops())
    check(made)
    sizes = {a: s for a, s in part.sizes().items() if s is not None}
    return count(Block("end", made, sizes), B, N, convention=convention, **setting)


def stacked(layers: tuple[Layer, ...], head: Head | None = None, **embedding: Any) -> Model:
    decoder = Decoder(Embedding(V, D, **embedding), layers, head or Head(V, D, True))
    return Model("m", decoder.segments({}), layers=len(layers), width=D)


def layer(arrangement: str, norm: Norm | None = None, window: int | None = None) -> Layer:
    a, m = Attention(1, 1, D, window=window), Mlp(12)
    n = norm or Norm()
    return {
        "pre": Layer((Step((Branch(a, n),)), Step((Branch(m, n),)))),
        "post": Layer((Step((Branch(a),), after=n), Step((Branch(m),), after=n))),
        "inner post": Layer((Step((Branch(a, None, n),)), Step((Branch(m, None, n),)))),
        "sandwich": Layer((Step((Branch(a, n, n),)), Step((Branch(m, n, n),)))),
        "parallel": Layer((Step((Branch(a), Branch(m)), before=n),)),
        "parallel, two norms": Layer((Step((Branch(a, n), Branch(m, n))),)),
        "scaled": Layer((Step((Branch(a, n),), scale=0.5), Step((Branch(m, n),), scale=0.5))),
    }[arrangement]


@pytest.mark.parametrize(
    ("embedding", "parameters", "flops"),
    [
        (Embedding(V, D), V * D, 0),  # a look-up is no arithmetic
        (Embedding(V, D, positions=P), V * D + P * D, 0),
        (Embedding(V, D, narrow=J), V * J + J * D, 2 * B * N * J * D),
        (Embedding(V, D, norm=Norm("layernorm", "gain+bias")), V * D + 2 * D, 0),
    ],
)
def test_embeddings(embedding: Embedding, parameters: int, flops: int) -> None:
    of = alone(embedding)
    assert (of.parameters.total, of.flops.total) == (parameters, flops)


@pytest.mark.parametrize(
    ("embedding", "scalar"),
    [(Embedding(V, D, positions=P), B * N * D), (Embedding(V, D, scale=8.0), B * N * D), (Embedding(V, D), 0)],
)
def test_scalar_work_of_embeddings(embedding: Embedding, scalar: int) -> None:
    assert alone(embedding, "scalar").flops.total == scalar


@pytest.mark.parametrize(
    ("norm", "parameters", "a_row"),
    [
        (Norm(affine="none"), 0, 3 * D + 3),
        (Norm(), D, 4 * D + 3),
        (Norm("layernorm", "none"), 0, 5 * D + 3),
        (Norm("layernorm", "gain"), D, 6 * D + 3),
        (Norm("layernorm", "gain+bias"), 2 * D, 7 * D + 3),
    ],
)
def test_norms(norm: Norm, parameters: int, a_row: int) -> None:
    block = Block("norm", tuple(norm.ops("x", "y", "a")), {"d": D})
    of = count(block, B, N, convention="scalar")
    assert of.parameters.total == parameters
    assert of.flops.by_part == {"norm": B * N * a_row}
    assert count(block, B, N).flops.total == 0


def test_heads() -> None:
    plain = alone(Head(V, D))
    assert (plain.parameters.head, plain.flops.total) == (V * D, 2 * B * N * V * D)
    assert alone(Head(V, D, bias=True)).parameters.by_part == {"head": V * D + V}
    narrow = alone(Head(V, D, narrow=J))
    assert narrow.flops.total == 2 * B * N * (D * J + J * V)
    assert alone(Head(V, D), logits="last").flops.total == 2 * B * V * D
    extra = alone(Head(V, D, scale=0.1, softcap=30.0), "scalar").flops.total - alone(Head(V, D), "scalar").flops.total
    assert extra == 4 * B * N * V


def test_a_tied_head_stands_once() -> None:
    """Its weights under the embedding, its FLOPs under the head."""
    of = count(stacked((layer("pre"),)), B, N)
    assert of.parameters.embedding == V * D
    assert of.parameters.head == 0
    assert of.flops.by_part["head"] == 2 * B * N * V * D
    untied = count(stacked((layer("pre"),), Head(V, D)), B, N)
    assert untied.parameters.total - of.parameters.total == V * D
    assert untied.flops == of.flops


@pytest.mark.parametrize(
    ("arrangement", "norms", "adds"),
    [
        ("pre", 2, 2),
        ("post", 2, 2),
        ("inner post", 2, 2),
        ("sandwich", 4, 2),
        ("parallel", 1, 2),
        ("parallel, two norms", 2, 2),
        ("scaled", 2, 4),  # a multiplication beside each addition
    ],
)
def test_residual_arrangements(arrangement: str, norms: int, adds: int) -> None:
    of = count(stacked((layer(arrangement),)), B, N, convention="scalar")
    assert of.parameters.by_part.get("norm", 0) == norms * D
    assert of.parameters.total == V * D + LAYER + norms * D
    assert of.flops.by_part["norm"] == norms * B * N * (4 * D + 3)
    assert of.flops.by_part["other"] == adds * B * N * D


def test_layers_alike_are_one_segment() -> None:
    a, b = layer("pre"), layer("pre", window=3)
    model = stacked((a, b, a, layer("pre"), b))
    assert [(s.name, s.layers) for s in model.segments] == [
        ("embedding", ()),
        ("layer", (0, 2, 3)),
        ("layer", (1, 4)),
        ("head", ()),
    ]
    assert count(model, B, N).parameters.total == V * D + 5 * (LAYER + 2 * D)
    times = {entry.path: entry.times for entry in tensors(model)}
    assert times["E"] == 1
    assert {entry.layers for entry in tensors(model) if entry.path == "layers.{i}.Wq"} == {(0, 2, 3), (1, 4)}


def test_depth_multiplies() -> None:
    """Layers that are alike are counted once and multiplied."""
    one, many = (count(stacked((layer("pre"),) * n), B, N) for n in (1, 1000))
    ends = V * D
    assert [s.layers for s in stacked((layer("pre"),) * 1000).segments if s.layers] == [tuple(range(1000))]
    assert many.parameters.total - ends == 1000 * (one.parameters.total - ends)
    assert many.cache.bytes == 1000 * one.cache.bytes
    assert many.flops.attention_scores == 1000 * one.flops.attention_scores


def test_one_axis_has_one_size_in_a_layer() -> None:
    odd = Layer((Step((Branch(Mlp(12)),)), Step((Branch(Mlp(13)),))))
    with pytest.raises(SizeError, match="axis f is 12 and 13 in one layer"):
        odd.sizes()
