"""The commands: each is the module of its name here, with a function `run`, imported only when it is asked for.

A new command is a module and a line of this table.
"""

from __future__ import annotations

# what is written behind `assay`, and what it tells
COMMANDS: dict[str, dict[str, str]] = {
    "ops": {
        "ops MODEL": "every op of every distinct layer, with shapes, FLOPs and bytes",
        "ops attention": "one attention alone, as numbers and formulas; no model needed",
    },
    "explain": {"explain MODEL": "where a figure comes from: op by op, as formulas and numbers"},
    "draw": {"draw MODEL": "a diagram, shapes on arrows and costs on boxes: text, SVG, Mermaid"},
    "crossovers": {"crossovers MODEL": "at which length one cost overtakes another: attention the MLP, …"},
    "regimes": {"regimes MODEL": "which costs lead at a length: MLP or attention, hidden or scores"},
    "sweep": {"sweep MODEL": "every figure over ranges of settings and sizes: tables, files, pictures"},
    "compare": {"compare A B ...": "models side by side, with ratios, and what explains the differences"},
    "design": {"design --params N": "plain decoders that meet targets, as descriptions"},
    "memory": {"memory MODEL": "what inference holds: weights, cache, states, the fullest moment"},
    "train": {"train MODEL": "a training run: FLOPs, days, energy, price; or what a budget buys"},
    "fit": {"fit MODEL --gpu NAME": "does it fit: the margin, the limits, and what would make it fit"},
    "gpus": {"gpus [NAME]": "what chips can do at most: memory, bandwidth, rates, each with its source"},
    "tensors": {"tensors MODEL": "every weight tensor: path, shape, count, how often it occurs"},
    "checkpoint": {"checkpoint PATH": "what weight files hold, from their headers alone"},
    "verify": {"verify MODEL": "every count held against a run in PyTorch, op by op; needs PyTorch"},
    "models": {"models": "the presets, with their main sizes"},
    "families": {"families": "the model types that are read, what is exact, and what is refused"},
}
