"""Does a model fit: what the most loaded rank needs beside what a chip has, the limits, and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any

from assay.errors import SettingError
from assay.hardware import Chip, chip
from assay.readings.optimizers import Optimizer
from assay.readings.precision import Precision
from assay.readings.setting import check_positions, default_tokens
from assay.readings.step import WORKSPACE
from assay.records import dataclass, field, replace
from assay.report.units import shorten
from assay.rewrites.plan import Plan
from assay.rewrites.shard import shard
from assay.size import fraction, is_integer, lift
from assay.spec import Model
from assay.studies.needs import FORMATS, Case, Learning, Need, Needs, Serving, known
from assay.studies.remedies import Change, Remedies, largest_batch, longest_context

DEGREES = ("data", "tensor", "pipeline")
NVIDIA = "NVIDIA"
# what stands where nothing is said, and of which of training and inference it is alone
OF_TRAINING = {
    "optimizer": "adamw",
    "precision": "bf16",
    "recompute": "none",
    "accumulation": 1,
    "logits_chunk": None,
    "dropout": 0,
    "lora": None,
}
OF_INFERENCE = {
    "weights": None,
    "cache": None,
    "state": "fp32",
    "logits": "last",
    "latent": "expanded",
    "chunk": None,
    "prompts": None,
    "page": None,
}
_WORD = (str, "a word")
# of what kind each is that is no size
KINDS: dict[str, tuple[Any, str]] = {
    "model": (Model, "a model, as assay.load reads it"),
    "plan": (Plan, "a Plan"),
    **dict.fromkeys(("weights", "cache", "state", "logits", "latent", "attention", "policy"), _WORD),
    "optimizer": ((str, Optimizer), "a word or an Optimizer"),
    "precision": ((str, Precision), "a word or a Precision"),
    "recompute": ((str, Integral), "none, attention, layer, or a number of layers, 1 or more"),
    "dropout": (Real, "a rate from 0 to below 1"),
}
UNSAID = ("plan", "weights", "cache", "policy")  # which of them may be None
ELSEWHERE = ("gpus", "chip", "batch", "context")  # changes of the machines, or of what is asked


@dataclass(frozen=True)
class Limit:
    """The largest size that fits: 0 for none, None where none is too large. `ends` says what ends it."""

    value: int | None
    ends: str  # memory, positions (a table's rows), range (what the model claims), nothing


@dataclass(frozen=True)
class Fit:
    """Whether a model fits on chips of one kind, and what follows, in bytes of the most loaded rank.

    `need` is that rank's, `room` what a chip has for it: `utilization` of `memory`, less `reserve`. `ranks` are those
    that differ, with their needs. `batch` is the largest at this context, `context` the longest at this batch.
    `changes` are single changes, those that suffice first; `pairs` two at once, where none suffices on these chips.
    """

    model: Model = field(repr=False)
    chip: Chip
    case: Case
    need: Need
    ranks: tuple[Need, ...] = field(repr=False)
    memory: int
    reserve: int
    utilization: float
    room: int
    batch: Limit
    context: Limit
    changes: tuple[Change, ...] = field(repr=False)
    pairs: tuple[Change, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Yes or no."""
        return self.margin >= 0

    @property
    def margin(self) -> int:
        """Bytes that are left, below 0 those that are missing."""
        return self.room - self.need.bytes

    @property
    def gpus(self) -> int:
        """How many chips there are."""
        return self.case.plan.world

    def __str__(self) -> str:
        from assay.report.table import Style
        from assay.studies.fitted import report

        return "\n".join(report(self, Style(False)))


def fit(
    model: Model,
    gpu: Chip | str,
    *,
    gpus: int | None = None,
    batch: int = 1,
    context: int | None = None,
    train: bool = False,
    plan: Plan | None = None,
    reserve: int | None = None,
    utilization: float = 1.0,
    weights: str | None = None,
    cache: str | None = None,
    state: str = "fp32",
    logits: str = "last",
    chunk: int | None = None,
    prompts: int | None = None,
    page: int | None = None,
    latent: str = "expanded",
    source: int | None = None,
    images: int | None = None,
    image_tokens: int | None = None,
    sounds: int | None = None,
    optimizer: str | Optimizer = "adamw",
    precision: str | Precision = "bf16",
    recompute: str | int = "none",
    accumulation: int = 1,
    logits_chunk: int | None = None,
    dropout: float = 0.0,
    lora: int | None = None,
    attention: str = "fused",
    policy: str | None = None,
    changes: bool = True,
) -> Fit:
    """Whether a model fits on `gpus` chips, divided among them by `plan`.

    Without `train`, each replica reads `batch` prompts of `context` tokens: `chunk` tokens at a time, of `prompts`
    sequences at a time, or all if None; `weights` is a dtype or a format (fp8-blocks, int8-rows, gptq, awq, nf4),
    `page` the tokens of a page of the cache. With `train`, each replica runs a step on `batch` sequences; `optimizer`,
    `precision`, `recompute`, `accumulation`, `logits_chunk`, `dropout` are as in `training_memory`; with `lora`, only
    adapters of that rank are trained, and `weights` is the format of the frozen rest. `policy` says whose execution it
    is: serving, ours or transformers; in training ours, transformers or megatron. With several chips and no plan,
    inference is tensor-parallel and training is ZeRO 3. `reserve` is bytes kept from the model, by default the measured
    workspace of the matrix library.
    `changes` False leaves out the search for what would make it fit. Sizes are integers. Raises SettingError,
    SizeError and HardwareError.
    """
    _types(locals())
    _check(model, plan or Plan(), train, locals())
    found = gpu if isinstance(gpu, Chip) else chip(gpu)
    divided, said = _plan(model, gpus, plan, train)
    work: Serving | Learning
    sensed = (
        _optional(source, "source"),
        _optional(images, "images", 0),
        _optional(image_tokens, "image_tokens"),
        _optional(sounds, "sounds", 0),
    )
    if train:
        work = Learning(
            optimizer,
            precision,
            recompute,
            _size(accumulation, "accumulation"),
            _optional(logits_chunk, "logits_chunk"),
            attention,
            policy or "transformers",
            dropout,
            _optional(lora, "lora"),
            weights,
            *sensed,
        )
    else:
        work = Serving(
            weights,
            cache,
            state,
            logits,
            _optional(chunk, "chunk"),
            _optional(prompts, "prompts"),
            _optional(page, "page"),
            attention,
            policy or "serving",
            latent,
            *sensed,
        )
        if prompts is not None and work.policy != "serving":
            raise SettingError(
                f"prompts is {prompts}; the policy {work.policy} reads all sequences of a batch together"
            )
    asked = default_tokens(model) if context is None else _size(context, "context")
    check_positions(model, asked, "context")
    case = Case(divided, _size(batch, "batch"), asked, work)
    return _Question(model, found, case, reserve, utilization, said).answer(changes)


class _Question:
    """A case that is asked about on a chip."""

    def __init__(
        self, model: Model, found: Chip, case: Case, reserve: int | None, utilization: float, said: tuple[str, ...]
    ) -> None:
        self.model, self.chip, self.case, self.said = model, found, case, said
        self.given = None if reserve is None else _size(reserve, "reserve", 0)
        self.share = float(fraction(utilization, "utilization"))
        self.needs = Needs(model)
        self.room = self.room_of(found)
        if self.room < 1:
            of = f"{found.memory:,}" if self.share == 1 else f"{found.memory:,}, of which {self.share:g} may be used,"
            raise SettingError(f"reserve is {self.reserve(found):,} bytes; {found.title} has {of} and nothing is left")

    def reserve(self, found: Chip) -> int:
        """Bytes of a chip that are not for the model."""
        if self.given is not None:
            return self.given
        return WORKSPACE if found.title.startswith(NVIDIA) else 0

    def room_of(self, found: Chip) -> int:
        """Bytes of a chip that are."""
        return round(found.memory * self.share) - self.reserve(found)

    def answer(self, mend: bool) -> Fit:
        """The record."""
        case = self.case
        need = self.needs(case)
        batch, context = self._batch(), self._context()
        remedies = Remedies(self.needs, case, self.chip, self.room_of)
        changes: list[Change] = []
        pairs: list[Change] = []
        if mend and need.bytes > self.room:
            changes = sorted(remedies.single(batch.value, context.value), key=lambda one: not one.fits)
            if not any(one.fits and one.group not in ELSEWHERE for one in changes):
                pairs = remedies.pairs()
        return Fit(
            self.model,
            self.chip,
            case,
            need,
            self.needs.each(case),
            self.chip.memory,
            self.reserve(self.chip),
            self.share,
            self.room,
            batch,
            context,
            tuple(changes),
            tuple(pairs),
            (*self.said, *self._notes(need)),
        )

    def _batch(self) -> Limit:
        if self.needs.resident(self.case) > self.room:
            return Limit(0, "memory")
        found = largest_batch(self.needs, self.case, self.room)
        return Limit(found, "nothing" if found is None else "memory")

    def _context(self) -> Limit:
        if self.needs.resident(self.case) > self.room:
            return Limit(0, "memory")
        most, ends = self._range()
        found = longest_context(self.needs, self.case, self.room, most)
        if found is None:
            return Limit(None, "nothing")
        return Limit(found, ends if found == most else "memory")

    def _range(self) -> tuple[int | None, str]:
        """The longest context that may be asked for, and why: beyond what the model claims only who is there."""
        if self.model.positions is not None:
            return self.model.positions, "positions"
        claimed = self.model.trained
        return (claimed, "range") if claimed is not None and self.case.context <= claimed else (None, "nothing")

    def _notes(self, need: Need) -> Iterator[str]:
        yield from need.notes
        claimed = self.model.trained
        if self.model.positions is None and claimed is not None and self.case.context > claimed:
            yield f"{self.case.context:,} tokens are beyond the {claimed:,} that the model claims"
        if self.case.work.weights in FORMATS or self.model.scheme is not None:
            yield "weights are multiplied as they are stored: a wider copy that a library makes of one is not in it"
        if self.given is None:
            held = self.reserve(self.chip)
            yield (
                f"reserved: {held / 1e6:.0f} MB, the workspace of the matrix library, measured on an H200; what a "
                f"process, its driver and an allocator's gaps take beside is not known: --reserve"
                if held
                else "nothing is reserved for libraries and driver: --reserve"
            )


def _plan(model: Model, gpus: int | None, plan: Plan | None, train: bool) -> tuple[Plan, tuple[str, ...]]:
    """The plan asked for, or a usual one for so many chips, which is said. Raises SettingError."""
    if gpus is None:
        return plan or Plan(), ()
    many = _size(gpus, "gpus")
    given = plan or Plan()
    if given.world == many:
        return given, ()
    if many % given.world:
        product = " x ".join(f"{name} {getattr(given, name)}" for name in DEGREES if getattr(given, name) > 1)
        raise SettingError(f"gpus is {many}; the plan's {product} are {given.world}, of which {many} is no multiple")
    rest = many // given.world
    if given.data > 1:
        raise SettingError(f"gpus is {many}; the plan has {given.world}, its {given.data} replicas counted")
    if train:
        zero = given.zero if plan is not None and given.zero else 3
        made = replace(given, data=rest, zero=zero)
        return made, (f"{rest} replicas divide all states, ZeRO {zero}: usual where no plan is given",)
    if given.tensor > 1 or given.pipeline > 1:
        return replace(given, data=rest), (f"{rest} replicas, each with a batch of its own",)
    for stages in range(1, min(rest, model.layers) + 1):
        if rest % stages == 0:
            made = replace(given, tensor=rest // stages, pipeline=stages)
            if _divides(model, made):
                behind = f" and {stages} stages" if stages > 1 else ""
                return made, (f"{made.tensor} tensor ranks{behind}: usual where no plan is given",)
    made = replace(given, data=rest)
    return made, (f"{rest} replicas, each with a batch of its own: how to divide the model is not known",)


def _divides(model: Model, plan: Plan) -> bool:
    try:
        shard(model, plan)
    except SettingError:
        return False
    return True


def _size(value: object, name: str, least: int = 1) -> int:
    found = lift(value, name, least)
    if not is_integer(found):
        raise SettingError(f"{name} is {value}; it must be an integer")
    return int(found)


def _optional(value: object, name: str, least: int = 1) -> int | None:
    return None if value is None else _size(value, name, least)


def _types(given: Mapping[str, object]) -> None:
    """Raise SettingError for what is of no kind that can be asked about: a list in place of a word."""
    for name, (kinds, says) in KINDS.items():
        value = given[name]
        if not isinstance(value, kinds) and not (value is None and name in UNSAID):
            raise SettingError(f"{name} is {shorten(repr(value), 60)}; it must be {says}")


def _check(model: Model, plan: Plan, train: bool, given: Mapping[str, object]) -> None:
    """Raise SettingError for what is asked of the other of training and inference, or of a model without a cache."""
    this, other = ("training", "inference") if train else ("inference", "training")
    others = {name: (given[name], usual) for name, usual in (OF_INFERENCE if train else OF_TRAINING).items()}
    if train and given["lora"] is not None:
        del others["weights"]
    if not train:
        others |= {"zero": (plan.zero, 0), "microbatches": (plan.microbatches, None)}
    for name, (value, usual) in others.items():
        if value != usual:
            raise SettingError(f"{name} is {value}; it is of {other}, and {this} is asked about")
    weights = given["weights"]
    if isinstance(weights, str):
        known(weights)
    for name in ("chunk", "prompts", "page"):
        if given[name] is not None and "past" not in model.settings:
            raise SettingError(f"{name} is {given[name]}; {model.name} keeps nothing between passes")
