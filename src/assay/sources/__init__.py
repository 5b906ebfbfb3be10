"""From the world: a config, a description, a preset or a name in, a model out."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from assay.errors import SettingError, SourceError, UnknownModel
from assay.spec import Model

__all__ = ["is_bare_weights", "load"]

WEIGHTS = (".gguf", ".safetensors", ".safetensors.index.json")


def load(
    what: str | os.PathLike[str] | Mapping[str, Any] | object,
    *,
    allow: Collection[str] = (),
    cls: str | None = None,
    mtp: bool = False,
) -> Model:
    """The model that something stands for.

    Args:
        what: in this order: `-` (a config on standard input), a path (a config.json, a folder holding one, a
            description in TOML, a .gguf file), a preset, `org/name[@revision]` in the hub's local cache, then on the
            hub.
            Or a dict as a config.json holds it, or a config object of `transformers`.
        allow: keys of the config that nobody accounts for and that may stay so; a note says so.
        cls: the class to read instead of the one that the config names: causal, masked, base,
            sequence-classification, token-classification or another that the family has, or a class's name.
        mtp: with the modules that predict further tokens, as the config counts them.

    Raises:
        SourceError: what is there cannot be read as a model; the line names file, key, value and what is allowed.
        UnknownModel: nothing answers to the name; the line says what was tried.
        SettingError: the family has no such class, or no module that predicts further tokens.
    """
    if not isinstance(cls, str | None):
        raise SettingError(f"class is {cls!r}; it must be the name of one, or None")
    if isinstance(what, str | os.PathLike):
        path = os.fspath(what)
        if not isinstance(path, str):
            raise SourceError(f"{path!r} is bytes; a name or a path is text")
        return _named(path, allow, cls, mtp)
    if isinstance(what, Mapping):
        return _held(what, "config", allow, cls, mtp)
    to_dict = getattr(what, "to_dict", None)
    if callable(to_dict) and not isinstance(what, type):
        held = to_dict()
        if isinstance(held, Mapping):
            return _held(held, type(what).__name__, allow, cls, mtp)
    raise SourceError(
        f"what is of type {type(what).__name__} cannot be loaded; a name, a path, a dict or an object "
        f"with to_dict() can, such as a model's .config"
    )


def _named(text: str, allow: Collection[str], cls: str | None, mtp: bool) -> Model:
    from assay.sources import files

    if text == "-":
        return _config(files.read_standard_input(), "standard input", "config", allow, cls, mtp)
    path = os.path.expanduser(text)
    there = files.exists(path)
    if there and path.endswith(WEIGHTS):
        return _weights(path, allow, cls, mtp)
    if there and files.holds_config(path):
        return _file(files.locate(path), None, allow, cls, mtp)
    preset = _preset(text, cls, mtp)
    if preset is not None:
        return preset
    if there and any(entry.endswith(WEIGHTS) for entry in files.inside(path)):
        return _weights(path, allow, cls, mtp)
    if there:
        files.locate(path)  # raises: a folder without a config
    return _repository(text, allow, cls, mtp)


def is_bare_weights(path: str) -> bool:
    """True for weight files of safetensors, or a folder of them, without a config."""
    from assay.sources import files

    if not files.exists(path) or files.CONFIG in files.inside(path):
        return False
    return path.endswith(WEIGHTS[1:]) or any(entry.endswith(WEIGHTS[1:]) for entry in files.inside(path))


def _weights(path: str, allow: Collection[str], cls: str | None, mtp: bool) -> Model:
    """A GGUF file, whose metadata are as good as a config."""
    from assay.sources import files
    from assay.sources.checkpoints.model import read_gguf_model

    if mtp:
        raise SettingError(f"mtp is asked for; {files.title(path)} is read from its metadata, which say nothing of it")
    return read_gguf_model(path, files.title(path), allow, cls)


def _file(path: str, title: str | None, allow: Collection[str], cls: str | None, mtp: bool) -> Model:
    """A description where the name ends in .toml, else a config."""
    from assay.sources import files
    from assay.sources.shown import name

    raw, where, called = files.read(path), name(path), title or files.title(path)
    if not path.endswith(".toml"):
        return _config(raw, where, called, allow, cls, mtp)
    from assay.sources.descriptions import read_description
    from assay.sources.jsontext import decode

    _no_modules(mtp, where)
    return read_description(decode(raw, where, "a description is TOML text"), where, called, cls)


def _preset(text: str, cls: str | None, mtp: bool) -> Model | None:
    if not text.isprintable() or not 0 < len(text) <= 100:
        return None
    from assay.sources.presets import is_preset, read_preset

    if not is_preset(text):
        return None
    _no_modules(mtp, text)
    return read_preset(text, cls)


def _no_modules(mtp: bool, where: str) -> None:
    if mtp:
        raise SettingError(f"mtp is asked for; {where} is a description, which has no modules for further tokens")


def _repository(text: str, allow: Collection[str], cls: str | None, mtp: bool) -> Model:
    from assay.sources import hub
    from assay.sources.shown import name

    looks_like_path = text.endswith((".json", ".toml")) or text.startswith((".", "/", "~")) or "\\" in text
    if looks_like_path or ".." in text:
        raise UnknownModel(f"{name(text)}: no such file or folder")
    repository = hub.parse(text)
    if repository is None:
        raise UnknownModel(f"{name(text)!r}: no file, no preset, and no repository is called so{_nearest(text)}")
    found = hub.cached(repository)
    if found is not None:
        return _file(found, str(repository), allow, cls, mtp)
    tried = f"{repository}: no file, no preset, and not in the local cache ({name(hub.cache_folder())})"
    if not repository.owned:
        raise UnknownModel(f"{tried}{_nearest(text)}")
    forbidden = hub.offline()
    if forbidden is not None:
        raise UnknownModel(f"{tried}; {forbidden} is set, so the hub is not asked{_nearest(text)}")
    raw, problem = hub.fetch(repository)
    if problem:
        raise UnknownModel(f"{tried}; {problem}{_nearest(text)}")
    return _config(raw, f"{repository} on the hub", str(repository), allow, cls, mtp)


def _nearest(text: str) -> str:
    """The presets that are called much like it."""
    from assay.sources.presets import presets
    from assay.sources.types import nearest

    near = nearest(text.rpartition("/")[2], (preset for preset, _ in presets()))
    return f"; presets like it: {', '.join(near)}" if near else "; `assay models` lists the presets"


def _config(raw: bytes, where: str, title: str, allow: Collection[str], cls: str | None, mtp: bool) -> Model:
    from assay.sources.huggingface import read_config
    from assay.sources.jsontext import parse

    return read_config(parse(raw, where), where, title, allow, cls, mtp)


def _held(data: Mapping[Any, Any], where: str, allow: Collection[str], cls: str | None, mtp: bool) -> Model:
    from assay.sources.huggingface import read_config
    from assay.sources.jsontext import plain
    from assay.sources.shown import name

    title = data.get("_name_or_path") or data.get("name_or_path")
    return read_config(plain(data, where), where, name(title) if isinstance(title, str) else "config", allow, cls, mtp)
