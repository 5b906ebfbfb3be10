"""How much of a machine's peak a training run uses: the figures a training loop needs."""

from __future__ import annotations

from typing import Any

from assay.readings.count import Count, count
from assay.records import dataclass
from assay.size import Size, lift, rate, shown
from assay.spec import Block, Model

TRAINING = 3  # a training step's FLOPs over its forward pass's: backward computes two products for each of forward's


@dataclass(frozen=True)
class Utilization:
    """Model FLOPs utilization (Chowdhery et al. 2022): the model's own work over what the machine could do.

    `value` is a fraction of the peak; `flops_per_token` are forward FLOPs per token of a sequence of `context`
    tokens under `convention`, a third of a training step's. Recomputed work is not in it.
    """

    value: Any
    flops_per_token: Any
    context: Size
    convention: str

    def __str__(self) -> str:
        return f"{shown(self.value, '.1%')} MFU ({self.convention}, context {shown(self.context, ',')})"

    def __format__(self, spec: str) -> str:
        """With a format of numbers the value alone, `f"{u:.1%}"`; with none as in a report."""
        return format(self.value, spec) if spec else str(self)

    def __float__(self) -> float:
        return float(self.value)


def flops_per_token(model: Model | Block, *, context: object, convention: str = "matmul", **settings: Any) -> Any:
    """Forward FLOPs per token of a sequence of `context` tokens: a prefill of them, divided by their number.

    An int where that divides. A training step is three times that. Other settings are those of `count`.
    Raises SettingError and SizeError.
    """
    return _prefill(model, context, convention, settings).flops_per_token


def mfu(
    model: Model | Block,
    *,
    tokens_per_second: Any,
    peak_flops: Any,
    context: object,
    gpus: object = 1,
    convention: str = "matmul",
    **settings: Any,
) -> Utilization:
    """Model FLOPs utilization: 3 x forward FLOPs per token x tokens per second / (gpus x peak).

    `tokens_per_second` is that of all `gpus` together, `peak_flops` one GPU's in FLOP/s, `context` the tokens of a
    training sequence. Raises SettingError and SizeError.
    """
    counted = _prefill(model, context, convention, settings)
    spent = TRAINING * counted.flops_per_token * rate(tokens_per_second, "tokens_per_second")
    peak = rate(peak_flops, "peak_flops") * lift(gpus, "gpus")
    return Utilization(spent / peak, counted.flops_per_token, counted.setting.context, counted.setting.convention)


def _prefill(model: Model | Block, context: object, convention: str, settings: dict[str, Any]) -> Count:
    return count(model, tokens=lift(context, "context"), convention=convention, **settings)
