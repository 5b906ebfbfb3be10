"""Diagrams: nothing overlaps, every arrow ends at a box, every format is well formed."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

import assay
from assay.report import draw_svg, draw_text
from assay.report.captions import _of_kinds, costs, end_of, listed, name_of, painted, stream
from assay.report.geometry import Drawing, corners
from assay.report.layout import Grid
from assay.report.table import Style
from assay.sources.presets import presets

Rect = tuple[float, float, float, float]  # left, top, right, bottom


@cache
def drawn(name: str, unrolled: bool = False) -> assay.Diagram:
    model = assay.load(name)
    return assay.draw(model, unrolled=unrolled, images=1 if "images" in model.settings else None)


def boxes(drawing: Drawing) -> list[Rect]:
    return [(x - w / 2, y, x + w / 2, y + h) for x, y, w, h in drawing.boxes if h]


def overlap(a: Rect, b: Rect) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def stretches(drawing: Drawing) -> list[tuple[int, Rect]]:
    """Every straight piece of every line."""
    made = []
    for path in drawing.paths:
        points = corners(path.points)
        for (ax, ay), (bx, by) in pairwise(points):
            assert ax == bx or ay == by
            made.append((path.line, (min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))))
    return made


def check(grid: Grid, drawing: Drawing, labels: list[tuple[int, Rect]], edge: float) -> None:
    """`edge` is how far a box's own edge reaches in: a character, or nothing."""
    held = boxes(drawing)
    for n, one in enumerate(held):
        assert not any(overlap(one, other) for other in held[n + 1 :])
        assert not any(overlap(one, label) for _, label in labels)
        assert one[0] >= -1
        assert one[2] <= drawing.width + 1
    for n, (_, label) in enumerate(labels):
        assert not any(overlap(label, other) for _, other in labels[n + 1 :])
        assert label[2] <= drawing.width + 1
    found = stretches(drawing)
    for line, piece in found:
        for one in held:
            inner = (one[0] + edge, one[1] + edge, one[2] - edge, one[3] - edge)
            through = inner[0] < piece[2] and piece[0] < inner[2] and inner[1] < piece[3] and piece[1] < inner[3]
            assert not through, "a line runs through a box"
        for _, label in labels:
            assert not overlap(piece, label), "a line runs through a label"
        for other, beside in found:
            if other <= line:
                continue
            ends = set(grid.lines[line].targets) & set(grid.lines[other].targets)
            meets = any(grid.items[t].sort == "meet" for t in ends)
            level = piece[1] == piece[3] == beside[1] == beside[3] and not meets
            upright = piece[0] == piece[2] == beside[0] == beside[2]
            assert not (level and piece[0] < beside[2] and beside[0] < piece[2]), "two lines on one track"
            assert not (upright and piece[1] < beside[3] and beside[1] < piece[3]), "two lines in one column"
    for path in drawing.paths:
        (x, y), item = path.points[-1], grid.items[path.target]
        bx, by, w, h = drawing.boxes[path.target]
        if item.sort == "meet":
            assert by <= y <= by + h
            assert abs(x - bx) <= max(w / 2, 1)
        else:
            assert y == by
            assert abs(x - bx) <= w / 2


@pytest.mark.parametrize("name", [name for name, _ in presets()])
@pytest.mark.parametrize("unrolled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_overlaps_in_the_picture(name: str, unrolled: bool) -> None:
    for stage in drawn(name, unrolled).graph.stages:
        frame = draw_svg._frame(stage, unrolled)
        labels: list[tuple[int, Rect]] = []
        for label in frame.drawing.labels:
            said = frame.labels[frame.grid.lines[label.line].flow]
            wide = max(map(len, said)) * draw_svg.SMALL
            left = label.x - wide if label.left else label.x
            labels.append((label.line, (left, label.y, left + wide, label.y + 13 * len(said))))
        check(frame.grid, frame.drawing, labels, 0)
        for lines, (_, _, wide, tall) in zip(frame.texts, frame.drawing.boxes, strict=True):
            if tall > 2 * draw_svg.UNITS.point:  # a box with text, which it holds
                assert max(map(len, lines[1:]), default=0) * 6.62 <= wide - 8
                assert draw_svg.LINE * len(lines) <= tall


@pytest.mark.parametrize("name", [name for name, _ in presets()])
def test_nothing_overlaps_in_text(name: str) -> None:
    for stage in drawn(name).graph.stages:
        for narrow in (False, True):
            made = draw_text._Boxes(stage, narrow)
            labels: list[tuple[int, Rect]] = []
            for label in made.drawing.labels:
                said = made.labels[label.line]
                wide = max(map(len, said))
                left = label.x - wide if label.left else label.x
                labels.append((label.line, (left, label.y, left + wide, label.y + len(said))))
            check(made.grid, made.drawing, labels, 0.5)


@pytest.mark.parametrize("name", [name for name, _ in presets()])
@pytest.mark.parametrize("unrolled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_preset_draws_in_every_format(name: str, unrolled: bool) -> None:
    made = drawn(name, unrolled)
    lines = str(made).split("\n")
    assert lines[0] == made.model.name
    assert max(map(len, lines)) <= 100
    root = ElementTree.fromstring(made.svg())
    said = [element.text for element in root[:2]]
    assert said[0] == f"{made.model.name}: what flows where, with shapes and costs"
    check_mermaid(made.mermaid())


NODE = r"[a-z]\d+[nio]\d+"
FORMS = [
    r"flowchart TD",
    r"  %% .*",
    r'  subgraph s\d+\["[^"]*"\]',
    r"    direction TB",
    r"  end",
    rf'    ({NODE})(\["[^"]*"\]|\(\["[^"]*"\]\)|\(\("#43;"\)\))',
    rf'    {NODE} -->\|"[^"|]*"\| {NODE}',
    rf"  {NODE} ==> {NODE}",
    r"  classDef [a-z]+ fill:#\w{6},stroke:#\w{6},color:#\w{6}",
    rf"  class {NODE}(,{NODE})* [a-z]+",
]


def check_mermaid(text: str) -> None:
    """Every line has one of the forms of a flowchart, every node that is named is one."""
    lines = text.rstrip("\n").split("\n")
    assert lines[0] == "flowchart TD"
    for line in lines:
        assert any(re.fullmatch(form, line) for form in FORMS), line
    made = {found[1] for line in lines if (found := re.match(rf"    ({NODE})[\[(]", line))}
    bare = re.sub(r'"[^"]*"', "", "\n".join(line for line in lines if "%%" not in line))
    assert set(re.findall(rf"\b{NODE}\b", bare)) == made
    assert sum("subgraph" in line for line in lines) == sum(line == "  end" for line in lines)


def test_what_the_language_of_a_chart_would_read_is_written_otherwise() -> None:
    from assay.report.mermaid import _plain

    assert _plain('a "b" <c> & #1') == "a #quot;b#quot; #lt;c#gt; #amp; #35;1"


def test_a_chart_breaks_lines_between_pieces() -> None:
    """Viewers break what is wider than 200 pixels at blanks: a letter stays with its size, a figure with its unit."""
    said = drawn("llama-3-8b").mermaid()
    assert "c\N{NO-BREAK SPACE}2,048" in said
    assert "41.94\N{NO-BREAK SPACE}M\N{NO-BREAK SPACE}params · 240.5\N{NO-BREAK SPACE}GFLOP" in said


def test_the_picture_of_an_encoder_decoder_has_two_columns_and_memory_arrows() -> None:
    root = ElementTree.fromstring(drawn("t5-small").svg())
    frames = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("class") == "frame"]
    assert len({frame.get("x") for frame in frames}) == 2
    chart = drawn("t5-small").mermaid()
    numbers = {stage.name: n for n, stage in enumerate(drawn("t5-small").graph.stages)}
    memory = re.findall(rf"  s{numbers['encoder final']}o\d+ ==> s(\d+)i\d+", chart)
    assert [int(one) for one in memory] == [5, 6]  # both kinds of decoder layer


def test_costs_and_shapes_stand_in_the_text() -> None:
    text = str(drawn("llama-3-8b"))
    # projections of 4,096 x 4,096 and of 4,096 x 1,024, two each; scores and output of 2,048 x 2,048 pairs
    held = 2 * 4096 * 4096 + 2 * 4096 * 1024
    spent = 2 * 2048 * held + 4 * 2048**2 * 4096
    assert f"{held / 1e6:.2f} M params · {spent / 1e9:.1f} GFLOP" in text
    assert "xa  b n d · 1×2048×4096" in text
    assert "layer × 32 · layers 0–31" in text


def test_a_line_an_op_in_unrolled_text() -> None:
    made = drawn("llama-3-8b", True)
    lines = str(made).split("\n")
    for stage in made.graph.stages:
        for node in stage.nodes:
            op = node.rows[0].op
            call = f"{op.name} = {op.kind}({', '.join(t.name for t in op.inputs)})"
            assert sum(call in line for line in lines) >= 1
    assert next(line for line in lines if "s = contract" in line).split()[:4] == ["│", "│", "●─┘", "s"]


@pytest.mark.parametrize("name", ["deepseek-v3", "qwen3-next-80b-a3b", "jamba-v0.1"])
def test_no_word_of_it_is_cut_on_a_narrow_terminal(name: str) -> None:
    """Where a call, its shape and its cost have no room on one line, the shape is below, beside the same rails."""
    made = drawn(name, True)
    lines = draw_text.text(made.model, made.counted, made.graph, True, Style(False), 80)
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if "…" in line and not line.startswith(("  layers ", "── "))]
    said = "\n".join(lines)
    for stage in made.graph.stages:
        for node in stage.nodes:
            row = node.rows[0]
            axes, shape = " ".join(row.output.axes), "×".join(map(str, row.output.shape))
            assert f"{row.op.name} = {row.op.kind}({', '.join(t.name for t in row.op.inputs)})" in said
            assert f"{axes} · {shape}\n" in f"{said}\n" or f"{axes} · {shape} " in said


def test_long_names_of_boxes_end_at_a_kind_of_op() -> None:
    assert _of_kinds(["repeat", "concat"]) == "repeat · concat"
    assert _of_kinds(["linear", "mul", "add", "sigmoid", "scale"]) == "linear · mul · add · …"
    assert _of_kinds(["linear", "mul", "add", "sigmoid"]) == "linear · mul · add · …"
    assert _of_kinds(["linear", "mul", "softplus"]) == "linear · mul · softplus"


def test_lists_of_layers_are_whole() -> None:
    """Below the name where they have no room beside it; in a picture they end at a layer."""
    made = drawn("nemotron-h-8b")
    for wide in (80, 100):
        lines = draw_text.text(made.model, made.counted, made.graph, False, Style(False), wide)
        assert "  layers 0, 2, 4, 6, 9, 11, 13, 15, 17, 20, 22," in "\n".join(lines)
        told = " ".join(line.strip() for line in lines)
        assert "layers " + ", ".join(map(str, made.graph.stages[1].layers)) in told
    assert ">layers 0, 2, 4, 6, 9, 11, 13, 15, 17, 20, 22, …<" in made.svg()
    assert listed("layers 1, 3, … 31", 16) == "layers 1, 3, …"
    assert listed("layers 1, 3, … 31", 17) == "layers 1, 3, … 31"


def test_the_stream_is_what_the_next_stage_goes_on_with() -> None:
    """DeBERTa's embedding makes the table of distances last: it is read beside the stream, and not the stream."""
    first, layer, _ = drawn("deberta-v3-base").graph.stages
    enters, goes = stream(first)
    assert enters is None
    assert goes is not None
    assert [v.name for v in first.flows[goes].values] == ["x"]
    assert [end_of(f) for f in first.flows if f.leaves and f.values[0].name == "rel"] == ["read later"]
    assert [v.name for v in layer.flows[stream(layer)[0] or 0].values] == ["x"]


def test_towers_are_drawn_as_what_they_are_made_of() -> None:
    """All of their ops are of one part: norms, attention and MLPs are told by their kinds."""
    config = {
        "model_type": "qwen2_vl",
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "text_config": {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2},
        "vision_config": {"depth": 2, "embed_dim": 32, "num_heads": 4, "hidden_size": 64},
    }
    model = assay.load(config)
    stage = next(s for s in assay.draw(model, images=1).graph.stages if s.name == "vision layer")
    assert [name_of(node) for node in stage.nodes] == ["LayerNorm", "Attention", "add", "LayerNorm", "MLP", "add"]
    assert {node.part for node in stage.nodes} == {"tower"}
    assert [painted(node) for node in stage.nodes if not node.adds] == ["norm", "attention", "norm", "mlp"]
    idle = "images 0, so what reads them costs nothing"
    assert idle in " ".join(str(assay.draw(model)).split())
    assert idle not in " ".join(str(assay.draw(model, images=1)).split())


def test_a_block_alone() -> None:
    block = assay.block("u = linear(x[b n d], W[d f]) -> [b n f]", d=4, f=16)
    made = assay.draw(block, tokens=2)
    assert [node.flops for node in made.graph.stages[0].nodes] == [2 * 2 * 4 * 16]
    assert "1×2×16" in str(made)
    check_mermaid(made.mermaid())
    assert made._repr_svg_() == made.svg()


def test_files(tmp_path: Path) -> None:
    made = drawn("gpt-2")
    for ending, opening in (
        (".svg", "<svg "),
        (".mmd", "flowchart TD\n"),
        (".md", "```mermaid\nflowchart"),
        (".txt", "GPT-2"),
    ):
        path = tmp_path / f"a{ending}"
        made.save(str(path))
        assert path.read_text(encoding="utf-8").startswith(opening)


def test_refusals(tmp_path: Path) -> None:
    made = drawn("gpt-2")
    with pytest.raises(assay.SettingError, match=r"a.png is no picture's name; it must end in .svg, .mmd, .md or .txt"):
        made.save("a.png")
    with pytest.raises(assay.SettingError, match="cannot be written: No such file or directory"):
        made.save(str(tmp_path / "none" / "a.svg"))
    numpy = pytest.importorskip("numpy")
    with pytest.raises(assay.SettingError, match="a picture is of one setting; its sizes must be integers"):
        assay.draw(made.model, tokens=numpy.array([1, 2]))


def test_letters_below_a_diagram_have_the_words_of_the_field() -> None:
    below = str(assay.draw(assay.load("jamba-v0.1"))).rpartition("──")[2]
    for said in ("I channels 8,192", "S width of the state 16", "e experts 16", "g key/value heads 8"):
        assert said in " ".join(below.split())


def test_letters_without_a_word_have_the_key_they_came_from() -> None:
    """But for one that is several sizes: ViT's p is patches in one place and the pooler's width in another."""
    below = " ".join(str(drawn("whisper-tiny")).rpartition("──")[2].split())
    assert "q encoder.frames.kernel 3" in below
    assert "j encoder.frames.channels 80" in below
    other = " ".join(str(drawn("vit-b-16")).rpartition("──")[2].split())
    assert "y patches.patch 16 · z patches.patch 16" in other
    assert "i patches.channels 3 · p P position table 197" in other


@pytest.mark.parametrize("wide", [80, 100])
@pytest.mark.parametrize("unrolled", [False, True])
@pytest.mark.parametrize("name", ["llama-3-8b", "t5-small", "deepseek-v3", "jamba-v0.1", "whisper-tiny", "vit-b-16"])
def test_a_narrow_terminal_has_narrow_lines(name: str, unrolled: bool, wide: int) -> None:
    """Where boxes have no room, a line an op stands in their place; every cost is there at any width."""
    made = drawn(name, unrolled)
    lines = draw_text.text(made.model, made.counted, made.graph, unrolled, Style(False), wide)
    assert max(map(len, lines)) <= wide
    said = "\n".join(lines)
    for stage in made.graph.stages:
        for node in stage.nodes:
            assert not node.flops or costs(node)[-1] in said


@pytest.mark.parametrize("name", ["t5-small", "flan-t5-base", "bart-base", "whisper-tiny"])
def test_encoder_decoders_have_room_on_a_report_s_width(name: str) -> None:
    assert all(draw_text._boxed(drawn(name).graph.stages, 100))


def test_what_has_no_room_for_boxes_is_a_line_a_sub_layer() -> None:
    """On 80 characters BART's decoder stands beside rails; each of its sub-layers with what it costs."""
    made = drawn("bart-base")
    (layer,) = [stage for stage in made.graph.stages if stage.name == "decoder layer"]
    assert draw_text._boxed([layer], 80) == [None]
    lines = draw_text.text(made.model, made.counted, made.graph, False, Style(False), 80)
    start = next(i for i, line in enumerate(lines) if line.startswith("── decoder layer"))
    rows = [line.split("  ") for line in lines[start + 1 : lines.index("", start)]]
    assert len([row for row in rows if "●" in row[1]]) == 6
    attention = "  ├─●  Attention            b n d · 1×1024×768  2.362 M params · 8.053 GFLOP"
    assert [" ".join(line.split()) for line in lines[start:]].count(" ".join(attention.split())) == 1


def test_what_nobody_reads_says_so() -> None:
    """XLNet keeps a vector that this class has no use for; the words stay whole where a line ends at them."""
    model = assay.load({"model_type": "xlnet", "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128})
    first = assay.draw(model).graph.stages[0]
    assert {end_of(flow) for flow in first.flows if flow.leaves and not flow.onward} == {"unread"}
    assert [v.name for v in first.flows[stream(first)[1] or 0].values] == ["x"]
    lines = str(assay.draw(model)).split("\n")
    assert any("unread" in line for line in lines)
