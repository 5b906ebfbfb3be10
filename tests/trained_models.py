"""Models whose training is summed by hand: the small one, and a large one of published figures."""

from __future__ import annotations

from drawn import LLAMA3_8B, draw, read

TRILLION = 10**12
LLAMA = read(LLAMA3_8B)
SMALL = draw(layers=2, d=32, heads=4, ff=48, vocab=100)
WEIGHTS = 2 * (4 * 32 * 32 + 3 * 32 * 48) + 32 * 100  # that products read: of two layers and the head


def small(n: int) -> int:
    """FLOPs of a sequence: six for each weight and token, three times two products of n x n x width in each layer."""
    return 6 * WEIGHTS * n + 3 * 2 * 2 * 2 * n * n * 32
