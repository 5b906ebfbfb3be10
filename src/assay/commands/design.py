"""`assay design --params 8B`: plain decoders that meet targets, as descriptions."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.errors import SettingError
from assay.readings.dtypes import dtype
from assay.report.table import style_of_stdout
from assay.report.units import parse_size, shorten
from assay.studies import shapes
from assay.studies.design import CONTEXT, VOCABULARY, Frame, Targets, search
from assay.studies.designed import report, to_json, write
from assay.studies.ranges import values

SAYS = """\
Plain decoders that meet targets, ranked, each a description that `assay` reads: RMSNorm, rotary
positions, heads that divide the width evenly, an MLP, no biases; widths are multiples of 128.

Give --params, --flops-per-token or both, and --cache-per-token if you like. Anything else may be
fixed, and is searched where it is not. Sizes may be lists or ranges: --layers 24:40:+4. Needs NumPy."""

EXAMPLES = """\
examples:
  assay design --params 8B
  assay design --params 70B --cache-per-token 320Ki --layers 80
  assay design --flops-per-token 16G --context 8k --ratio 3.5
  assay design --params 1B --vocabulary 32000 --tied --number 3 --write designs"""

_SIZES = {
    "layers": "how deep",
    "width": "of the model; multiples of 128",
    "heads": "query heads",
    "kv-heads": "key/value heads",
    "head-width": "of a head; 64 and 128 where nothing is said",
}


def run(words: list[str]) -> Answer:
    """The proposals, or the files that were written."""
    parser = _parser()
    args = parser.parse_args(words)
    if args.rule:
        rule = (shapes.__doc__ or "").strip()
        return as_json({"assay": version(), "rule": rule}) if args.json else as_text(rule.splitlines())
    targets = Targets(
        *(
            None if text is None else parse_size(text, option)
            for option, text in (
                ("--params", args.params),
                ("--flops-per-token", args.flops_per_token),
                ("--cache-per-token", args.cache_per_token),
            )
        )
    )
    if targets.parameters is None and targets.flops_per_token is None:
        parser.error("a design needs a target: --params, --flops-per-token, or both")
    frame, within = _frame(args), _decimal(args.within, "--within", 0, 100) / 100
    made = search(targets, frame, parse_size(args.number, "--number"), within)
    written = [] if args.write is None else write(made, args.write)
    if args.json:
        return as_json(to_json(made, targets, frame, within, version()))
    return as_text(written or report(made, targets, frame, within, style_of_stdout()))


def _parser() -> Parser:
    made = Parser("assay design", "assay design --params N [options]", SAYS, EXAMPLES)
    target = made.add_argument_group("targets").add_argument
    target("--params", metavar="N", help="parameters in all")
    target("--flops-per-token", metavar="F", help="FLOPs of a token, in a forward pass over --context tokens")
    target("--cache-per-token", metavar="BYTES", help="bytes that one more token of a sequence adds to the cache")
    target("--within", metavar="PERCENT", default="1", help="how far off still counts as met (default 1)")
    fixed = made.add_argument_group("what is fixed").add_argument
    for name, says in _SIZES.items():
        fixed(f"--{name}", metavar="SIZES", help=says)
    fixed("--ratio", metavar="R", help="width of the MLP over that of the model, to the nearest multiple of 128")
    fixed("--aspect", metavar="A", help="width over layers, to the nearest layer")
    fixed("--vocabulary", metavar="V", default=str(VOCABULARY), help=f"tokens of it (default {VOCABULARY:,})")
    fixed("--tied", action="store_true", help="the head shares the embedding's table")
    fixed("--mlp", metavar="KIND", default="gated", help="gated (default) or plain")
    fixed("--context", metavar="C", default=str(CONTEXT), help=f"tokens of the forward pass (default {CONTEXT:,})")
    fixed("--cache", metavar="DTYPE", default="bf16", help="of keys and values (default bf16)")
    out = made.add_argument_group("output").add_argument
    out("--number", metavar="N", default="8", help="how many to propose (default 8)")
    out("--write", metavar="FOLDER", help="a .toml file for each")
    out("--json", action="store_true", help="one object of JSON, with the descriptions")
    out("--rule", action="store_true", help="say how unusual a shape is, and exit")
    return made


def _frame(args: Namespace) -> Frame:
    def sizes(name: str) -> Sequence[int]:
        text = getattr(args, name.replace("-", "_"))
        return () if text is None else values(text, f"--{name}")

    if args.mlp not in ("gated", "plain"):
        raise SettingError(f"--mlp is {shorten(args.mlp)!r}; known: gated, plain")
    return Frame(
        vocabulary=parse_size(args.vocabulary, "--vocabulary"),
        widths=sizes("width"),
        layers=sizes("layers"),
        heads=sizes("heads"),
        kv_heads=sizes("kv-heads"),
        head_widths=sizes("head-width"),
        ratio=None if args.ratio is None else _decimal(args.ratio, "--ratio", 0.1, 100),
        aspect=None if args.aspect is None else _decimal(args.aspect, "--aspect", 1, 100_000),
        gated=args.mlp == "gated",
        tied=args.tied,
        context=parse_size(args.context, "--context"),
        cache=dtype(args.cache, "--cache"),
    )


def _decimal(text: str, name: str, least: float, most: float) -> float:
    """A plain decimal number. Raises SettingError."""
    found = float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text.strip()) else None
    if found is None or not least <= found <= most:
        raise SettingError(f"{name} is {shorten(text)!r}; it must be a number from {least:g} to {most:g}")
    return found
