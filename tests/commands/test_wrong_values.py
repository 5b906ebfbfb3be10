"""Every option of what takes memory and training, given what no option means, and options that exclude each other."""

from __future__ import annotations

import re
import time
from contextlib import redirect_stdout, suppress
from io import StringIO

import pytest
from commandline import run

from assay.cli import main

WRONG = ("", " ", "nan", "-inf", "1e400", "-1", "word", "[]", "10GB", "१", "9" * 40)
NOUGHT = ("0", "0.0", "1e-400")
MAY_BE_NOUGHT = "reserve images sounds dropout zero workspace past generate".split()
ASKED = {
    "fit": "fit gpt-2 --gpu h100",
    "fit --train": "fit gpt-2 --gpu h100 --train",
    "memory": "memory gpt-2",
    "memory --train": "memory gpt-2 --train",
    "train": "train gpt-2 --tokens 1T --gpu h100 --mfu 0.4",
}
ANY_KEY = "allow"  # a config may have it


def options(command: str) -> list[str]:
    """Options of a command that take a value, without their dashes, as its help has them."""
    told = StringIO()
    with redirect_stdout(told), suppress(SystemExit):
        main([command, "--help"])
    found = re.findall(r"^  --([a-z-]+) [A-Z]", told.getvalue(), re.MULTILINE)
    assert len(found) > 20
    return [name for name in found if name != ANY_KEY]


def refused(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    """The one line that refuses words, at once."""
    begun = time.process_time()
    code, out, err = run(capsys, *words)
    assert time.process_time() - begun < 1
    assert (code, out) == (2, ""), words
    assert err.startswith("assay: ")
    assert err.count("\n") == 1
    assert len(err) < 400
    return err


@pytest.mark.parametrize(
    ("asked", "option"), [(asked, option) for asked in ASKED for option in options(asked.split()[0])]
)
def test_what_no_option_means(asked: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    nought = () if option in MAY_BE_NOUGHT else NOUGHT
    for value in (*WRONG, *nought):
        said = refused(capsys, [*ASKED[asked].split(), f"--{option}={value}"])
        assert re.search(option.replace("-", "[-_ ]"), said, re.IGNORECASE), (value, said)


EXCLUDE = {
    "fit gpt-2": "--gpu is missing",
    "fit --gpu h100": "MODEL is missing",
    "fit gpt-2 --gpu h100 --page 16 --train": "page is 16; it is of inference, and training is asked about",
    "fit gpt-2 --gpu h100 --weights nf4 --train": "weights is nf4; it is of inference",
    "fit gpt-2 --gpu h100 --lora 8": "lora is 8; it is of training, and inference is asked about",
    "fit gpt-2 --gpu h100 --zero 1": "zero is 1; it is of training",
    "fit gpt-2 --gpu h100 --expert 2": "--expert x --expert-tensor is 2 x 1; it must divide data x tensor",
    "fit gpt-2 --gpu h100 --microbatches 4": "microbatches is 4; they pass stages, and pipeline is 1",
    "fit gpt-2 --gpu h100 --pipeline 2 --microbatches 4": "microbatches is 4; it is of training",
    "fit gpt-2 --gpu h100 --train --zero 4 --data 2": "zero is 4; known: 0, 1, 2, 3",
    "fit gpt-2 --gpu h100 --train --sequence": "sequence divides tokens among tensor ranks, and tensor is 1",
    "fit gpt-2 --gpu h100 --gpus 3 --data 2": "gpus is 3; the plan's data 2 are 2, of which 3 is no multiple",
    "fit gpt-2 --gpu h100 --tensor 5": "tensor is 5; the 12 query heads of GPT-2 do not divide",
    "fit gpt-2 --gpu h100 --pipeline 99": "pipeline is 99; GPT-2 has 12 layers",
    "fit gpt-2 --gpu h100 --reserve 10T": "reserve is 10,000,000,000,000 bytes; .* nothing is left",
    "fit gpt-2 --gpu h100 --utilization 1e-5": "reserve is 68,000,000 bytes; .* of which 1e-05 may be used",
    "fit gpt-2 --gpu h100 --context 4096": "context is 4096; GPT-2 has a learned position table of 1024 rows",
    "memory gpt-2 --past 3 --context 4": "--past and --context cannot both be given",
    "memory gpt-2 --tokens 4 --context 3": "context is 3; .* so at least the 4 tokens",
    "memory gpt-2 --generate 2000": "--past . --tokens . --generate is 3024; GPT-2 has a learned position table",
    "memory gpt-2 --train --chunk 16": "--chunk is an option of inference",
    "memory gpt-2 --optimizer sgd": "--optimizer is an option of --train",
    "memory bert-base --page 16": "page is 16; BERT base keeps nothing between passes",
    "train gpt-2": "give --tokens, --budget or --gpu-days",
    "train gpt-2 --tokens 1T --budget 1e20": "give --tokens, --budget or --gpu-days",
    "train gpt-2 --tokens 1T --context 8 --lengths 8": "--lengths and --context cannot both be given",
    "train gpt-2 --tokens 1T --gpu h100 --peak-flops 1e15": "--gpu and --peak-flops are two ways to say one thing",
    "train gpt-2 --tokens 1T --gpu h100 --mfu 0.4 --tokens-per-second 3": "or a measured --tokens-per-second; both are",
    "train gpt-2 --tokens 1T --price 3": "--price needs a chip",
    "train gpt-2 --tokens 1T --pue 2": "--pue needs a chip",
    "train gpt-2 --gpu-days 4": "--gpu-days needs a gpu, and --mfu or --tokens-per-second",
    "train gpt-2 --tokens 1T --optimizer sgd": "--optimizer is of the steps that --step-tokens N counts",
    "train gpt-2 --tokens 1k --step-tokens 2k": "--step-tokens is 2000; the whole run has 1000 tokens",
    "train gpt-2 --tokens 1T --gpu v100 --mfu 0.4 --dtype bf16": "has no products in bf16",
    "train gpt-2 --tokens 1T --lengths 5:0": "--lengths, a number of sequences is 0",
    "train gpt-2 --budget 1": "the budget does not pay for one token",
}


@pytest.mark.parametrize("words", EXCLUDE)
def test_what_does_not_go_together(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(EXCLUDE[words], refused(capsys, words.split()))


def test_no_dropout_however_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("0", "0.00", "0%", ".0"):
        code, _, err = run(capsys, "memory", "gpt-2", "--train", "--dropout", text)
        assert (code, err) == (0, "")
