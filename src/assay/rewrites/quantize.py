"""Quantization: each matrix gets the format that a scheme says; layers that differ by it become blocks of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from assay.formats import Format, Rule, Scheme
from assay.kinds import matrix_axes
from assay.records import replace
from assay.spec import Block, Model, Op, Segment, Tensor, Weight

# the convolution of patches: stored with a kernel's height and width, and quantized by no scheme
_PATCHES = ("patch_embed", "patch_conv", "conv1", "conv2")


def quantize(model: Model, scheme: Scheme) -> Model:
    """The same model, its matrices stored as `scheme` says."""
    if scheme.unknown:
        return replace(model, scheme=scheme)
    by_layer: dict[int | None, list[int]] = {}
    for place, rule in enumerate(scheme.rules):
        by_layer.setdefault(rule.layer, []).append(place)
    ordered = any(rule.format is not None for rule in scheme.rules)  # else all say the same, in any order
    counted = any(rule.numbered for rule in scheme.rules)
    pieces = (_segments(segment, scheme, by_layer, ordered, counted) for segment in model.segments)
    segments = tuple(piece for split in pieces for piece in split)
    return replace(model, segments=segments, scheme=scheme)


def _segments(
    segment: Segment, scheme: Scheme, by_layer: Mapping[int | None, Sequence[int]], ordered: bool, counted: bool
) -> list[Segment]:
    """The segment, or one for each set of layers to which the same rules apply; `by_layer` says which those may be.

    Rules are `ordered` where the first that fits decides, and `counted` where they may tell any layers apart.
    """
    groups: dict[tuple[object, ...], tuple[list[Rule], list[int]]] = {}
    general = by_layer.get(None, ())
    layers = segment.layers or (0,)
    if not counted and by_layer.keys() <= {None}:  # the same rules for all layers
        return [_stored(segment, _formats(segment.block, scheme, list(scheme.rules), layers[0]), layers)]
    for layer in layers:
        places = by_layer.get(layer, ())
        if ordered:
            places = sorted([*general, *places])
        said = [(scheme.rules[at].names, id(scheme.rules[at].format)) for at in places]  # a file's share their formats
        key = tuple(said) if ordered else frozenset(said), layer if counted else None
        if key not in groups:
            groups[key] = [scheme.rules[at] for at in (places if ordered else sorted([*general, *places]))], []
        groups[key][1].append(layer)
    made: dict[tuple[tuple[str, Weight], ...], list[int]] = {}
    for rules, alike in groups.values():
        made.setdefault(tuple(_formats(segment.block, scheme, rules, alike[0]).items()), []).extend(alike)
    return [_stored(segment, dict(formats), tuple(sorted(alike))) for formats, alike in made.items()]


def _stored(segment: Segment, weights: dict[str, Weight], layers: tuple[int, ...]) -> Segment:
    other = segment.absorbed
    return replace(
        segment,
        block=_with(segment.block, weights),
        layers=layers if segment.layers else (),
        absorbed=None if other is None else _with(other, weights),
    )


def _with(block: Block, weights: dict[str, Weight]) -> Block:
    return replace(block, stored={**block.stored, **weights})


def _formats(block: Block, scheme: Scheme, rules: list[Rule], layer: int) -> dict[str, Weight]:
    """The weights of a block that some format is for."""
    found: dict[str, Weight] = {}
    for op in block.ops:
        for weight in op.weights:
            where = block.weight(weight.name)
            kept = _format(op, weight, where, scheme, rules, layer)
            if kept is not None:
                found[weight.name] = replace(where, format=kept)
    return found


def _format(op: Op, weight: Tensor, where: Weight, scheme: Scheme, rules: list[Rule], layer: int) -> Format | None:
    part = op.part.partition(".")[0]
    if where.buffer or part not in scheme.parts or matrix_axes(op, weight) is None:
        return None
    names = _modules(where.path, where.published)
    if not names:
        return None
    for rule in rules:
        for name in names:
            if rule.fits(name, layer):
                return rule.format
    return scheme.default


@lru_cache(maxsize=4096)
def _modules(path: str, published: str | None) -> tuple[str, ...]:
    """The names of the module that holds a tensor, none where it is quantized by no scheme."""
    if any(word in path for word in _PATCHES):
        return ()
    return tuple(dict.fromkeys(module(name) for name in (path, published) if name))


@lru_cache(maxsize=4096)
def module(path: str) -> str:
    """The module that holds a tensor, without what wraps the text model: `layers.{i}.mlp.gate_proj`."""
    return re.sub(r"^(model\.)?(language_model\.)?(model\.)?", "", path).removesuffix(".weight")
