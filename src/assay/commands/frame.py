"""What every command is made of: its parser and the text of its answer."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any, ClassVar, NoReturn

from assay.commands import COMMANDS
from assay.errors import SettingError
from assay.report.units import shorten

Answer = str | tuple[str, int]  # what to print, and an exit code other than 0


class Parser(ArgumentParser):
    """One line for a mistake; options in full only. The last that was made is the command's."""

    last: ClassVar[Parser | None] = None

    def __init__(self, prog: str, usage: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog,
            usage=usage,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=_Formatter,
            add_help=False,
        )
        self.add_argument("-h", "--help", action="help", help="show this and exit")
        Parser.last = self

    @staticmethod
    def options() -> list[str]:
        """The options of the command that runs."""
        made = Parser.last
        return [] if made is None else [option for action in made._actions for option in action.option_strings]

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments; `--batch=--`, of which argparse makes an empty list, is a mistake."""
        for word in args or ():
            name, _, value = word.partition("=")
            if value == "--" and name.startswith("--"):
                self.error(f"argument {name}: expected one argument")
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """A mistake in the command line, as any other."""
        from assay.report.meant import hint

        said, colon, words = message.partition("unrecognized arguments: ")
        options = (option for action in self._actions for option in action.option_strings)
        meant = hint(words, options, COMMANDS if self.prog == "assay" else ()) if colon and not said else ";"
        raise SettingError(f"{shorten(message, 200)}{meant} see {self.prog} --help")


class _Formatter(RawDescriptionHelpFormatter):
    """Text as written, options in a column of 26."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=100)


def as_json(document: dict[str, Any]) -> str:
    """One object of JSON."""
    import json

    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_text(lines: list[str]) -> str:
    """Lines, each ended."""
    return "\n".join(lines) + "\n"


def version() -> str:
    """The version of the package."""
    import assay

    return str(assay.__version__)
