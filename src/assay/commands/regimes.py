"""`assay regimes MODEL`: which costs lead at a length."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, list_conventions, load, model_options, setting, setting_options
from assay.errors import SettingError
from assay.report.table import style_of_stdout, width_of_stdout
from assay.studies.ranges import values

SAYS = """\
Which costs dominate a prefill of a given length: in compute, the MLP or attention; in memory, the MLP's
hidden activations or the scores of all heads; and the range of lengths of each of the four cases."""

EXAMPLES = """\
examples:
  assay regimes llama-3-8b
  assay regimes gpt-2 --context 128,1k
  assay regimes config.json --context 8k --json"""

LENGTHS = "512,2Ki,8Ki,32Ki,128Ki,1Mi"
MOST = 1000  # lengths, a row each


def run(words: list[str]) -> Answer:
    """The regimes of a model."""
    parser = Parser("assay regimes", "assay regimes MODEL [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(parser)
    parser.add_argument(
        "--context",
        metavar="C,C,…",
        help=f"lengths of prompts, or a range such as 1k:64k (default {LENGTHS}, as far as positions go)",
    )
    setting_options(parser, lengths=False)
    args = parser.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return list_conventions(style, args.json)
    lengths = values(LENGTHS if args.context is None else args.context, "--context")
    if len(lengths) > MOST:
        raise SettingError(f"--context has {len(lengths):,} lengths; regimes takes at most {MOST:,}")
    given, args.context = args.context is not None, None
    model = load(parser, args)

    from assay.readings.crossovers import common, images_alone
    from assay.readings.regimes import edges, regimes
    from assay.report.crossovers import regimes_document, regimes_report

    asked = setting(args)
    alone = images_alone(model)
    if not given and alone is not None:
        lengths = sorted({alone, *lengths})
    elif not given and model.positions is not None:
        lengths = [length for length in lengths if length <= model.positions] or [model.positions]
    made = regimes(model, lengths, **asked)
    found = edges(model, **asked)
    known = common(model, **asked)
    if args.json:
        return as_json(regimes_document(version(), model, made, found, known))
    return as_text(regimes_report(model, made, found, known, style, width_of_stdout()))
