"""Attention in one kernel, as PyTorch runs it: scores are never stored, and made again in the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.kinds.base import Extent, Work, kind_of
from assay.kinds.fused import whole
from assay.kinds.training.passing import Passing
from assay.kinds.training.pointwise import MASKED, sight
from assay.kinds.training.rows import AGAIN, BACKWARD, products, saves
from assay.kinds.training.values import FLAG, WIDE, Value
from assay.size import Size, decides
from assay.spec import Axes, Op

BOUNDED = ("window", "near", "chunk")  # what limits the sight of a query, causal as long as there are no more tokens


@saves("attend")
def attend(at: Passing, q: Value, k: Value, v: Value) -> Value:
    """Queries, keys, values, the result, the logarithm of each row's sum in float32, and a mask that is not causal."""
    op, tape = at.op, at.tape
    scores = whole(op)[0]
    *lead, n, c = scores.axes
    heads = tuple(lead[1:])
    (summed,) = [a for a in q.axes if a not in scores.axes]
    (width,) = [a for a in v.axes if a not in scores.axes]
    shared = tuple(a for a in heads if a in k.axes)
    q, k, v = (tape.lower(x) for x in (q, k, v))
    q = tape.join(q, ("b",), heads, (n,), (summed,))
    k = tape.join(k, ("b",), shared, (c,), (summed,))
    if set(v.axes) != {"b", *shared, c, width}:
        v = tape.expand(tape.beside(v, ("b", *shared, c, width)), ("b", *shared, c, width))
    v = tape.join(v, ("b",), shared, (c,), (width,))
    grouped = any(at.sizes[a] != 1 for a in heads if a not in shared)
    if op.attr("grouped") == "unmasked" and grouped and _masked(at, n, c):
        grouped = False
        k, v = (tape.new(("b", *heads, c, last), x.grad, x.dtype) for x, last in ((k, summed), (v, width)))
    made = ("b", n, *heads, width)
    # a CPU's kernel takes values as wide as keys; the GPU's that takes float32 takes a key for each query head
    # (sdp_utils.cpp: check_head_dim_size_cpp, check_batch_size_and_num_heads_dense<false>)
    none = at.sizes[summed] != at.sizes[width] if tape.device == "cpu" else grouped and q.dtype == "fp32"
    if none:
        return tape.order(_composed(at, (q, k, v), heads, (n, c, summed, width)), op.axes)
    apart = dict(zip(q.axes, q.strides, strict=True))
    lies = tuple(width if a == summed else a for a in sorted(q.axes, key=lambda a: -apart[a]))  # as queries do
    beside = [] if tape.grads else _beside(at, q, heads, n, c)
    y = tape.read(tape.new(made, any(x.grad for x in (q, k, v)), q.dtype, lies), q, k, v, *beside)
    if y.grad:
        tape.apart[tape.now] = _apart(at, q, grouped)
        tape.keep(q, k, v, y, tape.new(("b", *heads, n), dtype=WIDE.get(q.dtype, q.dtype)))
        if _masked(at, n, c):
            _seen(at, n, c)
            each = ("b", n, c) if op.attr("grouped") else (n, c)  # an implementation may have one of each text
            tape.keep(tape.new(each, dtype=q.dtype))
    return tape.order(y, op.axes)


def _beside(at: Passing, q: Value, heads: Axes, n: str, c: str) -> list[Value]:
    """What the kernel makes beside its result, though nobody keeps it: sums of rows, and a mask as it takes it."""
    tape = at.tape
    made = [tape.new(("b", *heads, n), dtype=WIDE.get(q.dtype, q.dtype))]
    given = tape.device == "cpu" or at.op.attr("grouped")  # kernels of engines are told what is out of sight
    if given and _masked(at, n, c):
        made += [_seen(at, n, c), tape.new((n, c), dtype=q.dtype)]
    return made


def _seen(at: Passing, n: str, c: str) -> Value:
    """What is in sight, one tensor for all layers that see alike."""
    told = ("seen", sight(_maker(at, c), at), at.count((n, c)))
    return at.tape.once(told, lambda: at.tape.new((n, c), dtype=FLAG))


def _apart(at: Passing, q: Value, grouped: bool) -> Size:
    """Gradients of queries added up in float32, a number a row, and those of grouped keys and values for every head.

    As FlashAttention-2's backward pass has them (Dao 2023, arXiv:2307.08691, algorithm 2), in the order of [b h n k].
    """
    tape = at.tape
    if tape.device == "cpu":
        return 0
    wide, rows = tape.held(q.axes, "fp32"), tape.held(q.axes[:-1], "fp32")
    return wide + rows + (2 * tape.held(q.axes, q.dtype) if grouped else 0)


def _composed(at: Passing, given: Sequence[Value], heads: Axes, named: Sequence[str]) -> Value:
    """Where no kernel takes it: both products and a softmax, in float32."""
    tape = at.tape
    n, c, summed, width = named
    if tape.autocast:
        raise at.unknown("a CPU composes it, of values of another width than keys under autocast")
    q, k, v = (tape.cast(x, WIDE.get(x.dtype, x.dtype)) for x in given)
    q, k = tape.linear_in(q), tape.linear_in(k)
    if set(heads) - set(k.axes):
        k, v = (tape.new(("b", *heads, c, last), x.grad, x.dtype) for x, last in ((k, summed), (v, width)))
    lead = ("b", *heads)
    p = tape.softmax(tape.matmul(q, k, lead, (n,), (summed,), (c,)))
    y = tape.matmul(p, v, lead, (n,), (c,), (width,))
    return tape.cast(y, given[0].dtype)


def _maker(at: Passing, c: str) -> Op:
    """The op that makes keys."""
    makers = [op for op in at.makers(c) if op.kind in MASKED]
    if not makers:
        raise at.unknown(f"no op makes the keys {c}")
    return makers[0]


def _masked(at: Passing, n: str, c: str) -> bool:
    """True where a mask is given; the plain causal one is told by name."""
    if not any(part.kind == "mask" for part in whole(at.op)):
        return False
    told = sight(_maker(at, c), at)
    if told is None or (at.sizes[n] == 1 and told[0] in ("causal", "window")):
        return False
    return not (at.sizes[n] == at.sizes[c] and (told[0] == "causal" or (told[0] in BOUNDED and _all(told, at, c))))


def _all(told: tuple[Any, ...], at: Passing, c: str) -> bool:
    """True where a limit is no less than all keys."""
    return decides(told[1]) and bool(at.sizes[c] <= told[1])


def _again(op: Op, extent: Extent, needs: Sequence[bool]) -> Work:
    """The scores."""
    scores = whole(op)[0]
    return {"multiply_add": kind_of(scores).work(scores, extent).get("multiply_add", 0) if any(needs) else 0}


def _backward(op: Op, extent: Extent, needs: Sequence[bool]) -> Work:
    """Two products for each of forward's, and the scores again: five for two (Dao et al. 2022, B.2)."""
    scores, *_, last = whole(op)
    q, k, v = needs
    left = products(scores, extent, (q, k)).get("multiply_add", 0) + _again(op, extent, needs)["multiply_add"]
    return {"multiply_add": left + products(last, extent, (q or k, v)).get("multiply_add", 0)}


BACKWARD["attend"] = _backward
AGAIN["attend"] = _again
