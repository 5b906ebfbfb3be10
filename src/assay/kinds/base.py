"""The record of a kind of op, its registry, and the extents that an op's work is measured over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal

from assay.errors import KindError, NotationError, SizeError
from assay.records import dataclass
from assay.size import Size, exact_div, product
from assay.spec import AXES, Axes, Op, Tensor

# an axis; or an axis of keys, the one of its queries, and how their pairs are counted
Factor = tuple[str, ...]

# scalar operations by sort; `start` is a sum begun, which saves its first addition
Work = dict[str, Size]

SORTS = {
    "multiply_add": "one multiplication and one addition of a contraction",
    "start": "a sum begun: its first term is not added to anything",
    "multiply": "multiplications outside contractions",
    "add": "additions and subtractions outside contractions",
    "divide": "divisions",
    "exp": "exponentials",
    "root": "square roots",
    "function": "other transcendental functions: tanh, erf, sine, logarithm",
    "compare": "comparisons: maximum, clip, top-k, ReLU",
    "softmax": "elements of an attention's softmax, which a convention may price as a whole",
}


class Sizes(dict[str, Size]):
    """Sizes of axes. One that is missing raises SizeError, for an axis that a block left open and nobody closed."""

    def __missing__(self, axis: str) -> Size:
        what = f" ({AXES[axis]})" if axis in AXES else ""
        raise SizeError(f"axis {axis}{what} has no size; give it one, {axis}=...")


class Extent:
    """How many elements some axes span: the dense product of their sizes.

    `sizes` holds every axis by now bound, and `past`. An op that makes keys at hand binds their axis
    (`keys`), with the queries that see them and how many (query, key) pairs the mask lets through.
    """

    def __init__(self, sizes: dict[str, Size]) -> None:
        self.sizes = Sizes(sizes)
        self.keys: dict[str, Keys] = {}

    def __call__(self, axes: Iterable[str]) -> Size:
        """Elements that the axes span."""
        result: Size = 1
        sizes = self.sizes
        for axis in axes:
            result = result * sizes[axis]
        return result

    def factors(self, axes: Iterable[str]) -> dict[Factor, Size]:
        """The numbers whose product the axes span, each named by the axes that it stands for."""
        return {(axis,): self.sizes[axis] for axis in axes}

    def less(self, axes: Iterable[str], fewer: Iterable[str]) -> Size:
        """Elements that `axes` span beyond those that `fewer` span.

        What both share is factored out, and pairs beside their queries are counted, not subtracted: of two large
        numbers an array has lost the last digits before it has their difference.
        """
        own, lost = self.factors(axes), self.factors(fewer)
        common = product(size for name, size in own.items() if name in lost)
        left = {name: size for name, size in lost.items() if name not in own}
        extra = {name: size for name, size in own.items() if name not in lost}
        for name in extra:
            if len(name) == 3 and list(left) == [name[1:2]]:
                others = self.keys[name[0]].pairs(name[2]).others
                if others is not None:
                    rest = product(size for n, size in extra.items() if n != name)
                    return common * (others * rest + left[name[1:2]] * (rest - 1))
        return common * (product(extra.values()) - product(left.values()))

    def value(self, attr: Size | str) -> Size:
        """An attribute that is a number, or names a size of the block."""
        return self.sizes[attr] if isinstance(attr, str) else attr

    def shared_with(self, other: Extent) -> Extent:
        """This extent over the sizes and keys of another: one binding, several ways to count it."""
        self.sizes, self.keys = other.sizes, other.keys
        return self


@dataclass(frozen=True)
class Pairs:
    """How many (query, key) pairs, and how many of them beside one of each query: None where some have none at all."""

    all: Size
    others: Size | None = None

    def __add__(self, more: Pairs) -> Pairs:
        if self.others is not None:
            return Pairs(self.all + more.all, self.others + more.all)
        return Pairs(self.all + more.all, None if more.others is None else self.all + more.others)


def with_own(rule: Callable[..., Size], *sizes: Size) -> Pairs:
    """Pairs where each query is a key itself, by a rule that counts it as often as `own` says."""
    return Pairs(rule(*sizes), rule(*sizes, own=0))


@dataclass(frozen=True)
class Keys:
    """What is known of an axis of keys: the axis of its queries, and pairs counted in two ways.

    `visible` is a polynomial in how many tokens there are, another one from each of `breaks` tokens on and from
    each multiple of `period`.
    """

    queries: str
    visible: Pairs  # what the mask lets through, for all queries of this pass
    stepped: Pairs  # keys at hand summed over as many one-token passes as there are queries
    breaks: tuple[Size, ...] = ()
    period: Size | None = None

    def pairs(self, way: str) -> Pairs:
        """Pairs counted one way or the other."""
        return self.visible if way == "visible" else self.stepped


class Visible(Extent):
    """Only the (query, key) pairs that the mask lets through."""

    def __call__(self, axes: Iterable[str]) -> Size:
        """Elements that the axes span, an axis of keys and its queries together as pairs."""
        return product(self.factors(axes).values())

    def factors(self, axes: Iterable[str]) -> dict[Factor, Size]:
        """The same as factors, pairs one of them."""
        axes = list(axes)
        made: dict[Factor, Size] = {}
        for axis in list(axes):
            keys = self.keys.get(axis)
            if keys is not None and keys.queries in axes:
                axes.remove(axis)
                axes.remove(keys.queries)
                made[axis, keys.queries, "visible"] = keys.visible.all
        return made | super().factors(axes)


class Stepped(Extent):
    """The sum over one-token passes, one for each of `n` tokens, each with the keys that are then at hand."""

    def __call__(self, axes: Iterable[str]) -> Size:
        """Elements of all passes together. Raises KindError where no sum over passes is known."""
        return product(self.factors(axes).values())

    def factors(self, axes: Iterable[str]) -> dict[Factor, Size]:
        """The same as factors, one of them the passes, or the keys at hand in all of them."""
        axes = list(axes)
        for axis in axes:
            keys = self.keys.get(axis)
            if keys is not None:
                rest = [a for a in axes if a not in (axis, keys.queries)]
                if any(a in self.keys for a in rest):
                    raise KindError(f"[{' '.join(axes)}] spans two axes of keys; no sum over passes is known for it")
                way = self.way(keys.queries in axes)
                return {(axis, "n", way): keys.pairs(way).all} | super().factors(rest)
        return {("n",): self.sizes["n"]} | super().factors(a for a in axes if a not in ("n", "t"))

    def way(self, queried: bool) -> str:
        """How keys at hand are counted; `queried` where each stands beside the pass's query."""
        return "stepped"


class VisibleStepped(Stepped):
    """The same sum over only the (query, key) pairs that the mask lets through."""

    def way(self, queried: bool) -> str:
        """What the queries see of the keys at hand; all of them where no query is at hand."""
        return "visible" if queried else "stepped"


@lru_cache(maxsize=4096)
def union(op: Op) -> Axes:
    """Every axis that the op mentions, each once, in order."""
    seen = dict.fromkeys(axis for tensor in op.inputs for axis in tensor.axes)
    return tuple(seen | dict.fromkeys(op.axes))


@lru_cache(maxsize=4096)
def matrix_axes(op: Op, weight: Tensor) -> tuple[Axes, Axes] | None:
    """Outputs and inputs of a weight that multiplies: axes of the result, axes summed over; None for other weights.

    An axis of neither, of experts that an index chooses from, is one of several matrices.
    """
    if not kind_of(op).contracts:
        return None
    given = {axis for tensor in op.activations for axis in tensor.axes}
    inputs = tuple(axis for axis in weight.axes if axis in given and axis not in op.axes)
    outputs = tuple(axis for axis in weight.axes if axis in op.axes)
    return (outputs, inputs) if inputs else None


def triangle(n: Size) -> Size:
    """1 + 2 + … + n: pairs of n tokens in which the second is not behind the first."""
    return exact_div(n * (n + 1), 2)


def no_work(op: Op, extent: Extent) -> Work:
    """Data that moves or is renamed: no arithmetic."""
    return {}


def whole_weights(op: Op, extent: Extent) -> Size:
    """Elements of weights read: all of them, once."""
    return sum((extent(w.axes) for w in op.weights), start=0)


def whole_inputs(op: Op, extent: Extent) -> Size:
    """Elements of activations read: all of them, once."""
    return sum((extent(t.axes) for t in op.activations), start=0)


def whole_output(op: Op, extent: Extent) -> Size:
    """Elements written: the whole result."""
    return extent(op.axes)


def dimension(axes: Iterable[str]) -> str:
    """Several axes as one stored dimension; none as a dimension of one."""
    names = tuple(axes)
    return names[0] if len(names) == 1 else f"({' '.join(names)})" if names else "1"


@lru_cache(maxsize=4096)
def dimensions_of(layout: str) -> tuple[str, ...]:
    """The stored dimensions that a layout writes: `(h + k)` is one of them."""
    made: list[str] = []
    inside = False
    for word in layout.split():
        if inside:
            made[-1] += f" {word}"
        else:
            made.append(word)
        inside = made[-1].count("(") > made[-1].count(")")
    return tuple(made)


def flat(op: Op, axes: Axes) -> tuple[str, ...]:
    """Stored as one dimension: biases, gains."""
    return (dimension(axes),)


def nothing(op: Op, extent: Extent) -> Size:
    """A view moves nothing."""
    return 0


@dataclass(frozen=True)
class Kind:
    """What an op of this kind means, a column a reading.

    `check` raises NotationError for axes that do not fit; `work` counts scalar operations by sort;
    `bind` binds the axes that the op makes; `state` is the elements it leaves for the next pass;
    `grows` is what one more token of one sequence adds to it, None where its size is fixed, `kept` whose dtype it has;
    `reads`, `weighs` and `writes` are elements of activations and weights read and of the result written;
    `layout` is how a weight is stored where its path does not say: the dimensions, each of one or more axes;
    `storage` says whether the result is new, a view of the first operand, or kept from pass to pass.
    """

    name: str
    says: str
    check: Callable[[Op], None]
    work: Callable[[Op, Extent], Work] = no_work
    bind: Callable[[Op, Extent], None] | None = None
    state: Callable[[Op, Extent], Size] | None = None
    reads: Callable[[Op, Extent], Size] = whole_inputs
    weighs: Callable[[Op, Extent], Size] = whole_weights
    writes: Callable[[Op, Extent], Size] = whole_output
    layout: Callable[[Op, Axes], tuple[str, ...]] = flat
    storage: Literal["new", "view", "state"] = "new"
    grows: Callable[[Op, Extent], Size] | None = None
    kept: Literal["cache", "state"] = "cache"
    attrs: tuple[str, ...] = ()
    active: Callable[[Op, Extent, Tensor], Size] | None = None  # of a weight's elements, those one token passes
    contracts: bool = False  # its work holds multiply-adds: what a matmul-only convention looks at
    borrows: bool = False  # its operand is what another layer made
    sums: bool = False  # its result is the sum of its operands: where arrows of a diagram meet
    moves: Callable[[Op, Extent], Size] | None = None  # elements that one rank sends to others, where ranks exchange
    moves_back: Callable[[Op, Extent], Size] | None = None  # in the backward pass, of gradients


def view(name: str, says: str, check: Callable[[Op], None], **more: Any) -> Kind:
    """A kind whose result is its operand seen otherwise: nothing is computed or moved."""
    return Kind(name, says, check, reads=nothing, writes=nothing, storage="view", **more)


KINDS: dict[str, Kind] = {}


def register(*kinds: Kind) -> None:
    """Add kinds. Raises KindError for a name that is taken."""
    for kind in kinds:
        if kind.name in KINDS:
            raise KindError(f"the kind {kind.name!r} is registered twice")
        KINDS[kind.name] = kind


def kind_of(op: Op) -> Kind:
    """The kind of an op. Raises KindError: an unknown kind is an error, never zero."""
    kind = KINDS.get(op.kind)
    if kind is None:
        raise KindError(f"no kind {op.kind!r} in {str(op)!r}; known: {', '.join(sorted(KINDS))}")
    return kind


def check(ops: Iterable[Op]) -> None:
    """Every op is of a known kind, with axes and attributes that fit it. Raises KindError, NotationError."""
    for op in ops:
        kind = kind_of(op)
        for name, _ in op.attrs:
            if name not in kind.attrs:
                allowed = ", ".join(kind.attrs) or "no attributes"
                raise NotationError(f"{op.kind} takes {allowed}, not {name!r}, in {str(op)!r}")
        kind.check(op)


def expect(op: Op, true: bool, rule: str) -> None:
    """Raise NotationError with the op and the rule unless `true`."""
    if not true:
        raise NotationError(f"{str(op)!r}: {rule}")


def same_axes(op: Op) -> None:
    """Element by element: the result has the axes of the first operand, which hold those of the others."""
    expect(op, len(op.inputs) > 0, f"{op.kind} takes at least one operand")
    first = op.inputs[0].axes
    expect(op, set(op.axes) == set(first), f"{op.kind} keeps the axes of its first operand")
    for other in op.inputs[1:]:
        expect(op, set(other.axes) <= set(first), f"[{' '.join(other.axes)}] does not fit [{' '.join(first)}]")


@lru_cache(maxsize=4096)
def traded(op: Op) -> tuple[str, str]:
    """The axis that the one operand gives up, and the one that stands in its place."""
    expect(op, len(op.inputs) == 1, f"{op.kind} takes one tensor")
    lost = [a for a in op.inputs[0].axes if a not in op.axes]
    made = [a for a in op.axes if a not in op.inputs[0].axes]
    expect(op, len(lost) == 1 and len(made) == 1, f"{op.kind} puts one axis in the place of another")
    return lost[0], made[0]
