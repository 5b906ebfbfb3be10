"""Tokens generated one by one behind a prompt: a prefill and N cached steps, beside N full passes without a cache.

Nothing is looped over. Cached steps are one sum in closed form (`Stepped`). A full pass costs a polynomial of degree
two in its length, another one beyond each window and in each chunk. Each piece is summed exactly from its values at
both ends and in the middle (`polynomial`); neighbours are not subtracted from each other, so that arrays keep digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from assay.size import (
    Size,
    all_integers,
    ceil_div,
    differ,
    exact_div,
    first_above,
    floor_div,
    is_integer,
    is_symbol,
    lift,
    maximum,
    minimum,
    surely_above,
)
from assay.spec import Block, Model, Segment


@dataclass(frozen=True)
class Generated:
    """FLOPs of `new` tokens behind a prompt, with a cache and without, and the cache at the end.

    `prefill` is the prompt's pass and `steps` are the `new` one-token passes behind it. Without a cache `restart` is
    the prompt's pass from its first token on and `again` are the `new` passes, each over all tokens so far.
    """

    new: Size
    prefill: Flops
    steps: Flops
    restart: Flops
    again: Flops
    cache: Cache

    @property
    def total(self) -> Size:
        """FLOPs with a cache."""
        return self.prefill.total + self.steps.total

    @property
    def uncached_total(self) -> Size:
        """FLOPs without."""
        return self.restart.total + self.again.total


def generate(model: Model, new: object, **settings: object) -> Generated:
    """The cost of `new` tokens behind the prompt that `settings` describe, as `count` takes them; ints or arrays.

    Raises SettingError where the model keeps nothing between passes, or its position table is too short.
    """
    return generate_setting(model, new, setting(model, **with_room(model, new, settings)))


def with_room(model: Model, new: object, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with a prompt that leaves room for the new tokens where they do not say how long it is."""
    if new is None or is_symbol(new) or {"tokens", "past", "context"} & settings.keys():
        return dict(settings)
    return {**settings, "tokens": default_tokens(model, lift(new, "generate"))}


def generate_setting(model: Model, new: object, asked: Setting) -> Generated:
    """The same in a checked setting."""
    steps = lift(new, "generate")
    if any(map(is_symbol, (steps, *asked.sizes().values()))):
        raise SettingError("generate takes integers, or arrays of them: what it sums has no symbol")
    if "past" not in model.settings:
        raise SettingError(f"generate is {steps}; {model.name} keeps nothing between passes and generates no tokens")
    start, end = asked.context, asked.context + steps
    if model.positions is not None and surely_above(end, model.positions):
        parts = (asked.past, asked.tokens, steps)
        summed = (
            f"{' + '.join(map(str, parts))} = {end}" if all_integers(parts) else first_above(end, model.positions)[0]
        )
        raise SettingError(
            f"past + tokens + generate is {summed}; {model.name} has a learned position table of {model.positions} rows"
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


def stepped(segment: Segment, block: Block, prices: Convention, asked: Setting, steps: Size) -> Flops:
    """One-token passes behind the context, `steps` of them, summed; each makes one row of logits."""
    sizes = {**replace(asked, tokens=steps, past=asked.context).sizes(), "t": steps}
    extent = _bound(segment, block, sizes)
    dense = Stepped(extent.sizes).shared_with(extent)
    return flops(block, dense, prices, VisibleStepped(extent.sizes).shared_with(extent))


def _pass(segment: Segment, block: Block, prices: Convention, asked: Setting) -> Callable[[Size], Flops]:
    """A full pass over so many tokens, nothing before them."""

    def one(tokens: Size) -> Flops:
        return flops(block, _bound(segment, block, replace(asked, tokens=tokens, past=0).sizes()), prices)

    return one


def _pieces(segment: Segment, block: Block, asked: Setting) -> tuple[list[int], int | None]:
    """Where the cost of a full pass changes its form: at some lengths, and at each multiple of a period."""
    keys = _bound(segment, block, asked.sizes()).keys.values()
    periods = [k.period for k in keys if k.period is not None]
    return [b for k in keys for b in k.breaks], lcm(*periods) if periods else None


def piecewise(f: Callable[[Size], Flops], first: Size, last: Size, breaks: list[int], period: int | None) -> Flops:
    """f(first) + … + f(last), where f changes its form after each of `breaks` and before each multiple of `period`."""
    total, start = Flops(), first
    for stop in [*sorted(set(breaks)), None]:
        end = last if stop is None else minimum(maximum(stop, start - 1), last)
        total += polynomial(f, start, end) if period is None else periodic(f, start, end, period)
        start = end + 1
    return total


def periodic(f: Callable[[Size], Flops], first: Size, last: Size, period: int) -> Flops:
    """The same where f is a polynomial within each period: whole periods, themselves a polynomial, and two rests."""
    whole = ceil_div(first, period)
    behind = maximum(whole, (last + 1) // period)

    def one(index: Size) -> Flops:
        return polynomial(f, index * period, (index + 1) * period - 1)

    before = polynomial(f, first, minimum(whole * period - 1, last))
    return before + polynomial(one, whole, behind - 1) + polynomial(f, behind * period, last)


def polynomial(f: Callable[[Size], Flops], first: Size, last: Size) -> Flops:
    """f(first) + … + f(last) for a polynomial of degree two, nothing where `last` lies before `first`.

    Of 2 k + 1 places around m these are (2 k + 1) f(m) and, for each place, half the second difference of f times the
    square of how far off it is; an even number has one more. The difference is found from the places furthest apart.
    Raises KindError where f is no such polynomial.
    """
    terms = maximum(0, last - first + 1)
    if is_integer(terms) and terms <= 1:
        return f(first) if terms else Flops()
    k = floor_div(maximum(0, terms - 1), 2)
    more = terms - (2 * k + 1)  # 1, 0, or -1 where there is nothing
    place = maximum(first, first + 2 * k - 1 + 2 * maximum(0, more))
    start, middle, end, other = f(first), f(first + k), f(first + 2 * k), f(place)
    bend = start + middle.times(-2) + end
    square, off = k * k, place - first - k
    told = middle.times(2 * square) + end.times(k * off) + bend.times(off * off)
    if _differ(other.times(2 * square) + start.times(k * off), told):
        raise KindError(
            "the cost of a pass is no polynomial of degree two in its length; no closed sum is known for it"
        )
    squares = exact_div(k * (k + 1) * (2 * k + 1), 6)
    return middle.times(2 * k + 1) + _over(bend, maximum(1, square)).times(squares) + other.times(more)


def _over(spent: Flops, parts: Size) -> Flops:
    """One of so many parts."""
    by_part = {part: exact_div(size, parts) for part, size in spent.by_part.items()}
    total, visible, scores = (
        exact_div(size, parts) for size in (spent.total, spent.visible_total, spent.attention_scores)
    )
    return Flops(total, visible, scores, by_part)


def _differ(one: Flops, other: Flops) -> bool:
    pairs = [(one.total, other.total), (one.visible_total, other.visible_total)]
    pairs += [(size, other.by_part[part]) for part, size in one.by_part.items()]
    return any(differ(a, b) for a, b in pairs)
