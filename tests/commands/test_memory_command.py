"""`assay memory` as a person meets it."""

from __future__ import annotations

import pytest
from commandline import answer, document, run

import assay

ASKED = ("memory", "llama-3-8b", "--batch", "8", "--tokens", "4Ki", "--generate", "1Ki", "--page", "48")


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, *ASKED)
    lines = out.splitlines()
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)
    start = lines.index("What it is made of")
    words = {line.split()[0]: line.split() for line in lines[start + 2 : lines.index("", start)]}
    # 5,120 positions in 107 pages of 48: 8 x 107 x 48 x 131,072 bytes
    assert words["cache"][1] == "5,385,486,336"
    assert words["needed"][1] == "5,368,709,120"
    total = int(words["total"][1].replace(",", ""))
    assert total == sum(int(words[name][1].replace(",", "")) for name in ("weights", "cache", "activations"))
    top = lines[lines.index("") + 1 : start - 1]
    assert [line.split("  ")[1] for line in top] == ["memory", "weights", "a sequence"]
    assert top[-1].endswith("cache at 5,120 tokens; 131,072 bytes for one token more")
    assert "The fullest moment: prefill, 4,096 tokens, layer 0" in out
    assert "  step 1024       1  5,119" in out


def test_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, *ASKED)
    wanted = assay.memory(assay.load("llama-3-8b"), 8, 4096, generate=1024, page=48)
    assert made["total"] == wanted.total == sum(part["bytes"] for part in made["parts"])
    assert made["cache"] == {
        "bytes": 5_368_709_120,
        "reserved_bytes": 5_385_486_336,
        "states_bytes": 0,
        "marginal_bytes_per_token": 131_072,
    }
    assert made["weights"] == {"bytes": 16_060_522_496, "by_format": {"bf16": 16_060_522_496}}
    assert (made["peak"]["segment"], made["peak"]["layer"]) == ("layer", 0)
    assert [one["name"] for one in made["passes"]] == ["prefill", "step 1024"]
    assert made["setting"]["page"] == 48
    assert made["setting"]["logits"] == "last"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--page", "0"), "--page is 0; it must be an integer of at least 1"),
        (("--chunk", "0"), "--chunk is 0; it must be an integer of at least 1"),
        (("--chunk", "3k"), "chunk is 3000; it is of the 2048 tokens, so at most as many"),
        (("--policy", "mine"), "policy is 'mine'; known: serving, ours, transformers"),
        (("--pages", "16"), "did you mean --page?"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "memory", "llama-3-8b", *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


def test_what_runs_op_by_op_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "its scores stored" in answer(capsys, "memory", "gpt-oss-20b", "--tokens", "64")
    assert "its scores stored" not in answer(capsys, "memory", "llama-3-8b", "--tokens", "64")


def test_formats_of_weights_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "memory", "llama-3-8b", "--weights", "int4", "--compute", "fp16", "--tokens", "8")
    assert made["weights"]["by_format"] == {"int4": 4_015_130_624}
    assert {part["name"]: part["says"] for part in made["parts"]}["activations"] == "fp16, at the fullest moment"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("gpt-oss-20b",), "GiB MXFP4, experts alone, the rest bf16 a sequence"),
        (("deepseek-v3",), "GiB fp8 in blocks of 128×128, the rest bf16 and fp32 a sequence"),
        (("deepseek-v3", "--weights", "bf16"), "TiB bf16 a sequence"),
        (("llama-3-8b", "--train", "--lora", "8"), "20,971,520 of 8,051,232,768 parameters trained · on a GPU"),
        (("gpt-2", "--train"), "policy transformers · on a GPU"),
    ],
)
def test_what_is_held_is_said_above(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, _ = run(capsys, "memory", *words, "--tokens", "64")
    assert code == 0
    assert says in " ".join(out.split("What it is made of")[0].split())
