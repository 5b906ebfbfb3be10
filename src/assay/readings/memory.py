"""Memory of inference: weights, cache, states, and what is alive at the fullest moment of a pass, in bytes.

The fullest moment is found by a pass over the ops (`liveness`); weights and cache are those of `count`.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.errors import SettingError, among
from assay.formats import BITS, bytes_of
from assay.kinds import Extent
from assay.kinds.training.values import CACHE, STATES, Keeping
from assay.readings.binding import as_model, bind, placed
from assay.readings.count import count_setting
from assay.readings.dtypes import dtype
from assay.readings.generate import chosen
from assay.readings.liveness import LOGITS, SCORES, Liveness, Moment, liveness
from assay.readings.plans import plan_of
from assay.readings.printed import listed, said
from assay.readings.setting import Setting, setting
from assay.readings.weights import by_format
from assay.records import dataclass, field, replace
from assay.rewrites.policies import HOLDS, executed
from assay.size import Size, ceil_div, decides, lift, minimum, surely_above, whole
from assay.spec import Block, Model, Op

EXACT, MODELLED = "exact", "modelled"
POLICIES = ("serving", "ours", "transformers")
_RUN_AS = {"serving": "ours"}  # whose ops a policy runs


@dataclass(frozen=True)
class Part:
    """A part of the memory: its bytes, where the figure stands, and what it rests on."""

    name: str
    bytes: Size
    standing: str
    says: str


@dataclass(frozen=True)
class Pass:
    """A pass and its fullest moment: `activations` are all its bytes but cache, states and logits."""

    name: str
    tokens: Size
    past: Size
    peak: Moment

    @property
    def logits(self) -> Size:
        """Bytes of logits at that moment."""
        return self.peak.live.get(LOGITS, 0)

    @property
    def activations(self) -> Size:
        """What passes of it with the pass."""
        sizes = (size for group, size in self.peak.live.items() if group not in (CACHE, STATES, LOGITS))
        return sum(sizes, start=0)


@dataclass(frozen=True)
class Memory:
    """Bytes of inference; `total` is the sum of `parts`, at the fullest moment of all passes, `at`.

    `weights_by` is what weights weigh by format, `cache` the architecture's need at the end, `reserved` what pages of
    `page` tokens take of it, `states` what recurrences keep. `passes` are those that may be the fullest.
    """

    parts: tuple[Part, ...]
    weights_by: Mapping[str, int]
    cache: Size
    reserved: Size | None
    states: Size
    at: Pass
    passes: tuple[Pass, ...] = field(repr=False)
    setting: Setting = field(repr=False)
    context: Size
    policy: str
    attention: str
    page: Size | None
    chunk: Size | None
    generate: Size
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> Size:
        """All parts together."""
        return sum((part.bytes for part in self.parts), start=0)

    def part(self, name: str) -> Size:
        """Bytes of a part, 0 where there is none of the name."""
        return sum((part.bytes for part in self.parts if part.name == name), start=0)

    def __str__(self) -> str:
        title = said(batch=self.setting.batch, tokens=self.setting.tokens, past=self.setting.past)
        rows = [(f"{part.name} bytes", part.bytes, part.says) for part in self.parts]
        rows.append(("total bytes", self.total, f"the fullest pass: {self.at.name}"))
        return listed(f"{title} · attention {self.attention} · policy {self.policy}", rows)


def memory(
    model: Model | Block,
    batch: object = 1,
    tokens: object = None,
    past: object = None,
    *,
    context: object = None,
    logits: str = "last",
    attention: str = "fused",
    policy: str = "serving",
    page: object = None,
    chunk: object = None,
    generate: object = 0,
    weights: str | None = None,
    cache: str | None = None,
    state: str = "fp32",
    compute: str | None = None,
    source: object = None,
    images: object = None,
    image_tokens: object = None,
    sounds: object = None,
    latent: str = "expanded",
    **sizes: object,
) -> Memory:
    """What a pass over `tokens` behind `past`, and `generate` decode steps after it, hold at their fullest, in bytes.

    `chunk` runs the tokens so many at a time. `page` is the tokens of a page that a cache is kept in. `attention` is
    fused in one kernel, or plain, op by op. `policy` says whose execution it is: `serving` has room for the whole cache
    from the start and else only what later ops read; `ours`, that of `assay.build`, and `transformers`, the public
    implementation, copy keys and values behind those before. `compute` is the dtype of activations, by default that of
    weights where it has 16 bits or more, else bf16. Sizes are integers. Raises SettingError and SizeError.
    """
    whole = as_model(model, sizes, memory)
    among(policy, "policy", POLICIES)
    asked = setting(
        whole,
        batch=batch,
        tokens=tokens,
        past=past,
        context=context,
        logits=logits,
        weights=weights,
        cache=cache,
        state=state,
        source=source,
        images=images,
        image_tokens=image_tokens,
        sounds=sounds,
        latent=latent,
    )
    if not all(map(decides, asked.sizes().values())):
        raise SettingError("memory takes integers: which moment is the fullest is no formula; sweep goes through many")
    return _Asked(whole, asked, policy, attention, page, chunk, generate, compute).memory()


class _Asked:
    """A question that has been checked."""

    def __init__(
        self,
        model: Model,
        asked: Setting,
        policy: str,
        attention: str,
        page: object,
        chunk: object,
        generate: object,
        compute: str | None,
    ) -> None:
        self.model, self.asked, self.policy, self.attention = model, asked, policy, attention
        self.keeps = "past" in model.settings
        self.page = None if page is None else self._size(page, "page")
        self.chunk = None if chunk is None else self._size(chunk, "chunk")
        self.generate = self._size(generate, "generate", 0)
        for name, value in (("page", self.page), ("chunk", self.chunk), ("generate", self.generate)):
            if value and not self.keeps:
                raise SettingError(f"{name} is {value}; {model.name} keeps nothing between passes")
        if self.chunk is not None and self.chunk > asked.tokens:
            raise SettingError(f"chunk is {self.chunk}; it is of the {asked.tokens} tokens, so at most as many")
        if self.page is not None and policy != "serving":
            raise SettingError(f"page is {self.page}; the policy {policy} keeps its cache in no pages")
        if model.positions is not None and surely_above(asked.context + self.generate, model.positions):
            raise SettingError(
                f"past + tokens + generate is {asked.context + self.generate}; {model.name} has a learned position "
                f"table of {model.positions} rows"
            )
        usual = asked.weights if BITS[asked.weights] in (16, 32, 64) else "bf16"
        self.compute = usual if compute is None else dtype(compute, "compute")
        if BITS.get(self.compute) not in (16, 32, 64):
            raise SettingError(f"compute is {self.compute!r}; known: bf16, fp16, fp32, fp64")
        self.static = policy == "serving"
        self.run = executed(model, _RUN_AS.get(policy, policy), attention)

    @staticmethod
    def _size(value: object, name: str, least: int = 1) -> Size:
        found = lift(value, name, least)
        if not decides(found):
            raise SettingError(f"{name} is {value}; it must be an integer")
        return found

    def memory(self) -> Memory:
        """The record."""
        weights = self._weights()
        end = self._end()
        cache, states, reserved = self._kept(end)
        found = [(one, self._pass(one)) for one in self._passes()]
        passes = tuple(Pass(*one, lived.peak) for one, lived in found)
        at = max(passes, key=self._weight)
        return Memory(
            tuple(self._parts(weights, cache, states, reserved, at)),
            weights,
            cache,
            reserved,
            states,
            at,
            passes,
            self.asked,
            self.asked.context + self.generate,
            self.policy,
            self.attention,
            self.page,
            self.chunk,
            self.generate,
            tuple(self._notes(found[0][1], at)),
        )

    def _weights(self) -> dict[str, int]:
        """Bytes by format."""
        asked, scheme = self.asked, self.model.scheme
        if asked.quantized and scheme is not None:
            return by_format(self.model, scheme, asked.weights)
        held = count_setting(self.model, replace(asked, tokens=1, past=0)).weight_bytes
        return {asked.weights: int(held or 0)}

    def _weight(self, one: Pass) -> Size:
        return one.activations + one.logits if self.static else one.peak.bytes

    def _end(self) -> Setting:
        """The last pass: what is kept is told for its context."""
        if not self.generate:
            return self.asked
        return replace(self.asked, tokens=1, past=self.asked.context + self.generate - 1)

    def _passes(self) -> list[tuple[str, Size, Size]]:
        """Passes of which one is the fullest: name, tokens, past. Of passes as long as each other the last is."""
        n, past = self.asked.tokens, self.asked.past
        found = []
        if self.chunk is None or self.chunk == n:
            found.append(("step" if past and n == 1 else "prefill" if self.keeps and not past else "pass", n, past))
        else:
            full, rest = divmod(n, self.chunk)
            found.append((f"chunk {full}", self.chunk, past + (full - 1) * self.chunk))
            if rest:
                found.append((f"chunk {full + 1}", rest, past + n - rest))
        if self.generate:
            found.append((f"step {self.generate}", 1, past + n + self.generate - 1))
        return found

    def _pass(self, one: tuple[str, Size, Size]) -> Liveness:
        _, tokens, past = one
        asked = replace(self.asked, tokens=tokens, past=past)
        keeping = Keeping(self.asked.cache, self.asked.state, not self.static, self.policy == "transformers")
        return liveness(
            self.run,
            asked,
            dtype=self.compute,
            cache=keeping if self.keeps else None,
            device="cpu" if self.policy == "ours" else "cuda",
            holds=HOLDS[_RUN_AS.get(self.policy, self.policy)],
            shuffles=self.policy == "ours",
        )

    def _kept(self, asked: Setting) -> tuple[Size, Size, Size | None]:
        """Bytes of the cache, of states, and of the pages that hold the cache."""
        cache: Size = 0
        states: Size = 0
        paged: Size = 0
        for segment in self.model.segments if self.keeps else ():
            block = chosen(segment, asked)
            extent = bind(block, placed(segment, asked.sizes()))
            for op, kind, left in plan_of(block.ops).stateful:
                elements = left(op, extent)
                held = bytes_of(elements, asked.state if kind.kept == "state" else asked.cache) * segment.times
                if kind.storage != "state":  # of a fixed size
                    states = states + whole(held)
                    continue
                cache = cache + whole(held)
                paging = self.page is not None and kind.grows is not None
                grown = _in_pages(op, extent, asked, self.page or 1) if paging else elements
                paged = paged + whole(bytes_of(grown, asked.cache)) * segment.times
        return cache, states, None if self.page is None else paged

    def _parts(
        self, weights: Mapping[str, int], cache: Size, states: Size, reserved: Size | None, at: Pass
    ) -> list[Part]:
        made = [Part("weights", sum(weights.values()), EXACT, _formats([*weights]))]
        if self.static:
            if reserved is not None:
                made.append(Part("cache", reserved, MODELLED, f"in pages of {self.page} tokens"))
            elif cache:
                made.append(Part("cache", cache, EXACT, f"{self.asked.cache}, room for the whole context"))
            kept = states
        else:
            kept, grown = at.peak.live.get(STATES, 0), at.peak.live.get(CACHE, 0)
            if grown:
                made.append(Part("cache", grown, MODELLED, f"{self.asked.cache}, at the fullest moment"))
        if kept:
            made.append(Part("states", kept, EXACT, f"{self.asked.state} of recurrences"))
        made.append(Part("activations", at.activations, self._standing(), f"{self.compute}, at the fullest moment"))
        if at.logits:
            alone = sum(one.group == LOGITS for one in at.peak.tensors) == 1
            of = "the last position" if self.asked.logits == "last" else "all positions"
            made.append(Part("logits", at.logits, EXACT if alone else MODELLED, f"{self.compute}, of {of}"))
        return made

    def _standing(self) -> str:
        return EXACT if self.policy == "ours" and self.attention == "plain" else MODELLED

    def _notes(self, lived: Liveness, at: Pass) -> list[str]:
        says = {
            "serving": "activations are those of ops run one by one, each tensor alive from the op that makes it to "
            "the last that reads it; an engine that reuses buffers or fuses ops needs less",
            "ours": "activations are those of assay.build",
            "transformers": "activations are those of the public implementation, run eagerly; what the process, its "
            "libraries and an allocator's blocks take beside is not in it",
        }
        made = [*self.run.notes, says[self.policy]]
        latent = any(segment.absorbed is not None for segment in self.model.segments)
        if latent and self.asked.latent == "expanded" and at.past:
            made.append("expanded latent attention makes keys and values of all at hand anew; absorbed, it makes none")
        if self.attention == "fused" and SCORES in lived.groups:
            made.append("attention of some layers runs op by op, its scores stored: no one kernel of PyTorch runs it")
        if lived.unknown:
            made.append(f"what {', '.join(lived.unknown)} need beside their results is not known and not in it")
        return made


def _formats(names: list[str]) -> str:
    """What weights are stored in, what most of their bytes are in first."""
    return ", the rest ".join(filter(None, (names[0], " and ".join(names[1:]))))


def _in_pages(op: Op, extent: Extent, asked: Setting, page: int) -> Size:
    """Elements of whole pages: a window lies in at most one more than it fills, for it begins anywhere in one."""
    (keys,) = [a for a in op.axes if a not in op.inputs[0].axes]
    limit = op.attr("window") if op.attr("window") is not None else op.attr("chunk")
    if limit is None:
        pages = ceil_div(extent.sizes[keys], page)
    else:
        pages = minimum(ceil_div(asked.context, page), ceil_div(extent.value(limit) - 1, page) + 1)
    return pages * page * extent(a for a in op.axes if a != keys)
