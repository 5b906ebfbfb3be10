"""What stands in the boxes and on the arrows of a diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.readings.count import Count
from assay.readings.graph import Flow, Graph, Node, Stage
from assay.readings.ops import Operand
from assay.report.model import asked_for, has_latent
from assay.report.units import digits, flop, layer_ranges, plural, short, shorten
from assay.size import Size
from assay.spec import Model

NAMES = {
    "attention": "Attention",
    "embedding": "Embedding",
    "experts": "Experts",
    "head": "Head",
    "layernorm": "LayerNorm",
    "mixer": "Mixer",
    "mlp": "MLP",
    "norm": "Norm",
    "rmsnorm": "RMSNorm",
    "router": "Router",
    "tower": "Tower",
}
SAID = ("window", "chunk", "top", "rule")  # attributes that tell layers of one shape apart
LONG = 26


def box(stage: Stage, index: int, unrolled: bool, wide: int = 34) -> list[str]:
    """The lines of a box: what it is, the sizes within it, what it costs; sizes folded to `wide` characters."""
    node = stage.nodes[index]
    title = name_of(node, unrolled)
    lines = [shorten(title, LONG)]
    if unrolled:
        lines += [shorten(f"{t.name} [{' '.join(t.axes)}] {shape(t)}", 40) for t in node.rows[0].inputs if t.weight]
    else:
        sizes = [f"{axis} {digits(size)}" for axis, size in _within(node, stage.flows, index).items()]
        lines += folded([*_kind(node, title), *sizes], wide)
    lines += folded(
        [f"{key} {value}" if key != "rule" else str(value) for key, value in _told(node, stage.sizes).items()], wide
    )
    return [*lines, *folded(costs(node), wide)]


def _kind(node: Node, title: str) -> list[str]:
    """The kind of a lone op whose box has another name."""
    named = len(node.rows) > 1 or title in (node.rows[0].op.kind, NAMES.get(node.rows[0].op.kind))
    return [] if named else [node.rows[0].op.kind]


def _told(node: Node, sizes: Mapping[str, Size]) -> dict[str, object]:
    """Attributes that tell layers apart, a size's name as its number."""
    found = {
        key: sizes.get(v, v) if isinstance(v, str) else v for row in node.rows for key, v in row.op.attrs if key in SAID
    }
    return {key: digits(value) if isinstance(value, int) else value for key, value in found.items()}


def _within(node: Node, flows: Sequence[Flow], index: int) -> dict[str, Size]:
    """The axes that its arrows do not show, or only one of several."""
    arrows = [{axis for v in f.values for axis in v.axes} for f in flows if index == f.source or index in f.targets]
    often = 1 if len(arrows) > 2 else 0
    return {a: size for a, size in node.inner().items() if sum(a in axes for axes in arrows) <= often}


def folded(words: Sequence[str], wide: int) -> list[str]:
    """Words with dots between them, on as few lines as it takes."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 3 <= wide:
            lines[-1] += f" · {word}"
        else:
            lines.append(word)
    return lines


def name_of(node: Node, unrolled: bool = False) -> str:
    """What a box is: of one op its kind, of several their part."""
    if node.adds:
        return node.rows[0].op.kind
    if len(node.rows) == 1:
        kind = node.rows[0].op.kind
        return NAMES.get(kind) or (kind if unrolled else NAMES.get(node.part, kind))
    if node.crossed and node.part == "attention":
        return "Cross-attention"
    if node.part == "tower":
        return _of_tower([row.op.kind for row in node.rows])
    if node.part == "other":
        return _of_kinds(list(dict.fromkeys(row.op.kind for row in node.rows)))
    return NAMES.get(node.part, node.part)


def _of_kinds(kinds: list[str]) -> str:
    """Kinds of ops, as many as there is room for."""
    held = kinds[:]
    while len(" · ".join(held)) > LONG - 4 * (len(held) < len(kinds)) and len(held) > 1:
        held.pop()
    return " · ".join([*held, "…"] if len(held) < len(kinds) else held)


def painted(node: Node) -> str:
    """The part in whose colours a box is: of a tower, too, what it is called."""
    name = name_of(node)
    if name.endswith("Norm"):
        return "norm"
    called = {said: part for part, said in NAMES.items()}
    return called.get(name, node.part) if node.part == "tower" else node.part


def _of_tower(kinds: Sequence[str]) -> str:
    """What a box of a tower is, whose ops are of one part all: by their kinds."""
    if {"softmax", "contract"} <= set(kinds):
        return NAMES["attention"]
    if "gather" in kinds:
        return NAMES["embedding"]
    if {"conv", "unfold"} & set(kinds) or kinds.count("columns") > 1:
        return "Convolution"
    return NAMES["mlp"] if kinds.count("linear") > 1 else NAMES["tower"]


def costs(node: Node) -> list[str]:
    """Parameters and FLOPs of one layer."""
    held = [f"{short(node.parameters)} params"] if node.parameters else ["shared weights"] if node.shared else []
    spent = [flop(node.flops)] if node.flops else []
    return held + spent or ["0 FLOP"]


def shape(value: Operand) -> str:
    """1×2048×4096."""
    return "×".join(map(str, value.shape)) or "1"


def value(of: Operand) -> str:
    """x  b n d · 1×2048×4096."""
    return f"{of.name}  {' '.join(of.axes)} · {shape(of)}"


def origin(flow: Flow) -> str:
    """Where what comes from outside a stage comes from."""
    return f"from {flow.origin}" if flow.origin else "given"


def end_of(flow: Flow) -> str:
    """What becomes of what leaves a stage beside the stream."""
    return "unread" if flow.unread else "read later"


def heading(stage: Stage) -> tuple[str, str]:
    """The name of a stage with how often it runs, and the indices of its layers."""
    often = f" × {stage.times:,}" if stage.times > 1 else ""
    several = "layers" if len(stage.layers) > 1 else "layer"
    return stage.name + often, f"{several} {layer_ranges(stage.layers)}" if stage.layers else ""


def listed(layers: str, most: int) -> str:
    """A list of layers, its end left out where it is longer than so many characters."""
    if len(layers) <= most:
        return layers
    held = layers.split(", ")
    while held and (len(", ".join(held)) + 3 > most or held[-1].startswith("…")):
        held.pop()
    return ", ".join([*held, "…"])


def together(stage: Stage) -> str:
    """What a stage costs, all its layers together."""
    held = f"{short(stage.parameters)} params · " if stage.parameters else ""
    return f"{'together ' if stage.times > 1 else ''}{held}{flop(stage.flops) if stage.flops else '0 FLOP'}"


def stream(stage: Stage) -> tuple[int | None, int | None]:
    """The flows that come in and go out along the stream: the first that is carried, and what is carried on, or else
    the last op's result.
    """
    enters = next((i for i, flow in enumerate(stage.flows) if flow.carried), None)
    last = stage.nodes[-1].rows[-1].output
    leaves = [i for i, flow in enumerate(stage.flows) if flow.leaves]
    onward = [i for i in leaves if stage.flows[i].onward]
    goes = (
        onward[0]
        if onward
        else next((i for i in leaves if any(v is last for v in stage.flows[i].values)), leaves[-1] if leaves else None)
    )
    return enters, goes


def setting_of(model: Model, counted: Count) -> str:
    """The setting, and what the figures are."""
    idle = [
        f"{word} 0" for word in ("images", "sounds") if word in model.settings and not getattr(counted.setting, word)
    ]
    free = [f"{' and '.join(idle)}, so what reads them costs nothing"] if idle else []
    return " · ".join([asked_for(counted, has_latent(model)), *free])


def totals(model: Model, counted: Count) -> str:
    """The whole model's figures."""
    layers = f"{plural(model.layers, 'layer')} · " if model.layers else ""
    return f"{layers}{digits(counted.parameters.total)} parameters · {digits(counted.flops.total)} FLOP"


def legend(graph: Graph) -> list[str]:
    """What each letter is, with its size where it has one throughout; of one without a word, the key it came from."""
    sizes: dict[str, list[Size]] = {}
    says: dict[str, dict[str, None]] = {}
    keys: dict[str, dict[str, None]] = {}
    for stage in graph.stages:
        used = {axis for node in stage.nodes for axis in node.inner()}
        for axis, size in ((axis, size) for axis, size in stage.sizes.items() if axis in used):
            known = sizes.setdefault(axis, [])
            if size not in known:
                known.append(size)
            says.setdefault(axis, {}).update({stage.says[axis]: None} if axis in stage.says else {})
            keys.setdefault(axis, {})[stage.keys.get(axis, "")] = None
    told = {axis: says[axis] or (keys[axis] if len(keys[axis]) == 1 else {}) for axis in sizes}
    words = {axis: " ".join(filter(None, (axis, " or ".join(said)))) for axis, said in told.items()}
    return [f"{words[axis]} {digits(held[0])}" if len(held) == 1 else words[axis] for axis, held in sizes.items()]
