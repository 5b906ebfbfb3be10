"""State-space, linear-attention and short-convolution families against the public implementation and hand sums.

Tensors are compared by name, for default configs and for small ones with every option turned. The public
implementation scans a prefill in padded chunks, or token by token without a matmul, so FLOPs of mixers are summed by
hand in the recurrent form; a decode step of it is counted while it runs, and what its counter does not see or sees
twice is said beside it.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library import built, check_against_library, flops_of, needs_library, runnable
from recurrent_cases import CASES, NAMES, ZAYA, Case, D

from assay.readings.count import Flops, count
from assay.readings.generate import generate
from assay.readings.tensors import tensors
from assay.sources.huggingface import read_config

DEFAULTS = [*sorted({case.model_type for case in CASES} - {"lfm2_moe"}), "zaya"]


# -- tensors ---------------------------------------------------------------------------------------------------------


def check_buffers(config: dict[str, Any]) -> None:
    """What checkpoints store beside parameters, shape by shape."""
    theirs = built(config)
    parameters = {name for name, _ in theirs.named_parameters(remove_duplicate=False)}
    stored = [tuple(t.shape) for name, t in theirs.state_dict().items() if name not in parameters]
    ours = [e.shape for e in tensors(read_config(config, "config", "model")) if e.buffer for _ in range(e.times)]
    assert sorted(ours) == sorted(stored)


@needs_library
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_defaults_of_the_config_class(model_type: str) -> None:
    check_against_library({"model_type": model_type})


@needs_library
@pytest.mark.parametrize("config", [*(case.config for case in CASES), ZAYA], ids=[*NAMES, "zaya"])
def test_every_option(config: dict[str, Any]) -> None:
    check_against_library(config)
    check_buffers(config)


# -- work and states, by hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize(("batch", "tokens", "past"), [(1, 7, 0), (3, 7, 0), (2, 1, 11), (1, 4, 9)])
def test_mixers_by_hand(case: Case, batch: int, tokens: int, past: int) -> None:
    """A token costs the same whatever the context, in any convention of matmuls."""
    counted = count(read_config(case.config, "config", "model"), batch, tokens, past)
    assert counted.flops.by_part["mixer"] == batch * tokens * case.mixer
    assert counted.flops.visible_total <= counted.flops.total


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize(("batch", "tokens", "past"), [(1, 7, 0), (3, 1, 11)])
def test_states_by_hand(case: Case, batch: int, tokens: int, past: int) -> None:
    """Recurrent states in float32, columns of convolutions as the cache, keys and values beside them."""
    kept = count(read_config(case.config, "config", "model"), batch, tokens, past, cache="bf16").cache
    assert kept.fixed_bytes == batch * (4 * case.state + 2 * case.columns)
    assert kept.bytes == kept.fixed_bytes + batch * (tokens + past) * 2 * case.keys
    assert kept.marginal_bytes_per_token == 2 * case.keys
    halved = count(read_config(case.config, "config", "model"), batch, tokens, past, cache="bf16", state="bf16").cache
    assert halved.fixed_bytes == batch * 2 * (case.state + case.columns)


def test_zaya_by_hand() -> None:
    """Two convolutions over queries and keys, half the values of the token before, a router of four matrices."""
    n, past, d, h, g, k, k0, k1, e, f, r = 5, 9, D, 4, 2, 6, 3, 2, 5, 12, 7
    wide = (h + g) * k
    attention = 2 * n * d * (h * k + g * k + g * k) + 2 * n * wide * k0 + 2 * n * wide * k * k1 + 2 * n * h * k * d
    scores = 2 * 2 * n * (n + past) * h * k
    router = 2 * n * (d * r + 2 * r * r + r * (e + 1))
    counted = count(read_config(ZAYA, "config", "model"), 1, n, past, cache="bf16")
    assert counted.flops.by_part["attention"] == 4 * (attention + scores)
    assert counted.flops.by_part["router"] == 4 * router
    assert counted.flops.by_part["experts"] == 4 * 2 * 3 * n * d * f
    # one column less than each kernel has, and half of the values once
    assert counted.cache.fixed_bytes == 2 * 4 * (wide * (k0 - 1 + k1 - 1) + g * k // 2)
    assert counted.cache.marginal_bytes_per_token == 2 * 4 * 2 * g * k


@needs_library
def test_a_decode_step_of_zaya() -> None:
    """The library keeps columns before the first convolution alone, so it runs that once more for the second."""
    ours = count(read_config(ZAYA, "config", "model"), 1, 1, 6).flops.total
    assert their_step(ZAYA, 6) - ours == 4 * 2 * 36 * 3


def their_step(config: dict[str, Any], past: int) -> int:
    """2 per multiply-add of one token behind a cache, counted by PyTorch while the library's model runs."""
    import torch
    import transformers

    model = runnable(config)
    prompt, token = torch.zeros((1, past), dtype=torch.long), torch.zeros((1, 1), dtype=torch.long)
    held: dict[str, Any] = {}
    if config["model_type"] == "recurrent_gemma":  # it keeps states in its modules and gives no cache back
        held = {"cache": transformers.DynamicCache(config=model.config)}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        kept = model(input_ids=prompt, use_cache=True, **held)
    held |= {name: kept[name] for name in ("cache", "state") if kept.get(name) is not None}
    assert held, "no cache to take a step behind"
    return flops_of(model, input_ids=token, use_cache=True, **held)


STEPS = [(case, name) for case, name in zip(CASES, NAMES, strict=True) if case.unseen is not None]


@needs_library
@pytest.mark.parametrize("case", [case for case, _ in STEPS], ids=[name for _, name in STEPS])
def test_a_decode_step_of_the_library(case: Case) -> None:
    ours = count(read_config(case.config, "config", "model"), 1, 1, 6).flops.total
    assert ours - their_step(case.config, 6) == case.unseen


# -- generation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [*(case.config for case in CASES), ZAYA], ids=[*NAMES, "zaya"])
@settings(max_examples=5)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 9), st.sampled_from(["matmul", "causal", "scalar"]))
def test_generation_equals_its_passes(
    config: dict[str, Any], new: int, tokens: int, past: int, convention: str
) -> None:
    model = read_config(config, "config", "model")
    made = generate(model, new, batch=2, tokens=tokens, past=past, convention=convention)

    def flops(tokens: int, past: int) -> Flops:
        return count(model, 2, tokens, past, convention=convention).flops

    end = past + tokens
    assert made.prefill == flops(tokens, past)
    assert made.steps == sum((flops(1, end + i) for i in range(new)), start=Flops())
    assert made.again == sum((flops(end + i + 1, 0) for i in range(new)), start=Flops())
    assert made.cache == count(model, 2, 1, end + new - 1).cache
