"""Published figures of training runs: days, seconds of a step, utilization of models and of hardware, peaks of chips.

Each row is a run of `assay.train` on a chip of the catalogue, with the speed or the share that the paper prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from published_rows import Row, found, model_of, needs_rows, rows
from test_published import TRAINED

import assay
from assay.hardware import chip
from assay.readings.compute import TrainingRun
from assay.spec import Model

pytestmark = needs_rows

LENGTH = 2048  # of the sequences of all of them


def formula(run: TrainingRun, name: str) -> float:
    """FLOPs of a published formula for a run."""
    return float(next(one.value for one in run.published if one.name == name))


def over_the_peak(row: Row) -> float:
    """FLOP/s that a chip reaches, over what the catalogue says it can, in percent."""
    named = "tpu-v5p" if "v5p" in row["setting"] else "h100"
    (speed,) = found(row, r"([\d.]+) (?:TFLOP/s|TF/s)")
    return 100 * speed * 1e12 / chip(named).rate("bf16")


def recomputed(row: Row) -> TrainingRun:
    """A step with every layer computed again."""
    sequences = {"megatron21": 1536, "mtnlg": 1920, "bloom": 2048}[row["id"].split(".")[1]]
    return assay.train(model_of(row), tokens=sequences * LENGTH, context=LENGTH, recompute="layer")


def step(row: Row) -> float:
    """Seconds of a step at a speed in hardware FLOPs, as Megatron counts them: four passes over layers, not three."""
    gpus, speed = found(row, r"(\d{4}) ?A100.*?(\d+) TF/s" if "gpt3" in row["id"] else r"(2240)/.*?(\d+)/\d+/\d+ TF/s")
    return float(recomputed(row).hardware_flops / (gpus * speed * 1e12))


def hardware_speed(row: Row) -> float:
    """FLOP/s of one card."""
    gpus, seconds = found(row, r"(\d+) A100.*~([\d.]+) s/iter")
    return float(recomputed(row).hardware_flops / (gpus * seconds))


def eight_n(row: Row) -> float:
    """Days by 8 N T / (n X): 6ND and a third for recomputation (Narayanan et al. 2021, equation 4)."""
    (tokens,) = found(row, r"([\d.]+B) tokens")
    gpus, speed = found(row, r"(\d+) (?:A100|GPUs) at (\d+) TF/s")
    if row["dims"] is None:  # 13 B parameters are all that is said
        return 8 * 13e9 * tokens / (gpus * speed * 1e12 * 86400)
    run = assay.train(model_of(row), tokens=int(tokens), context=LENGTH)
    return 4 / 3 * formula(run, "6ND") / (gpus * speed * 1e12 * 86400)


def measured_days(row: Row) -> float:
    """Days at so many tokens a second of each card."""
    tokens, gpus, each = found(row, r"([\d.]+T) tokens, (\d+) A100 at (\d+) tok/s")
    speed = {"gpu": "a100", "gpus": int(gpus), "tokens_per_second": gpus * each}
    on = assay.train(model_of(row), tokens=int(tokens), context=LENGTH, **speed).on  # type: ignore[arg-type]
    assert on is not None
    return float(on.days)


def days_of_a_budget(row: Row) -> float:
    """Days of 6.3e24 FLOPs, which the source takes for 70 B parameters; the model has 70.6 B, 0.8 % more."""
    gpus, share = found(row, r"(\d+) TPU v5p .*, (\d+)% MFU")
    on = assay.train(model_of(row), budget=6.3e24, context=LENGTH, gpu="tpu-v5p", gpus=int(gpus), mfu=share / 100).on
    assert on is not None
    return float(on.days)


def palm_hfu(row: Row) -> float:
    """MFU times 4.10 / 3.28, TFLOP a token with and without what is computed again: a quarter and not a third, so PaLM
    kept some of its layers' activations.
    """
    on = assay.train(
        model_of(row), tokens=2048 * LENGTH, context=LENGTH, gpu="tpu-v4", gpus=6144, tokens_per_second=238_300
    ).on
    assert on is not None
    return float(100 * on.mfu * 4.10 / 3.28)


def selective_hfu(row: Row) -> float:
    """Korthikanti et al. 2022: s / 3h in place of s / 6h, all of attention's core twice. What is computed again is its
    forward alone, a third of that.
    """
    gpus, batch, seconds = found(row, r"(\d+) GPUs, GBS (\d+).*iteration ([\d.]+) s")
    run = assay.train(model_of(row), tokens=int(batch) * LENGTH, context=LENGTH, recompute="attention")
    return float(100 * (run.flops + 3 * run.again) / (gpus * seconds * chip("a100").rate("bf16")))


def prefill(row: Row) -> float:
    """2 N for each token of a prompt over what 64 chips can do (Pope et al. 2022)."""
    gpus, batch, length, seconds = found(row, r"(\d+) TPU v4, batch (\d+) x (\d+) in ([\d.]+) s")
    n = assay.count(model_of(row), tokens=1).parameters.total
    return float(100 * 2 * n * batch * length / (seconds * gpus * chip("tpu-v4").rate("bf16")))


def of_preset(row: Row) -> float:
    """6ND of the model itself, for its sizes are not in the table."""
    name = row["model"].lower()
    (tokens,) = found(row, r"([\d.]+B) tokens")
    model: Model = assay.load(name)
    spent = formula(assay.train(model, tokens=int(tokens), context=512), "6ND")
    return spent / 8.64e19 if row["unit"] == "PF-day" else spent


FIGURES: dict[str, Callable[[Row], float]] = {
    r"mfu.megatron24|mfu.llama3|mfu.maxtext": over_the_peak,
    r"time.megatron21|time.mtnlg": step,
    r"tflops.bloom": hardware_speed,
    r"days.megatron|days.bigscience": eight_n,
    r"days.llama1": measured_days,
    r"book.l3-70b.days": days_of_a_budget,
    r"hfu.palm": palm_hfu,
    r"hfu.korth": selective_hfu,
    r"mfu.esti.prefill": prefill,
    r"gpt3d1.(bert-base|roberta)": of_preset,
}
UNITS = {"TFLOP/s": 1e12}
COVERED = [row for row in rows() if re.search(TRAINED, row["id"])]


def figure_of(row: Row) -> Callable[[Row], float]:
    """The one figure that a row is of."""
    (made,) = (figure for pattern, figure in FIGURES.items() if re.search(pattern, row["id"]))
    return made


@pytest.mark.parametrize("row", COVERED, ids=[row["id"] for row in COVERED])
def test_figure(row: Row) -> None:
    assert figure_of(row)(row) / UNITS.get(row["unit"], 1) == pytest.approx(row["value"], rel=row["tol_rel"])


def test_nothing_drops_silently() -> None:
    assert len(COVERED) == 32
    for pattern in FIGURES:
        assert any(re.search(pattern, row["id"]) for row in COVERED), pattern


def test_a_wrong_peak_is_seen() -> None:
    """The sparse figure of an H100 is refused by every row of it."""
    for row in COVERED:
        if "h100" in row["setting"].lower():
            assert over_the_peak(row) / 2 != pytest.approx(row["value"], rel=row["tol_rel"])
