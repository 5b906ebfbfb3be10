"""Element by element: sums, products, activations, rotations. The work of one element, by sort."""

from __future__ import annotations

from collections.abc import Callable

from assay.kinds.base import Extent, Kind, Work, expect, register, same_axes
from assay.spec import Op

# the arithmetic of one element of each activation, as its definition is written
ACTIVATIONS: dict[str, dict[str, int]] = {
    "relu": {"compare": 1},
    "relu2": {"compare": 1, "multiply": 1},  # max(x, 0)^2, So et al. 2021 (Primer)
    "silu": {"multiply": 1, "exp": 1, "add": 1, "divide": 1},  # x / (1 + exp(-x))
    "sigmoid": {"multiply": 1, "exp": 1, "add": 1, "divide": 1},
    "tanh": {"function": 1},
    "gelu": {"multiply": 3, "function": 1, "add": 1},  # x/2 (1 + erf(x / sqrt 2))
    "gelu_tanh": {"multiply": 6, "add": 2, "function": 1},  # x/2 (1 + tanh(c (x + 0.044715 x^3)))
    "quick_gelu": {"multiply": 2, "exp": 1, "add": 1, "divide": 1},  # x sigmoid(1.702 x)
    "swiglu_clamp": {"compare": 3, "multiply": 2, "exp": 1, "add": 2, "divide": 1},  # gpt-oss
    "swiglu_limit": {"compare": 3, "multiply": 2, "exp": 1, "add": 1, "divide": 1},  # both halves within a limit
    "swiglu_softcap": {"divide": 3, "function": 2, "multiply": 5, "exp": 1, "add": 1},  # both halves bounded by tanh
    "identity": {},
    "exp": {"exp": 1},
    "softplus": {"exp": 1, "add": 1, "function": 1},
    "sqrtsoftplus": {"exp": 1, "add": 1, "function": 1, "root": 1},
    "xielu": {"compare": 1, "multiply": 4, "add": 3, "exp": 1},  # Huang & Schlag 2025
}

# what some of them take besides
CONSTANTS = {"swiglu_clamp": ("alpha", "limit"), "swiglu_limit": ("limit",), "swiglu_softcap": ("gate_cap", "up_cap")}


def _per_element(work: dict[str, int]) -> Callable[[Op, Extent], Work]:
    def rule(op: Op, extent: Extent) -> Work:
        elements = extent(op.axes)
        return {sort: times * elements for sort, times in work.items()}

    return rule


def _sum(op: Op, extent: Extent) -> Work:
    elements = extent(op.axes)
    work: Work = {"add": (len(op.inputs) - 1) * elements}
    scaled = sum(op.attr(name) is not None for name in ("scale", "keep"))  # the branch, the residual stream
    if scaled:
        work["multiply"] = scaled * elements
    return work


def _product(op: Op, extent: Extent) -> Work:
    return {"multiply": (len(op.inputs) - 1) * extent(op.axes)}


def _check_broadcast(op: Op) -> None:
    """The result has the axes of all operands together."""
    known = {a for t in op.inputs for a in t.axes}
    expect(op, len(op.inputs) >= 2, f"{op.kind} takes at least two operands")
    expect(op, set(op.axes) == known, f"{op.kind} keeps the axes of its operands")


def _lerp(op: Op, extent: Extent) -> Work:
    """w x + (1 - w) y: two products and their sum, and the other weight once."""
    elements = extent(op.axes)
    return {"multiply": 2 * elements, "add": elements + extent(op.inputs[2].axes)}


def _check_lerp(op: Op) -> None:
    expect(op, len(op.inputs) == 3 and op.inputs[0].axes == op.inputs[1].axes, "lerp takes x, y and a weight")
    same_axes(op)


def _rope(op: Op, extent: Extent) -> Work:
    """Each rotated element: two products and their sum (Su et al. 2021, eq. 34)."""
    rotated = extent(op.axes[:-1]) * extent.value(op.attr("width", op.axes[-1]))
    return {"multiply": 2 * rotated, "add": rotated}


def _check_mask(op: Op) -> None:
    """Scores, and perhaps an index of the keys that each query sees, which stand for the axis of keys.

    Or a number of each key, of which those with the `keep` largest are seen.
    """
    expect(op, 1 <= len(op.inputs) <= 2, "mask takes scores and perhaps an index of keys, or a number of each")
    expect(op, set(op.axes) == set(op.inputs[0].axes), "mask keeps the axes of its scores")
    of_keys = False
    for other in op.inputs[1:]:
        own = set(other.axes) - set(op.axes)
        of_keys = not own and op.axes[-1] in other.axes
        said = f"{other} has one axis of its own, the keys chosen, or that of the keys and none of its own"
        expect(op, len(own) == 1 or of_keys, said)
    expect(op, op.attr("keep") is None or of_keys, "keep is how many keys stay by a number of each, which is not given")


_ROPE = ("width", "theta", "scaling", "style", "tables", "joined")

register(
    Kind("add", "sum of operands", _check_broadcast, _sum, attrs=("scale", "keep"), sums=True),
    Kind("mul", "product of operands", _check_broadcast, _product),
    Kind("div", "quotient of operands", _check_broadcast, _per_element({"divide": 1})),
    Kind("lerp", "x times w plus y times 1 - w", _check_lerp, _lerp),
    Kind("scale", "times a constant", same_axes, _per_element({"multiply": 1}), attrs=("by", "plus")),
    Kind(
        "sinusoid",
        "adds sines and cosines of the position",
        same_axes,
        _per_element({"add": 1, "function": 1}),
        attrs=("halves", "closed", "offset"),
    ),
    Kind("mask", "adds a bias or mask", _check_mask, _per_element({"add": 1}), attrs=("keep", "added")),
    Kind(
        "alibi",
        "adds each head's slope times the distance (Press et al. 2021)",
        same_axes,
        _per_element({"multiply": 1, "add": 1}),
        attrs=("by", "rounded"),
    ),
    Kind(
        "softcap",
        "cap * tanh(x / cap)",
        same_axes,
        _per_element({"divide": 1, "function": 1, "multiply": 1}),
        attrs=("cap",),
    ),
    Kind(
        "temper",
        "times 1 + by log(1 + position / floor), or what else `form` makes of the position (Nakanishi 2025)",
        same_axes,
        _per_element({"multiply": 1}),
        attrs=("form", "floor", "by"),
    ),
    # what a transform costs depends on its algorithm and on the factors of its length: one function an element
    Kind("fourier", "real part of a transform over the last two axes", same_axes, _per_element({"function": 1})),
    Kind(
        "collision",
        "(1 - acos(x) / pi)^code, the chance that code random hyperplanes leave two vectors on one side each",
        same_axes,
        _per_element({"function": 2, "divide": 1, "add": 1}),
        attrs=("code",),
    ),
    Kind(
        "batchnorm",
        "(x - stored mean) / stored deviation, times a gain, plus a bias (Ioffe & Szegedy 2015)",
        same_axes,
        _per_element({"add": 2, "multiply": 2}),
    ),
    Kind("clip", "no further from zero than a limit", same_axes, _per_element({"compare": 2}), attrs=("limit",)),
    Kind("clamp", "between two stored bounds", same_axes, _per_element({"compare": 2})),
    Kind("rope", "rotation of pairs by their position", same_axes, _rope, attrs=_ROPE),
    *(
        Kind(name, f"{name} of each element", same_axes, _per_element(work), attrs=CONSTANTS.get(name, ()))
        for name, work in ACTIVATIONS.items()
    ),
)
