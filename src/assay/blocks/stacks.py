"""Layers and the models made of them: residual steps, and the decoder-only stack.

A layer is steps; a step is branches that read the same input, each with norms of its own, added to the residual
stream. Pre-norm, post-norm, sandwich and parallel arrangements are other lists of these, not flags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Protocol, Self

from assay.blocks.ends import Embedding, Norm
from assay.errors import SizeError
from assay.records import dataclass, replace
from assay.size import Size
from assay.spec import Block, Op, Segment, Sight, Weight, ops


class Body(Protocol):
    """What a branch holds: attention, a feed-forward layer, experts, a recurrent mixer."""

    @property
    def tag(self) -> str:
        """The letter of its norms' names: a for mixers of tokens, m for feed-forward layers."""

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from `x`."""


class Ending(Protocol):
    """What follows the last layer: a head, a classifier, or the final norm alone."""

    @property
    def segment(self) -> str:
        """Its name in a report."""

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""

    def ops(self) -> list[Op]:
        """From `x[b n d]` to what the model returns."""


@dataclass(frozen=True)
class Wrapped:
    """A body with something around it: its axes, and norms called as its own are."""

    body: Body

    @property
    def tag(self) -> str:
        """That of its body."""
        return self.body.tag

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return self.body.sizes()


@dataclass(frozen=True)
class Scaled:
    """A body with a multiplier of what it reads and one of what it gives."""

    body: Body
    before: float | None = None
    after: float | None = None
    tag: str = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return self.body.sizes()

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from `x`, both `[b n d]`."""
        made: list[Op] = []
        if self.before is not None:
            made += ops("other", f"i{self.tag} = scale({x}[b n d]) -> [b n d]", by=self.before)
            x = f"i{self.tag}"
        made += self.body.ops(x, y)
        if self.after is not None:
            made += ops("other", f"{y} = scale({y}[b n d]) -> [b n d]", by=self.after)
        return made


@dataclass(frozen=True)
class Branch:
    """A body, the norm of its input and the norm of its output."""

    body: Body
    before: Norm | None = None
    after: Norm | None = None

    def absorbed(self) -> Branch:
        """The same branch with latent attention run the other way."""
        other = getattr(self.body, "absorbed", None)
        return self if other is None else replace(self, body=other())


@dataclass(frozen=True)
class Step:
    """Branches added to the residual stream together; `before` is a norm they share, `after` one of the sum."""

    branches: tuple[Branch, ...]
    before: Norm | None = None
    after: Norm | None = None
    scale: float | str | None = None  # of the branches, where a residual multiplier is set
    keep: float | str | None = None  # of the residual stream, where it has a multiplier too
    gain: bool = False  # a learned gain of the residual stream
    onto_normed: bool = False  # the branches are added to what they read, not to what came before its norm (BLOOM)

    def absorbed(self) -> Step:
        """The same step with its latent attention run the other way."""
        if not any(hasattr(branch.body, "absorbed") for branch in self.branches):
            return self
        return replace(self, branches=tuple(branch.absorbed() for branch in self.branches))

    def ops(self, index: int) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        made, x, sums = [], "x", []
        if self.before is not None:
            made += self.before.ops(x, "y", f"s{index}")
            x = "y"
        for branch in self.branches:
            tag = branch.body.tag
            source, target = x, f"y{tag}"
            if branch.before is not None:
                made += branch.before.ops(source, f"x{tag}", tag)
                source = f"x{tag}"
            made += branch.body.ops(source, target)
            if branch.after is not None:
                made += branch.after.ops(target, target, f"p{tag}")
            sums.append(f"{target}[b n d]")
        if self.gain:
            made += ops("other", f"x = mul(x[b n d], R{index}[d]) -> [b n d]")
        onto = x if self.onto_normed else "x"
        made += ops("other", f"x = add({onto}[b n d], {', '.join(sums)}) -> [b n d]", scale=self.scale, keep=self.keep)
        if self.after is not None:
            made += self.after.ops("x", "x", f"t{index}")
        return made


@dataclass(frozen=True)
class Layer:
    """Steps one after the other. `kind` names the layer in a report where layers differ."""

    steps: tuple[Step, ...]
    kind: str = ""

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        return [op for index, step in enumerate(self.steps) for op in step.ops(index)]

    def structure(self) -> Layer:
        """The layer that its ops are those of: one without the sizes that do not change them, where it has any."""
        return self

    def absorbed(self) -> Layer | None:
        """The same layer with its latent attention run the other way, where it has one."""
        steps = tuple(step.absorbed() for step in self.steps)
        return None if steps == self.steps else replace(self, steps=steps)

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes of all branches together."""
        together: dict[str, int | None] = {}
        for step in self.steps:
            for branch in step.branches:
                for axis, size in branch.body.sizes().items():
                    if size is not None and together.setdefault(axis, size) != size:
                        raise SizeError(f"axis {axis} is {together[axis]} and {size} in one layer")
        return together


@dataclass(frozen=True)
class Decoder:
    """A decoder-only model. `limit` is the rows of a position table, `trained` the context that a config claims.

    `names` says where weights are stored, where it depends on more than the family.
    """

    embedding: Embedding
    layers: tuple[Layer, ...]
    head: Ending | None
    limit: int | None = None
    trained: int | None = None
    names: Mapping[str, str] | None = None

    settings: ClassVar[tuple[str, ...]] = ("past",)
    source_tokens: ClassVar[int | None] = None  # there is no source
    source_limit: ClassVar[int | None] = None
    source_stride: ClassVar[int] = 1
    source_extra: ClassVar[int] = 0
    sight: ClassVar[Sight | None] = None  # nor anything to see

    @property
    def width(self) -> int:
        """Of the residual stream."""
        width: int = self.embedding.width
        return width

    @property
    def depth(self) -> int:
        """How many layers."""
        return len(self.layers)

    def ending(self, head: Ending | None) -> Self:
        """The same layers with another end, its names given from outside."""
        return replace(self, head=head, names=None)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What occurs once, and each distinct layer with its indices."""
        names = names if self.names is None else self.names
        made = [Segment("embedding", make_block("embedding", self.embedding.ops(), self.embedding.sizes(), names))]
        made += layer_segments(self.layers, self.embedding.width, names)
        made += self.after_layers(names)
        if self.head is not None:
            end = self.head.segment
            made.append(Segment(end, make_block(end, self.head.ops(), self.head.sizes(), names)))
        return tuple(made)

    def after_layers(self, names: Mapping[str, str]) -> list[Segment]:
        """What stands between the last layer and whatever the class ends in: nothing."""
        return []


def make_block(
    name: str, made: Sequence[Op], sizes: Mapping[str, int | None], names: Mapping[str, str], prefix: str = ""
) -> Block:
    """A block of ops and the sizes that are set, its weights stored under `names`, or `prefix` and their own name."""
    used = {w.name for op in made for w in op.weights}
    kept = {weight: stored(weight, names, prefix) for weight in used}
    return _resized(Block(name, tuple(made), {}, kept), name, sizes)


def _resized(block: Block, name: str, sizes: Mapping[str, int | None]) -> Block:
    """A block of the same ops and weights under another name, with other sizes."""
    given = {axis: int(size) for axis, size in sizes.items() if size is not None}
    return Block(name, block.ops, given, block.stored, _origins(sizes))


def _origins(sizes: Mapping[str, int | None]) -> dict[str, str]:
    """The keys that sizes were read from."""
    return {axis: key for axis, size in sizes.items() if (key := getattr(size, "key", None))}


def stored(weight: str, names: Mapping[str, str], prefix: str = "") -> Weight:
    """Where a weight is stored: as `names` says, a bias beside its weight, else under its own name."""
    text = names.get(weight)
    if text is None and (beside := _beside(weight)) in names:
        text = names[beside].split("[")[0].removesuffix(".weight") + ".bias"
    return parse_stored(text if text is not None else prefix + weight)


def is_named(weight: str, names: Mapping[str, str]) -> bool:
    """True where `names` says where a weight is stored, or where the one is that it stands beside."""
    return weight in names or _beside(weight) in names


def _beside(weight: str) -> str:
    """The weight whose name a bias follows: Bq after Wq, Ba after Ga, Wd_bias after Wd, cross.Bq after cross.Wq."""
    own, dot, name = weight.rpartition(".")
    if dot:
        return f"{own}.{_beside(name)}"
    if weight.endswith("_bias"):
        return weight.removesuffix("_bias")
    matrices = ("q", "k", "v", "o", "r", "out", "dense", "pool", "score")
    return ("W" if weight[1:] in matrices else "G") + weight[1:]


@lru_cache(maxsize=4096)
def parse_stored(text: str) -> Weight:
    """`~path[layout]`: ~ marks a buffer, the layout may be left out; [] is a single number."""
    path, bracket, layout = text.removeprefix("~").partition("[")
    return Weight(path.strip(), layout.removesuffix("]") if bracket else None, text.startswith("~"))


def layer_segments(
    layers: Sequence[Layer],
    width: int,
    names: Mapping[str, str],
    axes: Mapping[str, Size | str] | None = None,
    prefix: str = "layers.{i}.",
) -> list[Segment]:
    """Each distinct layer once, with the indices of the layers like it, in order of first occurrence."""
    if layers and tuple(layers) == (layers[0],) * len(layers):  # depth costs next to nothing where all are one
        return [layer_segment(layers[0], range(len(layers)), width, names, axes or {}, prefix)]
    where: dict[int, list[int]] = {}
    for index, layer in enumerate(layers):
        where.setdefault(id(layer), []).append(index)
    merged: dict[Layer, list[int]] = {}
    for indices in where.values():
        merged.setdefault(layers[indices[0]], []).extend(indices)
    drawn: dict[Layer, Block] = {}
    return [layer_segment(layer, sorted(at), width, names, axes or {}, prefix, drawn) for layer, at in merged.items()]


def layer_segment(
    layer: Layer,
    at: Sequence[int],
    width: int,
    names: Mapping[str, str],
    axes: Mapping[str, Size | str],
    prefix: str,
    drawn: dict[Layer, Block] | None = None,
) -> Segment:
    """One distinct layer and where it stands; `drawn` are blocks of layers before it, by their structure."""
    name = layer.kind or "layer"
    sizes = {**layer.sizes(), "d": width}
    other, plain = layer.absorbed(), layer.structure()
    like = None if drawn is None or plain is layer else drawn.get(plain)
    block = make_block(name, layer.ops(), sizes, names, prefix) if like is None else _resized(like, name, sizes)
    if drawn is not None and plain is not layer:
        drawn[plain] = block
    return Segment(
        name,
        block,
        tuple(at),
        axes,
        None if other is None else make_block(name, other.ops(), sizes, names, prefix),
    )
