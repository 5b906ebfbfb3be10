"""Lines along an axis: FLOPs of a token, the share of attention's scores, the cache against the weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from assay.errors import SettingError
from assay.records import dataclass, replace
from assay.report.units import decimal_bytes
from assay.studies.figures import labels, style
from assay.studies.figures.data import (
    LINES,
    MARKED,
    axis_label,
    column,
    dense,
    groups,
    needed,
    percent,
    setting_of,
    title_of,
)
from assay.studies.shown import stored

if TYPE_CHECKING:
    from assay.studies.result import Sweep

DASHED = (0, (4, 3))
LABEL = 38  # characters of a line's name, its figure behind it


@dataclass(frozen=True)
class Line:
    """One line: rows that differ along the axis alone, and their heights. Lines that are alike are drawn as one."""

    label: str
    x: Any
    height: Any
    colour: str
    rows: Any


def flops_per_token(swept: Sweep) -> Any:
    """FLOPs of a token, and twice the active parameters where one model is drawn."""
    x = needed(swept, "flops-per-token")
    lines = _lines(swept, x, "flops-per-token", lambda rows: column(swept, "flops.per_token", rows))
    named = [(float(line.height[-1]), _said(line, style.flop(float(line.height[-1]))), line.colour) for line in lines]
    top = max(float(line.height.max()) for line in lines)
    low = min(float(line.height.min()) for line in lines)
    active = set(column(swept, "parameters.active", slice(None)).tolist())
    rule = 2 * active.pop() if len(active) == 1 else None
    if rule is not None:
        named.append((rule, f"2 N  {style.flop(rule)}", style.QUIET))
        low, top = min(low, rule), max(top, rule)
    said = f"forward pass · {setting_of(swept, x=x)}" + ("" if rule is None else " · dashed: 2 N, the usual rule")
    figure, (ax,) = style.page(
        f"{title_of(swept)}: FLOPs of a token", said, left=0.105, right=style.room(label for _, label, _ in named)
    )
    style.size_axis(ax, lines[0].x, axis_label(x), digits=x.startswith("set."))
    style.log_axis(ax, "FLOP per token", low / 1.5, top * 1.5, "FLOP")
    _drawn(ax, lines)
    if rule is not None:
        ax.axhline(rule, color=style.QUIET, lw=1.3, ls=DASHED, zorder=1)
    style.beside(ax, [(ax_height(ax, at), text, colour) for at, text, colour in named])
    return figure


def attention_share(swept: Sweep) -> Any:
    """The share of attention's scores in all FLOPs, and where it is half."""
    x = needed(swept, "attention-share")

    def share(rows: Any) -> Any:
        return 100 * column(swept, "flops.attention_scores", rows) / column(swept, "flops.total", rows)

    lines = _lines(swept, x, "attention-share", share)
    named = [
        (float(h[-1]), _said(line, percent(float(h[-1]) / 100)), line.colour) for line in lines for h in [line.height]
    ]
    halves = []
    for line in lines:
        half = crossing(line.x, _ratio(line.height), 1.0)  # a ratio rises evenly with the context
        halves += [] if half is None else [(half, 50.0, line.colour)]
    said = f"QKᵀ and AV · forward pass · {setting_of(swept, x=x)}{' · dots: half' if halves else ''}"
    figure, (ax,) = style.page(
        f"{title_of(swept)}: the share of attention scores", said, right=style.room(label for _, label, _ in named)
    )
    style.size_axis(ax, lines[0].x, axis_label(x), digits=x.startswith("set."))
    top = style.percent_axis(ax, "share of all FLOPs", max(float(line.height.max()) for line in lines))
    if top > 50:
        ax.axhline(50, color=style.QUIET, lw=1.0, ls=DASHED, zorder=1)
    _drawn(ax, lines, (_ratio, lambda ratio: 100.0001 * ratio / (1 + ratio)))
    labels.dots(ax, halves)
    style.beside(ax, [(at / top, text, colour) for at, text, colour in named])
    return figure


def _ratio(percents: Any) -> Any:
    """Shares over what they leave."""
    return percents / (100.0001 - percents)


def memory(swept: Sweep) -> Any:
    """Bytes of the cache, and those of the weights, which do not grow."""
    x = needed(swept, "memory")
    kept = {"cache": column(swept, "cache.bytes", slice(None)), "weights": column(swept, "weights.bytes", slice(None))}
    if not kept["cache"].any():
        raise SettingError(f"{title_of(swept)} keeps nothing between passes: there is no cache to draw")
    if (kept["weights"] != kept["weights"]).any():  # nan
        raise SettingError("weights are stored in a format that is not known; --weights prices them")
    caches = _lines(swept, x, "memory", lambda rows: kept["cache"][rows])
    weights = _lines(swept, x, "memory", lambda rows: kept["weights"][rows])
    if len(weights) > 1 and len(caches) > 1:  # each cache goes with weights of its own, in one colour
        caches = _lines(swept, x, "memory", lambda rows: kept["cache"][rows], beside=lambda rows: kept["weights"][rows])
        weights = [replace(line, height=kept["weights"][line.rows]) for line in caches]
        named = [_labelled(line, "") for line in caches if line.height.any()]
        named += [_labelled(line, "weights") for line in weights if not kept["cache"][line.rows].any()]
        legend = "solid: cache · dashed: weights"
    else:
        weights = [replace(line, colour=style.INK) for line in weights]
        named = [_labelled(one, "cache") for one in caches]
        alone = len(weights) == 1
        named += [_labelled(replace(line, label="" if alone else line.label), "weights") for line in weights]
        legend = ""
    if len(caches) == 1 and len(weights) > 1:
        named[0] = (named[0][0], _said(replace(caches[0], label="cache"), decimal_bytes(named[0][0])), named[0][2])
    equal = []
    for cache, weight in zip(caches, weights, strict=True) if legend else ((c, w) for c in caches for w in weights):
        at = crossing(cache.x, cache.height / weight.height, 1.0)
        equal += [] if at is None else [(at, _between(cache.x, weight.height, at), cache.colour)]
    dots = "dots: the cache is as large as the weights" if equal else ""
    said = " · ".join(filter(None, [setting_of(swept, flops=False, cache=True), stored(swept), legend, dots]))
    title = f"{title_of(swept)}: the cache against the weights"
    figure, (ax,) = style.page(title, said, left=0.095, right=style.room(label for _, label, _ in named))
    style.size_axis(ax, caches[0].x, axis_label(x), digits=x.startswith("set."))
    everything = [v for line in (*caches, *weights) for v in line.height.tolist() if v > 0]
    style.log_axis(ax, "bytes", min(everything) / 1.6, max(everything) * 2, "B")
    _drawn(ax, [line for line in caches if line.height.any()])
    look = {"lw": 1.4, "ls": DASHED} if legend else {"lw": 1.8}
    for line in weights:
        ax.plot(line.x, line.height, color=line.colour, zorder=2, **look)
    labels.dots(ax, equal, above=True)
    style.beside(ax, [(ax_height(ax, at), text, colour) for at, text, colour in named])
    return figure


def _labelled(line: Line, what: str) -> tuple[float, str, str]:
    """The label of a line of bytes at its last point."""
    last = float(line.height[-1])
    label = line.label.removeprefix(f"{what} ")  # a format of weights is one of weights
    named = f"{what} {label}" if label != line.label else ", ".join(piece for piece in (what, line.label) if piece)
    return last, f"{named}  {decimal_bytes(last)}" if named else decimal_bytes(last), line.colour


def _lines(
    swept: Sweep,
    x: str,
    what: str,
    height: Callable[[Any], Any],
    beside: Callable[[Any], Any] | None = None,
) -> list[Line]:
    """A line for each combination of what is swept beside the axis, those that are alike as one.

    `beside` is what else must be alike.
    """
    found: dict[bytes, Line] = {}
    for group in groups(swept, x, LINES, what):
        high = height(group.rows)
        key = high.tobytes() + (b"" if beside is None else beside(group.rows).tobytes())
        if key in found:
            found[key] = replace(found[key], label=together(found[key].label, group.label))
        else:
            colour = style.LINES[len(found) % len(style.LINES)]
            found[key] = Line(group.label, group.x, high, colour, group.rows)
    told = labels.told_apart([line.label for line in found.values()], LABEL)
    return [replace(line, label=label) for line, label in zip(found.values(), told, strict=True)]


def together(one: str, other: str) -> str:
    """Two labels as one: `batch 1` and `batch 8` are `batch 1, 8`."""
    first, last = one.partition(", ")[0].rpartition(" "), other.rpartition(" ")
    return f"{one}, {last[2]}" if first[0] == last[0] and first[0] else f"{one}, {other}"


def _said(line: Line, value: str) -> str:
    return f"{line.label}  {value}" if line.label else value


Shape = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _drawn(ax: Any, lines: list[Line], shape: Shape = (lambda value: value, lambda value: value)) -> None:
    """Lines that are straight between their points; few points are marked: only they were counted.

    `shape` is what of the heights is straight, and the way back.
    """
    import numpy

    there, back = shape
    for line in lines:
        x, few = line.x, len(line.x) <= MARKED
        if few:  # straight in numbers is curved on a logarithmic axis
            x = numpy.concatenate([dense(a, b) for a, b in pairwise(line.x)])
        height = back(numpy.interp(x, line.x, there(line.height)))
        ax.plot(x, height, color=line.colour, lw=2.4, solid_capstyle="round", clip_on=False, zorder=3)
        if few:
            ax.plot(line.x, line.height, "o", color=line.colour, ms=5, clip_on=False, zorder=3)


def ax_height(ax: Any, value: float) -> float:
    """Where a value stands on an axis, from 0 at its foot to 1."""
    transformed = ax.transData.transform((1, max(value, 1e-300)))[1]
    return float(ax.transAxes.inverted().transform((0, transformed))[1])


def crossing(x: Any, height: Any, level: float) -> float | None:
    """The first place where a line rises to a level, between points on a straight line; None where it does not."""
    points = list(zip(x.tolist(), height.tolist(), strict=True))
    for (x0, h0), (x1, h1) in pairwise(points):
        if h0 < level <= h1:
            return float(x0 + (x1 - x0) * (level - h0) / (h1 - h0))
    return None


def _between(x: Any, height: Any, at: float) -> float:
    import numpy

    return float(numpy.interp(at, x, height))
