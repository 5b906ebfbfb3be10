"""Figures draw what was counted, and nothing in them lies over anything else."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.studies.figures import FIGURES, draw, save, usual
from assay.studies.figures.data import setting_of
from assay.studies.sweep import sweep

numpy = pytest.importorskip("numpy")
backend = pytest.importorskip("matplotlib.backends.backend_agg")

LENGTHS: dict[str, Any] = {"context": "1k:1M:60"}


def swept(what: Any = "llama-3-8b", **asked: Any) -> assay.Sweep:
    return sweep(what, **{**LENGTHS, **asked}, also=["attention"])


WIDTHS: dict[str, Any] = {
    "sizes": {"width": "1024:8192", "mlp.width": "4*width", "attention.heads": "width/128", "attention.kv_heads": 8},
    "context": None,
}
CASES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    **{name: (name, "llama-3-8b", {}) for name in FIGURES},
    "memory of batches": ("memory", "llama-3-8b", {"batch": [1, 8, 64], "tokens": 1}),
    "memory of formats": ("memory", "llama-3-8b", {"weights": ["bf16", "fp8", "int4"], "tokens": 1}),
    "memory of both": ("memory", ["llama-3-8b", "jamba-v0.1"], {"weights": ["bf16", "int4"], "tokens": 1}),
    "few points": ("memory", "llama-3-8b", {"past": "0:1M:+250k", "context": None, "tokens": 1}),
    "the same twice": ("core", ["llama-3-8b", "llama-3-70b", "gpt-2"], {"context": 1024}),
    "memory of models": ("memory", ["llama-3-8b", "deepseek-v3", "gpt-oss-120b", "jamba-v0.1"], {"tokens": 1}),
    "FLOPs of models": ("flops-per-token", ["llama-3-8b", "gemma-2-9b", "gpt-oss-120b", "jamba-v0.1"], {"tokens": 1}),
    "shares of models": ("attention-share", ["llama-3-8b", "qwen3-8b", "gpt-oss-120b", "jamba-v0.1"], {"tokens": 1}),
    "parts of two": ("flops", ["llama-3-8b", "deepseek-v3"], {}),
    "parts of four": ("shares", ["llama-3-8b", "deepseek-v3", "gpt-oss-120b", "jamba-v0.1"], {}),
    "parameters of models": ("parameters", ["llama-3-8b", "gpt-oss-20b", "jamba-v0.1"], {"context": 4096}),
    "parameters along a width": ("parameters", "llama-3-8b", WIDTHS),
    "FLOPs along a width": ("flops-per-token", "llama-3-8b", WIDTHS),
    "core of head widths": ("core", "gpt-2", {"sizes": {"attention.heads": [3, 6, 12, 24]}, "context": 1024}),
    "a hybrid's parts": ("flops", "jamba-v0.1", {"context": "1Ki:256Ki:60"}),
    "binary lengths": ("attention", "gpt-oss-20b", {"context": None, "tokens": "1Ki:1Mi:60"}),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_lies_over_anything(case: str) -> None:
    """Every text is within the page and clear of every other: as drawn, in pixels."""
    name, what, asked = CASES[case]
    convention = {"convention": "stable-softmax"} if FIGURES[name].split else {}
    figure = draw(swept(what, **{**asked, **convention}), name)
    assert len(texts(figure)) > 4
    assert collisions(figure) == []


def collisions(figure: Any) -> list[str]:
    """Texts that leave the page or lie over each other, as drawn, in pixels."""
    canvas = backend.FigureCanvasAgg(figure)
    canvas.draw()
    renderer, page = canvas.get_renderer(), figure.bbox
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts(figure) if text.get_text().strip()]
    found = [
        f"{text!r} leaves the page"
        for text, box in boxes
        if box.x0 < 0 or box.y0 < 0 or box.x1 > page.x1 or box.y1 > page.y1
    ]
    for (one, a), (other, b) in combinations(boxes, 2):
        across, along = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > 1 and along > 4:  # boxes hold room for descents
            found.append(f"{one!r} over {other!r}")
    return found


def test_collisions_are_seen() -> None:
    figure = draw(swept(), "flops")
    figure.text(0.03, 0.945, "over the title")
    figure.text(0.95, 0.5, "out of the page, to the right")
    assert collisions(figure) == [
        "'out of the page, to the right' leaves the page",
        "'Llama 3 8B: where the FLOPs of a token go' over 'over the title'",
    ]


def texts(figure: Any) -> list[Any]:
    """Every text that is drawn: titles, labels, legends, and those ticks that an axis reaches."""
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for number, ax in enumerate(figure.axes):
        found += [*ax.texts, ax.xaxis.label, ax.yaxis.label]
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            if axis is ax.yaxis and number:
                continue  # panels share the first one's
            low, high = limits[0] - 1e-9, limits[1] * 1.001
            found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return found


def test_areas_are_the_parts() -> None:
    """The upper edge of the topmost area is the whole, each area as high as its part, in GFLOP."""
    one = swept()
    (ax,) = draw(one, "flops").axes
    edges = [area.get_paths()[0].vertices for area in ax.collections]
    top = {round(x): y for x, y in edges[-1][1 : len(one) + 1]} | {round(x): y for x, y in edges[-1][len(one) + 1 :]}
    whole = {int(c): f / 1e9 for c, f in zip(one["context"], one["flops.per_token"], strict=True)}
    assert max(abs(top[c] - whole[c]) / whole[c] for c in whole) < 1e-9


def test_lines_are_the_figures() -> None:
    one = swept(batch=[1, 8], tokens=1)
    (ax,) = draw(one, "memory").axes
    drawn = [line.get_ydata().tolist() for line in ax.lines if len(line.get_xdata()) == len(one) // 2]
    cache = one["cache.bytes"].tolist()
    assert cache[: len(cache) // 2] in drawn
    assert cache[len(cache) // 2 :] in drawn


def test_dots_are_where_it_is_equal() -> None:
    """131,072 bytes a token and 16,060,522,496 bytes of weights; scores are half at 28,628 tokens of Llama 3 8B."""
    texts = {t.get_text() for t in draw(swept(tokens=1), "memory").axes[0].texts}
    assert f"{16_060_522_496 / 131_072 / 1000:.3g}k" in texts
    assert "28.6k" in {t.get_text() for t in draw(swept(), "attention-share").axes[0].texts}


def test_dots_lie_on_their_lines() -> None:
    """Few points: between them the cache grows evenly, and so does the line, though its axis is logarithmic."""
    (ax,) = draw(swept(past="0:1M:+250k", context=None, tokens=1), "memory").axes
    line = max(ax.lines, key=lambda one: len(one.get_xdata()))
    (dot,) = [one for one in ax.lines if len(one.get_xdata()) == 1]
    height = numpy.interp(dot.get_xdata()[0], line.get_xdata(), line.get_ydata())
    assert height == pytest.approx(dot.get_ydata()[0], rel=1e-6)
    assert dot.get_ydata()[0] == 16_060_522_496


def test_formats_of_weights_are_not_taken_for_one() -> None:
    texts = {t.get_text() for t in draw(swept(tokens=1, weights=["bf16", "int4"]), "memory").axes[0].texts}
    assert {"weights bf16  16.06 GB", "weights int4  4.015 GB", "cache  131.1 GB"} <= texts


def test_shares_say_what_they_are() -> None:
    """At 64 elements a head: 128 + 5 + 128 for each pair."""
    figure = draw(swept("gpt-2", context=1024, convention="stable-softmax"), "core")
    texts = [t.get_text() for t in figure.axes[0].texts]
    share = 100 * 128 / 261
    assert texts == [f"QKᵀ  {share:.2f} %", f"softmax  {500 / 261:.2f} %", f"AV  {share:.2f} %"]


def test_bars_of_parameters() -> None:
    texts = [t.get_text() for t in draw(swept(context=1), "parameters").axes[0].texts]
    mlp = 32 * 3 * 4096 * 14336
    assert texts[-1] == f"{mlp / 1e9:.3f} B  ·  {100 * mlp / 8_030_261_248:.1f} %  ·  32 × {mlp / 32 / 1e6:.1f} M"
    assert texts[0] == texts[1] == f"525.3 M  ·  {100 * 128_256 * 4096 / 8_030_261_248:.1f} %"
    hybrid = [t.get_text() for t in draw(swept("jamba-v0.1", context=1), "parameters").axes[0].texts]
    assert not any("×" in text for text in hybrid), "its layers differ"


def test_files(tmp_path: Path) -> None:
    one = swept()
    for sort in ("png", "svg", "html"):
        one.plot("flops", tmp_path / f"a.{sort}")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = numpy.frombuffer((tmp_path / "a.png").read_bytes()[16:24], ">u4")
    assert (width, height) == (1920, 1080)
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


def test_the_same_sweep_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for sort in ("svg", "png", "html"):
            save(swept(), "shares", str(tmp_path / f"{name}.{sort}"))
    for sort in ("svg", "png", "html"):
        assert (tmp_path / f"a.{sort}").read_bytes() == (tmp_path / f"b.{sort}").read_bytes()


def test_a_page_needs_nothing_else(tmp_path: Path) -> None:
    one = swept(batch=[1, 8])
    one.plot("memory", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text.count("<svg ") == 1
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)|@import', text)
    assert set(re.findall(r'https?://[^"<> ]+', text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "http://purl.org/dc/elements/1.1/",
        "http://purl.org/dc/dcmitype/StillImage",
        "http://creativecommons.org/ns#",
        "https://matplotlib.org/",
    }
    assert "<td>131,072,000</td>" in text
    assert "40 of 120 rows" in text


@pytest.mark.parametrize(
    ("name", "what", "asked", "says"),
    [
        ("flops", "llama-3-8b", {"context": 4096}, "flops is drawn along a size that varies: sweep a context, say"),
        ("flop", "llama-3-8b", {}, "figure is 'flop'; did you mean flops?"),
        ("zzz", "llama-3-8b", {}, "figure is 'zzz'; known: flops, shares"),
        ("flops", "llama-3-8b", {"batch": [1, 2, 3, 4, 5]}, "flops shows at most 4; 5 combinations of batch are swept"),
        ("memory", "llama-3-8b", {"batch": range(1, 14)}, "memory shows at most 12; 13 combinations of batch"),
        ("attention", "mamba-130m", {}, "has no attention to take apart"),
        ("core", "mamba-130m", {}, "has no attention to take apart"),
        ("memory", "bert-base", {"context": "8:512"}, "BERT base keeps nothing between passes: there is no cache"),
    ],
)
def test_refusals(name: str, what: str, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=re.escape(says)):
        draw(swept(what, **asked), name)


def test_what_a_figure_needs_must_have_been_kept(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="flops is no column of this sweep"):
        draw(sweep("llama-3-8b", **LENGTHS, columns=["model", "setting", "cache"]), "flops")
    with pytest.raises(SettingError, match=r"a figure says model.name, which this sweep has not kept"):
        draw(sweep("llama-3-8b", **LENGTHS, columns=["flops"]), "flops")
    with pytest.raises(SettingError, match=r"core needs attention taken apart: sweep\(..., also=\['attention'\]\)"):
        draw(sweep("llama-3-8b", **LENGTHS), "core")
    with pytest.raises(SettingError, match=r"a.gif ends in none of .png, .svg, .html"):
        swept().plot("flops", tmp_path / "a.gif")
    with pytest.raises(SettingError, match="cannot be written: No such file or directory"):
        swept().plot("flops", tmp_path / "missing" / "a.png")


def test_without_matplotlib_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    one = swept()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SettingError, match="matplotlib, which is not installed; pip install matplotlib"):
        draw(one, "flops")


def test_the_usual_figure() -> None:
    assert usual(("setting.context",)) == "flops"
    assert usual(("model.name", "setting.tokens")) == "flops-per-token"
    assert usual(("set.width",)) == "parameters"
    assert usual(("setting.batch",)) == "memory"
    assert usual(()) == "parameters"


@pytest.mark.parametrize(("first", "says"), [(1000, "at most 2,048 tokens"), (4096, " 2,048 tokens")])
def test_short_contexts_have_fewer_tokens_than_said(first: int, says: str) -> None:
    made = sweep("llama-3-8b", context=[first, 8192])
    said = setting_of(made, x="setting.context")
    assert f"{says} at the end of the context" in f" {said}"
    assert ("at most" in said) == ("at most" in says)
