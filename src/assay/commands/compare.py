"""`assay compare A B [C ...]`: models side by side, and what explains the differences."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import given_sizes, list_conventions, setting, setting_options
from assay.report.table import style_of_stdout, width_of_stdout
from assay.sources import load
from assay.studies.compare import compare
from assay.studies.compared import report, to_json

SAYS = """\
Models side by side: every figure with its ratio to the first model's, then what explains the
differences: sizes, formats, and the layers and ops that only some of them have.

Each MODEL is what `assay MODEL` takes. All are counted at one setting: without --tokens, at 2,048
tokens, or fewer if a model's position table is shorter."""

EXAMPLES = """\
examples:
  assay compare llama-2-7b llama-3-8b
  assay compare llama-3-8b qwen3-8b gemma-2-9b --tokens 1 --context 8k
  assay compare llama-3-8b mine.toml --json
  assay compare llama-3-8b llama-3-8b:layers=16,width=2048"""


def run(words: list[str]) -> Answer:
    """The comparison."""
    parser = Parser("assay compare", "assay compare MODEL MODEL [MODEL ...] [options]", SAYS, EXAMPLES)
    parser.add_argument("models", metavar="MODEL", nargs="*", help="what to read; MODEL:KEY=N,... with other sizes")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    parser.add_argument("--mtp", action="store_true", help="with the modules that predict further tokens")
    parser.add_argument("--allow", metavar="KEY", action="append", default=[], help="let an unknown config key pass")
    setting_options(parser)
    args = parser.parse_args(words)
    if args.convention == "list":
        return list_conventions(style_of_stdout(), args.json)
    if len(args.models) < 2:
        parser.error("a comparison is of two models or more")
    models = []
    for word in args.models:
        name, sizes = _with_sizes(word)
        models.append(load(name, allow=args.allow, mtp=args.mtp, sizes=sizes))
    made = compare(models, **setting(args))
    if args.json:
        return as_json(to_json(made, version()))
    return as_text(report(made, style_of_stdout(), width_of_stdout()))


def _with_sizes(word: str) -> tuple[str, dict[str, int]]:
    """A model, and the sizes set behind it: `llama-3-8b:width=2048,layers=16`."""
    name, colon, given = word.rpartition(":")
    if not colon or "=" not in given:
        return word, {}
    return name, given_sizes(given.split(","))
