"""Runs the examples of a document: ```console blocks in a shell, ```python blocks here; all in one folder.

What stands between `<!-- NAME: written by `make docs` -->` and `<!-- end -->` is generated.
A fence with a title (```toml title="mine.toml") is a file that the examples below it may read. `...` in an
expected output stands for anything. ```sh blocks are what a reader types to install: looked at, not run.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from errata import errata
from holdings import optimizers_table, precisions_table
from measurements import inference_table, training_table
from pages import differences, held, published, python_reference, reports

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r'^```(?P<lang>\w*)(?: title="(?P<title>[\w.-]+)")?\n(?P<code>.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A fenced block and the line it begins at."""

    lang: str
    title: str | None
    code: str
    line: int


def examples(text: str) -> list[Example]:
    """The fenced blocks of a document, in order."""
    return [Example(m["lang"], m["title"], m["code"], text[: m.start()].count("\n") + 1) for m in _FENCE.finditer(text)]


def recipe(target: str) -> str:
    """What a target of the Makefile runs, without the environment's path."""
    found = re.search(rf"^{target}:.*\n\t@?(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"the Makefile has no target {target}"
    return found[1].replace("$(BIN)/", "")


def steps(code: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that stands below it."""
    for piece in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, expected = piece.partition("\n")
        while expected.startswith("> "):  # a shell's sign that the command goes on
            more, _, expected = expected.partition("\n")
            command = f"{command}\n{more.removeprefix('> ')}"
        yield command, expected.rstrip()


def matches(expected: str, got: str) -> bool:
    """True where the output is as written, `...` for anything."""
    pattern = ".*".join(re.escape(piece) for piece in _strip(expected).split("..."))
    return re.fullmatch(pattern, _strip(got), re.DOTALL) is not None


def _strip(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def run_document(text: str, folder: Path) -> list[str]:
    """Run a document's examples in a folder; every mismatch, with its line and both outputs."""
    terminal = Terminal(folder)
    names: dict[str, Any] = {}
    wrong: list[str] = []
    for example in examples(text):
        if example.title is not None:
            (folder / example.title).write_text(example.code, encoding="utf-8")
        elif example.lang == "console":
            wrong += _run_console(example, terminal)
        elif example.lang == "python":
            with chdir(folder):
                wrong += _run_python(example, names)
    return wrong


PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1"}


def _environment(folder: Path) -> dict[str, str]:
    """The environment of the examples: this tree's `assay`, a plain terminal of 100 columns, no network."""
    tools = folder / ".bin"
    tools.mkdir()
    command = tools / "assay"
    start = "import sys; from assay.cli import main; sys.exit(main())"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{start}' \"$@\"\n")
    command.chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **PLAIN, "PYTHONPATH": str(ROOT / "src"), "PATH": path}


def shell(command: str, folder: Path, environment: dict[str, str] | None = None, given: str = "") -> str:
    """What a command prints, on both of its streams, in a folder; it may be given what to read."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment or _environment(folder),
        text=True,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout


# a command alone, or the first of a pipeline: nothing that a shell would look at
_PLAIN = re.compile(r"""assay (?P<words>(?:[^|'"$`;&<>*?~()]|'[^']*'|"[^"$`]*")+)(?:\|(?P<rest>.*))?""", re.DOTALL)


class Terminal:
    """Where a document's commands are typed.

    The first of each command has a process of its own, as a reader's has; others run in this one, which has loaded
    what they load. What they print goes through the rest of the line in a shell all the same.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = _environment(folder)
        self.seen: set[str] = set()

    def run(self, line: str) -> str:
        """What a line prints."""
        from assay.commands import COMMANDS

        found = _PLAIN.fullmatch(line.replace("\\\n", " "))
        words = shlex.split(found["words"]) if found else []
        name = words[0] if words and words[0] in COMMANDS else "report"
        if found is None or name not in self.seen:
            self.seen.add(name)
            return shell(line, self.folder, self.environment)
        out, err = here(words, self.folder, piped=found["rest"] is not None)
        return out if found["rest"] is None else err + shell(found["rest"], self.folder, self.environment, out)


def here(words: list[str], folder: Path, *, piped: bool = False) -> tuple[str, str]:
    """What `assay` prints in this process: on one stream, or apart where the first one goes on in a pipe."""
    from assay.cli import main

    out, err = io.StringIO(), io.StringIO()
    streams = redirect_stdout(out), redirect_stderr(err if piped else out)
    with chdir(folder), mock.patch.dict(os.environ, PLAIN), streams[0], streams[1], suppress(SystemExit):
        main(words)
    return out.getvalue(), err.getvalue()


def _run_console(example: Example, terminal: Terminal) -> list[str]:
    wrong = []
    for command, expected in steps(example.code):
        got = terminal.run(recipe(command.removeprefix("make ")) if command.startswith("make ") else command)
        if not matches(expected, got):
            wrong.append(f"line {example.line}: $ {command}\nexpected:\n{expected}\ngot:\n{got}")
    return wrong


_DRAWN = re.compile(r"^assay (?:sweep .*--plot|draw .*--out) (?P<name>[\w.-]+\.svg)$", re.DOTALL)
PICTURES = ROOT / "docs" / "pictures"


def pictures(text: str) -> dict[str, str]:
    """The pictures that a document's examples draw: their names and the commands that draw them."""
    commands = [command for one in examples(text) if one.lang == "console" for command, _ in steps(one.code)]
    return {found["name"]: command for command in commands if (found := _DRAWN.match(command))}


def provenance(picture: Path) -> str:
    """What a picture says of the figures that it shows; a diagram is compared as a whole."""
    text = picture.read_text(encoding="utf-8")
    if 'class="assay-diagram"' in text:
        return text
    found = re.search(r"rows sha256 [0-9a-f]{64}", text)
    assert found, f"{picture.name} does not say which figures it shows"
    return found[0]


def draw_pictures(text: str) -> None:
    """Draw a document's pictures anew."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environment = _environment(folder)
        for name, command in pictures(text).items():
            said = shell(command, folder, environment)
            assert (folder / name).exists(), said
            PICTURES.mkdir(exist_ok=True)
            (PICTURES / name).write_bytes((folder / name).read_bytes())


def _run_python(example: Example, names: dict[str, Any]) -> list[str]:
    code = example.code
    if ">>>" not in code:
        exec(compile(code, f"<line {example.line}>", "exec"), names)
        return []
    test = doctest.DocTestParser().get_doctest(code, names, "document", None, example.line)
    wrong: list[str] = []
    # the names of one block are there in the next
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=wrong.append, clear_globs=False)
    names.update(test.globs)
    return wrong


def kinds_table() -> str:
    """Every kind of op and what it computes."""
    from assay.kinds import KINDS

    rows = [f"| `{kind.name}` | {kind.says} |" for kind in sorted(KINDS.values(), key=lambda kind: kind.name)]
    return "\n".join(["| kind | what it computes |", "|---|---|", *rows])


def helps() -> str:
    """What each command says of itself."""
    from assay.commands import COMMANDS

    commands = ["assay", *(f"assay {name}" for name in COMMANDS)]
    with tempfile.TemporaryDirectory() as folder:
        said = {command: here([*command.split()[1:], "--help"], Path(folder))[0] for command in commands}
    return "\n\n".join(f"## {command}\n\n```console\n$ {command} --help\n{text}```" for command, text in said.items())


def families_table() -> str:
    """What is read and what is refused."""
    from assay.report.families import markdown
    from assay.sources.support import refused, supported

    return markdown(supported(), refused())


def chips_table() -> str:
    """Every chip of the catalogue, and where its figures are from."""
    from assay.hardware import chips
    from assay.report.hardware import markdown

    return markdown(chips())


def sample_diff() -> str:
    """A family as it stands in its module, and its line of the index: what adding it takes."""
    from assay.sources.families import MODULES

    family = (ROOT / "src/assay/sources/families" / f"{SHOWN}.py").read_text(encoding="utf-8")
    index = f'    "{SHOWN}": "{MODULES[SHOWN]}",'
    assert index in (ROOT / "src/assay/sources/families/__init__.py").read_text(encoding="utf-8")
    new = family.splitlines()
    added = "\n".join(f"+{line}" for line in new)
    return (
        f"```diff\n--- src/assay/sources/families/__init__.py\n+{index}\n"
        f"--- src/assay/sources/families/{SHOWN}.py, new\n{added}\n```"
    )


SHOWN = "nemotron"
GENERATED: dict[str, Callable[[], str | None]] = {
    "kinds": kinds_table,
    "help": helps,
    "families": families_table,
    "chips": chips_table,
    "optimizers": optimizers_table,
    "precisions": precisions_table,
    "family": sample_diff,
    "python": python_reference,
    "held": held,
    "differences": differences,
    "published": published,
    "reports": reports,
    "errata": errata,
    "steps": training_table,
    "passes": inference_table,
}
_MARKED = re.compile(r"(<!-- (?P<name>\w+): written by `make docs` -->\n).*?(<!-- end -->)", re.DOTALL)


def regenerated(text: str) -> str:
    """A document with its generated parts written anew, but for those that cannot be made here."""

    def anew(found: re.Match[str]) -> str:
        made = GENERATED[found["name"]]()
        return found[0] if made is None else f"{found[1]}\n{made}\n\n{found[3]}"

    return _MARKED.sub(anew, text)


Witnesses = dict[str, dict[str, list[str]]]  # tests by figure by model_type
WITNESSES, RUNS = (ROOT / f"src/assay/sources/{name}.json" for name in ("witnesses", "runs"))


def gathered() -> str:
    """The tests of each family and figure, as the tests' tables have them.

    What recorded figures hold is known where they are at hand alone; elsewhere it stays as it is written.
    """
    import json

    from samples import RECORDED, witnesses

    made = witnesses()
    if not any(RECORDED in tests for figures in made.values() for tests in figures.values()):
        made = with_written(made, json.loads(WITNESSES.read_text(encoding="utf-8")), RECORDED)
    return json.dumps(made, indent=1) + "\n"


def unrun_types() -> str:
    """Which types do not run, and why."""
    import json

    from samples import unrun

    return json.dumps(unrun(), indent=1) + "\n"


def with_written(made: Witnesses, written: Witnesses, test: str) -> Witnesses:
    """What was gathered, and of what was written before all that one test holds."""
    held = {name: dict(figures) for name, figures in made.items()}
    for name, figures in written.items():
        for figure, tests in figures.items():
            if test in tests:
                of = held.setdefault(name, {})
                of[figure] = sorted({*of.get(figure, ()), test})
    return {name: dict(sorted(figures.items())) for name, figures in sorted(held.items())}


if __name__ == "__main__":
    WITNESSES.write_text(gathered(), encoding="utf-8")
    RUNS.write_text(unrun_types(), encoding="utf-8")
    for document in [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]:
        old = document.read_text(encoding="utf-8")
        document.write_text(regenerated(old), encoding="utf-8")
        draw_pictures(old)
