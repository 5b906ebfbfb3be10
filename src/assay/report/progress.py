"""A bar on a terminal for what takes longer than a moment; nothing where standard error is no terminal."""

from __future__ import annotations

import sys
from time import monotonic

MOMENT = 0.4  # seconds before anything is shown
EVERY = 0.1
WIDTH = 30


class Progress:
    """Called with how much is done of how much; `end` takes the bar away."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.began = self.shown = monotonic()
        self.drawn = False
        self.on = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        """Draw the bar, not too often."""
        now = monotonic()
        if not self.on or now - self.began < MOMENT or (now - self.shown < EVERY and done < total):
            return
        self.shown, self.drawn = now, True
        full = int(WIDTH * done / total)
        left = (now - self.began) * (total - done) / max(1, done)
        bar = "━" * full + "╌" * (WIDTH - full)
        sys.stderr.write(f"\r{self.what} {bar} {done:,} of {total:,}, {left:.0f} s left\033[K")
        sys.stderr.flush()

    def end(self) -> None:
        """Take the bar away."""
        if self.drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
