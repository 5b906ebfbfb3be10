"""`assay ops MODEL`: every op of every distinct layer; `assay ops attention`: one attention alone."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, list_conventions, load, model_options, setting, setting_options
from assay.report.table import style_of_stdout
from assay.report.units import parse_size

SAYS = """\
Every op of every distinct layer, in order: its notation, the shapes of its inputs, weights and
output, parameters, FLOPs, bytes read and written, and FLOPs per byte.

`assay ops attention` counts a single attention, without a model: scores, scaling, bias, softmax and
output. A size that is a letter stays a symbol and needs SymPy. Write ./attention for a folder of
that name."""

EXAMPLES = """\
examples:
  assay ops llama-3-8b --tokens 1 --context 8k
  assay ops config.json --json
  assay ops attention --tokens 5 --qk-width 3 --v-width 3
  assay ops attention --tokens n --qk-width 64 --v-width 64"""


def run(words: list[str]) -> Answer:
    """Every op of a model, or one attention alone."""
    if words[:1] == ["attention"]:
        return attention(words[1:])
    parser = Parser("assay ops", "assay ops MODEL [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(parser)
    setting_options(parser)
    args = parser.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return list_conventions(style, args.json)
    model = load(parser, args)

    from assay.readings.count import count
    from assay.readings.ops import list_ops
    from assay.report import ops as text

    counted = count(model, **setting(args))
    listings = list_ops(model, counted.setting)
    if args.json:
        return as_json(text.document(version(), model, counted, listings))
    return as_text(text.report(model, counted, listings, style))


def attention(words: list[str]) -> str:
    """One attention alone."""
    usage = "assay ops attention [options]"
    parser = Parser("assay ops attention", usage, SAYS.partition("\n\n")[2], EXAMPLES)
    size = "SIZE or a letter"
    parser.add_argument("--tokens", metavar="N", default="n", help=f"queries and keys: {size} (default n)")
    parser.add_argument("--qk-width", metavar="K", default="d_k", help=f"width of queries and keys: {size}")
    parser.add_argument("--v-width", metavar="V", default="d_v", help=f"width of values: {size}")
    parser.add_argument("--heads", metavar="H", help=f"heads side by side: {size} (default 1)")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)

    from assay.report import alone

    given = {"tokens": args.tokens, "qk_width": args.qk_width, "v_width": args.v_width, "heads": args.heads}
    made = alone.read({name: _letter(text, name) for name, text in given.items() if text is not None})
    if args.json:
        return as_json(alone.document(version(), made))
    return as_text(alone.report(made, style_of_stdout()))


def _letter(text: str, name: str) -> int | str:
    """A size, or the name of a symbol."""
    if text.isascii() and text.isidentifier() and len(text) <= 12:
        return text
    return parse_size(text, f"--{name.replace('_', '-')}")
