"""The largest size that still fits: found exactly where what is needed never falls as the size grows."""

from __future__ import annotations

from collections.abc import Callable

ENDLESS = 1 << 40  # a size at which a need that has not outgrown its room never will
Need = Callable[[int], int]


def largest(need: Need, room: int, most: int | None = None, start: int = 2, floor: int | None = None) -> int | None:
    """The largest size from 1 on whose need is at most `room`: 0 for none, None where no size is too large.

    `most` is the largest that may be asked for, `floor` what is needed at least, whatever the size. `need` never falls;
    it is asked at `start` and then where straight lines cross `room`: in turn through two sizes that fit, which a curve
    that bends up crosses later, and through the last that fits and the first that does not, which it crosses earlier.
    The answer and the next size are both asked.
    """
    known: dict[int, int] = {}

    def fits(size: int) -> bool:
        if size not in known:
            known[size] = need(size)
        return known[size] <= room

    end = ENDLESS if most is None else most
    start = min(start, end)
    if floor is not None and floor > room:
        return 0
    if floor is None and not fits(1):
        return 0
    low = 1 if floor is None else 0
    if floor is not None:
        known[0] = floor
    if start > low and not fits(start):
        high = start
    elif fits(end):
        return most
    else:
        low, high = max(low, start), end
    bounded, slow, turn = high < end, 0, 1
    guess = _next(known, low, high, room, bounded)
    while high - low > 1:
        guess = min(max(guess, low + 1), high - 1)
        before = high - low
        if fits(guess):
            low = guess
        else:
            high, bounded = guess, True
        slow = slow + 1 if 2 * (high - low) > before else 0
        turn += 1
        if bounded and slow > 3:
            guess, slow = low + (high - low) // 2, 0
        else:
            guess = _next(known, low, high, room, bounded and turn % 2 == 1)
    return low


def _next(known: dict[int, int], low: int, high: int, room: int, between: bool) -> int:
    """Where to ask next: where the line between the two ends crosses the room, or the one through two that fit."""
    below = [size for size in known if size < low]
    if between:
        return _cross(known, low, high, room)
    if not below:
        return 2 * low
    return min(_cross(known, max(below), low, room) + 1, 1024 * low)  # the first that does not fit, if it is a line


def _cross(known: dict[int, int], a: int, b: int, room: int) -> int:
    """The last size that fits where need is a line through two of them."""
    rise = known[b] - known[a]
    return a + (room - known[a]) * (b - a) // rise if rise else ENDLESS
