"""`assay verify MODEL`: the counts held against a run."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, found, model_options
from assay.errors import AssayError, SettingError, SourceError
from assay.records import replace
from assay.report.table import style_of_stdout
from assay.spec import Model

if TYPE_CHECKING:
    from assay.sources import Found
    from assay.verification.result import Proof, Verdict

SAYS = """\
Every count checked against a run: the model is built with small sizes and run in PyTorch, and for each op
the figures counted are compared with those measured: shapes, parameters, FLOPs of a prefill, a decode step
and a training step, cache bytes, what autograd keeps. If `transformers` is installed and MODEL is a config,
its implementation is compared too, at full size and without memory.

Exit code 1 if anything differs, 2 if the model cannot be run."""

EXAMPLES = """\
examples:
  assay verify llama-3-8b
  assay verify config.json --json
  assay verify --all                 every model type that is read
  assay verify --all deepseek        those that have the word in their name"""


def run(words: list[str]) -> Answer:
    """What was said, what was measured, and the difference."""
    parser = Parser("assay verify", "assay verify MODEL [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(parser)
    parser.add_argument("words", metavar="WORD", nargs="*", help="with --all: only types that have each word")
    parser.add_argument("--all", action="store_true", help="every model type that is read, from its defaults")
    parser.add_argument("--alone", action="store_true", help="without the public implementation")
    args = parser.parse_args(words)
    _need_torch()
    if args.all:
        return _all([*([args.model] if args.model is not None else []), *args.words], args.json)
    if args.words:
        parser.error(f"one MODEL, not {args.words[0]} as well")
    return _one(parser, args)


def _need_torch() -> None:
    from assay.execution.entry import need_torch

    need_torch()


def _one(parser: Parser, args: Namespace) -> Answer:
    from assay.report import verify as text
    from assay.verification.result import Verdict
    from assay.verification.small import prove

    what, model = found(parser, args)
    proofs = [prove(model)]
    if not args.alone:
        theirs = _public(what, model, args)
        if isinstance(theirs, str):
            said = f"the public implementation is not compared: {theirs}"
            proofs = [replace(proofs[0], without=(*proofs[0].without, said))]
        else:
            proofs.append(theirs)
    verdict = Verdict(model.name, tuple(proofs))
    made = (
        as_json(text.document(version(), [verdict])) if args.json else as_text(text.report(verdict, style_of_stdout()))
    )
    return made, 0 if verdict.alike else 1


def _public(what: Found, model: Model, args: Namespace) -> Proof | str:
    """The public implementation held against ours, or why it is not."""
    from assay.verification import library as public

    if what.config is None:
        return "a description names none, a config.json does"
    if args.sizes or args.mtp:
        return "it is of the config as it stands, without --set and --mtp"
    if model.scheme is not None:
        return "its weights are quantized"
    if public.installed() is None:
        return "transformers is not installed"
    return public.prove(model, what.config)


def _all(words: list[str], json: bool) -> Answer:
    from assay.report import verify as text
    from assay.sources.families import FAMILIES

    named = [name for name in FAMILIES if all(word in name for word in words)]
    if not named:
        raise SettingError(f"no model_type has {' and '.join(map(repr, words))} in its name")
    verdicts = list(_verdicts(named))
    style = style_of_stdout()
    made = as_json(text.document(version(), verdicts)) if json else as_text(text.matrix(verdicts, style))
    return made, 0 if all(verdict.alike for verdict in verdicts) else 1


def _verdicts(names: list[str]) -> Iterator[Verdict]:
    """Each model type as its defaults have it, small; on a terminal, how far it has come."""
    from assay.sources import load as read
    from assay.verification.result import Verdict
    from assay.verification.small import prove

    shown = sys.stderr is not None and sys.stderr.isatty()
    for at, name in enumerate(names, 1):
        if shown:
            print(f"\r\033[K{at}/{len(names)} {name}", end="", file=sys.stderr, flush=True)
        try:
            yield Verdict(name, (prove(read({"model_type": name})),))
        except SourceError as error:
            yield Verdict(name, refused=f"its config has no defaults: {error}")
        except AssayError as error:
            yield Verdict(name, refused=str(error))
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
