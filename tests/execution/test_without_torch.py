"""Where PyTorch is not installed: the library is there all the same, and what needs it says so in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
WITHOUT = """
import sys
sys.modules["torch"] = None  # as if it were not installed: importing it raises ImportError
import assay
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run some lines in an interpreter that finds no PyTorch."""
    command = [sys.executable, "-c", WITHOUT + code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SRC)})


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ('assay.build(assay.load("gpt-2"))', "running a model needs PyTorch"),
        ("assay.learn(None, None, 1)", "running a model needs PyTorch"),
        ("assay.measure(print)", "measuring runs PyTorch"),
    ],
)
def test_one_line_says_how_to_install_it(code: str, says: str) -> None:
    done = run(f"try:\n    {code}\nexcept assay.AssayError as error:\n    print(error)")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert says in line
    assert "not installed: pip install torch" in line


def test_every_public_name_is_there() -> None:
    done = run("for name in assay.__all__:\n    getattr(assay, name)\nfrom assay import *\nprint(len(assay.__all__))")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30


def test_the_command_verify_says_so() -> None:
    done = run('from assay.cli import main\nsys.exit(main(["verify", "gpt-2"]))')
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "pip install torch safetensors" in done.stderr
