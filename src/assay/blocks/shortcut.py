"""A layer of two attentions and two feed-forward layers, with experts beside the second half (LongCat-Flash,
Meituan 2025, arXiv:2509.01322): the experts read what the first feed-forward layer reads, and their output is added
at the end. Some experts give back what they are given.

Axes: e experts with those that compute nothing, E those that compute, s the feed-forward layers' width.
"""

from __future__ import annotations

from assay.blocks.ends import Norm
from assay.blocks.latent import Latent
from assay.blocks.mlp import activate, feed_forward
from assay.blocks.moe import Router
from assay.blocks.rewritten import begun
from assay.blocks.stacks import Layer
from assay.records import dataclass, replace
from assay.spec import Op, ops


@dataclass(frozen=True)
class ZeroMoe:
    """Routed experts, `zero` of which are the identity. Work is counted as if a token chose none of those."""

    experts: int
    zero: int
    chosen: int
    width: int
    router: Router
    activation: str = "silu"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"e": self.experts + self.zero, "E": self.experts, "a": self.chosen, "f": self.width}

    def ops(self, x: str, y: str) -> list[Op]:
        """`y[b n d]` from `x[b n d]`."""
        part, axes = "experts", "[b n a f]"
        made = self.router.ops(x)
        made += ops(part, f"z = select({x}[b n d], Eg[e d f], i[b n a]) -> {axes}")
        made += ops(part, f"u = select({x}[b n d], Eu[e d f], i[b n a]) -> {axes}")
        made += activate(part, "z", "u", axes, self.activation)
        made += ops(part, f"u = select(u{axes}, Ed[E f d], i[b n a]) -> [b n a d]")
        return made + ops(part, f"{y} = combine(u[b n a d], w[b n a]) -> [b n d]")


@dataclass(frozen=True)
class ShortcutLayer(Layer):
    """Two halves, whose weights' names begin with `first.` and `second.`."""

    mixer: Latent = Latent(1, 1, 1, 1, 1)
    experts: ZeroMoe = ZeroMoe(1, 0, 1, 1, Router())
    width: int = 1
    norm: Norm = Norm()
    activation: str = "silu"

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**self.mixer.sizes(), **self.experts.sizes(), "s": self.width}

    def absorbed(self) -> ShortcutLayer:
        """The same layer with its latent attention run the other way."""
        return replace(self, mixer=self.mixer.absorbed())

    def ops(self) -> list[Op]:
        """`x[b n d]` from `x[b n d]`."""
        made = begun(self.half(), "first.")
        at = next(i for i, op in enumerate(made) if op.part == "mlp")
        made[at:at] = self.experts.ops("xm", "shortcut")
        made += begun(self.half(), "second.")
        return made + ops("other", "x = add(x[b n d], shortcut[b n d]) -> [b n d]")

    def half(self) -> list[Op]:
        """Attention and a feed-forward layer, a norm before each."""
        made = [*self.norm.ops("x", "xa", "a"), *self.mixer.ops("xa", "ya")]
        made += ops("other", "x = add(x[b n d], ya[b n d]) -> [b n d]")
        made += self.norm.ops("x", "xm", "m")
        made += feed_forward("mlp", "xm", "ym", "Wg Wu Wd", "s", True, self.activation, "")
        return made + ops("other", "x = add(x[b n d], ym[b n d]) -> [b n d]")
