"""Dense and sparse feed-forward layers by hand."""

from __future__ import annotations

from typing import Any

import pytest

from assay.blocks import Mlp
from assay.blocks.moe import Moe, Router
from assay.kinds import check
from assay.readings.count import Count, count
from assay.spec import Block

D, F, S, E, A, N, B = 8, 11, 5, 7, 3, 13, 2
T = B * N  # tokens


def counted(body: Any, convention: str = "matmul") -> Count:
    made = tuple(body.ops("x", "y"))
    check(made)
    sizes = {a: s for a, s in body.sizes().items() if s is not None} | {"d": D}
    return count(Block("m", made, sizes), B, N, convention=convention)


@pytest.mark.parametrize(("gated", "matrices"), [(True, 3), (False, 2)])
def test_dense(gated: bool, matrices: int) -> None:
    of = counted(Mlp(F, gated))
    assert of.parameters.by_part == {"mlp": matrices * D * F}
    assert of.flops.by_part == {"mlp": 2 * T * matrices * D * F}
    assert of.cache.bytes == 0


@pytest.mark.parametrize(("letters", "more"), [("g", F), ("u", F), ("d", D), ("gud", 2 * F + D)])
def test_biases(letters: str, more: int) -> None:
    assert counted(Mlp(F, bias=letters)).parameters.total - 3 * D * F == more


@pytest.mark.parametrize(
    ("activation", "gated", "an_element"),
    [("silu", True, 5), ("gelu", True, 6), ("relu", False, 1), ("gelu_tanh", False, 9), ("swiglu_clamp", True, 9)],
)
def test_activations(activation: str, gated: bool, an_element: int) -> None:
    """Of each inner element; a gate's product is one of them, where the activation does not hold it."""
    matrices = 3 if gated else 2
    products = T * ((matrices - 1) * F * (2 * D - 1) + D * (2 * F - 1))
    assert counted(Mlp(F, gated, activation), "scalar").flops.total == products + T * F * an_element


def test_routed_experts() -> None:
    of = counted(Moe(E, A, F))
    assert of.parameters.by_part == {"router": D * E, "experts": E * 3 * D * F}
    assert of.parameters.active == D * E + A * 3 * D * F
    assert of.flops.by_part == {"router": 2 * T * D * E, "experts": 2 * T * A * 3 * D * F}


def test_more_chosen_than_there_are() -> None:
    """A description may say so; a token passes each expert once at most in what is active."""
    of = counted(Moe(E, E + 2, F))
    assert of.parameters.active == of.parameters.total


def test_shared_experts() -> None:
    of = counted(Moe(E, A, F, shared=S))
    assert of.parameters.by_part["experts"] == E * 3 * D * F + 3 * D * S
    assert of.parameters.active == D * E + A * 3 * D * F + 3 * D * S
    assert of.flops.by_part["experts"] == 2 * T * (A * 3 * D * F + 3 * D * S)


def test_gate_of_shared_experts_belongs_to_the_router() -> None:
    of = counted(Moe(E, A, F, shared=S, shared_gate=True))
    assert of.parameters.by_part["router"] == D * E + D
    assert of.flops.by_part["router"] == 2 * T * (D * E + D)


def test_biases_of_experts() -> None:
    of = counted(Moe(E, A, F, Router(bias=True), bias="gud"))
    assert of.parameters.by_part == {"router": D * E + E, "experts": E * (3 * D * F + 2 * F + D)}
    assert of.parameters.active == D * E + E + A * (3 * D * F + 2 * F + D)


@pytest.mark.parametrize(
    ("router", "a_token"),
    [
        (Router(), 3 * E - 1 + E * A),  # softmax of all, then a maximum for each choice
        (Router("softmax-of-chosen"), E * A + 3 * A - 1),
        (Router("sigmoid"), 4 * E + E * A),
        (Router(normalize=True), 3 * E - 1 + E * A + 2 * A - 1),
        (Router(scale=2.5), 3 * E - 1 + E * A + A),
        (Router("sigmoid", correction=True), 4 * E + E + E * A),
        (Router(softcap=30.0), 3 * E + 3 * E - 1 + E * A),
    ],
)
def test_routers(router: Router, a_token: int) -> None:
    of = counted(Moe(E, A, F, router), "scalar")
    assert of.flops.by_part["router"] == T * (E * (2 * D - 1) + a_token)


def test_weighing_costs_what_a_sum_costs() -> None:
    routed = counted(Moe(E, A, F), "scalar").flops.by_part["experts"]
    products = A * (2 * F * (2 * D - 1) + D * (2 * F - 1)) + A * F * 5
    assert routed == T * (products + A * D + (A - 1) * D)
