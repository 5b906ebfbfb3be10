"""`assay families`: what is read and what is refused."""

from __future__ import annotations

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.errors import SettingError
from assay.report import families as text
from assay.report.table import style_of_stdout
from assay.sources.support import refused, supported

SAYS = "Every model_type that is read, what is exact and which tests check it; and what is refused by name."


def run(words: list[str]) -> Answer:
    """What is read and what is refused."""
    parser = Parser("assay families", "assay families [WORD ...] [options]", SAYS)
    parser.add_argument("words", metavar="WORD", nargs="*", help="only types that have each word in their name")
    parser.add_argument("--json", action="store_true", help="one object of JSON")
    args = parser.parse_args(words)

    def named(model_type: str) -> bool:
        return all(word in model_type for word in args.words)

    read = [one for one in supported() if named(one.model_type)]
    left = [one for one in refused() if named(one.model_type)]
    if not read and not left:
        raise SettingError(f"no model_type has {' and '.join(map(repr, args.words))} in its name")
    if args.json:
        return as_json(text.document(version(), read, left))
    return as_text(text.report(read, left, style_of_stdout()))
