"""What assay costs, in one run: the command, the calls, a sweep, depth, memory, and calculators that pip installs.

    make bench
    make bench ARGS="--configs FOLDER"    every config.json or *.json of a folder, too

Absolute times depend on the machine; the ratios are of one run on one machine, alternated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from timing import Line, calls, commands, resident, seconds, show

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PEERS = ROOT / ".venv" / "peers" / "bin"

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-05,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

FIRST = """
import json, sys, time
import assay
data = json.loads(sys.argv[1])
start = time.perf_counter()
assay.count(assay.load(data))
print(time.perf_counter() - start)
"""


def command_lines(rounds: int) -> list[Line]:
    """The whole command against an interpreter that does nothing, of the same environment."""
    rows = [
        [sys.executable, "-c", "pass"],
        [str(BIN / "assay"), "llama-3-8b", "--json"],
        [str(BIN / "assay"), "llama-3-8b"],
        [sys.executable, "-c", "import assay"],
    ]
    bare, *rest = commands(rows, rounds)
    names = ("assay llama-3-8b --json", "assay llama-3-8b", "python -c 'import assay'")
    aims = ("under 5", "under 8", "")
    lines = [Line("python -c pass", seconds(bare), "1.0")]
    for name, found, aim in zip(names, rest, aims, strict=True):
        lines.append(Line(name, seconds(found), f"{found / bare:.1f}", "python -c pass", aim))
    return lines


def memory_lines() -> list[Line]:
    """Resident memory of the command."""
    bare = resident("")
    lines = [Line("python -c pass", f"{bare:.1f} MB")]
    for words in (["llama-3-8b", "--json"], ["llama-3-8b"]):
        used = resident(f"from assay.cli import main; main({words})")
        name = " ".join(["assay", *words])
        lines.append(Line(name, f"{used:.1f} MB", f"{used / bare:.1f}", "python -c pass", "under 80 MB"))
    return lines


def peer_lines(rounds: int) -> list[Line]:
    """Calculators that pip could install, each against the bare interpreter of its own environment."""
    known = {
        "llm-flops estimate (Llama 3 8B)": ["llm-flops", "estimate", "--no-hf", "--json", "meta-llama/Meta-Llama-3-8B"],
        "kvfit --help (start-up alone)": ["kvfit", "--help"],
        "hf-mem --help (start-up alone)": ["hf-mem", "--help"],
    }
    rows = {name: [str(PEERS / row[0]), *row[1:]] for name, row in known.items() if (PEERS / row[0]).exists()}
    if not rows:
        return []
    bare, *rest = commands([[str(PEERS / "python"), "-c", "pass"], *rows.values()], rounds)
    return [
        Line(name, seconds(found), f"{found / bare:.1f}", "python -c pass there")
        for name, found in zip(rows, rest, strict=True)
    ]


def peer_call() -> float | None:
    """Seconds of the fastest inexact peer for one estimate in process, in its own environment."""
    code = (
        "import timeit, llmflops; c = llmflops.get_config('meta-llama/Meta-Llama-3-8B');"
        "f = lambda: llmflops.estimate(c, gpu=None, include_backward=False);"
        "print(sorted(timeit.repeat(f, number=200, repeat=5))[2] / 200)"
    )
    if not (PEERS / "llm-flops").exists():
        return None
    done = subprocess.run([str(PEERS / "python"), "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return float(done.stdout)


def loaded_and_counted(data: dict[str, Any]) -> Callable[[], object]:
    """`load` and `count` of a config, as one call to measure."""
    import assay

    return lambda: assay.count(assay.load(data))


def call_lines(folder: Path | None) -> list[Line]:
    """`load` of a dict and `count`, file reading apart."""
    import assay

    model = assay.load(LLAMA)
    both, counted = calls(loaded_and_counted(LLAMA)), calls(lambda: assay.count(model))
    mixed = calls(loaded_and_counted({"model_type": "inkling2_loop_text"}))  # its config class's own sizes
    text = json.dumps(LLAMA)
    first = sorted(
        float(subprocess.run([sys.executable, "-c", FIRST, text], capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    )[3]
    lines = [
        Line("load + count, Llama 3 8B", seconds(both), aim="0.3 ms"),
        Line("load + count, the most mixed: 33 distinct layers, looped", seconds(mixed), aim="5 ms"),
        Line("count alone", seconds(counted), f"{counted / both:.2f}", "load + count"),
        Line("load + count, first in its process", seconds(first), f"{first / both:.1f}", "load + count"),
    ]
    return lines + ([] if folder is None else config_lines(folder))


def config_lines(folder: Path) -> list[Line]:
    """Every config under 10 kB of a folder that is read: the middle one and the slowest."""
    import assay

    found = []
    for path in sorted(folder.glob("**/*.json")):
        if path.stat().st_size >= 10_000:
            continue
        data = json.loads(path.read_text())
        both = loaded_and_counted(data)
        try:
            both()
        except assay.AssayError:
            continue
        found.append((calls(both, 0.03), path.name))
    if not found:
        return [Line(f"no config under 10 kB read in {folder}", "")]
    found.sort()
    middle, slowest = found[len(found) // 2], found[-1]
    return [
        Line(f"the middle one of {len(found)} configs under 10 kB", seconds(middle[0])),
        Line(f"the slowest: {slowest[1]}", seconds(slowest[0]), aim="1 ms"),
        Line("of them within 1 ms", str(sum(took <= 1e-3 for took, _ in found)), against=f"{len(found)} configs"),
    ]


def sweep_lines(peer: float | None, settings: int = 1_000_000, sample: int = 500) -> list[Line]:
    """A million contexts in one call, every figure of the report; per point, against the report in a loop."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return [Line("needs the extra: arrays", "")]
    import assay
    from assay.readings.published import formulas
    from assay.report import contract, model
    from assay.report.table import Style

    llama = assay.load(LLAMA)
    chosen = [1 + i * (settings // sample) for i in range(sample)]

    def swept() -> Any:
        return assay.sweep(llama, tokens=1, context=range(1, settings + 1))

    def counted(context: int) -> Any:
        return assay.count(llama, tokens=1, context=context)

    def as_json(context: int) -> object:
        found = counted(context)
        said = model.notes(llama, found, None)
        return contract.document("", llama, found, None, formulas(llama, found), said)

    def as_text(context: int) -> object:
        found = counted(context)
        said = model.notes(llama, found, None)
        return model.report(llama, found, None, formulas(llama, found), said, Style(False))

    totals = swept()["flops.total"]
    if any(totals[n - 1] != counted(n).flops.total for n in chosen):
        raise SystemExit("the sweep and the loop differ")
    whole = calls(swept, 2.0)
    point = whole / settings
    exact = calls(lambda: assay.sweep(llama, tokens=1, context=range(1, 100_001), exact=True), 2.0) / 100_000
    columns = len(swept().columns)
    lines = [
        Line(f"{settings:,} contexts, {columns} columns, one sweep", seconds(whole)),
        Line("the same, a point", seconds(point)),
        Line("exact integers, a point", seconds(exact), f"{exact / point:.0f}", "a point of floats"),
    ]
    loops = {"count": counted, "the report as JSON": as_json, "the report as text": as_text}
    for name, call in loops.items():
        one = calls(lambda call=call: [call(n) for n in chosen]) / sample  # type: ignore[misc]
        aim = "at least 1000" if name != "count" else ""
        lines.append(Line(f"{name} in a loop, a point", seconds(one), f"{one / point:.0f}", "a point of floats", aim))
    if peer is not None:
        lines.append(Line("llm-flops in a loop, a point", seconds(peer), f"{peer / point:.0f}", "a point of floats"))
    return lines


def beside_lines() -> list[Line]:
    """Columns whose figures hang on the order of sizes, of many contexts at once; per point, against a loop."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return []
    import assay
    from assay.readings.generate import generate
    from assay.readings.memory import memory
    from assay.readings.step import training_memory

    llama = assay.load(LLAMA)

    def held(context: int) -> Any:
        return memory(llama, tokens=1, context=context, logits="all").total

    def generated(context: int) -> Any:
        return generate(llama, 100, tokens=1, context=context).total

    def trained(tokens: int) -> Any:
        return training_memory(llama, tokens=tokens).peak.bytes

    return [
        *beside_line(llama, "memory.total", held, 1_000_000, tokens=1),
        *beside_line(llama, "generate.flops", generated, 1_000_000, tokens=1, generate=100),
        *beside_line(llama, "training.peak", trained, 100_000),
    ]


def beside_line(
    model: Any, column: str, alone: Callable[[int], Any], many: int, sample: int = 20, **asked: Any
) -> list[Line]:
    """A sweep along contexts, or tokens with nothing before them, with a group of columns; and the same in a loop."""
    import assay

    group = column.partition(".")[0]
    along: dict[str, Any] = {**asked, "context" if asked else "tokens": range(1, many + 1)}
    chosen = [1 + i * (many // sample) for i in range(sample)]

    def swept() -> Any:
        return assay.sweep(model, **along, columns=[group], exact=False)

    took = []
    for _ in range(3):
        start = time.perf_counter()
        found = swept()[column]
        took.append(time.perf_counter() - start)
    if any(found[n - 1] != alone(n) for n in chosen):
        raise SystemExit(f"{column} of the sweep and of the loop differ")
    point = sorted(took)[1] / many
    one = calls(lambda: [alone(n) for n in chosen], 0.1) / sample
    return [
        Line(f"{many:,} settings with columns of {group}, a point", seconds(point)),
        Line(f"{group} in a loop, a point", seconds(one), f"{one / point:.0f}", "a point of that sweep"),
    ]


def depth_lines() -> list[Line]:
    """Layers that are alike are traced once."""
    lines: list[Line] = []
    least = 0.0
    for depth in (10, 1_000, 100_000):
        found = calls(loaded_and_counted({**LLAMA, "num_hidden_layers": depth}))
        least = least or found
        lines.append(
            Line(f"{depth:,} layers", seconds(found), f"{found / least:.2f}", "10 layers", "1" if lines else "")
        )
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    """Measure everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21, help="alternated runs of each command (default 21)")
    parser.add_argument("--configs", type=Path, help="a folder of configs to read and count, too")
    asked = parser.parse_args(argv)
    show("Resident memory, largest", memory_lines())
    show("Whole command", command_lines(asked.rounds))
    peers = peer_lines(asked.rounds)
    if peers:
        show("Other calculators, whole command", peers)
    rows = call_lines(asked.configs)
    other = peer_call()
    theirs = [] if other is None else [Line("llm-flops: estimate(config)", seconds(other))]
    show("In process", [*rows, *theirs])
    show("Sweep", [*sweep_lines(other), *beside_lines()])
    show("Depth", depth_lines())


if __name__ == "__main__":
    main()
