"""The command in tests: what it returns and prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit status, and what stands on either stream."""
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is printed where nothing is wrong, as a pipe sees it."""
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "\033" not in out, "colour in a pipe"
    return out


def page(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The same of what is laid out for a person."""
    out = answer(capsys, *words)
    assert all(len(line) <= 100 for line in out.splitlines()), "wider than 100 columns"
    assert all(line == line.rstrip() for line in out.splitlines()), "blanks at an end"
    return out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The object that --json prints."""
    made = json.loads(answer(capsys, *words, "--json"))
    assert isinstance(made, dict)
    return made


CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 512,
    "torch_dtype": "float16",
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-6,
    "bos_token_id": 1,
}
LAYER = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 96 + 2 * 64  # by hand: q and o, k and v, the MLP, two norms
TOTAL = 3 * LAYER + 2 * 100 * 64 + 64


def written(folder: Path) -> str:
    """The small config as a file."""
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)
