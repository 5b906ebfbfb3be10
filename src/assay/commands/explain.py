"""`assay explain MODEL [PART or FIGURE ...]`: where a figure comes from."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, list_conventions, load, model_options, setting, setting_options
from assay.errors import SettingError
from assay.report.table import style_of_stdout, width_of_stdout

SAYS = """\
How a figure is derived: the formula of each op in the usual letters, the same with this model's
sizes, and its value; their sums; the closed form; and the config key behind each letter.

A FIGURE is parameters, flops, cache (bytes) or activations (elements that ops write); the first
three if none is named. A PART is attention, attention.scores, mlp, experts, router, norm, embedding,
head, ... or the name of a kind of layer. Needs SymPy."""

EXAMPLES = """\
examples:
  assay explain llama-3-8b
  assay explain gpt-2 flops attention --tokens 1024
  assay explain deepseek-v3 cache --tokens 1 --context 128Ki
  assay explain config.json flops --convention causal --format latex"""


def run(words: list[str]) -> Answer:
    """The derivations asked for, one after the other."""
    parser = Parser(
        "assay explain", "assay explain MODEL [PART or FIGURE ...] [options]", SAYS, f"{MODEL}\n\n{EXAMPLES}"
    )
    model_options(parser)
    parser.add_argument("words", metavar="WORD", nargs="*", help="figures and at most one part, in any order")
    setting_options(parser)
    parser.add_argument("--format", metavar="HOW", default="terminal", help="terminal (default), markdown or latex")
    args = parser.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return list_conventions(style, args.json)
    if args.format not in ("terminal", "markdown", "latex"):
        raise SettingError(f"format is {args.format!r}; known: terminal, markdown, latex")
    model = load(parser, args)

    from assay.readings.explain import FIGURES
    from assay.report.explain import explain
    from assay.report.explain_json import document
    from assay.report.explain_text import report

    figures = [word for word in args.words if word in FIGURES]
    parts = [word for word in args.words if word not in FIGURES]
    if len(parts) > 1:
        raise SettingError(
            f"{' and '.join(map(repr, parts))} are two parts; name one; figures are {', '.join(FIGURES)}"
        )
    part = parts[0] if parts else None
    asked = setting(args)
    made = []
    for figure in figures or ["parameters", "flops", "cache"]:
        try:
            made.append(explain(model, figure, part, **asked))
        except SettingError:
            if figures or figure == "parameters":
                raise
    if args.json:
        documents = [document(version(), one) for one in made]
        return as_json(documents[0] if len(documents) == 1 else {"assay": version(), "figures": documents})
    if args.format != "terminal":
        return "\n".join(one.markdown() if args.format == "markdown" else one.latex() for one in made)
    wide = width_of_stdout()
    return as_text([line for index, one in enumerate(made) for line in ([""] * (index > 0) + report(one, style, wide))])
