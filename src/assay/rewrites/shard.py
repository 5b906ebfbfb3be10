"""Sharding: a model divided among ranks, one model for each sort of rank and how many of these there are.

Readings then work on what one rank holds and does without knowing it. Tensor parallelism as Shoeybi et al. 2019
(arXiv:1909.08053), sequence parallelism as Korthikanti et al. 2022 (arXiv:2205.05198), stages one behind the other
with one microbatch forward and one backward in turn (Narayanan et al. 2021, arXiv:2104.04473), experts divided among
ranks as Lepikhin et al. 2020 (arXiv:2006.16668).
"""

from __future__ import annotations

from assay.errors import SettingError
from assay.kinds.dividing import routes
from assay.records import replace
from assay.rewrites.exchange import ROWS, Exchange
from assay.rewrites.plan import Plan, Rank
from assay.rewrites.split import split_of, vocabulary_axes
from assay.size import Size, ceil_div, is_integer
from assay.spec import Block, Model, Op, Place, Segment, carried, check_model

TOWER = "tower"


def shard(model: Model, plan: Plan) -> tuple[Rank, ...]:
    """The distinct ranks of a plan, in order of their stages, each with its model and the number of ranks like it.

    Counts of a rank take the batch of that rank: each replica has its own. Vision and audio towers are on every tensor
    rank in full, and on the first stage. Raises SettingError for a plan that the model cannot have.
    """
    check_model(model)
    _check(model, plan)
    made: list[Rank] = []
    for vocabulary, often in _shares(model, plan):
        divided = replace(model, segments=_divided(model, plan, vocabulary), scheme=_scheme(model, plan))
        for stage, part in enumerate(_stages(divided, plan)):
            made.append(Rank("", part, often * plan.data, plan, (stage,)))
    made.sort(key=lambda rank: rank.stages)
    return tuple(_named(_merged(made), plan))


def _check(model: Model, plan: Plan) -> None:
    if not isinstance(plan, Plan):
        raise SettingError(
            f"plan is of type {type(plan).__name__}; it must be an assay.Plan, such as assay.Plan(tensor=8)"
        )
    blocks = [segment.block for segment in model.segments]
    if plan.expert > 1 and not any(routes(op) for block in blocks for op in block.ops):
        raise SettingError(f"expert is {plan.expert}; {model.name} has no routed experts")
    if plan.within < plan.tensor and not plan.sequence and any(routes(op) for b in blocks for op in b.ops):
        raise SettingError(
            f"expert_tensor is {plan.within} and tensor {plan.tensor}: every tensor rank would do the same work of "
            f"experts unless sequence divides the tokens among them"
        )
    sourced = any(segment.axes.get("n") == "m" for segment in model.segments)
    if sourced and (plan.sequence or plan.pipeline > 1):
        asked = "sequence" if plan.sequence else f"pipeline is {plan.pipeline}; it"
        raise SettingError(f"{asked} is not known for {model.name}, which has an encoder and a decoder")
    if plan.pipeline > model.layers:
        raise SettingError(f"pipeline is {plan.pipeline}; {model.name} has {model.layers} layers to divide into stages")
    if plan.pipeline > 1 and any(segment.passes > 1 for segment in model.segments):
        raise SettingError(f"pipeline is {plan.pipeline}; {model.name} goes through its layers several times")


def _scheme(model: Model, plan: Plan) -> object:
    """How weights are stored; of a file whose headers alone say how many bytes it has, a part is not known."""
    scheme = model.scheme
    if scheme is None or (scheme.total is None and scheme.elements is None):
        return scheme
    if scheme.total is not None and plan.tensor * plan.pipeline * plan.expert > 1:
        return replace(scheme, total=None, elements=None, unknown="parts of a file whose headers say what it holds")
    return replace(scheme, elements=None) if plan.tensor * plan.pipeline * plan.expert > 1 else scheme


# --- tensor, sequence and expert ranks ---


def _shares(model: Model, plan: Plan) -> list[tuple[int, int]]:
    """Rows of the vocabulary that a tensor rank holds, and how many ranks hold so many: the first hold one more."""
    rows = 0
    for segment in model.segments:
        for axis in vocabulary_axes(segment.block):
            size = segment.block.sizes[axis]
            rows = max(rows, size if is_integer(size) else 0)
    if plan.tensor == 1 or not rows:
        return [(0, plan.tensor)]
    least, more = divmod(rows, plan.tensor)
    if not least:
        raise SettingError(f"tensor is {plan.tensor}; the vocabulary of {model.name} has {rows} rows to divide")
    return [(size, often) for size, often in ((least + 1, more), (least, plan.tensor - more)) if often]


def _divided(model: Model, plan: Plan, vocabulary: int) -> tuple[Segment, ...]:
    """Every segment as a tensor rank runs it."""
    if plan.tensor == 1 and plan.expert == 1:
        return model.segments
    states: dict[str, str] = {}
    handed = carried(model.segments)
    made = []
    for segment in model.segments:
        if _is_tower(segment):
            made.append(segment)
            continue
        axes = {**segment.axes, ROWS: _tokens(segment, plan, model.name)} if plan.sequence else segment.axes
        block = _block(segment.block, plan, vocabulary, states, model.name, handed)
        other = segment.absorbed
        absorbed = None if other is None else _block(other, plan, vocabulary, dict(states), model.name, handed)
        made.append(replace(segment, block=block, axes=axes, absorbed=absorbed))
    return tuple(made)


def _tokens(segment: Segment, plan: Plan, name: str) -> Place:
    """The tokens that are a rank's own: as many each, the first ranks one more where they do not divide."""
    tokens = segment.axes.get("n", "n")
    if is_integer(tokens):
        return ceil_div(tokens, plan.tensor)
    if not isinstance(tokens, str):
        raise SettingError(f"sequence is not known for {name}, whose {segment.name} has tokens of several sorts")
    return (tokens, 1, plan.tensor)


def _block(
    block: Block, plan: Plan, vocabulary: int, states: dict[str, str], name: str, handed: frozenset[str]
) -> Block:
    return Exchange(block, split_of(block, plan, vocabulary, name), plan, states, name, handed).run()


def _is_tower(segment: Segment) -> bool:
    return all(op.part.partition(".")[0] == TOWER for op in segment.block.ops)


# --- stages ---


def _stages(model: Model, plan: Plan) -> list[Model]:
    """The model of each stage: layers in order, as many each, the first stages one more where they do not divide."""
    if plan.pipeline == 1:
        return [model]
    stack = [s for s in model.segments if s.layers and not _is_tower(s)]
    every = sorted(layer for segment in stack for layer in segment.layers)
    least, more = divmod(len(every), plan.pipeline)
    made, start = [], 0
    for stage in range(plan.pipeline):
        end = start + least + (stage < more)
        made.append(_stage(model, stack, frozenset(every[start:end]), stage, plan))
        start = end
    return made


def _stage(model: Model, stack: list[Segment], layers: frozenset[int], stage: int, plan: Plan) -> Model:
    first, last = stage == 0, stage == plan.pipeline - 1
    kept: list[Segment] = [] if first else [_passed("receive", "received", stack)]
    behind = False
    for segment in model.segments:
        if segment in stack:
            behind = True
            own = tuple(layer for layer in segment.layers if layer in layers)
            if own:
                kept.append(replace(segment, layers=own))
        elif last if behind else first:
            kept.append(segment)
    if not last:
        kept.append(_passed("send", "sent", stack))
    return replace(model, segments=tuple(kept), layers=len(layers))


def _passed(kind: str, name: str, stack: list[Segment]) -> Segment:
    """The residual stream, handed from stage to stage."""
    block = stack[0].block
    x = next(t for op in block.ops for t in op.inputs if t.name == "x")
    sizes = {axis: block.sizes[axis] for axis in x.axes if axis in block.sizes}
    return Segment(name, Block(name, (Op("x", kind, (x,), x.axes, (), "other"),), sizes), (), stack[0].axes)


# --- ranks ---


def _merged(ranks: list[Rank]) -> list[Rank]:
    """Ranks that hold alike put together: stages that differ in their layers' numbers alone, under the first."""
    made: list[tuple[object, Rank]] = []
    for rank in ranks:
        held = [(s.name, s.block, len(s.layers), s.axes) for s in rank.model.segments]
        at = next((i for i, (other, _) in enumerate(made) if other == held), None)
        if at is None:
            made.append((held, rank))
        else:
            known = made[at][1]
            stages = tuple(sorted({*known.stages, *rank.stages}))
            made[at] = held, replace(known, count=known.count + rank.count, stages=stages)
    return [rank for _, rank in made]


def _named(ranks: list[Rank], plan: Plan) -> list[Rank]:
    return [replace(rank, name=_name(rank, plan, ranks)) for rank in ranks]


def _name(rank: Rank, plan: Plan, ranks: list[Rank]) -> str:
    said = []
    if plan.pipeline > 1:
        first, last = rank.stages[0], rank.stages[-1]
        many = "stage" if first == last else "stages"
        said.append(f"{many} {first + 1}{f' to {last + 1}' if first != last else ''} of {plan.pipeline}")
        said += ["with the embedding"] if first == 0 else []
        said += ["with the head"] if last == plan.pipeline - 1 else []
    if sum(other.stages == rank.stages for other in ranks) > 1:
        said.append(f"tensor ranks with {_rows(rank.model):,} rows of the vocabulary")
    return ", ".join(said) or ("every rank" if plan.world > 1 else "the one rank")


def _rows(model: Model) -> Size:
    return max(s.block.sizes[axis] for s in model.segments for axis in vocabulary_axes(s.block))
