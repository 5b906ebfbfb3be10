"""The table of what is read and what is refused is made of the families themselves."""

from __future__ import annotations

import json

import pytest

from assay.cli import main
from assay.errors import SourceError
from assay.sources.families import FAMILIES
from assay.sources.huggingface import read_config
from assay.sources.support import FIGURES, refused, supported
from assay.sources.types import OTHER_KINDS, RENAMED


def test_every_family_is_listed_once() -> None:
    listed = [one.model_type for one in supported()]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(FAMILIES) | set(RENAMED)


def test_a_hundred_families_and_more() -> None:
    assert len(FAMILIES) >= 100


def test_every_row_says_what_it_is() -> None:
    for one in supported():
        assert one.cls in one.classes, one.model_type
        assert one.says.endswith((".", "named")), one
        assert set(one.exact) | set(one.apart) | set(one.tests) == set(FIGURES)


def test_a_figure_without_a_test_is_not_called_exact() -> None:
    for one in supported():
        assert all(one.tests[figure] for figure in one.exact), one.model_type
        assert not set(one.exact) & set(one.apart), one.model_type


def test_parameters_of_every_type_are_held_by_a_test() -> None:
    assert [one.model_type for one in supported() if "parameters" not in one.exact] == []


@pytest.mark.parametrize("model_type", OTHER_KINDS)
def test_what_is_listed_as_refused_is_refused(model_type: str) -> None:
    assert model_type not in FAMILIES, "read by now: take it off the list"
    (says,) = {one.says for one in refused() if one.model_type == model_type}
    with pytest.raises(SourceError, match=r"model_type is '.*not read so far") as error:
        read_config({"model_type": model_type}, "config", "model")
    assert says in str(error.value)


def test_the_command_prints_every_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["families"]) == 0
    printed = capsys.readouterr().out
    first = {line.split()[0] for line in printed.splitlines() if line and line[0] != " "}
    assert {one.model_type for one in supported()} <= first
    assert all(one.model_type in printed for one in refused())
    assert max(map(len, printed.splitlines())) <= 100


def test_the_object_is_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["families", "--json"]) == 0
    held = json.loads(capsys.readouterr().out)
    assert [row["model_type"] for row in held["families"]] == [one.model_type for one in supported()]
    assert {row["model_type"]: row["says"] for row in held["refused"]} == {o.model_type: o.says for o in refused()}
    (llama,) = (row for row in held["families"] if row["model_type"] == "llama")
    assert llama["class"] == "LlamaForCausalLM"
    assert llama["exact"] == list(FIGURES)


def test_words_choose_among_the_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["families", "qwen3", "moe"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if "qwen3" in line and "For" in line] == [
        "qwen3_5_moe_text",
        "qwen3_moe",
        "qwen3_5_moe",
        "qwen3_vl_moe",
    ]
    assert "llama" not in out
    assert main(["families", "qwen4"]) == 0
    assert capsys.readouterr().out.startswith("no type that is read\n\nrefused by name\n")


def test_what_runs_and_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    found = {one.model_type: one for one in supported()}
    assert found["llama"].runs
    assert found["llama"].not_run == ()
    assert found["qwen2_vl"].runs  # its text, for its tower does not
    assert found["qwen2_vl"].not_run
    assert all(one.not_run and all(why.strip() for why in one.not_run) for one in found.values() if not one.runs)
    assert main(["families", "yoso"]) == 0
    out = capsys.readouterr().out
    assert "PTFC·" in out
    (why,) = found["yoso"].not_run
    assert why in " ".join(out.split())
    assert main(["families", "--json", "yoso"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["families"]
    assert (row["runs"], row["not_run"]) == (False, [why])
