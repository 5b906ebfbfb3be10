"""Figures draw what was counted, and nothing in them lies over anything else."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SettingError
from assay.studies.figures import FIGURES, draw, save, style, usual
from assay.studies.figures.data import LINES, following, setting_of, title_of
from assay.studies.figures.labels import fitted, told_apart
from assay.studies.shown import stored
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
TWELVE = [
    *("llama-3-8b", "deepseek-v3", "gemma-3-12b", "jamba-v0.1", "mixtral-8x7b", "qwen3-8b", "gpt-oss-20b"),
    *("qwen3-next-80b-a3b", "llama-4-scout", "kimi-k2", "nemotron-h-8b", "phi-4"),
]
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
    "long names": ("memory", ["llama-4-maverick", "qwen3-next-80b-a3b"], {"batch": [1, 8], "cache": ["bf16", "fp8"]}),
    "panels of long names": ("flops", ["llama-4-maverick", "nemotron-3-nano-30b-a3b"], {"batch": [1, 8]}),
    "shares of twelve": ("attention-share", TWELVE, {"context": None, "tokens": "1k:1M:60"}),
    "shares that are near": ("attention-share", TWELVE[:7], {"context": None, "tokens": "1k:1M:60"}),
    "small shares of twelve": ("attention-share", TWELVE, {"context": None, "tokens": "128:1024:60"}),
    "depths and batches": ("memory", "llama-3-8b", {"sizes": {"layers": [16, 32]}, "batch": [1, 8]}),
    "formats of both": ("memory", "llama-3-8b", {"weights": ["bf16", "int8", "int4"], "cache": ["bf16", "fp8"]}),
    "a model without a cache": ("memory", ["bert-base", "llama-3-8b"], {"context": "64:512:60"}),
    "a short span": ("flops-per-token", "llama-3-8b", {"context": None, "tokens": [1024, 2048]}),
    "a tiny span": ("flops", "llama-3-8b", {"context": None, "tokens": "1000000:1000010:+1"}),
    "parameters of depths": ("parameters", "llama-4-maverick", {"sizes": {"layers": "12:48", "width": [4096, 5120]}}),
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


@pytest.mark.parametrize("case", [name for name in CASES if "short" in name or "tiny" in name or name in FIGURES])
def test_axes_can_be_read(case: str) -> None:
    """At least two ticks that say different things: one tick is no scale, and alike ones are none either."""
    name, what, asked = CASES[case]
    figure = draw(swept(what, **{**asked, **({"convention": "stable-softmax"} if FIGURES[name].split else {})}), name)
    backend.FigureCanvasAgg(figure).draw()
    for ax in figure.axes:
        for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            said = [t.label1.get_text() for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
            assert len(set(said)) == len(said)
            assert len(said) > 1 or name in ("parameters", "core")


def test_no_two_lines_are_of_one_colour() -> None:
    """As far apart as colours that people tell apart, in the opponent space of the eye: at least 15 of Lab's units."""
    assert len(style.LINES) == LINES
    seen = [lab(colour) for colour in style.LINES]
    assert min(numpy.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


def lab(colour: str) -> Any:
    """CIE 1976 L*a*b* of an sRGB colour, D65."""
    red = numpy.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    light = numpy.where(red <= 0.04045, red / 12.92, ((red + 0.055) / 1.055) ** 2.4)
    xyz = numpy.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ light
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz / numpy.array([0.95047, 1, 1.08883]))
    return numpy.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


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


def test_names_are_only_names(tmp_path: Path) -> None:
    """A dollar in a name is no formula, and a sign that no font has no reason to speak of fonts."""
    text = "vocab = 100\nwidth = 64\nlayers = 2\n[attention]\nheads = 4\n[mlp]\nwidth = 128\n"
    for name in (r"a$\frac$_b", "模型"):
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        save(swept([str(path), "gpt-2"], context="1:1024:60"), "flops-per-token", str(tmp_path / "a.png"))
    (ax,) = draw(swept(str(tmp_path / r"a$\frac$_b.toml")), "flops").axes
    assert ax.figure.texts[0].get_text() == r"a$\frac$_b: where the FLOPs of a token go"


def test_long_names_lose_their_middle() -> None:
    name = "a-model-of-many-experiments-seed-42"
    assert fitted(name, 40) == name
    assert fitted(name, 15) == "a-model…seed-42"
    assert fitted(f"{name} · batch 8", 25) == "a-model…seed-42 · batch 8"
    assert told_apart([name, name.replace("42", "43")], 12) == ["a-mode…ed-42", "a-mode…ed-43"]
    early, late = (f"{start}-the-same-{'x' * 40}" for start in ("abcdefg-1", "abcdefg-2"))
    assert told_apart([early, late], 12) == ["abcdefg-1…xx", "abcdefg-2…xx"]
    two = swept(["llama-4-maverick", "nemotron-3-nano-30b-a3b"])
    assert title_of(two) == "2 models"


def test_what_is_said_of_a_setting_is_so() -> None:
    """No cache where nothing is before, no end of a context where tokens are all of it; formats; masked pairs."""
    assert setting_of(sweep("llama-3-8b", tokens=1, batch=[1, 2])) == "one token · convention matmul"
    assert setting_of(sweep("vit-b-16", batch=[1, 2])) == "197 tokens · convention matmul"
    cached = sweep("llama-3-8b", tokens=1, past=[0, 9])
    assert setting_of(cached) == "batch 1 · one token with a cache · convention matmul"
    long = sweep("llama-3-8b", tokens=[1024, 65536])
    assert setting_of(long, x="setting.tokens") == "batch 1 · convention matmul · masked pairs counted"
    assert long["flops.total"][1] > 1.2 * long["flops.visible_total"][1]
    assert "masked" not in setting_of(sweep("llama-3-8b", tokens=[1024, 65536], convention="causal"))
    assert stored(sweep("deepseek-v3", tokens=[1, 2])) == "weights fp8 in blocks of 128×128, the rest bf16"
    assert stored(sweep(["deepseek-v3", "gpt-2"], tokens=1)) == "weights as each model is stored"
    assert stored(sweep("gpt-2", tokens=1, weights="int8,fp16")) == ""


def test_sizes_that_follow_say_how() -> None:
    sizes = {"width": [1536, 3072], "mlp.width": "4*width", "attention.heads": "width/64"}
    assert following(sweep("gpt-2", tokens=1, sizes=sizes)) == "mlp.width = 4 × width · attention.heads = width / 64"
    assert following(sweep("gpt-2", tokens=1, sizes={"layers": [4, 8], "context": 2048})) == ""


def test_lines_between_few_points_are_curved_as_their_shares_are() -> None:
    """A share of which the ratio to the rest rises evenly: the dot at half lies on the line."""
    (ax,) = draw(swept(past="0:1M:+250k", context=None, tokens=1), "attention-share").axes
    line = max((one for one in ax.lines if one.get_transform() is ax.transData), key=lambda one: len(one.get_xdata()))
    (dot,) = [one for one in ax.lines if len(one.get_xdata()) == 1]
    assert dot.get_xdata()[0] == pytest.approx(28_628, rel=1e-3)
    assert numpy.interp(dot.get_xdata()[0], line.get_xdata(), line.get_ydata()) == pytest.approx(50, rel=2e-3)


def test_small_shares_are_not_said_to_be_none() -> None:
    texts = {t.get_text() for t in draw(swept("jamba-v0.1", context="1:100:60"), "attention-share").axes[0].texts}
    assert "<0.1 %" in texts
    assert draw(swept("bert-base", context="8:512:60"), "attention-share").axes[0].get_ylim() == (0, 10)


def test_a_page_has_the_same_places_of_each_line(tmp_path: Path) -> None:
    """Both ends of every line among them, of 60 points each."""
    two = swept(["llama-3-8b", "gemma-2-9b"], tokens=1)
    two.plot("memory", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text.count("<td>1,000</td>") == text.count("<td>1,000,000</td>") == 2
    assert "<th>cache<br>bytes</th>" in text
    assert text.count("<td>Llama 3 8B</td>") == text.count("<td>Gemma 2 9B</td>") == 20
