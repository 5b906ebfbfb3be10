"""A fixed number of latent vectors that read a sequence once, pass layers of their own, and are read by queries.

Axes: z latent vectors, P queries (a row each of a table of positions), d the latents' width, j the tokens', g heads.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.attention import Attention
from assay.blocks.encoders import Encoder
from assay.blocks.ends import VOCABULARY, Norm
from assay.blocks.mlp import Mlp
from assay.blocks.rewritten import begun, over
from assay.blocks.stacks import layer_segments, make_block
from assay.records import dataclass
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class Reading:
    """Learned queries that attend to another sequence, and an MLP behind them (Jaegle et al. 2021, figure 2)."""

    name: str  # before the names of its weights
    attention: Attention
    mlp: Mlp
    norm: Norm
    residual: bool
    axes: tuple[str, str, str, str]  # queries, their width, what is read, its width

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.attention.sizes(), **self.mlp.sizes()}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y` from what is read, `x`."""
        z, d, n, j = self.axes
        at = f"[b {z} {d}]"
        made = ops("embedding", f"first = repeat(Queries[{z} {d}]) -> {at}")
        made += self.norm.ops("first", "a", "a", at[1:-1], d) + self.norm.ops(x, "u", "n", f"b {n} {j}", j)
        made += ops(
            "attention",
            f"q = linear(a{at}, Wq[{d} g k], Bq[g k]) -> [b {z} g k]",
            f"k = linear(u[b {n} {j}], Wk[{j} g k], Bk[g k]) -> [b {n} g k]",
            f"v = linear(u[b {n} {j}], Wv[{j} g v], Bv[g v]) -> [b {n} g v]",
            f"k = keys(k[b {n} g k]) -> [b c g k]",
            f"v = keys(v[b {n} g v]) -> [b c g v]",
        )
        made += ops(
            "attention.scores",
            f"s = contract(q[b {z} g k], k[b c g k]) -> [b g {z} c]",
            f"s = scale(s[b g {z} c]) -> [b g {z} c]",
            f"p = softmax(s[b g {z} c]) -> [b g {z} c]",
            f"o = contract(p[b g {z} c], v[b c g v]) -> [b {z} g v]",
        )
        made += ops("attention", f"{y} = linear(o[b {z} g v], Wo[g v {d}], Bo[{d}]) -> {at}")
        if self.residual:
            made += ops("other", f"{y} = add({y}{at}, first{at}) -> {at}")
        made += self.norm.ops(y, "m", "m", at[1:-1], d)
        made += ops(
            "mlp",
            f"m = linear(m{at}, Wu[{d} f], Bu[f]) -> [b {z} f]",
            f"m = {self.mlp.activation}(m[b {z} f]) -> [b {z} f]",
            f"m = linear(m[b {z} f], Wd[f {d}], Bd[{d}]) -> {at}",
        )
        return begun([*made, *ops("other", f"{y} = add({y}{at}, m{at}) -> {at}")], f"{self.name}.")


@dataclass(frozen=True)
class LatentArray(Encoder):
    """Perceiver IO (Jaegle et al. 2021, arXiv:2107.14795): work grows with the tokens only where they are read."""

    entry: Reading | None = None
    answer: Reading | None = None
    latents: int = 0
    across: int = 0  # the latents' width

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """The tokens, what reads them, each distinct layer, what reads the latents, and the vocabulary."""
        names = names if self.names is None else self.names
        assert self.entry is not None
        assert self.answer is not None
        rows = self.limit or 0
        sizes = {"z": self.latents, "d": self.across, "j": self.width, "P": rows}
        own = {"n": self.latents, "t": self.latents, "past": 0}
        head = ops(VOCABULARY, "logits = linear(y[b P j], E[V j], Bout[V]) -> [b P V]")
        start = over_width(self.embedding.ops())
        return (
            Segment("embedding", make_block("embedding", start, {**self.embedding.sizes(), "j": self.width}, names)),
            Segment("entry", make_block("entry", self.entry.ops("x", "x"), {**sizes, **self.entry.sizes()}, names)),
            *layer_segments(self.layers, self.across, names, own),
            Segment("answer", make_block("answer", self.answer.ops("x", "y"), {**sizes, **self.answer.sizes()}, names)),
            Segment("head", make_block("head", head, {**sizes, "V": self.embedding.vocab}, names)),
        )


def over_width(made: list[Op]) -> list[Op]:
    """The tokens' ops, their width called j."""
    return over(made, "d", "j")
