"""An architecture of one's own as a short TOML file: sizes and choices, every other word a documented default.

    vocab = 32000
    width = 4096
    layers = 32

    [attention]
    heads = 32
    kv_heads = 8

    [mlp]
    width = 14336

The file is read into the same blocks that configs are read into, field by field: a table `[attention]` holds the
fields of the dataclass `Attention`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.blocks import Branch, Decoder, Embedding, Head, Layer, Norm, Rope, Step
from assay.errors import SourceError
from assay.records import dataclass, defaults_of
from assay.sources.config import DEPTH
from assay.sources.describable import BLOCKS, NORMS, Around, read_block
from assay.sources.fields import Section, build
from assay.spec import Model

ROPE = Rope(theta=10000.0)
DTYPES = ("bf16", "fp16", "fp32", "fp8")

# a vector that only the choice of experts reads is trained without gradient: stored, and no parameter
OWN_NAMES = {"Cr": "~layers.{i}.Cr"}


# how the blocks of a layer join the residual stream
RESIDUALS: dict[str, Callable[[list[Any], Norm, float | None], tuple[Step, ...]]] = {
    "pre": lambda bodies, norm, by: tuple(Step((Branch(body, norm),), scale=by) for body in bodies),
    "post": lambda bodies, norm, by: tuple(Step((Branch(body),), after=norm, scale=by) for body in bodies),
    "inner-post": lambda bodies, norm, by: tuple(Step((Branch(body, None, norm),), scale=by) for body in bodies),
    "sandwich": lambda bodies, norm, by: tuple(Step((Branch(body, norm, norm),), scale=by) for body in bodies),
    "parallel": lambda bodies, norm, by: (Step(tuple(map(Branch, bodies)), before=norm, scale=by),),
    "parallel-norms": lambda bodies, norm, by: (Step(tuple(Branch(body, norm) for body in bodies), scale=by),),
}

IN_LAYER = ("norm", "positions", "residual", "residual_scale", "blocks", *BLOCKS)
KEYS = (
    *("name", "source", "note", "names", "vocab", "width", "layers", "context", "dtype", "tied"),
    *("first", "pattern", "last", "layer", "embedding", "head"),
    *IN_LAYER,
)


def read_description(text: str, where: str, name: str) -> Model:
    """The model that a TOML text describes; `where` names the file in messages, `name` a model that has no name.

    Raises SourceError naming file, key, value and what is allowed.
    """
    return read_table(parse(text, where), where, name)


def parse(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises SourceError."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise SourceError(f"{where}: not TOML that can be read: nested too deeply") from None


def read_table(data: Mapping[str, Any], where: str, name: str) -> Model:
    """The same from a table already parsed. Raises SourceError."""
    c = Section(data, where)
    c.known(KEYS)
    family, names = _names(c)
    decoder = _decoder(c)
    note = c.word("note", "")
    made = Model(
        c.word("name", name),
        decoder.segments(names.paths),
        family=family,
        cls=names.cls,
        source=c.word("source", where),
        layers=decoder.depth,
        width=decoder.width,
        positions=decoder.limit,
        trained=decoder.trained,
        dtype=c.word("dtype", None, DTYPES) if c.has("dtype") else None,
        notes=(note,) if note else (),
    )
    names.check(made)
    return made


@dataclass(frozen=True)
class Names:
    """Where weights are stored, the class that stores them so, and which of the names the description gives itself."""

    paths: Mapping[str, str]
    cls: str = ""
    own: Section | None = None

    def check(self, model: Model) -> None:
        """Raise SourceError for a name of no weight."""
        if self.own is not None:
            self.own.known(("like", *sorted({w for segment in model.segments for w in segment.block.stored})))


def _names(c: Section) -> tuple[str, Names]:
    """The family and its names: a word, or a table of names over those of the family under `like`."""
    if isinstance(c.data.get("names"), dict):
        own = c.child("names")
        family = own.word("like", "")
        below = _family(own, "like", family)
        given = {weight: own.word(weight, None) for weight in own.data if weight != "like"}
        return family, Names({**below.paths, **given}, below.cls, own)
    family = c.word("names", "")
    return family, _family(c, "names", family)


def _family(c: Section, key: str, family: str) -> Names:
    """The names of a family."""
    if not family:
        return Names(OWN_NAMES)
    from assay.sources.families import FAMILIES

    found = FAMILIES.get(family)
    if found is None:
        c.refuse(key, f"is {family!r}, no model_type that is known", family, FAMILIES)
    return Names(found.names, found.cls)


def _decoder(c: Section) -> Decoder:
    """The stack."""
    vocab, width = c.size("vocab"), c.size("width")
    depth = c.size("layers", most=DEPTH)
    norm = _norm(c)
    layers = _layers(c, depth, width)
    embedding = _embedding(c, vocab, width, norm)
    context = c.maybe("context")
    rows = embedding.positions
    limit = None if rows is None else rows if context is None else min(rows, context)
    return Decoder(embedding, layers, _head(c, embedding, norm), limit, context if context is not None else limit)


def _norm(c: Section) -> Norm:
    """The norm that stands wherever nothing else is said: a word or a table."""
    made: Norm = c.block("norm", Norm, NORMS, NORMS["rmsnorm"])
    return made


def _positions(c: Section) -> Rope | str | None:
    """Rope, "alibi", "learned" or None: a word, or a table of the rotation."""
    words = {"rope": ROPE, "alibi": "alibi", "learned": "learned", "none": None}
    made: Rope | str | None = c.block("positions", Rope, words, ROPE)
    return made


def _embedding(c: Section, vocab: int, width: int, norm: Norm) -> Embedding:
    learned = _positions(c) == "learned"
    table = c.child("embedding")
    table.known(name for name in defaults_of(Embedding) if name not in ("vocab", "width"))
    rows = None
    if learned and not table.has("positions"):
        rows = c.size("context")
    base = Embedding(vocab, width, positions=rows)
    made: Embedding = build(Embedding, table, {"vocab": vocab, "width": width}, base, words={Norm: NORMS}, norm=norm)
    return made


def _head(c: Section, embedding: Embedding, norm: Norm) -> Head:
    """Tied to a narrow embedding, it is as narrow; after post-norm layers no further norm follows."""
    tied = c.flag("tied", False)
    table = c.child("head")
    table.known(name for name in defaults_of(Head) if name not in ("vocab", "width", "tied"))
    narrow = embedding.narrow if tied else None
    base = Head(
        embedding.vocab, embedding.width, tied, narrow=narrow, norm=None if c.data.get("residual") == "post" else norm
    )
    given = {"vocab": embedding.vocab, "width": embedding.width, "tied": tied}
    made: Head = build(Head, table, given, base, words={Norm: NORMS}, norm=norm)
    if tied and made.narrow != embedding.narrow:
        table.fail("narrow", f"that of the embedding, {embedding.narrow or 'none'}, as the two are tied")
    return made


def _layers(c: Section, depth: int, width: int) -> tuple[Layer, ...]:
    """Every layer; those of one kind are one object."""
    tables = c.child("layer")
    for name in tables.data:
        tables.child(name).known(IN_LAYER)
    order = _order(c, tables, depth)
    held: set[str] = set()
    made = {}
    for kinds in dict.fromkeys(order):
        merged = c.overlaid({key: c.data[key] for key in IN_LAYER if key in c.data}, tables, kinds)
        made[kinds] = _layer(merged, width, "+".join(kinds), held)
    unused = [name for name in tables.data if not any(name in kinds for kinds in order)]
    for name in unused:
        raise SourceError(f"{c.where}: layer.{name} is in none of first, pattern and last")
    for name in BLOCKS:
        if name in c.data and name not in held:
            raise SourceError(f"{c.where}: {name} is in no layer; blocks says which of them a layer has")
    return tuple(made[kinds] for kinds in order)


def _order(c: Section, tables: Section, depth: int) -> list[tuple[str, ...]]:
    """The kinds of each layer: `first`, then `pattern` again and again, then `last`."""
    first, pattern, last = (_expand(c, tables, key, depth) for key in ("first", "pattern", "last"))
    rest = depth - len(first) - len(last)
    if rest < 0:
        raise SourceError(
            f"{c.where}: layers is {depth}; it must be at least the {len(first) + len(last)} of first and last"
        )
    if not pattern:
        if rest and tables.data:
            c.fail("pattern", f"a list of {', '.join(tables.data)}")
        pattern = [()]
    middle = pattern * -(-rest // len(pattern))
    return [*first, *middle[:rest], *last]


def _expand(c: Section, tables: Section, key: str, depth: int) -> list[tuple[str, ...]]:
    """`["local * 3", "global + moe"]` as the kinds of so many layers."""
    made: list[tuple[str, ...]] = []
    for item in c.sequence(key, lambda v: isinstance(v, str), "names of layer tables") or []:
        text, star, times = item.partition("*")
        many = int(times) if times.strip().isdecimal() and len(times) < 12 else 0
        if star and not 1 <= many <= depth:
            raise SourceError(
                f"{c.where}: {key} holds {item!r}; a count must be an integer of at least 1, at most layers"
            )
        kinds = tuple(part.strip() for part in text.split("+"))
        for kind in kinds:
            if kind not in tables.data:
                c.refuse(key, f"holds {kind!r}, no [layer.{kind}]", kind, tables.data)
        made += [kinds] * (many if star else 1)
    return made


def _layer(c: Section, width: int, kind: str, held: set[str]) -> Layer:
    """One layer from the common tables with those of its kinds laid over them."""
    positions = _positions(c)
    if positions == "learned":
        if c.path("positions") != "positions":
            c.fail("positions", "rope, alibi, none or a table of the rotation: learned positions are all layers'")
        positions = None
    around = Around(width, _norm(c), positions)
    names = _block_names(c, kind)
    held.update(names)
    bodies = [read_block(c.child(name), BLOCKS[name], around) for name in names]
    arrange = RESIDUALS[c.word("residual", "pre", RESIDUALS)]
    return Layer(arrange(bodies, around.norm, c.number("residual_scale")), kind)


def _block_names(c: Section, kind: str) -> list[str]:
    """`blocks`, or the tables that there are, mixers of tokens first."""
    of = f"layer {kind}" if kind else "a layer"
    names = c.sequence("blocks", lambda v: isinstance(v, str) and v in BLOCKS, f"some of {', '.join(BLOCKS)}")
    if names is None:
        names = [name for name in BLOCKS if name in c.data]
    if not names:
        raise SourceError(f"{c.where}: {of} has no blocks; describe some of {', '.join(BLOCKS)}")
    for tag in {BLOCKS[name].block.tag for name in names}:
        alike = [name for name in names if BLOCKS[name].block.tag == tag]
        if len(alike) > 1:
            raise SourceError(f"{c.where}: {of} has {' and '.join(alike)}; list in blocks the one that it has")
    return names
