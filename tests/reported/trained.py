"""Reports of the memory of training, and of ranks."""

from __future__ import annotations

from typing import Any

from drawn import LLAMA3_8B, LLAMA3_70B, LLAMA_7B, block, draw, read
from reported.base import GIB, case, one, total

from assay.readings.states import states
from assay.readings.step import training_memory
from assay.readings.training import training as trained
from assay.rewrites.adapters import lora
from assay.rewrites.plan import Plan
from assay.rewrites.shard import shard
from assay.spec import Block, Model


def held(model: Model | Block, **asked: Any) -> int:
    """Bytes of what training holds of parameters, without the counters of the optimizer."""
    made = states(model, **asked)
    return int(made.total - made.optimizer.get("step", 0))


@case("M02", (144_544_702_464, 18, 16), "144,544,702,464", "18 bytes per parameter", "16 when gradients are bf16")
def states_with_wide_gradients() -> tuple[int, int, int]:
    model = read(LLAMA3_8B)
    wide, narrow = (held(model, precision=policy) for policy in ("megatron", "mixed"))
    return wide, wide // total(model), narrow // total(model)


@case("M03", ("9.96 GiB", "11.28 GiB"))
def divided_gradients() -> tuple[str, ...]:
    model = block("y = linear(x[n d], W[d f]) -> [n f]", d=1000, f=2_851_000)
    made = (held(model, precision=policy, zero=2, shards=8) for policy in ("mixed", "fp16"))
    return tuple(f"{size / GIB:.2f} GiB" for size in made)


@case("M04", ("80.86 GB", "107.8 GB"))
def states_between_steps() -> tuple[str, str]:
    made = states(read(LLAMA_7B), precision="fp32")
    return f"{made.between / 1e9:.2f} GB", f"{made.total / 1e9:.1f} GB"


@case("M06", ("53.9 GB", "40.4 GB"))
def states_of_8_bits() -> tuple[str, str]:
    whole, eight = (states(read(LLAMA_7B), optimizer=name, precision="bf16") for name in ("adamw", "adamw-8bit"))
    scales = eight.optimizer["absmax1"] + eight.optimizer["absmax2"]
    return f"{whole.total / 1e9:.1f} GB", f"{(eight.total - scales) / 1e9:.1f} GB"


@case("M07", (956_301_312, 30_601_641_984))
def activations_of_a_layer() -> tuple[int, int]:
    model = draw(
        layers=32, d=4096, heads=32, vocab=32000, ff=16384, gated=False, norm="layer", biases=True, positions=2048
    )
    made = training_memory(
        model, 1, 2048, precision="fp16", attention="plain", policy="megatron", dropout=0.1, optimizer="sgd"
    )
    (layer,) = (kept for kept in made.layers if kept.name == "layer")
    statistics = 2 * 2 * 4 * 2048  # of two norms, which the formula leaves out
    return layer.bytes - statistics, layer.times * (layer.bytes - statistics)


@case("M08", ("2*s*b*h", "4*s*b*h"))
def activations_of_a_norm() -> tuple[str, str]:
    text = "norm:\nx = linear(x[b n d], W[d d2]) -> [b n d2]\ny = layernorm(x[b n d2], G[d2], B[d2]) -> [b n d2]"
    one, two = (trained(block(text, d=64, d2=width), 3, 50, precision="bf16").saved_by_part for width in (512, 1024))
    grown = (two["norm"] - one["norm"]) // (3 * 50 * 512)  # statistics of rows do not grow with the width
    return f"{grown}*s*b*h", f"{2 * grown}*s*b*h"


@case("M11", 22_548_578_304)
def experts_of_a_rank() -> int:
    model = draw(layers=32, d=4096, heads=32, kv=8, head=128, vocab=32000, experts=8, chosen=2, expert_ff=14336)
    (rank,) = shard(model, Plan(tensor=4, sequence=True, expert=2, expert_tensor=1))
    return int(one(rank.model).parameters.by_part["experts"])


@case("F32", "0.6675")
def frozen_weights() -> str:
    """Of the second half of the layers, into which a gradient comes from the first."""
    _, last = shard(lora(read(LLAMA3_70B), 14, "all-linear"), Plan(pipeline=2))
    step = trained(last.model, tokens=1)
    return f"{step.flops / (3 * step.forward):.4f}"
