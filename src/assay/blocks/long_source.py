"""Attention of encoders to long sources: windows and blocks, beside a few tokens that see all and are seen by all.

Axes: s blocks, z global tokens, y tokens at hand and either of them; u buckets of a bias of the distance.
"""

from __future__ import annotations

from assay.blocks.attention import Attention, of_this_pass
from assay.blocks.ends import Embedding, Norm
from assay.blocks.mlp import Mlp
from assay.blocks.rewritten import over
from assay.blocks.stacks import Layer
from assay.records import dataclass, replace
from assay.spec import Op, Tensor, ops


@dataclass(frozen=True)
class MarkedGlobal(Attention):
    """Attention within a window whose checkpoints hold a second set of projections, for tokens marked as global
    (Beltagy et al. 2020, 3.1). None is marked unless a caller does: they are stored and not run.
    """

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values; and what tokens marked as global would take in their place."""
        made = super().project(x)
        for name, axes in (("q", "g r k"), ("k", "g k"), ("v", "g v")):
            made += ops("attention", f"far = idle(Wfar{name}[d {axes}]) -> [d {axes}]")
            made += ops("attention", f"far = idle(Bfar{name}[{axes}]) -> [{axes}]")
        return made


@dataclass(frozen=True)
class BlockSparse(Attention):
    """Blocks of tokens that see their neighbours, the first and the last block, and some others at random
    (Zaheer et al. 2020).
    """

    block: int = 64
    random: int = 3

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "block": self.block, "random": self.random}

    def remember(self) -> list[Op]:
        """The same pass's keys and values."""
        return of_this_pass("block=block, random=random")


@dataclass(frozen=True)
class TransientGlobal(Attention):
    """Attention within a window, and to the sum of each block of tokens in each layer (Guo et al. 2021, 3.2)."""

    block: int = 16
    norm: Norm | None = None

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "block": self.block}

    def project(self, x: str) -> list[Op]:
        """Queries, keys and values; keys and values of the blocks by the same matrices."""
        made = super().project(x)
        made += ops("attention", f"far = blocks({x}[b n d], block=block) -> [b s d]")
        if self.norm is not None:
            made += self.norm.ops("far", "far", "far", "b s d")
        return made + ops(
            "attention",
            "kf = linear(far[b s d], Wk[d g k]) -> [b s g k]",
            "vf = linear(far[b s d], Wv[d g v]) -> [b s g v]",
        )

    def remember(self) -> list[Op]:
        """Tokens within reach, and every block."""
        return [
            *super().remember(),
            *ops("attention", "k = concat(k[b c g k], kf[b s g k]) -> [b y g k]"),
            *ops("attention", "v = concat(v[b c g v], vf[b s g v]) -> [b y g v]"),
        ]

    def attend(self) -> list[Op]:
        """As within a sequence, over tokens and blocks; two tables of distances."""
        made = over(super().attend(), "c", "y")
        if self.relative is None or not self.relative_here:
            return made
        at = next(index for index, op in enumerate(made) if op.name == "rel")
        tables = ops(
            "embedding",
            "near = gather(at[n c], Rel[u g r]) -> [n c g r]",
            "off = gather(at[n s], Relfar[u g r]) -> [n s g r]",
            "rel = concat(near[n c g r], off[n s g r]) -> [n y g r]",
        )
        return [*made[:at], *tables, *made[at + 1 :]]


@dataclass(frozen=True)
class GlobalTokens(Embedding):
    """Words and positions, beside a few global tokens that are no words (Phang et al. 2022)."""

    count: int = 32
    spare: bool = False  # a second table of words is stored, and never looked into

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "z": self.count}

    def ops(self) -> list[Op]:
        """From token ids to `x[b n d]`, and `far[b z d]`."""
        made = [*super().ops(), *ops("embedding", "far = gather(each[b z], Efar[z d]) -> [b z d]")]
        return made + (ops("embedding", "spare = idle(Espare[V d]) -> [V d]") if self.spare else [])


@dataclass(frozen=True)
class GlobalLayer(Layer):
    """A layer of two streams: tokens, which see their block and the global tokens, and global tokens, which see all.

    Both pass the same matrices, and norms of their own before attention (Phang et al. 2022, arXiv:2208.04347).
    """

    attention: Attention = Attention(1, 1, 1)
    mlp: Mlp = Mlp(1)
    norm: Norm = Norm()
    count: int = 32
    block: int = 512
    offset: int = 0  # tokens of the first block where every other layer's blocks are staggered

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        own = {"z": self.count, "block": self.block, "offset": self.offset or None}
        return {**self.attention.sizes(), **self.mlp.sizes(), **own}

    def absorbed(self) -> None:
        """There is no other way to run it."""

    def ops(self) -> list[Op]:
        """`x[b n d]` and `far[b z d]` from the same."""
        norm, attention = self.norm, self.attention
        offset = ", offset=offset" if self.offset else ""
        made = [*norm.ops("x", "xa", "a"), *norm.ops("far", "xz", "z", "b z d")]
        made += attention.project("xa")
        made += [op for one in ("q", "k", "v") for op in self.project_far(one)]
        for name, axes in (("k", "g k"), ("v", "g v")):
            made += ops("attention", f"{name} = keys({name}[b n {axes}], block=block{offset}) -> [b c {axes}]")
            made += ops("attention", f"{name} = concat({name}[b c {axes}], {name}z[b z {axes}]) -> [b y {axes}]")
        made += over(attention.attend(), "c", "y")
        made += renamed(
            over(over(attention.attend(), "c", "y"), "n", "z"), {"q": "qz", "s": "sz", "p": "pz", "o": "oz"}
        )
        made += ops(
            "attention",
            "ya = linear(o[b n g r v], Wo[g r v d]) -> [b n d]",
            "yz = linear(oz[b z g r v], Wo[g r v d]) -> [b z d]",
        )
        made += ops("other", "x = add(x[b n d], ya[b n d]) -> [b n d]", "far = add(far[b z d], yz[b z d]) -> [b z d]")
        made += [*norm.ops("x", "xm", "m"), *norm.ops("far", "xmz", "m", "b z d")]
        made += self.mlp.ops("xm", "ym")
        made += renamed(over(self.mlp.ops("xmz", "ymz"), "n", "z"), {"u": "uz"})
        return made + ops(
            "other", "x = add(x[b n d], ym[b n d]) -> [b n d]", "far = add(far[b z d], ymz[b z d]) -> [b z d]"
        )

    def project_far(self, one: str) -> list[Op]:
        """The same projection of the global tokens."""
        axes = "g r k" if one == "q" else "g k" if one == "k" else "g v"
        return ops("attention", f"{one}z = linear(xz[b z d], W{one}[d {axes}]) -> [b z {axes}]")


def renamed(made: list[Op], names: dict[str, str]) -> list[Op]:
    """The same ops over tensors of other names."""
    return [
        replace(
            op,
            name=names.get(op.name, op.name),
            inputs=tuple(Tensor(names.get(t.name, t.name), t.axes) for t in op.inputs),
        )
        for op in made
    ]
