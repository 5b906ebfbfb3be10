"""The public implementation of the same config: at full size, on the meta device, where nothing is computed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from assay.counter.run import measure
from assay.errors import AssayError
from assay.execution.storage import names
from assay.kinds import kind_of
from assay.readings.count import count
from assay.readings.tensors import tensors
from assay.readings.training import training
from assay.spec import Model
from assay.verification.result import Figure, OpFigure, Proof

BATCH, TOKENS = 2, 16


def installed() -> Any:
    """`transformers`, or None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import transformers
        transformers.logging.set_verbosity_error()
    except ImportError:
        return None
    return transformers


def prove(model: Model, config: Mapping[str, Any]) -> Proof:
    """Parameters by name, FLOPs of a prefill and of a decode step, of the library's model of a config and of ours."""
    transformers = installed()
    name = f"transformers {transformers.__version__}, {model.cls}"
    try:
        net = _built(transformers, model, config)
    except Exception as error:  # whatever a public implementation makes of a config
        return Proof(name, "on the meta device, at full size", (), (), (f"it cannot be built: {_line(error)}",))
    tokens = TOKENS if model.positions is None else min(TOKENS, model.positions - 1)
    made = _Theirs(model, net, tokens)
    made.parameters()
    made.tried("prefill", made.prefill)
    if "past" in model.settings:
        made.tried("decode step", made.step)
    made.tried("training step", made.training)
    return Proof(
        name,
        f"on the meta device, at full size, {BATCH} sequences of {tokens} tokens, attention as products",
        tuple(made.figures),
        tuple(made.names),
        tuple(made.notes),
    )


def _built(transformers: Any, model: Model, config: Mapping[str, Any]) -> Any:
    """In float32; in bf16 where there are experts, whose grouped products are of 16 bits alone on the meta device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**config)
        with torch.device("meta"):
            return getattr(transformers, model.cls)._from_config(made).to(_dtype(model)).eval()


def _dtype(model: Model) -> torch.dtype:
    parts = {op.part.partition(".")[0] for segment in model.segments for op in segment.block.ops}
    return torch.bfloat16 if "experts" in parts else torch.float32


class _Theirs:
    """The library's model, and what has been compared."""

    def __init__(self, model: Model, net: Any, tokens: int) -> None:
        self.model = model
        self.net = net
        self.tokens = tokens
        self.figures: list[Figure] = []
        self.names: list[OpFigure] = []
        self.notes: list[str] = []
        ops = (op for segment in model.segments for op in segment.block.ops)
        self.recurrent = any(kind_of(op).kept == "state" for op in ops)

    def tried(self, what: str, compare: Callable[[], None]) -> None:
        """Compare something, or note why it could not be."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compare()
        except AssayError as error:
            self.notes.append(f"{what}: {error}")
        except Exception as error:  # code of others: some of it asks for values, which meta tensors have not
            self.notes.append(f"{what}: it does not run on the meta device: {_line(error)}")

    def parameters(self) -> None:
        """Every parameter by its name, and their total."""
        theirs = {name: tuple(p.shape) for name, p in self.net.named_parameters(remove_duplicate=False)}
        ours: dict[str, tuple[int, ...]] = {}
        for entry in tensors(self.model):
            if not entry.buffer:
                ours |= {name: tuple(map(int, entry.shape)) for name, _ in names(entry)}
        for name, shape in ours.items():
            found = theirs.get(name)
            self.names.append(OpFigure("", name, "parameter", str(list(shape)), str(list(found) if found else None)))
        total = sum(p.numel() for p in self.net.parameters())
        self.figures.append(Figure("parameters", count(self.model).parameters.total, total))

    def _inputs(self, tokens: int) -> dict[str, Any]:
        ids = torch.zeros((BATCH, tokens), dtype=torch.long, device="meta")
        if not self.net.config.is_encoder_decoder:
            return {"input_ids": ids}
        source = torch.zeros((BATCH, self.tokens), dtype=torch.long, device="meta")
        return {"input_ids": source, "decoder_input_ids": ids}

    def prefill(self) -> None:
        """All tokens at once."""
        with torch.no_grad():
            found = measure(self.net, **self._inputs(self.tokens))
        self._flops("prefill FLOPs", self._said(self.tokens), found.flops.forward)

    def step(self) -> None:
        """One token behind a cache."""
        with torch.no_grad():
            held = self.net(**self._inputs(self.tokens), use_cache=True)
            inputs = self._inputs(1)
            if self.net.config.is_encoder_decoder:
                del inputs["input_ids"]
                inputs["encoder_outputs"] = (held.encoder_last_hidden_state,)
            found = measure(self.net, **inputs, past_key_values=held.past_key_values, use_cache=True)
        self._flops("decode step FLOPs", self._said(1, self.tokens), found.flops.forward)

    def _flops(self, name: str, said: int, measured: int) -> None:
        """A figure; of scans a note, for ours are counted in recurrent form, and others work in chunks."""
        if self.recurrent:
            self.notes.append(f"{name}: {measured:,} in chunks or element by element, {said:,} in recurrent form")
        else:
            self.figures.append(Figure(name, said, measured))

    def _said(self, tokens: int, past: int = 0) -> int:
        named: dict[str, Any] = {"source": self.tokens} if "source" in self.model.settings else {}
        return int(count(self.model, BATCH, tokens, past, **named).flops.total)

    def training(self) -> None:
        """A training step; of what autograd keeps a difference that is stated, and is no mistake of either."""
        named: dict[str, Any] = {"source": self.tokens} if "source" in self.model.settings else {}
        said = training(self.model, BATCH, self.tokens, **named)
        found = measure(self.net, **self._inputs(self.tokens), backward=True)
        self._flops("training FLOPs backward", int(said.backward), found.flops.backward)
        if said.saved is not None and _dtype(self.model) == torch.float32:
            kept = found.saved.activations
            self.notes.append(
                f"saved activations: {kept:,} B, of our execution {int(said.saved):,} B"
                + ("" if self.recurrent else ": no difference of what is computed, but of what is copied for it")
            )


def _line(error: Exception) -> str:
    """The first line of what an exception says."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
