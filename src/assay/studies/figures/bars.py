"""Bars: where the parameters sit, and the shares within the core of attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from assay.errors import SettingError
from assay.report.units import short
from assay.studies.figures import stacked, style
from assay.studies.figures.data import AXES, LINES, Group, axis_of, by_part, colour, column, groups, part_name, title_of
from assay.studies.figures.labels import told_apart
from assay.studies.figures.lines import together

if TYPE_CHECKING:
    from assay.studies.result import Sweep

IN_LAYERS = ("attention", "mixer", "mlp", "experts", "router")  # parts that stand in layers alone
LABEL = 44  # characters before a bar
CORE = {"scores": "QKᵀ", "softmax": "softmax", "output": "AV"}


def parameters(swept: Sweep) -> Any:
    """Parameters by part: a bar a part for one model, stacked bars for several, areas along a size that is set."""
    x = axis_of(swept)
    if x is not None and x.startswith("set.") and len(set(swept.columns[x].tolist())) > 2:
        return stacked.parameters(swept, x)
    models = _distinct(swept)
    if len(models) == 1:
        return _one(swept, models[0])
    return _several(swept, models)


def _distinct(swept: Sweep) -> list[Group]:
    """A row of each model, and of each of its sizes: settings change no parameters."""
    import numpy

    names = [name for name in swept.swept if name == "model.name" or name.startswith("set.")]
    held = swept.along(tuple(names))
    made = groups(held, None, LINES, "parameters")
    told = told_apart([group.label for group in made], LABEL)
    return [Group(label, group.rows[:1], numpy.zeros(1)) for label, group in zip(told, made, strict=True)]


def _one(swept: Sweep, model: Group) -> Any:
    parts = {part: float(value[0]) for part, value in by_part(swept, model.rows, "parameters").items()}
    total = column(swept, "parameters.total", model.rows)[0]
    ordered = sorted(parts.items(), key=lambda item: item[1])
    said = f"{int(total):,} in all, exact"
    active = column(swept, "parameters.active", model.rows)[0]
    said += f" · {short(float(active))} active for a token" if active != total else ""
    figure, (ax,) = style.page(f"{title_of(swept)}: where the parameters sit", said, left=0.2, right=0.94)
    ax.grid(visible=False)
    ax.barh(range(len(ordered)), [value for _, value in ordered], color=[colour(p) for p, _ in ordered], height=0.66)
    layers = _alike(swept, model)
    for place, (part, value) in enumerate(ordered):
        each = f"  ·  {layers} × {short(value / layers)}" if layers and part in IN_LAYERS else ""
        ax.annotate(
            f"{short(value)}  ·  {100 * value / total:.1f} %{each}",
            (value, place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=12,
        )
    ax.set_yticks(range(len(ordered)), [part_name(part) for part, _ in ordered], fontsize=12)
    ax.set_xlim(0, max(parts.values()) * (1.62 if layers else 1.24))
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    figure.subplots_adjust(top=0.83, bottom=0.05)
    return figure


def _alike(swept: Sweep, model: Group) -> int:
    """How many layers there are, where all are of one block; 0 where they differ."""
    layers = int(column(swept, "model.layers", model.rows)[0])
    times = [column(swept, name, model.rows)[0] for name in swept.columns if name.endswith(".times")]
    return layers if [int(n) for n in times if n > 1] == [layers] else 0


def _several(swept: Sweep, models: list[Group]) -> Any:
    parts = [by_part(swept, g.rows, "parameters") for g in models]
    totals = [float(sum(value[0] for value in pieces.values())) for pieces in parts]
    scale, prefix = style.scale_of(max(totals), counts=True)
    title = f"{title_of(swept)}: where the parameters sit"
    figure, (ax,) = style.page(
        title, f"{_words(prefix)}parameters, exact", left=_left(g.label for g in models), right=0.94
    )
    ax.grid(visible=False)
    for place, (pieces, total) in enumerate(zip(reversed(parts), reversed(totals), strict=True)):
        start = 0.0
        for part, value in pieces.items():
            ax.barh(place, value[0] / scale, left=start, color=colour(part), height=0.62, ec="white", lw=0.5)
            start += float(value[0]) / scale
        ax.annotate(short(total), (start, place), xytext=(8, 0), textcoords="offset points", va="center", fontsize=11.5)
    ax.set_yticks(range(len(models)), [g.label or title_of(swept) for g in reversed(models)], fontsize=11)
    ax.set_xlim(0, max(totals) / scale * 1.13)
    ax.spines["left"].set_visible(False)
    stacked.legend(figure, parts, part_name, colour)
    figure.subplots_adjust(bottom=0.19, top=0.85)
    return figure


def _left(labels: Iterable[str]) -> float:
    """Where axes begin, so that labels fit before them."""
    return min(0.5, max(0.2, 0.04 + 0.0098 * max(map(len, labels))))


def _words(prefix: str) -> str:
    return {"": "", "k": "thousand ", "M": "million ", "B": "billion "}.get(prefix, "trillion ")


def core(swept: Sweep) -> Any:
    """The shares of QKᵀ, softmax and AV: a bar for each model, size or setting that changes them."""
    shares: dict[tuple[float, ...], str] = {}
    names = tuple(name for name in swept.swept if name not in AXES)
    for group in groups(swept.along(names), None, LINES, "core"):
        values = [float(column(swept, f"attention.{piece}", group.rows[:1])[0]) for piece in CORE]
        if sum(values):
            key = tuple(100 * v / sum(values) for v in values)
            label = group.label or title_of(swept)
            shares[key] = together(shares[key], label) if key in shares else label
    shares = dict(zip(shares, told_apart(list(shares.values()), LABEL), strict=True))
    if not shares:
        raise SettingError(f"{title_of(swept)} has no attention to take apart")
    convention = ", ".join(dict.fromkeys(swept["setting.convention"].tolist()))
    said = f"shares of QKᵀ, softmax and AV in their FLOPs · convention {convention}"
    figure, (ax,) = style.page(
        f"{title_of(swept)}: the core of attention", said, left=_left(shares.values()), right=0.95
    )
    ax.grid(visible=False)
    for place, values_of in enumerate(reversed(list(shares))):
        _core_bar(ax, place, values_of)
    ax.set_yticks(range(len(shares)), list(reversed(shares.values())), fontsize=11.5)
    ax.set_xlim(0, 100)
    room = max(0.0, 1.5 - len(shares) / 2)  # few bars are not as high as many
    ax.set_ylim(-0.5 - room, len(shares) - 0.3 + room)
    ax.set_xticks([])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    figure.subplots_adjust(top=0.83, bottom=0.05)
    return figure


def _core_bar(ax: Any, place: float, values: tuple[float, ...]) -> None:
    start = 0.0
    for (piece, name), value in zip(CORE.items(), values, strict=True):
        ax.barh(place, value, left=start, color=stacked.PIECE_COLOURS[piece], height=0.5, ec="white", lw=0.8)
        wide = value > 8
        ax.text(
            start + value / 2,
            place if wide else place + 0.36,
            f"{name}  {value:.2f} %",
            ha="center",
            va="center",
            fontsize=12 if wide else 10.5,
            color="white" if wide and piece != "output" else style.INK,
        )
        start += value
