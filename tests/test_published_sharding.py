"""Published memory of training on many ranks: Megatron's activations, ZeRO's states, what manuals print.

The formulas of Korthikanti et al. 2022 (arXiv:2205.05198) come out of the rules of what ops keep: 16-bit activations,
dropout behind scores and branches, masks of a byte, one kernel for scale, mask and softmax. The paper leaves out means
and deviations of rows, which layer norms keep in float32; here they are told apart.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from test_published import FILE, Row, found, model_of, rows

import assay
from assay.readings.order import carried, in_order
from assay.readings.precision import precision
from assay.readings.setting import setting
from assay.readings.states import States, states
from assay.readings.step import training_memory
from assay.readings.training import Traced
from assay.records import replace
from assay.rewrites.plan import Plan
from assay.rewrites.policies import executed
from assay.rewrites.shard import shard
from assay.spec import Block, Model

needs_rows = pytest.mark.skipif(not FILE.exists(), reason="needs the published figures beside the repository")

NORMS = 2  # of a layer
STATISTICS = 2 * 4  # bytes a row of a norm: a mean and a reciprocal deviation in float32


def kept_in_a_layer(model: Model, batch: Any, tokens: Any) -> Any:
    """Bytes that autograd keeps of the second layer."""
    asked = setting(model, batch=batch, tokens=tokens)
    run = Traced(asked, carried(model), precision("fp16"), "cuda")
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


def activations(row: Row) -> float:
    """Bytes of a layer by the plan and recomputation of a row, without the statistics of its norms."""
    way = row["setting"].partition(",")[0]
    ranks, batch = (int(n) for n in found(row, r"t=(\d+), b=(\d+)"))
    sequence = "sp" in way.split("-")
    how = "layer" if way == "full" else "attention" if "sel" in way else "none"
    (rank, *_) = shard(model_of(row), Plan(tensor=ranks, sequence=sequence))
    made = training_memory(
        rank.model, batch, 2048, precision="fp16", attention="plain", policy="megatron", dropout=0.1, recompute=how
    )
    layer = max((kept for kept in made.layers if kept.name == "layer"), key=lambda kept: kept.times)
    tokens = 2048 // ranks if sequence else 2048
    return layer.bytes - (NORMS * STATISTICS * batch * tokens if how != "layer" else 0)


ACTIVATIONS = [row for row in rows() if row["quantity"] == "activation bytes per transformer layer"]


@needs_rows
@pytest.mark.parametrize("row", ACTIVATIONS, ids=[row["id"] for row in ACTIVATIONS])
def test_activations_of_a_layer(row: Row) -> None:
    assert activations(row) == pytest.approx(row["value"], rel=1e-12)
