"""What each rank of a plan holds and sends: by hand, and against the model on one rank."""

from __future__ import annotations

from typing import Any

import pytest

import assay
from assay.readings.sharded import sharded
from assay.rewrites.plan import Plan

LLAMA = "llama-3-70b"
LAYERS, D, V, P = 80, 8192, 128256, 70_553_706_496
N = 2048
STREAM = N * D * 2  # bytes of the residual stream of a sequence
MATRICES = P - (2 * LAYERS + 1) * D  # all but the norms


def served(**plan: Any) -> Any:
    return sharded(assay.load(LLAMA), Plan(**plan), tokens=N, context=8192)


def trained(**plan: Any) -> Any:
    return sharded(assay.load(LLAMA), Plan(**plan), train=True, tokens=N, precision="mixed", recompute="layer")


def test_weights_and_cache_of_a_rank() -> None:
    (one,) = served(tensor=8).ranks
    assert one.parts["weights"] == 2 * (MATRICES // 8 + P - MATRICES)
    assert one.parts["cache"] == LAYERS * 8192 * 2 * (8 // 8) * 128 * 2
    assert one.bytes == sum(one.parts.values())
    assert served(tensor=8).total == 8 * one.bytes


def test_one_rank_is_the_model() -> None:
    (one,) = served().ranks
    assert one.bytes == assay.memory(assay.load(LLAMA), tokens=N, context=8192).total
    assert one.sent == {}
    (step,) = trained().ranks
    whole = assay.training_memory(assay.load(LLAMA), 1, N, precision="mixed", recompute="layer")
    assert step.bytes == whole.peak.bytes


def test_a_rank_sends_what_it_sums() -> None:
    """Two sums a layer and one of the embedding, each twice 7/8 of the residual stream."""
    (one,) = served(tensor=8).ranks
    assert one.sent == {"tensor": (2 * LAYERS + 1) * 2 * STREAM * 7 // 8}


def test_divided_tokens_send_as_much() -> None:
    """Korthikanti et al. 2022, section 4.2.2: gathered and scattered is as much as summed. And the head gathers."""
    (one,) = served(tensor=8, sequence=True).ranks
    assert one.sent == {"tensor": (4 * LAYERS + 2) * STREAM * 7 // 8}
    (plain,) = served(tensor=8).ranks
    assert one.sent == plain.sent
    both = [sharded(assay.load(LLAMA), Plan(tensor=8, sequence=s), train=True, tokens=N) for s in (False, True)]
    assert both[0].ranks[0].sent == both[1].ranks[0].sent


def test_backward_sends_as_much_again() -> None:
    """Forward the embedding, backward the head's copies, and two of each layer both ways; once more what runs again."""
    each = 2 * STREAM * 7 // 8
    (plain,) = sharded(assay.load(LLAMA), Plan(tensor=8), train=True, tokens=N).ranks
    assert plain.sent == {"tensor": (2 * LAYERS + 1) * each + (2 * LAYERS + 1) * each}
    (again,) = trained(tensor=8).ranks
    assert again.sent == {"tensor": plain.sent["tensor"] + 2 * LAYERS * each}


@pytest.mark.parametrize(("zero", "times"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_data_ranks_send_gradients_and_parameters(zero: int, times: int) -> None:
    """Rajbhandari et al. 2020, section 7: 2 Psi, and 3 Psi where parameters are divided, of 16-bit elements."""
    (one,) = trained(data=4, zero=zero).ranks
    assert one.sent["data"] == times * P * 3 // 4 * 2


def test_states_are_divided_and_activations_are_not() -> None:
    (whole,), (third,) = trained().ranks, trained(data=64, zero=3).ranks
    share = -(-P // 64)
    assert {name: third.parts[name] for name in ("parameters", "master", "optimizer.exp_avg")} == {
        "parameters": 2 * share,
        "master": 4 * share,
        "optimizer.exp_avg": 4 * share,
    }
    assert third.memory.saved == whole.memory.saved
    assert third.parts["gathered"] == (2 + 2) * (V * D + D)


def test_the_first_stage_holds_the_most_passes() -> None:
    made = trained(tensor=8, pipeline=4, sequence=True)
    assert [one.rank.stages for one in made.ranks] == [(0,), (1, 2), (3,)]
    first, middle, last = made.ranks
    kept = 20 * STREAM // 8  # with every layer run again, the input of each
    assert first.parts["in flight"] >= 3 * kept
    assert first.parts["in flight"] * 2 > middle.parts["in flight"] * 2 > 0
    assert "in flight" not in last.parts
    assert sum(one.rank.count for one in made.ranks) == 32
    assert made.most is max(made.ranks, key=lambda one: one.bytes)


def test_stages_hand_on_the_stream() -> None:
    first, middle, last = (one.sent["pipeline"] for one in trained(pipeline=4).ranks)
    assert (first, middle, last) == (STREAM, 2 * STREAM, STREAM)


def test_experts_exchange_tokens() -> None:
    """Both ways, each token to 2 of 8 experts, of which 3/4 are elsewhere."""
    model = assay.load("mixtral-8x7b")
    (one,) = sharded(model, Plan(data=4, expert=4), tokens=64).ranks
    assert one.sent["expert"] == 32 * 2 * 64 * 2 * 4096 * 2 * 3 // 4


def test_what_cannot_be_asked() -> None:
    with pytest.raises(assay.SettingError, match="tensor is 3; the 64 query heads of Llama 3 70B do not divide"):
        served(tensor=3)
