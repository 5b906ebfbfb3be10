"""Modules that predict further tokens (DeepSeek-AI 2024, arXiv:2412.19437, section 2.2): each reads the state behind
the last layer beside the embedding of the next token, runs one more layer, and ends in a head.

Published files number them behind the layers and store the embedding and the head once more in each.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.ends import Norm
from assay.blocks.stacks import Decoder, Layer, layer_segment
from assay.records import dataclass
from assay.spec import Op, Segment, ops


@dataclass(frozen=True)
class FurtherLayer(Layer):
    """The steps of a layer, between a projection of two normed streams and a head. Axes: D both streams, V words."""

    vocab: int = 1
    width: int = 1
    norm: Norm = Norm()

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {**super().sizes(), "V": self.vocab, "D": 2 * self.width}

    def ops(self) -> list[Op]:
        """From `x[b n d]` and the next tokens' ids to logits."""
        made = ops("embedding", "next = gather(next_ids[b n], Enext[V d]) -> [b n d]")
        made += self.norm.ops("next", "next", "next") + self.norm.ops("x", "x", "state")
        made += ops("other", "both = concat(next[b n d], x[b n d]) -> [b n D]")
        made += ops("other", "x = linear(both[b n D], Wboth[D d]) -> [b n d]")
        made += super().ops() + self.norm.ops("x", "x", "further")
        made += ops("head", "y = keep(x[b n d]) -> [b t d]")
        return made + ops("head.vocabulary", "logits = linear(y[b t d], Wfurther[d V]) -> [b t V]")


@dataclass(frozen=True)
class FurtherDecoder(Decoder):
    """A decoder with modules that predict further tokens, stored as layers behind the last."""

    further: tuple[FurtherLayer, ...] = ()

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """Those of the decoder, and a segment for each distinct module."""
        names = names if self.names is None else self.names
        made = list(super().segments(names))
        for layer in dict.fromkeys(self.further):
            at = [self.depth + j for j, other in enumerate(self.further) if other == layer]
            made.append(layer_segment(layer, at, self.width, names, {}, "layers.{i}."))
        return tuple(made)


def further_names(layer: str) -> dict[str, str]:
    """Where a module's own weights are stored below its place among the layers."""
    return {
        "Enext": f"{layer}embed_tokens.weight",
        "Gnext": f"{layer}enorm.weight",
        "Gstate": f"{layer}hnorm.weight",
        "Wboth": f"{layer}eh_proj.weight",
        "Gfurther": f"{layer}shared_head.norm.weight",
        "Wfurther": f"{layer}shared_head.head.weight",
    }
