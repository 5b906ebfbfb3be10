"""What a user can meet, and nothing else is raised on purpose.

AssayError
├── NotationError    a line of the notation does not parse, or its axes disagree
├── KindError        an op of a kind nobody registered, or a kind registered twice
├── SizeError        a size that is no positive integer, array or symbol, or does not divide
├── SettingError     a batch, length, dtype, convention … that cannot be asked of this model
├── MeasureError     PyTorch code that cannot be measured: an op without a rule, or no PyTorch
├── BuildError       a description that cannot be run: an op without a function, a shape that is not the one said
├── HardwareError    a chip that is not in the catalogue, or a figure of it that nobody prints
└── SourceError      a file, a key or a value of it that cannot be read as a model
    └── UnknownModel     nothing by that name: no file, no preset, no cached or reachable repository

try:
    model = assay.load("config.json")
except assay.AssayError as error:
    print(error)   # one line: file, key, value, what is allowed
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `assay` itself, whose import alone loads this
if TYPE_CHECKING:
    from collections.abc import Collection


class AssayError(Exception):
    """The root: one line for a person, never a traceback."""


class NotationError(AssayError):
    """A line of the notation does not parse, or its axes disagree."""


class KindError(AssayError):
    """An op of a kind that is not registered, or a kind registered twice."""


class SizeError(AssayError):
    """A size that is not a positive integer, array or symbol, or does not divide."""


class SettingError(AssayError):
    """A setting that cannot be asked of this model."""


class MeasureError(AssayError):
    """PyTorch code that cannot be measured."""


class SourceError(AssayError):
    """A file, key or value that cannot be read as a model."""


class UnknownModel(SourceError):
    """No file, preset or repository answers to the name."""


class BuildError(AssayError):
    """A description that cannot be run as it is asked to. `why` is the reason alone, without the op."""

    why: str | None = None


class HardwareError(AssayError):
    """A chip that is not in the catalogue, or a figure of it that it lacks."""


def among(value: object, what: str, known: Collection[str], error: type[AssayError] = SettingError) -> str:
    """A word that must be one of some. Raises the error, which names it and lists them."""
    if not isinstance(value, str) or value not in known:
        raise error(f"{what} is {value!r}; known: {', '.join(known)}")
    return value


def no_model(value: object, wanted: str = "a model") -> SettingError:
    """The error for something that stands where a model should, with what makes a model of it."""
    if isinstance(value, str):
        return SettingError(f"{wanted} is needed, not the name {value!r}; assay.load reads it")
    said = f"{wanted} is needed, not a {type(value).__name__}"
    if callable(getattr(value, "forward", None)):
        return SettingError(f"{said}; {of_module()}")
    from collections.abc import Mapping

    loads = isinstance(value, Mapping) or hasattr(value, "to_dict")
    return SettingError(f"{said}; assay.load {'reads it' if loads else 'makes one'}")


def of_module() -> str:
    """What to do with a module of PyTorch."""
    return "assay.load(module.config) reads a transformers model's config, assay.measure(module, ...) counts any module"
