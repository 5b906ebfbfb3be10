"""`assay memory MODEL`: what weights, cache and the fullest moment of a pass take; with `--train`, of a step."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, dropout, load, model_options
from assay.errors import SettingError
from assay.readings.setting import SIZES
from assay.report.table import style_of_stdout
from assay.report.units import parse_size

SAYS = """\
What inference holds, in bytes: weights by their format, the cache as the architecture needs it and as pages
take it, states of recurrences, and at the fullest moment of a pass activations and logits. The moment is
found op by op: each tensor is there from the op that makes it to the last that reads it.

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

_WORDS = ("logits", "attention", "policy", "latent", "weights", "cache", "state", "compute")
_COUNTS = {**SIZES, "page": 1, "chunk": 1, "generate": 0}
_STEP = (
    "precision",
    "optimizer",
    "recompute",
    "lora",
    "accumulation",
    "logits_chunk",
    "dropout",
    "device",
    "workspace",
)
_STEP_WORDS = ("attention", "policy", "precision", "optimizer", "recompute", "device")
_STEP_COUNTS = {name: least for name, least in SIZES.items() if name not in ("past", "context")}
_STEP_COUNTS |= {"accumulation": 1, "logits_chunk": 1, "workspace": 0, "lora": 1}


def run(words: list[str]) -> Answer:
    """What inference holds."""
    parser = _parser()
    args = parser.parse_args(words)
    asked = _step(args) if args.train else _asked(args)
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
    add = made.add_argument_group("setting").add_argument
    add("--batch", metavar="B", help="sequences; 1 if not given")
    add("--tokens", metavar="N", help="tokens processed now; 2,048 if not given, or the position table's rows")
    add("--past", metavar="P", help="tokens before them, in the cache; 0 if not given")
    add("--context", metavar="C", help="past and present together, in place of --past")
    add("--generate", metavar="N", help="steps of one token behind them; 0 if not given")
    add("--chunk", metavar="N", help="the tokens so many at a time: chunked prefill")
    add("--logits", metavar="WHICH", help="positions that get logits: last (the default) or all")
    add("--source", metavar="M", help="source tokens of an encoder-decoder; as many as --tokens if not given")
    add("--images", metavar="I", help="images (or sounds) of each sequence, where the model has a tower")
    add("--sounds", metavar="S", help="sounds of each sequence, where the model has towers of both")
    add("--image-tokens", metavar="T", help="tokens that one image makes, where images may have any size")
    how = made.add_argument_group("how it is run and kept").add_argument
    how("--policy", metavar="WHOSE", help="serving (the default), ours, or transformers (the default of a step)")
    how("--attention", metavar="HOW", help="in one kernel: fused (the default), or plain, op by op")
    how("--latent", metavar="HOW", help="latent attention: expanded (the default) or absorbed")
    how("--page", metavar="N", help="tokens of a page, where the cache is kept in pages")
    how("--weights", metavar="DTYPE", help="of the weights: fp32, bf16, fp8, int4, …; the config's if not given")
    how("--cache", metavar="DTYPE", help="of keys and values; the weights' if not given, bf16 where that is narrower")
    how("--state", metavar="DTYPE", help="of recurrent states; fp32 if not given")
    how("--compute", metavar="DTYPE", help="of activations; the weights' if not given, bf16 where that is narrower")
    step = made.add_argument_group("a training step").add_argument
    step("--train", action="store_true", help="what a training step holds")
    step("--precision", metavar="NAME", help="bf16 (the default), autocast, fp32, mixed, megatron, …")
    step("--optimizer", metavar="NAME", help="adamw (the default), sgd, adamw-8bit, adafactor, muon, lion, …")
    step(
        "--recompute", metavar="HOW", help="what runs again: none (the default), attention, layer, or 4 layers at once"
    )
    step("--lora", metavar="R", help="adapters of rank R trained alone; --weights is then the format of the rest")
    step("--accumulation", metavar="N", help="passes that are added up before a step; 1 if not given")
    step("--logits-chunk", metavar="N", help="tokens of a sequence that head and loss take at a time")
    step("--dropout", metavar="P", help="its rate, where the implementation has one; 0 if not given")
    step("--device", metavar="NAME", help="cuda (the default) or cpu")
    step("--workspace", metavar="N", help="bytes of the matrix library; 68 MB on a GPU if not given, measured")
    return made


def _asked(args: Namespace) -> dict[str, Any]:
    """The arguments of `memory`. Raises SettingError."""
    _refuse(args, _STEP, "--train")
    return _words(args, _WORDS) | _numbers(args, _COUNTS)


def _step(args: Namespace) -> dict[str, Any]:
    """The arguments of `training_memory`. Raises SettingError."""
    rest = () if args.lora is None else ("weights",)  # in which format what adapters stand beside is
    _refuse(args, (*_WORDS, *_COUNTS), "inference, without --train", but=(*_STEP_WORDS, *_STEP_COUNTS, *rest))
    given = _words(args, (*_STEP_WORDS, *rest)) | _numbers(args, _STEP_COUNTS)
    if args.dropout is not None:
        given["dropout"] = dropout(args.dropout)
    again = given.get("recompute")
    return given | ({"recompute": parse_size(again, "--recompute", 1)} if again and again[0].isdigit() else {})


def _refuse(args: Namespace, names: Iterable[str], of: str, but: Iterable[str] = ()) -> None:
    for name in names:
        if getattr(args, name, None) is not None and name not in but:
            raise SettingError(f"--{name.replace('_', '-')} is an option of {of}")


def _words(args: Namespace, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _numbers(args: Namespace, least: Mapping[str, int]) -> dict[str, Any]:
    given = {name: getattr(args, name, None) for name in least}
    named = {name: text for name, text in given.items() if text is not None}
    return {name: parse_size(text, f"--{name.replace('_', '-')}", least[name]) for name, text in named.items()}
