"""A block that nobody has drawn yet, from its text in the notation."""

from __future__ import annotations

from assay.errors import NotationError
from assay.kinds import check
from assay.size import Size, lift
from assay.spec import Block, parse_lines


def block(text: str, name: str = "block", **sizes: Size) -> Block:
    """A block from lines of the notation; every op must be of a known kind, with axes that fit.

    `sizes` are ints, arrays or symbols for axes; those of a setting (b batch, n tokens, c keys at hand) may stay
    open, and so may others until the block is counted. Raises NotationError, KindError and SizeError.

        block("q = linear(x[b n d], Wq[d h k]) -> [b n h k]", d=4096, h=32, k=128)
    """
    if not isinstance(text, str):
        raise NotationError(f"a {type(text).__name__} is no block; it is text, one op a line")
    ops = parse_lines(text)
    check(ops)
    return Block(name, ops, {axis: lift(size, axis) for axis, size in sizes.items()})
