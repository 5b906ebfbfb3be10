"""Medians of alternated runs, and the table they are printed in."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One measured thing: what, how much, against what, and the aim where there is one."""

    what: str
    value: str
    ratio: str = ""
    against: str = ""
    aim: str = ""


def seconds(value: float) -> str:
    """A duration with three figures and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def commands(rows: Sequence[Sequence[str]], rounds: int) -> list[float]:
    """The median wall time of each command; the rounds alternate, so that a busy minute hits all alike."""
    times: list[list[float]] = [[] for _ in rows]
    for row in rows:  # once unmeasured: the disk's cache
        _run(row)
    for _ in range(rounds):
        for row, found in zip(rows, times, strict=True):
            start = time.perf_counter()
            _run(row)
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode().strip()}")


PEAK = """
import pathlib, sys
status = pathlib.Path("/proc/self/status")
if status.exists():  # of this program alone: ru_maxrss would count what the one that started it held
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) * 1024
else:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(peak, file=sys.stderr)
"""


def resident(code: str) -> float:
    """The largest resident memory of a program, in MB (10**6 bytes)."""
    done = subprocess.run([sys.executable, "-c", code + PEAK], capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1]) / 1e6


def calls(action: Callable[[], object], budget: float = 0.5) -> float:
    """The median time of one call, over batches that fill about `budget` seconds."""
    start = time.perf_counter()
    action()
    once = max(time.perf_counter() - start, 1e-7)
    batch = max(1, int(budget / 15 / once))
    found = []
    for _ in range(11):
        start = time.perf_counter()
        for _ in range(batch):
            action()
        found.append((time.perf_counter() - start) / batch)
    return statistics.median(found)


def show(title: str, lines: Sequence[Line]) -> None:
    """A table."""
    print(f"\n{title}")
    heads = Line("", "median", "ratio", "against", "aim")
    table = [(line.what, line.value, line.ratio, line.against, line.aim) for line in (heads, *lines)]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for what, value, ratio, against, aim in table:
        print(
            f"  {what:<{widths[0]}}  {value:>{widths[1]}}  {ratio:>{widths[2]}}  "
            f"{against:<{widths[3]}}  {aim:<{widths[4]}}".rstrip()
        )
