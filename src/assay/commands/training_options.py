"""The options that commands of memory and training share: a step, what serves, the machines."""

from __future__ import annotations

import re

from assay.commands.options import LATENT, Option, Options, share, size
from assay.errors import SettingError
from assay.report.units import parse_size, shorten


def again(text: str, option: str) -> int | str:
    """What runs again in the backward pass: a word, or how many layers at once. Raises SettingError."""
    return parse_size(text, option) if text[:1].isdecimal() else text


def dropout(text: str, option: str) -> float:
    """The rate of a dropout, 0.1 or 10%, 0 for none. Raises SettingError."""
    if re.fullmatch(r"(0+\.?0*|\.0+)%?", text.strip()):
        return 0.0
    try:
        return float(share(text, option))
    except SettingError:
        said = f"{option} is {shorten(text)!r}; it must be a rate from 0 to below 1, such as 0.1 or 10%"
        raise SettingError(said) from None


SEQUENCE: Options = {
    "context": Option("C", "tokens of a sequence (default 2,048, or the rows of a shorter position table)", size()),
}
KERNEL: Options = {"attention": Option("HOW", "in one kernel: fused (default), or plain, op by op")}
SERVED: Options = {
    "chunk": Option("N", "tokens of a prompt read at a time: chunked prefill (default: all)", size()),
    "page": Option("N", "tokens of a page, where the cache is kept in pages", size()),
    "logits": Option("WHICH", "positions that get logits: last (default) or all"),
    **LATENT,
}
AGAIN: Options = {
    "recompute": Option("HOW", "what runs again: none (default), attention, layer, or 4 layers at once", again),
}
OPTIMIZER: Options = {"optimizer": Option("NAME", "adamw (default), adamw-8bit, adafactor, muon, lion, sgd, …")}
STEP: Options = {
    "precision": Option("NAME", "bf16 (default), autocast, mixed, megatron, fp32, …"),
    **OPTIMIZER,
    **AGAIN,
    "lora": Option("R", "adapters of rank R trained alone; --weights is then the format of the rest", size()),
    "accumulation": Option("N", "passes accumulated before a step (default 1)", size()),
    "logits_chunk": Option("N", "tokens of a sequence that head and loss take at a time (default: all)", size()),
    "dropout": Option("P", "its rate, where the implementation has one (default 0)", dropout),
}
GPU: Options = {"gpu": Option("NAME", "a chip of `assay gpus`: h100, a100, rtx-4090, tpu-v5p, …")}
