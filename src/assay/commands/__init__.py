"""The commands: each is the module of its name here, with a function `run`, imported only when it is asked for.

A new command is a module and a line of this table.
"""

from __future__ import annotations

# what is written behind `assay`, and what it tells
COMMANDS: dict[str, dict[str, str]] = {
    "ops": {
        "ops MODEL": "every op of every distinct layer: shapes, FLOPs, bytes",
        "ops attention": "one attention alone, as numbers and formulas; no model needed",
    },
    "explain": {"explain MODEL": "how a figure is derived: the formula of each op, sums, closed form"},
    "draw": {"draw MODEL": "a diagram: shapes on arrows, costs in boxes; text, SVG, Mermaid"},
    "crossovers": {"crossovers MODEL": "the lengths at which one cost overtakes another: attention the MLP, …"},
    "regimes": {"regimes MODEL": "which costs dominate at a length: MLP or attention, hidden or scores"},
    "sweep": {"sweep MODEL": "every figure over ranges of settings and sizes: tables, files, plots"},
    "compare": {"compare A B ...": "models side by side, with ratios and what explains the differences"},
    "design": {"design --params N": "plain decoders that meet targets, as descriptions"},
    "memory": {"memory MODEL": "what inference holds, or with --train a training step, and its peak"},
    "train": {"train MODEL": "a training run: FLOPs, days, energy, price; or what a budget buys"},
    "fit": {"fit MODEL --gpu NAME": "whether it fits: the margin, the limits, what would make it fit"},
    "gpus": {"gpus [NAME]": "peaks of chips: memory, bandwidth, rates, each with its source"},
    "tensors": {"tensors MODEL": "every weight tensor: name, shape, elements, how often it occurs"},
    "checkpoint": {"checkpoint PATH": "what weight files hold, from their headers alone"},
    "verify": {"verify MODEL": "every count checked against a run in PyTorch, op by op"},
    "models": {"models": "the presets, with their main sizes"},
    "families": {"families": "which model types are read, what is exact, what is refused"},
}
