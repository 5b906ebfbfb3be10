"""The command: `assay MODEL` is the report; a first word may name another command (see `commands`).

Errors are one line on standard error, nothing on standard output, exit code 2.
"""

from __future__ import annotations

import gc
import os
import sys

from assay.commands import COMMANDS
from assay.errors import AssayError, SourceError

TYPE_CHECKING = False  # as in `assay` itself: all else is imported once nothing is collected any more
if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.commands.frame import Answer


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code: 0, 1 where a check finds a difference, 2 for what has no answer."""
    if argv is None:
        gc.disable()  # the process is over before collecting would pay
    try:
        made = _answer(list(sys.argv[1:] if argv is None else argv))
        text, code = (made, 0) if isinstance(made, str) else made
        return _write(text) or code
    except AssayError as error:
        return _fail(str(error))
    except RecursionError:
        return _fail("the input is nested too deeply")
    except KeyboardInterrupt:
        return 130


def _answer(words: list[str]) -> Answer:
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if words and words[0] in COMMANDS:
        return _command(words[0], words[1:])
    return _command("report", words)


def _command(name: str, words: list[str]) -> Answer:
    """The answer of a command, whose module is imported for it alone."""
    from importlib import import_module

    command = import_module(f"assay.commands.{name}")
    try:
        answer: Answer = command.run(words)
    except SourceError:  # of a file, whose keys are no options
        raise
    except AssayError as error:
        from assay.commands.frame import Parser
        from assay.report.meant import as_typed

        raise AssayError(as_typed(str(error), Parser.options())) from None
    return answer


def _fail(message: str) -> int:
    if sys.stderr is not None:
        from assay.report.units import shorten

        print(f"assay: {shorten(' '.join(message.split()), 2000)}", file=sys.stderr)
    return 2


def _write(text: str) -> int:
    """Print an answer. A reader that has gone away is no error."""
    if sys.stdout is None:
        return _fail("standard output is closed")
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal may lack · or ×
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(f"standard output cannot be written: {error.strerror}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
