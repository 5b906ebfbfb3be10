"""`assay design` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import run

import assay

pytest.importorskip("numpy")


def test_proposals_and_the_first_as_a_description(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "design", "--params", "8B", "--number", "4")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "plain decoders with 8.000 B parameters"
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)
    assert [line[0] for line in lines[4:8]] == list("1234")
    text = "\n".join(line.removeprefix("  ") for line in lines[lines.index("  vocab = 128000") :])
    (tmp_path / "a.toml").write_text(text)
    total = assay.count(assay.load(tmp_path / "a.toml")).parameters.total
    assert f"the first, {total:,} parameters, as a description" in out


def test_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "design", "--params", "1B", "--tied", "--number", "2", "--write", str(tmp_path))
    assert (code, err) == (0, "")
    files = sorted(tmp_path.glob("*.toml"))
    assert len(files) == 2
    for path in files:
        assert f"{path}: {assay.count(assay.load(path)).parameters.total:,} parameters" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "design", "--flops-per-token", "16G", "--layers", "24:32:+4", "--cache", "fp8", "--json")
    held = json.loads(out)
    assert code == 0
    assert held["targets"] == {
        "parameters": None, "flops_per_token": 16_000_000_000, "cache_per_token": None, "within": 0.01,
    }  # fmt: skip
    assert {p["sizes"]["layers"] for p in held["proposals"]} <= {24, 28, 32}


def test_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "design", "--rule")
    assert code == 0
    assert "width / layers" in out
    code, held, _ = run(capsys, "design", "--rule", "--json")
    assert (code, json.loads(held)["rule"]) == (0, out.strip())


def test_files_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is asked for beside files is printed, too, and nothing else."""
    words = ("--params", "1B", "--number", "2", "--json")
    code, out, _ = run(capsys, "design", *words, "--write", str(tmp_path))
    assert (code, out) == (0, run(capsys, "design", *words)[1])
    assert {p.read_text() for p in tmp_path.glob("*.toml")} == {p["description"] for p in json.loads(out)["proposals"]}


def test_where_no_target_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    """A vocabulary of 128,000 is more than 30 million parameters at the narrowest width that is looked at."""
    code, out, _ = run(capsys, "design", "--params", "30M", "--json")
    offs = [p["off"] for p in json.loads(out)["proposals"]]
    assert code == 0
    assert offs == sorted(offs)
    assert 0.01 < offs[0] <= offs[-1] <= 0.25
    said = run(capsys, "design", "--params", "30M")[1]
    assert "none is within 1.0 % of every target: the nearest first" in said
    assert "come first" not in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "a design needs a target: --params, --flops-per-token, or both; see assay design --help"),
        (("--params", "8X"), "--params is '8X'; it must be an integer"),
        (("--params", "8B", "--layers", "0"), "--layers is 0; it must be an integer of at least 1"),
        (("--params", "8B", "--ratio", "x"), "--ratio is 'x'; it must be a number from 0.1 to 100"),
        (("--params", "8B", "--within", "200"), "--within is '200'; it must be a number from 0 to 100"),
        (("--params", "8B", "--mlp", "moe"), "--mlp is 'moe'; known: gated, plain"),
        (("--params", "8B", "--cache", "bf61"), "--cache is 'bf61'; known:"),
        (("--params", "8B", "--width", "100"), "width is 100; a design's is a multiple of 128"),
        (("8B",), "unrecognized arguments: 8B"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "design", *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
