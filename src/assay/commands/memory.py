"""`assay memory MODEL`: what weights, cache and the fullest moment of a pass take; with `--train`, of a step."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import (
    BATCH,
    DTYPES,
    LENGTHS,
    MODEL,
    SHOWN,
    Option,
    add,
    given,
    load,
    model_options,
    size,
    spelled,
)
from assay.commands.training_options import KERNEL, SERVED, STEP
from assay.errors import SettingError
from assay.report.table import style_of_stdout

SAYS = """\
What inference holds, in bytes: weights by their format, the cache as the architecture needs it and as pages
take it, states of recurrences, and at the fullest moment of a pass activations and logits. The moment is
found op by op: each tensor is alive from the op that makes it to the last that reads it.

With --train what a training step holds: parameters, gradients, the optimizer's states, what the layers keep
for the backward pass, the loss, and the peak of the step with its moments."""

EXAMPLES = """\
examples:
  assay memory llama-3-8b --batch 16 --tokens 8192
  assay memory llama-3-8b --batch 64 --tokens 1 --context 32Ki --page 16
  assay memory deepseek-v3 --tokens 32Ki --chunk 2Ki --generate 1Ki --weights fp8
  assay memory llama-3.2-3b --tokens 4096 --logits all --policy transformers
  assay memory llama-3.2-1b --train --batch 4 --tokens 2048
  assay memory llama-3-8b --train --tokens 8192 --precision mixed --recompute layer --logits-chunk 1024
  assay memory llama-3-8b --train --tokens 2048 --lora 16 --weights nf4 --recompute layer"""

_SETTING = BATCH | LENGTHS | {"generate": Option("N", "decode steps after them (default 0)", size(0))} | SHOWN
_HOW = (
    {"policy": Option("WHOSE", "serving (default), ours, or transformers (default with --train)")}
    | KERNEL
    | SERVED
    | DTYPES
    | {"compute": Option("DTYPE", "of activations (default: that of the weights, bf16 where it is narrower)")}
)
_STEP = STEP | {
    "device": Option("NAME", "cuda (default) or cpu"),
    "workspace": Option("N", "bytes of the matrix library (default on a GPU: 68 MB, measured)", size(0)),
}
_INFERENCE = ("past", "context", "generate", *SERVED, *DTYPES, "compute")  # what a step has not


def run(words: list[str]) -> Answer:
    """What inference holds."""
    parser = _parser()
    args = parser.parse_args(words)
    asked = _asked(args)
    model = load(parser, args)
    if args.train:
        from assay.readings.step import training_memory
        from assay.report import step

        rank, frozen = asked.pop("lora", None), asked.pop("weights", None)
        if rank is not None:
            from assay.studies.needs import FORMATS, adapted, known

            if frozen is not None:
                known(frozen)
            model = adapted(model, rank, frozen if frozen in FORMATS else None)
            asked["frozen"] = None if frozen in FORMATS else frozen
        trained = training_memory(model, **asked)
        if args.json:
            return as_json(step.document(version(), model, trained))
        return as_text(step.report(model, trained, style_of_stdout()))

    from assay.readings.memory import memory
    from assay.report.memory import document, report

    made = memory(model, **asked)
    if args.json:
        return as_json(document(version(), model, made))
    return as_text(report(model, made, style_of_stdout()))


def _parser() -> Parser:
    made = Parser("assay memory", "assay memory MODEL [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(made)
    add(made, "setting", _SETTING)
    add(made, "how it is run and kept", _HOW)
    add(made, "a training step", {"train": Option("", "what a training step holds")} | _STEP)
    return made


def _asked(args: Namespace) -> dict[str, Any]:
    """The arguments of `memory`, with --train of `training_memory`. Raises SettingError."""
    if not args.train:
        _refuse(args, _STEP, "--train")
    elif args.lora is None:
        _refuse(args, _INFERENCE, "inference, without --train")
    else:  # in which format what adapters stand beside is
        _refuse(args, [name for name in _INFERENCE if name != "weights"], "inference, without --train")
    return given(args, _SETTING | _HOW | _STEP)


def _refuse(args: Namespace, names: Iterable[str], of: str) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise SettingError(f"{spelled(name)} is an option of {of}")
