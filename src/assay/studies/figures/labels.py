"""Texts that fit: names that lose their middle, and words on dots that keep clear of each other and of lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot
from typing import Any

from assay.studies.figures import style

DOT = " · "
WIDE, HIGH = 6.6, 13.0  # points that a character of 10.5 points takes, and a line
# where a word may stand about its dot, in points from it, nearest first; "right" is of a word on the left
PLACES = ((7, -13, "left"), (-7, 12, "right"), (-10, 0, "right"), (10, 0, "left"), (7, 13, "left"), (-7, -13, "right"))
FURTHER = tuple((x, y + step, side) for step in (-14, 14, -28, 28) for x, y, side in PLACES[:2])

Box = tuple[float, float, float, float]


def fitted(label: str, most: int, head: float = 0.5) -> str:
    """A label of at most so many characters: its longest piece loses its middle; `head` is what stays of the front."""
    pieces = label.split(DOT)
    spare = len(label) - most
    while spare > 0:
        longest = max(range(len(pieces)), key=lambda i: len(pieces[i]))
        keep = max(5, len(pieces[longest]) - spare)
        if keep >= len(pieces[longest]):
            return shortened(DOT.join(pieces), most, head)
        pieces[longest] = shortened(pieces[longest], keep, head)
        spare = len(DOT.join(pieces)) - most
    return DOT.join(pieces)


def shortened(text: str, most: int, head: float = 0.5) -> str:
    """A text without its middle, where it is too long."""
    if len(text) <= most:
        return text
    front = round((most - 1) * head)
    back = most - 1 - front
    return f"{text[:front].rstrip()}…{text[len(text) - back :].lstrip() if back else ''}"


def told_apart(labels: Sequence[str], most: int) -> list[str]:
    """Labels that fit, of which no two are alike that were not before."""
    for head in (0.5, 0.15, 0.85, 0.0):
        found = [fitted(label, most, head) for label in labels]
        if len(set(found)) == len(set(labels)):
            return found
    return [fitted(label, most) for label in labels]


def dots(ax: Any, places: Sequence[tuple[float, float, str]], above: bool = False) -> None:
    """Places that are worth a word: each says its size, where it is clear of other words, of dots and of lines."""
    points = _per_point(ax)
    spots = [points(x, y) for x, y, _ in places]
    avoided = [points(x, y) for line in ax.lines for x, y in _along(line)]
    taken: list[Box] = []
    (left, _), (right, _) = points(ax.get_xlim()[0], 1), points(ax.get_xlim()[1], 1)
    order = PLACES if not above else (PLACES[1], PLACES[0], *PLACES[2:])
    for (x, y, colour), (px, py) in sorted(zip(places, spots, strict=True)):
        said = style.number(x)
        ax.plot([x], [y], "o", color=colour, ms=7.5, mec="white", mew=1.3, zorder=4)
        boxes = {place: _box(px, py, *place, said) for place in (*order, *FURTHER)}
        others = [spot for spot in spots if spot != (px, py)]
        costs = {
            place: _cost(box, taken, others, avoided, (left, right)) + hypot(*place[:2]) / 2
            for place, box in boxes.items()
        }
        dx, dy, side = best = min(costs, key=lambda place: costs[place])
        taken.append(boxes[best])
        text = ax.annotate(
            said,
            (x, y),
            xytext=(dx, dy),
            textcoords="offset points",
            ha=side,
            color=style.shade(colour),
            fontsize=10.5,
            va="center",
            zorder=5,
        )
        style.halo(text)


def _per_point(ax: Any) -> Any:
    scale = 72 / ax.figure.dpi

    def points(x: float, y: float) -> tuple[float, float]:
        across, up = ax.transData.transform((x, y))
        return float(across * scale), float(up * scale)

    return points


def _along(line: Any) -> Iterable[tuple[float, float]]:
    """Points of a line, close enough together for a word to meet one that it lies on."""
    import numpy

    x, y = numpy.asarray(line.get_xdata(), float), numpy.asarray(line.get_ydata(), float)
    if len(x) < 2:
        return []
    if line.get_transform() is not line.axes.transData:  # a level: its ends are those of the axes
        x = numpy.asarray(line.axes.get_xlim(), float)
    low, high = x[0], x[-1]
    logarithmic = line.axes.get_xscale() == "log" and low > 0
    close = numpy.geomspace(low, high, 300) if logarithmic else numpy.linspace(low, high, 300)
    return list(zip(close.tolist(), numpy.interp(close, x, y).tolist(), strict=True))


def _box(x: float, y: float, dx: float, dy: float, side: str, said: str) -> Box:
    wide = WIDE * len(said)
    start = x + dx - (wide if side == "right" else 0)
    return start, y + dy - HIGH / 2, start + wide, y + dy + HIGH / 2


def _cost(
    box: Box,
    taken: Sequence[Box],
    spots: Sequence[tuple[float, float]],
    avoided: Sequence[tuple[float, float]],
    edges: tuple[float, float],
) -> float:
    """How bad a place is: over words, over other dots, out of the axes, over lines."""
    over = sum(min(box[2], b[2]) > max(box[0], b[0]) and min(box[3], b[3]) > max(box[1], b[1]) for b in taken)
    on = sum(box[0] - 5 < x < box[2] + 5 and box[1] - 5 < y < box[3] + 5 for x, y in spots)
    out = box[0] < edges[0] or box[2] > edges[1]
    lines = sum(box[0] < x < box[2] and box[1] < y < box[3] for x, y in avoided)
    return 1000 * over + 400 * on + 1000 * out + lines
