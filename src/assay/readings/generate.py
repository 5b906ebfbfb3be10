"""Tokens generated one by one behind a prompt: a prefill and N cached steps, beside N full passes without a cache.

Nothing is looped over. Cached steps are one sum in closed form (`Stepped`). A full pass costs a polynomial of degree
two in its length, another one beyond each window and in each chunk; Newton's forward differences sum each piece
exactly: f(a) + … + f(a + m - 1) = sum over k of C(m, k + 1) times the k-th difference of f at a.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import lcm
from typing import Any

from assay.errors import KindError, SettingError
from assay.kinds import Extent, Stepped, VisibleStepped
from assay.readings.binding import bind, placed
from assay.readings.conventions import Convention
from assay.readings.conventions import convention as convention_of
from assay.readings.count import Cache, Flops, cache, flops
from assay.readings.setting import Setting, default_tokens, setting
from assay.records import dataclass, replace
from assay.size import Size, ceil_div, is_integer, lift, surely_above
from assay.spec import Block, Model, Segment

DEGREE = 2  # of a pass's cost in its length


@dataclass(frozen=True)
class Generated:
    """FLOPs of `new` tokens behind a prompt, with a cache and without, and the cache at the end.

    `prefill` is the prompt's pass and `steps` are the `new` one-token passes behind it. Without a cache `restart` is
    the prompt's pass from its first token on and `again` are the `new` passes, each over all tokens so far.
    """

    new: int
    prefill: Flops
    steps: Flops
    restart: Flops
    again: Flops
    cache: Cache

    @property
    def total(self) -> int:
        """FLOPs with a cache."""
        return int(self.prefill.total + self.steps.total)

    @property
    def uncached_total(self) -> int:
        """FLOPs without."""
        return int(self.restart.total + self.again.total)


def generate(model: Model, new: object, **settings: object) -> Generated:
    """The cost of `new` tokens behind the prompt that `settings` describe, as `count` takes them.

    Raises SettingError where the model keeps nothing between passes, or its position table is too short.
    """
    return generate_setting(model, new, setting(model, **with_room(model, new, settings)))


def with_room(model: Model, new: object, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with a prompt that leaves room for the new tokens where they do not say how long it is."""
    if not is_integer(new) or {"tokens", "past", "context"} & settings.keys():
        return dict(settings)
    return {**settings, "tokens": default_tokens(model, lift(new, "generate"))}


def generate_setting(model: Model, new: object, asked: Setting) -> Generated:
    """The same in a checked setting."""
    steps = lift(new, "generate")
    if not all(is_integer(size) for size in (steps, asked.batch, asked.tokens, asked.past)):
        raise SettingError("generate takes integers: what it sums has no symbol or array")
    if "past" not in model.settings:
        raise SettingError(f"generate is {steps}; {model.name} keeps nothing between passes and generates no tokens")
    start, end = asked.context, asked.context + steps
    if model.positions is not None and surely_above(end, model.positions):
        raise SettingError(
            f"past + tokens + generate is {asked.past} + {asked.tokens} + {steps} = {end}; "
            f"{model.name} has a learned position table of {model.positions} rows"
        )
    prices = convention_of(asked.convention)
    prefill = steps_cost = restart = again = Flops()
    held = Cache()
    for segment in model.segments:
        block, times = chosen(segment, asked), segment.times
        one = _pass(segment, block, prices, asked)
        prefill += flops(block, _bound(segment, block, asked.sizes()), prices).times(times)
        steps_cost += stepped(segment, block, prices, asked, steps).times(times)
        restart += one(start).times(times)
        breaks, period = _pieces(segment, block, asked)
        again += piecewise(one, start + 1, end, breaks, period).times(times)
        last = replace(asked, tokens=1, past=end - 1)
        local = placed(segment, last.sizes())
        held += cache(block, bind(block, local), last).times(times)
    return Generated(steps, prefill, steps_cost, restart, again, held)


def chosen(segment: Segment, asked: Setting) -> Block:
    """The block that runs: latent attention has two forms."""
    return segment.absorbed if segment.absorbed is not None and asked.latent == "absorbed" else segment.block


def _bound(segment: Segment, block: Block, sizes: Mapping[str, Size]) -> Extent:
    """The extent of a segment's block in a setting."""
    return bind(block, placed(segment, sizes))


def stepped(segment: Segment, block: Block, prices: Convention, asked: Setting, steps: int) -> Flops:
    """One-token passes behind the context, `steps` of them, summed; each makes one row of logits."""
    sizes = {**replace(asked, tokens=steps, past=asked.context).sizes(), "t": steps}
    extent = _bound(segment, block, sizes)
    dense = Stepped(extent.sizes).shared_with(extent)
    return flops(block, dense, prices, VisibleStepped(extent.sizes).shared_with(extent))


def _pass(segment: Segment, block: Block, prices: Convention, asked: Setting) -> Callable[[int], Flops]:
    """A full pass over so many tokens, nothing before them."""

    def one(tokens: int) -> Flops:
        return flops(block, _bound(segment, block, replace(asked, tokens=tokens, past=0).sizes()), prices)

    return one


def _pieces(segment: Segment, block: Block, asked: Setting) -> tuple[list[int], int | None]:
    """Where the cost of a full pass changes its form: at some lengths, and at each multiple of a period."""
    keys = _bound(segment, block, asked.sizes()).keys.values()
    periods = [k.period for k in keys if k.period is not None]
    return [b for k in keys for b in k.breaks], lcm(*periods) if periods else None


def piecewise(f: Callable[[int], Flops], first: int, last: int, breaks: list[int], period: int | None) -> Flops:
    """f(first) + … + f(last), where f changes its form after each of `breaks` and before each multiple of `period`."""
    total, start = Flops(), first
    for end in [*sorted({b for b in breaks if first <= b < last}), last]:
        total += polynomial(f, start, end) if period is None else periodic(f, start, end, period)
        start = end + 1
    return total


def periodic(f: Callable[[int], Flops], first: int, last: int, period: int) -> Flops:
    """The same where f is a polynomial within each period: whole periods, themselves a polynomial, and two rests."""
    whole, behind = ceil_div(first, period), (last + 1) // period
    if whole > behind:
        return polynomial(f, first, last)

    def one(index: int) -> Flops:
        return polynomial(f, index * period, (index + 1) * period - 1)

    before = polynomial(f, first, whole * period - 1)
    return before + polynomial(one, whole, behind - 1) + polynomial(f, behind * period, last)


def polynomial(f: Callable[[int], Flops], first: int, last: int) -> Flops:
    """f(first) + … + f(last) for a polynomial of degree DEGREE. Raises KindError where f is none."""
    terms = max(0, last - first + 1)
    row = [f(first + i) for i in range(min(terms, DEGREE + 2))]
    if terms <= len(row):
        return sum(row, start=Flops())
    total, choose = Flops(), 1
    for order in range(DEGREE + 1):
        choose = choose * (terms - order) // (order + 1)
        total += row[0].times(choose)
        row = [b + a.times(-1) for a, b in pairwise(row)]
    rest = row[0]
    if rest.total or rest.visible_total or any(rest.by_part.values()):
        raise KindError(
            "the cost of a pass is no polynomial of degree two in its length; no closed sum is known for it"
        )
    return total
