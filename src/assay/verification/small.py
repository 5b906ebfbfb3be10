"""A model shrunk and run: a prefill, a decode step behind a cache, a training step; each op beside what is said."""

from __future__ import annotations

from typing import Any

import torch

import assay.execution.module  # noqa: F401 (functions of all kinds)
from assay.counter.result import Measurement
from assay.counter.run import measure
from assay.errors import BuildError
from assay.execution.entry import build
from assay.kinds import kind_of
from assay.kinds.resizing import is_index
from assay.readings.binding import bind, placed
from assay.readings.conventions import convention
from assay.readings.count import count_setting
from assay.readings.dtypes import bytes_of
from assay.readings.setting import Setting, encoded, setting
from assay.readings.training import TrainedOp, trace, trained
from assay.records import replace
from assay.rewrites.shrink import shrink
from assay.spec import Model
from assay.verification.result import Figure, OpFigure, Proof
from assay.verification.watched import Place, Watched, towers

BATCH, TOKENS, SOURCE = 2, 12, 14
FREE = ("aten::_fft_r2c", "aten::_fft_c2c", "aten::_fft_c2r")  # transforms, which are no products
PLACES = 16  # tokens that an image makes where it may have any size
DTYPE = "fp32"
GIVEN = ("ids", "at", "distance", "memory", "frames", "type")  # what the model knows by itself, or is always given


def prove(model: Model, seed: int = 0) -> Proof:
    """The model's structure, small: parameters, shapes, FLOPs, cache and what autograd keeps, said and measured.

    Raises BuildError where it cannot be run.
    """
    small = shrink(model)
    watched = Watched(build(small, seed=seed, attention="plain"))
    run = _Run(small, watched)
    try:
        run.parameters()
        if watched.of(""):
            run.prefill()
            run.step()
            run.training()
        for name, tower in towers(watched.model).items():
            run.tower(name, tower)
    except (RuntimeError, ValueError, IndexError, TypeError, BuildError) as error:
        run.failed(error)
    return Proof(f"{small.name}, shrunk and run", run.said(), tuple(run.figures), tuple(run.ops), tuple(run.without))


class _Run:
    """What has been compared so far."""

    def __init__(self, model: Model, watched: Watched) -> None:
        self.model = model
        self.watched = watched
        self.figures: list[Figure] = []
        self.ops: list[OpFigure] = []
        self.without: list[str] = []
        self.tokens = TOKENS if model.positions is None else min(TOKENS, model.positions - 1)
        self.source = self._source()
        rng = torch.Generator().manual_seed(1)
        most = _vocabulary(model)
        self.ids = torch.randint(0, most, (BATCH, self.tokens), generator=rng)
        self.next = torch.randint(0, most, (BATCH, 1), generator=rng)
        held = {id(place.layer.segment) for place in watched.of("")}
        self.text = replace(model, segments=tuple(s for s in model.segments if id(s) in held))
        self.sources: tuple[Any, ...] = ()
        if self.source is not None:
            self.sources = (self._given_source(most, rng),)

    def _given_source(self, most: int, rng: torch.Generator) -> Any:
        """Ids, or frames of sound where a block reads these."""
        assert self.source is not None
        for segment in self.model.segments:
            for op in segment.block.ops:
                for operand in op.activations:
                    if operand.name == "frames":
                        widths = [int(segment.block.sizes[axis]) for axis in operand.axes[2:]]
                        return torch.randn((BATCH, self.source, *widths), generator=rng)
        positions = encoded(self.source, (self.model.source_stride, self.model.source_extra))
        return torch.randint(0, most, (BATCH, positions), generator=rng)

    def _source(self) -> int | None:
        if "source" not in self.model.settings:
            return None
        longest = self.model.source_positions
        return SOURCE * self.model.source_stride if longest is None else min(SOURCE * self.model.source_stride, longest)

    def said(self) -> str:
        """What is run."""
        source = "" if self.source is None else f" of {self.source} source tokens"
        layers = self.model.layers or 1
        return f"{layers} layers, {BATCH} sequences of {self.tokens} tokens{source}, float32, attention as products"

    def asked(self, tokens: int, past: int = 0) -> Setting:
        """A setting of the model."""
        named = {"weights": DTYPE, "cache": DTYPE, "source": self.source}
        self.now = setting(self.model, batch=BATCH, tokens=tokens, past=past, **named)  # type: ignore[arg-type]
        return self.now

    def further(self, asked: Setting) -> dict[str, Any]:
        """What the model reads besides tokens and where they are: the first row of a table, where it is an index."""
        made: set[str] = set()
        found: dict[str, Any] = {}
        net = self.watched.model
        for layer in [*net.source_plan, *net.plan]:
            for name, axes, _ in layer.reads:
                index = is_index(name, layer.block.ops)
                if name in made or name in found or name in GIVEN or ("n" in axes and not index):
                    continue  # what another model made of each token is not known
                sizes = bind(layer.block, placed(layer.segment, asked.sizes())).sizes
                shape = [int(sizes[axis]) for axis in axes]
                found[name] = torch.zeros(shape, dtype=torch.long) if index else torch.randn(shape)
            made |= {name for name, _ in layer.gives}
        return found

    def parameters(self) -> None:
        """Each once; and what is stored besides."""
        said = count_setting(self.model, self.asked(self.tokens)).parameters
        net = self.watched.model
        self.figures.append(Figure("parameters", said.total, sum(one.numel() for one in net.parameters())))
        buffers = sum(one.numel() for one in net.buffers())
        if said.buffers or buffers:
            self.figures.append(Figure("buffers", said.buffers, buffers))

    def prefill(self) -> None:
        """All tokens at once."""
        asked = self.asked(self.tokens)
        with torch.no_grad():
            found = measure(self.watched, self.ids, *self.sources, **self.further(asked), allow=FREE)
        self._forward("prefill", found, asked, self.text)

    def step(self) -> None:
        """One token behind a cache of the others."""
        if "past" not in self.model.settings:
            return
        cache = self.watched.model.cache()
        with torch.no_grad():
            self.watched(self.ids, *self.sources, **self.further(self.asked(self.tokens)), cache=cache)
            asked = self.asked(1, self.tokens)
            found = measure(self.watched, self.next, cache=cache, **self.further(asked), allow=FREE)
        self._forward("decode step", found, asked, self.text)
        self._cache(cache, asked)

    def _forward(self, name: str, found: Measurement, asked: Setting, model: Model, tower: str = "") -> None:
        """FLOPs and shapes of a pass."""
        self.ops += self.watched.compared(asked.sizes())
        prices, sizes = convention(asked.convention), asked.sizes()
        measured = {row.path: row for row in found.modules}
        for place in self.watched.of(tower):
            extent = bind(place.layer.block, placed(place.layer.segment, sizes))
            said = prices.flops(kind_of(place.step.op).work(place.step.op, extent))
            row = measured.get(f"ops.{place.path}")
            self._op(place, f"{name} FLOPs", said, 0 if row is None else row.forward)
        said = count_setting(model, asked).flops.total
        self.figures.append(Figure(f"{name} FLOPs", said, found.flops.forward))

    def _cache(self, cache: Any, asked: Setting) -> None:
        """What the step read of earlier tokens: keys at hand, its own among them, and states."""
        total = 0
        sizes = asked.sizes()
        for place in self.watched.of(""):
            op, kind = place.step.op, kind_of(place.step.op)
            if kind.state is None:
                continue
            index = place.layer.block.ops.index(op)
            held = _held(cache, place, index)
            if held is None:
                continue
            if kind.storage == "state" and place.path in self.watched.shapes:
                held = 4 * torch.Size(self.watched.shapes[place.path]).numel()
            total += held
            extent = bind(place.layer.block, placed(place.layer.segment, sizes))
            dtype = asked.state if kind.kept == "state" else asked.cache
            self._op(place, "cache bytes", bytes_of(kind.state(op, extent), dtype), held)
        self.figures.append(Figure("cache bytes", count_setting(self.model, asked).cache.bytes, total, "B"))

    def training(self) -> None:
        """Forward and backward from all of the result."""
        asked = self.asked(self.tokens)
        found = measure(self.watched, self.ids, *self.sources, **self.further(asked), backward=True, allow=FREE)
        self._training("", found, asked, self.text)

    def tower(self, name: str, tower: Any) -> None:
        """What a model sees or hears: one image or sound of each sequence, forward and backward."""
        if tower.refused is not None:
            self.without.append(f"its tower is not run: {tower.refused}")
            return
        sight = self.model.sight
        asked = self.now = tower.setting(self.model, BATCH, PLACES * (1 if sight is None else sight.patches))
        first = tower.layers[0]
        axes = next(axes for read, axes, _ in first.reads if read == name)
        sizes = bind(first.block, placed(first.segment, asked.sizes())).sizes
        given = {name: torch.randn([int(sizes[axis]) for axis in axes])}
        only = replace(self.model, segments=tuple(tower.segments))
        with torch.no_grad():
            found = measure(self.watched, **given, allow=FREE)
        self._forward(name, found, asked, only, name)
        self._training(name, measure(self.watched, **given, backward=True, allow=FREE), asked, only)

    def _training(self, tower: str, found: Measurement, asked: Setting, model: Model) -> None:
        """Op by op and in all."""
        traced = [op for _, ops in trace(model, asked, self.model) for op in ops]
        rows = {row.path: row for row in found.modules}
        unknown = {op.op.kind for op in traced if op.saved is None}
        for place, said in zip(self.watched.of(tower), traced, strict=True):
            row = rows.get(f"ops.{place.path}")
            self._op(place, "training FLOPs forward", said.forward, 0 if row is None else row.forward)
            self._op(place, "training FLOPs backward", said.backward, 0 if row is None else row.backward)
            if said.kept is not None and not unknown.intersection(op.kind for op in said.segment.block.ops):
                self._op(place, "bytes kept for backward", said.kept, 0 if row is None else row.saved)
        step, of = trained(model, asked, traced), f"{tower} " if tower else ""
        self.figures.append(Figure(f"{of}training FLOPs forward", step.forward, found.flops.forward))
        self.figures.append(Figure(f"{of}training FLOPs backward", step.backward, found.flops.backward))
        if step.saved is None:
            self.without.append(f"what training keeps of {', '.join(step.unknown)} is not known")
            return
        self.figures.append(Figure(f"{of}saved activations", step.saved, _kept(step.saved, traced, found), "B"))

    def _op(self, place: Place, name: str, said: Any, measured: int) -> None:
        self.ops.append(OpFigure(place.layer.where(), str(place.step.op), name, int(said), measured))

    def failed(self, error: Exception) -> None:
        """An op that gave another shape than was said, or could not run. Raises what is no difference."""
        if self.watched.failed is not None:
            place, why = self.watched.failed
            self.ops.append(OpFigure(place.layer.where(), str(place.step.op), "runs", "yes", why))
            return
        if not isinstance(error, BuildError):
            raise error
        wrong = [figure for figure in self.watched.compared(self.now.sizes()) if not figure.alike]
        if not wrong:
            raise error
        self.ops += wrong


def _held(cache: Any, place: Place, index: int) -> int | None:
    """Bytes that an op left in a cache, None where it left nothing."""
    layer = place.layer
    key = (layer.segment.name, layer.segment.layers, layer.layer, index)
    for known, kept in cache.state.items():
        if known[: len(key)] == key:
            tensors = kept if isinstance(kept, tuple) else (kept,)
            return int(sum(one.numel() * one.element_size() for one in tensors))
    return None


def _kept(said: Any, traced: list[TrainedOp], found: Measurement) -> int:
    """Measured at its most, which may be before the end: by as much as ops keep for a while and no more."""
    most = found.saved.activations
    passing = sum(int(op.passing) for op in traced)
    return int(said) if said <= most <= said + passing else most


def _vocabulary(model: Model) -> int:
    """Rows of the smallest table that ids are looked up in."""
    sizes = [
        int(segment.block.sizes[op.weights[0].axes[0]])
        for segment in model.segments
        for op in segment.block.ops
        if op.weights and any(t.name == "ids" for t in op.activations)
    ]
    return min(sizes, default=2)
