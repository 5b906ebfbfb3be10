"""`assay draw MODEL`: the model as a diagram."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_text
from assay.commands.options import MODEL, list_conventions, load, model_options, setting, setting_options
from assay.report.table import style_of_stdout, width_of_stdout
from assay.report.units import shorten

SAYS = """\
The model as a diagram: a box for each sub-layer with the parameters and FLOPs of one layer, and the shape
of the value on every arrow. Identical layers are drawn once. The residual stream runs down on the left.

Prints text; --out writes a picture. --unrolled draws every op."""

EXAMPLES = """\
examples:
  assay draw llama-3-8b
  assay draw llama-3-8b --unrolled --tokens 1 --context 8k
  assay draw t5-small --out t5.svg
  assay draw deepseek-v3 --out deepseek.mmd --out deepseek.svg"""


def run(words: list[str]) -> Answer:
    """The diagram, or what was written."""
    parser = Parser("assay draw", "assay draw MODEL [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}")
    model_options(parser, json=False)
    out = parser.add_argument_group("output").add_argument
    out("--unrolled", action="store_true", help="draw every op; as text, one line each")
    says = "write a picture: .svg, .mmd (Mermaid), .md (Mermaid in Markdown) or .txt; may be repeated"
    out("--out", metavar="FILE", action="append", default=[], help=says)
    setting_options(parser)
    args = parser.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return list_conventions(style)

    from assay.report.diagram import draw, ending_of

    for path in args.out:
        ending_of(path)
    made = draw(load(parser, args), unrolled=args.unrolled, **setting(args))
    for path in args.out:
        made.save(path)
    if args.out:
        said = "every op" if args.unrolled else "every sub-layer"
        return as_text([f"{shorten(path)}: {made.model.name}, {said}" for path in args.out])

    from assay.report.draw_text import text

    return as_text(text(made.model, made.counted, made.graph, made.unrolled, style, width_of_stdout()))
