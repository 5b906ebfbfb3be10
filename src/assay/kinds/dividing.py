"""What ranks may divide: which kinds give a token's result from that token alone, multiply, norm, add up."""

from __future__ import annotations

from assay.kinds.base import kind_of, matrix_axes
from assay.spec import Op, Tensor

HERE = "experts_here"  # the axis of those experts that a rank holds
MATRICES = ("linear", "select")
STATISTICS = {"rmsnorm": 1, "layernorm": 2}  # of a row: squares; means and squares
# kinds that give a token's result from that token alone
ALONE = frozenset(
    (
        *STATISTICS,
        *"linear select gather combine take topk add mul div lerp scale softcap clip".split(),
        *"normalize near_softmax sum mean".split(),
        *"relu relu2 silu sigmoid tanh gelu gelu_tanh quick_gelu identity exp softplus sqrtsoftplus xielu".split(),
        *"swiglu_clamp swiglu_limit swiglu_softcap softmax view all_to_all dropout cast power rsqrt copy".split(),
    )
)


def alone(op: Op) -> bool:
    """True where a token's result needs no other token."""
    return op.kind in ALONE


def adds_up(op: Op) -> bool:
    """True where of parts of a sum it gives parts of the result's sum."""
    return op.kind in ("combine", "sum")


def sums_over(op: Op) -> bool:
    """True where the result is a sum over the axes that it lacks, of parts of which it gives parts."""
    return kind_of(op).contracts or op.kind in ("gather", "combine", "sum")


def statistics(op: Op) -> int:
    """Sums over a row that a norm needs, 0 for other kinds."""
    return STATISTICS.get(op.kind, 0)


def plain(op: Op) -> bool:
    """True for a product with one matrix, perhaps with a bias."""
    return op.kind == "linear"


def routes(op: Op) -> bool:
    """True for a product with the matrices that an index chooses."""
    return op.kind == "select"


def multiplies(op: Op, weight: Tensor | None) -> bool:
    """True for a product with a matrix, or with chosen ones, that is the same for every index of what it keeps."""
    if weight is None or op.kind not in MATRICES or matrix_axes(op, weight) is None:
        return False
    given = {axis for tensor in op.activations for axis in tensor.axes}
    return not any(axis in given and axis in op.axes for axis in weight.axes)


def alike(a: Op, b: Op) -> bool:
    """True for two of one kind."""
    return a.kind == b.kind


def attends(op: Op) -> bool:
    """True where queries meet keys."""
    return op.kind in ("contract", "attend") and len(op.activations) > 1


def looks_up_tokens(op: Op) -> bool:
    """True where rows of a table are looked up by the numbers of tokens."""
    return op.kind == "gather" and op.activations[0].name == "ids"


def ends_sum(op: Op) -> bool:
    """True where what ranks hold parts of is added up."""
    return op.kind in ("all_reduce", "reduce_scatter")


def biases(op: Op) -> bool:
    """True where a vector is added to a tensor."""
    return op.kind == "add" and len(op.activations) == 1 == len(op.weights)


def keeps_state(op: Op) -> bool:
    """True where a state of each head is updated and read by every token."""
    return op.kind == "scan"


def hands_over(op: Op) -> bool:
    """True where the next stage goes on."""
    return op.kind == "send"


def takes_over(op: Op) -> bool:
    """True where it goes on with what the stage before has made."""
    return op.kind == "receive"
