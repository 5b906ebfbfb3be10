"""`assay crossovers MODEL`: where one cost comes to equal another."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, list_conventions, load, model_options, setting, setting_options
from assay.report.table import style_of_stdout, width_of_stdout

SAYS = """\
The number of tokens at which one cost of a model equals another: attention and the MLP, scores and all
weights, scores and hidden activations, the cache and the weights. Each is an integer and a formula, found
from the model's own ops. Articles that disagree about "the" crossover mean different ones of these.

Formulas need SymPy. `assay regimes` says which costs dominate at a given length."""

EXAMPLES = """\
examples:
  assay crossovers llama-3-8b
  assay crossovers gpt-2 --convention causal
  assay crossovers config.json --batch 32 --cache fp8"""


def run(words: list[str]) -> Answer:
    """The crossovers of a model."""
    parser = Parser("assay crossovers", "assay crossovers MODEL [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(parser)
    setting_options(parser, lengths=False)
    args = parser.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return list_conventions(style, args.json)
    model = load(parser, args)

    from assay.readings.crossovers import common, crossovers
    from assay.report.crossovers import document, report

    asked = setting(args)
    made, known = crossovers(model, **asked), common(model, **asked)
    if args.json:
        return as_json(document(version(), model, made, known))
    return as_text(report(model, made, known, asked.get("source"), style, width_of_stdout()))
