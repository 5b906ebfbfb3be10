"""`assay fit MODEL --gpu h100`: does it fit, what is the most that does, and what would make it fit."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, dropout, load, model_options
from assay.report.table import style_of_stdout
from assay.report.units import parse_number, parse_size

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

_SIZES = {
    "gpus": 1,
    "batch": 1,
    "context": 1,
    "chunk": 1,
    "prompts": 1,
    "page": 1,
    "source": 1,
    "images": 0,
    "image_tokens": 1,
    "sounds": 0,
    "accumulation": 1,
    "logits_chunk": 1,
    "lora": 1,
    "reserve": 0,
}
_WORDS = ("weights", "cache", "state", "logits", "latent", "optimizer", "precision", "attention", "policy")
_DEGREES = ("data", "tensor", "pipeline", "expert", "expert_tensor", "microbatches")


def run(words: list[str]) -> Answer:
    """Yes or no."""
    parser = _parser()
    args = parser.parse_args(words)
    if args.gpu is None:
        parser.error("--gpu is missing: a chip of `assay gpus`, such as h100")
    from assay.hardware import chip

    found = chip(args.gpu)
    asked = _asked(args)
    model = load(parser, args)

    from assay.studies.fit import fit
    from assay.studies.fitted import document, report

    made = fit(model, found, **asked)
    text = as_json(document(version(), made)) if args.json else as_text(report(made, style_of_stdout()))
    return text if made.fits else (text, 1)


def _parser() -> Parser:
    made = Parser("assay fit", "assay fit MODEL --gpu NAME [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(made)
    on = made.add_argument_group("machines").add_argument
    on("--gpu", metavar="NAME", help="a chip of `assay gpus`: h100, a100, rtx-4090, tpu-v5p, …")
    on("--gpus", metavar="N", help="how many; as many as the plan has if not given")
    on("--reserve", metavar="BYTES", help="not for the model: what a matrix library was measured to hold if not given")
    on("--utilization", metavar="F", default="1", help="the share of its memory that may be used: 0.9 or 90%%")
    of = made.add_argument_group("what is asked").add_argument
    of("--context", metavar="C", help="tokens of a sequence; 2,048 if not given, or the position table's rows")
    of("--batch", metavar="B", help="sequences of a replica; 1 if not given")
    of("--source", metavar="M", help="source tokens of an encoder-decoder; as many as the context if not given")
    of("--images", metavar="I", help="images (or sounds) of each sequence, where the model has a tower")
    of("--image-tokens", metavar="T", help="tokens that one image makes, where images may have any size")
    of("--sounds", metavar="S", help="sounds of each sequence, where the model has towers of both")
    of("--train", action="store_true", help="a step of training, not inference")
    of("--attention", metavar="HOW", default="fused", help="fused in one kernel (the default), or plain, op by op")
    of("--policy", metavar="WHOSE", help="whose execution: serving (inference), transformers (training), ours, …")
    serve = made.add_argument_group("inference").add_argument
    serve(
        "--weights", metavar="FORMAT", help="fp8, int4, … of all; or fp8-blocks, int8-rows, gptq, awq, nf4 of matrices"
    )
    serve("--cache", metavar="DTYPE", help="of keys and values; the weights' if not given, bf16 where that is narrower")
    serve("--state", metavar="DTYPE", default="fp32", help="of recurrent states; fp32 if not given")
    serve("--chunk", metavar="N", help="tokens of a prompt read at a time; all if not given")
    serve("--prompts", metavar="N", help="prompts read at a time; the whole batch if not given")
    serve("--page", metavar="N", help="tokens of a page, where a cache lies in pages")
    serve("--logits", metavar="WHICH", default="last", help="positions that get logits: last (the default) or all")
    serve("--latent", metavar="HOW", default="expanded", help="latent attention: expanded (the default) or absorbed")
    learn = made.add_argument_group("training").add_argument
    learn("--optimizer", metavar="NAME", default="adamw", help="adamw (the default), adamw-8bit, adafactor, muon, …")
    learn("--precision", metavar="NAME", default="bf16", help="bf16 (the default), autocast, mixed, megatron, fp32, …")
    learn("--recompute", metavar="WHAT", default="none", help="none (the default), attention, layer, or so many layers")
    learn("--accumulation", metavar="K", default="1", help="passes added up before a step; 1 if not given")
    learn("--logits-chunk", metavar="N", help="tokens that head and loss run for at a time; all if not given")
    learn("--dropout", metavar="P", help="the rate of dropout, whose masks are kept; none if not given")
    learn("--lora", metavar="R", help="adapters of rank R trained alone; --weights is then the format of the rest")
    plan = made.add_argument_group("plan").add_argument
    plan("--tensor", metavar="T", help="ranks that divide heads, inner widths and vocabulary")
    plan("--sequence", action="store_true", help="they divide the tokens of norms and residual stream, too")
    plan("--pipeline", metavar="P", help="stages of layers")
    plan("--microbatches", metavar="M", help="that pass the stages in a step; as many as stages if not given")
    plan("--expert", metavar="E", help="ranks that divide routed experts among them")
    plan("--expert-tensor", metavar="T", help="ranks that divide each routed expert; as --tensor if not given")
    plan("--data", metavar="D", help="replicas, each with a batch of its own")
    plan("--zero", metavar="Z", help="what replicas divide: 1 optimizer states, 2 gradients too, 3 parameters too")
    return made


def _asked(args: Namespace) -> dict[str, Any]:
    """The arguments of `fit`. Raises SettingError."""
    given: dict[str, Any] = {name: getattr(args, name) for name in _WORDS}
    given["train"] = args.train
    for name, least in _SIZES.items():
        text = getattr(args, name)
        if text is not None:
            given[name] = parse_size(text, _option(name), least)
    given["utilization"] = parse_number(args.utilization, "--utilization", percent=True)
    given["recompute"] = parse_size(args.recompute, "--recompute") if args.recompute.isdigit() else args.recompute
    if args.dropout is not None:
        given["dropout"] = dropout(args.dropout)
    given["plan"] = _plan(args)
    return given


def _plan(args: Namespace) -> Any:
    """The plan that is given, None where none is. Raises SettingError."""
    from assay.rewrites.plan import Plan

    asked: dict[str, Any] = {}
    for name in _DEGREES:
        text = getattr(args, name)
        if text is not None:
            asked[name] = parse_size(text, _option(name))
    if args.zero is not None:
        asked["zero"] = parse_size(args.zero, "--zero", 0)
    if args.sequence:
        asked["sequence"] = True
    return Plan(**asked) if asked else None


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
