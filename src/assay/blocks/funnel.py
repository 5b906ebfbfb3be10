"""An encoder that halves its sequence from block to block, and a decoder that has the first one's length again (Dai et
al. 2020, Funnel-Transformer).

Axes: m tokens before they are halved, n behind; e the two that make one; u distances, z those among the halved ones;
two segments, the same and another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from assay.blocks.encoders import Encoder
from assay.blocks.stacks import Branch, Layer, layer_segment, make_block
from assay.records import dataclass, replace
from assay.spec import Op, Segment, ops

Pooled = Literal["", "queries", "all"]
Axes = dict[str, tuple[str, int, int]]


@dataclass(frozen=True)
class FunnelAttention:
    """Every token sees every other; content, distance and segment are scored, each with a learned shift of queries.

    `pooled` says what is halved: queries alone see the tokens that they were made of.
    """

    heads: int
    width: int
    pooled: Pooled = ""

    part = "attention"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"g": self.heads, "k": self.width, "v": self.width, "two": 2, "e": 2 if self.pooled else None}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`, and from `whole[b m d]` where queries alone are halved."""
        source, m = ("whole", "m") if self.pooled == "queries" else (x, "n")
        made = ops(
            "attention",
            f"q = linear({x}[b n d], Wq[d g k]) -> [b n g k]",
            f"k = linear({source}[b {m} d], Wk[d g k], Bk[g k]) -> [b {m} g k]",
            f"v = linear({source}[b {m} d], Wv[d g v], Bv[g v]) -> [b {m} g v]",
            "q = scale(q[b n g k]) -> [b n g k]",
            f"k = keys(k[b {m} g k]) -> [b c g k]",
            f"v = keys(v[b {m} g v]) -> [b c g v]",
            "qw = add(q[b n g k], Shift_words[g k]) -> [b n g k]",
            "qr = add(q[b n g k], Shift_places[g k]) -> [b n g k]",
            "qs = add(q[b n g k], Shift_segments[g k]) -> [b n g k]",
        )
        if self.pooled == "queries":
            made += ops("attention", "sines = concat(behind[z d], before[m d]) -> [u d]")
        made += ops("attention", "r = linear(sines[u d], Wr[d g k]) -> [u g k]")
        made += ops("attention.scores", "s = contract(qw[b n g k], k[b c g k]) -> [b g n c]")
        made += ops(
            "attention",
            "pos = contract(qr[b n g k], r[u g k]) -> [b g n u]",
            "pos = slice(pos[b g n u]) -> [b g n c]",
            "pos = mul(pos[b g n c], apart[n c]) -> [b g n c]",
        )
        made += ops("embedding", "seg = linear(qs[b n g k], Segments[two g k]) -> [b n g two]")
        made += ops(
            "attention",
            "seg = take(seg[b n g two], at[b n c]) -> [b g n c]",
            "seg = mul(seg[b g n c], apart[n c]) -> [b g n c]",
        )
        made += ops(
            "attention.scores",
            "s = add(s[b g n c], pos[b g n c], seg[b g n c]) -> [b g n c]",
            "s = mask(s[b g n c]) -> [b g n c]",
            "p = softmax(s[b g n c]) -> [b g n c]",
            "o = contract(p[b g n c], v[b c g v]) -> [b n g v]",
        )
        return made + ops("attention", f"{y} = linear(o[b n g v], Wo[g v d], Bo[d]) -> [b n d]")


@dataclass(frozen=True)
class Halving(Layer):
    """A layer whose tokens are each the mean of two."""

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b m d]`."""
        made = ops("other", "whole = view(x[b m d]) -> [b m d]")
        made += ops("other", "x = columns(whole[b m d], stride=2) -> [b n d e]", "x = mean(x[b n d e]) -> [b n d]")
        return made + super().ops()


@dataclass(frozen=True)
class Funnel(Encoder):
    """Blocks of layers like the one of `layers`, each block half as long as that before it, then `more` of full length.

    `sizes` is how many layers a block has, `repeats` how often each of them runs; `pooled` is what the first layer of
    a block halves. `{j}` in a name is the block; weights of the last layers have names that begin with `decoder.`.
    """

    blocks: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    more: int = 0
    pooled: Pooled = "queries"

    @property
    def depth(self) -> int:
        """The blocks' layers."""
        return sum(self.blocks)

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The embedding, each block, the layers of full length, the head."""
        names = names if self.names is None else self.names
        plain = replace(self, layers=(), head=None)
        made = [*plain.once(names)]
        for block, size in enumerate(self.blocks):
            own = {weight: path.replace("{j}", str(block)) for weight, path in names.items()}
            made += self.block(block, size, own)
        if self.more:
            own = {**names, **{w.removeprefix("decoder."): p for w, p in names.items() if w.startswith("decoder.")}}
            sums = ops("other", "x = add(up[b n d], x[b n d]) -> [b n d]")
            made.append(Segment("up", make_block("up", sums, {"d": self.width}, own)))
            made.append(self.placed(self.layers[0], range(self.more), own, 0, "full length"))
        if self.head is not None:
            last = 0 if self.more else len(self.blocks) - 1
            block_of = make_block(self.head.segment, self.head.ops(), self.head.sizes(), names)
            axes = {} if not last else {"n": shortened(last), "t": shortened(last)}
            made.append(Segment(self.head.segment, block_of, axes=axes))
        return tuple(made)

    def once(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What is not repeated."""
        return super().segments(names)

    def block(self, block: int, size: int, names: Mapping[str, str]) -> list[Segment]:
        """The layers of a block; the first one runs once with tokens halved, then as the others do."""
        layer, runs = self.layers[0], self.repeats[block]
        if not block:
            return [replace(self.placed(layer, range(size), names, 0, "block 0"), passes=runs)]
        first = {weight: path.replace("{i}", "0") for weight, path in names.items()}
        step, *rest = layer.steps
        body = replace(step.branches[0].body, pooled=self.pooled)
        halving = Halving((replace(step, branches=(Branch(body),)), *rest), f"block {block}, halved")
        before = {"m": shortened(block - 1), **({"z": shortened(block, 2)} if self.pooled == "queries" else {})}
        made = [self.placed(halving, (0,), first, block, halving.kind, before)]
        if runs > 1:
            again = self.placed(layer, (0,), first, block, f"block {block}")
            made.append(replace(again, passes=runs - 1))
        if size > 1:
            made.append(replace(self.placed(layer, range(1, size), names, block, f"block {block}"), passes=runs))
        return made

    def placed(
        self,
        layer: Layer,
        at: Sequence[int],
        names: Mapping[str, str],
        block: int,
        name: str,
        before: Axes | None = None,
    ) -> Segment:
        """A layer over the tokens that its block has; `before` are those that it halves."""
        axes: Axes = {"n": shortened(block), **(before or {})}
        if "z" not in axes:  # twice as many distances as tokens
            axes["u"] = shortened(block, 2)
        return layer_segment(replace(layer, kind=name), at, self.width, names, axes, "layers.{i}.")


def shortened(times: int, factor: int = 1) -> tuple[str, int, int]:
    """How many tokens are left where they were halved so often."""
    return ("n", factor, 2**times)
