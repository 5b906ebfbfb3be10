"""What a description is of: a decoder, an encoder, both with attention between them, a transformer of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.errors import SourceError
from assay.records import dataclass
from assay.sources.described_layers import IN_LAYER
from assay.sources.described_stacks import ABOUT, ORDER, SIDES, TEXT, read_decoder
from assay.sources.fields import Section

if TYPE_CHECKING:
    from assay.blocks import Decoder
    from assay.blocks.encoder_decoder import EncoderDecoder
    from assay.blocks.towers import Tower

    Stack = Decoder | EncoderDecoder | Tower


def _encoder(c: Section) -> Stack:
    from assay.sources.described_encoders import read_encoder  # a decoder needs none of it

    return read_encoder(c)


def _halves(c: Section) -> Stack:
    from assay.sources.described_encoders import read_halves

    return read_halves(c)


def _tower(c: Section) -> Stack:
    from assay.sources.described_towers import read_tower

    return read_tower(c)


@dataclass(frozen=True)
class Kind:
    """One kind of description: its reader and its keys."""

    read: Callable[[Section], Stack]
    keys: tuple[str, ...]


KINDS: dict[str, Kind] = {
    "decoder": Kind(read_decoder, (*ABOUT, *(key for key in TEXT if key != "cross"))),
    "encoder": Kind(_encoder, (*ABOUT, *(key for key in TEXT if key != "cross"), "pooler", "layer_groups")),
    "encoder-decoder": Kind(_halves, (*ABOUT, *TEXT, *SIDES)),
    "vision": Kind(
        _tower,
        (*ABOUT, *ORDER, *(key for key in IN_LAYER if key != "cross"), "patches", "pooler", "probe"),
    ),
}


def kind_of(c: Section) -> str:
    """What a description is of, by its word or by its tables. Raises SourceError for keys of another kind."""
    halves = any(side in c.data for side in SIDES)
    kind = c.word("kind", "encoder-decoder" if halves else "decoder", KINDS)
    allowed = KINDS[kind].keys
    for key in c.data:
        others = [name for name, other in KINDS.items() if key in other.keys]
        if key not in allowed and others:
            have = "have" if others[1:] else "has"
            raise SourceError(f"{c.where}: {key} says nothing where kind is {kind}; {' and '.join(others)} {have} it")
    c.known(allowed)
    return kind
