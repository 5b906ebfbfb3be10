"""The memory of a training step: what stays from step to step, what is kept for the backward pass, and the peak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.errors import KindError, SettingError, among
from assay.kinds.dividing import hands_over, takes_over
from assay.kinds.training import INPUT
from assay.readings.binding import as_model
from assay.readings.optimizers import Optimizer
from assay.readings.optimizers import optimizer as optimizer_of
from assay.readings.precision import Precision
from assay.readings.precision import precision as precision_of
from assay.readings.printed import listed, said
from assay.readings.setting import Setting, setting
from assay.readings.states import States, states
from assay.readings.tensors import tensors
from assay.readings.training import TrainedOp
from assay.readings.walk import Spot, Walk
from assay.records import dataclass, field
from assay.rewrites.loss import LABELS, few_chunks, in_chunks, with_loss
from assay.rewrites.policies import executed
from assay.rewrites.recompute import recompute as again
from assay.size import Size, Table, decides, largest, lift, whole
from assay.spec import Block, Model

# what PyTorch's matrix library holds once it has multiplied: measured on one H200 (PyTorch 2.11, CUDA 13.0), where the
# documented defaults are two workspaces of 32 MiB each, of cuBLAS and of cuBLASLt
WORKSPACE = 68_000_000
DEVICES = ("cpu", "cuda")
DIVIDED = 2  # the stage of ZeRO from which gradients are divided
PASSING = ("in flight", "gathered")  # parts that are there while passes run
INDEX_BYTES = 8  # of a token id, of a label


@dataclass(frozen=True)
class Moment:
    """A time of the step: what is there, in bytes by part, and where."""

    name: str
    at: str  # the op whose tensors are the most, "" where none is at work
    parts: Mapping[str, Size]

    @property
    def bytes(self) -> Size:
        """All parts together."""
        return sum(self.parts.values(), start=0)


@dataclass(frozen=True)
class Work:
    """FLOPs of one pass and its backward pass: the model's own, and what runs again."""

    forward: Size
    backward: Size
    again: Size

    @property
    def flops(self) -> Size:
        """The model's own, which MFU is of."""
        return self.forward + self.backward

    @property
    def executed(self) -> Size:
        """All that is run, which HFU is of."""
        return self.flops + self.again


@dataclass(frozen=True)
class Kept:
    """What one layer keeps for the backward pass, and how often a layer like it stands in the model."""

    name: str
    times: int
    bytes: Size


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of a training step.

    `resident` stays from step to step; `saved` is what is kept for the backward pass of what embedding, layers and the
    last norm make, `loss` of what head and loss make. `layers` says how much of each layer. `timeline` is the step's
    moments in order, each the fullest of its phase or layer, and `peak` the fullest of all.
    """

    states: States
    saved: Size
    loss: Size
    layers: tuple[Kept, ...]
    timeline: tuple[Moment, ...] = field(repr=False)
    work: Work
    setting: Setting
    policy: str
    attention: str
    recompute: str | int
    device: str
    notes: tuple[str, ...] = ()

    @property
    def resident(self) -> Size:
        """What stays from step to step."""
        return self.timeline[0].bytes

    @property
    def peak(self) -> Moment:
        """The fullest moment."""
        return self.timeline[largest([moment.bytes for moment in self.timeline])]

    def moment(self, name: str) -> Moment:
        """The moment of a name. Raises SettingError."""
        for one in self.timeline:
            if one.name == name:
                return one
        raise SettingError(f"the step has no moment {name!r}; it has {', '.join(one.name for one in self.timeline)}")

    def __str__(self) -> str:
        title = said(batch=self.setting.batch, tokens=self.setting.tokens)
        rows = (
            ("peak bytes", self.peak.bytes, self.peak.name),
            ("resident bytes", self.resident, "between steps"),
            ("saved bytes", self.saved, "for backward"),
        )
        return listed(f"{title} · attention {self.attention} · policy {self.policy}", rows)


def training_memory(
    model: Model | Block,
    batch: object = 1,
    tokens: object = None,
    *,
    optimizer: str | Optimizer = "adamw",
    precision: str | Precision = "bf16",
    attention: str = "fused",
    policy: str = "transformers",
    recompute: str | int = "none",
    accumulation: int = 1,
    logits_chunk: int | None = None,
    dropout: float = 0.0,
    device: str = "cuda",
    workspace: int | None = None,
    source: object = None,
    images: object = None,
    image_tokens: object = None,
    sounds: object = None,
    frozen: str | None = None,
    zero: int = 0,
    shards: object = 1,
    expert_shards: object = None,
    in_flight: int = 1,
    **sizes: object,
) -> TrainingMemory:
    """What a training step of one device holds, in bytes, from its start to the optimizer's step.

    `policy` is whose execution is told: `transformers`, the public implementation run eagerly, or `ours`, that of
    `assay.build`; `attention` is fused in one kernel, or plain, op by op. `precision` and `optimizer` are as in
    `states`. `recompute` is none, attention, layer, or how many layers run again together; `accumulation` how many
    passes are added up before a step; `logits_chunk` for how many tokens of each sequence head and loss run at a time,
    made again in the backward pass. `workspace` are bytes of the matrix library, by default on a GPU a measured 68 MB.
    `source`, `images`, `image_tokens` and `sounds` are as in `count`: what an encoder or a tower is given.
    `zero`, `shards` and `expert_shards` are as in `states`; of a stage of a pipeline `in_flight` is how many passes
    have what they keep there at once. Raises SettingError and SizeError.
    """
    whole = as_model(model, sizes, training_memory)
    among(device, "device", DEVICES)
    chosen = precision_of(precision)
    held = states(
        whole,
        optimizer=optimizer,
        precision=chosen,
        frozen=frozen,
        accumulation=accumulation,
        zero=zero,
        shards=shards,
        expert_shards=expert_shards,
    )
    ran = executed(whole, policy, attention, dropout)
    ends = hands_over(ran.segments[-1].block.ops[-1])  # in what another stage goes on with
    made = again(ran if ends else with_loss(ran, policy == "transformers"), recompute)
    asked = setting(
        made,
        batch=batch,
        tokens=tokens,
        convention="matmul",
        weights=chosen.parameters,
        source=source,
        images=images,
        image_tokens=image_tokens,
        sounds=sounds,
    )
    if not all(map(decides, asked.sizes().values())):
        raise SettingError(
            "the moments of a step are told of integers, not of arrays or symbols; sweep goes through many"
        )
    if logits_chunk is not None:
        made = in_chunks(made, int(asked.tokens), int(lift(logits_chunk, "logits_chunk")))
    walk = _walked(few_chunks(made), asked, chosen, device, accumulation > 1)
    library = (
        (WORKSPACE if device == "cuda" else 0) if workspace is None else int(lift(workspace, "workspace", least=0))
    )
    inputs = _given(walk) + (0 if ends else _labels(walk, logits_chunk is not None))
    base: dict[str, Size] = {**_named(held), "inputs": inputs, "workspace": library}
    saved, loss, layers = _kept(walk)
    if others := int(lift(in_flight, "in_flight")) - 1:
        base["in flight"] = others * (saved + loss + inputs)
    if held.gathered:
        base["gathered"] = int(held.gathered)
    return TrainingMemory(
        held,
        saved,
        loss,
        layers,
        tuple(_timeline(walk, held, base)),
        _work(walk, made),
        asked,
        policy,
        attention,
        recompute,
        device,
        (*made.notes, *_unknown(walk), *_formats(whole, chosen), *_stepped(optimizer_of(optimizer))),
    )


def _walked(model: Model, asked: Setting, policy: Precision, device: str, accumulated: bool) -> Walk:
    """A walk through a step. Raises SettingError, which names the model, for what nobody knows the memory of."""
    try:
        walk = Walk(model, asked, policy, device, accumulated)
    except KindError as error:
        raise SettingError(f"what a step of {model.name} holds is not known: {error}") from None
    walk.sees(model.name, walk.reached)
    return walk


def _unknown(walk: Walk) -> list[str]:
    """What is not in the figures."""
    kinds = ", ".join(walk.unknown)
    dtype = walk.tape.dtype
    return [f"what is kept of {kinds} in {dtype} is not known, and not in it"] if kinds else []


def _stepped(chosen: Optimizer) -> Iterable[str]:
    """What has to be known of optimizers that have no kernel."""
    if chosen.beside is None:
        yield f"what {chosen.name} makes of a tensor while it steps is not known, and not in it"


def _formats(model: Model, policy: Precision) -> Iterable[str]:
    """What has to be known of weights that a config has in formats."""
    stored = [e for e in tensors(model) if any(one.format is not None for one in e.checkpoint or ())]
    if any(not e.frozen for e in stored):
        yield f"weights that are trained are in {policy.parameters}, not in the format that the config says"
    if any(e.frozen for e in stored):
        yield "a frozen matrix is read in its format; what a kernel needs that first makes it whole is not in it"


def _given(walk: Walk) -> Size:
    """Bytes of what a pass is given beside labels: ids of tokens, of an encoder's too, images and sounds."""
    passed = walk.ran[0, 0].given if takes_over(walk.ran[0, 0].op) else []  # a tensor of its own where it is received
    apart = {id(value.store) for value in (*passed, *(v for v in [walk.values.get(LABELS)] if v is not None))}
    stores = (store for store in walk.tape.there if store.origin == INPUT and id(store) not in apart)
    return sum((whole(store.bytes) for store in stores), start=0)


def _labels(walk: Walk, chunked: bool) -> Size:
    """Bytes of labels, of which a chunk reads its own."""
    own = INDEX_BYTES * walk.asked.batch * walk.asked.tokens if chunked else walk.values[LABELS].store.bytes
    return whole(own)


def _work(walk: Walk, model: Model) -> Work:
    """FLOPs of a pass; an op that runs again costs its forward work once more, a kernel may do some of it again."""
    ran: dict[int, list[TrainedOp]] = {}
    for segment, layer in walk.finish():
        ran.setdefault(id(segment), []).extend(layer)
    total = Work(0, 0, 0)
    for walked, segment in zip(walk.model.segments, model.segments, strict=True):
        ops = ran.get(id(walked), [])
        remade = _sum(op.remade for op in ops)
        own = _sum(op.forward for op in ops), _sum(op.backward for op in ops) - remade
        again = remade + _sum(op.forward for op in ops if op.op.again)
        more = segment.passes - walked.passes  # alike, and not walked
        forward, backward, again = (size + size // walked.passes * more for size in (*own, again))
        total = Work(total.forward + forward, total.backward + backward, total.again + again)
    return total


def _sum(sizes: Iterable[Size]) -> Size:
    return sum(map(whole, sizes), start=0)


def _named(held: States) -> dict[str, int]:
    """States that stay, without gradients, by name."""
    return {name: int(size) for name, size in held.parts.items() if name != "gradients" and size}


def _kept(walk: Walk) -> tuple[Size, Size, tuple[Kept, ...]]:
    """Bytes kept of what the layers make, of what head and loss make, and of each distinct layer."""
    by: dict[int, Size] = {}
    loss: Size = 0
    for store in walk.held():
        place, index = walk.maker(store)
        if walk.layers[place].segment.block.ops[index].part.startswith("head"):
            loss = loss + whole(store.bytes)
        else:
            by[place] = by.get(place, 0) + whole(store.bytes)
    rows = Table[list[Size]]()  # layers of a segment that keep as much as each other
    for place, size in by.items():
        key = (walk.layers[place].segment.name, size)
        (rows.get(key) or rows.add(key, [])).append(size)
    kept = tuple(Kept(name, len(sizes), sizes[0]) for (name, _), sizes in rows.items())
    return sum(by.values(), start=0), loss, kept


def _timeline(walk: Walk, held: States, base: Mapping[str, Size]) -> Iterable[Moment]:
    """The moments of a step: the fullest of each layer, forward and backward, and what stands between."""
    gradients = int(held.gradients) if held.accumulation > 1 else 0
    own = held.zero < DIVIDED and held.precision.gradients is not None  # else added to what is there all along
    back = gradients if own else int(held.gradients)
    idle = {name: size for name, size in base.items() if name not in PASSING}
    yield Moment("between steps", "", _filled(idle, gradients, 0, 0))
    yield from _by_layer(walk.forward(), base, gradients)
    yield Moment("end of forward", "", _filled(base, gradients, whole(walk.saved_after()), 0))
    yield from _by_layer(walk.backward(), base, back, own)
    update = {"update": int(held.beside)} if held.beside else {}
    yield Moment("optimizer step", "", _filled(idle | update, int(held.gradients), 0, 0))


def _by_layer(spots: Iterable[Spot], base: Mapping[str, Size], gradients: Size, own: bool = True) -> Iterable[Moment]:
    """The fullest spot of each layer of a pass; where gradients have `own` tensors, with these."""
    found: dict[str, list[Spot]] = {}
    for spot in spots:
        found.setdefault(spot.where, []).append(spot)
    for name, layer in found.items():
        spot = layer[largest([one.bytes - (not own) * one.gradients for one in layer])]
        parts = _filled(base, gradients + own * whole(spot.gradients), whole(spot.saved), whole(spot.passing))
        yield Moment(name, spot.op.name, parts)


def _filled(base: Mapping[str, Size], gradients: Size, saved: Size, passing: Size) -> dict[str, Size]:
    return {**base, "gradients": gradients, "saved": saved, "passing": passing}
