"""Fusion: scores, their scale and mask, softmax and the sum of values as one op, where one kernel does it all."""

from __future__ import annotations

from assay.kinds.fused import attention
from assay.records import replace
from assay.spec import Block, Model, Op


def fuse(model: Model) -> Model:
    """The same model, each attention that one kernel can run as one `attend`."""
    segments = tuple(
        replace(
            segment,
            block=fuse_block(segment.block),
            absorbed=None if segment.absorbed is None else fuse_block(segment.absorbed),
        )
        for segment in model.segments
    )
    return replace(model, segments=segments)


def fuse_block(block: Block) -> Block:
    """The same of a block."""
    made: list[Op] = []
    at = 0
    while at < len(block.ops):
        end = attention(block.ops, at)
        if end is None:
            made.append(block.ops[at])
            at += 1
        else:
            made.append(_attend(block.ops[at:end]))
            at = end
    return block if len(made) == len(block.ops) else replace(block, ops=tuple(made))


def _attend(ops: tuple[Op, ...]) -> Op:
    scores, last = ops[0], ops[-1]
    inputs = (*scores.inputs, last.inputs[1])
    return Op(last.name, "attend", inputs, last.axes, (("of", tuple(map(str, ops))),), last.part)
