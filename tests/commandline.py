"""The command in tests: what it returns and prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit status, and what stands on either stream."""
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is printed where nothing is wrong."""
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    return out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The object that --json prints."""
    made = json.loads(answer(capsys, *words, "--json"))
    assert isinstance(made, dict)
    return made
