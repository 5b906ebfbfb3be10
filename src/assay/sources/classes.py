"""Which class of a family a config names, and what stands behind the last layer of each.

A causal language model has a head over the vocabulary, the base model none, a classifier one matrix over its labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.blocks import Classifier, Decoder, Final, Head
from assay.errors import SettingError, SourceError
from assay.sources.config import Config
from assay.sources.families import FAMILIES, Family
from assay.sources.families.common import Names
from assay.sources.shown import name, short

CAUSAL, BASE = "causal", "base"
SEQUENCE, TOKEN = "sequence-classification", "token-classification"

SUFFIXES = {  # what the public implementation puts behind a family's name; the longer first
    "ForSequenceClassification": SEQUENCE,
    "ForTokenClassification": TOKEN,
    "ForCausalLM": CAUSAL,
    "WithLMHeadModel": CAUSAL,
    "LMHeadModel": CAUSAL,
    "TextModel": BASE,
    "Model": BASE,
}
DECODER_ONLY = (CAUSAL, BASE, SEQUENCE, TOKEN)
ELSEWHERE = ("masked", "seq2seq")  # classes that a decoder-only family lacks


@dataclass(frozen=True)
class Choice:
    """What a class ends in, its name in the public implementation, and what there is to say of the choice."""

    role: str
    cls: str
    notes: tuple[str, ...] = ()


def split(cls: str) -> tuple[str, str] | None:
    """(the family's part, what it ends in) of a class name, or None for an ending that is not described."""
    for suffix, role in SUFFIXES.items():
        if cls.endswith(suffix) and cls != suffix:
            return cls.removesuffix(suffix), role
    return None


def same(a: str, b: str) -> bool:
    """True for two spellings of one family's part: LLaMA and Llama, Gemma3Text and Gemma3."""
    return _bare(a) == _bare(b)


def _bare(stem: str) -> str:
    return stem.removesuffix("Text").replace("_", "").casefold()


def _stem(cls: str) -> str:
    found = split(cls)
    return cls if found is None else found[0]


def family_of(cls: str) -> str | None:
    """The one model_type whose class, of any ending, this is; None where there is none or more than one."""
    found = split(cls)
    if found is None:
        return None
    types = [family.model_type for family in FAMILIES.values() if same(_stem(family.cls), found[0])]
    return types[0] if len(types) == 1 else None


def choose(c: Config, family: Family, asked: str | None) -> Choice:
    """The class to read: `asked` if given, else `architectures[0]`, else causal. Raises SettingError, SourceError."""
    listed = c.sequence("architectures", lambda v: isinstance(v, str), "class names")
    if asked is not None:
        return _asked(asked, family)
    if not listed or listed[0] in (family.cls, *family.also):
        return Choice(CAUSAL, family.cls)
    named = str(listed[0])
    found = split(named)
    if found is not None:
        stem, role = found
        if same(stem, _stem(family.cls)):
            return Choice(role, family.cls if role == CAUSAL else named)
        if role != BASE or family_of(named) is not None:
            note = f"architectures names {name(named)}, no class of {family.model_type}: model_type is what counts"
            return Choice(role, class_name(family, role), (note,))
    raise SourceError(
        f"{c.where}: architectures names {name(named)}, which is not described; of {family.model_type} there is "
        f"{_described(family)}; --class reads the config as one of them"
    )


def _asked(asked: str, family: Family) -> Choice:
    """A class that the caller names, by its ending or in full."""
    if asked in DECODER_ONLY:
        return Choice(asked, class_name(family, asked))
    found = split(asked)
    if asked in (family.cls, *family.also) or (found is not None and same(found[0], _stem(family.cls))):
        return Choice(CAUSAL if found is None else found[1], asked)
    why = ", which is decoder-only," if asked in ELSEWHERE else ""
    raise SettingError(f"class is {short(asked)}; {family.model_type}{why} has {_described(family)}")


def _described(family: Family) -> str:
    return ", ".join(f"{role} ({class_name(family, role)})" for role in DECODER_ONLY)


def class_name(family: Family, role: str) -> str:
    """The public implementation's name of a class."""
    if role == CAUSAL:
        return family.cls
    suffix = {BASE: "Model", SEQUENCE: "ForSequenceClassification", TOKEN: "ForTokenClassification"}[role]
    return _stem(family.cls) + suffix


def labels(c: Config) -> int:
    """How many labels a classifier has: those of `id2label`, else `num_labels`, else 2."""
    table = c.table("id2label")
    if table is not None:
        if not table:
            c.fail("id2label", "an object with at least one label")
        return len(table)
    return c.size("num_labels", 2)


def finish(c: Config, made: Decoder, family: Family, role: str) -> tuple[Decoder, Names]:
    """The model with the end that its class has, and where its weights are stored. Raises SourceError."""
    names = family.names if made.names is None else made.names
    if role == CAUSAL:
        return made, names
    if not isinstance(made.head, Head):
        raise SourceError(f"{c.where}: {role} is not described for model_type {family.model_type}, {CAUSAL} alone is")
    final = Final(made.head.width, made.head.narrow, made.head.norm)
    prefix = names["E"].removeprefix("~").partition(".")[0] + "."
    if role == BASE:
        return replace(made, head=final, names=None), _without(prefix, names)
    classifier = Classifier(final, labels(c), bias=role == TOKEN)
    # the older implementations call a token's classifier so, whose base is no attribute `model`
    path = "score" if role == SEQUENCE or prefix == "model." else "classifier"
    stored = {"Wscore": f"{path}.weight", "Bscore": f"{path}.bias"}
    return replace(made, head=classifier, names=None), {**names, **stored}


def _without(prefix: str, names: Names) -> Names:
    """The same paths without their first part; ~ stays in front."""
    return {
        weight: path[:1] * path.startswith("~") + path.removeprefix("~").removeprefix(prefix)
        for weight, path in names.items()
    }
