"""What a description is of: a decoder, an encoder, both with attention between them, a transformer of images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from assay.blocks import Decoder, Embedding, Final, Head, Norm
from assay.blocks.disentangled import Distances
from assay.blocks.encoder_decoder import EncoderDecoder, Frames, of
from assay.blocks.encoders import Encoder, MaskedHead, Pooler, Shared, Tables, Together
from assay.blocks.mlp import Mlp
from assay.blocks.stacks import Ending, is_named
from assay.blocks.towers import Drawn, Patches, Probe, Tower
from assay.errors import SourceError
from assay.records import dataclass, defaults_of
from assay.sources.config import DEPTH
from assay.sources.describable import NORMS, Role
from assay.sources.described_layers import IN_LAYER, read_layers, read_norm, read_positions
from assay.sources.fields import Section, build
from assay.spec import Sight

Stack = Decoder | EncoderDecoder | Tower

ABOUT = ("kind", "name", "source", "note", "names", "class", "dtype")
ORDER = ("width", "layers", "first", "pattern", "last", "layer")
TEXT = (*ORDER, "vocab", "context", "tied", "embedding", "head", *IN_LAYER)
FRAME_STRIDE = 2  # of the second convolution over frames
LARGEST_SIDE = 100_000  # pixels
ALONE = Role()


def read_decoder(c: Section, role: Role = ALONE) -> Decoder:
    """A decoder; `role` says what its layers attend to."""
    vocab, width, depth = c.size("vocab"), c.size("width"), c.size("layers", most=DEPTH)
    norm = read_norm(c)
    layers = read_layers(c, depth, width, role)
    embedding = _embedding(c, vocab, width, norm)
    limit, trained = _reach(c, embedding.positions)
    return Decoder(embedding, layers, _head(c, embedding, norm), limit, trained)


def read_encoder(c: Section) -> Encoder:
    """An encoder by itself, and what stands behind it."""
    vocab, width, depth = c.size("vocab"), c.size("width"), c.size("layers", most=DEPTH)
    norm = read_norm(c)
    embedding = _tables(c, vocab, width, norm)
    role = Role(encodes=True, span=getattr(embedding, "span", None))
    groups = c.maybe("layer_groups")
    if groups is not None and groups > depth:
        c.fail("layer_groups", f"an integer of at most {c.path('layers')}, {int(depth)}")
    if groups is not None and "layer" in c.data:
        raise SourceError(f"{c.where}: {c.path('layer')} says nothing where layer_groups is set: layers are alike")
    layers = read_layers(c, depth, width, role)
    limit, trained = _reach(c, dict(embedding.tables).get("position"))
    made: dict[str, Any] = {
        "embedding": embedding,
        "layers": layers,
        "head": _encoded(c, embedding, norm),
        "limit": limit,
        "trained": trained,
        "final": _final(c, norm),
    }
    if groups is None:
        return Encoder(**made)
    runs = tuple(depth // groups + (group < depth % groups) for group in range(groups))
    return Shared(**{**made, "layers": layers[:1]}, runs=runs)


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
    width, depth, norm = c.size("width"), c.size("layers", most=DEPTH), read_norm(c)
    layers = read_layers(c, depth, width, Role(encodes=True))
    frames = c.child("frames")
    embedding = _frames(frames, c, width) if frames.data else _embedding(c, c.size("vocab"), width, norm)
    limit, trained = (embedding.positions, None) if frames.data else _reach(c, embedding.positions)
    final = _final(c, norm)
    return Encoder(embedding, layers, Final(width, norm=final) if final else None, limit, trained)


def _frames(table: Section, c: Section, width: int) -> Frames:
    """Sound through two convolutions, with a table of positions."""
    table.known(("channels", "kernel", "positions"))
    rows = table.size("positions") if table.has("positions") else c.size("context")
    return Frames(table.size("channels"), width, positions=rows, kernel=table.size("kernel", 3))


def read_tower(c: Section) -> Tower:
    """A transformer of images: patches as tokens."""
    width, depth, norm = c.size("width"), c.size("layers", most=DEPTH), read_norm(c)
    learned = read_positions(c, "learned") == "learned"
    start = _patches(c.child("patches"), width, norm, learned)
    layers = read_layers(c, depth, width, Role(encodes=True), "learned")
    final = _final(c, norm)
    sight = Sight(images=1, alone=start.length)
    return Tower(start, layers, _seen(c, width, norm, final), width, {"n": start.length}, sight=sight)


def _patches(c: Section, width: int, norm: Norm, learned: bool) -> Patches:
    """An image cut in squares, and the learned tokens before them."""
    c.known(("image", "patch", *(name for name in defaults_of(Patches) if name not in ("kernel", "width", "patches"))))
    sides = (
        c.sequence("image", lambda v: type(v) is int and 0 < v <= LARGEST_SIDE, "pixels", 2)
        if (isinstance(c.data.get("image"), list))
        else [c.size("image", most=LARGEST_SIDE)] * 2
    )
    patch = c.size("patch", most=LARGEST_SIDE)
    count = (int(sides[0]) // patch) * (int(sides[1]) // patch) if sides else 0
    if count < 1:
        c.fail("patch", f"an integer of at most {c.path('image')}, {min(map(int, sides or [0]))}")
    early = _tokens(c, "tokens")
    given = {
        "channels": c.size("channels", 3),
        "kernel": (int(patch), int(patch)),
        "width": width,
        "patches": count,
        "tokens": early,
        "late": _tokens(c, "late"),
        "spare": tuple(word.capitalize() for word in c.sequence("spare", _is_letters, "words") or ()),
    }
    rows = count + sum(many for _, many in early) if learned else None
    made: Patches = build(Patches, c, given, Patches(3, (1, 1), 1, positions=rows), words={Norm: NORMS}, norm=norm)
    return made


def _tokens(c: Section, key: str) -> tuple[tuple[str, int], ...]:
    """Learned tokens by name, and how many each stands for; weights begin with a capital."""
    table = c.child(key)
    for name in table.data:
        if not _is_letters(name):
            raise SourceError(f"{c.where}: {table.path(name)} is no name of tokens; letters alone are")
    return tuple((name.capitalize(), table.size(name)) for name in table.data)


def _is_letters(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isalpha()


def _seen(c: Section, width: int, norm: Norm, final: Norm | None) -> tuple[Ending, ...]:
    """What stands behind the layers of images: a probe, a pooled token, or the last norm."""
    if c.has("probe") and c.has("pooler"):
        raise SourceError(f"{c.where}: {c.path('probe')} and {c.path('pooler')} cannot both end a model of images")
    if c.has("probe"):
        table = c.child("probe")
        table.known(("heads", "mlp"))
        mlp: Mlp = build(
            Mlp, table.child("mlp"), {}, Mlp(1, gated=False), words={Norm: NORMS}, norm=norm, letters="gud"
        )
        heads = table.size("heads")
        c.divides("width", width, "probe.heads", heads)
        ends: tuple[Ending, ...] = (Probe(heads, width, mlp, norm),)
        return ends if final is None else (Drawn("norm", tuple(final.ops("x", "x", "f")), {"d": width}), *ends)
    if c.has("pooler"):
        return (_pooler(c, width, norm, final),)
    return () if final is None else (Final(width, norm=final),)


def _final(c: Section, norm: Norm) -> Norm | None:
    """The norm behind the last layer: none where every layer ends in one."""
    return None if c.data.get("residual") == "post" else norm


def _reach(c: Section, rows: int | None) -> tuple[int | None, int | None]:
    """The longest sequence that a table of positions allows, and the one that the model was made for."""
    context = c.maybe("context")
    limit = None if rows is None else rows if context is None else min(rows, context)
    return limit, context if context is not None else limit


def _rows(c: Section, table: Section) -> int | None:
    """Rows of a table of learned positions, where there is one."""
    if read_positions(c) != "learned":
        return None
    return table.size("positions") if table.has("positions") else c.size("context")


def _embedding(c: Section, vocab: int, width: int, norm: Norm) -> Embedding:
    table = c.child("embedding")
    table.known(name for name in defaults_of(Embedding) if name not in ("vocab", "width", "sinusoid"))
    sines = read_positions(c) == "sinusoidal"
    base = Embedding(vocab, width, positions=_rows(c, table), sinusoid=sines)
    given = {"vocab": vocab, "width": width, "sinusoid": sines}
    made: Embedding = build(Embedding, table, given, base, words={Norm: NORMS}, norm=norm)
    return made


def _tables(c: Section, vocab: int, width: int, norm: Norm) -> Tables:
    """Words beside tables of positions, token types and the like, each with so many rows."""
    table = c.child("embedding")
    unread = ("vocab", "width", "sinusoid", "angles", "frequencies")
    table.known(name for name in defaults_of(Distances) if name not in unread)
    if read_positions(c) == "sinusoidal":
        c.fail("positions", "another: an encoder by itself adds tables of its own")
    rows = _rows(c, table)
    positions = () if rows is None else (("position", int(rows)),)
    further = tuple((name, table.child("tables").size(name)) for name in table.child("tables").data)
    kind = Distances if table.has("span") else Tables
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


def _head(c: Section, embedding: Embedding, norm: Norm) -> Ending:
    """Tied to a narrow embedding, it is as narrow; after post-norm layers no further norm follows."""
    tied = c.flag("tied", False)
    if _none(c, "head"):
        return Final(embedding.width, embedding.narrow, _final(c, norm))
    table = c.child("head")
    table.known(name for name in defaults_of(Head) if name not in ("vocab", "width", "tied"))
    narrow = embedding.narrow if tied else None
    base = Head(embedding.vocab, embedding.width, tied, narrow=narrow, norm=_final(c, norm))
    given = {"vocab": embedding.vocab, "width": embedding.width, "tied": tied}
    made: Head = build(Head, table, given, base, words={Norm: NORMS}, norm=norm)
    if tied and made.narrow != embedding.narrow:
        table.fail("narrow", f"that of the embedding, {embedding.narrow or 'none'}, as the two are tied")
    return made


def _encoded(c: Section, embedding: Tables, norm: Norm) -> Ending | None:
    """What an encoder ends in: the head of a masked-language model, a pooler, both, or nothing."""
    pooler = _pooler(c, embedding.width, norm, None) if c.has("pooler") else None
    if _none(c, "head") or (pooler is not None and "head" not in c.data):
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


def _pooler(c: Section, width: int, norm: Norm, final: Norm | None) -> Pooler:
    """Tokens through a dense layer to a vector or to labels; `norm` stands before it where layers end in none."""
    table = c.child("pooler")
    table.known(name for name in defaults_of(Pooler) if name not in ("width", "name"))
    base = Pooler(width, norm=final)
    made: Pooler = build(Pooler, table, {"width": width, "name": "pool"}, base, words={Norm: NORMS}, norm=norm)
    return made


def _none(c: Section, key: str) -> bool:
    """True where a table is taken back."""
    c.used.add(key)
    return c.data.get(key) == "none"


def own_names(made: Stack, names: Mapping[str, str], buffers: Collection[str]) -> Mapping[str, str]:
    """`names`, and where a half of an encoder-decoder keeps what they say nothing of, so that the halves differ.

    The words are one table where both halves have as many, as wide.
    """
    if not isinstance(made, EncoderDecoder):
        return {**{weight: f"~layers.{{i}}.{weight}" for weight in buffers if weight not in names}, **names}
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


@dataclass(frozen=True)
class Kind:
    """One kind of description: its reader and its keys."""

    read: Callable[[Section], Stack]
    keys: tuple[str, ...]


SIDES = {
    "encoder": tuple(key for key in (*TEXT, "frames") if key not in ("head", "tied", "cross")),
    "decoder": TEXT,
}
KINDS: dict[str, Kind] = {
    "decoder": Kind(read_decoder, (*ABOUT, *(key for key in TEXT if key != "cross"))),
    "encoder": Kind(read_encoder, (*ABOUT, *(key for key in TEXT if key != "cross"), "pooler", "layer_groups")),
    "encoder-decoder": Kind(read_halves, (*ABOUT, *TEXT, *SIDES)),
    "vision": Kind(
        read_tower,
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
            a = "an" if kind[0] in "aeiou" else "a"
            raise SourceError(
                f"{c.where}: {key} says nothing of {a} {kind}; it is a key of kind {' and '.join(others)}"
            )
    c.known(allowed)
    return kind
