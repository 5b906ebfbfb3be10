"""The command's manners: mistakes in one line, help, other streams, a terminal, what it loads."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from commandline import CONFIG, TOTAL, document, page, run, written

from assay.cli import main
from assay.commands import COMMANDS
from assay.readings.optimizers import optimizer
from assay.readings.precision import precision
from assay.report.meant import COMMANDS_OF, ELSEWHERE


@pytest.fixture
def config(tmp_path: Path) -> str:
    return written(tmp_path)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--tokens", "0"], "--tokens is 0; it must be an integer of at least 1"),
        (["--tokens", "-5"], "--tokens is '-5'; it must be an integer of at least 1"),
        (["--tokens", "1.5"], "--tokens is 1.5; it must be an integer of at least 1"),
        (["--tokens", "1e3"], "--tokens is '1e3'; it must be an integer of at least 1"),
        (["--tokens", "٣"], "--tokens is '٣'; it must be an integer of at least 1"),
        (["--tokens", ""], "--tokens is ''; it must be an integer of at least 1"),
        (["--tokens", "9" * 40], "must be an integer of at most 10^30"),
        (["--tokens", "9" * 5000], "--tokens is '99999"),
        (["--batch", "0"], "--batch is 0; it must be an integer of at least 1"),
        (["--past", "-1"], "--past is '-1'; it must be an integer of at least 0"),
        (["--past", "1", "--context", "5"], "--past and --context cannot both be given"),
        (["--tokens", "9", "--context", "5"], "context is 5; it counts past and present, so at least the 9 tokens"),
        (["--logits", "some"], "logits is 'some'; known: all, last"),
        (["--weights", "fp5"], "weights is 'fp5'; known: fp64, fp32, bf16"),
        (["--cache", "x"], "cache is 'x'; known: fp64"),
        (["--state", "x"], "state is 'x'; known: fp64"),
        (["--convention", "x"], "convention is 'x'; known: matmul, causal, scalar, stable-softmax"),
        (["--latent", "x"], "latent is 'x'; known: expanded, absorbed"),
        (["--generate", "0"], "--generate is 0; it must be an integer of at least 1"),
        (["--source", "4"], "has no encoder to give it to"),
        (["--images", "4"], "has no tower to see them"),
        (["--what"], "unrecognized arguments: --what; see assay --help"),
        (["--token", "4"], "unrecognized arguments: --token 4; did you mean --tokens? see assay --help"),
        (["--seq_len=4"], "unrecognized arguments: --seq_len=4; did you mean --tokens? see assay --help"),
        (["--dtype", "int8"], "unrecognized arguments: --dtype int8; did you mean --weights? see assay --help"),
        (["--gpu", "h100"], "arguments: --gpu h100; --gpu is an option of assay fit and assay train; see assay --help"),
        (["--plot=a.svg"], "--plot is an option of assay sweep; see assay --help"),
        (["--batch"], "argument --batch: expected one argument; see assay --help"),
        (["--batch=--"], "argument --batch: expected one argument; see assay --help"),
        (["--allow=--"], "argument --allow: expected one argument; see assay --help"),
        (["more"], f"unrecognized arguments: more; a command ({', '.join(COMMANDS)}) comes first,"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], config: str, words: list[str], line: str) -> None:
    code, out, err = run(capsys, config, *words)
    assert (code, out) == (2, "")
    assert line in err
    assert err.startswith("assay: ")
    assert err.count("\n") == 1
    assert len(err) < 400


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "MODEL is missing"),
        (["--json"], "MODEL is missing"),
        (["ops"], "see assay ops --help"),
        (["tensors"], "see assay tensors --help"),
        (["models", "-x"], "unrecognized arguments: -x; see assay models --help"),
        (["families", "zzz", "llama"], "no model_type has 'zzz' and 'llama' in its name"),
        (["models", "qwen", "mamba-128m"], "no preset has 'qwen' and 'mamba-128m' in its name, family or kind"),
        (["models", "mamba-128m"], "family or kind; did you mean mamba-"),
        (["no-such-model"], "no-such-model"),
        (["a\nb\033[1m"], "a"),
        (["ops", "attention", "--tokens", "0"], "--tokens is 0; it must be an integer of at least 1"),
        (["ops", "attention", "--v-width", "-2"], "--v-width is '-2'; it must be an integer of at least 1"),
        (["gpt-2", "--tokens", "1025"], "--past + --tokens is 1025; GPT-2 has a learned position table of 1024 rows"),
        (["gpt-2", "--tokens", "1000", "--generate", "25"], "--past + --tokens + --generate is 0 + 1000 + 25 = 1025"),
    ],
)
def test_a_mistake_elsewhere_is_one_line_too(capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1
    assert "\033" not in err


def test_standard_input_is_a_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(CONFIG).encode())))
    assert document(capsys, "-")["parameters"]["total"] == TOTAL


def test_a_folder_named_like_a_command_is_a_path(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)
    assert document(capsys, "./ops")["parameters"]["total"] == TOTAL


@pytest.mark.parametrize("words", [[], ["ops"], ["ops", "attention"], ["tensors"], ["models"]])
def test_help_is_complete(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*words, "--help"])
    out = capsys.readouterr().out
    assert "usage: assay" in out
    assert "--json" in out
    assert all(len(line) <= 100 for line in out.splitlines())


@pytest.mark.parametrize("words", [[], ["ops"], ["models"]])
def test_help_as_a_word(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    said = []
    for asked in (["help", *words], [*words, "--help"]):
        with pytest.raises(SystemExit, match=r"^0$"):
            main(asked)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_other_tools_options_name_one_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    options = {line.split()[0] for line in lines if line.startswith("  -")}
    assert set(ELSEWHERE.values()) <= options
    assert not (set(ELSEWHERE) | set(COMMANDS_OF)) & options


@pytest.mark.parametrize("command", sorted({one for commands in COMMANDS_OF.values() for one in commands}))
def test_options_of_other_commands_are_theirs(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main([command, "--help"])
    listed = capsys.readouterr().out.split()
    assert {option for option, commands in COMMANDS_OF.items() if command in commands} <= set(listed)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--version"])
    assert capsys.readouterr().out == f"assay {document(capsys, 'gpt-2')['assay']}\n"


def command(*words: str, **given: Any) -> subprocess.Popen[bytes]:
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-m", "assay.cli", *words], env=path, stderr=subprocess.PIPE, **given)


def test_a_reader_that_went_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    process = command("models", stdout=write)
    os.close(write)
    assert process.communicate()[1] == b""
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        process = command("gpt-2", stdout=full)
        _, err = process.communicate()
    assert process.returncode == 2
    assert err == b"assay: standard output cannot be written: No space left on device\n"


def test_colour_only_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = page(capsys, "gpt-2")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = run(capsys, "gpt-2")[1]
    assert "\033[1m" in shown
    assert shown.replace("\033[1m", "").replace("\033[2m", "").replace("\033[0m", "") == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert page(capsys, "gpt-2") == plain


HEAVY = """
import sys
from assay.cli import main
main(["gpt-2", "--tokens", "9", "--generate", "9"])
main(["ops", "gpt-2"])
main(["tensors", "gpt-2", "--json"])
print(*{"sympy", "numpy", "torch", "matplotlib", "rich"} & set(sys.modules), file=sys.stderr)
"""


def test_the_command_loads_nothing_heavy() -> None:
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", HEAVY], env=path, capture_output=True, check=True)
    assert done.stderr == b"\n"


def test_unused_keys_are_sorted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is known to be harmless apart from what was let through; without --allow the latter stops the run."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gpt2", "use_cache": True, "flavour": "x"}))
    assert main([str(path)]) == 2
    assert "flavour is 'x': not known for gpt2" in capsys.readouterr().err
    assert main([str(path), "--allow", "flavour"]) == 0
    notes = capsys.readouterr().out.partition("Notes")[2]
    assert "flavour is 'x': let through, and not in the figures" in notes
    assert "config keys that change no figure: use_cache\n" in notes
    assert main([str(path), "--allow", "flavour", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["model"]
    assert (made["ignored_keys"], made["allowed_keys"]) == (["use_cache", "flavour"], ["flavour"])


@pytest.mark.parametrize("command", ["memory", "train", "fit"])
@pytest.mark.parametrize(("option", "known"), [("--optimizer", optimizer), ("--precision", precision)])
def test_names_in_a_help_are_known(command: str, option: str, known: Callable[[str], object]) -> None:
    parser = import_module(f"assay.commands.{command}")._parser()
    told = [action.help for action in parser._actions if option in action.option_strings]
    words = [word.split()[0] for text in told for word in text.split(", ") if word != "…"]
    assert len(words) > 3 or (command, option) == ("train", "--precision")  # which has none
    for word in words:
        known(word)
