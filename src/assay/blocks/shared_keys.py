"""Layers that use the keys and values of an earlier layer again: Gemma 3n and Gemma 4 (Google DeepMind 2025).

Axes: p the width of a layer's own input.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.attention import Attention, Rope
from assay.blocks.ends import Embedding, Norm
from assay.blocks.mlp import Mlp
from assay.blocks.moe import Moe
from assay.blocks.stacks import Decoder, Layer, make_block
from assay.records import dataclass
from assay.spec import Op, Segment, ops

PLAIN = Norm(affine="none")


@dataclass(frozen=True)
class SharedKeysAttention(Attention):
    """Attention that may read an earlier layer's keys and values, or make values of its keys."""

    reuses: bool = False
    keys_are_values: bool = False  # one projection for both
    value_norm: Norm = PLAIN
    lends: str = ""  # what later layers call its keys and values, or this layer those of an earlier one

    def project(self, x: str) -> list[Op]:
        """Queries; keys and values where this layer makes them."""
        made = self.projected("q", f"{x}[b n d]", "b n", "g r k")
        if self.reuses:
            return made
        made += self.projected("k", f"{x}[b n d]", "b n", "g k")
        if self.keys_are_values:
            return made + ops("attention", "v = rename(k[b n g k]) -> [b n g v]")
        return made + self.projected("v", f"{x}[b n d]", "b n", "g v")

    def norms(self) -> list[Op]:
        """Norms of queries, keys and values."""
        assert self.qk_norm is not None
        made = self.qk_norm.ops("q", "q", "qn", "b n g r k", "k")
        if self.reuses:
            return made
        made += self.qk_norm.ops("k", "k", "kn", "b n g k", "k")
        return made + self.value_norm.ops("v", "v", "vn", "b n g v", "v")

    def turn(self) -> list[Op]:
        """Queries rotated, and keys where this layer makes them."""
        if not isinstance(self.positions, Rope):
            return []
        made = self.positions.ops("q", "b n g r k")
        return made if self.reuses else made + self.positions.ops("k", "b n g k")

    def remember(self) -> list[Op]:
        """Keys and values behind those of earlier passes; those that an earlier layer keeps."""
        keys, values = f"keys{self.lends}", f"values{self.lends}"
        if self.reuses:
            return ops(
                "attention",
                f"k = reuse({keys}[b n g k]{self.held()}) -> [b c g k]",
                f"v = reuse({values}[b n g v]{self.held()}) -> [b c g v]",
            )
        made = super().remember()
        if not self.lends:
            return made
        lent = (f"{keys} = view(k[b c g k]) -> [b c g k]", f"{values} = view(v[b c g v]) -> [b c g v]")
        return made + ops("attention", *lent)


@dataclass(frozen=True)
class SparsifiedMlp(Mlp):
    """A feed-forward layer whose gate keeps only what stands out of its row."""

    share: float = 0.95  # of a normal distribution that is cut off

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = super().ops(x, y)
        at = next(i for i, op in enumerate(made) if op.name == "z") + 1
        return [*made[:at], *ops("mlp", "z = sparsify(z[b n f]) -> [b n f]", share=self.share), *made[at:]]


@dataclass(frozen=True)
class LayerInput:
    """A gate of the stream times the layer's own input of this token, one of `own[b n Y p]`, projected back."""

    width: int
    activation: str
    layers: int = 1

    part = "mlp"
    tag = "l"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"p": self.width, "Y": self.layers}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        return ops(
            "mlp",
            f"e = linear({x}[b n d], Wli[d p]) -> [b n p]",
            f"e = {self.activation}(e[b n p]) -> [b n p]",
            "mine = first(own[b n Y p], at=layer) -> [b n p]",
            "e = mul(e[b n p], mine[b n p]) -> [b n p]",
            f"{y} = linear(e[b n p], Wlo[p d]) -> [b n d]",
        )


@dataclass(frozen=True)
class BesideMoe(Moe):
    """Experts beside a dense layer, each with norms of its own; the router reads a scaled norm of the stream.

    Axes: F the dense layer's width.
    """

    dense: int = 1
    norm: Norm = PLAIN
    model: int = 1  # the stream's width

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "F": self.dense}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        made = self.norm.ops(x, "xm", "m") + self.beside("xm", "yd") + self.norm.ops("yd", "yd", "pm1")
        made += self.choose(x) + self.norm.ops(x, "xe", "m2") + self.routed("xe", "ye")
        made += self.norm.ops("ye", "ye", "pm2")
        return made + ops("other", f"{y} = add(yd[b n d], ye[b n d]) -> [b n d]")

    def beside(self, x: str, y: str) -> list[Op]:
        """The dense layer."""
        return ops(
            "mlp",
            f"z = linear({x}[b n d], Wg[d F]) -> [b n F]",
            f"u = linear({x}[b n d], Wu[d F]) -> [b n F]",
            f"z = {self.activation}(z[b n F]) -> [b n F]",
            "u = mul(z[b n F], u[b n F]) -> [b n F]",
            f"{y} = linear(u[b n F], Wd[F d]) -> [b n d]",
        )

    def choose(self, x: str) -> list[Op]:
        """Indices `i[b n a]` and weights `w[b n a]`."""
        made = PLAIN.ops(x, "xr", "r") + ops("router", "xr = mul(xr[b n d], Sr[d]) -> [b n d]")
        return made + ops(
            "router",
            f"xr = scale(xr[b n d], by={self.model**-0.5!r}) -> [b n d]",
            "l = linear(xr[b n d], Wr[d e]) -> [b n e]",
            "l = softmax(l[b n e]) -> [b n e]",
            "i = topk(l[b n e]) -> [b n a]",
            "w = take(l[b n e], i[b n a]) -> [b n a]",
            "w = normalize(w[b n a]) -> [b n a]",
            "we = take(Se[e], i[b n a]) -> [b n a]",
            "w = mul(w[b n a], we[b n a]) -> [b n a]",
        )


@dataclass(frozen=True)
class ScaledLayer(Layer):
    """A layer whose output is multiplied by a stored number."""

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        return super().ops() + ops("other", "x = mul(x[b n d], Scalar[]) -> [b n d]")


@dataclass(frozen=True)
class ProjectedInput(Embedding):
    """What an assistant reads: an embedding and a state of the main model, D wide together, brought to its width."""

    given: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"d": self.width, "D": 2 * self.given}

    def ops(self) -> list[Op]:
        """From `given[b n D]` to `x[b n d]`."""
        return ops("other", "x = linear(given[b n D], Wpre[D d]) -> [b n d]")


@dataclass(frozen=True)
class AssistantDecoder(Decoder):
    """A decoder that hands a state back to the main model. Axes: o the main model's width."""

    given: int = 1

    def after_layers(self, names: Mapping[str, str]) -> list[Segment]:
        """The state for the main model, made of what the head reads."""
        made = ops("other", "state = linear(x[b n d], Wpost[d o]) -> [b n o]")
        return [Segment("state", make_block("state", made, {"d": self.width, "o": self.given}, names))]
