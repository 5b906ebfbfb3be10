"""What would make a case fit: one change each, computed; where none does on the same chips, two together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from assay.errors import AssayError
from assay.formats import BITS
from assay.hardware import Chip, chips
from assay.readings.optimizers import optimizer as optimizer_of
from assay.readings.setting import setting
from assay.records import dataclass, field, replace
from assay.studies.limits import ENDLESS, largest
from assay.studies.needs import FORMATS, Case, Learning, Need, Needs, Serving, scheme_of

CHUNKS = (8192, 2048, 512)  # tokens of a prompt read at a time
LOGITS_CHUNK = 1024
LORA, FROZEN = 16, "nf4"  # the rank of adapters, and the format of what they stand beside
TENSOR, STAGES, REPLICAS = 64, 64, 4096  # ranks that are tried at most
WALKED = (2, 4, 8, 16, 32)  # the same in training, where each number is a step to walk through
PAIRS = 5  # that are told
ASKED = ("batch", "context")  # what a change should rather leave
TRIED = ("fp8-blocks", "awq")  # of the formats that weights can be in: one of 8 bits, one of 4

Edit = Callable[[Case], "Case | None"]


@dataclass(frozen=True)
class Change:
    """One change, or several at once: what is set to what, and what is needed and left then."""

    says: str
    sets: Mapping[str, Any]
    need: Need = field(repr=False)
    room: int
    gpus: int
    chip: str
    group: str

    @property
    def margin(self) -> int:
        """Bytes left, below 0 where it does not fit."""
        return self.room - self.need.bytes

    @property
    def fits(self) -> bool:
        """Whether it does."""
        return self.margin >= 0


@dataclass(frozen=True)
class Option:
    """A change that can be made beside others: its group, of which one is made, and the case behind it."""

    group: str
    says: str
    sets: Mapping[str, Any]
    edit: Edit = field(repr=False, compare=False)


class Remedies:
    """The search for them."""

    def __init__(self, needs: Needs, case: Case, chip: Chip, room: Callable[[Chip], int]) -> None:
        self.needs, self.case, self.chip, self.room_of = needs, case, chip, room
        self.room = room(chip)

    def try_case(self, case: Case | None, says: str, sets: Mapping[str, Any], group: str) -> Change | None:
        """The change with its need; None where it cannot be made. What states alone exceed is not walked through."""
        if case is None or case == self.case:
            return None
        try:
            need = self.needs(case)
        except AssayError:
            return None
        return Change(says, sets, need, self.room, case.plan.world, self.chip.name, group)

    def single(self, batch: int | None, context: int | None) -> Iterator[Change]:
        """Every single change that lowers the need; `batch` and `context` are the largest that fit."""
        before = self.needs(self.case).bytes
        for option in self.options():
            made = self.try_case(option.edit(self.case), option.says, option.sets, option.group)
            if made is not None and made.need.bytes < before:
                yield made
        for name, value, word in (("batch", batch, "batch"), ("context", context, "context")):
            if value and value < getattr(self.case, name):
                made = self.try_case(replace(self.case, **{name: value}), f"{word} {value:,}", {name: value}, name)
                if made is not None:
                    yield made
        yield from self.ranks()
        yield from self.chips()

    def pairs(self) -> list[Change]:
        """Two changes on the same chips that fit together and of which neither does alone.

        Of each two sorts the one that leaves most; those that leave what is asked as it is come first. Of a batch or a
        context that is smaller the largest is told.
        """
        options = [one for one in (*self.options(), *self._smaller()) if not self._suffices(one)]
        best: dict[str, tuple[Change, Case]] = {}
        for i, a in enumerate(options):
            first = a.edit(self.case)
            for b in options[i + 1 :]:
                group = f"{a.group} {b.group}"
                case = b.edit(first) if first is not None and a.group != b.group else None
                made = self.try_case(case, f"{a.says} and {b.says}", {**a.sets, **b.sets}, group)
                if case is None or made is None or not made.fits:
                    continue
                if group not in best or made.margin > best[group][0].margin:
                    best[group] = (made, case)

        def smaller(made: Change) -> int:
            return sum(name in made.group.split() for name in ASKED)

        order = sorted(best.values(), key=lambda one: (smaller(one[0]), -one[0].margin))
        return [self._grown(made, case) if smaller(made) == 1 else made for made, case in order[:PAIRS]]

    def _suffices(self, option: Option) -> bool:
        case = option.edit(self.case)
        made = None if case is None else self.try_case(case, option.says, option.sets, option.group)
        return made is not None and made.fits

    def _grown(self, made: Change, case: Case) -> Change:
        """The same with the largest batch, or the longest context, beside the other change."""
        name = next(name for name in ASKED if name in made.group.split())
        if "accumulation" in made.sets:  # passes are so many that batches of 1 add up
            return made
        size = largest(_growing(self.needs, case, name), self.room, getattr(self.case, name), getattr(case, name))
        if not size or size == getattr(case, name):
            return made
        says = made.says.replace(f"{name} {getattr(case, name):,}", f"{name} {size:,}")
        grown = self.try_case(replace(case, **{name: size}), says, {**made.sets, name: size}, made.group)
        return made if grown is None else grown

    # --- on the same chips ---

    def options(self) -> Iterator[Option]:
        """Changes of how it is done, in the order that they cost least."""
        yield from self._serving(self.case.work) if isinstance(self.case.work, Serving) else self._learning()

    def _smaller(self) -> Iterator[Option]:
        if self.case.batch > 1 and isinstance(self.case.work, Serving):
            yield Option("batch", "batch 1", {"batch": 1}, lambda case: replace(case, batch=1))
        half = self.case.context // 2
        if half and isinstance(self.case.work, Serving):
            sets = {"context": half}
            yield Option("context", f"context {half:,}", sets, lambda case: replace(case, context=half))

    def _work(self, group: str, says: str, **sets: Any) -> Option:
        return Option(group, says, sets, lambda case: replace(case, work=replace(case.work, **sets)))

    def _serving(self, work: Serving) -> Iterator[Option]:
        model, case = self.needs.model, self.case
        plain = work.weights if work.weights not in FORMATS else None
        asked = setting(model, tokens=1, weights=plain, cache=work.cache)
        if work.logits == "all":
            yield self._work("logits", "logits of the last position only", logits="last")
        if work.policy != "serving":
            yield self._work("policy", "room for the cache from the start", policy="serving")
        if work.attention == "plain":
            yield self._work("attention", "attention in one kernel", attention="fused")
        keeps = "past" in model.settings
        if keeps and case.batch > 1 and work.prompts != 1 and work.policy == "serving":
            yield self._work("prompts", "prompts read one at a time", prompts=1)
        if keeps:
            for chunk in CHUNKS:
                if chunk < (work.chunk or case.context):
                    yield self._work("chunk", f"prompts read {chunk:,} tokens at a time", chunk=chunk)
        if keeps and BITS[asked.cache] > 8:
            yield self._work("cache", "cache in fp8", cache="fp8")
        if keeps and BITS[asked.cache] > 4:
            yield self._work("cache", "cache in int4", cache="int4")
        for name in TRIED:
            if name != work.weights:
                says = scheme_of(name, model.family, model.dtype).says
                yield self._work("weights", f"weights in {says}", weights=name)

    def _learning(self) -> Iterator[Option]:
        case = self.case
        work = case.work
        assert isinstance(work, Learning)
        if work.attention == "plain":
            yield self._work("attention", "attention in one kernel", attention="fused")
        if case.context > LOGITS_CHUNK and (work.logits_chunk or case.context) > LOGITS_CHUNK:
            says = f"head and loss {LOGITS_CHUNK:,} tokens at a time"
            yield self._work("logits_chunk", says, logits_chunk=LOGITS_CHUNK)
        if work.recompute == "none" and work.attention == "plain":
            yield self._work("recompute", "attention recomputed", recompute="attention")
        if work.recompute in ("none", "attention"):
            yield self._work("recompute", "every layer recomputed", recompute="layer")
        if case.plan.data > 1:
            for zero in range(case.plan.zero + 1, 4):
                sets = {"zero": zero}
                yield Option("zero", f"ZeRO {zero}", sets, lambda c, z=zero: replace(c, plan=replace(c.plan, zero=z)))  # type: ignore[misc]
        if case.batch > 1:
            many = case.batch * work.accumulation
            says = f"batch 1, {many:,} passes accumulated before a step"
            sets = {"batch": 1, "accumulation": many}
            yield Option("batch", says, sets, lambda c: replace(c, batch=1, work=replace(c.work, accumulation=many)))
        yield from self._states(work)

    def _states(self, work: Learning) -> Iterator[Option]:
        """What is held of each parameter."""
        fused = optimizer_of(work.optimizer).rule
        for name in (fused, "adamw-8bit", "adafactor"):
            if name is not None and name != work.optimizer:
                yield self._work("optimizer", f"optimizer {name}", optimizer=name)
        if work.lora is None:
            yield self._work("trained", f"adapters of rank {LORA} trained alone (LoRA)", lora=LORA)
            yield self._work(
                "trained", f"adapters of rank {LORA} beside weights in {FROZEN} (QLoRA)", lora=LORA, weights=FROZEN
            )
        elif work.weights is None:
            yield self._work("trained", f"weights that are not trained in {FROZEN} (QLoRA)", weights=FROZEN)
        if work.precision != "bf16":
            yield self._work("precision", "precision bf16, optimizer and all", precision="bf16")

    # --- on other chips ---

    def ranks(self) -> Iterator[Change]:
        """The least number of chips of the same kind, by each way to divide a model."""
        plan = self.case.plan
        serving = isinstance(self.case.work, Serving)
        tensor = range(plan.tensor + 1, TENSOR + 1) if serving else [n for n in WALKED if n > plan.tensor]
        stages = range(plan.pipeline + 1, min(STAGES, self.needs.model.layers) + 1) if serving else WALKED
        if serving:
            yield from self._least("tensor", "tensor ranks", [{"tensor": n} for n in tensor])
        else:  # where tokens can be divided, too, that needs less
            words = "tensor ranks, tokens divided too"
            found = [*self._least("tensor", words, [{"tensor": n, "sequence": True} for n in tensor])]
            yield from found or self._least("tensor", "tensor ranks", [{"tensor": n} for n in tensor])
        yield from self._least("pipeline", "stages", [{"pipeline": n} for n in stages if n > plan.pipeline])
        if not serving:
            yield from self._replicas()

    def _least(self, name: str, words: str, plans: list[dict[str, Any]]) -> Iterator[Change]:
        """The first of some plans, of more and more ranks, that fits; where more never need more, by halving."""
        cases = [(sets, case) for sets in plans if (case := self._divided(sets)) is not None]
        falls = name == "tensor" or isinstance(self.case.work, Serving)  # a pipeline has more passes in flight
        start, end = 0, len(cases)
        if falls and cases and not self._within(cases[-1][1]):
            return
        while falls and end - start > 1:
            middle = (start + end) // 2
            start, end = (start, middle) if self._within(cases[middle - 1][1]) else (middle, end)
        for sets, case in cases[start:end]:
            if self._within(case):
                made = self.try_case(case, f"{case.plan.world:,} GPUs: {sets[name]} {words}", sets, "gpus")
                if made is not None:
                    yield made
                return

    def _within(self, case: Case) -> bool:
        """Whether a case fits; one that cannot be does not."""
        try:
            return self.needs.within(case, self.room)
        except AssayError:
            return False

    def _divided(self, sets: dict[str, Any]) -> Case | None:
        """The case under another plan, None where the model does not divide so."""
        try:
            case = replace(self.case, plan=replace(self.case.plan, **sets))
            self.needs.ranks(case)
        except AssayError:
            return None
        return case

    def _replicas(self) -> Iterator[Change]:
        """The least number of replicas that divide all states, where the activations of one leave room."""
        plan = self.case.plan

        def case(data: int) -> Case:
            return replace(self.case, plan=replace(plan, data=data, zero=3))

        try:
            if self.needs(case(REPLICAS)).bytes > self.room:
                return
            low, high = plan.data, REPLICAS
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self.needs(case(middle)).bytes <= self.room else (middle, high)
        except AssayError:
            return
        made = case(high)
        sets = {"data": high, "zero": 3}
        change = self.try_case(made, f"{made.plan.world:,} GPUs: {high:,} replicas, ZeRO 3", sets, "gpus")
        if change is not None:
            yield change

    def chips(self) -> Iterator[Change]:
        """The smallest chip of the catalogue that is large enough, as many of them; of the same maker if any."""
        need, world = self.needs(self.case), self.case.plan.world
        maker = self.chip.title.partition(" ")[0]
        large = [c for c in chips() if self.room_of(c) >= need.bytes and c.interconnect is not None]
        for chip in sorted(large, key=lambda c: (not c.title.startswith(maker), c.memory, c.name))[:1]:
            says = f"{world:,} × {chip.title}" if world > 1 else chip.title
            yield Change(says, {"gpu": chip.name}, need, self.room_of(chip), world, chip.name, "chip")


def largest_batch(needs: Needs, case: Case, room: int) -> int | None:
    """The largest batch at the case's context that fits."""
    return largest(_growing(needs, case, "batch"), room, None, case.batch, _floor(needs, case))


def longest_context(needs: Needs, case: Case, room: int, most: int | None) -> int | None:
    """The longest context at the case's batch that fits, `most` at most."""
    return largest(_growing(needs, case, "context"), room, most, case.context, _floor(needs, case))


def _floor(needs: Needs, case: Case) -> int | None:
    """What a step of training needs at least; None of inference, whose every pass is found fast."""
    return needs.resident(case) if isinstance(case.work, Learning) else None


def _growing(needs: Needs, case: Case, name: str) -> Callable[[int], int]:
    """The need by a size of the case. A step of training is not walked through where states alone are too much."""
    learning = isinstance(case.work, Learning)

    def need(size: int) -> int:
        if learning and size == ENDLESS:
            return ENDLESS * ENDLESS
        return needs(replace(case, **{name: size})).bytes

    return need
