"""Keys of the same pass that nothing keeps, and the (query, key) pairs that a mask over them lets through.

Each query's own key is among them, or with `own` = 0 it is not.
"""

from __future__ import annotations

from assay.kinds.base import Extent, Keys, Pairs, expect, register, traded, triangle, view, with_own
from assay.kinds.state import window_pairs
from assay.size import Size, ceil_div, floor_div, maximum, minimum, only_at_zero
from assay.spec import Op

MASKS = ("causal", "last", "windows", "reach", "block", "random")  # one of these, but for random, which goes with block


def all_pairs(n: Size, own: int = 1) -> Size:
    """Pairs of n tokens that all see each other."""
    return n * (n - 1 + own)


def band_pairs(n: Size, reach: Size, own: int = 1) -> Size:
    """Pairs of n tokens no further than `reach` from each other, themselves included: n (2 r + 1) - r (r + 1).

    Written as a sum of what is counted, for arrays lose digits in a difference.
    """
    r = minimum(reach, n - 1)
    return own * n + r * (2 * n - r - 1)


def block_pairs(n: Size, block: Size, offset: Size, own: int = 1) -> Size:
    """Pairs of n tokens within the same block, the first of which has `offset` tokens where that is not 0."""
    first = minimum(n, offset)
    full = floor_div(n - first, block)
    rest = n - first - full * block
    return all_pairs(first, own) + full * all_pairs(block, own) + all_pairs(rest, own)


def random_pairs(n: Size, block: Size, random: Size, own: int = 1) -> Size:
    """Pairs that blocks see of each other (Zaheer et al. 2020): the first and the last block all, the others these
    two, their neighbours, themselves and `random` more. Up to 5 + 2 `random` blocks every token sees every token.
    """
    blocks = ceil_div(n, block)
    beyond = maximum(0, n - (5 + 2 * random) * block)
    rest = 2 * (4 + random) + (blocks - 4) * (5 + random)
    row = (block - 1) * (2 * blocks + rest) + (1 + own) * blocks + rest  # of one token of each block
    return only_at_zero(all_pairs(n, own), beyond, block * row + (1 - own) * (blocks * block - n))


def _check_keys(op: Op) -> None:
    traded(op)
    masks = [name for name in MASKS if op.attr(name) is not None]
    expect(op, len(masks) <= 1 or masks == ["block", "random"], f"one mask of {', '.join(MASKS[:-1])}")
    expect(op, op.attr("causal") in (None, True), "causal is True or left out")


def _bind_keys(op: Op, extent: Extent) -> None:
    """As many keys as tokens; of windows that nothing looks out of, no other keys are ever multiplied."""
    queries, keys = traded(op)
    tokens = extent.sizes[queries]
    windows = op.attr("windows")
    at_hand = tokens if windows is None else minimum(extent.value(windows), tokens)
    extent.sizes[keys] = at_hand
    pairs = _pairs(op, extent, tokens) if windows is None else Pairs(tokens * at_hand, tokens * (at_hand - 1))
    extent.keys[keys] = Keys(queries, pairs, Pairs(tokens, 0))  # a token alone in its pass has its own key at hand


def _pairs(op: Op, extent: Extent, tokens: Size) -> Pairs:
    """What the mask lets through of all pairs of tokens."""
    last, reach, block, random = (op.attr(name) for name in ("last", "reach", "block", "random"))
    if op.attr("causal"):
        return Pairs(triangle(tokens), triangle(tokens - 1))
    if last is not None:
        return with_own(window_pairs, tokens, 0, extent.value(last))
    if reach is not None:
        return with_own(band_pairs, tokens, extent.value(reach))
    if random is not None:
        return with_own(random_pairs, tokens, extent.value(block), extent.value(random))
    if block is not None:
        return with_own(block_pairs, tokens, extent.value(block), extent.value(op.attr("offset", 0)))
    return with_own(all_pairs, tokens)


register(
    view(
        "keys",
        "the same tokens as keys, seen by all, by those behind, soon behind or near, or in the same block or window",
        _check_keys,
        bind=_bind_keys,
        attrs=(*MASKS, "offset", "coarse"),
    ),
)
