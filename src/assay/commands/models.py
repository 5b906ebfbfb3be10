"""`assay models`: the presets."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.readings.count import count
from assay.report import presets as text
from assay.report.table import style_of_stdout
from assay.sources.presets import find, read_preset

SAYS = "The presets, with their main sizes; each is a description with its source."


def run(words: list[str]) -> Answer:
    """The presets, with their main sizes."""
    parser = Parser("assay models", "assay models [WORD ...] [options]", SAYS)
    told = "only those that have each word in their name or family, or are of this kind: decoder, encoder, "
    parser.add_argument("words", metavar="WORD", nargs="*", help=f"{told}encoder-decoder, vision")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)

    found = [(name, read_preset(name)) for name in find(args.words)]
    listed = [(name, model, count(model, tokens=1)) for name, model in found]
    if args.json:
        return as_json(text.document(version(), listed))
    return as_text(text.report(listed, style_of_stdout()))
