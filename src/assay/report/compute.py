"""A training run as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.hardware import Chip
from assay.readings.compute import TrainingRun
from assay.readings.count import count
from assay.readings.laws import LAWS, Optimum
from assay.readings.machines import Machines
from assay.report.contract import model_object
from assay.report.hardware import rate
from assay.report.table import Style, table, wrap
from assay.report.units import digits, plain, ratio, short, shorten
from assay.spec import Model

JOULES = 3_600_000  # of a kilowatt-hour
AGAIN = {"attention": "attention's core, forward", "layer": "every layer, forward"}
_ENERGY = ("kWh", "MWh", "GWh", "TWh")


def power_of_ten(value: Any) -> str:
    """FLOPs as people write them: 8.687e+23."""
    return f"{float(value):.3e}"


def report(model: Model, run: TrainingRun, style: Style) -> list[str]:
    """The lines of a run."""
    lines = [style.bold(shorten(model.name, 100)), *wrap(_setting(run), "")]
    lines += ["", style.bold("FLOPs of the run"), *table(_work(run), "<><", indent="  ")]
    rows = [
        [one.name, power_of_ten(one.value), ratio(one.value, one.ours), one.text, one.source] for one in run.published
    ]
    if rows:
        lines += ["", style.bold("Published formulas of the same run, and how many times ours they are")]
        lines += table(rows, "<>><<", indent="  ")
    if run.on is not None:
        lines += ["", *_machines(run.on, style)]
    if run.optimal:
        lines += ["", *_optimal(model, run, style)]
    return lines


def _setting(run: TrainingRun) -> str:
    if len(run.lengths) > 1:
        held = sum(many for _, many in run.lengths)
        mean = f"packed sequences, {digits(held)} in a round, as one of {plain(run.mean_context)} after another"
    else:
        mean = f"{digits(run.lengths[0][0])} a sequence"
    return f"{digits(run.tokens)} tokens · {mean} · convention {run.setting.convention}"


def _work(run: TrainingRun) -> list[list[str]]:
    rows = [
        ["forward", power_of_ten(run.forward), ""],
        ["backward", power_of_ten(run.backward), f"{plain(run.backward / run.forward)} times forward"],
        ["model", power_of_ten(run.flops), f"{digits(run.flops_per_token)} a token"],
    ]
    if run.again:
        what = AGAIN.get(str(run.recompute), f"every layer, forward, {run.recompute} at a time")
        rows.append(["recomputed", power_of_ten(run.again), what])
        rows.append(["hardware", power_of_ten(run.hardware_flops), f"{ratio(run.hardware_flops, run.flops)} of model"])
    if run.update is not None:
        rows.append(
            ["optimizer", power_of_ten(run.update), f"{run.optimizer}, a step in {digits(run.step_tokens)} tokens"]
        )
    if run.visible != run.flops:
        rows.append(["visible pairs", power_of_ten(run.visible), f"{ratio(run.visible, run.flops)} of model: causal"])
    return rows


def _machines(on: Machines, style: Style) -> list[str]:
    name = on.chip.title if on.chip is not None else "chips"
    told = f"On {digits(on.gpus)} × {name}, {rate(on.peak)} TFLOP/s each in {on.dtype}"
    if on.chip is None:
        told = f"On {digits(on.gpus)} chips of {rate(on.peak)} TFLOP/s each"
    rows = [["MFU", f"{on.mfu:.1%}", "measured" if on.measured else "as given"]]
    if on.hfu != on.mfu:
        rows.append(["HFU", f"{on.hfu:.1%}", "with what is computed again"])
    rows.append(["tokens/s", short(on.tokens_per_second), "of all chips together"])
    rows.append(["GPU-days", plain(on.gpu_days), f"{plain(on.gpu_hours)} GPU-hours"])
    rows.append(["wall clock", f"{plain(on.days)} days", "no restarts, no lost work"])
    if on.energy is not None:
        overhead = f", times {on.pue:g} for the building" if on.pue != 1 else ""
        rows.append(["energy", energy(on.energy), f"modelled: {on.power:g} W a chip all the time{overhead}"])
    if on.cost is not None:
        rows.append(["price", f"{on.cost:,.0f}", f"{on.price:g} a chip and hour"])
    return [style.bold(told), *table(rows, "<><", indent="  ")]


def energy(joules: Any) -> str:
    """Energy as it is billed: 426.8 MWh."""
    value, unit = float(joules) / JOULES, 0
    while value >= 1000 and unit < len(_ENERGY) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.4g} {_ENERGY[unit]}"


def _optimal(model: Model, run: TrainingRun, style: Style) -> list[str]:
    """What the budget would best be spent on, by each law; this model first."""
    own = count(model, tokens=1).parameters.active
    rows = [["this model", short(own), short(run.tokens), plain(run.tokens / own), ""]]
    for one in run.optimal:
        law = LAWS[one.law]
        rows.append(
            [one.law, short(one.parameters), short(one.tokens), plain(one.ratio), _loss(law.loss(own, run.tokens))]
        )
    head = ["by", "parameters", "tokens", "tokens each", "loss of this model"]
    lines = [style.bold(f"What {power_of_ten(run.flops)} FLOPs are best spent on"), *table(rows, "<>>>>", head, style)]
    for one in run.optimal:
        lines += wrap(f"{one.law}: {LAWS[one.law].says}; {LAWS[one.law].source}", "  ", "    ")
    return lines


def _loss(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"


def document(version: str, model: Model, run: TrainingRun) -> dict[str, Any]:
    """The run as one object of JSON."""
    own = count(model, tokens=1).parameters.active
    return {
        "assay": version,
        "model": model_object(model),
        "setting": {
            "tokens": run.tokens,
            "lengths": [{"length": length, "sequences": many} for length, many in run.lengths],
            "mean_context": run.mean_context,
            "convention": run.setting.convention,
            "source": run.setting.source,
            "images": run.setting.images,
            "sounds": run.setting.sounds,
            "recompute": run.recompute,
            "optimizer": run.optimizer,
            "step_tokens": run.step_tokens,
        },
        "flops": {
            "forward": run.forward,
            "backward": run.backward,
            "model": run.flops,
            "recomputed": run.again,
            "hardware": run.hardware_flops,
            "optimizer": run.update,
            "visible": run.visible,
            "per_token": run.flops_per_token,
        },
        "published": [
            {"name": f.name, "formula": f.text, "source": f.source, "flops": f.value, "ratio": f.value / f.ours}
            for f in run.published
        ],
        "machines": None if run.on is None else machines_object(run.on),
        "optimal": [_optimum(one, own, run) for one in run.optimal],
    }


def machines_object(on: Machines) -> Mapping[str, Any]:
    """Machines as an object of JSON."""
    chip: Chip | None = on.chip
    return {
        "chip": None if chip is None else chip.name,
        "gpus": on.gpus,
        "dtype": on.dtype,
        "peak_flops": on.peak,
        "mfu": on.mfu,
        "hfu": on.hfu,
        "measured": on.measured,
        "tokens_per_second": on.tokens_per_second,
        "gpu_days": on.gpu_days,
        "days": on.days,
        "power": on.power,
        "pue": on.pue,
        "energy_kwh": None if on.energy is None else on.energy / JOULES,
        "price": on.price,
        "cost": on.cost,
    }


def _optimum(one: Optimum, own: Any, run: TrainingRun) -> dict[str, Any]:
    law = LAWS[one.law]
    return {
        "law": one.law,
        "parameters": one.parameters,
        "tokens": one.tokens,
        "tokens_per_parameter": one.ratio,
        "loss_of_this_model": law.loss(own, run.tokens),
        "source": law.source,
    }
