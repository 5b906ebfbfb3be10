"""The largest size that still fits: found exactly where what is needed never falls as the size grows."""

from __future__ import annotations

from collections.abc import Callable

ENDLESS = 1 << 40  # a size at which a need that has not outgrown its room never will
Need = Callable[[int], int]


def largest(need: Need, room: int, most: int | None = None, start: int = 2) -> int | None:
    """The largest size from 1 on whose need is at most `room`: 0 for none, None where no size is too large.

    `most` is the largest that may be asked for. `need` never falls; it is asked at `start` and then where straight
    lines cross `room`: in turn through two sizes that fit, which a curve that bends up crosses later, and through the
    last that fits and the first that does not, which it crosses earlier. The answer and the next size are both asked.
    """
    known: dict[int, int] = {}

    def fits(size: int) -> bool:
        if size not in known:
            known[size] = need(size)
        return known[size] <= room

    if not fits(1):
        return 0
    if most is not None and fits(most):
        return most
    if most is None and fits(ENDLESS):
        return None
    low, high, bounded = 1, most or ENDLESS, False
    guess, slow, turn = start, 0, 0
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
        elif bounded and turn % 2:
            guess = _cross(known, low, high, room)
        else:
            below = [size for size in known if size < low]
            guess = _cross(known, max(below), low, room) if below else 2 * low
            guess = min(guess + (not bounded), 1024 * low)  # where the line is right, the first that does not fit
    return low


def _cross(known: dict[int, int], a: int, b: int, room: int) -> int:
    """The last size that fits where need is a line through two of them."""
    rise = known[b] - known[a]
    return a + (room - known[a]) * (b - a) // rise if rise else ENDLESS
