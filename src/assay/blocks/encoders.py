"""Encoders: what they begin with, and what stands behind their last layer.

Axes: j words narrower than the model, or a head's dense layer; p what is pooled, l labels; P_x rows of table x, A
rows of a table of rotations, F frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from assay.blocks.attention import Attention
from assay.blocks.ends import VOCABULARY, Embedding, Norm
from assay.blocks.rewritten import as_part
from assay.blocks.stacks import Body, Decoder, Ending, Layer, layer_segment, make_block
from assay.errors import SizeError
from assay.records import dataclass, replace
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class Tables(Embedding):
    """Word vectors plus a vector of each of some tables: positions, token types, places on a page (Devlin et al. 2018).

    All of them are as wide as the words, which are normed before they are projected to the model's width.
    """

    tables: tuple[tuple[str, int], ...] = ()  # name and rows
    bias: bool = False  # of the projection
    norm_late: bool = False  # the norm stands behind the projection
    angles: tuple[int, int] | None = None  # rows and width of rotations kept as a table

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        rows, width = self.angles or (None, None)
        return {**super().sizes(), "A": rows, "k": width, **{f"P_{name}": rows for name, rows in self.tables}}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`."""
        j = "d" if self.narrow is None else "j"
        made = ops("embedding", f"x = gather(ids[b n], E[V {j}]) -> [b n {j}]")
        if self.scale is not None:
            made += ops("embedding", f"x = scale(x[b n {j}]) -> [b n {j}]", by=self.scale)
        terms: list[str] = []
        called = [name for name, _ in self.tables]
        for i, name in enumerate(called):
            own = f"{name}{called[:i].count(name)}" if called.count(name) > 1 else name  # one table, looked into twice
            index = "at[n]" if name == "position" else f"{own}[b n]"
            axes = f"{index.partition('[')[2][:-1]} {j}"
            first = self.offset if name == "position" else None
            made += ops("embedding", f"p_{own} = gather({index}, E_{name}[P_{name} {j}]) -> [{axes}]", offset=first)
            terms.append(f"p_{own}[{axes}]")
        if terms:
            made += ops("embedding", f"x = add(x[b n {j}], {', '.join(terms)}) -> [b n {j}]")
        if self.norm is not None and not self.norm_late:
            made += self.norm.ops("x", "x", "e", f"b n {j}", j)
        if self.narrow is not None:
            shift = ", Ein_bias[d]" if self.bias else ""
            made += ops("embedding", f"x = linear(x[b n j], Ein[j d]{shift}) -> [b n d]")
        if self.norm is not None and self.norm_late:
            made += self.norm.ops("x", "x", "e")
        if self.angles is not None:
            made += ops("embedding", "angles = gather(at[n], E_angle[A k]) -> [n k]")
        if self.frequencies is not None:
            made += ops("embedding", "angles = mul(at[n], Freq[F]) -> [n F]")
        return made


@dataclass(frozen=True)
class Encoder(Decoder):
    """Layers that see every token at once and keep nothing: no past can be asked of them."""

    final: Norm | None = None  # of the last layer's output

    settings: ClassVar[tuple[str, ...]] = ()

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What occurs once, and each distinct layer with its indices; the last norm before the head."""
        names = names if self.names is None else self.names
        first, *rest = super().segments(names)
        end = [rest.pop()] if self.head is not None else []
        if self.final is not None:
            normed = self.final.ops("x", "x", "f")
            rest.append(Segment("norm", make_block("norm", normed, {"d": self.width}, names)))
        return (first, *rest, *end)


def both_ways(made: Decoder) -> Encoder:
    """A decoder's layers as an encoder's: every token sees those behind it too, in a window as far to either side.

    Raises SizeError for a mixer that has a direction: a scan, a chunk.
    """
    turned = {layer: _both_ways(layer) for layer in dict.fromkeys(made.layers)}
    layers = tuple(turned[layer] for layer in made.layers)
    return Encoder(made.embedding, layers, made.head, made.limit, made.trained, made.names)


def _both_ways(layer: Layer) -> Layer:
    steps = tuple(
        replace(step, branches=tuple(replace(branch, body=_seeing_all(branch.body)) for branch in step.branches))
        for step in layer.steps
    )
    return replace(layer, steps=steps)


def _seeing_all(body: Body) -> Body:
    if body.tag != "a":
        return body
    if type(body) is not Attention or body.chunk is not None:
        raise SizeError("layers whose mixer has a direction cannot see every token at once")
    return replace(body, sees="all", reach=body.window, window=None)


@dataclass(frozen=True)
class MaskedHead:
    """The head of a masked-language model: a dense layer, activation, norm, vocabulary (Devlin et al. 2018)."""

    vocab: int
    width: int
    inner: int | None = None  # width of the dense layer where there is one
    activation: str = "gelu"
    norm: Norm | None = None
    tied: bool = True
    bias: bool = True
    dense_bias: bool = True
    final: Norm | None = None  # of the last layer's output
    spare: bool = False  # a second bias of the vocabulary is stored, and never used

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"V": self.vocab, "d": self.width, "j": self.inner}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `logits[b t V]`."""
        made = self.final.ops("x", "x", "f") if self.final is not None else []
        made += ops("head", "y = keep(x[b n d]) -> [b t d]")
        j = "d"
        if self.inner is not None:
            j = "j"
            shift = ", Bdense[j]" if self.dense_bias else ""
            made += ops("head", f"y = linear(y[b t d], Wdense[d j]{shift}) -> [b t j]")
            made += ops("head", f"y = {self.activation}(y[b t j]) -> [b t j]")
        if self.norm is not None:
            made += as_part(self.norm.ops("y", "y", "head", f"b t {j}", j), "head")
        table = f"E[V {j}]" if self.tied else f"Wout[{j} V]"
        made += ops(VOCABULARY, f"logits = linear(y[b t {j}], {table}{', Bout[V]' if self.bias else ''}) -> [b t V]")
        return made + (ops("head", "spare = idle(Bspare[V]) -> [V]") if self.spare else [])


@dataclass(frozen=True)
class Pooler:
    """Tokens through a dense layer, an activation and a norm, and labels from it, each where there is one.

    Read are the first token, the mean of all, or each of them.
    """

    width: int
    labels: int | None = None
    dense: bool = True
    activation: str = "tanh"
    norm: Norm | None = None  # before, where the stack does not end in one
    over: Literal["first", "mean", "all"] = "first"
    after: Norm | None = None  # of the dense layer's activation
    dense_bias: bool = True
    bias: bool = True  # of the labels
    inner: int | None = None  # width of the dense layer, the model's by default
    name: str = "pool"  # of the dense layer's weights, where a head has several

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"d": self.width, "p": self.inner or self.width, "l": self.labels}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to `y[b p]`, or `logits[b l]`; with t of the n positions where each is read."""
        made = self.norm.ops("x", "x", "f") if self.norm is not None else []
        kind, b = {"first": ("first", "b"), "mean": ("mean", "b"), "all": ("keep", "b t")}[self.over]
        made += ops("head", f"y = {kind}(x[b n d]) -> [{b} d]")
        if self.dense:
            shift = f", W{self.name}_bias[p]" if self.dense_bias else ""
            made += ops("head", f"y = linear(y[{b} d], W{self.name}[d p]{shift}) -> [{b} p]")
            made += ops("head", f"y = {self.activation}(y[{b} p]) -> [{b} p]")
        p = "p" if self.dense else "d"
        if self.after is not None:
            made += as_part(self.after.ops("y", "y", "head", f"{b} {p}", p), "head")
        if self.labels is not None:
            shift = ", Bscore[l]" if self.bias else ""
            made += ops("head", f"logits = linear(y[{b} {p}], Wscore[{p} l]{shift}) -> [{b} l]")
        return made


@dataclass(frozen=True)
class Together:
    """Several ends of one model, each reading the last layer."""

    ends: tuple[Ending, ...]

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes of all of them."""
        return {axis: size for end in self.ends for axis, size in end.sizes().items()}

    def ops(self) -> list[Op]:
        """From `x[b n d]` to what each returns."""
        return [op for end in self.ends for op in end.ops()]


@dataclass(frozen=True)
class Shared(Encoder):
    """Groups of layers, each run several times in a row with the same weights (ALBERT, Lan et al. 2019).

    `layers` are those of one group, which all groups have alike; group i runs `runs[i]` times.
    """

    runs: tuple[int, ...] = (1,)

    @property
    def depth(self) -> int:
        """How many groups are gone through, as the field counts ALBERT's layers."""
        return sum(self.runs)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What occurs once, and each layer of each group; `{inner}` is its place in a group.

        Groups run one behind the other, the layers of a group in turns.
        """
        names = names if self.names is None else self.names
        first, *rest = replace(self, layers=()).once(names)
        alone, made, begun = len(self.runs) * len(self.layers) == 1, [], 0
        for group, times in enumerate(self.runs):
            turns = () if alone else tuple(range(begun, begun + times))
            for inner, layer in enumerate(self.layers):
                own = {weight: path.replace("{inner}", str(inner)) for weight, path in names.items()}
                found = layer_segment(layer, (group,), self.width, own, {}, "layers.{i}.")
                made.append(replace(found, passes=times, turns=turns))
            begun += times
        return (first, *made, *rest)

    def once(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What is not repeated."""
        return super().segments(names)
