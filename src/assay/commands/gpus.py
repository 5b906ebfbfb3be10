"""`assay gpus [NAME]`: what chips can do at most."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.hardware import chip, chips
from assay.report import hardware as text
from assay.report.table import style_of_stdout

SAYS = """\
The catalogue of chips: memory, bandwidth, rates of dense matrix products by dtype, links to other chips,
power. With NAME, one chip in full, each figure with the document that it comes from.

Rates for 2:4 sparsity, which are twice as high, appear nowhere. Memory is what the driver reports, where
that is known."""

EXAMPLES = """\
examples:
  assay gpus
  assay gpus h100
  assay gpus "NVIDIA GeForce RTX 4090" --json"""


def run(words: list[str]) -> Answer:
    """The catalogue, or one chip."""
    parser = Parser("assay gpus", "assay gpus [NAME] [options]", SAYS, EXAMPLES)
    parser.add_argument("name", metavar="NAME", nargs="?", help="one chip: h100, a100-40gb, rtx-4090, tpu-v5p, …")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)
    listed = chips() if args.name is None else (chip(args.name),)
    if args.json:
        return as_json(text.document(version(), listed))
    style = style_of_stdout()
    return as_text(text.report(listed, style) if args.name is None else text.details(listed[0], style))
