"""Which class of a family a config names, and what stands behind the last layer of each.

A causal language model has a head over the vocabulary, the base model none, a classifier one matrix over its labels.
A family without a causal language model lists its classes itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from assay.blocks import Classifier, Decoder, Final, Head
from assay.errors import SettingError, SourceError
from assay.records import dataclass, replace
from assay.sources.config import Config
from assay.sources.families import FAMILIES, Family
from assay.sources.families.common import (
    BASE,
    CAUSAL,
    ENCODER,
    MASKED,
    PRETRAINING,
    QUESTION,
    SEQ2SEQ,
    SEQUENCE,
    TOKEN,
    Class,
    Names,
    Stack,
    labels,
)
from assay.sources.shown import name, short

if TYPE_CHECKING:
    pass

SUFFIXES = {  # what the public implementation puts behind a family's name; the longer first
    "ForSequenceClassification": SEQUENCE,
    "ForTokenClassification": TOKEN,
    "ForQuestionAnswering": QUESTION,
    "ForMaskedLM": MASKED,
    "ForPreTraining": PRETRAINING,
    "ForConditionalGeneration": SEQ2SEQ,
    "MTModel": SEQ2SEQ,
    "EncoderModel": ENCODER,
    "ForCausalLM": CAUSAL,
    "WithLMHeadModel": CAUSAL,
    "LMHeadModel": CAUSAL,
    "TextModel": BASE,
    "Model": BASE,
}
DECODER_ONLY = {CAUSAL: "", BASE: "Model", SEQUENCE: "ForSequenceClassification", TOKEN: "ForTokenClassification"}
CLASSIFIERS = ("ctrl",)  # families whose sequence classifier is stored as `classifier`
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
    """The one model_type whose class, of any ending, this is; None where there is none, or none of several is so named.

    Types whose configs are read as another's class share it: LlamaForCausalLM is of llama all the same.
    """
    types = [family.model_type for family in FAMILIES.values() if _role(family, cls) is not None]
    named = [model_type for model_type in types if same(model_type.replace("-", "_"), _stem(cls))]
    return types[0] if len(types) == 1 else named[0] if len(named) == 1 else None


def _role(family: Family, cls: str) -> str | None:
    """What a class is among those of a family, None where it is not one of them."""
    if cls in (family.cls, *family.also):
        return next(iter(offered(family)))
    if family.classes:
        return next((role for role, known in offered(family).items() if known == cls), None)
    found = split(cls)
    if found is None or found[1] not in DECODER_ONLY or not same(found[0], _stem(family.cls)):
        return None
    return found[1]


def choose(c: Config, family: Family, asked: str | None) -> Choice:
    """The class to read: `asked` if given, else `architectures[0]`, else causal or the first one that is listed.

    Raises SettingError, SourceError.
    """
    listed = c.sequence("architectures", lambda v: isinstance(v, str), "class names")
    if asked is not None:
        return _asked(asked, family)
    own = offered(family)
    first = next(iter(own))
    if not listed or listed[0] in (family.cls, *family.also):
        return Choice(first, family.cls)
    named = str(listed[0])
    known = _role(family, named)
    if known is not None:
        return Choice(known, family.cls if known == first else named)
    found = split(named)
    if found is not None and found[1] in own and (found[1] != BASE or family_of(named) is not None):
        note = f"architectures names {name(named)}, no class of {family.model_type}: model_type is what counts"
        return Choice(found[1], own[found[1]], (note,))
    raise SourceError(
        f"{c.where}: architectures names {name(named)}, which is not described; of {family.model_type} there is "
        f"{_described(family)}; --class reads the config as one of them"
    )


def _asked(asked: str, family: Family) -> Choice:
    """A class that the caller names, by its ending or in full."""
    own = offered(family)
    if asked in own:
        return Choice(asked, own[asked])
    role = _role(family, asked)
    if role is not None:
        return Choice(role, asked)
    lacks = ", which is decoder-only," if not family.classes and asked in ELSEWHERE else ""
    raise SettingError(f"class is {short(asked)}; {family.model_type}{lacks} has {_described(family)}")


def _described(family: Family) -> str:
    return ", ".join(f"{role} ({cls})" for role, cls in offered(family).items())


def offered(family: Family) -> dict[str, str]:
    """What a family's classes are, and the public implementation's name of each; the default first."""
    if family.classes:
        return {one.role: family.stem + one.suffix for one in family.classes}
    stem = _stem(family.cls)
    if family.model_type.endswith("_text") and not stem.endswith("Text"):
        stem += "Text"  # the text model of a family with towers: only its causal language model is named without
    return {role: stem + ending if ending else family.cls for role, ending in DECODER_ONLY.items()}


def names_of(family: Family, role: str) -> Names:
    """Where a class of a family keeps its weights, as far as the family alone says."""
    if family.classes:
        chosen = next(one for one in family.classes if one.role == role)
        together = {**family.names, **chosen.names}
        return _without(_prefix(together), together) if chosen.bare else together
    if role == CAUSAL:
        return family.names
    if role == BASE:
        return _without(_prefix(family.names), family.names)
    return {**family.names, **_classifier(family, role, _prefix(family.names))}


def _classifier(family: Family, role: str, prefix: str) -> dict[str, str]:
    """Where a decoder-only family keeps its classifier."""
    # the older implementations call a token's classifier so, whose base is no attribute `model`; one calls both so
    either = family.model_type in CLASSIFIERS
    path = "classifier" if either or (role == TOKEN and prefix != "model.") else "score"
    return {"Wscore": f"{path}.weight", "Bscore": f"{path}.bias"}


def finish(c: Config, made: Stack, family: Family, role: str) -> tuple[Stack, Names]:
    """The model with the end that its class has, and where its weights are stored. Raises SourceError."""
    names = family.names if made.names is None else made.names
    if family.classes:
        return _listed(c, made, next(one for one in family.classes if one.role == role), names)
    if role == CAUSAL:
        return made, names
    if not isinstance(made, Decoder) or not isinstance(made.head, Head):
        raise SourceError(f"{c.where}: {role} is not described for model_type {family.model_type}, {CAUSAL} alone is")
    final = Final(made.head.width, made.head.narrow, made.head.norm)
    prefix = _prefix(names)
    if role == BASE:
        return replace(made, head=final, names=None), _without(prefix, names)
    classifier = Classifier(final, labels(c), bias=role == TOKEN)
    return replace(made, head=classifier, names=None), {**names, **_classifier(family, role, prefix)}


def _listed(c: Config, made: Stack, chosen: Class, names: Names) -> tuple[Stack, Names]:
    """The model with the end of a listed class."""
    together = {**names, **chosen.names, **(made.names or {})}  # those of this very config last
    if chosen.bare:
        together = _without(_prefix(names), together)
    end = chosen.end(c, made)
    return cast("Stack", end) if hasattr(end, "segments") else made.ending(end), together


def _prefix(names: Names) -> str:
    """What the base model is called within the others."""
    return names["E"].removeprefix("~").partition(".")[0] + "."


def _without(prefix: str, names: Names) -> dict[str, str]:
    """The same paths without their first part; ~ stays in front."""
    return {
        weight: path[:1] * path.startswith("~") + path.removeprefix("~").removeprefix(prefix)
        for weight, path in names.items()
    }
