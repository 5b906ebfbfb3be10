"""`assay train MODEL --tokens 15T`: what a training run costs, or what a budget buys."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import (
    CONVENTION,
    MODEL,
    SHOWN,
    Option,
    add,
    given,
    list_conventions,
    load,
    model_options,
    share,
    size,
)
from assay.commands.training_options import AGAIN, GPU, OPTIMIZER, SEQUENCE
from assay.errors import SettingError
from assay.readings.laws import LAWS, law
from assay.report.table import style_of_stdout
from assay.report.units import parse_number, parse_size, shorten

SAYS = """\
What a training run costs: FLOPs forward, backward and computed again, the published formulas beside them,
and on a GPU of the catalogue days, energy and price. --budget or --gpu-days ask the other way round: how
many tokens that buys, and which size published laws would give the model.

How fast machines are is said by --mfu, a fraction of their peak, or measured: --tokens-per-second."""

EXAMPLES = """\
examples:
  assay train llama-3-8b --tokens 15T --context 8192 --gpu h100 --mfu 0.4 --gpus 1024 --price 2.5
  assay train gpt-2 --tokens 300B --gpu a100 --gpus 8 --tokens-per-second 1.36M
  assay train llama-3-8b --tokens 1T --lengths 512:100,8192:3 --recompute layer
  assay train llama-3-8b --budget 1e24 --law besiroglu"""


def _lengths(text: str, option: str) -> dict[int, int]:
    """Lengths and how many of each, of `512,1024` or `512:100,8192:3`. Raises SettingError."""
    kept: dict[int, int] = {}
    for word in text.split(","):
        length, colon, many = word.partition(":")
        if not length.strip() or (colon and not many.strip()):
            raise SettingError(f"{option} is {shorten(text)!r}; it must be a list such as 512,4096 or 512:100,4096:3")
        n = parse_size(length, option)
        kept[n] = kept.get(n, 0) + (parse_size(many, f"{option}, a number of sequences") if colon else 1)
    return kept


_RUN = (
    {"tokens": Option("N", "tokens of the whole run: 15T, 300B", size())}
    | SEQUENCE
    | {"lengths": Option("LIST", "packed sequences in place of it: 512,1024,4096 or 512:100,8192:3", _lengths)}
    | AGAIN
    | {"step_tokens": Option("N", "tokens of one step, to count what the optimizer does", size())}
    | OPTIMIZER
    | SHOWN
    | CONVENTION
)
_MACHINES = GPU | {
    "gpus": Option("N", "how many (default 1)", size()),
    "mfu": Option("F", "the share of the peak that the model's own work reaches: 0.4 or 40%%", share),
    "tokens_per_second": Option("R", "in place of it, what was measured, of all chips together", parse_number),
    "dtype": Option("DTYPE", "of matrix products (default bf16, fp16 where a chip has no bf16)"),
    "peak_flops": Option("F", "FLOP/s of one chip, in place of --gpu", parse_number),
    "price": Option("P", "of one chip an hour, in any currency", parse_number),
    "power": Option("W", "watts a chip (default: its rated power)", parse_number),
    "pue": Option("F", "what the building draws over what machines do (default 1)", parse_number),
}
_BUYS = {
    "budget": Option("FLOPS", "FLOPs of the model's own work: 1e24", parse_number),
    "gpu_days": Option("D", "days of one chip, all chips added up", parse_number),
}
_LAW = {"law": Option("NAME", f"one law in place of all: {', '.join(LAWS)}")}


def run(words: list[str]) -> Answer:
    """What a run costs."""
    parser = _parser()
    args = parser.parse_args(words)
    if args.convention == "list":
        return list_conventions(style_of_stdout(), args.json)
    chosen = () if args.law is None else (law(args.law),)
    asked = _asked(args)
    if sum(args.__dict__[name] is not None for name in ("tokens", "budget", "gpu_days")) != 1:
        parser.error("give --tokens, --budget or --gpu-days")
    model = load(parser, args)

    from assay.readings.compute import train
    from assay.records import replace
    from assay.report.compute import document, report

    made = train(model, **asked)
    if chosen:
        names = {one.name for one in chosen}
        made = replace(made, optimal=tuple(one.optimum(made.flops) for one in LAWS.values() if one.name in names))
    if args.json:
        return as_json(document(version(), model, made))
    return as_text(report(model, made, style_of_stdout()))


def _parser() -> Parser:
    made = Parser("assay train", "assay train MODEL --tokens N [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(made)
    add(made, "the run", _RUN)
    add(made, "machines", _MACHINES)
    add(made, "the other way round", _BUYS | _LAW)
    return made


def _asked(args: Namespace) -> dict[str, Any]:
    """The arguments of `train`. Raises SettingError."""
    if args.optimizer is not None and args.step_tokens is None:
        raise SettingError("--optimizer is of the steps that --step-tokens N counts, and none is given")
    return given(args, _RUN | _MACHINES | _BUYS)
