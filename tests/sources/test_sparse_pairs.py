"""What masks of sparse attention let through, drawn cell by cell; generated tokens one by one."""

from __future__ import annotations

from typing import Any

import pytest
from sparse_configs import DOTS3, GEMMA4, GLM, M3, V4, counted, model

from assay.readings.count import count
from assay.readings.generate import generate

SETTINGS = [(1, 0), (7, 0), (13, 0), (40, 0), (1, 3), (1, 40), (5, 2), (6, 30), (33, 17)]


def causal(t: int) -> int:
    return t + 1


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_an_indexer(n: int, past: int) -> None:
    """Scores of 6 layers: 4 heads of 16 + 20 to min(t + 1, 4) keys; 2 indexers of 2 heads of 8 and a sum over heads."""
    flops = counted(GLM, n, past).flops
    dense, chosen = n * (n + past), sum(min(t + 1, 4) for t in range(past, past + n))
    seen = sum(map(causal, range(past, past + n)))
    indexers = [segment.layers for segment in model(GLM).segments if "full index" in segment.name]
    assert sorted(i for layers in indexers for i in layers) == [0, 1, 4]
    left_out = 6 * 2 * 4 * (16 + 20) * (dense - chosen) + 3 * 2 * (2 * 8 + 2) * (dense - seen)
    assert flops.total - flops.visible_total == left_out


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_absorbed_latents(n: int, past: int) -> None:
    """Absorbed, a head attends to the latent of 16 and the rotary key of 4, and reads the latent."""
    flops = count(model(GLM), tokens=n, past=past, latent="absorbed").flops
    dense, chosen = n * (n + past), sum(min(t + 1, 4) for t in range(past, past + n))
    seen = sum(map(causal, range(past, past + n)))
    left_out = 6 * 2 * 4 * (16 + 4 + 16) * (dense - chosen) + 3 * 2 * (2 * 8 + 2) * (dense - seen)
    assert flops.total - flops.visible_total == left_out


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_blocks(n: int, past: int) -> None:
    """Two blocks of 4: a query's own so far, and the best of those before."""

    def seen(t: int) -> int:
        return t + 1 if t // 4 < 2 else 4 + t % 4 + 1

    flops = counted(M3, n, past).flops
    dense = n * (n + past)
    all_seen = sum(map(causal, range(past, past + n)))
    best = sum(map(seen, range(past, past + n)))
    score = 2 * 2 * 4 * 12  # keys and values of 4 heads of 12
    indexer = 2 * 2 * 8
    assert flops.total - flops.visible_total == 2 * (score + indexer) * (dense - all_seen) + 2 * score * (dense - best)


@pytest.mark.parametrize(("n", "past"), SETTINGS)
def test_visible_pairs_of_entries(n: int, past: int) -> None:
    """DeepSeek-V4: a window of 8, entries of 4 tokens of which 3 are attended to, entries of 16 tokens."""
    flops = counted(V4, n, past).flops
    queries = range(past, past + n)
    window = n * (n + min(past, 7)) - sum(min(t + 1, 8) for t in queries)
    held = {rate: (past + n) // rate for rate in (4, 16)}
    ready = {rate: [(t + 1) // rate for t in queries] for rate in (4, 16)}
    score = 2 * 2 * 4 * 32
    left_out = 5 * score * window
    left_out += 2 * score * (n * held[4] - sum(min(r, 3) for r in ready[4]))
    left_out += 2 * 2 * (2 * 16 + 2) * (n * held[4] - sum(ready[4]))  # the indexer sees every entry that is full
    left_out += score * (n * held[16] - sum(ready[16]))
    assert flops.total - flops.visible_total == left_out


@pytest.mark.parametrize(("n", "past"), SETTINGS)
@pytest.mark.parametrize("window", [None, 3, 9])
def test_visible_pairs_of_a_mask_of_values(n: int, past: int, window: int | None) -> None:
    """Doge: of at most `window` keys the best 5, in 3 layers of 4 heads of 16."""
    sizes = {"hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = {"model_type": "doge", "vocab_size": 99, "keep_window_size": 5, "sliding_window": window, **sizes}
    flops = counted(config, n, past).flops
    keys = n + (past if window is None else min(past, window - 1))
    seen = sum(min(t + 1, window or t + 1, 5) for t in range(past, past + n))
    assert flops.total - flops.visible_total == 3 * 2 * 2 * 4 * 16 * (n * keys - seen)


@pytest.mark.parametrize("config", [GLM, DOTS3, V4, M3, GEMMA4], ids=lambda config: str(config["model_type"]))
def test_generated_tokens_step_by_step(config: dict[str, Any]) -> None:
    found = generate(model(config), 50, tokens=7, past=6)
    steps = [counted(config, 1, 13 + i).flops for i in range(50)]
    again = [counted(config, 14 + i).flops for i in range(50)]
    assert found.steps.total == sum(step.total for step in steps)
    assert found.steps.visible_total == sum(step.visible_total for step in steps)
    assert found.again.total == sum(step.total for step in again)
    assert found.again.visible_total == sum(step.visible_total for step in again)
