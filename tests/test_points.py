"""Many points at once: what is told of each is what is told of it alone, whatever is decided on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from samples import samples

import assay
from assay.errors import AssayError, SettingError
from assay.points import at_each
from assay.readings.memory import POLICIES, memory
from assay.readings.step import training_memory
from assay.size import Table, largest
from assay.sources.huggingface import read_config
from assay.spec import Model
from assay.studies.steps import step

numpy = pytest.importorskip("numpy")

Sizes = dict[str, int]
PARTS = ("weights", "cache", "states", "activations", "logits")
# of each sort: full attention, windows, chunks, latent, experts, states of three sorts, an encoder with a decoder,
# encoders of text and images, towers
FEW = ("llama gemma2 llama4_text deepseek_v3 gpt_oss jamba rwkv t5 whisper bert llava qwen3_next").split()


def drawn(model: Model, random: Random, many: int, names: tuple[str, ...]) -> list[Sizes]:
    """Points: often small, so that windows and chunks end among them; one sequence, one token, no past often."""
    room = model.positions or 4000
    rows = []
    for _ in range(many):
        tokens = random.choice((1, 1, random.randint(1, min(room, 40)), random.randint(1, room)))
        past = random.choice((0, random.randint(0, min(40, room - tokens)), random.randint(0, room - tokens)))
        row = {"batch": random.choice((1, 1, 2, 3, random.randint(1, 70))), "tokens": tokens}
        if "past" in model.settings:
            row["past"] = past
        if "source" in model.settings:
            least = model.source_stride
            row["source"] = random.randint(least, model.source_positions or 300)
        if model.sight is not None:
            row["images"] = random.choice((0, 1, 1, 2)) if model.sight.alone is None else random.choice((1, 2))
        if model.sight is not None and model.sight.alone is not None:
            del row["tokens"]
        rows.append({name: size for name, size in row.items() if name in names})
    return rows


def inference(model: Model, **asked: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Memory of a pass, by part."""

    def tell(sizes: Mapping[str, Any]) -> dict[str, Any]:
        made = memory(model, **sizes, **asked)
        return {"total": made.total, "context": made.context, **{part: made.part(part) for part in PARTS}}

    return tell


def compared(tell: Callable[[Mapping[str, Any]], dict[str, Any]], rows: list[Sizes], sort: Any, every: int = 1) -> None:
    """All points at once, beside each of some by itself."""
    arrays = {name: numpy.array([row[name] for row in rows]).astype(sort) for name in rows[0]}
    found = at_each(arrays, tell)
    for place in range(0, len(rows), every):
        alone = tell(rows[place])
        told = {name: size[place] if hasattr(size, "dtype") else size for name, size in found.items()}
        assert {name: told.get(name, 0) for name in alone} == alone, rows[place]


def model_of(family: str) -> Model:
    """The first small config of a family that is read."""
    return read_config(samples()[family][0].config, "config", "model")


@pytest.mark.parametrize("family", FEW)
def test_inference(family: str) -> None:
    model, random = model_of(family), Random(family)
    rows = drawn(model, random, 16, ("batch", "tokens", "past", "source", "images"))
    compared(inference(model, logits=random.choice(("all", "last"))), rows, float, 4)


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(samples()))
def test_inference_of_every_family(family: str) -> None:
    """One of the policies, attention fused or plain, logits of all or the last; floats or exact integers."""
    model, random = model_of(family), Random(family)
    asked = {"policy": random.choice(POLICIES), "attention": random.choice(("fused", "plain"))}
    tell = inference(model, **asked, logits=random.choice(("all", "last")))
    rows = drawn(model, random, 16, ("batch", "tokens", "past", "source", "images"))
    compared(tell, rows, random.choice((float, object)), 4)


def test_steps_behind_prompts() -> None:
    model, random = model_of("llama"), Random(4)
    rows = [{**row, "generate": random.choice((0, 1, 9, 300))} for row in drawn(model, random, 16, ("tokens", "past"))]
    compared(inference(model, policy="transformers"), rows, float, 5)


def trained(model: Model) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A training step, of fewer layers where many are alike."""

    def tell(sizes: Mapping[str, Any]) -> dict[str, Any]:
        made = step(model, sizes["batch"], sizes.get("tokens"))
        return {"peak": made.peak.bytes, "resident": made.resident, "saved": made.saved, "loss": made.loss}

    return tell


def training_of(family: str) -> None:
    """Points at once as a sweep tells them, beside whole steps of each alone."""
    model, random = model_of(family), Random(family)
    rows = drawn(model, random, 6, ("batch", "tokens"))
    try:
        training_memory(model, **rows[0])  # type: ignore[arg-type]
    except AssayError as error:  # of which it is not known what a step keeps
        with pytest.raises(type(error), match=re.escape(str(error))):
            trained(model)(rows[0])
        return
    compared(trained(model), rows, float, 3)
    row = rows[1]
    made, told = training_memory(model, **row), trained(model)(row)  # type: ignore[arg-type]
    whole = {"peak": made.peak.bytes, "resident": made.resident, "saved": made.saved, "loss": made.loss}
    assert told == whole


@pytest.mark.parametrize("family", ["llama", "jamba", "bert"])
def test_training(family: str) -> None:
    training_of(family)


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(samples()))
def test_training_of_every_family(family: str) -> None:
    training_of(family)


def test_one_course_for_many_points() -> None:
    """Contexts behind one another are told in a few passes, one before and one behind what changes the course."""
    calls = []
    tell = inference(assay.load("gemma-2-9b"), logits="last")

    def counted(sizes: Mapping[str, Any]) -> dict[str, Any]:
        calls.append(sizes)
        return tell(sizes)

    contexts = range(3_000, 103_000, 50)
    compared(counted, [{"tokens": 1, "past": context - 1} for context in contexts], float, 200)
    assert len(calls) - len(contexts) // 200 < 20


# -- by hand ---------------------------------------------------------------------------------------------------------


def test_each_course_is_taken_by_itself() -> None:
    taken = []

    def tell(sizes: Mapping[str, Any]) -> dict[str, Any]:
        n = sizes["n"]
        if n > 3:
            n = n - 3  # windows of 3
        if n % 2 == 0:
            n += 100
        taken.append(n)
        return {"found": n, "same": 7}

    sizes = numpy.arange(1.0, 9.0)
    alone = [tell({"n": int(n)})["found"] for n in sizes]
    taken.clear()
    found = at_each({"n": sizes}, tell)
    assert found["found"].tolist() == alone
    assert found["same"].tolist() == [7] * 8
    assert len(taken) == 4
    assert sizes.tolist() == list(range(1, 9))  # += leaves alone what another name has


def test_what_no_array_decides_is_one_call() -> None:
    assert at_each({"n": 3}, lambda sizes: {"found": sizes["n"] + 1}) == {"found": 4}
    found = at_each({"n": numpy.array([5.0, 6.0]), "b": numpy.array([2.0, 2.0])}, lambda sizes: {"b": sizes["b"]})
    assert found == {"b": 2}  # a number where it is one everywhere


def test_integers_stay_exact() -> None:
    vast = numpy.array([10**25, 10**25 + 1, 4], dtype=object)
    found = at_each({"n": vast}, lambda sizes: {"found": sizes["n"] * 3 if sizes["n"] > 9 else sizes["n"]})
    assert found["found"].tolist() == [3 * 10**25, 3 * 10**25 + 3, 4]


def test_a_number_on_the_way_that_floats_do_not_hold() -> None:
    """What is small in the end is exact, too: 2 ** 53 + 1 is no float."""
    small = numpy.array([3, 2**53 - 1, 5], dtype=object)
    found = at_each({"n": small}, lambda sizes: {"found": (sizes["n"] + 2) % 7})
    assert found["found"].tolist() == [5, (2**53 + 1) % 7, 0]
    assert all(type(one) is int for one in found["found"].tolist())


def test_errors_are_those_of_the_points() -> None:
    def tell(sizes: Mapping[str, Any]) -> dict[str, Any]:
        if sizes["n"] > 5:
            raise SettingError("n is too large")
        return {"n": sizes["n"]}

    with pytest.raises(SettingError, match="n is too large"):
        at_each({"n": numpy.array([1.0, 6.0])}, tell)


def test_tables_compare_keys() -> None:
    """Keys of sizes that are alike at some points are the same there, and others elsewhere."""

    def tell(sizes: Mapping[str, Any]) -> dict[str, Any]:
        table = Table[str]()
        table.add(("mask", sizes["a"]), "first")
        return {"known": int(table.get(("mask", sizes["b"])) is not None)}

    found = at_each({"a": numpy.array([1.0, 2.0, 3.0]), "b": numpy.array([1.0, 5.0, 3.0])}, tell)
    assert found["known"].tolist() == [1, 0, 1]


def test_the_largest_is_the_first_of_those() -> None:
    def tell(sizes: Mapping[str, Any]) -> dict[str, Any]:
        return {"place": largest([sizes["a"], 3, sizes["b"]])}

    found = at_each({"a": numpy.array([1.0, 3.0, 9.0]), "b": numpy.array([4.0, 3.0, 9.0])}, tell)
    assert found["place"].tolist() == [2, 0, 0]
