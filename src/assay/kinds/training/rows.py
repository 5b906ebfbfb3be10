"""The columns of training: a rule a kind for what autograd keeps, one for the work of the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.errors import KindError
from assay.kinds.base import Extent, Work, kind_of
from assay.kinds.training.values import Value
from assay.registry import entered
from assay.spec import Op

Saves = Callable[..., Value]  # (passing, *activations) -> result
Backward = Callable[[Op, Extent, Sequence[bool]], Work]  # which operands need a gradient

SAVES: dict[str, Saves] = {}
BACKWARD: dict[str, Backward] = {}
AGAIN: dict[str, Backward] = {}  # of which so much is forward's work, done again by a kernel that did not keep it
BLIND = ("topk",)  # their results have no gradient
HANDS_ON = ("add", "mask", "copy", "sum")  # the gradient of their result is that of their operands, unchanged
WIDE_STATES = ("scan", "peak")  # what their steps cast is told in float32 alone
LEAVING = ("append", "hold")  # their rules say what stays for the next pass


def saves(*kinds: str) -> Callable[[Saves], Saves]:
    """A rule is what autograd keeps of ops of these kinds. Raises KindError where one of them has a rule already."""
    return entered(SAVES, kinds, lambda kind: KindError(f"the kind {kind!r} has two rules of what training keeps"))


def products(op: Op, extent: Extent, needs: Sequence[bool]) -> Work:
    """A product as large as forward's for each operand of a contraction that needs a gradient."""
    return {"multiply_add": sum(needs[:2]) * kind_of(op).work(op, extent).get("multiply_add", 0)}


def backward(op: Op, extent: Extent, needs: Sequence[bool]) -> Work:
    """The multiply-adds of the backward pass; `needs` says of each operand of `op.inputs` whether it has a gradient."""
    if not kind_of(op).contracts:
        return {}
    return BACKWARD.get(op.kind, products)(op, extent, needs)


def remade(op: Op, extent: Extent, needs: Sequence[bool]) -> Work:
    """Those multiply-adds of the backward pass that make again what the forward pass made."""
    return AGAIN[op.kind](op, extent, needs) if op.kind in AGAIN else {}


def passes(op: Op) -> bool:
    """True where a gradient of the result becomes one of the operands."""
    return op.kind not in BLIND


def hands_on(op: Op) -> bool:
    """True where the gradient of the result is that of the operands, and no tensor of its own."""
    return op.kind in HANDS_ON and op.attr("scale") is None and op.attr("keep") is None


def leaves(op: Op) -> bool:
    """True where the rule of an op says itself what of it stays for the next pass."""
    return op.kind in LEAVING


def in_float32(op: Op) -> bool:
    """True where whatever an op is given is made float32, and what it makes is cast back."""
    return op.kind in WIDE_STATES


def rule_of(op: Op, dtype: str = "fp32") -> Saves | None:
    """What autograd keeps of an op in a dtype, None where nobody knows."""
    return None if op.kind in WIDE_STATES and dtype != "fp32" else SAVES.get(op.kind)
