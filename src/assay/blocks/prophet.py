"""ProphetNet's decoder: beside the stream of tokens, one stream for each of the next few tokens that are predicted
(Qi et al. 2020, arXiv:2001.04063). All pass the same matrices; a predicting token sees the main stream and its own.

Axes: z streams, e a token's own key, a that and the main stream's; u buckets of a bias of the distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.blocks.attention import Attention, CrossAttention
from assay.blocks.ends import VOCABULARY, Embedding, Norm
from assay.blocks.mlp import Mlp
from assay.blocks.stacks import Layer
from assay.records import dataclass, replace
from assay.spec import Op, Tensor, ops


def streamed(made: Iterable[Op], names: Mapping[str, str]) -> list[Op]:
    """The same ops for each of the predicting streams z: tensors of `names` by other names, and with that axis."""

    def of(tensor: Tensor) -> Tensor:
        if tensor.name not in names:
            return tensor
        return Tensor(names[tensor.name], ("b", "z", *tensor.axes[1:]))

    return [
        replace(op, name=names[op.name], inputs=tuple(map(of, op.inputs)), axes=("b", "z", *op.axes[1:])) for op in made
    ]


@dataclass(frozen=True)
class Streams(Embedding):
    """Words and positions, and the streams' own vectors at the next position."""

    count: int = 2

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "z": self.count}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]` and `f[b z n d]`."""
        made = ops(
            "embedding",
            "x = gather(ids[b n], E[V d]) -> [b n d]",
            "p = gather(at[n], E_position[P d]) -> [n d]",
            "x = add(x[b n d], p[n d]) -> [b n d]",
            "f = gather(each[z], Engram[z d]) -> [z d]",
            "p = gather(next[n], E_position[P d]) -> [n d]",
            "f = add(f[z d], p[n d]) -> [z n d]",
            "f = repeat(f[z n d]) -> [b z n d]",
        )
        if self.norm is not None:
            made += self.norm.ops("x", "x", "e")
            made += self.norm.ops("f", "f", "e", "b z n d")
        return made


@dataclass(frozen=True)
class StreamLayer(Layer):
    """Attention of both kinds of streams, attention to the source, the MLP; a norm behind each sum."""

    attention: Attention = Attention(1, 1, 1)
    cross: CrossAttention = CrossAttention(1, 1, 1)
    mlp: Mlp = Mlp(1)
    norm: Norm = Norm()
    count: int = 2
    buckets: int = 32  # of distances, which each token weighs by a projection of its own

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.attention.sizes(), **self.mlp.sizes(), "z": self.count, "u": self.buckets}

    def absorbed(self) -> None:
        """There is no other way to run it."""

    def ops(self) -> list[Op]:
        """`x[b n d]` and `f[b z n d]` from the same."""
        made = [*self.project(), *self.main(), *self.predicting(), *self.add(0)]
        made += [*self.across(), *self.add(1)]
        feed = self.mlp.ops("x", "y")
        made += [*feed, *streamed(feed, {"x": "f", "u": "uf", "y": "yf"})]
        return made + self.add(2)

    def add(self, index: int) -> list[Op]:
        """Both sums and their norms."""
        made = ops("other", "x = add(x[b n d], y[b n d]) -> [b n d]", "f = add(f[b z n d], yf[b z n d]) -> [b z n d]")
        made += self.norm.ops("x", "x", f"t{index}")
        return made + self.norm.ops("f", "f", f"t{index}", "b z n d")

    def project(self) -> list[Op]:
        """Queries, keys, values and the weights of distances of all streams."""
        own = self.attention.project("x")
        own += ops("attention", "rel = linear(x[b n d], Wrel[d u g r], Brel[u g r]) -> [b n u g r]")
        return [*own, *streamed(own, {"x": "f", "q": "qf", "k": "kf", "v": "vf", "rel": "relf"})]

    def main(self) -> list[Op]:
        """The tokens among themselves, as in any decoder."""
        axes = "[b g r n c]"
        made = self.attention.remember()
        for op in self.attention.attend():
            if op.kind == "mask":
                made += ops("attention.scores", f"near = take(rel[b n u g r], at{axes}) -> {axes}")
                made += ops("attention.scores", f"s = add(s{axes}, near{axes}) -> {axes}")
            made.append(op)
        return made + self.attention.emit("x", "y")

    def predicting(self) -> list[Op]:
        """A predicting token over the tokens so far and its own stream."""
        part = "attention.scores"
        q, past, own = "qf[b z n g r k]", "[b z g r n c]", "[b z g r n e]"
        whole = "[b z g r n a]"
        made = ops(  # of its own stream it sees itself alone
            "attention",
            "kf = keys(kf[b z n g k], reach=0) -> [b z e g k]",
            "vf = keys(vf[b z n g v], reach=0) -> [b z e g v]",
        )
        made += ops(
            part,
            f"sc = contract({q}, k[b c g k]) -> {past}",
            f"so = contract({q}, kf[b z e g k]) -> {own}",
            f"sf = concat(sc{past}, so{own}) -> {whole}",
            f"sf = scale(sf{whole}) -> {whole}",
            f"nearf = take(relf[b z n u g r], at{whole}) -> {whole}",
            f"sf = add(sf{whole}, nearf{whole}) -> {whole}",
            f"sf = mask(sf{whole}) -> {whole}",
            f"pf = softmax(sf{whole}) -> {whole}",
            f"pc = slice(pf{whole}) -> {past}",
            f"po = slice(pf{whole}) -> {own}",
            f"of = contract(pc{past}, v[b c g v]) -> [b z n g r v]",
            f"oo = contract(po{own}, vf[b z e g v]) -> [b z n g r v]",
            "of = add(of[b z n g r v], oo[b z n g r v]) -> [b z n g r v]",
        )
        return made + streamed(self.attention.emit("x", "y"), {"o": "of", "y": "yf"})

    def across(self) -> list[Op]:
        """All streams over the source, whose keys and values are made once."""
        own = [*self.cross.project("x"), *self.cross.remember(), *self.cross.attend(), *self.cross.emit("x", "y")]
        again = [op for op in own if op.name not in ("k", "v")]
        return [*own, *streamed(again, {"x": "f", "q": "qf", "s": "sf", "p": "pf", "o": "of", "y": "yf"})]


@dataclass(frozen=True)
class StreamHead:
    """The vocabulary from each predicting stream."""

    vocab: int
    width: int
    tied: bool = True
    count: int = 2

    segment = "head"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"V": self.vocab, "d": self.width, "z": self.count}

    def ops(self) -> list[Op]:
        """From `f[b z n d]` to `logits[b z t V]`, t of the n positions."""
        table = "E[V d]" if self.tied else "Wout[d V]"
        made = ops("head", "y = keep(f[b z n d]) -> [b z t d]")
        return made + ops(VOCABULARY, f"logits = linear(y[b z t d], {table}) -> [b z t V]")
