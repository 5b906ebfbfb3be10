"""Descriptions of decoders, and what stacks of every kind have in common: words, positions, the last norm."""

from __future__ import annotations

from assay.blocks import Decoder, Embedding, Final, Head, Norm
from assay.blocks.stacks import Ending
from assay.records import defaults_of
from assay.sources.config import DEPTH
from assay.sources.describable import NORMS, Role
from assay.sources.described_layers import IN_LAYER, read_layers, read_norm, read_positions
from assay.sources.fields import Section, build

ABOUT = ("kind", "name", "source", "note", "names", "class", "dtype")
ORDER = ("width", "layers", "first", "pattern", "last", "layer")
TEXT = (*ORDER, "vocab", "context", "tied", "embedding", "head", *IN_LAYER)
SIDES = {
    "encoder": tuple(key for key in (*TEXT, "frames") if key not in ("head", "tied", "cross")),
    "decoder": TEXT,
}
ALONE = Role()


def read_decoder(c: Section, role: Role = ALONE) -> Decoder:
    """A decoder; `role` says what its layers attend to."""
    vocab, width, depth = c.size("vocab"), c.size("width"), c.size("layers", most=DEPTH)
    norm = read_norm(c)
    layers = read_layers(c, depth, width, role)
    embedding = read_embedding(c, vocab, width, norm)
    limit, trained = reach(c, embedding.positions)
    return Decoder(embedding, layers, _head(c, embedding, norm), limit, trained)


def final_norm(c: Section, norm: Norm) -> Norm | None:
    """The norm behind the last layer: none where every layer ends in one."""
    return None if c.data.get("residual") == "post" else norm


def reach(c: Section, rows: int | None) -> tuple[int | None, int | None]:
    """The longest sequence that a table of positions allows, and the one that the model was made for."""
    context = c.maybe("context")
    limit = None if rows is None else rows if context is None else min(rows, context)
    return limit, context if context is not None else limit


def rows_of(c: Section, table: Section) -> int | None:
    """Rows of a table of learned positions, where there is one."""
    if read_positions(c) != "learned":
        return None
    return table.size("positions") if table.has("positions") else c.size("context")


def read_embedding(c: Section, vocab: int, width: int, norm: Norm) -> Embedding:
    """Words, and learned or computed positions."""
    table = c.child("embedding")
    table.known(name for name in defaults_of(Embedding) if name not in ("vocab", "width", "sinusoid"))
    sines = read_positions(c) == "sinusoidal"
    base = Embedding(vocab, width, positions=rows_of(c, table), sinusoid=sines)
    given = {"vocab": vocab, "width": width, "sinusoid": sines}
    made: Embedding = build(Embedding, table, given, base, words={Norm: NORMS}, norm=norm)
    return made


def _head(c: Section, embedding: Embedding, norm: Norm) -> Ending:
    """Tied to a narrow embedding, it is as narrow; after post-norm layers no further norm follows."""
    tied = c.flag("tied", False)
    if is_none(c, "head"):
        return Final(embedding.width, embedding.narrow, final_norm(c, norm))
    table = c.child("head")
    table.known(name for name in defaults_of(Head) if name not in ("vocab", "width", "tied"))
    narrow = embedding.narrow if tied else None
    base = Head(embedding.vocab, embedding.width, tied, narrow=narrow, norm=final_norm(c, norm))
    given = {"vocab": embedding.vocab, "width": embedding.width, "tied": tied}
    made: Head = build(Head, table, given, base, words={Norm: NORMS}, norm=norm)
    if tied and made.narrow != embedding.narrow:
        table.fail("narrow", f"that of the embedding, {embedding.narrow or 'none'}, as the two are tied")
    return made


def is_none(c: Section, key: str) -> bool:
    """True where a table is taken back."""
    c.used.add(key)
    return c.data.get(key) == "none"
