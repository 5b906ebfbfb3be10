"""Every example of the documents runs and prints what it says; the checker is seen to fail where it should."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from documents import (
    PICTURES,
    ROOT,
    RUNS,
    WITNESSES,
    examples,
    gathered,
    matches,
    pictures,
    provenance,
    recipe,
    regenerated,
    run_document,
    shell,
    steps,
    unrun_types,
    with_written,
)

from assay.readings.conventions import CONVENTIONS

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_print_what_they_say(path: Path, tmp_path: Path) -> None:
    """And its pictures show the figures that their commands show now."""
    text = path.read_text(encoding="utf-8")
    wrong = run_document(text, tmp_path)
    assert not wrong, "\n".join(wrong)
    for name in pictures(text):
        assert provenance(tmp_path / name) == provenance(PICTURES / name), f"{name} shows other figures: make docs"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_are_of_kinds_that_are_run_or_looked_at(path: Path) -> None:
    """What is not run is a file, a picture, or something to type for an installation."""
    for example in examples(path.read_text(encoding="utf-8")):
        where = f"{path.name}, line {example.line}"
        assert example.title or example.lang in ("console", "diff", "python", "sh", "text"), where
        if example.lang == "sh":
            for line in example.code.splitlines():
                assert line.startswith(("make ", "pip install ", "git clone ", "cd ", "#")), f"{where}: {line}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(path: Path) -> None:
    for target in re.findall(r"(?:^\$? ?|`)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        assert recipe(target), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_within_the_project_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (path.parent / link).exists(), f"{path.name} links to {link}"


class TestChecker:
    """A test that compares must be seen to fail."""

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("```console\n$ echo 1\n2\n```\n", "line 1: $ echo 1"),
            ("x\n\n```console\n$ true\nmissing\n```\n", "line 3: $ true"),
            ("```console\n$ echo a; echo b\na\n```\n", "line 1: $ echo a; echo b"),
            ("```console\n$ assay no-such-model\n```\n", "line 1: $ assay no-such-model"),
            ("```python\n>>> 1 + 1\n3\n```\n", "1 + 1"),
        ],
    )
    def test_wrong_output_is_found(self, text: str, line: str, tmp_path: Path) -> None:
        (wrong,) = run_document(text, tmp_path)
        assert line in wrong

    def test_python_that_raises_is_found(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError, match="division"):
            run_document("```python\n1 / 0\n```\n", tmp_path)

    def test_right_output_passes(self, tmp_path: Path) -> None:
        text = (
            '```text title="a.txt"\nheld\n```\n```console\n$ cat a.txt\nheld\n$ echo one; echo two; echo three\n'
            "one\n...\nthree\n```\n```python\n>>> a = 2\n```\n```python\n>>> a + 1\n3\n```\n"
        )
        assert run_document(text, tmp_path) == []

    def test_steps_join_continued_lines(self) -> None:
        code = "$ echo a \\\n>   b\na b\n$ true\n"
        assert list(steps(code)) == [("echo a \\\n  b", "a b"), ("true", "")]

    def test_dots_stand_for_anything_and_nothing_else_does(self) -> None:
        assert matches("a ... c", "a b\nb c")
        assert not matches("a.c", "abc")
        assert not matches("a", "a\nb")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_generated_parts_are_of_this_tree(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == regenerated(text), "run: make docs"


def test_tests_of_families_are_of_this_tree() -> None:
    pytest.importorskip("torch")
    assert WITNESSES.read_text(encoding="utf-8") == gathered(), "run: make docs"


def test_what_does_not_run_is_listed() -> None:
    pytest.importorskip("torch")
    assert RUNS.read_text(encoding="utf-8") == unrun_types(), "run: make docs"


def test_what_recorded_figures_hold_stays_written_where_they_are_not_at_hand() -> None:
    made = {"b": {"flops": ["live"]}}
    written = {"a": {"cache": ["recorded"]}, "b": {"flops": ["live", "old", "recorded"], "cache": ["old"]}}
    assert with_written(made, written, "recorded") == {
        "a": {"cache": ["recorded"]},
        "b": {"flops": ["live", "recorded"]},
    }
    assert made == {"b": {"flops": ["live"]}}


def test_a_stale_part_is_found() -> None:
    stale = "<!-- kinds: written by `make docs` -->\n\n| kind |\n\n<!-- end -->"
    assert "| `softmax` | exp(x) over its sum |" in regenerated(stale)


def test_conventions_are_all_explained() -> None:
    text = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
    for name in CONVENTIONS:
        assert f"`{name}`" in text


def _paths(value: object, path: str = "") -> set[str]:
    """Keys of a JSON object as the contract writes them; tables by part and of one sort of figure are one key."""
    if isinstance(value, list) and value and not isinstance(value[0], int):
        return set().union(*(_paths(item, f"{path}[]") for item in value))
    if isinstance(value, dict) and not path.endswith(
        ("by_part", ".by_format", ".parts", ".alive", ".rates", ".sets", ".prefill", ".steps", ".without_cache")
    ):
        return set().union(*(_paths(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()))
    return {path}


@pytest.mark.parametrize(
    ("section", "command"),
    [
        ("# The JSON output", "assay llama-3-8b --tokens 16k --generate 4 --json"),
        (
            "## `assay train MODEL --json`",
            "assay train llama-3-8b --tokens 15T --context 8192 --gpu h100 --mfu 0.4 --law kaplan --json",
        ),
        ("## `assay memory MODEL --json`", "assay memory llama-3-8b --tokens 16 --json"),
        ("## `assay memory MODEL --train --json`", "assay memory gpt-2 --train --tokens 16 --json"),
        ("## `assay fit MODEL --json`", "assay fit llama-3-8b --gpu t4 --batch 8 --context 8k --json"),
        ("## `assay fit MODEL --train --json`", "assay fit llama-3.2-3b --gpu l4 --train --batch 4 --json"),
        ("## `assay gpus --json`", "assay gpus m4-max --json"),
    ],
)
def test_contract_names_every_key_and_no_other(section: str, command: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`) \|", text.split(f"{section}\n")[1].split("\n## ")[0], re.MULTILINE)
    documented = {key for row in rows for key in re.findall("`([^`]+)`", row)}
    assert _paths(json.loads(shell(command, tmp_path))) == documented
