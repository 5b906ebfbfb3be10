"""Plain decoders that meet targets: parameters, FLOPs of a token, bytes of cache for a token.

A plain decoder has rotary positions, RMSNorm, grouped-query attention whose heads share the width evenly, an MLP, and
no biases: what a description has that says nothing else. Widths are multiples of 128.

Nothing here has a formula. A figure of a stack is the sum of what stands outside the layers and of layers that are
alike, and a layer's parameters and FLOPs rise evenly with its MLP: so two counts of a block tell all depths and all
MLPs of a width. Every proposal is then written as a description, read and counted like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.errors import SettingError
from assay.readings.count import Count, count
from assay.readings.printed import listed
from assay.records import dataclass, replace
from assay.report.units import plain
from assay.sources.descriptions import parse, read_table
from assay.spec import Model
from assay.studies.shapes import strangeness

STEP = 128  # of widths, and the finest of MLPs
GRAINS = (1024, 512, 256, 128)  # an MLP's width is a multiple of one of these: coarse ones are tried, too
WIDEST = 32_768
DEEPEST = 256
ASPECT = (16, 320)  # width over layers: beyond, nothing is looked for
RATIO = (1, 8)  # width of the MLP over that of the model
SHARING = (1, 2, 4, 8, 16)  # query heads of a key/value head
FEWEST = (8, 4, 2, 1)  # key/value heads, however many query heads there are
HEADS = (64, 128)  # widths of a head
VOCABULARY = 128_000
CONTEXT = 2048
NEEDS = "designs are counted in arrays, and NumPy is not installed; pip install numpy"
MOST = 5_000_000  # shapes that are weighed
DEPTHS = 3  # of one width that are proposed, where widths are free
FAR = 0.25  # off a target: beyond it nothing is proposed
SAYS = {"parameters": "parameters", "flops_per_token": "FLOPs a token", "cache_per_token": "bytes of cache a token"}
SIZES = ("width", "layers", "heads", "kv_heads", "head_width", "inner")


@dataclass(frozen=True)
class Targets:
    """What a design is to meet, each None where nothing is asked; at least one of the first two.

    `flops_per_token` are of a forward pass over `context` tokens; `cache_per_token` are bytes of one more token.
    """

    parameters: int | None = None
    flops_per_token: int | None = None
    cache_per_token: int | None = None

    def of(self, counted: Count) -> dict[str, tuple[float, int]]:
        """Each figure that is asked for, beside its target."""
        found = {
            "parameters": (counted.parameters.total, self.parameters),
            "flops_per_token": (counted.flops_per_token, self.flops_per_token),
            "cache_per_token": (counted.cache.marginal_bytes_per_token, self.cache_per_token),
        }
        return {name: (value, target) for name, (value, target) in found.items() if target is not None}


@dataclass(frozen=True)
class Frame:
    """What is fixed: sizes that may be one or several, () where all are looked at, and the make of the model.

    `ratio` is the width of the MLP over that of the model, `aspect` the width over the layers.
    """

    vocabulary: int = VOCABULARY
    widths: Sequence[int] = ()
    layers: Sequence[int] = ()
    heads: Sequence[int] = ()
    kv_heads: Sequence[int] = ()
    head_widths: Sequence[int] = ()
    ratio: float | None = None
    aspect: float | None = None
    gated: bool = True
    tied: bool = False
    context: int = CONTEXT
    cache: str = "bf16"


@dataclass(frozen=True)
class Proposal:
    """A design: its description, the model and count that reading it gives, how far its worst figure is off as a
    share of the target, and how unusual its shape is: 0 for what most published models have.
    """

    description: str
    model: Model
    count: Count
    off: float
    strange: float
    sizes: Mapping[str, int]

    @property
    def name(self) -> str:
        """What a file of it is called."""
        s = self.sizes
        return f"d{s['width']}-l{s['layers']}-h{s['heads']}-g{s['kv_heads']}-f{s['inner']}"

    def __str__(self) -> str:
        counted = self.count
        rows = (
            ("parameters", counted.parameters.total, ""),
            ("FLOPs a token", counted.flops_per_token, f"at context {counted.setting.context:,}"),
            ("cache bytes a token", counted.cache.marginal_bytes_per_token, counted.setting.cache),
        )
        return listed(f"{self.name} · off {self.off:.2%} · strange {self.strange:.2f}", rows)


def design(
    parameters: object = None,
    flops_per_token: object = None,
    cache_per_token: object = None,
    *,
    number: int = 8,
    within: float = 0.01,
    **frame: Any,
) -> tuple[Proposal, ...]:
    """Plain decoders that meet targets, the best first.

    Those that are `within` a share of every target come first, the most usual shape first (`shapes` says what that
    is); the others by how far their worst figure is off. Of each width and depth the best is kept, and no more than
    three depths of a width, unless one width is asked for.

    Args:
        parameters: in all.
        flops_per_token: of a forward pass over `context` tokens.
        cache_per_token: bytes that one more token of one sequence adds.
        number: how many to propose.
        within: how far off a target counts as met.
        frame: the fields of `Frame`.

    Raises:
        SettingError: nothing to meet, a target that no shape comes near, or NumPy is not installed.
    """
    targets = Targets(
        *(
            None if value is None else _whole(value, name)
            for name, value in (
                ("parameters", parameters),
                ("flops_per_token", flops_per_token),
                ("cache_per_token", cache_per_token),
            )
        )
    )
    if targets.parameters is None and targets.flops_per_token is None:
        raise SettingError("a design needs a target: parameters, FLOPs of a token, or both")
    known = Frame.__dataclass_fields__
    unknown = [name for name in frame if name not in known]
    if unknown:
        raise SettingError(f"{unknown[0]} is no size that a design has; known: {', '.join(known)}")
    return search(targets, Frame(**frame), number, within)


def _whole(value: object, name: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingError(f"{name} is {value!r}; it must be an integer of at least 1")
    return value


def search(targets: Targets, frame: Frame, number: int, within: float) -> tuple[Proposal, ...]:
    """The best designs of a frame. Raises SettingError where there is none."""
    try:
        import numpy
    except ImportError:
        raise SettingError(NEEDS) from None
    shapes = _shapes(numpy, targets, frame)
    off, strange = shapes["off"], strangeness(shapes, frame.gated)
    order = numpy.lexsort((off, numpy.where(off <= within, strange, 0), numpy.where(off <= within, 0, off)))
    kept: dict[tuple[int, int], int] = {}
    for place in order:
        width, depth = int(shapes["width"][place]), int(shapes["layers"][place])
        crowded = len(frame.widths) != 1 and sum(w == width for w, _ in kept) >= DEPTHS
        if not crowded or (width, depth) in kept:
            kept.setdefault((width, depth), int(place))
        if len(kept) >= number:
            break
    made = [_proposal(targets, frame, {name: int(shapes[name][place]) for name in SIZES}) for place in kept.values()]
    near = [one for one in made if one.off <= FAR]
    if not near:
        has = ", ".join(f"{plain(value)} {SAYS[name]}" for name, (value, _) in targets.of(made[0].count).items())
        raise SettingError(f"no shape comes near what is asked: the nearest has {has}")
    return tuple(near)


def _proposal(targets: Targets, frame: Frame, sizes: Mapping[str, int]) -> Proposal:
    """A shape, written, read and counted."""
    import numpy

    text = described(frame, sizes)
    model = read_table(parse(text, "design"), "design", "design")
    counted = count(model, tokens=frame.context, cache=frame.cache)
    off = max(abs(value / target - 1) for value, target in targets.of(counted).values())
    held = {name: numpy.array([size]) for name, size in sizes.items()}
    return Proposal(text, model, counted, off, float(strangeness(held, frame.gated)[0]), sizes)


def described(frame: Frame, sizes: Mapping[str, int]) -> str:
    """The description of a shape, as TOML."""
    s = sizes
    lines = [f"vocab = {frame.vocabulary}", f"width = {s['width']}", f"layers = {s['layers']}"]
    lines += [f"context = {frame.context}"] if frame.context != CONTEXT else []
    lines += ["tied = true"] if frame.tied else []
    lines += ["", "[attention]", f"heads = {s['heads']}"]
    lines += [f"kv_heads = {s['kv_heads']}"] if s["kv_heads"] != s["heads"] else []
    lines += [f"head_width = {s['head_width']}"] if s["heads"] * s["head_width"] != s["width"] else []
    lines += ["", "[mlp]", f"width = {s['inner']}"]
    lines += [] if frame.gated else ["gated = false", 'activation = "gelu"']
    return "\n".join(lines) + "\n"


# -- the shapes that are looked at ------------------------------------------------------------------------------------


def _shapes(numpy: Any, targets: Targets, frame: Frame) -> dict[str, Any]:
    """Every shape that comes into question, as columns of sizes, and how far its worst figure is off."""
    base = _bases(numpy, frame)
    layer, rest = _counted(frame, base)
    depths = numpy.array(sorted(set(frame.layers)) or range(1, DEEPEST + 1))
    places, deep = (one.ravel() for one in numpy.meshgrid(numpy.arange(len(base["width"])), depths, indexing="ij"))
    fits = _in_proportion(base["width"][places], deep, frame)
    places, deep = places[fits], deep[fits]
    if len(places) > MOST:
        raise SettingError(f"{len(places):,} shapes come into question, more than {MOST:,}; name --layers or --width")
    inner, again = _inner(numpy, targets, frame, base, layer, rest, places, deep)
    places, deep = places[again], deep[again]
    off = numpy.zeros(len(places))
    for name in ("parameters", "flops_per_token", "cache_per_token"):
        target = getattr(targets, name)
        if target is not None:
            flat, slope = layer[name]
            value = rest[name][places] + deep * (flat[places] + slope[places] * inner)
            off = numpy.maximum(off, abs(value / target - 1))
    if not len(places):
        raise SettingError("no shape comes near what is asked; allow other widths, layers or heads, or another target")
    return {**{name: size[places] for name, size in base.items()}, "layers": deep, "inner": inner, "off": off}


def _bases(numpy: Any, frame: Frame) -> dict[str, Any]:
    """Widths, with the heads that divide them."""
    found = []
    for width in frame.widths or range(STEP, WIDEST + 1, STEP):
        if width % STEP:
            raise SettingError(f"width is {width}; a design's is a multiple of {STEP}")
        for each, heads in _heads(width, frame):
            groups = frame.kv_heads or _groups(heads)
            found += [(width, heads, g, each) for g in groups if heads % g == 0]
    if not found:
        raise SettingError("no width that is a multiple of 128 has heads that divide it as asked")
    names = ("width", "heads", "kv_heads", "head_width")
    return dict(zip(names, numpy.array(sorted(set(found))).T, strict=True))


def _groups(heads: int) -> set[int]:
    """Numbers of key/value heads: as many, a half, a quarter and so on; and eight or fewer, down to one for all."""
    return {heads // share for share in SHARING if heads % share == 0} | {few for few in FEWEST if heads % few == 0}


def _heads(width: int, frame: Frame) -> Iterable[tuple[int, int]]:
    """(width of a head, heads): heads share the width evenly, unless both are given."""
    if frame.heads and frame.head_widths:
        return [(each, heads) for each in frame.head_widths for heads in frame.heads]
    if frame.heads:
        return [(width // heads, heads) for heads in frame.heads if width % heads == 0]
    return [(each, width // each) for each in frame.head_widths or HEADS if width % each == 0]


def _in_proportion(width: Any, deep: Any, frame: Frame) -> Any:
    """Where width over layers is as asked, to the nearest layer, or within what is looked at."""
    if frame.layers and frame.aspect is None:
        return width > 0
    if frame.aspect is not None:
        return abs(width / frame.aspect - deep) <= 0.5
    return (width >= ASPECT[0] * deep) & (width <= ASPECT[1] * deep)


def _inner(
    numpy: Any, targets: Targets, frame: Frame, base: Any, layer: Any, rest: Any, places: Any, deep: Any
) -> tuple[Any, Any]:
    """Widths of the MLP, and which of the shapes each is of: by the ratio, or what meets the first target."""
    width = base["width"][places]
    name = "parameters" if targets.parameters is not None else "flops_per_token"
    flat, slope = layer[name]
    exact = ((getattr(targets, name) - rest[name][places]) / deep - flat[places]) / slope[places]
    wished = exact if frame.ratio is None else frame.ratio * width
    tried, of = [], []
    for grain in GRAINS if frame.ratio is None else (STEP,):
        rounded = numpy.maximum(1, numpy.round(wished / grain)) * grain
        good = (rounded >= RATIO[0] * width) & (rounded <= RATIO[1] * width) if frame.ratio is None else rounded > 0
        tried.append(rounded[good])
        of.append(numpy.flatnonzero(good))
    return numpy.concatenate(tried).astype(int), numpy.concatenate(of)


def _counted(frame: Frame, base: Mapping[str, Any]) -> tuple[dict[str, tuple[Any, Any]], dict[str, Any]]:
    """Figures of a layer, as what does not depend on the MLP and what each unit of its width adds; and of the rest."""
    grids = {(layers, inner): _figures(frame, base, layers, inner) for layers in (1, 2) for inner in (STEP, 2 * STEP)}
    layer, rest = {}, {}
    for name in grids[1, STEP]:
        narrow, wide = (grids[2, inner][name] - grids[1, inner][name] for inner in (STEP, 2 * STEP))
        slope = (wide - narrow) / STEP
        layer[name] = (narrow - slope * STEP, slope)
        rest[name] = 2 * grids[1, STEP][name] - grids[2, STEP][name]
    return layer, rest


def _figures(frame: Frame, base: Mapping[str, Any], layers: int, inner: int) -> dict[str, Any]:
    """The figures of a stack whose sizes are arrays."""
    plain = {"width": STEP, "layers": layers, "heads": 2, "kv_heads": 1, "head_width": STEP // 2, "inner": inner}
    model = read_table(parse(described(frame, plain), "design"), "design", "design")
    sizes = {
        "d": base["width"].astype(float),
        "h": base["heads"].astype(float),
        "g": base["kv_heads"].astype(float),
        "r": (base["heads"] // base["kv_heads"]).astype(float),
        "k": base["head_width"].astype(float),
        "v": base["head_width"].astype(float),
    }
    wide = tuple(
        replace(s, block=s.block.resize(**{axis: sizes.get(axis, old) for axis, old in s.block.sizes.items()}))
        for s in model.segments
    )
    counted = count(replace(model, segments=wide), tokens=frame.context, cache=frame.cache)
    spread = 0 * sizes["d"]
    return {
        "parameters": spread + counted.parameters.total,
        "flops_per_token": spread + counted.flops_per_token,
        "cache_per_token": spread + counted.cache.marginal_bytes_per_token,
    }
