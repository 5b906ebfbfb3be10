"""Lines along an axis: FLOPs of a token, the share of attention's scores, the cache against the weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from assay.records import dataclass, replace
from assay.report.units import decimal_bytes
from assay.studies.figures import style
from assay.studies.figures.data import LINES, axis_label, column, groups, setting_of, title_of
from assay.studies.figures.stacked import needed

if TYPE_CHECKING:
    from assay.studies.result import Sweep

DASHED = (0, (4, 3))
MARKED = 16  # points of a line up to which each is marked: between them nothing was counted


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
    labels = [(float(line.height[-1]), _said(line, _flop(float(line.height[-1]))), line.colour) for line in lines]
    top = max(float(line.height.max()) for line in lines)
    low = min(float(line.height.min()) for line in lines)
    active = set(column(swept, "parameters.active", slice(None)).tolist())
    rule = 2 * active.pop() if len(active) == 1 else None
    if rule is not None:
        labels.append((rule, f"2 N  {_flop(rule)}", style.QUIET))
        low, top = min(low, rule), max(top, rule)
    said = f"forward pass · {setting_of(swept, x=x)}" + ("" if rule is None else " · dashed: 2 N, the usual rule")
    figure, (ax,) = style.page(
        f"{title_of(swept)}: FLOPs of a token", said, left=0.105, right=style.room(label for _, label, _ in labels)
    )
    style.size_axis(ax, lines[0].x, axis_label(x), digits=x.startswith("set."))
    style.log_axis(ax, "FLOP per token", low / 1.5, top * 1.5, "FLOP")
    _drawn(ax, lines)
    if rule is not None:
        ax.axhline(rule, color=style.QUIET, lw=1.3, ls=DASHED, zorder=1)
    style.beside(ax, [(ax_height(ax, at), text, colour) for at, text, colour in labels])
    return figure


def attention_share(swept: Sweep) -> Any:
    """The share of attention's scores in all FLOPs, and where it is half."""
    x = needed(swept, "attention-share")

    def share(rows: Any) -> Any:
        return 100 * column(swept, "flops.attention_scores", rows) / column(swept, "flops.total", rows)

    lines = _lines(swept, x, "attention-share", share)
    labels = [
        (float(h[-1]), _said(line, f"{float(h[-1]):.0f} %"), line.colour) for line in lines for h in [line.height]
    ]
    said = f"QKᵀ and AV · forward pass · {setting_of(swept, x=x)} · dots: half"
    figure, (ax,) = style.page(
        f"{title_of(swept)}: the share of attention scores", said, right=style.room(label for _, label, _ in labels)
    )
    style.size_axis(ax, lines[0].x, axis_label(x), digits=x.startswith("set."))
    style.percent_axis(ax, "share of all FLOPs")
    ax.axhline(50, color=style.QUIET, lw=1.0, ls=DASHED, zorder=1)
    _drawn(ax, lines)
    halves = []
    for line in lines:
        half = crossing(line.x, line.height / (100.0001 - line.height), 1.0)  # a ratio rises evenly with the context
        halves += [] if half is None else [(half, 50.0, line.colour)]
    _dots(ax, halves)
    style.beside(ax, [(at / 100, text, colour) for at, text, colour in labels])
    return figure


def memory(swept: Sweep) -> Any:
    """Bytes of the cache, and those of the weights, which do not grow."""
    x = needed(swept, "memory")
    lines = _lines(swept, x, "memory", lambda rows: column(swept, "cache.bytes", rows))
    weights = [column(swept, "weights.bytes", line.rows) for line in lines]
    labels = [
        (float(line.height[-1]), _said(line, decimal_bytes(float(line.height[-1]))), line.colour) for line in lines
    ]
    fixed = {float(w) for column_ in weights for w in column_.tolist()}
    if len(fixed) == 1:
        labels = [(at, f"cache, {text}" if lines[0].label else f"cache  {text}", colour) for at, text, colour in labels]
    if len(fixed) == 1:
        labels.append((min(fixed), f"weights  {decimal_bytes(min(fixed))}", style.INK))
    said = (
        "" if len(fixed) == 1 else "solid: cache · dashed: weights · "
    ) + "dots: the cache is as large as the weights"
    said = f"{setting_of(swept, flops=False, cache=True)} · {said}"
    title = f"{title_of(swept)}: the cache against the weights"
    figure, (ax,) = style.page(title, said, left=0.095, right=style.room(label for _, label, _ in labels))
    style.size_axis(ax, lines[0].x, axis_label(x), digits=x.startswith("set."))
    everything = [v for held in (*weights, *(line.height for line in lines)) for v in held.tolist() if v > 0]
    style.log_axis(ax, "bytes", min(everything) / 1.6, max(everything) * 2, "B")
    _drawn(ax, lines)
    for line, weight in zip(lines, weights, strict=True):
        if len(fixed) == 1:
            ax.axhline(weight[0], color=style.INK, lw=1.8, zorder=2)
        else:
            ax.plot(line.x, weight, color=line.colour, lw=1.4, ls=DASHED, zorder=2)
    equal = []
    for line, weight in zip(lines, weights, strict=True):
        at = crossing(line.x, line.height / weight, 1.0)
        equal += [] if at is None else [(at, _between(line.x, weight, at), line.colour)]
    _dots(ax, equal, above=True)
    style.beside(ax, [(ax_height(ax, at), text, colour) for at, text, colour in labels])
    return figure


def _lines(swept: Sweep, x: str, what: str, height: Callable[[Any], Any]) -> list[Line]:
    """A line for each combination of what is swept beside the axis, those that are alike as one."""
    found: dict[bytes, Line] = {}
    for group in groups(swept, x, LINES, what):
        high = height(group.rows)
        key = high.tobytes()
        if key in found:
            label = _together(found[key].label, group.label)
            found[key] = replace(found[key], label=label)
        else:
            colour = style.LINES[len(found) % len(style.LINES)]
            found[key] = Line(group.label, group.x, high, colour, group.rows)
    return list(found.values())


def _together(one: str, other: str) -> str:
    """Two labels as one: `batch 1` and `batch 8` are `batch 1, 8`."""
    first, last = one.partition(", ")[0].rpartition(" "), other.rpartition(" ")
    return f"{one}, {last[2]}" if first[0] == last[0] and first[0] else f"{one}, {other}"


def _said(line: Line, value: str) -> str:
    return f"{line.label}  {value}" if line.label else value


def _drawn(ax: Any, lines: list[Line]) -> None:
    for line in lines:
        mark = {"marker": "o", "ms": 5} if len(line.x) <= MARKED else {}
        ax.plot(line.x, line.height, color=line.colour, lw=2.4, solid_capstyle="round", clip_on=False, zorder=3, **mark)


def _flop(value: float) -> str:
    scale, prefix = style.scale_of(value)
    return f"{value / scale:.3g} {prefix}FLOP"


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


def _dots(ax: Any, places: list[tuple[float, float, str]], above: bool = False) -> None:
    """Places that are worth a word: each says its size, near ones further away from their line than the others."""
    before, near = -1.0, 0
    for x, y, colour in sorted(places):
        across = float(ax.transAxes.inverted().transform(ax.transData.transform((x, y)))[0])
        near = near + 1 if across - before < 0.085 else 0
        before = across
        ax.plot([x], [y], "o", color=colour, ms=7.5, mec="white", mew=1.3, zorder=4)
        text = ax.annotate(
            style.number(x),
            (x, y),
            xytext=(-7, 12 + 14 * near) if above else (7, -13 - 14 * near),
            textcoords="offset points",
            ha="right" if above else "left",
            color=style.shade(colour),
            fontsize=10.5,
            va="center",
            zorder=5,
        )
        style.halo(text)
