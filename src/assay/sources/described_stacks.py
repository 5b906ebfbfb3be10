"""Descriptions of decoders, and what stacks of every kind have in common: words, positions, the last norm."""

from __future__ import annotations

from assay.blocks import Decoder, Embedding, Final, Head, Norm, Sines
from assay.blocks.stacks import Ending
from assay.errors import SourceError
from assay.records import defaults_of
from assay.sources.describable import NORMS, Role
from assay.sources.described_layers import IN_LAYER, read_layers, read_norm, read_positions
from assay.sources.fields import Section, build

ABOUT = ("kind", "name", "source", "note", "names", "class", "dtype", "quantization")
ORDER = ("width", "layers", "first", "pattern", "last", "layer")
TEXT = (*ORDER, "vocab", "context", "tied", "embedding", "head", *IN_LAYER)
SIDES = {
    "encoder": tuple(key for key in (*TEXT, "frames") if key not in ("head", "tied", "cross")),
    "decoder": TEXT,
}
ALONE = Role()
_ABOVE = ("vocab", "width")  # of a whole stack


def read_decoder(c: Section, role: Role = ALONE) -> Decoder:
    """A decoder; `role` says what its layers attend to."""
    vocab, width, depth = c.size("vocab"), c.size("width"), c.depth("layers")
    norm = read_norm(c)
    layers = read_layers(c, depth, width, role)
    embedding = read_embedding(c, vocab, width, norm)
    limit, trained = reach(c, embedding.positions, embedding.offset)
    return Decoder(embedding, layers, _head(c, embedding, norm), limit, trained)


def final_norm(c: Section, norm: Norm) -> Norm | None:
    """The norm behind the last layer: none where every layer ends in one."""
    return None if c.data.get("residual") == "post" else norm


def reach(c: Section, rows: int | None, before: int | None = None) -> tuple[int | None, int | None]:
    """The longest sequence that a table of positions allows, and the one that the model was made for.

    `before` are the rows ahead of the first position's. Raises SourceError where there are no more than these.
    """
    context = c.maybe("context")
    if rows is not None and before is not None:
        if before >= rows:
            c.child("embedding").fail("offset", f"an integer of at least 1, below the {int(rows)} rows of positions")
        rows -= before
    limit = None if rows is None else rows if context is None else min(rows, context)
    return limit, context if context is not None else limit


def rows_of(c: Section, table: Section) -> int | None:
    """Rows of a table of learned positions, where there is one: those of the context, behind `offset` unused ones."""
    if read_positions(c) != "learned":
        if table.has("offset"):
            raise SourceError(f"{c.where}: {table.path('offset')} says nothing where positions are not learned")
        return None
    if table.has("positions"):
        return table.size("positions")
    rows, before = c.size("context"), table.maybe("offset")
    return rows + before if before else rows  # a size that nothing is added to remembers its key


def read_embedding(c: Section, vocab: int, width: int, norm: Norm) -> Embedding:
    """Words, and learned or computed positions."""
    table = c.child("embedding")
    table.known(name if name != "sinusoid" else "sines" for name in defaults_of(Embedding) if name not in _ABOVE)
    sines = _sines(table.child("sines")) if read_positions(c) == "sinusoidal" else False
    if table.has("sines") and not sines:
        raise SourceError(f"{c.where}: {table.path('sines')} says nothing where positions are not sinusoidal")
    base = Embedding(vocab, width, positions=rows_of(c, table), sinusoid=sines)
    given = {"vocab": vocab, "width": width, "sinusoid": sines}
    made: Embedding = build(Embedding, table, given, base, words={Norm: NORMS}, norm=norm)
    return made


def _sines(table: Section) -> Sines | bool:
    """How sines and cosines stand in a row, where a table says so."""
    table.known(defaults_of(Sines))
    made: Sines = build(Sines, table, {}, words={})
    return made if table.data else True


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
