"""Published memory of training on many ranks: Megatron's activations, ZeRO's states, what manuals print.

The formulas of Korthikanti et al. 2022 (arXiv:2205.05198) come out of the rules of what ops keep: 16-bit activations,
dropout behind scores and branches, masks of a byte, one kernel for scale, mask and softmax. The paper leaves out means
and deviations of rows, which layer norms keep in float32; here they are told apart.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from published_rows import Row, found, model_of, needs_rows, rows

import assay
from assay.readings.order import in_order
from assay.readings.precision import precision
from assay.readings.setting import setting
from assay.readings.states import States, states
from assay.readings.step import training_memory
from assay.readings.training import Traced
from assay.records import replace
from assay.rewrites.plan import Plan
from assay.rewrites.policies import executed
from assay.rewrites.shard import shard
from assay.spec import Block, Model, carried

NORMS = 2  # of a layer
STATISTICS = 2 * 4  # bytes a row of a norm: a mean and a reciprocal deviation in float32


def kept_in_a_layer(model: Model, batch: Any, tokens: Any) -> Any:
    """Bytes that autograd keeps of the second layer."""
    asked = setting(model, batch=batch, tokens=tokens)
    run = Traced(asked, carried(model.segments), precision("fp16"), "cuda")
    for segment, layer, _ in in_order(model.segments):
        run.layer(segment, layer)
    return sum(op.saved for segment, ops in run.finish() for op in ops if op.layer == 1 and op.saved is not None)


@pytest.mark.parametrize("sequence", [None, False, True])
def test_the_formulas_in_symbols(sequence: bool | None) -> None:
    """s b h (34 + 5 a s / h); with tensor ranks 10 + 24 / t + 5 a s / h t; with divided tokens all over t."""
    sympy = pytest.importorskip("sympy")
    b, s, h, a, t, vocab = sympy.symbols("b s h a t V", positive=True, integer=True)
    plan = Plan() if sequence is None else Plan(tensor=8, sequence=sequence)
    ranks, rows = (1, s) if sequence is None else (t, s / t if sequence else s)
    model = shard(executed(assay.load("gpt-3-175b"), "megatron", dropout=0.1), plan)[0].model
    sizes = {"d": h, "g": a / ranks, "r": 1, "k": h / a, "v": h / a, "f": 4 * h / ranks, "V": vocab / ranks}
    segments = tuple(
        replace(
            segment,
            block=segment.block.resize(**sizes),
            axes={**segment.axes, "nt": rows} if sequence else segment.axes,
            layers=segment.layers[:2],
        )
        for segment in model.segments
    )
    kept = kept_in_a_layer(replace(model, segments=segments, positions=None), b, s)
    paper = {
        None: s * b * h * (34 + 5 * a * s / h),
        False: s * b * h * (10 + 24 / t + 5 * a * s / (h * t)),
        True: s * b * h / t * (34 + 5 * a * s / h),
    }[sequence]
    assert sympy.simplify(kept - paper - NORMS * STATISTICS * b * rows) == 0


def short(model: Model) -> Model:
    """The first layers alone: what is asked is of one of them, and all are walked."""
    segments = (replace(segment, layers=segment.layers[:3]) for segment in model.segments)
    return replace(model, segments=tuple(segments))


def activations(row: Row) -> float:
    """Bytes of a layer by the plan and recomputation of a row, without the statistics of its norms."""
    way = row["setting"].partition(",")[0]
    ranks, batch = (int(n) for n in found(row, r"t=(\d+), b=(\d+)"))
    sequence = "sp" in way.split("-")
    how = "layer" if way == "full" else "attention" if "sel" in way else "none"
    (rank, *_) = shard(short(model_of(row)), Plan(tensor=ranks, sequence=sequence))
    made = training_memory(
        rank.model, batch, 2048, precision="fp16", attention="plain", policy="megatron", dropout=0.1, recompute=how
    )
    layer = max((kept for kept in made.layers if kept.name == "layer"), key=lambda kept: kept.times)
    tokens = 2048 // ranks if sequence else 2048
    return float(layer.bytes) - (NORMS * STATISTICS * batch * tokens if how != "layer" else 0)


ACTIVATIONS = [row for row in rows() if row["quantity"] == "activation bytes per transformer layer"]


@needs_rows
@pytest.mark.parametrize("row", ACTIVATIONS, ids=[row["id"] for row in ACTIVATIONS])
def test_activations_of_a_layer(row: Row) -> None:
    assert activations(row) == pytest.approx(row["value"], rel=1e-12)


# -- what recomputation saves and costs --------------------------------------------------------------------------------


def named(row: Row) -> Model:
    """GPT-3 175B, or Megatron-Turing NLG 530B."""
    model = assay.load({"gpt3": "gpt-3-175b", "mtnlg": "mt-nlg-530b"}[row["id"].split(".")[-1]])
    assert model.width == row["dims"]["d_model"]
    return model


def layer_bytes(row: Row, how: str) -> int:
    """Bytes of a layer of one rank, without the statistics of its norms."""
    made = training_memory(
        short(named(row)), 1, 2048, precision="fp16", attention="plain", policy="megatron", dropout=0.1, recompute=how
    )
    layer = max((kept for kept in made.layers if kept.name == "layer"), key=lambda kept: kept.times)
    return int(layer.bytes) - 16 * 2048 * 2


def scores_in_units(row: Row) -> float:
    """5 a s / h: what selective recomputation does not keep, in units of s b h."""
    unit = 2048 * named(row).width
    return (layer_bytes(row, "none") - layer_bytes(row, "attention")) / unit


def saving(row: Row) -> float:
    """Of a layer's activations, in percent."""
    return 100 * (1 - layer_bytes(row, "attention") / layer_bytes(row, "none"))


def recomputed(row: Row) -> float:
    """FLOPs of scores and values of those of a step, in percent.

    The paper adds all three passes over them, s / 6h; running forward again costs one, a third of what it prints.
    """
    step = assay.count(named(row), 1, 2048).flops
    return float(100 * 3 * step.attention_scores / (3 * step.total))


# -- states ------------------------------------------------------------------------------------------------------------


def of(parameters: int) -> Block:
    """A matrix with so many parameters."""
    assert parameters % 1000 == 0
    return assay.block("y = linear(x[b n d], W[d f]) -> [b n f]", d=1000, f=parameters // 1000)


def zero(row: Row) -> float:
    """Rajbhandari et al. 2020, figure 1: 7.5 billion parameters on 64 ranks."""
    stage = row["id"][-1]
    return held(states(of(7_500_000_000), precision="mixed", zero=int(stage) if stage.isdigit() else 0, shards=64))


def held(made: States) -> float:
    """Bytes without the optimizer's counters."""
    return float(made.total - made.optimizer["step"])


def mixed(row: Row) -> float:
    """A parameter's 16 bytes, of a round number of them."""
    billions = int(row["id"].split(".")[-1].rstrip("b"))
    return held(states(of(billions * 10**9), precision="mixed"))


def deepspeed(row: Row) -> float:
    """The estimates of DeepSpeed's manual for T5-3B on 8 ranks.

    Stage 2 there keeps 16-bit gradients whole, and a share of float32 ones; stage 3 has the largest module's parameters
    and gradients whole beside its shares; with states elsewhere the parameters are left.
    """
    model, way = assay.load("t5-3b"), row["id"].split(".")[2]
    if way == "z2off":
        return float(states(model, precision="mixed", zero=2, shards=8).parameters)
    if way == "z2":
        made = states(model, precision="mixed", zero=1, shards=8)
        return held(made) + 4 * float(made.trained) / 8
    largest = max(entry.elements for entry in assay.tensors(model))
    return held(states(model, precision="megatron", zero=3, shards=8)) + (2 + 2) * float(largest)


def checkpoint(row: Row) -> float:
    """BLOOM's: parameters, the copy that is stepped, two moments."""
    made = states(assay.load("bloom-176b"), precision="megatron")
    return held(made) - float(made.main_gradients)


FIGURES = {
    "5as/h": scores_in_units,
    "activation memory saved by selective recompute": saving,
    "FLOPs overhead of selective recompute": recomputed,
    "model-state memory per GPU": zero,
    "model states, BF16 mixed precision": mixed,
    "estimated GPU memory per GPU": deepspeed,
    "full checkpoint": checkpoint,
}
UNITS = {"": 1, "%": 1, "GB": 1e9, "GiB": 2**30, "TiB": 2**40}
COVERED = [row for row in rows() if row["quantity"] in FIGURES]


@needs_rows
@pytest.mark.parametrize("row", COVERED, ids=[row["id"] for row in COVERED])
def test_figure(row: Row) -> None:
    made = FIGURES[row["quantity"]](row) / UNITS[row["unit"]]
    assert made == pytest.approx(row["value"], rel=row["tol_rel"])


@needs_rows
def test_nothing_drops_silently() -> None:
    """Every row on activations and on memory of training, but ratios of two measured times."""
    words = r"activation|5as/h|selective recompute|model-state memory|model states|GPU memory|full checkpoint"
    asked = [row["id"] for row in rows() if re.search(words, row["quantity"])]
    assert sorted(asked) == sorted(row["id"] for row in (*COVERED, *ACTIVATIONS))
    assert (len(ACTIVATIONS), len(COVERED)) == (18, 16)
