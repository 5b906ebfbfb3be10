"""Text, token by token: a pass over what is given, then one over each new token, with a cache or over all again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from assay.errors import BuildError, SettingError

if TYPE_CHECKING:
    from assay.execution.module import Executable


def generate(
    module: Executable,
    tokens: Tensor,
    new: int,
    source: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    source_mask: Tensor | None = None,
    temperature: float = 0.0,
    top: int | None = None,
    seed: int | None = None,
    stop: int | Collection[int] = (),
    cached: bool = True,
    progress: Callable[[int, int], None] | None = None,
    **given: Tensor,
) -> Tensor:
    """`tokens` `[b n]` and up to `new` more, `[b n + new]`; a text that has ended goes on with its stop token.

    `temperature` 0 takes the likeliest token each time; above, tokens are drawn, from the `top` likeliest where set,
    the same for the same `seed`. `cached=False` runs every pass over all tokens. `mask` is true where a token is no
    padding, which must stand before the text. `given` are further inputs of the first pass, such as `pixels` of images
    whose tokens are in the text. `progress` is told how many of how many tokens are there.
    Raises SettingError and BuildError.
    """
    if new < 0 or temperature < 0 or (top is not None and top < 1):
        raise SettingError(f"new is {new}, temperature {temperature}, top {top}; at least 0, 0 and 1 are allowed")
    if cached and "past" not in module.description.settings:
        raise BuildError(f"{module.description.name} keeps nothing from pass to pass: it does not generate")
    ends = torch.tensor(sorted({stop} if isinstance(stop, int) else set(stop)), device=tokens.device)
    rng = None if seed is None else torch.Generator(device=tokens.device).manual_seed(seed)
    with torch.inference_mode():
        cache = module.cache() if cached else None
        there = None if mask is None else mask.to(torch.bool)
        text, fresh = tokens, tokens
        over = torch.zeros(tokens.shape[0], dtype=torch.bool, device=tokens.device)
        for made in range(new):
            taken = fresh if cached else text
            positions = None if there is None else (there.long().cumsum(-1) - 1).clamp(min=0)[:, -taken.shape[1] :]
            logits = module(
                taken,
                source,
                cache=cache,
                mask=there,
                source_mask=source_mask,
                positions=positions,
                logits="last",
                **(given if made == 0 or not cached else {}),
            )[:, -1]
            fresh = _choose(logits, temperature, top, rng)
            if len(ends):
                fresh = torch.where(over[:, None], text[:, -1:], fresh)
                over |= torch.isin(fresh[:, 0], ends)
            text = torch.cat((text, fresh), 1)
            if there is not None:
                there = torch.cat((there, torch.ones_like(fresh, dtype=torch.bool)), 1)
            if progress is not None:
                progress(made + 1, new)
            if len(ends) and bool(over.all()):
                break
    return text


def _choose(logits: Tensor, temperature: float, top: int | None, rng: torch.Generator | None) -> Tensor:
    """One token for each text, [b 1]."""
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    scores = logits.float() / temperature
    if top is not None and top < scores.shape[-1]:
        least = scores.topk(top, -1).values[:, -1:]
        scores = scores.masked_fill(scores < least, -torch.inf)
    return torch.multinomial(scores.softmax(-1), 1, generator=rng)
