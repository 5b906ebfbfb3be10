"""What results print: their setting and a few figures, each the attribute's own."""

from __future__ import annotations

import pytest
from sympy import Symbol

import assay
from assay.readings.printed import listed, said


def test_numbers_end_below_each_other() -> None:
    assert listed(said(batch=1, mean_context=8192), [("a", 12345, "x"), ("long", 7, ""), ("b", "unknown", "of y")]) == (
        "batch 1 · mean context 8,192\na      12,345  x\nlong        7\nb     unknown  of y"
    )


def test_a_symbol_is_printed_as_it_is() -> None:
    assert listed("t", [("a", 2 * Symbol("n"), "x")]) == "t\na  2*n  x"


def figures(result: object) -> dict[str, str]:
    """The first word or two of each line, and the number behind it."""
    rows = [line.split("  ") for line in str(result).splitlines()[1:]]
    return {row[0]: next(word for word in row[1:] if word).strip() for row in rows}


def test_a_training_step_prints_its_figures() -> None:
    model = assay.load("gpt-2")
    held = assay.training_memory(model, 2, 128)
    assert str(held).splitlines()[0] == "batch 2 · tokens 128 · attention fused · policy transformers"
    assert figures(held) == {
        "peak bytes": f"{held.peak.bytes:,}",
        "resident bytes": f"{held.resident:,}",
        "saved bytes": f"{held.saved:,}",
    }
    states = assay.states(model, optimizer="sgd", precision="mixed")
    assert str(states).splitlines()[0] == "sgd · mixed · bytes"
    assert figures(states) == {
        "parameters": f"{states.parameters:,}",
        "gradients": f"{states.gradients:,}",
        "master": f"{states.master:,}",
        "total": f"{states.total:,}",
    }


def test_a_run_prints_its_figures() -> None:
    run = assay.train(assay.load("gpt-2"), tokens=10**9, context=1024, gpu="h100", mfu=0.4)
    assert run.on is not None
    assert str(run).splitlines()[0] == "tokens 1,000,000,000 · mean context 1,024"
    assert figures(run) == {
        "forward FLOPs": f"{run.forward:,}",
        "backward FLOPs": f"{run.backward:,}",
        "recomputed FLOPs": "0",
        "MFU": "40.0%",
        "GPU-days": f"{run.on.gpu_days:,.1f}",
    }
    assert "MFU" not in str(assay.train(assay.load("gpt-2"), tokens=10**9, context=1024))


@pytest.mark.parametrize("tokens", [16, Symbol("n", integer=True, positive=True)])
def test_a_counted_step_prints_its_figures(tokens: object) -> None:
    step = assay.training(assay.load("llama-3-8b"), tokens=tokens)
    printed = figures(step)
    assert printed["forward FLOPs"] in (str(step.forward), f"{step.forward:,}" if isinstance(tokens, int) else "")
    assert printed["saved bytes"] in (str(step.saved), f"{step.saved:,}" if isinstance(tokens, int) else "")


def test_memory_prints_its_parts() -> None:
    held = assay.memory(assay.load("llama-3-8b"), 2, 512, chunk=100, page=16)
    printed = str(held).splitlines()
    assert printed[0] == "batch 2 · tokens 512 · past 0 · attention fused · policy serving"
    assert figures(held) == {f"{part.name} bytes": f"{part.bytes:,}" for part in held.parts} | {
        "total bytes": f"{held.total:,}"
    }
    assert printed[-1].endswith(f"the fullest pass: {held.at.name}")


def test_a_chip_prints_its_figures() -> None:
    one = assay.chip("h100")
    assert str(one).splitlines()[0] == "NVIDIA H100 SXM5 80 GB · h100-sxm"
    assert figures(one) == {
        "memory": f"{one.memory:,}",
        "bandwidth": f"{one.bandwidth:,}",
        "interconnect": f"{one.interconnect:,}",
        **{dtype: f"{rate:,}" for dtype, rate in one.rates.items()},
        "power": f"{one.power:g}",
    }


def test_a_design_prints_what_it_was_asked_for() -> None:
    best = assay.design(parameters=10**9)[0]
    assert str(best).startswith(f"{best.name} · off ")
    assert figures(best) == {
        "parameters": f"{best.count.parameters.total:,}",
        "FLOPs a token": f"{best.count.flops_per_token:,}",
        "cache bytes a token": f"{best.count.cache.marginal_bytes_per_token:,}",
    }
