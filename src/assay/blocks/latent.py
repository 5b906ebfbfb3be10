"""Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1): keys and values are made from a
latent of width z that is cached in their place, beside one rotary key of width p that all heads share.

Expanded, keys and values of the whole cache are made again at each pass, as the public implementation does;
absorbed, the matrices that make them are moved to the queries' and the outputs' side, and the latent is attended to.

Axes: z the latent, p the rotary part of a head, o the rest of it, l the rank of the queries.
"""

from __future__ import annotations

from typing import Literal

from assay.blocks.attention import Rope
from assay.blocks.ends import Norm
from assay.records import dataclass, replace
from assay.spec import Op, ops


@dataclass(frozen=True)
class Latent:
    """Heads share a latent of keys and values; queries come through a rank of their own where `query_rank` is set."""

    heads: int
    latent: int  # z, kv_lora_rank
    plain: int  # o, the part of a head without positions
    rotary: int  # p, the part with
    value_width: int
    query_rank: int | None = None
    norm: Norm | None = Norm()  # of the latent, and of the queries' rank
    positions: Rope | None = Rope()
    bias: str = ""  # which of a (both down projections), o have one
    scale: float | None = None
    form: Literal["expanded", "absorbed"] = "expanded"

    part = "attention"
    tag = "a"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {
            "h": self.heads,
            "z": self.latent,
            "o": self.plain,
            "p": self.rotary,
            "k": self.plain + self.rotary,
            "v": self.value_width,
            "l": self.query_rank,
        }

    def absorbed(self) -> Latent:
        """The same weights, run the other way."""
        return replace(self, form="absorbed")

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        attend = self.expand() if self.form == "expanded" else self.absorb()
        return [*self.queries(x), *self.remember(x), *attend, *self.emit(x, y)]

    def emit(self, x: str, y: str) -> list[Op]:
        """The output projection."""
        bias = ", Bo[d]" if "o" in self.bias else ""
        return ops("attention", f"{y} = linear(o[b n h v], Wo[h v d]{bias}) -> [b n d]")

    def queries(self, x: str) -> list[Op]:
        """Queries, through their rank where there is one, the last part of each rotated."""
        if self.query_rank is None:
            made = ops("attention", f"q = linear({x}[b n d], Wq[d h k]) -> [b n h k]")
        else:
            bias = ", Bqa[l]" if "a" in self.bias else ""
            made = ops("attention", f"l = linear({x}[b n d], Wqa[d l]{bias}) -> [b n l]")
            if self.norm is not None:
                made += self.norm.ops("l", "l", "qa", "b n l", "l")
            made += ops("attention", "q = linear(l[b n l], Wqb[l h k]) -> [b n h k]")
        made += ops("attention", "qo = slice(q[b n h k]) -> [b n h o]", "qp = slice(q[b n h k]) -> [b n h p]")
        return made + (self.positions.ops("qp", "b n h p") if self.positions is not None else [])

    def remember(self, x: str) -> list[Op]:
        """The latent and the shared rotary key, behind those of earlier passes."""
        bias = (", Bkva[z]", ", Bkvp[p]") if "a" in self.bias else ("", "")
        made = ops("attention", f"z = linear({x}[b n d], Wkva[d z]{bias[0]}) -> [b n z]")
        made += ops("attention", f"kp = linear({x}[b n d], Wkvp[d p]{bias[1]}) -> [b n p]")
        if self.norm is not None:
            made += self.norm.ops("z", "z", "kva", "b n z", "z")
        return made + self.keep()

    def keep(self) -> list[Op]:
        """The shared key rotated, and both behind those kept."""
        made = [] if self.positions is None else self.positions.ops("kp", "b n p")
        limit = self.limit()
        return made + ops(
            "attention", f"z = append(z[b n z]{limit}) -> [b c z]", f"kp = append(kp[b n p]{limit}) -> [b c p]"
        )

    def limit(self) -> str:
        """What part of the cache a query sees, as an attribute: all of it."""
        return ""

    def soften(self) -> list[Op]:
        """From scores to weights."""
        part, axes = "attention.scores", "[b h n c]"
        made = ops(part, f"s = scale(s{axes}) -> {axes}", by=self.scale)
        return made + ops(
            part, f"s = mask(s{axes}{self.sight()}) -> {axes}", f"a = softmax(s{axes}{self.sink()}) -> {axes}"
        )

    def sight(self) -> str:
        """An operand of the mask, beside the order of the tokens: none."""
        return ""

    def sink(self) -> str:
        """A learned term of each head's sum, where there is one."""
        return ""

    def expand(self) -> list[Op]:
        """Keys and values of every head, made from the latents at hand."""
        return [
            *ops("attention", "ko = linear(z[b c z], Wkb[z h o]) -> [b c h o]"),
            *ops("attention", "v = linear(z[b c z], Wvb[z h v]) -> [b c h v]"),
            *ops("attention", "k = concat(ko[b c h o], kp[b c p]) -> [b c h k]"),
            *ops("attention", "q = concat(qo[b n h o], qp[b n h p]) -> [b n h k]"),
            *ops("attention.scores", "s = contract(q[b n h k], k[b c h k]) -> [b h n c]"),
            *self.soften(),
            *ops("attention.scores", "o = contract(a[b h n c], v[b c h v]) -> [b n h v]"),
        ]

    def absorb(self) -> list[Op]:
        """Queries brought to the latent's side; every head attends to the same latents."""
        part = "attention.scores"
        return [
            *ops("attention", "qz = linear(qo[b n h o], Wkb[z h o]) -> [b n h z]"),
            *ops(part, "s = contract(qz[b n h z], z[b c z]) -> [b h n c]"),
            *ops(part, "sp = contract(qp[b n h p], kp[b c p]) -> [b h n c]"),
            *ops(part, "s = add(s[b h n c], sp[b h n c]) -> [b h n c]"),
            *self.soften(),
            *ops(part, "oz = contract(a[b h n c], z[b c z]) -> [b n h z]"),
            *ops("attention", "o = linear(oz[b n h z], Wvb[z h v]) -> [b n h v]"),
        ]


@dataclass(frozen=True)
class GatedLatent(Latent):
    """The same with a gate of each head's output (Ling 3)."""

    def emit(self, x: str, y: str) -> list[Op]:
        """The gate and the output projection."""
        gate = ops(
            "attention",
            f"g = linear({x}[b n d], Wgate[d h]) -> [b n h]",
            "g = sigmoid(g[b n h]) -> [b n h]",
            "o = mul(o[b n h v], g[b n h]) -> [b n h v]",
        )
        return gate + super().emit(x, y)
