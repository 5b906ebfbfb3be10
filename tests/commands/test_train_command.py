"""`assay train` as a person meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commandline import answer, document, run

import assay

RUN = ("train", "llama-3-8b", "--tokens", "15T", "--context", "8192")


def rows(out: str) -> dict[str, list[str]]:
    """The words of each row, by its first."""
    return {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("  ")}


def test_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--gpu", "h100", "--gpus", "1024", "--mfu", "40%", "--price", "2.5", "--pue", "1.2")
    out = answer(capsys, *RUN, *asked, "--recompute", "layer", "--step-tokens", "4M")
    lines = out.splitlines()
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)
    assert lines[1] == "15,000,000,000,000 tokens · 8,192 a sequence · convention matmul"
    found = rows(out)
    assert found["model"] == ["model", "8.687e+23", "57,912,852,480", "a", "token"]
    assert found["6ND"][:3] == ["6ND", "7.227e+23", "0.832"]
    assert found["optimizer"] == ["optimizer", "4.216e+17", "adamw,", "a", "step", "in", "4,000,000", "tokens"]
    # 868,692,787,200 x 10^12 / (989.4e12 x 0.4 x 86400) = 25,405 GPU-days; x 24 x 2.5; x 700 W x 1.2 x 24 h
    assert found["GPU-days"][1] == "25,405"
    assert found["price"][1] == "1,524,305"
    assert found["energy"][1:3] == ["512.2", "MWh"]
    assert found["HFU"][1] == "52.6%"


def test_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, *RUN, "--gpu", "h100", "--tokens-per-second", "60k", "--gpus", "8")
    model = assay.load("llama-3-8b")
    wanted = assay.train(model, tokens=15 * 10**12, context=8192, gpu="h100", tokens_per_second=60_000, gpus=8)
    assert made["flops"] == {
        "forward": wanted.forward,
        "backward": wanted.backward,
        "model": 868_692_787_200 * 10**12,
        "recomputed": 0,
        "hardware": wanted.flops,
        "optimizer": None,
        "visible": wanted.visible,
        "per_token": 57_912_852_480,
    }
    assert wanted.on is not None
    assert made["machines"] == {
        "chip": "h100-sxm",
        "gpus": 8,
        "dtype": "bf16",
        "peak_flops": 989_400_000_000_000,
        "mfu": wanted.on.mfu,
        "hfu": wanted.on.mfu,
        "measured": True,
        "tokens_per_second": 60_000,
        "gpu_days": wanted.on.gpu_days,
        "days": wanted.on.days,
        "power": 700,
        "pue": 1,
        "energy_kwh": pytest.approx(0.7 * 24 * wanted.on.gpu_days),
        "price": None,
        "cost": None,
    }
    assert [one["name"] for one in made["published"]] == ["Kaplan", "Chinchilla", "6ND", "PaLM", "Megatron"]
    assert made["optimal"] == []


def test_nothing_but_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "train", "gpt-2", "--tokens", "300B")
    assert made["machines"] is None
    assert made["setting"]["lengths"] == [{"length": 1024, "sequences": 1}]
    assert "On " not in answer(capsys, "train", "gpt-2", "--tokens", "300B")


def test_packed_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "train", "gpt-2", "--tokens", "8192", "--lengths", "512:8,1Ki,1024:3")
    assert made["setting"]["lengths"] == [{"length": 512, "sequences": 8}, {"length": 1024, "sequences": 4}]
    assert made["setting"]["mean_context"] == 768
    out = answer(capsys, "train", "gpt-2", "--tokens", "8192", "--lengths", "512:8,1Ki,1024:3")
    assert "packed sequences, 12 in a round, as one of 768 after another" in out


def test_what_is_seen_and_heard(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 90}
    config = {"model_type": "gemma4", "text_config": text, "audio_config": {}, "vision_config": {}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    words = ("--tokens", "4k", "--context", "400", "--images", "1", "--sounds", "2", "--image-tokens", "9")
    made = document(capsys, "train", str(path), *words)
    assert (made["setting"]["images"], made["setting"]["sounds"]) == (1, 2)
    once = assay.training(assay.load(path), 1, 400, images=1, sounds=2, image_tokens=9)
    assert made["flops"]["model"] == 10 * once.flops


def test_what_a_budget_buys(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, "train", "llama-3-8b", "--budget", "5.76e23", "--context", "8192")
    found = rows(out)
    assert found["this"][:6] == ["this", "model", "8.030", "B", "9.946", "T"]
    assert found["hoffmann-1"][1:5] == ["67.00", "B", "1.433", "T"]
    made = document(capsys, "train", "llama-3-8b", "--budget", "5.76e23", "--context", "8192", "--law", "besiroglu")
    (one,) = made["optimal"]
    assert one["law"] == "besiroglu"
    assert 6 * one["parameters"] * one["tokens"] == pytest.approx(5.76e23)
    assert made["flops"]["model"] == pytest.approx(5.76e23)


def test_days_buy_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "train", "llama-3-8b", "--gpu-days", "1000", "--gpu", "h100", "--mfu", "0.4", "--gpus", "8")
    assert made["machines"]["gpu_days"] == pytest.approx(1000)
    assert made["machines"]["days"] == pytest.approx(125)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give --tokens, --budget or --gpu-days; see assay train --help"),
        (("--tokens", "1T", "--budget", "1e24"), "give --tokens, --budget or --gpu-days"),
        (("--tokens", "1T", "--gpu", "h100", "--mfu", "-0.4"), "--mfu is '-0.4'; it must be a number above 0"),
        (("--tokens", "1T", "--gpu", "h100", "--mfu", "0"), "--mfu is '0'; it must be a number above 0"),
        (
            ("--tokens", "1T", "--gpu", "h100", "--mfu", "1.01"),
            "mfu is 1.01; it must be a fraction above 0 and at most",
        ),
        (("--tokens", "1T", "--gpu", "h100", "--mfu", "40"), "mfu is 40; it must be a fraction .*; 40 % is 0.4"),
        (
            ("--tokens", "1T", "--gpu", "h100"),
            "a run needs --mfu, a fraction such as 0.4",
        ),
        (
            ("--tokens", "1T", "--gpu", "h100", "--mfu", "0.4", "--gpus", "0"),
            "--gpus is 0; it must be an integer of at",
        ),
        (("--tokens", "1T", "--gpu", "h99", "--mfu", "0.4"), "no GPU or other chip is called 'h99'; did you mean h100"),
        (
            ("--tokens", "1T", "--gpu", "v100", "--mfu", "0.4", "--dtype", "bf16"),
            "NVIDIA V100 .* has no products in bf16",
        ),
        (("--tokens", "1T", "--gpu", "h100", "--mfu", "0.4", "--dtype", "f"), "dtype is 'f'; known: fp64"),
        (("--tokens", "1T", "--price", "2"), "--price needs a chip"),
        (("--tokens", "1T", "--gpus", "8"), "--gpus needs a chip"),
        (("--tokens", "1T", "--optimizer", "muon"), "--optimizer is of the steps that --step-tokens N counts"),
        (("--tokens", "1M", "--step-tokens", "4M"), "--step-tokens is 4000000; the whole run has 1000000 tokens"),
        (
            ("--budget", "1e16", "--step-tokens", "4M"),
            r"--step-tokens is 4000000; the whole run has \d+(\.\d+)? tokens",
        ),
        (("--tokens", "1T", "--lengths", "512:"), "--lengths is '512:'; it must be a list such as"),
        (("--tokens", "1T", "--lengths", "512:x"), "--lengths, a number of sequences is 'x'"),
        (("--tokens", "1T", "--lengths", "0"), "--lengths is 0; it must be an integer of at least 1"),
        (("--budget", "1e24", "--law", "moore"), "law is 'moore'; known: hoffmann-1"),
        (("--budget", "ten"), "--budget is 'ten'; it must be a number above 0, such as 2.5, 60k or 3.8e25"),
        (("--budget", "1e31"), "--budget is '1e31'; it must be a number above 0"),
        (("--tokens", "1T", "--gpu", "h100", "--tokens-per-second", "1T"), "% of the peak of all these machines"),
        (("--tokens", "1T", "--recompute", "some"), "recompute is 'some'; known: none, attention, layer"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "train", "llama-3-8b", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(says, err), err


def test_the_conventions(capsys: pytest.CaptureFixture[str]) -> None:
    assert "causal" in answer(capsys, "train", "--convention", "list")


@pytest.mark.parametrize("command", ["", "compare", "crossovers", "explain", "ops", "regimes", "sweep", "train"])
def test_the_conventions_as_an_object(capsys: pytest.CaptureFixture[str], command: str) -> None:
    listed = document(capsys, *([command] if command else []), "--convention", "list")["conventions"]
    assert {one["name"] for one in listed} >= {"matmul", "causal"}
    assert all(one.keys() == {"name", "says", "source"} and all(one.values()) for one in listed)
