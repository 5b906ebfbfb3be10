"""Messages of the library, as the command line says them."""

from __future__ import annotations

import pytest

from assay.report.meant import as_typed

OPTIONS = ("-h", "--mfu", "--weights", "--tokens", "--past", "--step-tokens", "--image-tokens", "--peak-flops")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("mfu is 2; it must be a fraction", "--mfu is 2; it must be a fraction"),
        ("weights is 'w'; known: bf16", "--weights is 'w'; known: bf16"),
        ("image tokens is 5; it has no tower", "--image-tokens is 5; it has no tower"),
        ("past + tokens is 9; past it is nothing", "--past + --tokens is 9; past it is nothing"),
        ("a run needs mfu, or else peak_flops", "a run needs --mfu, or else --peak-flops"),
        ("step_tokens is 5; the run has 4 tokens", "--step-tokens is 5; the run has 4 tokens"),
        ("step_tokens and mfu are two", "--step-tokens and --mfu are two"),
        # what is a word, an option already, a value or a file is left
        ("weights are stored in a format", "weights are stored in a format"),
        ("--weights is 'mfu'", "--weights is 'mfu'"),
        ("the tokens of mfu/step_tokens.json", "the tokens of mfu/step_tokens.json"),
        ("tokens_left is 5", "tokens_left is 5"),
    ],
)
def test_an_argument_is_named_as_it_was_typed(message: str, said: str) -> None:
    assert as_typed(message, OPTIONS) == said
    assert as_typed(message, ()) == message
