"""Every figure of the report at every setting: `sweep` holds them as columns, `plan` gives them piece by piece.

Settings are counted as arrays, a bounded number of points at a time; sizes of the architecture change the model, which
is read again for each. A column has the name that the figure has in the JSON of the report: `flops.total`,
`setting.context`; a size that is set is `set.width`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from assay.errors import SettingError
from assay.readings.count import Count, count
from assay.readings.setting import SIZES
from assay.records import dataclass, field
from assay.report.contract import document
from assay.report.model import has_latent
from assay.sources import Found, find
from assay.spec import Model
from assay.studies.beside import MORE, Points, beside, checked, groups, roomy, stride
from assay.studies.ranges import Values, dependent, followed, values
from assay.studies.result import Columns, Sweep, in_order
from assay.studies.written import sort_of

CHUNK = 2**15  # points counted at once: their arrays stay in the processor's cache
EXACT = 100_000  # points up to which figures are exact integers where nothing is said

SWEPT = {**SIZES, **MORE}
# settings that are words
WORDS = ("convention", "weights", "cache", "state", "logits", "latent")
DECIMAL = ("flops.per_token", "cache.marginal_bytes_per_token", "ratio")  # ends of figures that may be no integers
INTEGERS = ("model.", "set.", "setting.", "parameters.", "weights.")  # what is never rounded
NEEDS = "a sweep counts in arrays, and NumPy is not installed; pip install numpy"

What = Model | str | os.PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is swept: models, sizes of them, and settings; a row for each of all combinations, the last moving fastest.

    `also` are groups of columns beside the report's.
    """

    models: tuple[Model | Found, ...]
    sizes: Mapping[str, Values] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, Values] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each setting has."""
        return tuple(len(listed) for listed in self.settings.values())

    @property
    def points(self) -> int:
        """Settings of each model."""
        return _product(self.shape)

    @property
    def variants(self) -> int:
        """Models, times the sizes and the words that each is counted with."""
        lists = [*self.sizes.values(), *self.words.values()]
        return len(self.models) * _product(len(listed) for listed in lists)

    def __len__(self) -> int:
        return self.variants * self.points

    @property
    def swept(self) -> tuple[str, ...]:
        """The columns that take several values."""
        names = ["model.name"] if len(self.models) > 1 else []
        names += [f"set.{key}" for key, listed in self.sizes.items() if len(listed) > 1]
        varied = {**self.words, **self.settings}
        return (*names, *(f"setting.{name}" for name, listed in varied.items() if len(listed) > 1))

    def read(self) -> Iterator[tuple[Model, dict[str, int]]]:
        """Each model with its sizes, read when its turn comes."""
        for what in self.models:
            for chosen in product(*self.sizes.values()):
                sizes = followed(dict(zip(self.sizes, chosen, strict=True)), self.rules)
                if isinstance(what, Model):
                    if sizes:
                        raise SettingError(f"{what.name} is read already; sizes are set of what it was read from")
                    yield what, {}
                else:
                    yield what.model(**self.reading, sizes=sizes), sizes


def plan(
    what: What | Sequence[What],
    sizes: Mapping[str, object] | None = None,
    also: Collection[str] = (),
    **settings: Any,
) -> Plan:
    """What `sweep` is asked for, every range read. Raises SettingError."""
    named = tuple(what) if isinstance(what, list | tuple) else (what,)
    if not named:
        raise SettingError("a sweep needs a model")
    models = tuple(one if isinstance(one, Model) else find(one) for one in named)
    reading: dict[str, Any] = {name: settings.pop(name) for name in ("allow", "cls", "mtp") if name in settings}
    unknown = [name for name in settings if name not in SWEPT and name not in WORDS]
    if unknown:
        raise SettingError(f"{unknown[0]} is no setting; known: {', '.join([*SWEPT, *WORDS])}")
    given = {name: value for name, value in settings.items() if value is not None}
    lists: dict[str, Values] = {}
    rules: dict[str, Any] = {}
    for key, value in (sizes or {}).items():
        rule = dependent(value) if isinstance(value, str) else None
        if rule is None:
            lists[key] = values(value, f"the size {key}", 0)
        else:
            rules[key] = rule
    return Plan(
        models,
        lists,
        rules,
        {name: _words(given[name], name) for name in WORDS if name in given},
        {name: values(given[name], name, least) for name, least in SWEPT.items() if name in given},
        reading,
        tuple(dict.fromkeys([*checked(also), *(("generate",) if "generate" in given else ())])),
    )


def _words(given: object, name: str) -> tuple[str, ...]:
    listed = given.split(",") if isinstance(given, str) else given
    if not isinstance(listed, Collection) or not listed or not all(isinstance(word, str) for word in listed):
        raise SettingError(f"{name} is {given!r}; it must be a word, or a list of words")
    return tuple(dict.fromkeys(word.strip() for word in listed))


def sweep(
    what: What | Sequence[What],
    *,
    sizes: Mapping[str, object] | None = None,
    also: Collection[str] = (),
    columns: Collection[str] | None = None,
    exact: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Sweep:
    """Every figure at every combination of models, sizes and settings.

    Args:
        what: a model, what `load` reads, or a list of these.
        sizes: keys of descriptions or configs, each with its values: {"width": "1024:8192", "mlp.width": "4*width"}.
        also: groups of columns beside the report's: "attention", what it is made of; "published", formulas of papers;
            "memory" of inference and "training", of a step, in bytes.
        columns: the columns to keep, all if not given; a group such as "flops" is all that begin so.
        exact: figures as exact integers at any magnitude, or as float64, exact below 2**53 and each step to 1e-16
            beyond; exact up to 100,000 points if not given.
        progress: called with the points counted so far and all of them.
        settings: as `count` takes them, each an int, a word, an iterable, or a range such as "1k:1M", "1k:1M:20",
            "0:100k:+10k"; `generate`, tokens made behind the prompt;
            and `allow`, `cls` and `mtp`, as `load` takes them.

    Raises:
        SettingError: NumPy is not installed, or something cannot be asked.
        SourceError: a model cannot be read.
    """
    asked = plan(what, sizes, dict.fromkeys([*also, *groups(columns or ())]), **settings)
    return gather(asked, columns, exact, progress)


def gather(
    asked: Plan,
    columns: Collection[str] | None = None,
    exact: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """The whole sweep, in memory. Raises SettingError, SourceError."""
    ints = len(asked) <= EXACT if exact is None else exact
    held = Columns(len(asked), ints)
    for piece in pieces(asked, ints):
        held.add(piece.start, piece.stop, piece.figures, columns)
        if progress is not None:
            progress(piece.stop, len(asked))
    return held.made(asked.swept, columns)


@dataclass(frozen=True)
class Piece:
    """Some rows of a sweep: each figure a number of them all, or an array."""

    start: int
    stop: int
    figures: Mapping[str, Any]


def pieces(asked: Plan, exact: bool) -> Iterator[Piece]:
    """The rows, a bounded number at a time. Raises SettingError, SourceError."""
    numpy = _numpy()
    most = CHUNK // 8 if exact else CHUNK
    done = 0
    for model, sizes in asked.read():
        step = stride(model, asked.also, most)
        for chosen in product(*asked.words.values()):
            words: dict[str, Any] = dict(zip(asked.words, chosen, strict=True))
            for start in range(0, asked.points, step):
                stop = min(start + step, asked.points)
                given = _settings(asked, numpy, start, stop, exact)
                yield Piece(done + start, done + stop, _figures(asked, model, sizes, given, words, stop - start))
            done += asked.points


def corners(asked: Plan, exact: bool) -> dict[str, str]:
    """The columns that rows will have, and what each holds, as `written` says it.

    Every model is counted at the ends of every setting. Raises what `pieces` would.
    """
    _numpy()
    found: dict[str, list[Any]] = {}
    ends = [dict.fromkeys((min(listed), max(listed))) for listed in asked.settings.values()]
    for model, sizes in asked.read():
        for chosen in product(*asked.words.values()):
            words: dict[str, Any] = dict(zip(asked.words, chosen, strict=True))
            for corner in product(*ends):
                given: dict[str, Any] = dict(zip(asked.settings, corner, strict=True))
                for name, value in _figures(asked, model, sizes, given, words, 1).items():
                    found.setdefault(name, []).append(value)
    varied = any(len(listed) > 1 for listed in asked.settings.values())
    sorts = {
        name: sort_of(values, name.endswith(DECIMAL) or (varied and not exact and not name.startswith(INTEGERS)))
        for name, values in found.items()
    }
    return {name: sorts[name] for name in in_order(sorts) if sorts[name]}


def _settings(asked: Plan, numpy: Any, start: int, stop: int, exact: bool) -> dict[str, Any]:
    """Settings of some points: an int where there is one value, else an array."""
    found: dict[str, Any] = {}
    places = numpy.unravel_index(numpy.arange(start, stop), asked.shape) if asked.settings else ()
    for (name, listed), at in zip(asked.settings.items(), places, strict=True):
        if len(listed) == 1:
            found[name] = listed[0]
        elif isinstance(listed, range):
            found[name] = (listed.start + listed.step * at).astype(object if exact else float)
        else:
            found[name] = numpy.array([*listed, None], dtype=object)[at] if exact else numpy.array(listed, float)[at]
    return found


def _figures(
    asked: Plan, model: Model, sizes: Mapping[str, int], given: Mapping[str, Any], words: Mapping[str, Any], many: int
) -> dict[str, Any]:
    """The report's JSON, flat: `model`, `setting` and figures by their paths; what one model says in words is left."""
    given = roomy(model, given)
    counted: Count = count(model, **{name: value for name, value in given.items() if name not in MORE}, **words)
    made = document("", model, counted)
    found: dict[str, Any] = {f"model.{key}": made["model"][key] for key in ("name", "family", "class")}
    found |= {f"set.{key}": value for key, value in sizes.items()}
    found |= {f"model.{key}": made["model"][key] for key in ("layers", "width")}
    found["model.latent"] = has_latent(model)
    for part in ("setting", "parameters", "flops", "cache", "weights"):
        found |= dict(_flat(made[part], part))
    for block in made["blocks"]:
        for key in ("times", "parameters", "active", "flops", "cache_bytes"):
            name = f"blocks.{block['name']}.{key}"
            found[name] = found.get(name, 0) + block[key]
    found |= {f"setting.{name}": given[name] for name in MORE if name in given}
    return found | beside(asked.also, Points(model, counted, given, words, many))


def _flat(held: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in held.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.{key}")
        else:
            yield f"{path}.{key}", value


def _product(numbers: Any) -> int:
    from math import prod

    return prod(numbers)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise SettingError(NEEDS) from None
    return numpy
