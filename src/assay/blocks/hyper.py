"""Hyper-connections: several residual streams side by side, collapsed before each branch and expanded after it with
weights that each token sets itself (Zhu et al. 2024, arXiv:2409.19606; mixed by a doubly stochastic matrix in
manifold-constrained ones, Xie et al. 2026).

Axes: S streams, O streams after a branch, A streams before it.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.ends import Embedding, Norm
from assay.blocks.stacks import Decoder, Layer, Step, make_block
from assay.records import dataclass
from assay.spec import Op, Segment, ops

FLAT = Norm(affine="none")


@dataclass(frozen=True)
class Streams:
    """How many streams, and how their mixing matrix is made doubly stochastic; None where streams are not mixed."""

    count: int
    iterations: int | None = None
    eps: float | None = None  # added to every weight
    norm: Norm = FLAT  # of all streams at once, for the weights
    magnitude: float = 2.0  # of the weights after a branch

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"S": self.count, "O": self.count, "A": self.count}

    def weights(self, part: str, tag: str, name: str, axes: str, activation: str) -> list[Op]:
        """`name[b n axes]`: a matrix of all streams, a scale and a base, an activation."""
        out, weight = f"[b n {axes}]", f"{tag}_{name}"
        return ops(
            part,
            f"{name} = linear(flat[b n S d], H{weight}[S d {axes}]) -> {out}",
            f"{name} = mul({name}{out}, Hs{weight}[]) -> {out}",
            f"{name} = add({name}{out}, Hb{weight}[{axes}]) -> {out}",
            f"{name} = {activation}({name}{out}) -> {out}",
        )

    def collapse(self, part: str, tag: str) -> list[Op]:
        """`xc[b n d]` from the streams `x[b n S d]`, and the weights of what comes back."""
        made = self.norm.ops("x", "flat", tag, "b n S d", "S d") + self.weights(part, tag, "pre", "O", "sigmoid")
        made += ops(part, "into = rename(pre[b n O]) -> [b n S]")
        return made + ops(part, "xc = combine(x[b n S d], into[b n S]) -> [b n d]", eps=self.eps)

    def expand(self, part: str, tag: str, y: str) -> list[Op]:
        """The streams with `y[b n d]` added to each, themselves mixed where they are."""
        made = self.weights(part, tag, "post", "O", "sigmoid")
        plus = self.eps if self.iterations is None else None
        made += ops(part, "post = scale(post[b n O]) -> [b n O]", by=self.magnitude, plus=plus)
        made += ops(part, f"out = mul({y}[b n d], post[b n O]) -> [b n O d]")
        if self.iterations is None:
            made += ops(part, "out = rename(out[b n O d]) -> [b n S d]")
            return made + ops("other", "x = add(x[b n S d], out[b n S d]) -> [b n S d]")
        made += self.weights(part, tag, "comb", "A O", "softmax")
        made += ops(part, f"comb = sinkhorn(comb[b n A O], times={self.iterations}) -> [b n A O]", eps=self.eps)
        return made + ops(
            part,
            "mix = rename(comb[b n A O]) -> [b n S O]",
            "x = contract(mix[b n S O], x[b n S d]) -> [b n O d]",
            "x = add(x[b n O d], out[b n O d]) -> [b n O d]",
            "x = rename(x[b n O d]) -> [b n S d]",
        )


@dataclass(frozen=True)
class HyperLayer(Layer):
    """Steps of one branch each, between which the residual stream is several."""

    streams: Streams = Streams(1)

    def ops(self) -> list[Op]:
        """`x[b n S d]` from `x[b n S d]`."""
        return [op for step in self.steps for op in self.step(step)]

    def step(self, step: Step) -> list[Op]:
        """One branch, between a collapse and an expansion."""
        (branch,) = step.branches
        tag = branch.body.tag
        part = "attention" if tag == "a" else "mlp"
        made = self.streams.collapse(part, tag)
        if branch.before is not None:
            made += branch.before.ops("xc", "xc", tag)
        made += branch.body.ops("xc", "y")
        return made + self.streams.expand(part, tag, "y")

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes of all branches together, and the streams."""
        return {**super().sizes(), **self.streams.sizes()}


@dataclass(frozen=True)
class StreamEmbedding(Embedding):
    """An embedding that begins every stream."""

    streams: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "S": self.streams}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n S d]`."""
        return super().ops() + ops("embedding", "x = repeat(x[b n d]) -> [b n S d]")


@dataclass(frozen=True)
class HyperDecoder(Decoder):
    """A decoder of hyper-connected layers, whose streams are collapsed once more after the last."""

    streams: Streams = Streams(1)

    def after_layers(self, names: Mapping[str, str]) -> list[Segment]:
        """The last collapse."""
        made = self.streams.collapse("other", "f") + ops("other", "x = view(xc[b n d]) -> [b n d]")
        sizes = {**self.streams.sizes(), "d": self.width}
        return [Segment("streams", make_block("streams", made, sizes, names))]


def hyper_names(prefix: str, tag: str, mixed: bool = True, stem: str = "") -> dict[str, str]:
    """Where the weights of a collapse and an expansion are stored: one matrix, one base and the scales."""
    kinds = {"pre": "O", "post": "O"} | ({"comb": "(A O)"} if mixed else {})
    only = stem != ""
    names: dict[str, str] = {}
    for kind, axes in ({"pre": "O"} if only else kinds).items():
        plus = "" if only else "+"
        names[f"H{tag}_{kind}"] = f"{prefix}{stem}fn[{plus}{axes} (S d)]"
        names[f"Hb{tag}_{kind}"] = f"{prefix}{stem}base[{plus}{axes}]"
        names[f"Hs{tag}_{kind}"] = f"{prefix}{stem}scale[{plus}1]"
    return names
