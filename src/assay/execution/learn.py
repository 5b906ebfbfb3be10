"""Training: AdamW on batches that follow from the number of the step, saved and taken up again where it stopped."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import BuildError, SettingError
from assay.execution.entry import need_torch
from assay.records import dataclass
from assay.report.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

    from assay.execution.module import Executable

IGNORED = -100  # a target that is none: padding, or what was given
WEIGHTS, OPTIMIZER, RUN = "model.safetensors", "optimizer.safetensors", "training.json"


@dataclass(frozen=True)
class Batch:
    """What one step learns from: `targets` `[b n]` should follow each of `tokens` `[b n]`; -100 is ignored.

    `source` `[b m]` is an encoder-decoder's; the masks are true where a token is no padding.
    """

    tokens: Tensor
    targets: Tensor
    source: Tensor | None = None
    mask: Tensor | None = None
    source_mask: Tensor | None = None


@dataclass(frozen=True)
class Recipe:
    """How to train: AdamW (Loshchilov & Hutter 2019), a linear warm-up, then half a cosine down to `floor` of the rate.

    Matrices decay, gains and biases do not; gradients are clipped to a norm.
    """

    rate: float = 3e-3
    warmup: int = 20
    floor: float = 0.1
    decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Raise SettingError for what no run can be made by."""
        betas = all(0 <= beta < 1 for beta in self.betas)
        for name, allowed, says in (
            ("rate", 0 < self.rate < math.inf, "above 0"),
            ("clip", self.clip > 0, "above 0"),
            ("warmup", self.warmup >= 0, "at least 0"),
            ("decay", self.decay >= 0, "at least 0"),
            ("floor", 0 <= self.floor <= 1, "from 0 to 1"),
            ("betas", betas, "from 0 on and below 1"),
        ):
            if not allowed:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be {says}")

    def at(self, step: int, steps: int) -> float:
        """The learning rate of a step."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        share = (step - self.warmup) / max(1, steps - self.warmup)
        return self.rate * (self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * share)))


@dataclass(frozen=True)
class History:
    """The loss of each step: nats per target, before the step was taken."""

    losses: tuple[float, ...]

    def mean(self, last: int = 20) -> float:
        """Of the last steps."""
        taken = self.losses[-last:]
        return sum(taken) / max(1, len(taken))


def shifted(targets: Tensor, start: int) -> Tensor:
    """A decoder's input for `targets` `[b n]`: a start token, then all targets but the last."""
    tokens = targets.roll(1, 1)
    tokens[:, 0] = start
    return tokens


def learn(
    module: Executable,
    batches: Callable[[int], Batch],
    steps: int,
    *,
    recipe: Recipe | None = None,
    save: str | Path | None = None,
    every: int | None = None,
    resume: bool = False,
) -> History:
    """Train a module for `steps` steps on `batches(0)`, `batches(1)`, …; returns the losses.

    A run depends only on the module's weights and the batches, which should depend only on their number. `save` is a
    folder for weights, optimizer state and losses, written at the end and after every `every` steps; with `resume` the
    run continues from there as if it had never stopped. Shows its progress on a terminal.
    Raises SettingError, and BuildError if the folder holds no such run or the loss is not a number.
    """
    need_torch()
    from torch.nn.utils import clip_grad_norm_

    from assay.execution.module import Executable

    if not isinstance(module, Executable):
        raise BuildError(f"it trains what assay.build made, not {type(module).__name__}")
    how = recipe or Recipe()
    if steps < 1 or (every is not None and every < 1):
        raise SettingError(f"steps is {steps}, every {every}; at least 1 is allowed")
    if (resume or every is not None) and save is None:
        raise SettingError("resume and every need a folder: save=...")
    optimizer = _optimizer(module, how)
    losses: list[float] = []
    if resume and save is not None:
        losses = _take_up(module, optimizer, Path(save), steps, how)
    bar = Progress(f"{module.description.name}: training")
    module.train()
    try:
        for step in range(len(losses), steps):
            for group in optimizer.param_groups:
                group["lr"] = how.at(step, steps)
            loss = loss_of(module, batches(step))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            clip_grad_norm_(module.parameters(), how.clip)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise BuildError(f"the loss of step {step} is {value}: the run ends here")
            optimizer.step()
            losses.append(value)
            if save is not None and every is not None and (step + 1) % every == 0:
                _keep(module, optimizer, Path(save), losses, steps, how)
            bar(step + 1, steps)
    finally:
        bar.end()
        module.eval()
    if save is not None:
        _keep(module, optimizer, Path(save), losses, steps, how)
    return History(tuple(losses))


def loss_of(module: Executable, batch: Batch) -> Tensor:
    """The mean cross-entropy of a batch's targets, in nats."""
    from torch.nn import functional

    if not isinstance(batch, Batch):
        raise BuildError(f"a batch is a Batch, not {type(batch).__name__}")
    logits = module(batch.tokens, batch.source, mask=batch.mask, source_mask=batch.source_mask)
    if batch.targets.shape != logits.shape[:2]:
        here, should = list(batch.targets.shape), list(logits.shape[:2])
        raise BuildError(f"targets have the shape {here}; there are logits of {should}")
    return functional.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=IGNORED)


def _optimizer(module: Executable, how: Recipe) -> Any:
    from torch.optim import AdamW

    parameters = list(module.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": how.decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return AdamW([group for group in groups if group["params"]], lr=how.rate, betas=how.betas)


def _keep(module: Executable, optimizer: Any, folder: Path, losses: list[float], steps: int, how: Recipe) -> None:
    """Write the run to a folder; what was there stays whole until the new is."""
    import torch
    from safetensors.torch import save_file

    from assay.execution.weights import save_weights

    folder.mkdir(parents=True, exist_ok=True)
    called = {id(parameter): name for name, parameter in module.named_parameters()}
    held: dict[str, Tensor] = {}
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            held[f"{called[id(parameter)]}:{key}"] = torch.as_tensor(value).detach().clone().contiguous()
    of = {"step": str(len(losses))}
    save_weights(module, folder / f"{WEIGHTS}.new", of)
    save_file(held, folder / f"{OPTIMIZER}.new", of)
    said = json.dumps({"step": len(losses), "steps": steps, "recipe": _said(how), "losses": losses})
    (folder / f"{RUN}.new").write_text(said, encoding="utf-8")
    for name in (WEIGHTS, OPTIMIZER, RUN):
        os.replace(folder / f"{name}.new", folder / name)


def _said(how: Recipe) -> dict[str, Any]:
    """A recipe as JSON has it."""
    from dataclasses import asdict

    said: dict[str, Any] = json.loads(json.dumps(asdict(how)))
    return said


def _take_up(module: Executable, optimizer: Any, folder: Path, steps: int, how: Recipe) -> list[float]:
    """Weights and the optimizer's state as a folder keeps them; the losses so far."""
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load_file

    from assay.execution.weights import load_weights

    try:
        run = json.loads((folder / RUN).read_text(encoding="utf-8"))
        losses = [float(value) for value in run["losses"]]
        before = int(run["steps"])
        held: Mapping[str, Tensor] = load_file(folder / OPTIMIZER)
        of = []
        for name in (WEIGHTS, OPTIMIZER):
            with safe_open(folder / name, framework="pt") as file:
                of.append(int(file.metadata()["step"]))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise BuildError(f"{folder}: no run is kept there: {error}") from None
    if of != [len(losses)] * 2:
        raise BuildError(
            f"{folder}: its files are of different steps, {of[0]}, {of[1]} and {len(losses)}: one was lost"
        )
    if before != steps:
        raise BuildError(f"{folder}: a run of {before} steps is kept there, whose rates are not those of {steps}")
    if run.get("recipe") != _said(how):
        raise BuildError(f"{folder}: a run by {run.get('recipe')} is kept there, not by {_said(how)}")
    load_weights(module, folder / WEIGHTS)
    for name, parameter in module.named_parameters():
        found = {key.rpartition(":")[2]: value for key, value in held.items() if key.rpartition(":")[0] == name}
        if found:
            optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in found.items()}
    return losses
