"""An encoder-decoder that learns to translate a made-up language: words spelled backwards, letters changed by a code.

    python examples/reverse.py

The transformer of the articles, encoder and decoder with norms before their blocks, at a size that learns in a minute
on a laptop. Targets are shifted right: at each position the decoder sees the source and the letters before.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import assay
from assay.execution.learn import IGNORED

if TYPE_CHECKING:
    from assay.execution.module import Executable

DESCRIPTION = """
name = "Translator"
kind = "encoder-decoder"
vocab = 29
width = 64
layers = 2
tied = true
norm = "layernorm"
positions = "learned"
context = 16
residual = "pre"

[attention]
heads = 4

[mlp]
width = 128
gated = false
activation = "relu"
bias = true
"""
PAD, START, END, LETTERS, LONGEST = 0, 1, 2, 26, 8
CODE = torch.randperm(LETTERS, generator=torch.Generator().manual_seed(7))  # a letter for each letter


def build(folder: Path, seed: int = 0) -> Executable:
    """The model, from its description."""
    file = folder / "translator.toml"
    file.write_text(DESCRIPTION, encoding="utf-8")
    return assay.build(assay.load(file), seed=seed)


def batch(step: int, size: int = 64) -> assay.Batch:
    """Random words of one to eight letters and their translations, the same for the same step."""
    rng = torch.Generator().manual_seed(1_000_003 + step)
    letters = torch.randint(0, LETTERS, (size, LONGEST), generator=rng)
    lengths = torch.randint(1, LONGEST + 1, (size,), generator=rng)
    there = torch.arange(LONGEST) < lengths[:, None]
    source = torch.where(there, letters + 3, PAD)
    targets = torch.full((size, LONGEST + 1), IGNORED)
    for row, n in enumerate(lengths.tolist()):
        targets[row, :n] = CODE[letters[row, :n].flip(0)] + 3
        targets[row, n] = END
    tokens = assay.shifted(torch.where(targets == IGNORED, PAD, targets), START)
    return assay.Batch(tokens, targets, source, source_mask=there)


def translate(model: Executable, word: str) -> str:
    """A word in the other language."""
    source = torch.tensor([[ord(letter) - ord("a") + 3 for letter in word]])
    text = model.generate(torch.tensor([[START]]), LONGEST + 1, source, stop=END)[0, 1:].tolist()
    return "".join(chr(token - 3 + ord("a")) for token in text if token > END)


def expected(word: str) -> str:
    """What it should be."""
    return "".join(chr(int(CODE[ord(letter) - ord("a")]) + ord("a")) for letter in reversed(word))


def main(steps: int = 500) -> None:
    """Train, and translate a few words."""
    torch.set_num_threads(1)  # so small a model is fastest on one
    with tempfile.TemporaryDirectory() as folder:
        model = build(Path(folder))
        history = assay.learn(model, batch, steps, recipe=assay.Recipe(rate=3e-3, warmup=50))
        print(f"loss {history.losses[0]:.2f} -> {history.mean():.4f} in {steps} steps")
        for word in ("assay", "gold", "x", "tensor"):
            said = translate(model, word)
            print(f"{word:>8} -> {said:<8} {'right' if said == expected(word) else 'wrong'}")


if __name__ == "__main__":
    main()
