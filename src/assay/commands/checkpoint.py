"""`assay checkpoint PATH`: what weight files hold, and how they differ from a model."""

from __future__ import annotations

import os

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.report import checkpoint as text
from assay.report.table import style_of_stdout
from assay.sources.checkpoints import read_checkpoint, speller
from assay.spec import Model

SAYS = "What weight files hold, by dtype and by part, from their headers alone; no weights are read."


def run(words: list[str]) -> Answer:
    """What weight files hold."""
    parser = Parser("assay checkpoint", "assay checkpoint PATH [options]", SAYS)
    parser.add_argument("path", metavar="PATH", help="a .safetensors or .gguf file, an index, or a folder of them")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)
    return held(args.path, args.json)


def held(path: str, json: bool) -> str:
    """What weight files hold."""
    from assay.sources.checkpoints.parts import totals

    read = read_checkpoint(os.path.expanduser(path))
    found = totals(read)
    return (
        as_json(text.document(version(), read, *found))
        if json
        else as_text(text.report(read, *found, style_of_stdout()))
    )


def compared(model: Model, path: str, json: bool) -> Answer:
    """How weight files differ from a model; the exit code is 1 if they do."""
    from assay.readings.check import check

    read = read_checkpoint(os.path.expanduser(path))
    found = check(model, {tensor.name: tensor.shape for tensor in read.tensors}, speller(read))
    code = 1 if found.differences else 0
    if json:
        return as_json(text.check_document(version(), model, read, found)), code
    return as_text(text.check_report(model, read, found, style_of_stdout())), code
