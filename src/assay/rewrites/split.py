"""Which axes of a block tensor ranks divide: heads, inner widths between a pair of matrices, the vocabulary, experts.

Found from the ops, so that a block that nobody has met is divided by the same rules: columns of the first matrix of a
pair, rows of the second (Shoeybi et al. 2019, arXiv:1909.08053).
"""

from __future__ import annotations

import re
from math import gcd

from assay.errors import SettingError
from assay.kinds import matrix_axes
from assay.kinds.dividing import HERE, alike, attends, keeps_state, looks_up_tokens, plain, routes
from assay.records import dataclass, field, replace
from assay.rewrites.plan import Plan
from assay.size import Size
from assay.spec import Axes, Block, Op, Tensor, Weight

SCORES = "attention.scores"
LOGITS = "head.vocabulary"
MIXER = "mixer"
PAIRED = ("mlp", "experts")  # parts whose inner widths are divided


@dataclass(frozen=True)
class Split:
    """The axes of a block that are divided and what is left of them on one rank; those of routed experts apart."""

    sizes: dict[str, Size] = field(default_factory=dict)
    experts: int | None = None  # those a rank holds

    def __contains__(self, axis: str) -> bool:
        return axis in self.sizes

    def of(self, tensor: Tensor) -> bool:
        """True where ranks hold different parts of it."""
        return any(axis in self.sizes for axis in tensor.axes)


def split_of(block: Block, plan: Plan, vocabulary: int, name: str) -> Split:
    """What ranks divide of a block; `vocabulary` is the rows of the tables left to this one, 0 for all.

    Raises SettingError where it does not divide.
    """
    sizes: dict[str, Size] = {}
    if plan.tensor > 1:
        _heads(block, plan.tensor, sizes, name)
        if vocabulary:
            sizes |= dict.fromkeys(vocabulary_axes(block), vocabulary)
    pairs = _inner(block)
    widest = max(pairs, key=lambda axis: int(block.sizes[axis]), default="")
    for axis in sorted(pairs, key=lambda axis: -int(block.sizes[axis])):
        ranks = plan.within if pairs[axis] else plan.tensor
        size = block.sizes[axis]
        if ranks == 1 or _both_sides(block, axis, sizes):
            continue
        if size % ranks == 0:
            sizes[axis] = size // ranks
        elif axis == widest:
            what = "experts" if pairs[axis] else "MLP"
            raise SettingError(
                f"{name}: the inner width of its {what}, {size}, does not divide among {ranks} tensor ranks"
            )
    return Split(sizes, _experts(block, plan, name))


def _both_sides(block: Block, axis: str, sizes: dict[str, Size]) -> bool:
    """True where an axis would divide a matrix along one side that is divided along the other already."""
    for op in block.ops:
        given = {a for t in op.activations for a in t.axes}
        for weight in op.weights:
            divided = [a for a in weight.axes if a == axis or a in sizes]
            if axis in divided and {a in op.axes for a in divided if a not in given or a not in op.axes} == {
                True,
                False,
            }:
                return True
    return False


def _heads(block: Block, ranks: int, sizes: dict[str, Size], name: str) -> None:
    """Query heads apart; key/value heads apart, or each on several ranks where there are fewer than ranks.

    Of a mixer likewise its heads or channels, and the groups that several of them share.
    """
    if (both := _head_axes(block)) is not None:
        _divide(block, both, ranks, sizes, name, ("query heads", "key/value heads"))
        if "h" in block.sizes and "h" not in sizes:
            sizes["h"] = block.sizes["h"] // ranks
    if (both := _mixed_axes(block)) is not None:
        _divide(block, both, ranks, sizes, name, ("heads or channels of a mixer", "groups of a mixer"))


def _divide(
    block: Block, both: tuple[Axes, Axes], ranks: int, sizes: dict[str, Size], name: str, words: tuple[str, str]
) -> None:
    shared, own = both
    groups, each = (_product(block, axes) for axes in both)
    heads = groups * each
    if heads < ranks:
        raise SettingError(f"tensor is {ranks}; {name} has {heads} {words[0]}, and a rank needs at least one")
    if heads % ranks:
        raise SettingError(f"tensor is {ranks}; the {heads} {words[0]} of {name} do not divide among so many ranks")
    if groups % ranks and ranks % groups:
        raise SettingError(f"tensor is {ranks}; the {groups} {words[1]} of {name} do not divide among so many ranks")
    left = max(1, groups // ranks)
    split = _along(block, shared, groups // left, sizes)
    if not split or not _along(block, own[:1], each * left * ranks // heads, sizes):
        raise SettingError(f"tensor is {ranks}; the {heads} {words[0]} of {name} do not divide among so many ranks")


def _along(block: Block, axes: Axes, ranks: int, sizes: dict[str, Size]) -> bool:
    """Divide axes among ranks, the first as far as it goes; False where they do not."""
    for axis in axes:
        ways = gcd(block.sizes[axis], ranks)
        if ways > 1:
            sizes[axis] = block.sizes[axis] // ways
        ranks //= ways
    return ranks == 1


def _product(block: Block, axes: Axes) -> int:
    made = 1
    for axis in axes:
        made *= block.sizes[axis]
    return made


def _head_axes(block: Block) -> tuple[Axes, Axes] | None:
    """The axes of key/value heads, and those of query heads to each: of what a softmax over keys has besides.

    Several softmaxes of one head, as differential attention has, see the same values, and stay together.
    """
    found = [op for op in block.ops if op.part == SCORES and attends(op)]
    if not found:
        return None
    queries, keys = found[0].activations[:2]
    axes = tuple(a for a in queries.axes if a in block.sizes and a in found[0].axes)
    kept = tuple(a for a in axes if a in keys.axes)
    values = [op.activations[1] for op in found[1:]]
    return tuple(a for a in kept if all(a in v.axes for v in values)), tuple(a for a in axes if a not in keys.axes)


def _mixed_axes(block: Block) -> tuple[Axes, Axes] | None:
    """The axes of a mixer's groups and of the heads or channels in each: of what its last product sums over, those that
    all operands of its scan have, and those that some have. Without a scan, its channels.
    """
    stream = _stream(block)
    ends = [op for op in block.ops if op.part == MIXER and plain(op) and set(op.axes) == set(stream)]
    if not ends:
        return None
    axes = matrix_axes(ends[-1], ends[-1].weights[0])
    inner = () if axes is None else axes[1]
    found = next((op for op in block.ops if op.part == MIXER and keeps_state(op)), None)
    if found is None:
        return (), inner[:1]
    often = {axis: sum(axis in t.axes for t in found.activations) for axis in inner}
    shared = tuple(a for a in inner if often[a] == len(found.activations))[:1]  # what is within a head stays together
    return shared, tuple(a for a in inner if 1 < often[a] < len(found.activations))


def vocabulary_axes(block: Block) -> list[str]:
    """Axes of the rows of tables that token ids look up, and of logits."""
    found = []
    for op in block.ops:
        if looks_up_tokens(op):
            found.append(op.weights[0].axes[0])
        if op.part == LOGITS and plain(op):
            axes = matrix_axes(op, op.weights[0])
            found += [] if axes is None else list(axes[0])
    return [axis for axis in dict.fromkeys(found) if axis in block.sizes]


def _inner(block: Block) -> dict[str, bool]:
    """Axes that one matrix makes and another of the same sort sums over, and whether routed experts do."""
    found: dict[str, bool] = {}
    makers: dict[str, dict[str, Op]] = {}  # of a tensor's axes, the product that made each
    for op in block.ops:
        weight = op.weights[0] if op.weights else None
        axes = matrix_axes(op, weight) if weight is not None and (plain(op) or routes(op)) else None
        given = {a: maker for t in reversed(op.activations) for a, maker in makers.get(t.name, {}).items()}
        if axes is None:
            makers[op.name] = {a: maker for a, maker in given.items() if a in op.axes}
            continue
        outputs, inputs = axes
        inner = op.part.partition(".")[0] in PAIRED
        both = [axis for axis in inputs if inner and axis in given and alike(given[axis], op)]
        if both:  # several, as of shared experts and their widths, are one width to divide
            found[max(both, key=lambda axis: int(block.sizes[axis]))] = routes(op)
        kept = {a: maker for a, maker in given.items() if a in op.axes and a not in outputs}
        makers[op.name] = kept | ({a: op for a in outputs if a not in _stream(block)} if inner else {})
    return found


def _stream(block: Block) -> Axes:
    """The axes of the residual stream."""
    return next((t.axes for op in block.ops for t in op.inputs if t.name == "x"), ())


def _experts(block: Block, plan: Plan, name: str) -> int | None:
    """How many routed experts a rank holds, None where they are not divided."""
    if plan.expert == 1:
        return None
    for op in block.ops:
        if routes(op):
            count = block.sizes[chosen_axis(op)]
            if count % plan.expert:
                raise SettingError(
                    f"expert is {plan.expert}; the {count} experts of {name} do not divide among so many ranks"
                )
            return int(count // plan.expert)
    return None


def chosen_axis(op: Op) -> str:
    """The axis that an index chooses from."""
    x = op.activations[0].axes
    return next(a for a in op.weights[0].axes if a not in op.axes and a not in x)


def of_those_here(op: Op, stored: dict[str, Weight], block: Block) -> Op:
    """A product with chosen experts, of those that a rank holds; where they are stored follows."""
    axis = chosen_axis(op)

    def here(tensor: Tensor) -> Tensor:
        if not tensor.is_weight or axis not in tensor.axes:
            return tensor
        where = block.weight(tensor.name)
        stored[tensor.name] = replace(
            where,
            path=_renamed(where.path, axis, braces=True),
            layout=_renamed(where.layout, axis),
            published=_renamed(where.published, axis, braces=True),
            published_layout=_renamed(where.published_layout, axis),
        )
        return Tensor(tensor.name, tuple(HERE if a == axis else a for a in tensor.axes))

    return replace(op, inputs=tuple(map(here, op.inputs)))


def _renamed(text: str | None, axis: str, braces: bool = False) -> str | None:
    """An axis under its other name in a layout, or in the indices of a path."""
    if text is None:
        return None
    if braces:
        return re.sub(r"\{([^{}]+)\}", lambda m: "{" + re.sub(rf"\b{axis}\b", HERE, m[1]) + "}", text)
    return re.sub(rf"\b{axis}\b", HERE, text)
