"""`assay draw` as a person meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import run


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "draw", "llama-3-8b", "--tokens", "1", "--context", "8k")
    assert (code, err) == (0, "")
    assert "ya  b n d · 1×1×4096" in out
    assert "c 8,000" in out


def test_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    svg, mmd = tmp_path / "a.svg", tmp_path / "a.mmd"
    code, out, err = run(capsys, "draw", "gpt-2", "--unrolled", "--out", str(svg), "--out", str(mmd))
    assert (code, err) == (0, "")
    assert [line.rpartition(": ")[2] for line in out.splitlines()] == ["GPT-2, every op"] * 2
    assert "gelu_tanh" in svg.read_text(encoding="utf-8")
    assert "gelu_tanh" in mmd.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "MODEL is missing"),
        (("no-such-model",), "no-such-model"),
        (("gpt-2", "--out", "a.png"), "a.png is no picture's name; it must end in .svg, .mmd, .md or .txt"),
        (("gpt-2", "--out", "no/such/folder/a.svg"), "no/such/folder/a.svg cannot be written"),
        (("gpt-2", "--tokens", "2k"), "--past + --tokens is 2000; GPT-2 has"),
        (("gpt-2", "--json"), "unrecognized arguments: --json"),
        (("gpt-2", "--convention", "none"), "none"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "draw", *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
