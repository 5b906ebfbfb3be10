"""A decoder that puts a learned prompt before the text, and lets all tokens of the first pass see each other (CPM-Ant).

Axes: W words and the prompts' vectors, p the prompt, z prompt and text, S segments; u relative distances and segments.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.blocks.attention import Attention
from assay.blocks.ends import Embedding
from assay.blocks.stacks import Decoder, layer_segments, make_block
from assay.records import dataclass
from assay.spec import Op, Place, Segment, ops


@dataclass(frozen=True)
class PromptedEmbedding(Embedding):
    """Words behind a prompt, both of one table, plus a vector of each segment."""

    rows: int = 1  # of the table
    segments: int = 1

    def sizes(self) -> dict[str, int | None]:
        """Axis sizes."""
        return {"W": self.rows, "d": self.width, "S": self.segments}

    def ops(self) -> list[Op]:
        """From token ids to `x[b z d]`."""
        return ops(
            "embedding",
            "words = gather(ids[b n], E[W d]) -> [b n d]",
            "prompt = gather(each[b p], E[W d]) -> [b p d]",
            "x = concat(prompt[b p d], words[b n d]) -> [b z d]",
            "kinds = gather(segment[b z], E_segment[S d]) -> [b z d]",
            "x = add(x[b z d], kinds[b z d]) -> [b z d]",
        )


@dataclass(frozen=True)
class WholeAttention(Attention):
    """Attention in which tokens of the first pass all see each other, and later ones what came before."""

    def held(self) -> str:
        """Everything stays in sight."""
        return ", whole=True"


@dataclass(frozen=True)
class PromptedDecoder(Decoder):
    """A decoder whose layers have `prompt` more tokens in the first pass, and as many more behind them later."""

    prompt: int = 0

    def segments(self, names: Mapping[str, str]) -> tuple[Segment, ...]:
        """What occurs once, and the layers over prompt and text; the head reads the text alone."""
        names = names if self.names is None else self.names
        words = make_block("embedding", self.embedding.ops(), self.embedding.sizes(), names)
        made = [Segment("embedding", words, axes={"p": ("first", self.prompt)})]
        more: dict[str, Place] = {
            "n": (("n", 1), ("first", self.prompt)),
            "past": (("past", 1), ("later", self.prompt)),
        }
        made += layer_segments(self.layers, self.width, names, more)
        if self.head is not None:
            end = self.head.segment
            made.append(Segment(end, make_block(end, self.head.ops(), self.head.sizes(), names)))
        return tuple(made)
