"""`assay tensors MODEL`: the ledger."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, load, model_options
from assay.report.table import style_of_stdout

SAYS = "Every weight tensor: name, how often it occurs, shape, axes, elements."

EXAMPLES = """\
examples:
  assay tensors llama-3-8b
  assay tensors config.json --json"""


def run(words: list[str]) -> Answer:
    """Every weight tensor of a model."""
    parser = Parser("assay tensors", "assay tensors MODEL [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(parser)
    args = parser.parse_args(words)
    model = load(parser, args)

    from assay.readings.tensors import tensors
    from assay.report import tensors as text

    entries = tensors(model)
    if args.json:
        return as_json(text.document(version(), model, entries))
    return as_text(text.report(model, entries, style_of_stdout()))
