"""Training fewer parameters: frozen ones, and low-rank adapters beside frozen matrices (LoRA; Hu et al. 2021,
arXiv:2106.09685). Over a quantized model the same is QLoRA (Dettmers et al. 2023, arXiv:2305.14314).

Which parameters get gradients, what backward costs and what is kept for it then follows from the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from assay.errors import SettingError
from assay.kinds import matrix_axes
from assay.kinds.base import dimensions_of
from assay.kinds.dividing import multiplies, plain
from assay.records import replace
from assay.size import lift, rate
from assay.spec import Block, Model, Op, Segment, Tensor, Weight, check_model

RANK = "rank"
ALL_LINEAR = "all-linear"
_LAYERS = ("attention", "mlp", "mixer", "experts")  # parts whose matrices are meant by all-linear, experts shared alone
_SUFFIX = ".weight"


def freeze(model: Model, trained: str | Iterable[str] = ()) -> Model:
    """The same model with all parameters frozen but those named.

    A name is a weight's, its stored tensor's or module's (`lm_head`, `q_proj`), or a part's (`norm`, `head`).
    Raises SettingError for a name that no parameter answers to.
    """
    check_model(model)
    wanted = _names(trained, "trained")
    met: set[str] = set()

    def settle(op: Op, name: str, where: Weight) -> Weight:
        found = [one for one in wanted if _answers(one, op, name, where)]
        met.update(found)
        return where if found else replace(where, frozen=True)

    made = _each_weight(model, settle)
    for one in wanted:
        if one not in met:
            raise SettingError(f"no parameter of {model.name} answers to {one!r}; {_known(model)}")
    return made


def lora(
    model: Model,
    rank: int = 8,
    targets: str | Sequence[str] = ("q", "v"),
    *,
    alpha: float | None = None,
    trained: str | Iterable[str] = (),
) -> Model:
    """The same model, frozen, with trained low-rank matrices A[in rank] and B[rank out] beside some of its matrices.

    `targets` are names as in `freeze`, by default attention's q and v, as in peft; or "all-linear", every matrix of a
    layer except routers and routed experts. Matrices stored in one tensor share an A, as in one module. What they add
    is scaled by `alpha` / `rank`, or by 1 if `alpha` is None; `trained` parameters stay trained.
    Raises SettingError and SizeError.
    """
    check_model(model)
    width = lift(rank, "rank")
    names = _names(targets, "targets")
    chosen = {one: _targets(model, one) for one in names}
    for one, paths in chosen.items():
        if not paths:
            raise SettingError(f"no matrix of {model.name} answers to {one!r}; {_known(model)}")
    every = frozenset(path for found in chosen.values() for path in found)
    scale = None if alpha is None else rate(alpha, "alpha") / width
    frozen = freeze(model, trained)
    return replace(frozen, segments=tuple(_adapted(segment, every, width, scale) for segment in frozen.segments))


def _names(given: object, what: str) -> tuple[str, ...]:
    """The names, of which one may stand alone. Raises SettingError for what is none."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Iterable):
        found = tuple(given)
        if all(isinstance(one, str) for one in found):
            return found
    raise SettingError(f"{what} is {given!r}; it must be a name, or several")


def _answers(name: str, op: Op, weight: str, where: Weight) -> bool:
    module = where.path.removesuffix(_SUFFIX)
    last = weight.rpartition(".")[2]
    return name in (weight, last, where.path, module, op.part.partition(".")[0]) or module.endswith(f".{name}")


def _each_weight(model: Model, settle: Callable[[Op, str, Weight], Weight]) -> Model:
    def block(old: Block) -> Block:
        stored = dict(old.stored)
        for op in old.ops:
            for weight in op.weights:
                stored[weight.name] = settle(op, weight.name, old.weight(weight.name))
        return replace(old, stored=stored)

    def segment(old: Segment) -> Segment:
        return replace(old, block=block(old.block), absorbed=None if old.absorbed is None else block(old.absorbed))

    return replace(model, segments=tuple(map(segment, model.segments)))


def _targets(model: Model, name: str) -> set[str]:
    """The stored tensors that a name means."""
    found = set()
    for segment in model.segments:
        for op in segment.block.ops:
            for weight in op.weights[:1]:
                where = segment.block.weight(weight.name)
                if not multiplies(op, weight) or where.buffer:
                    continue
                if name == ALL_LINEAR:
                    meant = plain(op) and bool(segment.layers) and op.part.partition(".")[0] in _LAYERS
                else:
                    last = weight.name.rpartition(".")[2]
                    meant = f"W{name}" == last or _answers(name, op, weight.name, where)
                if meant:
                    found.add(where.path)
    return found


def _known(model: Model) -> str:
    modules = {
        segment.block.weight(w.name).path.removesuffix(_SUFFIX).rpartition(".")[2]: None
        for segment in model.segments
        for op in segment.block.ops
        for w in op.weights[:1]
        if multiplies(op, w)
    }
    return f"its matrices: {', '.join(modules)}"


def _adapted(segment: Segment, paths: frozenset[str], rank: int, scale: float | None) -> Segment:
    block = segment.block
    made: list[Op] = []
    stored, shared = dict(block.stored), dict[str, tuple[str, str]]()
    for op in block.ops:
        weight = op.weights[0] if op.weights else None
        where = None if weight is None else block.weight(weight.name)
        if weight is None or where is None or where.path not in paths or not multiplies(op, weight):
            made.append(op)
            continue
        made += _beside(op, weight, where, shared, stored, scale)
    if len(made) == len(block.ops):
        return segment
    adapted = replace(block, ops=tuple(made), stored=stored, sizes={**block.sizes, RANK: rank})
    return replace(segment, block=adapted, absorbed=None)  # training runs latent attention expanded


def _beside(
    op: Op,
    weight: Tensor,
    where: Weight,
    shared: dict[str, tuple[str, str]],
    stored: dict[str, Weight],
    scale: float | None,
) -> list[Op]:
    """The op, and the product of two thin matrices of the same operand, added to its result."""
    axes = matrix_axes(op, weight)
    assert axes is not None
    outputs, inputs = axes
    several = tuple(a for a in weight.axes if a not in (*outputs, *inputs))  # experts
    x, index = op.activations[0], op.activations[1:]
    made: list[Op] = []
    module = where.path.removesuffix(_SUFFIX)
    lead = tuple(a for a in op.axes if a not in outputs)
    low, source = shared.get(where.path, ("", ""))
    if not low or source != str(x):
        low = f"{op.name}_low"
        shared[where.path] = low, str(x)
        down = f"{weight.name}.A"
        stored[down] = Weight(f"{module}.lora_A.weight")
        made.append(Op(low, op.kind, (x, Tensor(down, (*several, *inputs, RANK)), *index), (*lead, RANK), (), op.part))
    up = f"{weight.name}.B"
    packed = next((dim for dim in dimensions_of(where.layout or "") if "+" in dim), None)
    stored[up] = Weight(f"{module}.lora_B.weight", None if packed is None else f"{packed} {RANK}")
    result, thin = f"{op.name}_add", Tensor(low, (*lead, RANK))
    made.append(op)
    made.append(Op(result, op.kind, (thin, Tensor(up, (*several, RANK, *outputs)), *index), op.axes, (), op.part))
    if scale is not None:
        made.append(Op(result, "scale", (Tensor(result, op.axes),), op.axes, (("by", scale),), op.part))
    sums = (Tensor(op.name, op.axes), Tensor(result, op.axes))
    return [*made, Op(op.name, "add", sums, op.axes, (), op.part)]
