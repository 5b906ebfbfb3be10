"""What the ranks of a plan need, in bytes by part; what has to fit is what the most loaded of them needs.

Inference is `memory` of each rank's model, training `training_memory` of it, with what data-parallel ranks divide.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from assay.errors import SettingError
from assay.formats import Scheme
from assay.readings.dtypes import dtype
from assay.readings.memory import memory
from assay.readings.optimizers import Optimizer
from assay.readings.precision import Precision
from assay.readings.states import States, states
from assay.readings.step import DIVIDED
from assay.records import dataclass, field, replace
from assay.rewrites.adapters import ALL_LINEAR, lora
from assay.rewrites.plan import Plan, Rank
from assay.rewrites.quantize import quantize
from assay.rewrites.shard import shard
from assay.sources.config import Config
from assay.sources.quantization import read_scheme
from assay.spec import Model
from assay.studies.steps import Moment, Step, step

# formats that weights can be priced in by name, as configs of published files say them
FORMATS: dict[str, dict[str, Any]] = {
    "fp8-blocks": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "int8-rows": {"quant_method": "bitsandbytes", "load_in_8bit": True},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
    "nf4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
}


@dataclass(frozen=True)
class Serving:
    """How inference is done: as `memory` takes it; `weights` is a dtype or one of FORMATS.

    The whole context is read as a prompt, `chunk` tokens at a time, of `prompts` sequences at a time; all where None.
    """

    weights: str | None = None
    cache: str | None = None
    state: str = "fp32"
    logits: str = "last"
    chunk: int | None = None
    prompts: int | None = None
    page: int | None = None
    attention: str = "fused"
    policy: str = "serving"
    latent: str = "expanded"
    source: int | None = None
    images: int | None = None
    image_tokens: int | None = None
    sounds: int | None = None


def known(weights: str) -> None:
    """Raise SettingError for what is neither a dtype nor one of FORMATS."""
    if weights not in FORMATS:
        try:
            dtype(weights, "weights")
        except SettingError as error:
            raise SettingError(f"{error}; and formats: {', '.join(FORMATS)}") from None


def adapted(model: Model, rank: int | None, name: str | None) -> Model:
    """The model in one of FORMATS, adapters of a rank beside every matrix of a layer, which alone are trained."""
    if name is not None:
        model = quantize(model, scheme_of(name, model.family, model.dtype))
    return model if rank is None else lora(model, rank, ALL_LINEAR)


@dataclass(frozen=True)
class Learning:
    """How training is done: as `training_memory` takes it.

    With `lora` low-rank adapters of that rank beside every matrix of a layer are trained alone; `weights` is then the
    dtype of the rest, or one of FORMATS.
    """

    optimizer: str | Optimizer = "adamw"
    precision: str | Precision = "bf16"
    recompute: str | int = "none"
    accumulation: int = 1
    logits_chunk: int | None = None
    attention: str = "fused"
    policy: str = "transformers"
    dropout: float = 0.0
    lora: int | None = None
    weights: str | None = None
    source: int | None = None
    images: int | None = None
    image_tokens: int | None = None
    sounds: int | None = None

    @property
    def frozen(self) -> str | None:
        """The dtype of what is not trained, where it is one."""
        return None if self.weights in FORMATS else self.weights


@dataclass(frozen=True)
class Case:
    """What is asked: sequences of a replica, their context, how they are divided among ranks and what is done."""

    plan: Plan
    batch: int
    context: int
    work: Serving | Learning


@dataclass(frozen=True)
class Need:
    """What a rank needs at its fullest moment, by part; the parts sum to the total."""

    rank: Rank
    parts: Mapping[str, int]
    at: str
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def bytes(self) -> int:
        """All parts together."""
        return sum(self.parts.values())


@lru_cache(maxsize=64)
def scheme_of(name: str, family: str, plain: str | None) -> Scheme:
    """The scheme of a format's name, for models of a family whose other tensors are of a dtype."""
    made = read_scheme(Config({"quantization_config": FORMATS[name]}, name), "quantization_config", family, plain)
    if made is None or made.unknown:
        raise SettingError(f"weights is {name!r}; {made.unknown if made else 'it is no format'}")
    return made


class Needs:
    """What a model needs in one case after another; what they share is found once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._needs: dict[Case, Need] = {}
        self._ranks: dict[Any, tuple[Rank, ...]] = {}
        self._steps: dict[Any, Step] = {}
        self._states: dict[Any, tuple[States, dict[str, int]]] = {}

    def __call__(self, case: Case) -> Need:
        """The need of the most loaded rank. Raises SettingError for what cannot be."""
        found = self._needs.get(case)
        if found is None:
            found = self._needs[case] = max(self.each(case), key=lambda need: need.bytes)
        return found

    def each(self, case: Case) -> tuple[Need, ...]:
        """The needs of all ranks that differ."""
        of = self._served if isinstance(case.work, Serving) else self._learned
        return tuple(of(rank, case) for rank in self.ranks(case))

    def within(self, case: Case, room: int) -> bool:
        """Whether no rank needs more; the first that does ends the search."""
        if case in self._needs:
            return self._needs[case].bytes <= room
        of = self._served if isinstance(case.work, Serving) else self._learned
        return self.resident(case) <= room and all(of(rank, case).bytes <= room for rank in self.ranks(case))

    def ranks(self, case: Case) -> tuple[Rank, ...]:
        """The ranks that differ. Raises SettingError for a plan that the model cannot have."""
        work, plan = case.work, case.plan
        name = work.weights if work.weights in FORMATS else None
        rank = work.lora if isinstance(work, Learning) else None
        alone = replace(plan, data=1, zero=0) if plan.expert == 1 else replace(plan, zero=0)  # replicas hold alike
        key = (alone, name, rank)
        if key not in self._ranks:
            self._ranks[key] = shard(adapted(self.model, rank, name), alone)
        more = plan.data // alone.data
        named = [(r.name if r.name != "the one rank" or plan.world == 1 else "every rank", r) for r in self._ranks[key]]
        return tuple(replace(r, name=said, count=r.count * more, plan=plan) for said, r in named)

    # --- inference ---

    def _served(self, rank: Rank, case: Case) -> Need:
        work = case.work
        assert isinstance(work, Serving)
        prompts = case.batch if work.prompts is None else min(work.prompts, case.batch)
        whole = self._memory(rank, case, prompts, case.context)
        parts = {part.name: part.bytes for part in whole.parts}
        at = f"{whole.at.name}, {whole.at.peak.where}"
        if prompts < case.batch:  # the cache and the states of all, and the fullest of one prompt's pass and of a step
            step = self._memory(rank, case, case.batch, 1)
            passing = [p for p in parts if p in ("activations", "logits")]
            most = max(sum(parts[p] for p in passing), step.part("activations") + step.part("logits"))
            if most > sum(parts[p] for p in passing):
                parts, at = {part.name: part.bytes for part in step.parts}, f"step, {step.at.peak.where}"
            else:
                held = {p.name: p.bytes for p in step.parts if p.name not in ("activations", "logits")}
                parts = held | {p: parts[p] for p in passing}
        return Need(rank, parts, at, whole.notes)

    def _memory(self, rank: Rank, case: Case, batch: int, tokens: int) -> Any:
        """Memory of a pass that ends at the context, of some of the sequences."""
        work: Any = case.work
        alone = self.model.sight is not None and self.model.sight.alone is not None
        source = work.source
        if source is None and "source" in self.model.settings and self.model.source_tokens is None:
            source = case.context
        chunk = None if work.chunk is None or "past" not in self.model.settings else min(work.chunk, tokens)
        return memory(
            rank.model,
            batch,
            None if alone else tokens,
            None if alone else case.context - tokens,
            logits=work.logits,
            attention=work.attention,
            policy=work.policy,
            page=work.page,
            chunk=chunk,
            weights=None if work.weights in FORMATS else work.weights,
            cache=work.cache,
            state=work.state,
            source=source,
            images=work.images,
            image_tokens=work.image_tokens,
            sounds=work.sounds,
            latent=work.latent,
        )

    # --- training ---

    def resident(self, case: Case) -> int:
        """What training holds whatever the batch: less than any step needs, and found without walking through one."""
        if isinstance(case.work, Serving):
            return 0
        return max(sum(self._held(rank, case)[1].values()) for rank in self.ranks(case))

    def _learned(self, rank: Rank, case: Case) -> Need:
        made, (held, static) = self._step(rank, case), self._held(rank, case)
        head = rank.model.segments[-1].name
        moments = [(moment, _parts(moment, made, held, static, head)) for moment in made.moments]
        moment, parts = max(moments, key=lambda one: sum(one[1].values()))
        at = f"{moment.name}, {moment.at}" if moment.at else moment.name
        return Need(rank, {part: size for part, size in parts.items() if size}, at, made.notes)

    def _step(self, rank: Rank, case: Case) -> Step:
        """A step walked through. What states are held is set apart: of an optimizer that keeps none, undivided."""
        work, plan = case.work, case.plan
        assert isinstance(work, Learning)
        passes, zero = _passes(case), DIVIDED if plan.zero >= DIVIDED else 0
        in_flight = rank.in_flight if plan.pipeline > 1 else 1
        rank = self._plain(rank, case)
        asked = replace(work, optimizer="sgd", accumulation=passes, weights=None)
        key = (id(rank.model), case.batch, case.context, asked, zero, in_flight)
        if key not in self._steps:
            self._steps[key] = step(
                rank.model,
                case.batch,
                case.context,
                optimizer="sgd",
                precision=work.precision,
                attention=work.attention,
                policy=work.policy,
                recompute=work.recompute,
                accumulation=passes,
                logits_chunk=work.logits_chunk,
                dropout=work.dropout,
                workspace=0,
                source=work.source,
                images=work.images,
                image_tokens=work.image_tokens,
                sounds=work.sounds,
                zero=zero,
                in_flight=in_flight,
            )
        return self._steps[key]

    def _plain(self, rank: Rank, case: Case) -> Rank:
        """The same rank with plain weights: in which format those lie that are not trained changes no moment."""
        work = case.work
        if work.weights not in FORMATS:
            return rank
        place = next(i for i, one in enumerate(self.ranks(case)) if one.model is rank.model)
        return self.ranks(replace(case, work=replace(work, weights=None)))[place]

    def _held(self, rank: Rank, case: Case) -> tuple[States, dict[str, int]]:
        """The states of a rank, and their bytes by part without gradients."""
        work, plan = case.work, case.plan
        assert isinstance(work, Learning)
        how = (work.optimizer, work.precision, work.frozen, _passes(case))
        key = (id(rank.model), *how, plan.zero, plan.data, plan.replicas)
        if key not in self._states:
            held = states(
                rank.model,
                optimizer=work.optimizer,
                precision=work.precision,
                frozen=work.frozen,
                accumulation=_passes(case),
                zero=plan.zero,
                shards=plan.data,
                expert_shards=plan.replicas,
            )
            self._states[key] = held, _grouped(held.parts)
        return self._states[key]


def _passes(case: Case) -> int:
    """Passes whose gradients are added up before a step: microbatches that pass the stages, too."""
    plan, work = case.plan, case.work
    assert isinstance(work, Learning)
    microbatches = 1 if plan.pipeline == 1 else (plan.microbatches or plan.pipeline)
    return 2 if max(work.accumulation, microbatches) > 1 else 1


def _grouped(parts: Mapping[str, Any]) -> dict[str, int]:
    """States without gradients as a report names them."""
    names = {"frozen": "parameters", "buffers": "parameters", "main_gradients": "gradients", "master": "optimizer"}
    made: dict[str, int] = {"parameters": 0, "gradients": 0, "optimizer": 0}
    for name, size in parts.items():
        if name != "gradients":
            group = "optimizer" if name.startswith("optimizer.") else names.get(name, name)
            made[group] += int(size)
    return made


def _parts(moment: Moment, made: Step, held: States, static: Mapping[str, int], head: str) -> dict[str, int]:
    """A moment by part, with the states that a rank holds then."""
    phase, _, where = moment.name.partition(", ")
    gradients = moment.parts["gradients"]
    if moment.name == "optimizer step" or (held.zero >= DIVIDED and phase == "backward"):
        gradients = int(held.gradients)
    elif held.zero >= DIVIDED:
        gradients = int(held.gradients) if held.accumulation > 1 else 0
    saved, passing = moment.parts["saved"], moment.parts["passing"]
    of_loss, at_head = max(0, saved - made.saved), where == "loss" or where.startswith(head)
    idle = phase in ("between steps", "optimizer step")
    beside = int(held.beside) if phase == "optimizer step" else 0
    return {
        **static,
        "parameters": static["parameters"] + (0 if idle else int(held.gathered)),
        "gradients": static["gradients"] + gradients,
        "optimizer": static["optimizer"] + beside,
        "activations": saved - of_loss + (0 if at_head else passing) + moment.parts.get("in flight", 0),
        "loss": of_loss + (passing if at_head else 0),
        "inputs": moment.parts["inputs"],
    }
