"""Parts stacked along an axis: FLOPs, shares, parameters, and what attention is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.errors import SettingError
from assay.studies.figures import style
from assay.studies.figures.data import (
    PANELS,
    Group,
    axis_label,
    axis_of,
    by_part,
    colour,
    column,
    following,
    groups,
    in_order,
    part_name,
    setting_of,
    title_of,
    tokens,
)

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


def needed(swept: Sweep, what: str) -> str:
    """The axis of a figure that needs one. Raises SettingError."""
    x = axis_of(swept)
    if x is None or len(set(swept.columns[x].tolist())) < 2:
        raise SettingError(f"{what} is drawn along a size that varies: sweep a context, say, --context 1k:1M")
    return x


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
    figure, axes = style.page(
        title, f"{label} · {subtitle}" if several else subtitle, len(panels), right=style.room(named)
    )
    for ax, group, pieces, whole in zip(axes, panels, parts, wholes, strict=True):
        heights = [100 * value / whole if share else value / scale for value in pieces.values()]
        shades = [colours(part) or style.QUIET for part in pieces]
        ax.stackplot(group.x, heights, colors=shades, edgecolor="white", linewidth=0.5)
        style.size_axis(ax, group.x, axis_label(x), 15 // len(panels) if several else 11, x.startswith("set."))
        if several:
            style.above(ax, group.label)
    above = "" if several else label
    if share:
        style.percent_axis(axes[0], above)
    else:
        style.figure_axis(axes[0], above, top / scale * 1.02)
    if several:
        legend(figure, parts, name, colours, in_order if name is part_name else list)
    else:
        _named(axes[0], parts[0], wholes[0], share, top, name, colours)
    return figure


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
            labels.append((at, f"{name(part)}  {_percent(height / float(whole[-1]))}", colours(part)))
        below += height
    style.beside(ax, labels)


def _percent(share: float) -> str:
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def legend(figure: Any, parts: Sequence[Parts], name: Any, colours: Any, order: Any = in_order) -> None:
    """One legend below all panels."""
    from matplotlib.patches import Patch

    met = dict.fromkeys(part for pieces in parts for part in pieces)
    patches = [Patch(color=colours(part), label=name(part)) for part in order(met)]
    figure.legend(handles=patches, loc="lower center", ncols=len(patches), fontsize=10.5, handlelength=1.1)
