"""How a figure looks: a title on the left, quiet axes, units that people read, labels beside what they name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import Any

from assay.errors import SettingError

NEEDS = "a plot is drawn by matplotlib, which is not installed; pip install matplotlib"
SIZE = (9.6, 5.4)  # inches: a slide of 16 to 9
DPI = 200

INK, QUIET, FAINT = "#22252b", "#6b7078", "#e4e6ea"
# as many as a figure has lines, no two of which are taken for each other
LINES = (
    *("#4c78a8", "#d6455d", "#59a14f", "#f2a93b", "#8268b0", "#5fb3a8"),
    *("#9c755f", "#e377a2", "#8b9098", "#1d2f6f", "#a8a51c", "#35c3f0"),
)
SMALL, TINY = 10.5, 9  # points of labels beside lines, and of long ones
FEW = 40  # characters of a label that fit beside lines
HIGHEST = 1.06  # of the axes: where the middle of a label beside them may stand

RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": [
        *("Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"),
        *("Noto Sans CJK SC", "Noto Sans CJK JP", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Malgun Gothic"),
    ],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": 11,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "xtick.major.size": 4,
    "ytick.major.size": 0,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "svg.hashsalt": "assay",
    "svg.fonttype": "path",
}

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_COUNTS = ("", "k", "M", "B", "T")


def pyplot() -> Any:
    """The module matplotlib, set up to draw into files. Raises SettingError where it is not installed."""
    import logging

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # fonts of the list below that are not there
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise SettingError(NEEDS) from None
    return matplotlib


def page(title: str, subtitle: str, panels: int = 1, right: float = 0.80, left: float = 0.085) -> tuple[Any, list[Any]]:
    """A figure with its title and so many axes side by side."""
    figure = pyplot().figure.Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    bottom = 0.125 if panels == 1 else 0.2
    axes = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
    lines = _folded(subtitle)
    top = (0.80 if panels == 1 else 0.775) - 0.015 * (len(lines) - 1)
    figure.subplots_adjust(left=left, right=right if panels == 1 else 0.975, top=top, bottom=bottom, wspace=0.07)
    figure.text(0.025, 0.945, title, fontsize=16 * min(1.0, 68 / len(title)), fontweight="bold", va="center")
    for place, line in enumerate(lines):
        high = 0.888 if len(lines) == 1 else 0.902 - 0.034 * place
        figure.text(0.025, high, line, fontsize=10.5 if len(lines) == 1 else 9.5, color=QUIET, va="center")
    for ax in axes:
        ax.grid(axis="y")
        ax.tick_params(axis="y", pad=4)
    return figure, list(axes)


def _folded(subtitle: str) -> list[str]:
    """A subtitle on one line, or on two smaller ones."""
    if len(subtitle) <= 120:
        return [subtitle]
    lines = [""]
    for piece in subtitle.split(" · "):
        joined = f"{lines[-1]} · {piece}" if lines[-1] else piece
        if len(joined) <= 118 or not lines[-1]:
            lines[-1] = joined
        elif len(lines) < 2:
            lines.append(piece)
        else:
            lines[-1] += " …"
            break
    return lines


def room(labels: Iterable[str]) -> float:
    """Where axes end, so that labels fit beside them."""
    longest = max((len(label) for label in labels), default=0)
    each = 0.0088 if longest <= FEW else 0.0076
    return min(0.86, max(0.55, 0.955 - each * longest))


def scale_of(largest: float, counts: bool = False) -> tuple[float, str]:
    """What to divide figures by, and the prefix that stands for it: (1e9, "G"), of counts (1e9, "B")."""
    names = _COUNTS if counts else _PREFIXES
    step = 0 if largest < 1000 else min(floor(log10(largest) / 3 + 1e-9), len(names) - 1)
    return 1000.0**step, names[step]


def flop(value: float) -> str:
    """565 GFLOP."""
    scale, prefix = scale_of(value)
    return f"{value / scale:.3g} {prefix}FLOP"


def number(value: float, names: Sequence[str] = _COUNTS, digits: int = 3) -> str:
    """1k, 131k, 2.5M: a size as an axis has it, to so many digits."""
    if value == 0:
        return "0"
    step = 0
    while abs(value) >= 999.5 and step < len(names) - 1:
        value, step = value / 1000, step + 1
    text = f"{value:.{digits}g}"
    return f"{text}{names[step]}"


def size_axis(ax: Any, values: Any, label: str, most: int = 11, digits: bool = False, inside: bool = False) -> None:
    """A horizontal axis of sizes, of at most so many ticks: logarithmic where they span a factor of 8 or more.

    `digits` writes them out, as widths are, and not as 8k or 8Ki; `inside` keeps the outermost within the axis, where
    another is beside it.
    """
    from matplotlib import ticker

    low, high = float(min(values)), float(max(values))
    ax.set_xlabel(label, labelpad=6)
    ax.set_xlim(low, high)
    if low > 0 and high / low >= 8:
        ax.set_xscale("log")
        binary = all(float(value) % 1024 == 0 for value in (low, high))
        ticks = _powers_of_two(low, high, most) if binary else _decades(low, high, most)
        ax.xaxis.set_major_locator(ticker.FixedLocator(ticks))
        ax.xaxis.set_minor_locator(ticker.NullLocator())
        said = _digits if digits else _binary if binary else number
    else:
        locator = ticker.MaxNLocator(min(8, most), integer=True)
        ax.xaxis.set_major_locator(locator)
        ticks = [float(tick) for tick in locator.tick_values(low, high)]
        told = len(set(map(number, ticks))) == len(ticks)  # ticks close together have more digits
        said = _digits if digits or high < 1e5 or not told else number
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: said(value)))
    if inside:
        for value, tick in zip(ax.get_xticks(), ax.xaxis.get_major_ticks(), strict=False):
            tick.label1.set_ha("left" if value <= low * 1.001 else "right" if value >= high * 0.999 else "center")


def _digits(value: float) -> str:
    return f"{value:,.0f}"


def _binary(value: float) -> str:
    for power, name in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value >= 2**power:
            return f"{value / 2**power:g}{name}"
    return f"{value:g}"


def _powers_of_two(low: float, high: float, most: int) -> list[float]:
    from math import log2

    powers = range(ceil(log2(low) - 1e-9), floor(log2(high) + 1e-9) + 1)
    every = 1 + (len(powers) - 1) // most
    return [2.0**p for p in powers][::every]


def _decades(low: float, high: float, most: int) -> list[float]:
    """1, 2, 5 of each decade, or fewer where there are many decades."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [s * 10.0**d for d in decades for s in steps if low * 0.9999 <= s * 10.0**d <= high * 1.0001]
        if len(found) <= most:
            return found
    return found[:: 1 + len(found) // most]


def figure_axis(ax: Any, label: str, top: float) -> None:
    """A vertical axis from 0, its label above it."""
    from matplotlib import ticker

    ax.set_ylim(0, top)
    ax.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:,.6g}"))
    above(ax, label)


def percent_axis(ax: Any, label: str, highest: float = 100) -> float:
    """A vertical axis of percent, of all or of a part that holds the highest; where it ends."""
    from matplotlib import ticker

    top = next((end for end in (1, 2, 5, 10, 20, 40) if 1.08 * highest <= end), 100) if highest else 100
    ax.set_ylim(0, top)
    ax.yaxis.set_major_locator(ticker.MultipleLocator(20 if top == 100 else top / 5 if top != 40 else 10))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:g} %"))
    above(ax, label)
    return float(top)


def log_axis(ax: Any, label: str, low: float, high: float, unit: str) -> None:
    """A logarithmic vertical axis whose ticks say their units: 1 MB, 1 GB."""
    from matplotlib import ticker

    ticks = _decades(low, high, 8)
    if len(ticks) < 3:  # less than a decade: even steps
        ticks = [tick for tick in ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if tick > 0]
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(ticker.FixedLocator(ticks))
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: _with_unit(v, unit)))
    above(ax, label)


def _with_unit(value: float, unit: str) -> str:
    scale, prefix = scale_of(value * (1 + 1e-9))
    return f"{value / scale:.6g} {prefix}{unit}"


def above(ax: Any, label: str, size: float = 11) -> None:
    """An axis' label above it, where it is read without turning one's head."""
    ax.text(0, 1.035, label, transform=ax.transAxes, ha="left", va="bottom", fontsize=size, linespacing=1.1)


def beside(ax: Any, labels: Sequence[tuple[float, str, str]], gap: float = 0.058) -> None:
    """Labels at the right edge, each (height in the axes, text, colour): moved apart where they would touch."""
    size = SMALL if max((len(text) for _, text, _ in labels), default=0) <= FEW else TINY
    order = sorted(range(len(labels)), key=lambda i: labels[i][0])
    heights = spread([labels[i][0] for i in order], gap)
    low = max(0.0, 0.4 * gap - heights[0]) if heights else 0.0  # the lowest stays clear of the axis' own labels
    heights = spread([max(height, 0.4 * gap) for height in heights], gap) if low else heights
    heights = [max(height, (0.4 + place) * gap) for place, height in enumerate(heights)]
    last = len(heights) - 1  # the highest stays clear of what stands above the axes
    heights = [min(height, HIGHEST - (last - place) * gap) for place, height in enumerate(heights)]
    for i, height in zip(order, heights, strict=True):
        at, text, colour = labels[i]
        ax.plot([1.0, 1.022], [at, height], color=colour, lw=1.0, transform=ax.transAxes, clip_on=False)
        ax.text(1.03, height, text, color=shade(colour), fontsize=size, va="center", transform=ax.transAxes)


def halo(text: Any) -> None:
    """A text that is read over lines."""
    from matplotlib.patheffects import withStroke

    text.set_path_effects([withStroke(linewidth=3, foreground="white")])


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in rising order, moved as little as may be until each is `gap` above the one before."""
    placed: list[list[float]] = []  # runs that touch: [sum of wished starts, how many]
    for height in heights:
        placed.append([height, 1])
        while len(placed) > 1 and _middle(placed[-2]) + gap * (placed[-2][1] + placed[-1][1]) / 2 > _middle(placed[-1]):
            last, before = placed.pop(), placed.pop()
            placed.append([before[0] + last[0], before[1] + last[1]])
    made: list[float] = []
    for total, many in placed:
        first = total / many - gap * (many - 1) / 2
        made += [first + gap * i for i in range(int(many))]
    return made


def _middle(run: list[float]) -> float:
    return run[0] / run[1]


def shade(colour: str) -> str:
    """A colour dark enough to read as text on white."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    light = 0.299 * red + 0.587 * green + 0.114 * blue
    factor = min(1.0, 118 / light)
    return "#" + "".join(f"{int(c * factor):02x}" for c in (red, green, blue))
