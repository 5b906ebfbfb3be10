"""From the world: a config, a description, a preset or a name in, a model out."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from assay.errors import SettingError, SourceError, UnknownModel, of_module
from assay.records import dataclass, field
from assay.spec import Model

__all__ = ["Found", "find", "is_bare_weights", "load"]

WEIGHTS = (".gguf", ".safetensors", ".safetensors.index.json")


@dataclass(frozen=True)
class _How:
    """The ways in which one file may be read as several models."""

    allow: Collection[str] = ()
    cls: str | None = None
    mtp: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """What something stands for, read once: several models can be made of it, of other classes and sizes."""

    _make: Callable[[Any, str, str, _How], Model]
    _data: Any
    _where: str
    _title: str

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The object of a config.json, None of anything else."""
        return self._data if self._make is _configured else None

    def model(
        self,
        *,
        allow: Collection[str] = (),
        cls: str | None = None,
        mtp: bool = False,
        sizes: Mapping[str, int] | None = None,
    ) -> Model:
        """The model, as `load` reads it. Raises SourceError, SettingError."""
        if not isinstance(cls, str | None):
            raise SettingError(f"class is {cls!r}; it must be the name of one, or None")
        return self._make(self._data, self._where, self._title, _How(allow, cls, mtp, {} if sizes is None else sizes))


def load(
    what: str | os.PathLike[str] | Mapping[str, Any] | object,
    *,
    allow: Collection[str] = (),
    cls: str | None = None,
    mtp: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Model:
    """Read a model.

    Args:
        what: tried in this order: `-` (a config on standard input), a path (a config.json, a folder holding one, a
            description in TOML, a .gguf file), a preset, `org/name[@revision]` in the hub's local cache, then on the
            hub. Or a dict with the content of a config.json, or a config object of `transformers`.
        allow: config keys that are not accounted for and may be ignored; a note says so.
        cls: the class to read in place of the one that the config names: causal, masked, base,
            sequence-classification, token-classification or another that the family has, or the name of a class.
        mtp: include the multi-token-prediction modules, as many as the config says.
        sizes: other values for keys of a description, a preset or a config, such as {"width": 2048}; a key of a table
            is written "attention.heads".

    Raises:
        SourceError: it cannot be read as a model; the message names file, key, value and what is allowed.
        UnknownModel: nothing has this name; the message says what was tried.
        SettingError: the family has no such class, no multi-token-prediction module, or no such size.
    """
    return find(what).model(allow=allow, cls=cls, mtp=mtp, sizes=sizes)


def find(what: str | os.PathLike[str] | Mapping[str, Any] | object) -> Found:
    """What something stands for, as `load` finds it. Raises SourceError, UnknownModel."""
    if isinstance(what, str | os.PathLike):
        path = os.fspath(what)
        if not isinstance(path, str):
            raise SourceError(f"{path!r} is bytes; a name or a path is text")
        return _named(path)
    if isinstance(what, Mapping):
        return _held(what, "config")
    to_dict = getattr(what, "to_dict", None)
    if callable(to_dict) and not isinstance(what, type):
        held = to_dict()
        if isinstance(held, Mapping):
            return _held(held, type(what).__name__)
    if callable(getattr(what, "forward", None)) and not isinstance(what, type):
        raise SourceError(f"a {type(what).__name__} is a module, not a config; {of_module()}")
    raise SourceError(
        f"what is of type {type(what).__name__} cannot be loaded; a name, a path, a dict or an object "
        f"with to_dict() can, such as a config of transformers"
    )


def _named(text: str) -> Found:
    from assay.sources import files

    if text == "-":
        return _config(files.read_standard_input(), "standard input", "config")
    path = os.path.expanduser(text)
    there = files.exists(path)
    if there and path.endswith(WEIGHTS):
        return Found(_weights, path, path, files.title(path))
    if there and files.holds_config(path):
        return _file(files.locate(path), None)
    preset = _preset(text)
    if preset is not None:
        return preset
    if there and any(entry.endswith(WEIGHTS) for entry in files.inside(path)):
        return Found(_weights, path, path, files.title(path))
    if there:
        files.locate(path)  # raises: a folder without a config
    return _repository(text)


def is_bare_weights(path: str) -> bool:
    """True for weight files of safetensors, or a folder of them, without a config."""
    from assay.sources import files

    if not files.exists(path) or files.CONFIG in files.inside(path):
        return False
    return path.endswith(WEIGHTS[1:]) or any(entry.endswith(WEIGHTS[1:]) for entry in files.inside(path))


def _weights(path: str, where: str, title: str, how: _How) -> Model:
    """A GGUF file, whose metadata are as good as a config."""
    from assay.sources.checkpoints.model import read_gguf_model

    if how.mtp:
        raise SettingError(f"mtp is asked for; {title} is read from its metadata, which say nothing of it")
    if how.sizes:
        raise SettingError(f"{', '.join(how.sizes)} cannot be set: {title} holds weights of its own sizes")
    return read_gguf_model(path, title, how.allow, how.cls)


def _file(path: str, title: str | None) -> Found:
    """A description where the name ends in .toml, else a config."""
    from assay.sources import files
    from assay.sources.shown import name

    raw, where, called = files.read(path), name(path), title or files.title(path)
    if not path.endswith(".toml"):
        return _config(raw, where, called)
    from assay.sources.descriptions import parse
    from assay.sources.jsontext import decode

    return Found(_described, parse(decode(raw, where, "a description is TOML text"), where), where, called)


def _described(data: Mapping[str, Any], where: str, called: str, how: _How) -> Model:
    """The tables of a description."""
    from assay.sources.descriptions import read_table

    if how.mtp:
        raise SettingError(f"mtp is asked for; {where} is a description, which has no modules for further tokens")
    if not how.sizes:
        return read_table(data, where, called, how.cls)
    from assay.sources.resized import checked, described, titled

    anew = titled(where, how.sizes)
    return checked(read_table(described(data, how.sizes, where), anew, called, how.cls), how.sizes)


def _preset(text: str) -> Found | None:
    if not text.isprintable() or not 0 < len(text) <= 100:
        return None
    from assay.sources.presets import is_preset, table

    known = text if is_preset(text) else text.lower()  # as hubs and papers capitalize them
    return Found(_described, table(known), f"{known}.toml", known) if is_preset(known) else None


def _repository(text: str) -> Found:
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
        return _file(found, str(repository))
    tried = f"{repository}: no file, no preset, and not in the local cache ({name(hub.cache_folder())})"
    if not repository.owned:
        raise UnknownModel(f"{tried}{_nearest(text)}")
    forbidden = hub.offline()
    if forbidden is not None:
        raise UnknownModel(f"{tried}; {forbidden} is set, so the hub is not asked{_nearest(text)}")
    raw, problem = hub.fetch(repository)
    if problem:
        raise UnknownModel(f"{tried}; {problem}{_nearest(text)}")
    return _config(raw, f"{repository} on the hub", str(repository))


def _nearest(text: str) -> str:
    """The presets that are called much like it."""
    from assay.sources.presets import presets
    from assay.sources.types import nearest

    near = nearest(text.rpartition("/")[2], (preset for preset, _ in presets()))
    return f"; presets like it: {', '.join(near)}" if near else "; `assay models` lists the presets"


def _config(raw: bytes, where: str, title: str) -> Found:
    from assay.sources.jsontext import parse

    return Found(_configured, parse(raw, where), where, title)


def _configured(data: Mapping[str, Any], where: str, title: str, how: _How) -> Model:
    """The object of a config.json."""
    from assay.sources.huggingface import read_config

    if not how.sizes:
        return read_config(data, where, title, how.allow, how.cls, how.mtp)
    from assay.sources.resized import checked, configured, titled

    held = configured(data, how.sizes, where)
    return checked(read_config(held, titled(where, how.sizes), title, how.allow, how.cls, how.mtp), how.sizes)


def _held(data: Mapping[Any, Any], where: str) -> Found:
    from assay.sources.jsontext import plain
    from assay.sources.shown import name

    title = data.get("_name_or_path") or data.get("name_or_path")
    return Found(_configured, plain(data, where), where, name(title) if isinstance(title, str) else "config")
