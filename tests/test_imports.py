"""What an import costs: nothing heavy is loaded before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "sympy", "matplotlib", "rich", "transformers", "huggingface_hub", "click", "hypothesis")
PRINT = "import sys; print(*[name for name in sys.argv[1].split() if name in sys.modules])"


def loaded(statement: str, watched: tuple[str, ...] = HEAVY) -> list[str]:
    """Which of the watched modules a fresh interpreter holds after a statement."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{PRINT}", " ".join(watched)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    "statement",
    [
        "import assay",
        "from assay import *",
        "import assay; assay.count(assay.load('llama-3-8b'))",
        "import assay; assay.load({'model_type': 'gpt2'})",
        "import assay; assay.measure, assay.Measurement",
        "import assay; assay.mfu(assay.load('gpt-2'), tokens_per_second=1, peak_flops=1e9, context=512)",
        "import assay; assay.tensors(assay.block('y = linear(x[b n d], W[d f]) -> [b n f]', d=2, f=3))",
    ],
)
def test_nothing_heavy_is_loaded(statement: str) -> None:
    assert loaded(statement) == []


def test_the_import_alone_loads_next_to_nothing() -> None:
    watched = (
        "collections",
        "dataclasses",
        "inspect",
        "typing",
        "re",
        "json",
        "tomllib",
        "assay.spec",
        "assay.sources",
        "assay.errors",
    )
    bare = loaded("pass", watched)
    assert set(loaded("import assay", watched)) - set(bare) == {"assay.errors"}


def test_a_command_loads_nothing_before_it_runs() -> None:
    """Garbage is collected no more once it does: all that is loaded by then is collected for nothing."""
    watched = ("argparse", "typing", "re", "collections", "assay.commands.frame", "assay.report", "assay.size")
    assert set(loaded("from assay.cli import main", watched)) <= set(loaded("pass", watched))


def test_the_network_is_not_prepared_for_a_file_or_preset() -> None:
    watched = ("urllib.request", "http.client", "ssl", "socket", "threading", "difflib")
    assert loaded("import assay; assay.load('llama-3-8b'); assay.load({'model_type': 'llama'})", watched) == []


def test_a_plain_decoder_loads_no_block_that_it_has_not() -> None:
    watched = tuple(f"assay.blocks.{name}" for name in ("moe", "latent", "recurrent", "delta", "towers", "encoders"))
    run = "from assay.cli import main; main(['{model}', '--json'])"
    assert loaded(run.format(model="llama-3-8b"), watched) == []
    assert loaded(run.format(model="mixtral-8x7b"), watched) == ["assay.blocks.moe"]


def test_a_heavy_import_is_seen() -> None:
    pytest.importorskip("numpy")
    assert loaded("import numpy") == ["numpy"]
