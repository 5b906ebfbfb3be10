"""A decoder that learns a text by heart: the aphorisms that Python ships, letter by letter.

python examples/recite.py
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import assay

if TYPE_CHECKING:
    from assay.execution.module import Executable

DESCRIPTION = """
name = "Reciter"
vocab = {letters}
width = 64
layers = 2
context = 128

[attention]
heads = 4
kv_heads = 2

[mlp]
width = 128
"""
SPAN = 96


def text() -> str:
    """The text, from the standard library."""
    with contextlib.redirect_stdout(io.StringIO()):
        return codecs.decode(importlib.import_module("this").s, "rot13")


TEXT = text()
ALPHABET = sorted(set(TEXT))
IDS = torch.tensor([ALPHABET.index(letter) for letter in TEXT])


def build(folder: Path, seed: int = 0) -> Executable:
    """The model, from its description: grouped queries, a gated MLP, rotary positions."""
    file = folder / "reciter.toml"
    file.write_text(DESCRIPTION.format(letters=len(ALPHABET)), encoding="utf-8")
    return assay.build(assay.load(file), seed=seed)


def batch(step: int, size: int = 16) -> assay.Batch:
    """Random stretches of the text, the same for the same step."""
    rng = torch.Generator().manual_seed(1_000_003 + step)
    starts = torch.randint(0, len(IDS) - SPAN, (size,), generator=rng)
    rows = starts[:, None] + torch.arange(SPAN + 1)
    letters = IDS[rows]
    return assay.Batch(letters[:, :-1], letters[:, 1:])


def recite(model: Executable, beginning: str, letters: int) -> str:
    """How the text goes on."""
    given = torch.tensor([[ALPHABET.index(letter) for letter in beginning]])
    return "".join(ALPHABET[token] for token in model.generate(given, letters)[0].tolist())


def main(steps: int = 400) -> None:
    """Train, and recite a line."""
    torch.set_num_threads(1)  # so small a model is fastest on one
    with tempfile.TemporaryDirectory() as folder:
        model = build(Path(folder))
        history = assay.learn(model, batch, steps, recipe=assay.Recipe(rate=4e-3))
        print(f"loss {history.losses[0]:.2f} -> {history.mean():.4f} in {steps} steps")
        print(recite(model, "Beautiful is ", 80))


if __name__ == "__main__":
    main()
