"""`assay memory --train` as a person meets it."""

from __future__ import annotations

import pytest
from commandline import document, page, run

import assay


def test_the_page_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    out = page(capsys, "memory", "llama-3.2-1b", "--train", "--batch", "4", "--tokens", "2048")
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("What it is made of at its peak"))
    end = next(i for i in range(at, len(lines)) if lines[i].split()[:1] == ["total"])
    rows = [line.split() for line in lines[at + 2 : end] if len(line) - len(line.lstrip()) == 2]  # none that goes on
    parts = [int(row[1].replace(",", "")) for row in rows]
    held = assay.training_memory(assay.load("llama-3.2-1b"), 4, 2048)
    assert sum(parts) == int(lines[end].split()[1].replace(",", "")) == held.peak.bytes
    assert "backward, loss, at logits.logs" in out
    assert "the peak" in out


def test_json_is_what_python_gives(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--train", "--precision", "amp", "--recompute", "2", "--accumulation", "3", "--logits-chunk", "128")
    more = ("--optimizer", "sgd", "--dropout", "0.1", "--workspace", "0", "--attention", "plain")
    made = document(capsys, "memory", "gpt-2", *words, *more)
    held = assay.training_memory(
        assay.load("gpt-2"),
        precision="autocast",
        recompute=2,
        accumulation=3,
        logits_chunk=128,
        optimizer="sgd",
        dropout=0.1,
        workspace=0,
        attention="plain",
    )
    assert made["peak"]["bytes"] == held.peak.bytes == sum(made["peak"]["parts"].values())
    assert made["resident"] == held.resident
    assert made["saved"] == held.saved
    assert [moment["bytes"] for moment in made["timeline"]] == [moment.bytes for moment in held.timeline]
    assert made["setting"]["recompute"] == 2
    assert made["flops"]["again"] == held.work.again > 0
    for moment in made["timeline"]:
        assert moment["bytes"] == sum(moment["parts"].values())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--page", "16"), "assay: --page is an option of inference, without --train"),
        (("--past", "16"), "assay: --past is an option of inference, without --train"),
        (("--dropout", "x"), "assay: --dropout is 'x'; it must be a rate from 0 to below 1, such as 0.1 or 10%"),
        (("--dropout", "nan"), "assay: --dropout is 'nan'; it must be a rate from 0 to below 1"),
        (("--dropout", "-1"), "assay: --dropout is '-1'; it must be a rate from 0 to below 1"),
        (("--dropout", "1"), "assay: --dropout is 1.0; a rate from 0 to below 1"),
        (("--recompute", "most"), "assay: --recompute is 'most'; known: none, attention, layer"),
        (("--recompute", "0"), "assay: --recompute is 0; it must be an integer of at least 1"),
        (("--precision", "fp7"), "assay: --precision is 'fp7'; known: fp32, bf16"),
        (("--policy", "serving"), "assay: --policy is 'serving'; known: ours, transformers"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str) -> None:
    code, out, err = run(capsys, "memory", "gpt-2", "--train", *words)
    assert (code, out) == (2, "")
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_options_of_a_step_are_refused_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "memory", "gpt-2", "--precision", "bf16")
    assert (code, out, err) == (2, "", "assay: --precision is an option of --train\n")


def test_a_family_that_was_not_read_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is taken to be as it executes Llama" in " ".join(page(capsys, "memory", "falcon-7b", "--train").split())


def test_adapters_alone_are_trained(capsys: pytest.CaptureFixture[str]) -> None:
    """QLoRA: two matrices of rank 8 beside each of a layer's, the rest in 4 bits."""
    small = ("memory", "llama-3.2-1b", "--train", "--tokens", "64", "--lora", "8")
    made, plain = document(capsys, *small, "--weights", "nf4"), document(capsys, *small)
    # q, k, v, o, gate, up, down: 8 (in + out) each, 16 layers
    d, kv, f = 2048, 512, 8192
    adapters = 16 * 8 * (2 * (d + d) + 2 * (d + kv) + 3 * (d + f))
    assert made["peak"]["parts"]["parameters"] == plain["peak"]["parts"]["parameters"] == 2 * adapters
    frozen = assay.count(assay.load("llama-3.2-1b")).parameters.total
    assert plain["peak"]["parts"]["frozen"] == 2 * frozen
    matrices = 16 * (2 * d * d + 2 * d * kv + 3 * d * f)
    # half a byte an element, a float32 maximum for each 64, and a table of 16 float32 values a matrix
    stored = matrices // 2 + 4 * matrices // 64 + 16 * 7 * 16 * 4
    assert made["peak"]["parts"]["frozen"] == 2 * (frozen - matrices) + stored


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--train", "--weights", "nf4"), "assay: --weights is an option of inference, without --train"),
        (("--train", "--lora", "8", "--weights", "nf5"), "assay: --weights is 'nf5'; known: fp64, fp32"),
        (("--train", "--lora", "0"), "assay: --lora is 0; it must be an integer of at least 1"),
        (("--lora", "8"), "assay: --lora is an option of --train"),
    ],
)
def test_adapters_that_cannot_be(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str) -> None:
    code, out, err = run(capsys, "memory", "llama-3.2-1b", *words)
    assert (code, out) == (2, "")
    assert err.startswith(line)
