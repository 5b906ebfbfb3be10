"""A checkpoint against a model: tensors that are missing, unexpected, or of another shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from assay.errors import SettingError
from assay.readings.lent import lent
from assay.readings.tensors import Entry, Stored, of_layer, tensors
from assay.records import dataclass
from assay.size import Size
from assay.spec import Model

Shape = tuple[Size, ...]
Held = Mapping[str, Shape | None]  # names, and shapes where a header tells them
Way = list[tuple[str, Shape]]  # tensors that together hold an entry
Spell = Callable[[str, Shape], list[Way]]  # the ways in which another convention holds a published tensor

# what old files hold and every loader makes anew: tables of rotation, numbers of positions, causal masks
_RECOMPUTED = re.compile(
    r"(?:.*\.)?(rotary_emb(eddings)?\.(inv_freq|cos_cached|sin_cached)|position_ids|num_batches_tracked"
    r"|rope_(freqs|factors_long|factors_short)\.weight)$"
)
_MASK = re.compile(r"(?:.*\.)?(attn|attention|self_attention)\.(masked_)?bias$")  # no vector, as a bias is
# scales of activations and caches, and descriptions of what is packed
_ACCESSORY = re.compile(
    r".*(\.(input|output|k|v|q|activation|input_global)_scale|\.weight_shape|\.weight_g_idx"
    r"|\.quant_state\.\w+|\.kv_cache_scale|_scale_ub)$"
)
# one matrix under a second name: a tied head, a shared table
_COPIES = ("lm_head.weight", "output.weight", "embed_out.weight", "encoder.embed_tokens.weight",
           "decoder.embed_tokens.weight", "shared.weight", "cls.predictions.decoder.weight")  # fmt: skip
_PREFIXES = (
    "",
    "model.",
    "transformer.",
    "language_model.",
    "language_model.model.",
    "model.language_model.",
    "module.",
)
_AXES = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Difference:
    """A tensor on which the two sides disagree: `what` is missing, unexpected or shape."""

    what: str
    name: str
    expected: Shape | None = None
    held: Shape | None = None


@dataclass(frozen=True)
class Check:
    """The differences, and what was no difference: tensors that agree, are recomputed, predict further tokens, or would
    make keys and values for layers that use another's.
    """

    agree: int
    differences: tuple[Difference, ...]
    recomputed: int = 0
    further: int = 0
    unused: int = 0


def check(model: Model, held: Held, spell: Spell | None = None) -> Check:
    """Compare names and shapes of a checkpoint with what a model implies.

    Published names are accepted and the public implementation's, with or without what wraps the model. `spell` turns
    a published tensor into another convention's; an axis that its name drops there comes first in the shape. Raises
    SettingError for a model whose weights are in a format that is not known.
    """
    if model.scheme is not None and model.scheme.unknown:
        raise SettingError(f"{model.name} cannot be checked: its weights' format is not known: {model.scheme.unknown}")
    named = {_modern(name): shape for name, shape in held.items()}
    wanted = list(_expected(model, spell))
    turn = _prefix(wanted, named)
    left = dict(named)
    agree: int = 0
    found: list[Difference] = []
    for ways in wanted:
        spelled = [[(turn(name), shape) for name, shape in way] for way in ways]
        way = max(spelled, key=lambda one: sum(name in named for name, _ in one))
        for name, expected in way:
            if name not in named and _is_recomputed(name, None):
                continue
            second = name if name in named else _second(name, expected, left)
            if second is None:
                found.append(Difference("missing", name, expected))
                continue
            left.pop(second, None)
            name = second
            if _same(expected, named[name]):
                agree += 1
            else:
                found.append(Difference("shape", name, expected, named[name]))
    further = _further(left)
    spare = {turn(name) for name in _unused(model, spell)} & left.keys()
    for name, shape in left.items():
        if shape is not None and 0 in shape:
            continue  # of no elements
        if (
            name in further
            or name in spare
            or _is_recomputed(name, shape)
            or (model.scheme and _ACCESSORY.fullmatch(name))
        ):
            continue
        if not _is_copy(name, shape, model):
            found.append(Difference("unexpected", name, None, shape))
    anew = sum(_is_recomputed(name, shape) for name, shape in left.items())
    return Check(agree, tuple(found), anew, len(further), len(spare))


def _expected(model: Model, spell: Spell | None) -> Iterator[list[Way]]:
    """The tensors of each entry, as published files have them and as the implementation does."""
    for entry in tensors(model):
        for layer in entry.layers or ("",):
            found = [_pieces(stored, str(layer), spell) for stored in entry.checkpoint]
            most = max(map(len, found), default=1)
            ways = [[piece for one in found for piece in one[min(way, len(one) - 1)]] for way in range(most)]
            quantized = any(stored.format for stored in entry.checkpoint)
            if spell is None and not quantized:
                ways.append(list(_library(entry, str(layer))))
            yield ways


def _library(entry: Entry, layer: str) -> Iterator[tuple[str, Shape]]:
    each = entry.times // (len(entry.layers) or 1)
    for name in _spread(of_layer(entry.path, layer), each):
        yield name, entry.shape


def _pieces(stored: Stored, layer: str, spell: Spell | None) -> list[Way]:
    """The ways to hold a published tensor: in one or more, and again in others where `spell` says so."""
    if spell is not None:
        several = _AXES.search(stored.path.replace("{i}", "")) is not None
        return [
            [piece for path, shape in way for piece in _spelled(stored, path, shape, layer, several)]
            for way in spell(stored.path, stored.shape)
        ]
    return [list(_formatted(stored, layer))]


def _spelled(stored: Stored, path: str, shape: Shape, layer: str, several: bool) -> Iterator[tuple[str, Shape]]:
    """One tensor of another convention: all of them at once where its name has lost what numbers them."""
    together = several and not _AXES.search(path.replace("{i}", ""))
    for name in _spread(of_layer(path, layer), 1 if together else stored.times):
        yield name, (stored.times, *shape) if together else shape


def _formatted(stored: Stored, layer: str) -> Iterator[tuple[str, Shape]]:
    """The tensors of its format for each matrix, where it has one."""
    for name in _spread(of_layer(stored.path, layer), stored.times):
        if stored.format is None:
            yield name, stored.shape
            continue
        several, outputs, inputs = stored.matrices
        base = name.removesuffix(".weight")
        for piece in stored.format.pieces:
            own = piece.shape(outputs, inputs)
            joint = "" if piece.suffix.startswith("_") else "."
            yield f"{base}{joint}{piece.suffix}", own if several == 1 else (several, *own)


def _spread(path: str, times: Size) -> Iterator[str]:
    """A path with axes in braces as the names of all its tensors."""
    if not _AXES.search(path):
        yield path
        return
    for index in range(times):
        yield _AXES.sub(str(index), path)


def _prefix(wanted: list[list[Way]], named: Held) -> Callable[[str], str]:
    """How the checkpoint wraps the model: what to take off a name's beginning and what to put there."""
    sample = [name for ways in wanted[:: max(1, len(wanted) // 60)] for way in ways for name, _ in way[:2]]
    firsts = dict.fromkeys(["", *(name.partition(".")[0] + "." for name in sample)])
    choices = [(off, on) for off in firsts for on in _PREFIXES]

    def turned(name: str, off: str, on: str) -> str:
        return on + name.removeprefix(off) if name.startswith(off) else name

    # a prefix of the model is one for most of its names; `lm_head` stays as it is
    off, on = max(choices, key=lambda pair: sum(turned(name, *pair) in named for name in sample))

    def turn(name: str) -> str:
        made = turned(name, off, on)
        return name if made not in named and name in named else made

    return turn


def _modern(name: str) -> str:
    """Names of norms that old files spell in TensorFlow's way."""
    return re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))


def _same(expected: Shape, held: Shape | None) -> bool:
    return held is None or expected == held or (expected in ((), (1,)) and held in ((), (1,)))


def _second(name: str, expected: Shape, left: Held) -> str | None:
    """The other name of a table or of a bias that two modules share, where the file kept it under that one alone."""
    others = [name.removesuffix(".bias") + ".decoder.bias"] if name.endswith(".bias") else []
    if _may_be_copy(name):
        others = [one for one in left if _may_be_copy(one)]
    return next((one for one in others if one in left and left[one] in (expected, None)), None)


def _further(left: Held) -> set[str]:
    """Tensors of modules that predict further tokens, which no forward pass of the model runs."""
    heads = {name.partition("eh_proj")[0] for name in left if ".eh_proj" in name}
    return {name for name in left if re.match(r"(model\.)?mtp\.", name) or any(name.startswith(at) for at in heads)}


def _unused(model: Model, spell: Spell | None) -> Iterator[str]:
    """The names of what would make keys and values for layers that use another's."""
    for path, layer in lent(model):
        for name, _ in [(path, ())] if spell is None else spell(path, ())[0]:
            yield of_layer(name, layer)


def _is_recomputed(name: str, shape: Shape | None) -> bool:
    """True for what every loader makes anew."""
    if _RECOMPUTED.fullmatch(name):
        return True
    return (shape is None or len(shape) in (0, 4)) and _MASK.fullmatch(name) is not None


def _may_be_copy(name: str) -> bool:
    """True for a second name, whatever is before it; not for names that merely end alike."""
    return f".{name}".endswith(tuple(f".{copy}" for copy in _COPIES))


def _is_copy(name: str, shape: Shape | None, model: Model) -> bool:
    """True for the embedding under a second name."""
    if not _may_be_copy(name):
        return False
    tables = [entry.shape for entry in tensors(model) if entry.part == "embedding"]
    return shape is None or shape in tables
