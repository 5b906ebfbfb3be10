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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from assay.errors import SettingError, SizeError, SourceError
from assay.records import dataclass
from assay.sources.config import plain
from assay.sources.described_kinds import KINDS, kind_of
from assay.sources.fields import Section
from assay.spec import Model

if TYPE_CHECKING:
    from assay.blocks.encoder_decoder import EncoderDecoder
    from assay.formats import Scheme
    from assay.sources.described_kinds import Stack

DTYPES = ("bf16", "fp16", "fp32", "fp8")

# what is stored beside parameters: a vector that only the choice of experts reads, decays that follow from sizes
BUFFERS = ("Cr", "mixer.Slope", "mixer.Past", "mixer.Rest", "mixer.Within")


def read_description(text: str, where: str, name: str, cls: str | None = None) -> Model:
    """The model that a TOML text describes; `where` names the file in messages, `name` a model that has no name.

    `cls` is causal, as a decoder is written, or base, the same without its head.
    Raises SourceError naming file, key, value and what is allowed; SettingError for another class.
    """
    return read_table(parse(text, where), where, name, cls)


def parse(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises SourceError."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise SourceError(f"{where}: not TOML that can be read: nested too deeply") from None


def read_table(data: Mapping[str, Any], where: str, name: str, cls: str | None = None) -> Model:
    """The same from a table already parsed. Raises SourceError, SettingError."""
    c = Section(data, where)
    try:
        if cls is not None:
            c = _as_class(c, cls)
        return _model(c, name)
    except SizeError as error:  # sizes that each fit, and do not fit each other
        raise SourceError(f"{where}: {error}") from None


def _as_class(c: Section, cls: str) -> Section:
    """The tables of a class. Raises SettingError for one that a description does not have."""
    kind = kind_of(c)
    if kind != "decoder" or cls not in ("causal", "base"):
        has = "whose classes are causal and base" if kind == "decoder" else "whose class is the one that it says"
        a = "an" if kind[0] in "aeiou" else "a"
        raise SettingError(f"class is {cls!r}; {c.where} is a description of {a} {kind}, {has}")
    if cls == "causal":
        return c
    return Section({**c.data, "head": "none", **({"class": "base"} if c.has("names") else {})}, c.where)


def _model(c: Section, name: str) -> Model:
    """The stack that the tables describe, under its names."""
    kind = kind_of(c)
    family, names = _names(c)
    stack = KINDS[kind].read(c)
    note = c.word("note", "")
    dtype = c.word("dtype", None, DTYPES) if c.has("dtype") else None
    formats = _formats(c, family, dtype)
    made = Model(
        c.word("name", name),
        stack.segments(_own_names(stack, names.paths)),
        family=family,
        cls=names.cls,
        source=c.word("source", c.where),
        layers=stack.depth,
        width=stack.width,
        depths=tuple(c.depths.items()),
        unsaid=tuple(c.unsaid),
        positions=stack.limit,
        trained=stack.trained,
        dtype=dtype,
        quantization=c.data.get("quantization"),
        settings=stack.settings,
        source_tokens=stack.source_tokens,
        source_positions=stack.source_limit,
        source_stride=stack.source_stride,
        sight=stack.sight,
        notes=(note,) if note else (),
    )
    names.check(made, kind)
    return plain(made) if formats is None else _quantized(plain(made), formats)


def _formats(c: Section, family: str, dtype: str | None) -> Scheme | None:
    """What `[quantization]` says that matrices are stored in."""
    if "quantization" not in c.data:
        return None
    from assay.sources.described_formats import read_formats

    return read_formats(c.child("quantization"), family, dtype)


def _quantized(model: Model, formats: Scheme) -> Model:
    from assay.rewrites.quantize import quantize

    return quantize(model, formats)


def _own_names(stack: Stack, names: Mapping[str, str]) -> Mapping[str, str]:
    """`names`, and those of weights that a description names itself, where they are more than the weight's own."""
    if "source" in stack.settings:
        from assay.sources.described_encoders import own_names

        return own_names(cast("EncoderDecoder", stack), names, BUFFERS)
    return {**{weight: f"~layers.{{i}}.{weight}" for weight in BUFFERS if weight not in names}, **names}


@dataclass(frozen=True)
class Names:
    """Where weights are stored, the class that stores them so, and which of the names the description gives itself."""

    paths: Mapping[str, str]
    cls: str = ""
    own: Section | None = None

    def check(self, model: Model, kind: str) -> None:
        """Raise SourceError for a name of no weight."""
        if self.own is None:
            return
        weights = sorted({w for segment in model.segments for w in segment.block.stored})
        if kind == "encoder-decoder":
            weights += sorted(f"{s.name.partition(' ')[0]}.{w}" for s in model.segments for w in s.block.stored)
        self.own.known(("like", *weights))


def _names(c: Section) -> tuple[str, Names]:
    """The family and its names: a word, or a table of names over those of the family under `like`."""
    if isinstance(c.data.get("names"), dict):
        own = c.child("names")
        family = own.word("like", "")
        below = _family(own, "like", family, c)
        given = {weight: own.word(weight, None) for weight in own.data if weight != "like"}
        return family, Names({**below.paths, **given}, below.cls, own)
    family = c.word("names", "")
    return family, _family(c, "names", family, c)


def _family(c: Section, key: str, family: str, whole: Section) -> Names:
    """The names of a family, those of the class that `class` says."""
    if not family:
        if whole.has("class"):
            raise SourceError(f"{c.where}: class says nothing where names is not set: it is one of a family's")
        return Names({})
    from assay.sources.classes import names_of, offered
    from assay.sources.families import FAMILIES

    found = FAMILIES.get(family)
    if found is None:
        c.refuse(key, f"is {family!r}, no model_type that is known", family, FAMILIES)
    classes = offered(found)
    role = whole.word("class", next(iter(classes)), classes)
    return Names(names_of(found, role), classes[role])
