"""What a transformer is made of and what it costs, op by op, exactly, from its config.json alone.

A transformer is written once, as data: blocks are lists of ops over named axes, as the papers draw them.

    q = linear(x[b n d], Wq[d g r k]) -> [b n g r k]
    s = contract(q[b n g r k], k[b c g k]) -> [b g r n c]

Everything else reads that data.

    sources ────▶ spec ────▶ readings ────▶ report ────▶ cli
    config.json   model      count, tensors
    preset        (ops)      flops_per_token, mfu

    import assay

    model = assay.load("llama-3-8b")                  # a preset, a path, org/name, a dict, a config object
    count = assay.count(model, batch=1, tokens=8192)  # each an int, a NumPy array or a SymPy symbol
    count.parameters.total, count.flops.total, count.cache.bytes

    assay.mfu(model, tokens_per_second=9_500, peak_flops=assay.chip("h100").rate("bf16"), context=8192)

What goes wrong for a user is an `AssayError`, one line.
"""

from __future__ import annotations

from assay.errors import (
    AssayError,
    BuildError,
    HardwareError,
    KindError,
    MeasureError,
    NotationError,
    SettingError,
    SizeError,
    SourceError,
    UnknownModel,
)

__version__ = "0.1.0"  # as in pyproject.toml

TYPE_CHECKING = False  # a checker of types takes it for true; `typing` itself would take longer than all of this
if TYPE_CHECKING:
    from assay.blocks.written import block
    from assay.counter.result import Measurement
    from assay.counter.run import measure
    from assay.execution.entry import build
    from assay.execution.learn import Batch, History, Recipe, learn, shifted
    from assay.hardware import Chip, chip, chips
    from assay.readings.compute import TrainingRun, train
    from assay.readings.conventions import CONVENTIONS, Convention
    from assay.readings.count import Cache, Count, Flops, Parameters, Row, count
    from assay.readings.crossovers import Crossover, crossovers
    from assay.readings.machines import Machines
    from assay.readings.memory import Memory, memory
    from assay.readings.regimes import Regime, regimes
    from assay.readings.setting import Setting
    from assay.readings.sharded import Sharded, sharded
    from assay.readings.states import States, states
    from assay.readings.step import TrainingMemory, training_memory
    from assay.readings.tensors import Entry, tensors
    from assay.readings.training import Training, training
    from assay.readings.utilization import Utilization, flops_per_token, mfu
    from assay.report.diagram import Diagram, draw
    from assay.report.explain import Explanation, explain
    from assay.rewrites.adapters import freeze, lora
    from assay.rewrites.plan import Plan, Rank
    from assay.rewrites.shard import shard
    from assay.sources import load
    from assay.spec import Block, Model, Op, Segment, Tensor, Weight
    from assay.studies.compare import Comparison, compare
    from assay.studies.design import Proposal, design
    from assay.studies.fit import Fit, fit
    from assay.studies.result import Sweep
    from assay.studies.sweep import sweep

__all__ = [
    "CONVENTIONS",
    "AssayError",
    "Batch",
    "Block",
    "BuildError",
    "Cache",
    "Chip",
    "Comparison",
    "Convention",
    "Count",
    "Crossover",
    "Diagram",
    "Entry",
    "Explanation",
    "Fit",
    "Flops",
    "HardwareError",
    "History",
    "KindError",
    "Machines",
    "MeasureError",
    "Measurement",
    "Memory",
    "Model",
    "NotationError",
    "Op",
    "Parameters",
    "Plan",
    "Proposal",
    "Rank",
    "Recipe",
    "Regime",
    "Row",
    "Segment",
    "Setting",
    "SettingError",
    "Sharded",
    "SizeError",
    "SourceError",
    "States",
    "Sweep",
    "Tensor",
    "Training",
    "TrainingMemory",
    "TrainingRun",
    "UnknownModel",
    "Utilization",
    "Weight",
    "block",
    "build",
    "chip",
    "chips",
    "compare",
    "count",
    "crossovers",
    "design",
    "draw",
    "explain",
    "fit",
    "flops_per_token",
    "freeze",
    "learn",
    "load",
    "lora",
    "measure",
    "memory",
    "mfu",
    "regimes",
    "shard",
    "sharded",
    "shifted",
    "states",
    "sweep",
    "tensors",
    "train",
    "training",
    "training_memory",
]

# where each public name is defined: imported when it is first asked for, so that `import assay` costs next to nothing
_HOME = {
    "assay.blocks.written": "block",
    "assay.counter.result": "Measurement",
    "assay.counter.run": "measure",
    "assay.execution.entry": "build",
    "assay.execution.learn": "Batch History Recipe learn shifted",
    "assay.hardware": "Chip chip chips",
    "assay.readings.compute": "TrainingRun train",
    "assay.readings.conventions": "CONVENTIONS Convention",
    "assay.readings.count": "Cache Count Flops Parameters Row count",
    "assay.readings.crossovers": "Crossover crossovers",
    "assay.readings.machines": "Machines",
    "assay.readings.memory": "Memory memory",
    "assay.readings.regimes": "Regime regimes",
    "assay.readings.setting": "Setting",
    "assay.readings.sharded": "Sharded sharded",
    "assay.readings.states": "States states",
    "assay.readings.step": "TrainingMemory training_memory",
    "assay.readings.tensors": "Entry tensors",
    "assay.readings.training": "Training training",
    "assay.readings.utilization": "Utilization flops_per_token mfu",
    "assay.report.diagram": "Diagram draw",
    "assay.report.explain": "Explanation explain",
    "assay.rewrites.adapters": "freeze lora",
    "assay.rewrites.plan": "Plan Rank",
    "assay.rewrites.shard": "shard",
    "assay.sources": "load",
    "assay.spec": "Block Model Op Segment Tensor Weight",
    "assay.studies.compare": "Comparison compare",
    "assay.studies.design": "Proposal design",
    "assay.studies.fit": "Fit fit",
    "assay.studies.result": "Sweep",
    "assay.studies.sweep": "sweep",
}
_WHERE = {name: module for module, names in _HOME.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """A public name, from the module that defines it."""
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion: what this file needs besides is nobody's."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
