"""`assay fit MODEL --gpu h100`: does it fit, what is the most that does, and what would make it fit."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import BATCH, DTYPES, MODEL, SHOWN, Option, add, given, load, model_options, share, size
from assay.commands.training_options import GPU, KERNEL, SEQUENCE, SERVED, STEP
from assay.report.table import style_of_stdout

SAYS = """\
Whether a model fits on chips of the catalogue: what the most loaded rank needs at its fullest moment, the
largest batch and the longest context that fit, and, where it does not, the changes that would make it.

Inference unless --train is given: prompts of --context tokens are read, then their cache is there. With
--gpus N and no plan, inference divides tensors among the chips, training has N replicas with ZeRO 3.
Exit code 0 where it fits, 1 where it does not."""

EXAMPLES = """\
examples:
  assay fit llama-3-70b --gpu h100 --gpus 2 --context 8192 --batch 4
  assay fit llama-3-8b --gpu rtx-4090 --context 32k --weights awq --cache fp8 --chunk 2048
  assay fit llama-3-8b --gpu h100 --context 8192 --train --recompute layer --optimizer adamw-8bit
  assay fit llama-3-8b --gpu rtx-4090 --context 2k --train --lora 16 --weights nf4 --recompute layer
  assay fit llama-3-70b --gpu h100 --train --tensor 8 --sequence --pipeline 4 --data 2 --zero 1"""

_MACHINES = {
    "gpus": Option("N", "how many (default: those of the plan)", size()),
    "reserve": Option("BYTES", "kept from the model (default: what a matrix library was measured to hold)", size(0)),
    "utilization": Option("F", "the share of its memory that may be used, 0.9 or 90%% (default: all)", share),
}
_ASKED = (
    SEQUENCE
    | BATCH
    | SHOWN
    | {"train": Option("", "a step of training, not inference")}
    | KERNEL
    | {"policy": Option("WHOSE", "whose execution: serving (inference), transformers (training), ours, …")}
)
_FORMAT = Option("FORMAT", "fp8, int4, … of all; or fp8-blocks, int8-rows, gptq, awq, nf4 of matrices")
_INFERENCE = (
    DTYPES
    | {"weights": _FORMAT}
    | {"prompts": Option("N", "prompts read at a time (default: the whole batch)", size())}
    | SERVED
)
_PLAN = {
    "tensor": Option("T", "ranks that divide heads, inner widths and vocabulary", size()),
    "sequence": Option("", "they divide the tokens of norms and residual stream, too"),
    "pipeline": Option("P", "stages of layers", size()),
    "microbatches": Option("M", "that pass the stages in a step (default: one a stage)", size()),
    "expert": Option("E", "ranks that divide routed experts among them", size()),
    "expert_tensor": Option("T", "ranks that divide each routed expert (default: --tensor)", size()),
    "data": Option("D", "replicas, each with a batch of its own", size()),
    "zero": Option("Z", "what replicas divide: 1 optimizer states, 2 gradients too, 3 parameters too", size(0)),
}


def run(words: list[str]) -> Answer:
    """Yes or no."""
    parser = _parser()
    args = parser.parse_args(words)
    if args.gpu is None:
        parser.error("--gpu is missing: a chip of `assay gpus`, such as h100")
    from assay.hardware import chip

    found, asked = chip(args.gpu), _asked(args)
    model = load(parser, args)

    from assay.studies.fit import fit
    from assay.studies.fitted import document, report

    made = fit(model, found, **asked)
    text = as_json(document(version(), made)) if args.json else as_text(report(made, style_of_stdout()))
    return text if made.fits else (text, 1)


def _parser() -> Parser:
    made = Parser("assay fit", "assay fit MODEL --gpu NAME [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(made)
    add(made, "machines", GPU | _MACHINES)
    add(made, "what is asked", _ASKED)
    add(made, "inference", _INFERENCE)
    add(made, "training", STEP)
    add(made, "plan", _PLAN)
    return made


def _asked(args: Namespace) -> dict[str, Any]:
    """The arguments of `fit`. Raises SettingError."""
    asked = given(args, _MACHINES | _ASKED | _INFERENCE | STEP)
    plan = given(args, _PLAN)
    if plan:
        from assay.rewrites.plan import Plan

        asked["plan"] = Plan(**plan)
    return asked
