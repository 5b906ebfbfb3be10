"""A diagram in the language of Mermaid, which Markdown viewers draw."""

from __future__ import annotations

from collections.abc import Sequence

from assay.readings.count import Count
from assay.readings.graph import Flow, Graph, Stage
from assay.report.captions import box, heading, origin, painted, setting_of, shape, stream, together
from assay.report.palette import PARTS
from assay.spec import Model


def mermaid(model: Model, counted: Count, graph: Graph, unrolled: bool) -> str:
    """A flowchart: a subgraph for each distinct layer, thick arrows between them for the stream."""
    lines = ["flowchart TD", f"  %% {_plain(model.name)} · {_plain(setting_of(model, counted))}"]
    used: dict[str, list[str]] = {}
    for number, stage in enumerate(graph.stages):
        lines += _stage(stage, number, unrolled, used)
    lines += _between(graph)
    for part, ids in used.items():
        lines += [
            f"  classDef {part} fill:{PARTS[part][0][0]},stroke:{PARTS[part][0][1]},color:#24292f",
            f"  class {','.join(ids)} {part}",
        ]
    return "\n".join(lines) + "\n"


def _stage(stage: Stage, number: int, unrolled: bool, used: dict[str, list[str]]) -> list[str]:
    name, layers = heading(stage)
    said = " · ".join(filter(None, [name, layers, together(stage)]))
    enters, goes = stream(stage)
    lines = [f"  subgraph s{number}[{_quoted([said])}]", "    direction TB"]
    for index, node in enumerate(stage.nodes):
        one = f"s{number}n{index}"
        if node.adds:
            lines.append(f'    {one}(("#43;"))')
            continue
        lines.append(f"    {one}[{_quoted(box(stage, index, unrolled))}]")
        part = painted(node)
        if part in PARTS:
            used.setdefault(part, []).append(one)
    for index, flow in enumerate(stage.flows):
        lines += _flow(flow, index, number, (enters, goes))
    return [*lines, "  end"]


def _flow(flow: Flow, index: int, number: int, main: tuple[int | None, int | None]) -> list[str]:
    """The arrows of one flow, and where it comes from or leaves the stage."""
    lines = []
    if flow.source is None:
        source = f"s{number}i{index}"
        where = [] if index == main[0] else [origin(flow)]
        lines.append(f"    {source}([{_quoted([flow.values[0].name, *where])}])")
    else:
        source = f"s{number}n{flow.source}"
    label = _quoted([f"{v.name}: {' '.join(v.axes)} · {shape(v)}" for v in flow.values])
    targets = [f"s{number}n{target}" for target in flow.targets]
    if flow.leaves:
        leave = f"s{number}o{index}"
        lines.append(f"    {leave}([{_quoted([flow.values[-1].name])}])")
        targets.append(leave)
    return lines + [f"    {source} -->|{label}| {target}" for target in targets]


def _between(graph: Graph) -> list[str]:
    """The stream from stage to stage, and the memory from the encoder's end to where it is read."""
    numbers = {id(stage): number for number, stage in enumerate(graph.stages)}
    lines = []
    before: Sequence[Stage] = ()
    ends: list[Stage] = []
    for stack in graph.stacks():
        for old in before:
            for new in stack:
                enters, goes = stream(new)[0], stream(old)[1]
                if enters is not None and goes is not None and old.encodes == new.encodes:
                    lines.append(f"  s{numbers[id(old)]}o{goes} ==> s{numbers[id(new)]}i{enters}")
        before = stack
        ends += [stack[-1]] if stack[0].encodes else []
    for stage in graph.stages:
        for index, flow in enumerate(stage.flows):
            goes = stream(ends[-1])[1] if ends else None
            if flow.crosses and goes is not None:
                lines.append(f"  s{numbers[id(ends[-1])]}o{goes} ==> s{numbers[id(stage)]}i{index}")
    return lines


def _quoted(lines: Sequence[str]) -> str:
    """A text in quotes, its lines under each other; where one is broken, it is between two of its pieces."""
    return '"' + "<br/>".join(_plain(" · ".join(_kept(line.split(" · ")))) for line in lines) + '"'


def _kept(pieces: Sequence[str]) -> list[str]:
    """Pieces that are not broken at their blanks."""
    return [piece.replace(" ", "\N{NO-BREAK SPACE}") for piece in pieces]


def _plain(said: str) -> str:
    """Without what the language or HTML would read."""
    for sign, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("&", "#amp;")):
        said = said.replace(sign, entity)
    return said
