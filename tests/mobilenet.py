"""MobileNet-V5, the tower of Gemma 3n, drawn from its stages alone, and a module of its parameters.

timm builds it, and is no package that the tests need: `stand_in` takes its place in `transformers` where it is not
installed. What is drawn here is compared with timm's where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

Shapes = dict[str, tuple[int, ...]]

NAME, VERSION = "mobilenetv5_300m_enc", "1.0.31"  # of timm, whose model has as many tensors and parameters
TENSORS, PARAMETERS = 548, 294_126_912
FLOPS = 871_482_949_632  # of one image of 768 x 768 pixels, counted by PyTorch while timm's model runs

ROWS = (384, 192, 96, 48, 24)  # of the first kernel and of each stage
WIDTHS = (64, 128, 256, 640, 1280)


def normed(name: str, kernel: tuple[int, ...], norm: str = "bn") -> Iterator[tuple[str, tuple[int, ...]]]:
    """A kernel and the gain of its norm."""
    yield f"{name}.conv.weight", kernel
    yield f"{name}.{norm}.weight", kernel[:1]


def edge(width: int, out: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Kernels of 3 x 3 to four times the channels, a matrix, two norms."""
    yield "conv_exp.weight", (4 * width, width, 3, 3)
    yield "bn1.weight", (4 * width,)
    yield "conv_pwl.weight", (out, 4 * width, 1, 1)
    yield "bn2.weight", (out,)


def inverted(width: int, out: int, times: int, start: int, mid: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Kernels of each channel and matrices."""
    if start:
        yield from normed("dw_start", (width, 1, start, start))
    yield from normed("pw_exp", (times * width, width, 1, 1))
    if mid:
        yield from normed("dw_mid", (times * width, 1, mid, mid))
    yield from normed("pw_proj", (out, times * width, 1, 1))
    yield "layer_scale.gamma", (out,)


def attention(width: int, heads: int, each: int, fewer: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A norm, queries of all heads, one key and one value, the output."""
    yield "norm.weight", (width,)
    yield "attn.query.proj.weight", (heads * each, width, 1, 1)
    for side in ("key", "value"):
        if fewer:
            yield f"attn.{side}.down_conv.weight", (width, 1, 3, 3)
            yield f"attn.{side}.norm.weight", (width,)
        yield f"attn.{side}.proj.weight", (each, width, 1, 1)
    yield "attn.output.proj.weight", (width, heads * each, 1, 1)
    yield "layer_scale.gamma", (width,)


def block(stage: int, index: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """One block of a stage, by its place."""
    width = WIDTHS[stage + (index > 0)]
    out = WIDTHS[stage + 1]
    if stage == 0:
        yield from edge(width, out)
    elif index == 0:
        yield from inverted(width, out, 6, 3 if stage == 1 else 5, 5)
    elif stage == 1:
        yield from inverted(width, out, 4, 5 if index % 2 else 3, 0)
    elif stage == 2 and index < 8:
        yield from inverted(width, out, 4, 5, 0)
    elif index % 2:
        yield from attention(width, *((12, 64) if stage == 2 else (16, 96)), fewer=stage == 2)
    else:
        yield from inverted(width, out, 1 if (stage, index) == (2, 8) else 2, 0, 0)


BLOCKS = (3, 5, 37, 39)


@lru_cache(maxsize=1)
def shapes() -> Shapes:
    """Every parameter by its name in timm's model."""
    found: Shapes = {"conv_stem.conv.weight": (64, 3, 3, 3), "conv_stem.conv.bias": (64,), "conv_stem.bn.weight": (64,)}
    for stage, many in enumerate(BLOCKS):
        for index in range(many):
            found |= {f"blocks.{stage}.{index}.{name}": shape for name, shape in block(stage, index)}
    both = WIDTHS[3] + WIDTHS[4]
    found |= dict(normed("msfa.ffn.pw_exp", (2 * both, both, 1, 1)))
    found |= dict(normed("msfa.ffn.pw_proj", (2048, 2 * both, 1, 1)))
    return {**found, "msfa.norm.weight": (2048,)}


def made_at(name: str) -> int:
    """Rows and columns of what a kernel makes: its stage's, or those of the stage before where no stride came yet."""
    first, *rest = name.split(".")
    if first == "conv_stem":
        return ROWS[0]
    if first == "msfa":
        return ROWS[3]
    stage, index = int(rest[0]), int(rest[1])
    if index == 0 and rest[2] in ("dw_start", "pw_exp"):
        return ROWS[stage]
    shorter = stage == 2 and rest[2] == "attn" and rest[3] in ("key", "value")
    return ROWS[stage + 1] // (2 if shorter else 1)


def flops() -> int:
    """2 for each element of a kernel wherever it is applied, and for scores and values of the attention."""
    kernels = (
        (made_at(name), shape[0] * shape[1] * shape[2] * shape[3]) for name, shape in shapes().items() if len(shape) > 1
    )
    total = sum(2 * rows * rows * elements for rows, elements in kernels)
    for rows, keys, heads, each, times in ((48, 24, 12, 64, 14), (24, 24, 16, 96, 19)):
        total += times * 2 * 2 * heads * each * rows * rows * keys * keys
    return total


def has_timm() -> bool:
    """True where timm can be imported."""
    from transformers.utils import is_timm_available

    return bool(is_timm_available())


@lru_cache(maxsize=1)
def stand_in() -> None:
    """Have `transformers` build a module of these parameters where it would ask timm for the model."""
    if has_timm():
        return
    import torch
    import transformers
    from transformers.models.gemma3n.configuration_gemma3n import Gemma3nVisionConfig

    class Tower(transformers.PreTrainedModel):  # type: ignore[misc]
        config_class = Gemma3nVisionConfig

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.timm_model = torch.nn.Module()
            for name, shape in shapes().items():
                *path, last = name.split(".")
                holder = self.timm_model
                for part in path:
                    if part not in holder._modules:
                        holder.add_module(part, torch.nn.Module())
                    holder = holder.get_submodule(part)
                holder.register_parameter(last, torch.nn.Parameter(torch.empty(shape)))
            self.post_init()

    transformers.AutoModel.register(Gemma3nVisionConfig, Tower, exist_ok=True)
