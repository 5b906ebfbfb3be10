"""`assay train MODEL --tokens 15T`: what a training run costs, or what a budget buys."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, list_conventions, load, model_options
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

_NUMBERS = ("tokens_per_second", "peak_flops", "price", "power", "pue", "budget", "gpu_days")
_SIZES = {"tokens": 1, "context": 1, "gpus": 1, "step_tokens": 1}
_SIZES |= {"source": 1, "images": 0, "image_tokens": 1, "sounds": 0}


def run(words: list[str]) -> Answer:
    """What a run costs."""
    parser = _parser()
    args = parser.parse_args(words)
    if args.convention == "list":
        return list_conventions(style_of_stdout(), args.json)
    chosen = () if args.law is None else (law(args.law),)
    asked = _asked(args)
    if sum(args.__dict__[name] is not None for name in ("tokens", "budget", "gpu_days")) != 1:
        parser.error("a run is told by one of --tokens, --budget and --gpu-days")
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
    of = made.add_argument_group("the run").add_argument
    of("--tokens", metavar="N", help="tokens of the whole run: 15T, 300B")
    of("--context", metavar="C", help="tokens of a sequence; 2,048 if not given, or the position table's rows")
    of("--lengths", metavar="LIST", help="packed sequences in place of it: 512,1024,4096 or 512:100,8192:3")
    of("--recompute", metavar="WHAT", default="none", help="again in backward: none, attention, layer, so many layers")
    of("--step-tokens", metavar="N", help="tokens of one step, to count what the optimizer does")
    of("--optimizer", metavar="NAME", help="adamw (the default), adam, sgd, lion, muon, …")
    of("--source", metavar="M", help="source tokens of an encoder-decoder; as many as of the target if not given")
    of("--images", metavar="I", help="images (or sounds) of each sequence, where the model has a tower")
    of("--sounds", metavar="S", help="sounds of each sequence, where the model has towers of both")
    of("--image-tokens", metavar="T", help="tokens that one image makes, where images may have any size")
    of("--convention", metavar="NAME", default="matmul", help="what a FLOP is: matmul (the default), causal; or list")
    on = made.add_argument_group("machines").add_argument
    on("--gpu", metavar="NAME", help="a chip of `assay gpus`: h100, a100, tpu-v5p, …")
    on("--gpus", metavar="N", default="1", help="how many; 1 if not given")
    on("--mfu", metavar="F", help="the share of the peak that the model's own work reaches: 0.4 or 40%%")
    on("--tokens-per-second", metavar="R", help="in place of it, what was measured, of all chips together")
    on("--dtype", metavar="DTYPE", help="of matrix products; bf16 if not given, fp16 where a chip has no bf16")
    on("--peak-flops", metavar="F", help="FLOP/s of one chip, in place of --gpu")
    on("--price", metavar="P", help="of one chip an hour, in any currency")
    on("--power", metavar="W", help="watts a chip; what it is made for if not given")
    on("--pue", metavar="F", default="1", help="what the building draws over what machines do; 1 if not given")
    back = made.add_argument_group("the other way round").add_argument
    back("--budget", metavar="FLOPS", help="FLOPs of the model's own work: 1e24")
    back("--gpu-days", metavar="D", help="days of one chip, all chips added up")
    back("--law", metavar="NAME", help=f"one law in place of all: {', '.join(LAWS)}")
    return made


def _asked(args: Namespace) -> dict[str, Any]:
    """The arguments of `train`. Raises SettingError."""
    given: dict[str, Any] = {name: getattr(args, name) for name in ("convention", "dtype")}
    if args.optimizer is not None:
        if args.step_tokens is None:
            raise SettingError("--optimizer is of the steps that --step-tokens N counts, and none is given")
        given["optimizer"] = args.optimizer
    again = args.recompute
    given["recompute"] = parse_size(again, "--recompute") if again[:1].isdecimal() else again
    given["gpu"] = args.gpu
    for name, least in _SIZES.items():
        text = getattr(args, name)
        if text is not None:
            given[name] = parse_size(text, _option(name), least)
    for name in _NUMBERS:
        text = getattr(args, name)
        if text is not None:
            given[name] = parse_number(text, _option(name))
    if args.mfu is not None:
        given["mfu"] = parse_number(args.mfu, "--mfu", percent=True)
    if args.lengths is not None:
        given["lengths"] = _lengths(args.lengths)
    return given


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _lengths(text: str) -> dict[int, int]:
    """Lengths and how many of each, of `512,1024` or `512:100,8192:3`. Raises SettingError."""
    kept: dict[int, int] = {}
    for word in text.split(","):
        length, colon, many = word.partition(":")
        if not length.strip() or (colon and not many.strip()):
            raise SettingError(f"--lengths is {shorten(text)!r}; it must be a list such as 512,4096 or 512:100,4096:3")
        n = parse_size(length, "--lengths")
        kept[n] = kept.get(n, 0) + (parse_size(many, "--lengths, a number of sequences") if colon else 1)
    return kept
