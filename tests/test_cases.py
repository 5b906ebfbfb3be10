"""Public fault reports of other calculators, as the files of `reported` have them: a model, and the right figure.

A case that is no count of a model stands in LISTED with the reason.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reported import kept, parameters, trained, work
from reported.base import REPORTED, Case

FILE = Path(__file__).parents[2] / "shared" / "cases" / "cases.json"
CASES: dict[str, Case] = {
    name: case
    for module in (parameters, work, kept, trained)
    for name, case in REPORTED.items()
    if case.ours.__module__ == module.__name__
}

LISTED = {
    "an engine's layout of cached rows, with scales of its own": "K22",
    "a dispatcher of experts that is not named": "M12",
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert CASES[name].ours() == CASES[name].right


def reports() -> dict[str, dict[str, str]]:
    """The reports, by id."""
    return {entry["id"]: entry for entry in json.loads(FILE.read_text())}


needs_reports = pytest.mark.skipif(not FILE.exists(), reason="needs the fault reports beside the repository")


@needs_reports
def test_every_report_is_covered_or_listed() -> None:
    listed = [name for names in LISTED.values() for name in names.split()]
    assert sorted([*CASES, *listed]) == sorted(reports())
    assert len(CASES) == 85


@needs_reports
@pytest.mark.parametrize("name", CASES)
def test_right_is_what_the_report_says(name: str) -> None:
    report = reports()[name]
    for words in CASES[name].printed:
        assert words in report["right"] + report["derivation"]
