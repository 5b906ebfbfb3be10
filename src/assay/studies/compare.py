"""Several models side by side: the report's figures, their ratios to the first model's, and what explains them.

What explains them: sizes that differ, with the config keys they are from; kinds of layers; ops that some have and
others lack; what the weights are stored in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.errors import SettingError
from assay.readings.count import Count, count
from assay.readings.setting import default_tokens
from assay.readings.words import word
from assay.records import dataclass
from assay.report.contract import document
from assay.report.model import stored_as
from assay.spec import AXES, Model, Op, Segment, check_model

# parts that have sizes of their own, which the letters of others may stand for, too
PLACES = ("mixer", "mlp", "experts", "router", "tower")


@dataclass(frozen=True)
class Held:
    """A size in some layers of a model: its value, of how many layers, and the key it came from."""

    value: int
    layers: int
    key: str = ""


@dataclass(frozen=True)
class Size:
    """A size by its letter and place: what each model has, in one kind of layers after the other; () for none."""

    axis: str
    says: str
    part: str
    held: tuple[tuple[Held, ...], ...]


@dataclass(frozen=True)
class OpOf:
    """An op that some models have and others lack: in how many layers of each, None where the part itself is not."""

    part: str
    notation: str
    layers: tuple[int | None, ...]


@dataclass(frozen=True)
class Comparison:
    """Models, their counts in one setting, and the differences.

    `figures` are the report's by their paths, `sizes` those that are not the same everywhere, `parts` those that some
    models have and others lack, `ops` those of parts that all have, `tied` whether the head shares the embedding's
    table (None without a head over words), and `formats` what the weights are stored in.
    """

    models: tuple[Model, ...]
    counts: tuple[Count, ...]
    figures: Mapping[str, tuple[Any, ...]]
    sizes: tuple[Size, ...]
    parts: Mapping[str, tuple[int, ...]]
    ops: tuple[OpOf, ...]
    tied: tuple[bool | None, ...]
    formats: tuple[str, ...]

    def ratios(self, figure: str) -> tuple[float | None, ...]:
        """Each model's figure over the first one's; None where that is 0, or unknown."""
        first = self.figures[figure][0]
        return tuple(None if not first or value is None else value / first for value in self.figures[figure])

    def __str__(self) -> str:
        from assay.report.table import Style
        from assay.studies.compared import report

        return "\n".join(report(self, Style(False)))


def compare(models: Sequence[Model], **settings: Any) -> Comparison:
    """Compare models at one setting, given as `count` takes it.

    Without tokens, all are counted at 2,048, or at fewer if the shortest position table has fewer rows.
    Raises SettingError for fewer than two models, and for what cannot be asked of one of them.
    """
    models = _several(models)
    alike = dict(settings)
    text = [model for model in models if model.sight is None or model.sight.alone is None]
    if not {"tokens", "context", "past"} & {key for key, value in alike.items() if value is not None} and text:
        alike["tokens"] = min(default_tokens(model) for model in text)
    counts = tuple(count(model, **alike) for model in models)
    parts, ops = _ops(models)
    return Comparison(
        tuple(models),
        counts,
        _figures(models, counts),
        tuple(size for size in _sizes(models) if len(set(map(_values, size.held))) > 1),
        parts,
        ops,
        tuple(map(_tied, models, counts)),
        tuple(stored_as(model, counted) for model, counted in zip(models, counts, strict=True)),
    )


def _several(models: object) -> tuple[Model, ...]:
    """Two models or more. Raises SettingError."""
    if isinstance(models, str) or not isinstance(models, Iterable):
        raise SettingError(f"a comparison is of a list of models, not a {type(models).__name__}")
    held = tuple(models)
    for model in held:
        check_model(model)
    if len(held) < 2:
        raise SettingError(f"a comparison is of two models or more; {len(held)} given")
    return held


def _figures(models: Sequence[Model], counts: Sequence[Count]) -> dict[str, tuple[Any, ...]]:
    """Every figure of the report by its path; a part that a model lacks is 0."""
    flat: list[dict[str, Any]] = []
    for model, counted in zip(models, counts, strict=True):
        made = document("", model, counted)
        one: dict[str, Any] = {"model.layers": model.layers, "model.width": model.width}
        for part in ("parameters", "flops", "cache", "weights"):
            one |= dict(_paths(made[part], part))
        flat.append({name: value for name, value in one.items() if not isinstance(value, str)})
    names = dict.fromkeys(name for one in flat for name in one)
    return {name: tuple(one.get(name, 0) for one in flat) for name in _grouped(names)}


def _grouped(names: Mapping[str, None]) -> list[str]:
    """Paths in the order that they were met, those of one table together."""
    order = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
    return sorted(names, key=lambda name: order.index(name.rpartition(".")[0]))


def _paths(held: Mapping[str, Any], path: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in held.items():
        found += _paths(value, f"{path}.{key}") if isinstance(value, Mapping) else [(f"{path}.{key}", value)]
    return found


def _sizes(models: Sequence[Model]) -> list[Size]:
    """Every size of every model: one letter in one part is one size."""
    each = [_sizes_of(model) for model in models]
    says = [_words(model) for model in models]
    keys = dict.fromkeys(key for found in each for key in found)
    order = {axis: place for place, axis in enumerate(AXES)}
    ranked = sorted(keys, key=lambda key: (order.get(key[0], len(order)), list(keys).index(key)))
    made = []
    for axis, part in ranked:
        held = tuple(found.get((axis, part), ()) for found in each)
        made.append(Size(axis, next((said for found in says if (said := found.get((axis, part)))), ""), part, held))
    return made


def _sizes_of(model: Model) -> dict[tuple[str, str], tuple[Held, ...]]:
    found: dict[tuple[str, str], list[Held]] = {}
    for segment in model.segments:
        for axis, value in segment.block.sizes.items():
            key = (axis, _place(segment, axis))
            held = Held(value, len(segment.layers), segment.block.origins.get(axis, ""))
            before = found.setdefault(key, [])
            same = next((i for i, one in enumerate(before) if one.value == value), None)
            if same is None:
                before.append(held)
            else:
                before[same] = Held(value, before[same].layers + held.layers, before[same].key or held.key)
    return {key: tuple(held) for key, held in found.items()}


def _words(model: Model) -> dict[tuple[str, str], str]:
    """What the field calls each size, by its letter and part."""
    blocks = [(axis, segment) for segment in model.segments for axis in segment.block.sizes]
    return {(axis, _place(segment, axis)): said for axis, segment in blocks if (said := word(axis, segment.block))}


def _place(segment: Segment, axis: str) -> str:
    """The part that a size belongs to: the one whose weights have it; "" where several do."""
    parts = {op.part.partition(".")[0] for op in segment.block.ops if any(axis in w.axes for w in op.weights)}
    return parts.pop() if len(parts) == 1 and parts <= set(PLACES) else ""


def _values(held: tuple[Held, ...]) -> tuple[tuple[int, int], ...]:
    """What makes two models alike in a size: its values, and in how many layers where there are several."""
    return tuple((one.value, one.layers if len(held) > 1 else 0) for one in held)


def _ops(models: Sequence[Model]) -> tuple[dict[str, tuple[int, ...]], tuple[OpOf, ...]]:
    """Parts that not all have, with the layers that have them; and ops of the others that not all have."""
    each = [_ops_of(model) for model in models]
    parts = dict.fromkeys(part for found in each for part, _ in found)
    layers = {
        part: tuple(max((n for (p, _), n in found.items() if p == part), default=0) for found in each) for part in parts
    }
    lacking = {part: held for part, held in layers.items() if 0 in held}
    keys = dict.fromkeys(key for found in each for key in found)
    ops = [
        OpOf(part, notation, tuple(found.get((part, notation), 0) for found in each))
        for part, notation in keys
        if part not in lacking and any((part, notation) not in found for found in each)
    ]
    return lacking, tuple(sorted(ops, key=lambda op: list(parts).index(op.part)))


def _ops_of(model: Model) -> dict[tuple[str, str], int]:
    """Each op by its part and its notation without numbers, and how many layers have it, 1 for what stands outside."""
    found: dict[tuple[str, str], int] = {}
    for segment in model.segments:
        for key in dict.fromkeys((op.part.partition(".")[0], _bare(op)) for op in segment.block.ops):
            found[key] = found.get(key, 0) + segment.copies
    return found


def _bare(op: Op) -> str:
    """An op with the axes of its weights, without those of activations and without attributes that are numbers."""
    operands = [str(tensor) if tensor.is_weight else tensor.name for tensor in op.inputs]
    named = [f"{key}={value}" for key, value in op.attrs if isinstance(value, str)]
    return f"{op.name} = {op.kind}({', '.join([*operands, *named])})"


def _tied(model: Model, counted: Count) -> bool | None:
    """True where the matrix of the head is one of the embedding's tables, too."""
    heads = [op for segment in model.segments for op in segment.block.ops if op.part == "head.vocabulary"]
    return counted.parameters.head == 0 if any(op.weights for op in heads) else None
