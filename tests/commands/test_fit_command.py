"""`assay fit` as a person meets it."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from commandline import page, run

import assay
from assay.studies.fit import OF_INFERENCE, OF_TRAINING

ASKED = ("fit", "llama-3-70b", "--gpu", "h100", "--context", "8192", "--batch", "4")


def test_yes(capsys: pytest.CaptureFixture[str]) -> None:
    out = page(capsys, *ASKED, "--gpus", "2")
    lines = out.splitlines()
    assert lines[0] == "Llama 3 70B on 2 × NVIDIA H100 SXM5 80 GB: fits, 5.663 GB (6.7 %) left on each rank"
    top = {line.split("  ")[0].strip(): line for line in lines[4:7]}
    # by hand: half of 141,107,412,992 bytes, norms whole on both; 4 x 8,192 x 327,680 / 2 of cache
    assert "85,018,542,080 less 68,000,000 reserved" in top["there is"]
    assert [name.split()[0] for name in top] == ["needed", "there", "left"]
    parts = _parts(lines)
    assert parts["cache"] == 4 * 8192 * 327_680 // 2
    assert parts["total"] == sum(size for name, size in parts.items() if name != "total") == 79_287_894_016
    assert any(line.split()[-1] == "6" for line in lines if line.startswith("largest batch at context 8,192"))
    assert "One change" not in out


def _parts(lines: list[str]) -> dict[str, int]:
    start = next(i for i, line in enumerate(lines) if line.startswith("part "))
    rows = [line.split() for line in lines[start + 1 : lines.index("", start)]]
    return {row[0]: int(next(cell for cell in row if cell.count(",") > 1).replace(",", "")) for row in rows}


def test_no(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *ASKED)
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)
    assert lines[0] == "Llama 3 70B on NVIDIA H100 SXM5 80 GB: does not fit, 73.08 GB (86.0 %) too much"
    assert "largest batch at context 8,192  none  not even 1 fits" in lines
    enough = lines[lines.index("One change that makes it fit") : lines.index("Not enough alone")]
    assert any(line.startswith("  2 GPUs: 2 tensor ranks") for line in enough)
    assert any(line.startswith("  NVIDIA B200") for line in enough)
    assert any("cache in fp8" in line for line in lines[lines.index("Not enough alone") :])


def test_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *ASKED, "--json")
    made = json.loads(out)
    wanted = assay.fit(assay.load("llama-3-70b"), "h100", batch=4, context=8192)
    assert code == 1
    assert made["fits"] is wanted.fits is False
    assert (made["need"]["bytes"], made["available"], made["margin"]) == (wanted.need.bytes, wanted.room, wanted.margin)
    assert made["need"]["bytes"] == sum(made["need"]["parts"].values())
    assert made["margin_percent"] == pytest.approx(100 * wanted.margin / wanted.room, abs=1e-4)
    assert (made["need"]["rank"], made["need"]["ranks"], made["need"]["at"]) == ("the one rank", 1, "prefill, layer 0")
    assert made["largest_batch"] == {"value": 0, "ends": "memory"}
    assert made["longest_context"] == {"value": 0, "ends": "memory"}
    first = made["changes"][0]
    assert (first["sets"], first["fits"], first["gpus"], first["gpu"]) == ({"weights": "awq"}, True, 1, "h100-sxm")
    assert made["gpu"] == {
        "name": "h100-sxm",
        "title": "NVIDIA H100 SXM5 80 GB",
        "memory": 85_018_542_080,
        "gpus": 1,
    }
    assert made["setting"]["train"] is False
    assert made["plan"]["tensor"] == 1


def test_training_with_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("fit", "llama-3-8b", "--gpu", "h100", "--train", "--context", "4k", "--recompute", "layer")
    plan = ("--tensor", "2", "--sequence", "--pipeline", "2", "--data", "2", "--zero", "1", "--microbatches", "8")
    code, out, _ = run(capsys, *words, *plan, "--precision", "megatron", "--accumulation", "8", "--json")
    made = json.loads(out)
    wanted = assay.sharded(
        assay.load("llama-3-8b"),
        assay.Plan(data=2, zero=1, tensor=2, sequence=True, pipeline=2, microbatches=8),
        train=True,
        tokens=4000,
        recompute="layer",
        precision="megatron",
        accumulation=8,
        workspace=0,
    )
    assert code == 0
    assert made["need"]["bytes"] == wanted.most.bytes
    assert [one["needed"] for one in made["ranks"]] == [one.bytes for one in wanted.ranks]
    assert set(made["need"]["parts"]) <= {"parameters", "gradients", "optimizer", "activations", "loss", "inputs"}
    assert made["setting"]["recompute"] == "layer"


def test_options_reach_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("--weights", "awq", "--cache", "fp8", "--page", "16"), {"weights": "awq", "cache": "fp8", "page": 16}),
        (("--chunk", "2Ki", "--prompts", "2", "--batch", "9"), {"chunk": 2048, "prompts": 2, "batch": 9}),
        (("--logits", "all", "--attention", "plain"), {"logits": "all", "attention": "plain"}),
        (("--utilization", "90%", "--reserve", "1G"), {"utilization": 0.9, "reserve": 10**9}),
        (
            ("--train", "--logits-chunk", "512", "--dropout", "0.1"),
            {"train": True, "logits_chunk": 512, "dropout": 0.1},
        ),
        (("--train", "--recompute", "4", "--optimizer", "sgd"), {"train": True, "recompute": 4, "optimizer": "sgd"}),
    ]
    model = assay.load("llama-3-8b")
    for words, asked in said:
        _, out, err = run(capsys, "fit", "llama-3-8b", "--gpu", "h100", "--context", "4000", *words, "--json")
        assert not err
        made, wanted = json.loads(out), assay.fit(model, "h100", context=4000, **asked)
        assert (made["need"]["bytes"], made["available"]) == (wanted.need.bytes, wanted.room), words
        plain = assay.fit(model, "h100", context=4000, train=asked.get("train", False))
        assert (wanted.need.bytes, wanted.room) != (plain.need.bytes, plain.room), words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--gpu is missing: a chip of `assay gpus`, such as h100; see assay fit --help"),
        (("--gpu", "h1000"), "no GPU or other chip is called 'h1000'; did you mean h100"),
        (("--gpu", "h100", "--page", "0"), "--page is 0; it must be an integer of at least 1"),
        (("--gpu", "h100", "--gpus", "0"), "--gpus is 0; it must be an integer of at least 1"),
        (("--gpu", "h100", "--tensor", "64"), "tensor is 64; Llama 3 8B has 32 query heads"),
        (("--gpu", "h100", "--pipeline", "33"), "pipeline is 33; Llama 3 8B has 32 layers to divide into stages"),
        (("--gpu", "h100", "--gpus", "6", "--tensor", "4"), "gpus is 6; the plan's tensor 4 are 4"),
        (("--gpu", "h100", "--zero", "4"), "zero is 4; known: 0, 1, 2, 3"),
        (("--gpu", "h100", "--sequence"), "sequence divides tokens among tensor ranks, and tensor is 1"),
        (("--gpu", "h100", "--utilization", "0"), "--utilization is '0'; it must be a number above 0"),
        (("--gpu", "h100", "--utilization", "2"), "utilization is 2; it must be a fraction above 0 and at most 1"),
        (("--gpu", "h100", "--optimizer", "lion"), "optimizer is lion; it is of training, and inference is asked"),
        (("--gpu", "h100", "--dropout", "0.1"), "dropout is 0.1; it is of training, and inference is asked about"),
        (("--gpu", "h100", "--logits-chunk", "9"), "--logits-chunk is 9; it is of training"),
        (("--gpu", "h100", "--data", "2", "--zero", "1"), "zero is 1; it is of training"),
        (("--gpu", "h100", "--pipeline", "2", "--microbatches", "4"), "microbatches is 4; it is of training"),
        (("--gpu", "h100", "--train", "--microbatches", "4"), "microbatches is 4; they pass stages, and pipeline is 1"),
        (("--gpu", "h100", "--train", "--logits", "all"), "logits is all; it is of inference, and training is asked"),
        (("--gpu", "h100", "--train", "--latent", "absorbed"), "latent is absorbed; it is of inference"),
        (("--gpu", "h100", "--train", "--state", "bf16"), "state is bf16; it is of inference"),
        (("--gpu", "h100", "--train", "--source", "9"), "source is 9; Llama 3 8B has no encoder to give it to"),
        (("--gpu", "h100", "--train", "--images", "1"), "images is 1; Llama 3 8B has no tower to see them"),
        (("--gpu", "h100", "--train", "--dropout", "x"), "--dropout is 'x'; it must be a rate from 0 to below 1"),
        (("--gpu", "h100", "--contxt", "9"), "did you mean --context?"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "fit", "llama-3-8b", *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", ["--chunk", "--prompts", "--page"])
def test_a_model_without_a_cache_reads_nothing_in_pieces(capsys: pytest.CaptureFixture[str], option: str) -> None:
    code, out, err = run(capsys, "fit", "bert-base", "--gpu", "h100", "--batch", "8", option, "4")
    assert (code, out) == (2, "")
    assert err == f"assay: {option} is 4; BERT base keeps nothing between passes\n"


def test_no_dropout_is_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("fit", "gpt-2", "--gpu", "h100", "--context", "64", "--train", "--json")
    assert run(capsys, *asked, "--dropout", "0") == run(capsys, *asked)
    assert run(capsys, *asked, "--dropout", "10%") == run(capsys, *asked, "--dropout", "0.1") != run(capsys, *asked)


def test_every_option_is_of_training_or_of_inference_or_of_both() -> None:
    """What `fit` takes and what it refuses of the other is told apart for each of its arguments."""
    both = {"model", "gpu", "gpus", "batch", "context", "train", "plan", "reserve", "utilization"}
    both |= {"attention", "policy", "changes", "source", "images", "image_tokens", "sounds"}
    asked = inspect.signature(assay.fit).parameters
    assert set(asked) == both | set(OF_TRAINING) | set(OF_INFERENCE)
    for name, usual in {**OF_TRAINING, **OF_INFERENCE}.items():
        assert asked[name].default == usual


def test_a_context_beyond_a_table_of_positions_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    says = "assay: {} is 2000; GPT-2 has a learned position table of 1024 rows\n"
    for words in (("fit", "--gpu", "h100"), ("fit", "--gpu", "h100", "--train"), ("train", "--tokens", "1B")):
        code, out, err = run(capsys, words[0], "gpt-2", *words[1:], "--context", "2000")
        assert (code, out, err) == (2, "", says.format("--context"))
    code, out, err = run(capsys, "train", "gpt-2", "--tokens", "1B", "--lengths", "8,2000")
    assert (code, out, err) == (2, "", says.format("a length"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("llama-3-8b",), "context 64 · weights bf16 · prompts"),
        (("gpt-oss-20b",), "weights MXFP4, experts alone, the rest bf16 · prompts"),
        (("gpt-oss-20b", "--weights", "fp8"), "weights fp8 · prompts"),
        (("whisper-tiny",), "context 64 · source 3,000 · weights bf16"),
        (("t5-small", "--source", "32", "--train"), "context 64 · source 32 · optimizer"),
        (("llama-3-8b", "--train", "--lora", "8"), "adapters of rank 8 trained, other weights frozen · optimizer"),
        (("gpt-2", "--train", "--lora", "8", "--weights", "nf4"), "other weights frozen in nf4 · optimizer"),
    ],
)
def test_what_is_asked_is_said_above(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    _, out, _ = run(capsys, "fit", *words, "--gpu", "h100", "--context", "64")
    assert says in " ".join(out.split("\n\n")[0].split())
