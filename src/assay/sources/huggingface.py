"""A config.json as a model: the family by `model_type`, every key accounted for, nothing guessed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from assay.blocks import Decoder
from assay.errors import SettingError, SizeError, SourceError
from assay.sources.classes import choose, family_of, finish
from assay.sources.config import Config, plain
from assay.sources.families import FAMILIES, Family
from assay.sources.families.common import CAUSAL
from assay.sources.harmless import HARMLESS, INERT, is_harmless, restates
from assay.sources.published import publish
from assay.sources.shown import name as shown
from assay.sources.shown import short
from assay.spec import Model, Segment

if TYPE_CHECKING:
    from assay.formats import Scheme
    from assay.sources.families.common import Stack

__all__ = ["HARMLESS", "read_config"]

MOST = 6  # keys that one line names


def read_config(
    data: Mapping[str, Any],
    where: str,
    name: str,
    allow: Collection[str] = (),
    cls: str | None = None,
    mtp: bool = False,
) -> Model:
    """The model that a config describes, of the class `cls` or the one that the config names.

    `where` names the file in messages, `name` the model; keys of `allow` may stay unread; `mtp` adds the modules that
    predict further tokens.
    Raises SourceError naming file, key, value and what is allowed; SettingError for a class that the family lacks.
    """
    c = Config(data, where)
    c.mtp = mtp
    family, notes = _family(c)
    choice = choose(c, family, cls)
    try:
        read = _seeing(c, family.read(c))
        if mtp and (choice.role != CAUSAL or not getattr(read, "further", ())):
            raise SettingError(
                f"mtp is asked for; {choice.cls} of {family.model_type} is described without modules for further tokens"
            )
        made, names = finish(c, read, family, choice.role)
        quantization, scheme = _quantization(c, family)
        segments = publish(family.model_type, made.segments(names))
        passed = _unknown(c, family, allow, segments)
        notes += [*choice.notes, *c.notes, *passed.values()]
        model = Model(
            name,
            segments,
            family=family.model_type,
            cls=choice.cls,
            source=where,
            layers=made.depth,
            width=made.width,
            depths=tuple(c.depths.items()),
            unsaid=tuple(c.unsaid),
            positions=made.limit,
            trained=made.trained,
            dtype=_dtype(c) or _nested_dtype(c),
            deviation=_deviation(c),
            starts=tuple(c.starts.items()),
            quantization=quantization,
            settings=made.settings,
            source_tokens=made.source_tokens,
            source_positions=made.source_limit,
            source_stride=made.source_stride,
            source_extra=made.source_extra,
            sight=made.sight,
            ignored=tuple(c.unread()),
            allowed=tuple(passed),
            notes=tuple(notes),
        )
        model = plain(model)
        return model if scheme is None else _quantized(model, scheme)
    except SizeError as error:  # sizes that each fit, and do not fit each other
        raise SourceError(f"{where}: {error}") from None


def _family(c: Config) -> tuple[Family, list[str]]:
    """The family by `model_type`; where there is none, by the class that `architectures` names. Raises SourceError."""
    if not c.has("model_type"):
        return _by_class(c)
    model_type = c.word("model_type", None)
    found = FAMILIES.get(model_type)
    if found is not None:
        return found, []
    from assay.sources.types import RENAMED, refusal  # only where the type is not one of ours

    renamed = RENAMED.get(model_type)
    if renamed is None or renamed.to not in FAMILIES:
        raise SourceError(f"{c.where}: {refusal(model_type, FAMILIES, 'auto_map' in c.data)}")
    c.data = {**renamed.values, **c.data}
    c.rename(**renamed.keys)
    return FAMILIES[renamed.to], [f"model_type {model_type} is read as {renamed.to}, whose layers it has"]


def _by_class(c: Config) -> tuple[Family, list[str]]:
    classes = c.sequence("architectures", lambda v: isinstance(v, str), "class names") or [""]
    if "ssm_cfg" in c.data:
        from assay.sources.untyped import model_type_of

        told = model_type_of(c)
        if told is not None:
            return FAMILIES[told], [f"model_type is missing; the keys are those of {told}"]
    model_type = family_of(classes[0])
    if model_type is None:
        of = f", and architectures, {short(classes)}, is of no one known type" if classes[0] else ""
        state = "null" if "model_type" in c.data else "missing"
        raise SourceError(f"{c.where}: model_type is {state}{of}; it must be one of those that `assay families` lists")
    return FAMILIES[model_type], [f"model_type is missing; {shown(classes[0])} of architectures is of {model_type}"]


def _seeing(c: Config, made: Stack) -> Stack:
    """A decoder-only model whose config makes its tokens see those behind them: the classes of embeddings do so."""
    if type(made) is not Decoder or not c.has("is_causal") or c.flag("is_causal", True):
        return made
    from assay.blocks.encoders import both_ways

    try:
        return both_ways(made)
    except SizeError:
        c.fail("is_causal", f"true or null for model_type {c.data.get('model_type')}, whose layers have a direction")


def _quantization(c: Config, family: Family) -> tuple[Mapping[str, Any] | None, Scheme | None]:
    """How the config says that weights are quantized: its table, and what the table means."""
    holders = [c, c.child("text_config")] if isinstance(c.data.get("text_config"), dict) else [c]
    for held in holders:
        for key in ("quantization_config", "compression_config", "quantization"):
            table = held.table(key)
            if table is not None:
                if held.data.get("quantization") == table:
                    held.skip("quantization")  # MLX writes its table twice
                from assay.sources.quantization import read_scheme

                return table, read_scheme(held, key, family.model_type, _dtype(held) or _dtype(c))
    return None, None


def _quantized(model: Model, scheme: Scheme) -> Model:
    from assay.rewrites.quantize import quantize

    return quantize(model, scheme)


def _dtype(c: Config) -> str | None:
    """The weights' dtype, where the config says; the newer key first."""
    for key in ("dtype", "torch_dtype"):
        if c.has(key):
            kept = c.word(key, None)
            return None if kept == "auto" else kept.removeprefix("torch.")
    return None


def _deviation(c: Config) -> float | None:
    """The standard deviation of weights at the start, where the config says: no figure depends on it."""
    for held in (c.data, c.data.get("text_config")):
        for key in ("initializer_range", "init_std"):
            value = held.get(key) if isinstance(held, dict) else None
            if isinstance(value, float) and 0 < value < 1:
                return float(value)
    return None


def _nested_dtype(c: Config) -> str | None:
    """The dtype that the config of the text model says."""
    return _dtype(c.child("text_config")) if isinstance(c.data.get("text_config"), dict) else None


def _unknown(c: Config, family: Family, allow: Collection[str], segments: Iterable[Segment]) -> dict[str, str]:
    """The keys let through, each with a note. Raises SourceError for others that might change the model."""
    allowed = {allow} if isinstance(allow, str) else set(allow)
    unread = {
        path: value
        for path, value in c.remaining().items()
        if not is_harmless(path, value)
        and not family.harmless & {path, path.rpartition(".")[2]}
        and not restates(path, value, c.holder(path).read)
        and not _of_text(c, path)
        and not _goes_without(path, value, segments)
    }
    unknown = {path: value for path, value in unread.items() if not allowed & {path, path.rpartition(".")[2]}}
    if unknown:
        said = ", ".join(f"{shown(path)} is {short(value)}" for path, value in list(unknown.items())[:MOST])
        more = f" and {len(unknown) - MOST} more keys" if len(unknown) > MOST else ""
        named = [shown(path) for path in list(unknown)[:MOST]]
        letting = f"{' '.join(f'--allow {name}' for name in named)} (in Python allow={named})"
        raise SourceError(
            f"{c.where}: {said}{more}: not known for {family.model_type}{_unless(unknown)}, and might change "
            f"the model; {_meant(c, unknown)}{letting} leaves it out of account"
        )
    return {
        path: f"{shown(path)} is {short(value)}: let through, and not in the figures" for path, value in unread.items()
    }


def _meant(c: Config, unknown: Iterable[str]) -> str:
    """The keys that were looked for, not found and are spelled nearly as unknown ones."""
    from difflib import get_close_matches

    near = []
    for path in list(unknown)[:MOST]:
        holder = c.holder(path)
        absent = [key for key in holder.used if key not in holder.given]
        near += [holder.path(key) for key in get_close_matches(path.rpartition(".")[2][:100], absent, 1, 0.75)]
    return f"did you mean {' and '.join(near)}? " if near else ""


def _of_text(c: Config, path: str) -> bool:
    """True for a vocabulary beside the config of the text model, which says its own."""
    return path == "vocab_size" and "text_config" in c.children and "vocab_size" in c.children["text_config"].read


def _goes_without(path: str, value: Any, segments: Iterable[Segment]) -> bool:
    """True where a key says that there are no biases, and the model that was read has none."""
    if value is not False or "bias" not in path.rpartition(".")[2].split("_"):
        return False
    weights = (s.block.weight(w.name).path for s in segments for op in s.block.ops for w in op.weights)
    return not any("bias" in stored for stored in weights)


def _unless(unknown: Collection[str]) -> str:
    """The values at which keys that are known to the library at large change nothing."""
    inert = {path: INERT.get(path.rpartition(".")[2]) for path in unknown}
    said = [f"{shown(path)} {' or '.join(map(short, values))}" for path, values in inert.items() if values]
    return f" unless {', '.join(said)}" if said else ""
