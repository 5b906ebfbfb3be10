"""What running a description costs, against the public implementation of the same small Llama, in one run.

    make bench-torch
    make bench-torch ARGS="--device cuda --dtype bf16"    on another device

Prefill of 512 tokens and a decode step behind them; both with a cache, both with attention in one kernel, the same
weights. Runs alternate; the ratios are of their medians, and the least of each stands beside.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from timing import Line, seconds, show

import assay

SIZES = {
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 8192,
}
PREFILL = 512
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Pair:
    """The library's model and ours, with the same weights."""

    def __init__(self, device: str, dtype: torch.dtype) -> None:
        import transformers

        torch.manual_seed(0)
        config = transformers.LlamaConfig(**SIZES)
        self.theirs = transformers.LlamaForCausalLM(config).to(device, dtype).eval()
        self.ours = assay.build(assay.load(config), device=device, dtype=dtype)
        self.ours.load_state_dict(self.theirs.state_dict())
        self.tokens = torch.randint(0, SIZES["vocab_size"], (1, PREFILL + 1), device=device)

    def prefill(self, ours: Any) -> list[Callable[[], Any]]:
        """Both on all but the last token."""
        given = self.tokens[:, :PREFILL]
        return [
            lambda: self.theirs(given, use_cache=True),
            lambda: ours(given, cache=self.ours.cache()),
        ]

    def decode(self, ours: Any) -> list[Callable[[], Any]]:
        """Both on the last token, the cache as it was before each time."""
        given, last = self.tokens[:, :PREFILL], self.tokens[:, PREFILL:]
        kept = self.theirs(given, use_cache=True).past_key_values
        cache = self.ours.cache()
        self.ours(given, cache=cache)
        held = dict(cache.state)

        def their_step() -> None:
            self.theirs(last, past_key_values=kept, use_cache=True)
            kept.crop(-1)

        def our_step() -> None:
            cache.tokens, cache.state = PREFILL, dict(held)
            ours(last, cache=cache)

        return [their_step, our_step]


def alternated(runs: list[Callable[[], Any]], rounds: int, device: str) -> list[list[float]]:
    """Seconds of each run, one after the other, round by round; the first two rounds are not counted."""
    found: list[list[float]] = [[] for _ in runs]
    for index in range(rounds + 2):
        for run, times in zip(runs, found, strict=True):
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            if device == "cuda":
                torch.cuda.synchronize()
            if index >= 2:
                times.append(time.perf_counter() - start)
    return found


def lines(pair: Pair, rounds: int, device: str, compiled: bool) -> list[Line]:
    """The table."""
    made: list[Line] = []
    ways = [("ours", pair.ours)] + ([("ours, torch.compile", torch.compile(pair.ours))] if compiled else [])
    for what, runs_of in (("prefill of 512", pair.prefill), ("decode step", pair.decode)):
        runs = [runs_of(pair.ours)[0], *(runs_of(way)[1] for _, way in ways)]
        theirs, *found = alternated(runs, rounds, device)
        base = statistics.median(theirs)
        made.append(Line(f"{what}: transformers", seconds(base), "1.0"))
        for (name, _), times in zip(ways, found, strict=True):
            middle = statistics.median(times)
            least = f"least of each {min(times) / min(theirs):.2f}"
            aim = "at most 1" if name == "ours" and device == "cpu" else ""
            made.append(Line(f"{what}: {name}", seconds(middle), f"{middle / base:.2f}", f"transformers; {least}", aim))
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="fp32", choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; PyTorch's own number by default")
    parser.add_argument("--compile", action="store_true", help="with torch.compile too")
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    warnings.simplefilter("ignore")
    with torch.inference_mode():
        pair = Pair(asked.device, DTYPES[asked.dtype])
        show(
            f"a Llama of 8 layers, {asked.dtype}, {asked.device}",
            lines(pair, asked.rounds, asked.device, asked.compile),
        )


if __name__ == "__main__":
    main()
