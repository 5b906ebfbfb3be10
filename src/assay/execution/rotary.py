"""Rotary positions: angles by position, made once a pass, and pairs turned by them (Su et al. 2021).

A frequency is how far a pair turns from one position to the next. What stretches a context changes frequencies, some
of them by the length of the sequence, and may scale cosines and sines by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from assay.errors import BuildError
from assay.execution.sites import Call, Site
from assay.kinds.compress import slots_of
from assay.records import dataclass

Turn = Callable[[Call, Tensor], Tensor]


@dataclass(frozen=True)
class Spectrum:
    """Frequencies of the pairs, and a factor of cosines and sines.

    Where a sequence is longer than `limit`, those that `beyond` makes of its length.
    """

    frequencies: Tensor
    factor: float = 1.0
    limit: int | None = None
    beyond: Callable[[Tensor], Tensor] | None = None

    def of(self, call: Call) -> Tensor:
        """The frequencies of a pass."""
        if self.limit is None or self.beyond is None:
            return self.frequencies
        if call.positions is None or call.positions.is_meta:
            length = call.past + call.tokens
            return self.beyond(torch.tensor(length)) if length > self.limit else self.frequencies
        longest = call.positions.max().cpu() + 1
        return torch.where(longest > self.limit, self.beyond(longest), self.frequencies)


@dataclass(frozen=True)
class Table:
    """What a scaling is made of: how many elements of a head of `head` are turned, the base, the config's values."""

    kind: str
    width: int
    head: int
    theta: float
    values: Mapping[str, Any]
    trained: int | None

    def number(self, name: str, default: float | None = None) -> float:
        """A value of the table. Raises BuildError where there is none."""
        value = self.values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BuildError(f"rotary scaling {self.kind} needs {name}, a number")
        return value

    def list(self, name: str) -> Tensor:
        """A number for each pair. Raises BuildError where there are not as many."""
        value = self.values.get(name)
        pairs = (self.width + 1) // 2
        if not isinstance(value, tuple) or len(value) != pairs:
            raise BuildError(f"rotary scaling {self.kind} needs {name}, a list of {pairs} numbers")
        return torch.tensor(value, dtype=torch.float32, device="cpu")

    @property
    def longest(self) -> float:
        """The context that the config claims."""
        return self.number("max_position_embeddings", self.trained)

    @property
    def original(self) -> float:
        """The context before it was stretched: the one that the config claims where it says no other."""
        known = self.values.get("original_max_position_embeddings")
        return self.longest if known is None else self.number("original_max_position_embeddings")

    def plain(self, theta: float | Tensor | None = None, width: int | None = None) -> Tensor:
        """theta^(-2 j / width) for pair j."""
        powers = torch.arange(0, self.width, 2, dtype=torch.float32, device="cpu") / (width or self.width)
        return 1.0 / ((self.theta if theta is None else theta) ** powers)


def _default(t: Table) -> Spectrum:
    return Spectrum(t.plain())


def _linear(t: Table) -> Spectrum:
    """Positions divided by a factor (Chen et al. 2023)."""
    return Spectrum(t.plain() / t.number("factor"))


def _dynamic(t: Table) -> Spectrum:
    """A base that grows with the sequence beyond the trained length (bloc97 & emozilla 2023, dynamic NTK)."""
    factor, longest = t.number("factor"), t.longest
    if t.width < 4:
        raise BuildError("rotary scaling dynamic turns at least two pairs")

    def beyond(length: Tensor) -> Tensor:
        length = torch.clamp(length, min=int(longest))
        return t.plain(t.theta * ((factor * length / longest) - (factor - 1)) ** (t.width / (t.width - 2)))

    return Spectrum(t.plain(), 1.0, int(longest), beyond)


def _doubled(t: Table) -> Spectrum:
    """The same in steps: a base for each doubling of the trained length (Bai et al. 2023, Qwen's dynamic NTK)."""
    longest = t.longest
    if t.width < 4:
        raise BuildError("rotary scaling dynamic_doubled turns at least two pairs")

    def beyond(length: Tensor) -> Tensor:
        doublings = torch.ceil(torch.log2(torch.clamp(length, min=int(longest)) / longest))
        return t.plain(t.theta * (2.0 ** (doublings + 1) - 1) ** (t.width / (t.width - 2)))

    return Spectrum(t.plain(), 1.0, int(longest), beyond)


def _yarn(t: Table) -> Spectrum:
    """Fast pairs as they are, slow ones by a factor, a ramp between them (Peng et al. 2023)."""
    original = t.original
    factor = t.number("factor", t.longest / original)

    def grown(by: float = 1.0) -> float:
        return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1.0

    attention = t.values.get("attention_factor")
    if attention is None:
        both = t.number("mscale", 0), t.number("mscale_all_dim", 0)
        attention = grown(both[0]) / grown(both[1]) if both[0] and both[1] else grown()

    def pair(rotations: float) -> float:
        return t.width * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(t.theta))

    low, high = pair(t.number("beta_fast", 32) or 32), pair(t.number("beta_slow", 1) or 1)
    if t.values.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, t.width - 1)
    pairs = torch.arange(t.width // 2, dtype=torch.float32, device="cpu")
    ramp = torch.clamp((pairs - low) / (high - low if high != low else 0.001), 0, 1)
    kept = 1 - ramp
    turns = t.theta ** (torch.arange(0, t.width, 2, dtype=torch.float32, device="cpu") / t.width)
    return Spectrum(1.0 / (factor * turns) * (1 - kept) + 1.0 / turns * kept, float(attention))


def _longrope(t: Table) -> Spectrum:
    """A factor for each pair, other ones beyond the original length (Ding et al. 2024)."""
    original = t.original
    factor = t.number("factor", t.longest / original)
    attention = t.values.get("attention_factor")
    if attention is None:
        attention = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    powers = torch.arange(0, t.width, 2, device="cpu").float() / t.width
    short, long = (1.0 / (t.list(f"{name}_factor") * t.theta**powers) for name in ("short", "long"))
    return Spectrum(short, float(attention), int(original), lambda length: long)


def _llama3(t: Table) -> Spectrum:
    """Slow pairs divided by a factor, fast ones as they are, those between them mixed (Llama 3 Team 2024)."""
    low, high, factor = (t.number(name) for name in ("low_freq_factor", "high_freq_factor", "factor"))
    plain, original = t.plain(), t.original
    length = 2 * math.pi / plain
    scaled = torch.where(length > original / low, plain / factor, plain)
    share = (original / length - low) / (high - low)
    mixed = (1 - share) * scaled / factor + share * scaled
    between = (length >= original / high) & (length <= original / low)
    return Spectrum(torch.where(between, mixed, scaled))


def _proportional(t: Table) -> Spectrum:
    """The fastest pairs of a whole head, the others not turned at all (Gemma 4)."""
    turned = t.plain(width=t.head)[: t.width // 2]
    still = torch.zeros(t.head // 2 - len(turned), dtype=torch.float32, device="cpu")
    return Spectrum(torch.cat((turned, still)) / t.number("factor", 1.0))


SCALINGS: dict[str, Callable[[Table], Spectrum]] = {
    "default": _default,
    "mrope": _default,  # which is about positions, not frequencies
    "linear": _linear,
    "dynamic": _dynamic,
    "dynamic_doubled": _doubled,
    "yarn": _yarn,
    "longrope": _longrope,
    "su": _longrope,  # its first name
    "llama3": _llama3,
    "proportional": _proportional,
}


def rotation(site: Site) -> Turn:
    """How the last axis of an operand is turned, its first `width` elements, each pair by its own frequency."""
    op = site.op
    axes = op.axes
    head = site.size(axes[-1])
    width = site.value("width") or head
    values = dict(op.attr("scaling") or ())
    kind = values.get("rope_type") or values.get("type") or "default"
    if kind not in SCALINGS:
        raise site.refuse(f"rotary scaling {kind} is not run; {', '.join(SCALINGS)} are")
    style = op.attr("style")
    if style not in STYLES:
        raise site.refuse(f"{style} rotary positions are not run yet", f"known: {', '.join(filter(None, STYLES))}")
    theta = site.value("theta") or 10000.0
    try:
        spectrum = SCALINGS[kind](Table(kind, width, head, theta, values, site.model.trained))
        pairs = len(spectrum.frequencies)
        if not bool(spectrum.frequencies.isfinite().all()):
            raise ValueError("some are not finite")
        mixed = _mixed(values, pairs)
    except BuildError as error:
        raise site.refuse(str(error)) from None
    except (ArithmeticError, ValueError, TypeError) as error:
        raise site.refuse(f"rotary scaling {kind} has values that give no frequencies: {error}") from None
    if 2 * pairs > head:
        raise site.refuse(f"{head} elements are not turned in pairs")
    turned, spread, sign = STYLES[style]
    last = style in LAST
    at, name, place = _places(site, axes)
    ones = (1,) * (len(axes) - 2 - axes.index(at))  # axes between the tokens and the width
    whole = (kind, width, head, theta, op.attr("scaling"), style, len(ones), site.model.trained, name)
    key = _KNOWN.setdefault(whole, ("rope", len(_KNOWN)))

    def angles(call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
        angle = place(call, x).to(torch.float32)[..., None] * spectrum.of(call).to(x.device)
        angle = angle if angle.dim() < 4 else mixed(angle)
        angle = spread(angle)
        angle = angle.reshape(*angle.shape[:-1], *ones, 2 * pairs)
        return (angle.cos() * spectrum.factor).to(x.dtype), (angle.sin() * (sign * spectrum.factor)).to(x.dtype)

    def run(call: Call, x: Tensor) -> Tensor:
        cos, sin = call.once((key, x.dtype), lambda: angles(call, x))
        if 2 * pairs == head:
            return x * cos + turned(x) * sin
        if last:
            rest, part = x[..., : head - 2 * pairs], x[..., head - 2 * pairs :]
            return torch.cat((rest, part * cos + turned(part) * sin), -1)
        part, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
        return torch.cat((part * cos + turned(part) * sin, rest), -1)

    return run


def _places(site: Site, axes: tuple[str, ...]) -> tuple[str, Any, Callable[[Call, Tensor], Tensor]]:
    """The axis that has positions, what tells them from others, and how to get them.

    They are those of tokens, or of the first token of each window that an entry stands for.
    """
    for axis in axes:
        if axis in ("n", "m", "c"):
            return axis, None, lambda call, x: call.where()
        made = site.makers(axis)
        if made and made[0].kind == "pool":
            rate, dim = site.size(slots_of(made[0])[1]), axes.index(axis)

            def entries(call: Call, x: Tensor, rate: int = rate, dim: int = dim) -> Tensor:
                first = call.past // rate
                return torch.arange(first, first + x.shape[dim], device=x.device) * rate

            return axis, rate, entries
    raise site.refuse("none of its axes has positions")


_KNOWN: dict[Any, tuple[str, int]] = {}  # a short name for all that a pass's angles depend on


def _mixed(values: Mapping[str, Any], pairs: int) -> Callable[[Tensor], Tensor]:
    """Angles [3 b n pairs] of a position in time, height and width, each pair by one of them (Wang et al. 2024).

    Either sections of pairs behind each other, or one pair of each in turn as long as there are any left.
    """
    sections = values.get("mrope_section")
    if sections is None:

        def refuse(angle: Tensor) -> Tensor:
            raise BuildError(
                "positions in time, height and width: the config has no mrope_section that shares pairs out"
            )

        return refuse
    if len(sections) < 3 or sum(sections) != pairs:
        raise BuildError(f"mrope_section shares out {sum(sections)} pairs of {pairs}")
    which = torch.repeat_interleave(torch.arange(len(sections), device="cpu") % 3, torch.tensor(sections, device="cpu"))
    if values.get("mrope_interleaved"):
        which = torch.zeros(pairs, dtype=torch.int64, device="cpu")
        for axis in (1, 2):
            which[axis : 3 * sections[axis] : 3] = axis

    def mix(angle: Tensor) -> Tensor:
        index = which.to(angle.device).expand(1, *angle.shape[1:])
        return angle.gather(0, index).squeeze(0)

    return mix


def _halves(x: Tensor) -> Tensor:
    """The first half beside minus the second, swapped."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def _neighbours(x: Tensor) -> Tensor:
    """Neighbours swapped, the second negative."""
    pairs = x.unflatten(-1, (-1, 2))
    return torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)


def _twice(angle: Tensor) -> Tensor:
    return torch.cat((angle, angle), -1)


def _each_twice(angle: Tensor) -> Tensor:
    return angle.repeat_interleave(2, -1)


# how pairs are laid out: what stands beside each element, each angle where its pair stands, the direction of the turn
Style = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], int]
STYLES: dict[str | None, Style] = {
    None: (_halves, _twice, 1),
    "halves": (_halves, _twice, 1),
    "backward": (_halves, _twice, -1),
    "interleaved": (_neighbours, _each_twice, 1),
    "adjacent": (_neighbours, _each_twice, 1),
    "last": (_neighbours, _each_twice, 1),
    "last_back": (_neighbours, _each_twice, -1),
    "last_halves": (_halves, _twice, 1),
}
LAST = ("last", "last_back", "last_halves")  # the last elements of a head are turned, not the first; or turned back
