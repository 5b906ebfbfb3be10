"""Keys of the same pass that nothing keeps, and the (query, key) pairs that a mask over them lets through."""

from __future__ import annotations

from assay.kinds.base import Extent, Keys, expect, register, traded, triangle, view
from assay.size import Size, ceil_div, floor_div, maximum, minimum, only_at_zero
from assay.spec import Op

MASKS = ("causal", "windows", "reach", "block", "random")  # one of these, but for random, which goes with block


def band_pairs(n: Size, reach: Size) -> Size:
    """Pairs of n tokens no further than `reach` from each other, themselves included: n (2 r + 1) - r (r + 1).

    Written as a sum of what is counted, for arrays lose digits in a difference.
    """
    r = minimum(reach, n - 1)
    return n + r * (2 * n - r - 1)


def block_pairs(n: Size, block: Size, offset: Size) -> Size:
    """Pairs of n tokens within the same block, the first of which has `offset` tokens where that is not 0."""
    first = minimum(n, offset)
    full = floor_div(n - first, block)
    rest = n - first - full * block
    return first * first + full * block * block + rest * rest


def random_pairs(n: Size, block: Size, random: Size) -> Size:
    """Pairs that blocks see of each other (Zaheer et al. 2020): the first and the last block all, the others these
    two, their neighbours, themselves and `random` more. Up to 5 + 2 `random` blocks every token sees every token.
    """
    blocks = ceil_div(n, block)
    beyond = maximum(0, n - (5 + 2 * random) * block)
    sparse = block * block * (2 * blocks + 2 * (4 + random) + (blocks - 4) * (5 + random))
    return only_at_zero(n * n, beyond) + sparse - only_at_zero(sparse, beyond)


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
    pairs = tokens * at_hand if windows is not None else _pairs(op, extent, tokens)
    extent.keys[keys] = Keys(queries, pairs, tokens)  # a token alone in its pass has its own key at hand


def _pairs(op: Op, extent: Extent, tokens: Size) -> Size:
    """What the mask lets through of all pairs of tokens."""
    reach, block, random = op.attr("reach"), op.attr("block"), op.attr("random")
    if op.attr("causal"):
        return triangle(tokens)
    if reach is not None:
        return band_pairs(tokens, extent.value(reach))
    if random is not None:
        return random_pairs(tokens, extent.value(block), extent.value(random))
    if block is not None:
        return block_pairs(tokens, extent.value(block), extent.value(op.attr("offset", 0)))
    return tokens * tokens


register(
    view(
        "keys",
        "the same tokens as keys, seen by every query, or by those behind, near, or in the same block or window",
        _check_keys,
        bind=_bind_keys,
        attrs=(*MASKS, "offset"),
    ),
)
