"""Descriptions of encoders, and of encoders with a decoder behind them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from assay.blocks import Final, Norm
from assay.blocks.disentangled import Distances
from assay.blocks.encoder_decoder import EncoderDecoder, Frames, of
from assay.blocks.encoders import Encoder, MaskedHead, Pooler, Shared, Tables, Together
from assay.blocks.stacks import Ending, is_named
from assay.errors import SourceError
from assay.records import defaults_of
from assay.sources.describable import NORMS, Role
from assay.sources.described_layers import read_layers, read_norm, read_positions
from assay.sources.described_stacks import (
    SIDES,
    TEXT,
    final_norm,
    is_none,
    reach,
    read_decoder,
    read_embedding,
    rows_of,
)
from assay.sources.fields import Section, build

FRAME_STRIDE = 2  # of the second convolution over frames


def read_encoder(c: Section) -> Encoder:
    """An encoder by itself, and what stands behind it."""
    vocab, width, depth = c.size("vocab"), c.size("width"), c.depth("layers")
    norm = read_norm(c)
    embedding = _tables(c, vocab, width, norm)
    role = Role(encodes=True, span=getattr(embedding, "span", None))
    groups = c.maybe("layer_groups")
    if groups is not None and groups > depth:
        c.fail("layer_groups", f"an integer of at most {c.path('layers')}, {int(depth)}")
    if groups is not None and "layer" in c.data:
        raise SourceError(f"{c.where}: {c.path('layer')} says nothing where layer_groups is set: layers are alike")
    layers = read_layers(c, depth, width, role)
    limit, trained = reach(c, dict(embedding.tables).get("position"), embedding.offset)
    made: dict[str, Any] = {
        "embedding": embedding,
        "layers": layers,
        "head": _encoded(c, embedding, norm),
        "limit": limit,
        "trained": trained,
        "final": final_norm(c, norm),
    }
    if groups is None:
        return Encoder(**made)
    runs = tuple(depth // groups + (group < depth % groups) for group in range(groups))
    return Shared(**{**made, "layers": layers[:1]}, runs=runs)


def _tables(c: Section, vocab: int, width: int, norm: Norm) -> Tables:
    """Words beside tables of positions, token types and the like, each with so many rows."""
    table = c.child("embedding")
    unread = ("vocab", "width", "sinusoid", "angles", "frequencies")
    table.known(name for name in defaults_of(Distances) if name not in unread)
    if read_positions(c) == "sinusoidal":
        c.fail("positions", "another: an encoder by itself adds tables of its own")
    rows = rows_of(c, table)
    if rows is None and table.has("positions"):
        c.fail("positions", f'"learned" where {table.path("positions")} is set')
    if table.has("bias") and not table.has("narrow"):
        raise SourceError(f"{c.where}: {table.path('bias')} says nothing where {table.path('narrow')} is not set")
    positions = () if rows is None else (("position", rows),)
    further = tuple((name, table.child("tables").size(name)) for name in table.child("tables").data)
    kind = Tables
    if table.has("span"):
        kind = Distances
    if table.has("span_norm") and kind is Tables:
        raise SourceError(f"{c.where}: {table.path('span_norm')} says nothing where {table.path('span')} is not set")
    for name, _ in further:
        if not name.isidentifier() or not name.isascii() or name == "position":
            raise SourceError(f"{c.where}: {table.child('tables').path(name)} is no name of a further table")
    given = {
        "vocab": vocab, "width": width, "positions": None, "sinusoid": False,
        "tables": positions + further, "angles": None, "frequencies": None,
    }  # fmt: skip
    made: Tables = build(kind, table, given, kind(vocab, width), words={Norm: NORMS}, norm=norm)
    return made


def _encoded(c: Section, embedding: Tables, norm: Norm) -> Ending | None:
    """What an encoder ends in: the head of a masked-language model, a pooler, both, or nothing."""
    pooler = read_pooler(c, embedding.width, norm, None) if c.has("pooler") else None
    if is_none(c, "head") or (pooler is not None and "head" not in c.data):
        c.flag("tied", False)
        return pooler
    table = c.child("head")
    table.known(name for name in defaults_of(MaskedHead) if name not in ("vocab", "width", "tied"))
    tied, width = c.flag("tied", False), embedding.width
    inner = width if embedding.narrow is None else embedding.narrow
    base = MaskedHead(embedding.vocab, width, inner, norm=norm)
    given = {"vocab": embedding.vocab, "width": width, "tied": tied}
    made: MaskedHead = build(MaskedHead, table, given, base, words={Norm: NORMS}, norm=norm)
    if tied and (made.inner or width) != inner:
        table.fail("inner", f"the width of the embedding, {int(inner)}, as the two are tied")
    return made if pooler is None else Together((pooler, made))


def read_pooler(c: Section, width: int, norm: Norm, final: Norm | None) -> Pooler:
    """Tokens through a dense layer to a vector or to labels; `norm` stands before it where layers end in none."""
    table = c.child("pooler")
    table.known(name for name in defaults_of(Pooler) if name not in ("width", "name"))
    base = Pooler(width, norm=final)
    made: Pooler = build(Pooler, table, {"width": width, "name": "pool"}, base, words={Norm: NORMS}, norm=norm)
    return made


def read_halves(c: Section) -> EncoderDecoder:
    """An encoder and a decoder; their tables are laid over what is common to both."""
    for side, keys in SIDES.items():
        c.child(side).known(keys)
    common = {key: c.data[key] for key in TEXT if key in c.data}
    source = c.overlaid({key: value for key, value in common.items() if key != "cross"}, c, ["encoder"])
    target = c.overlaid(common, c, ["decoder"])
    encoder = _half(source)
    decoder = read_decoder(target, Role(source=encoder.width))
    framed = isinstance(encoder.embedding, Frames)
    return EncoderDecoder(
        encoder,
        decoder,
        source_tokens=FRAME_STRIDE * encoder.limit if framed and encoder.limit else None,
        source_stride=FRAME_STRIDE if framed else 1,
    )


def _half(c: Section) -> Encoder:
    """The encoder of an encoder-decoder."""
    width, depth, norm = c.size("width"), c.depth("layers"), read_norm(c)
    layers = read_layers(c, depth, width, Role(encodes=True))
    frames = c.child("frames")
    embedding = _frames(frames, c, width) if frames.data else read_embedding(c, c.size("vocab"), width, norm)
    limit, trained = (embedding.positions, None) if frames.data else reach(c, embedding.positions, embedding.offset)
    final = final_norm(c, norm)
    return Encoder(embedding, layers, Final(width, norm=final) if final else None, limit, trained)


def _frames(table: Section, c: Section, width: int) -> Frames:
    """Sound through two convolutions, with a table of positions."""
    table.known(("channels", "kernel", "positions"))
    rows = table.size("positions") if table.has("positions") else c.size("context")
    return Frames(table.size("channels"), width, positions=rows, kernel=table.size("kernel", 3))


def own_names(made: EncoderDecoder, names: Mapping[str, str], buffers: Collection[str]) -> Mapping[str, str]:
    """`names`, and where a half of an encoder-decoder keeps what they say nothing of, so that the halves differ.

    The words are one table where both halves have as many, as wide.
    """
    one, other = made.encoder.embedding, made.decoder.embedding
    alike = type(one) is type(other) and (one.vocab, one.width, one.narrow) == (other.vocab, other.width, other.narrow)
    found = dict(names)
    for segment in made.segments({}):
        side = segment.name.partition(" ")[0] + "."
        given = of(names, side)
        for weight, stored in segment.block.stored.items():
            if not is_named(weight, given):
                path = stored.path if weight == "E" and alike else side + stored.path
                found[side + weight] = f"~{path}" if weight in buffers else path
    return found
