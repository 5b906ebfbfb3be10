"""What is drawn: the axis, and the rows that belong to one line or panel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from assay.errors import SettingError
from assay.records import dataclass
from assay.report.units import digits
from assay.studies.figures.labels import fitted

if TYPE_CHECKING:
    from assay.studies.result import Sweep

LINES = 12  # that one can tell apart
PANELS = 4
MARKED = 16  # points up to which each is marked: between them nothing was counted

# what stands on an axis for a setting that is swept
AXES = {
    "setting.context": "context (tokens)",
    "setting.tokens": "tokens of the pass",
    "setting.past": "tokens in the cache",
    "setting.batch": "batch (sequences)",
    "setting.source": "source tokens",
    "setting.images": "images of a sequence",
    "setting.image_tokens": "tokens of an image",
    "setting.sounds": "sounds of a sequence",
}

# settings that titles speak of
TITLES = ("batch", "tokens", "past", "convention", "latent", "weights", "cache")
LONGEST = 56  # characters of what a title says of models
MASKED = 1.2  # times what the mask lets through: where all pairs are more, a figure says that it counts all

# parts in the order they are stacked, with their colours; what grows with the context stands on top
PARTS = {
    "mlp": ("MLP", "#f2a93b"),
    "experts": ("experts", "#e8793a"),
    "router": ("router", "#b279a2"),
    "mixer": ("mixers", "#5fb3a8"),
    "attention": ("attention", "#4c78a8"),
    "projections": ("attention projections", "#4c78a8"),
    "head": ("head", "#59a14f"),
    "embedding": ("embedding", "#8c8c94"),
    "norm": ("norms", "#c9b8a8"),
    "tower": ("tower", "#9c755f"),
    "other": ("other", "#cfcfd4"),
    "softmax": ("softmax", "#b07aa1"),
    "scores": ("attention scores", "#d6455d"),
}
LEAST = 0.005  # of the whole: a part that is nowhere more is drawn as "other"


@dataclass(frozen=True)
class Group:
    """Rows that differ along the axis alone: their places in the columns, in the axis' order, and what they share."""

    label: str
    rows: Any
    x: Any


def axis_of(swept: Sweep) -> str | None:
    """The column that varies most among the sizes that are swept; None where none does."""
    sizes = [name for name in swept.swept if name in AXES or name.startswith("set.")]
    varied = {name: len(set(swept.columns[name].tolist())) for name in sizes if name in swept.columns}
    return max(varied, key=lambda name: varied[name], default=None)


def needed(swept: Sweep, what: str) -> str:
    """The axis of a figure that needs one. Raises SettingError."""
    x = axis_of(swept)
    if x is None or len(set(swept.columns[x].tolist())) < 2:
        raise SettingError(f"{what} is drawn along a size that varies: sweep a context, say, --context 1k:1M")
    return x


def axis_label(name: str) -> str:
    """What stands below an axis."""
    return AXES.get(name) or name.removeprefix("set.").replace(".", " ").replace("_", " ")


def groups(swept: Sweep, x: str | None, most: int, what: str) -> list[Group]:
    """The rows of each combination of what is swept besides the axis. Raises SettingError for too many."""
    import numpy

    others = [name for name in swept.swept if name != x]
    keys = list(zip(*(swept.columns[name].tolist() for name in others), strict=True)) or [()] * len(swept)
    order = dict.fromkeys(keys)
    if len(order) > most:
        raise SettingError(
            f"{what} shows at most {most}; {len(order)} combinations of {', '.join(map(_plain, others))} are swept"
        )
    made = []
    places = numpy.arange(len(swept))
    index = {key: number for number, key in enumerate(order)}
    numbers = numpy.fromiter((index[key] for key in keys), int, len(keys))
    for key, number in index.items():
        rows = places[numbers == number]
        along = numpy.asarray(swept.columns[x], float)[rows] if x is not None else numpy.zeros(len(rows))
        turn = numpy.argsort(along, kind="stable")
        label = " · ".join(_said(name, value) for name, value in zip(others, key, strict=True))
        made.append(Group(label, rows[turn], along[turn]))
    return made


def dense(low: float, high: float) -> Any:
    """Places from one to another, close together where a logarithmic axis of either way has them far apart."""
    import numpy

    steps = numpy.concatenate([numpy.linspace(0, 1, 40), numpy.geomspace(1e-6, 1, 80)])
    return low + (high - low) * numpy.sort(steps)


def _plain(name: str) -> str:
    return name.removeprefix("setting.").removeprefix("set.").removeprefix("model.")


def _said(name: str, value: Any) -> str:
    plain = _plain(name)
    if plain == "name":
        return str(value).partition(" with ")[0]
    if plain == "convention":
        return str(value)
    return f"{plain.replace('.', ' ').replace('_', ' ')} {digits(value) if isinstance(value, int) else value}"


def column(swept: Sweep, name: str, rows: Any) -> Any:
    """Figures of some rows as floats. Raises SettingError where the sweep has none."""
    import numpy

    return numpy.asarray(swept.columns[swept.column(name)][rows], float)


def tokens(swept: Sweep, rows: Any) -> Any:
    """Tokens of a pass, of all its sequences."""
    return column(swept, "setting.batch", rows) * column(swept, "setting.tokens", rows)


def by_part(swept: Sweep, rows: Any, figure: str) -> dict[str, Any]:
    """A figure by part, in the order of PARTS; attention's scores apart, and small parts together as `other`."""
    found: dict[str, Any] = {}
    for name in swept.columns:
        if name.startswith(f"{figure}.by_part."):
            found[name.rpartition(".")[2]] = column(swept, name, rows)
    if figure == "flops" and "attention" in found:
        scores = column(swept, "flops.attention_scores", rows)
        if (scores <= found["attention"] * (1 + 1e-12)).all():
            found["projections"], found["scores"] = found.pop("attention") - scores, scores
    return stacked(found)


def stacked(found: Mapping[str, Any]) -> dict[str, Any]:
    """Parts in the order of PARTS, those that are nowhere LEAST of the whole together as `other`."""
    whole = sum(found.values())
    small = [part for part, value in found.items() if part != "other" and (value < LEAST * whole).all()]
    rest = sum((found[part] for part in small), start=found.get("other", 0 * whole))
    large = {part: value for part, value in found.items() if part not in small and part != "other"}
    kept = {**large, "other": rest} if (rest >= LEAST * whole / 5).any() else large
    return {part: kept[part] for part in in_order(kept)}


def in_order(parts: Collection[str]) -> list[str]:
    """Parts as they are stacked, those that have no place of their own last."""
    return [*(part for part in PARTS if part in parts), *(part for part in parts if part not in PARTS)]


def part_name(part: str) -> str:
    """A part as one says it."""
    return PARTS[part][0] if part in PARTS else part.replace("_", " ")


def colour(part: str) -> str:
    """The colour of a part."""
    return PARTS[part][1] if part in PARTS else PARTS["other"][1]


def percent(share: float) -> str:
    """97 %, 0.4 %, <0.1 %."""
    if not share:
        return "0 %"
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def title_of(swept: Sweep) -> str:
    """The model, or how many there are."""
    names = list(dict.fromkeys(swept.columns["model.name"].tolist()))
    bare = list(dict.fromkeys(name.partition(" with ")[0] for name in names))
    two = " and ".join(bare)
    if len(bare) == 1:
        return fitted(bare[0], LONGEST)
    return two if len(bare) == 2 and len(two) <= LONGEST else f"{len(bare)} models"


def setting_of(swept: Sweep, *, flops: bool = True, cache: bool = False, x: str | None = None) -> str:
    """What all rows have in common, in words."""
    said = []
    if "setting.batch" not in swept.swept:
        said.append(f"batch {digits(swept['setting.batch'].tolist()[0])}")
    if flops and x != "setting.tokens" and "setting.tokens" not in swept.swept:
        said.append(_tokens(swept))
    if cache and "setting.cache" not in swept.swept:
        said.append(f"cache {swept['setting.cache'].tolist()[0]}")
    if flops and swept["model.latent"].any() and "setting.latent" not in swept.swept:
        said.append(f"latent attention {swept['setting.latent'].tolist()[0]}")
    if flops and "setting.convention" not in swept.swept:
        said.append(f"convention {swept['setting.convention'].tolist()[0]}")
    if flops and _masked(swept):
        said.append("masked pairs counted")
    fixed = [name for name in swept.columns if name.startswith("set.") and name not in swept.swept]
    for name in fixed:
        values = set(swept.columns[name].tolist())
        said += [f"{name.removeprefix('set.')} {digits(values.pop())}"] if len(values) == 1 else []
    return " · ".join([*said, *([following(swept)] if following(swept) else [])])


def _tokens(swept: Sweep) -> str:
    """How many tokens each pass is of, and whether there are others before them."""
    tokens = swept["setting.tokens"]
    most, cached = int(tokens.max()), bool(swept["setting.past"].any())
    if most == 1:
        return "one token with a cache" if cached else "one token"
    fewer = "" if int(tokens.min()) == most else "at most "
    return f"{fewer}{digits(most)} tokens{' at the end of the context' if cached else ''}"


def _masked(swept: Sweep) -> bool:
    """True where pairs that no mask lets through are a good part of the FLOPs."""
    columns = swept.columns
    if not {"flops.total", "flops.visible_total"} <= columns.keys():
        return False
    return bool((columns["flops.total"] > MASKED * columns["flops.visible_total"]).any())


def following(swept: Sweep) -> str:
    """The sizes that change with those that are swept, in words: mlp.width = 4 × width."""
    names = [name for name in swept.columns if name.startswith("set.") and name not in swept.swept]
    moving = [name for name in names if len(set(swept.columns[name].tolist())) > 1]
    rules = {name: _rule(swept, name) for name in moving}
    free = [name.removeprefix("set.") for name, rule in rules.items() if not rule]
    left = f"{', '.join(free)} {'follow' if len(free) > 1 else 'follows'}" if free else ""
    return " · ".join(filter(None, [*rules.values(), left]))


def _rule(swept: Sweep, name: str) -> str:
    """A size as a multiple or a part of one that is swept; "" where it is neither."""
    values, plain = swept.columns[name].tolist(), name.removeprefix("set.")
    for other in (one for one in swept.swept if one.startswith("set.")):
        beside, said = swept.columns[other].tolist(), other.removeprefix("set.")
        ratios = {Fraction(int(a), int(b)) for a, b in zip(values, beside, strict=True) if b}
        if len(ratios) != 1:
            continue
        ratio = ratios.pop()
        if ratio == 1:
            return f"{plain} = {said}"
        return (
            f"{plain} = {said} / {ratio.denominator}"
            if ratio.numerator == 1
            else f"{plain} = {float(ratio):g} × {said}"
        )
    return ""
