"""Options that commands share: each gives an argument that its function takes, and is read in one way."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import pytest

import assay
from assay.commands import fit, memory, train
from assay.commands.frame import Parser
from assay.commands.options import SETTING, Option, Options, add, given, share, size, word
from assay.commands.training_options import STEP, again, dropout
from assay.errors import SettingError
from assay.readings.setting import SIZES

STEPPED = {name: one for name, one in (memory._SETTING | memory._HOW).items() if name not in memory._INFERENCE}
TAKES: dict[str, tuple[Callable[..., Any], Options]] = {
    "report": (assay.count, SETTING),
    "memory": (assay.memory, memory._SETTING | memory._HOW),
    "memory --train": (assay.training_memory, STEPPED | {n: o for n, o in memory._STEP.items() if n != "lora"}),
    "fit": (assay.fit, fit._MACHINES | fit._ASKED | fit._INFERENCE | STEP),
    "fit's plan": (assay.Plan, fit._PLAN),
    "train": (assay.train, train._RUN | train._MACHINES | train._BUYS),
}


@pytest.mark.parametrize("command", TAKES)
def test_each_option_gives_an_argument(command: str) -> None:
    function, options = TAKES[command]
    arguments = inspect.signature(function).parameters.keys()
    assert options.keys() <= arguments
    assert SIZES.keys() & arguments <= options.keys()  # no size of a setting is left without an option


def test_options_are_read_as_they_say() -> None:
    options = {
        "name": Option("NAME", "a word"),
        "least_size": Option("N", "an integer", size(0)),
        "share": Option("F", "a fraction", share),
        "again": Option("HOW", "a word or an integer", again),
        "dropout": Option("P", "a rate", dropout),
        "flag": Option("", "alone"),
    }
    parser = Parser("p", "p", "")
    add(parser, "group", options)
    assert given(parser.parse_args([]), options) == {}
    words = "--name x --least-size 8k --share 40% --again layer --dropout 10% --flag".split()
    assert given(parser.parse_args(words), options) == {
        "name": "x",
        "least_size": 8000,
        "share": 0.4,
        "again": "layer",
        "dropout": 0.1,
        "flag": True,
    }
    assert options["name"].read is word
    assert given(Namespace(again="4"), {"again": options["again"]}) == {"again": 4}
    with pytest.raises(SettingError, match=r"^--least-size is '-1'; it must be an integer of at least 0,"):
        given(Namespace(least_size="-1"), options)
