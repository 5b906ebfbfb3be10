"""Parts stacked along an axis: FLOPs, shares, parameters, and what attention is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from assay.errors import SettingError
from assay.report.units import short
from assay.studies.figures import style
from assay.studies.figures.data import (
    MARKED,
    PANELS,
    Group,
    axis_label,
    by_part,
    colour,
    column,
    dense,
    following,
    groups,
    in_order,
    needed,
    part_name,
    percent,
    setting_of,
    title_of,
    tokens,
)
from assay.studies.figures.labels import DOT, fitted

if TYPE_CHECKING:
    from assay.studies.result import Sweep

Parts = Mapping[str, Any]

# the four pieces of attention, named as they are drawn
PIECES = {
    "projections": "projections",
    "scores": "QKᵀ",
    "softmax": "softmax",
    "output": "AV",
}
PIECE_COLOURS = {"projections": "#4c78a8", "scores": "#d6455d", "softmax": "#b07aa1", "output": "#f2a93b"}


def flops(swept: Sweep) -> Any:
    """FLOPs of a token by part."""
    return _flops(swept, False)


def shares(swept: Sweep) -> Any:
    """The parts of a token's FLOPs as shares of the whole."""
    return _flops(swept, True)


def _flops(swept: Sweep, share: bool) -> Any:
    x = needed(swept, "shares" if share else "flops")
    panels = groups(swept, x, PANELS, "shares" if share else "flops")
    parts = [
        {part: value / tokens(swept, g.rows) for part, value in by_part(swept, g.rows, "flops").items()} for g in panels
    ]
    title = f"{title_of(swept)}: where the FLOPs of a token go"
    said = f"forward pass · {setting_of(swept, x=x)}"
    return draw(title, said, x, panels, parts, "FLOP per token", share)


def parameters(swept: Sweep, x: str) -> Any:
    """Parameters by part along a size that is set."""
    panels = groups(swept, x, PANELS, "parameters")
    parts = [by_part(swept, g.rows, "parameters") for g in panels]
    title = f"{title_of(swept)}: where the parameters sit"
    return draw(title, following(swept), x, panels, parts, "parameters", False, counts=True)


def attention(swept: Sweep) -> Any:
    """What attention is made of, as shares of it."""
    x = needed(swept, "attention")
    panels = groups(swept, x, PANELS, "attention")
    parts = [{p: column(swept, f"attention.{p}", g.rows) for p in PIECES} for g in panels]
    if not any(value.any() for pieces in parts for value in pieces.values()):
        raise SettingError(f"{title_of(swept)} has no attention to take apart")
    title = f"{title_of(swept)}: what the FLOPs of attention are spent on"
    said = f"all attention layers · {setting_of(swept, x=x)}"
    return draw(title, said, x, panels, parts, "FLOP", True, of="attention", name=PIECES.get, colours=PIECE_COLOURS.get)


def draw(
    title: str,
    subtitle: str,
    x: str,
    panels: list[Group],
    parts: Sequence[Parts],
    unit: str,
    share: bool,
    *,
    counts: bool = False,
    of: str = "all FLOPs",
    name: Callable[[str], str | None] = part_name,
    colours: Callable[[str], str | None] = colour,
) -> Any:
    """Areas stacked on each other, a panel for each group; the parts are named beside the last point."""
    wholes: list[Any] = [sum(pieces.values()) for pieces in parts]
    top = 100.0 if share else max(float(whole.max()) for whole in wholes)
    scale, prefix = (1.0, "") if share else style.scale_of(top, counts)
    label = f"share of {of}" if share else _label(unit, prefix, counts)
    several = len(panels) > 1
    named = [f"{name(part)}  00.0 %" for part in parts[0]]
    said = " · ".join(filter(None, [label, subtitle])) if several else subtitle
    figure, axes = style.page(title, said, len(panels), right=style.room(named))
    for ax, group, pieces, whole in zip(axes, panels, parts, wholes, strict=True):
        _areas(ax, group.x, pieces, scale, share, [colours(part) or style.QUIET for part in pieces])
        style.size_axis(ax, group.x, axis_label(x), 15 // len(panels) if several else 11, x.startswith("set."), several)
        if several:
            style.above(ax, _heading(group.label, len(panels)), 10.5)
        if several and not share:
            _total(ax, group.x[-1], float(whole[-1]) / scale, (short if counts else style.flop)(float(whole[-1])))
    above = "" if several else label
    if share:
        style.percent_axis(axes[0], above)
    else:
        style.figure_axis(axes[0], above, top / scale * (1.09 if several else 1.02))
    if several:
        legend(figure, parts, name, colours, in_order if name is part_name else list)
    else:
        _named(axes[0], parts[0], wholes[0], share, top, name, colours)
    return figure


def _areas(ax: Any, x: Any, pieces: Parts, scale: float, share: bool, shades: list[str]) -> None:
    """The areas; few points are marked: only they were counted, and between them areas are straight in numbers."""
    import numpy

    few = len(x) <= MARKED
    fine = numpy.concatenate([dense(a, b) for a, b in pairwise(x)]) if few else x
    values = [numpy.interp(fine, x, value) if few else value for value in pieces.values()]
    whole = 0.01 * sum(values) if share else scale
    ax.stackplot(fine, [value / whole for value in values], colors=shades, edgecolor="white", linewidth=0.5)
    if few:
        edge = numpy.full(len(x), 100.0) if share else sum(pieces.values()) / scale
        ax.plot(x, edge, "o", color=style.INK, ms=4, clip_on=False, zorder=4)


def _heading(label: str, panels: int) -> str:
    """What stands above a panel: the model, and below it what else tells it apart."""
    most = 86 // panels
    if len(label) <= most:
        return label
    model, _, rest = label.partition(DOT)
    return "\n".join(fitted(line, most) for line in (model, rest) if line)


def _total(ax: Any, x: float, y: float, said: str) -> None:
    """The whole of a panel, above its last point."""
    text = ax.annotate(
        said, (x, y), xytext=(-2, 3), textcoords="offset points", ha="right", va="bottom", fontsize=10, zorder=5
    )
    style.halo(text)


def _label(unit: str, prefix: str, counts: bool) -> str:
    if counts:
        return {"": unit, "k": f"thousand {unit}", "M": f"million {unit}", "B": f"billion {unit}"}.get(
            prefix, f"trillion {unit}"
        )
    return f"{prefix}{unit}"


def _named(ax: Any, parts: Parts, whole: Any, share: bool, top: float, name: Any, colours: Any) -> None:
    """Each part's name and its share at the last point."""
    labels, below = [], 0.0
    for part, value in parts.items():
        height = float(value[-1])
        if height > 0:
            middle = below + height / 2
            at = middle / float(whole[-1]) if share else middle / (top * 1.02)
            labels.append((at, f"{name(part)}  {percent(height / float(whole[-1]))}", colours(part)))
        below += height
    style.beside(ax, labels)


def legend(figure: Any, parts: Sequence[Parts], name: Any, colours: Any, order: Any = in_order) -> None:
    """One legend below all panels."""
    from matplotlib.patches import Patch

    met = dict.fromkeys(part for pieces in parts for part in pieces)
    patches = [Patch(color=colours(part), label=name(part)) for part in order(met)]
    rows = 1 if sum(len(name(part)) + 5 for part in met) <= 110 else 2
    columns = -(-len(patches) // rows)
    figure.legend(handles=patches, loc="lower center", ncols=columns, fontsize=10.5, handlelength=1.1)
