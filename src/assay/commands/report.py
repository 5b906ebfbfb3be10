"""`assay MODEL`: the report."""

from __future__ import annotations

from assay.commands import COMMANDS
from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import MODEL, list_conventions, load, model_options, setting, setting_options
from assay.report.table import style_of_stdout
from assay.report.units import parse_size

WAYS = {"MODEL": "the report: parameters, FLOPs, weight and cache bytes"}
for ways in COMMANDS.values():
    WAYS |= ways
LISTED = "\n".join(f"  assay {usage:<{max(map(len, WAYS))}}  {says}" for usage, says in WAYS.items())

DESCRIPTION = f"""\
What a transformer is made of and what it costs, exactly, from its config alone.

{LISTED}

`assay COMMAND --help` explains a command and its options."""

EXAMPLES = """\
examples:
  assay llama-3-8b
  assay config.json --batch 8 --context 128Ki --tokens 1     one decode step of 8 sequences
  assay llama-3-8b --tokens 2k --generate 500                a prefill and 500 cached steps
  assay llama-3-8b --convention list                         what can be counted as a FLOP
  assay llama-3-8b --json | jq .parameters.total
  cat config.json | assay -"""


def parser() -> Parser:
    """The parser of `assay MODEL`."""
    made = Parser("assay", "assay MODEL [options]", DESCRIPTION, f"{MODEL}\n\n{EXAMPLES}")
    model_options(made)
    setting_options(made)
    made.add_argument(
        "--generate", metavar="N", help="N tokens after the prompt: a prefill and N cached steps, summed exactly"
    )
    made.add_argument(
        "--check",
        metavar="PATH",
        help="weight files to compare: list tensors missing, unexpected or different; exit 1 if any",
    )
    made.add_argument("--version", action="version", version=f"assay {version()}", help="show the version and exit")
    return made


def run(words: list[str]) -> Answer:
    """The report, what weight files hold where MODEL is such, or how they differ from MODEL with --check."""
    asks = parser()
    args = asks.parse_args(words)
    style = style_of_stdout()
    if args.convention == "list":
        return list_conventions(style, args.json)
    if args.check is None and args.model is not None and _is_weights(args.model):
        from assay.commands.checkpoint import held

        return held(args.model, args.json)
    model = load(asks, args)
    if args.check is not None:
        from assay.commands.checkpoint import compared

        return compared(model, args.check, args.json)

    from assay.readings.count import count
    from assay.readings.published import formulas
    from assay.report import contract
    from assay.report import model as text

    asked = setting(args)
    if args.generate is None:
        counted, generated = count(model, **asked), None
    else:
        from assay.readings.generate import generate_setting, with_room

        new = parse_size(args.generate, "--generate")
        counted = count(model, **with_room(model, new, asked))
        generated = generate_setting(model, new, counted.setting)
    published, said = formulas(model, counted), text.notes(model, counted, args.weights)
    if args.json:
        return as_json(contract.document(version(), model, counted, generated, published, said))
    return as_text(text.report(model, counted, generated, published, said, style))


def _is_weights(path: str) -> bool:
    """True for weight files without a config: those of safetensors; GGUF's metadata are one."""
    import os

    from assay.sources import is_bare_weights

    return is_bare_weights(os.path.expanduser(path))
