"""Configs of every family drawn at random against the public implementation, tensor by tensor."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from library import built, check_against_library, has_library, needs_library
from samples import SAME, SPEECH, drawn, samples

from assay.readings.count import count
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config

DRAWS, FEW = 20, 1
TRIES = 15  # for each, as long as the library cannot build what was drawn

SOUND = 64  # frames of it, enough for any step of a convolution

# types whose classes came with their weights and not with the library: published figures are their witness
HOSTED = "baichuan chatglm qwen minicpm internlm2 deepseek bailing_moe".split()
# the library names the adapters of a language after it: totals alone are compared, by the tests of encoders
BY_NAME = ("xmod",)


def check(model_type: str, draws: int) -> None:
    """So many neighbours of a family's small configs hold what the library's models hold."""
    random, done = Random(model_type), 0
    for _ in range(draws * TRIES):
        sample = random.choice(samples()[model_type])
        config = drawn(sample.config, random)
        if config is None or not _builds(config, sample.auto):
            continue
        try:
            source = SOUND if sample.auto == SPEECH and model_type != "whisper" else None
            check_against_library(config, auto=sample.auto, source=source)
        except Exception as error:
            raise AssertionError(f"{config}: {error}") from error
        done += 1
        if done == draws:
            return
    raise AssertionError(f"of {draws * TRIES} configs drawn, the library builds {done}")


def _builds(config: dict[str, Any], auto: str) -> bool:
    try:
        built(config, auto)
    except Exception:
        return False
    return True


@needs_library
@pytest.mark.parametrize("model_type", samples())
def test_a_drawn_config(model_type: str) -> None:
    check(model_type, FEW)


@needs_library
@pytest.mark.slow
@pytest.mark.parametrize("model_type", samples())
def test_many_drawn_configs(model_type: str) -> None:
    check(model_type, DRAWS)


def test_every_family_is_drawn() -> None:
    assert set(samples()) | {*HOSTED, *SAME, *BY_NAME} == set(FAMILIES)


@pytest.mark.parametrize(("model_type", "other"), SAME.items())
def test_one_architecture_under_two_types(model_type: str, other: str) -> None:
    for sample in samples()[other]:
        alike = read_config({**sample.config, "model_type": model_type}, "config", "model", cls="base")
        assert count(alike, tokens=7) == count(read_config(sample.config, "config", "model", cls="base"), tokens=7)


def test_a_wrong_tensor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import library

    if not has_library():
        pytest.skip("needs torch and transformers")
    theirs = library.their_ledger
    monkeypatch.setattr(library, "their_ledger", lambda model: {**theirs(model), "more": ((1,), 1)})
    with pytest.raises(AssertionError, match=r"more: ours None, theirs \(\(1,\), 1\)"):
        check("llama", 1)
