"""`assay memory MODEL`: what weights, cache and the fullest moment of a pass take."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, load, model_options
from assay.readings.setting import SIZES
from assay.report.table import style_of_stdout
from assay.report.units import parse_size

SAYS = """\
What inference holds, in bytes: weights by their format, the cache as the architecture needs it and as pages
take it, states of recurrences, and at the fullest moment of a pass activations and logits. The moment is
found op by op: each tensor is there from the op that makes it to the last that reads it."""

EXAMPLES = """\
examples:
  assay memory llama-3-8b --batch 16 --tokens 8192
  assay memory llama-3-8b --batch 64 --tokens 1 --context 32Ki --page 16
  assay memory deepseek-v3 --tokens 32Ki --chunk 2Ki --generate 1Ki --weights fp8
  assay memory llama-3.2-3b --tokens 4096 --logits all --policy transformers"""

_WORDS = ("logits", "attention", "policy", "latent", "weights", "cache", "state", "compute")
_COUNTS = {**SIZES, "page": 1, "chunk": 1, "generate": 0}


def run(words: list[str]) -> Answer:
    """What inference holds."""
    parser = _parser()
    args = parser.parse_args(words)
    asked = _asked(args)
    model = load(parser, args)

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
    add("--logits", metavar="WHICH", default="last", help="positions that get logits: last (the default) or all")
    add("--source", metavar="M", help="source tokens of an encoder-decoder; as many as --tokens if not given")
    add("--images", metavar="I", help="images (or sounds) of each sequence, where the model has a tower")
    add("--sounds", metavar="S", help="sounds of each sequence, where the model has towers of both")
    add("--image-tokens", metavar="T", help="tokens that one image makes, where images may have any size")
    how = made.add_argument_group("how it is run and kept").add_argument
    how("--policy", metavar="WHOSE", default="serving", help="serving (the default), ours, or transformers")
    how("--attention", metavar="HOW", default="fused", help="in one kernel: fused (the default), or plain, op by op")
    how("--latent", metavar="HOW", default="expanded", help="latent attention: expanded (the default) or absorbed")
    how("--page", metavar="N", help="tokens of a page, where the cache is kept in pages")
    how("--weights", metavar="DTYPE", help="of the weights: fp32, bf16, fp8, int4, …; the config's if not given")
    how("--cache", metavar="DTYPE", help="of keys and values; the weights' if not given, bf16 where that is narrower")
    how("--state", metavar="DTYPE", default="fp32", help="of recurrent states; fp32 if not given")
    how("--compute", metavar="DTYPE", help="of activations; the weights' if not given, bf16 where that is narrower")
    return made


def _asked(args: Namespace) -> dict[str, Any]:
    """The arguments of `memory`. Raises SettingError."""
    given = {name: getattr(args, name) for name in _WORDS}
    for name, least in _COUNTS.items():
        text = getattr(args, name, None)
        if text is not None:
            given[name] = parse_size(text, f"--{name.replace('_', '-')}", least)
    return given
