"""`assay compare` as a person meets it."""

from __future__ import annotations

import json

import pytest
from commandline import run


def test_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "compare", "llama-2-7b", "llama-3-8b")
    assert (code, err) == (0, "")
    rows = {" ".join(line.split()[:1]): line.split() for line in out.splitlines() if line}
    assert rows["parameters"] == ["parameters", "6.738", "B", "8.030", "B", "×", "1.192"]
    keys = ["attention.heads", "or", "attention.kv_heads"]  # one has as many as heads
    assert rows["g"] == ["g", "key/value", "heads", "32", "8", *keys]


def test_sizes_set_behind_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "compare", "llama-3-8b", "llama-3-8b:layers=16,width=2048", "--json")
    held = json.loads(out)
    assert code == 0
    assert held["figures"]["model.layers"]["values"] == [32, 16]
    assert held["figures"]["model.width"]["ratios"] == [1.0, 0.5]
    assert held["models"][1]["name"] == "Llama 3 8B with layers 16, width 2048"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("llama-3-8b",), "a comparison is of two models or more; see assay compare --help"),
        (("llama-3-8b", "no-such-model"), "no-such-model"),
        (("llama-3-8b", "llama-3-8b:layers=x"), "--set layers is 'x'; it must be an integer"),
        (("llama-3-8b", "llama-3-8b:layers=16,layers=2"), "--set gives layers twice"),
        (("llama-3-8b", "gpt-2", "--tokens", "2048"), "GPT-2 has a learned position table of 1024 rows"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "compare", *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
