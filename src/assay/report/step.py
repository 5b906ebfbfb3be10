"""The memory of a training step as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.readings.step import Moment, TrainingMemory
from assay.report.contract import model_object
from assay.report.table import Style, table, wrap
from assay.report.units import binary_bytes, decimal_bytes, digits, plural, share, shorten
from assay.spec import Model

SAYS = {
    "parameters": "trained",
    "frozen": "parameters that are not trained",
    "buffers": "stored, and no parameters",
    "main_gradients": "in which passes are added up",
    "master": "the copy that is stepped",
    "gradients": "of parameters",
    "saved": "activations kept for the backward pass",
    "passing": "activations and gradients on their way",
    "inputs": "what a pass is given",
    "update": "what the optimizer makes of all tensors at once",
    "workspace": "of the matrix library",
}
STANDING = {"workspace": "measured"}  # what no description says; what autograd keeps hangs on the policy
_MODELLED = ("saved", "passing")


def _sizes(value: int) -> list[str]:
    return [decimal_bytes(value), binary_bytes(value)]


def report(model: Model, held: TrainingMemory, style: Style) -> list[str]:
    """The lines of the report."""
    peak = held.peak
    lines = [style.bold(shorten(model.name, 100)), *wrap(_setting(held), "")]
    rows = [["peak", *_sizes(peak.bytes), _where(peak)]]
    rows.append(["between steps", *_sizes(held.resident), "parameters and what the optimizer keeps"])
    rows.append(["saved", *_sizes(held.saved), "by embedding, layers and the last norm, for the backward pass"])
    lines += ["", *table(rows, "<>><")]
    lines += ["", style.bold("What it is made of at its peak"), *_parts(peak, style)]
    lines += ["", style.bold("The step, each stretch at its fullest"), *_timeline(held, style)]
    lines += ["", style.bold("What a layer keeps"), *_layers(held, style)]
    lines += ["", style.bold("Notes"), *(line for note in notes(held) for line in wrap(note, "  · ", "    "))]
    return lines


def _setting(held: TrainingMemory) -> str:
    asked = held.setting
    said = [f"batch {digits(asked.batch)}", f"tokens {digits(asked.tokens)}"]
    said += [f"source {digits(asked.source)}"] if asked.source is not None else []
    said += [f"images {digits(asked.images)}"] if asked.images else []
    said += [f"sounds {digits(asked.sounds)}"] if asked.sounds else []
    said += [
        f"precision {held.states.precision.name}",
        f"optimizer {held.states.name}",
        f"attention {held.attention}",
        f"policy {held.policy}",
    ]
    if str(held.states.trained) != str(held.states.elements):
        said.append(f"{digits(held.states.trained)} of {digits(held.states.elements)} parameters trained")
    said += [f"recompute {held.recompute}"] if held.recompute != "none" else []
    said += [f"accumulation {held.states.accumulation}"] if held.states.accumulation > 1 else []
    return " · ".join([*said, f"on {'a GPU' if held.device == 'cuda' else 'a CPU'}"])


def _where(moment: Moment) -> str:
    return moment.name if not moment.at else f"{moment.name}, at {moment.at}"


def standing(part: str) -> str:
    """Where the figure of a part stands."""
    return STANDING.get(part, "modelled" if part in _MODELLED else "exact")


def _says(part: str) -> str:
    return SAYS.get(part, "a state of the optimizer" if part.startswith("optimizer.") else "")


def _parts(peak: Moment, style: Style) -> list[str]:
    rows = [
        [name, digits(size), decimal_bytes(size), share(size, peak.bytes), standing(name), _says(name)]
        for name, size in peak.parts.items()
        if size
    ]
    rows.append(["total", digits(peak.bytes), decimal_bytes(peak.bytes), "", "", ""])
    return table(rows, "<>>><<", ["part", "bytes", "GB", "share", "", ""], style)


def stretches(held: TrainingMemory) -> Iterator[tuple[str, Moment]]:
    """Moments in order, layers of one pass that follow each other as one, with the fullest of them."""
    run: list[Moment] = []

    def name(moment: Moment) -> str:
        words = moment.name.split()
        return " ".join(words[:-1]) if words[-1].isdigit() else moment.name

    def ended() -> Iterator[tuple[str, Moment]]:
        if run:
            first, last = run[0].name.split()[-1], run[-1].name.split()[-1]
            title = run[0].name if len(run) == 1 else f"{name(run[0])} {first} to {last}"
            yield title, max(run, key=lambda moment: moment.bytes)

    for moment in held.timeline:
        if run and name(moment) != name(run[0]):
            yield from ended()
            run = []
        run.append(moment)
    yield from ended()


def _timeline(held: TrainingMemory, style: Style) -> list[str]:
    peak = held.peak
    rows = []
    for title, moment in stretches(held):
        mark = "the peak" if moment is peak else ""
        rows.append([title, digits(moment.bytes), *_sizes(moment.bytes), moment.at, mark])
    return table(rows, "<>>><<", ["", "bytes", "GB", "GiB", "at", ""], style)


def _layers(held: TrainingMemory, style: Style) -> list[str]:
    rows = [[one.name, plural(one.times, "time"), digits(one.bytes), *_sizes(one.bytes)] for one in held.layers]
    rows.append(["logits and loss", plural(1, "time"), digits(held.loss), *_sizes(held.loss)])
    return table(rows, "<>>>>", ["", "", "bytes", "GB", "GiB"], style)


def notes(held: TrainingMemory) -> list[str]:
    """What the figures rest on."""
    whose = {
        "ours": "assay.build",
        "transformers": "the public implementation (transformers, its eager code)",
        "megatron": "Megatron-LM",
    }
    made = [*held.notes, f"activations are those of {whose[held.policy]}, op by op; each storage counts once"]
    if held.moment("between steps").parts["workspace"]:
        made.append("the workspace is a measured figure of one H200; --workspace gives another, 0 none")
    made.append("what the process and its libraries take beside, and an allocator's blocks, are not in it")
    return made


def document(version: str, model: Model, held: TrainingMemory) -> dict[str, Any]:
    """The memory of a step as one object of JSON."""
    asked = held.setting
    return {
        "assay": version,
        "model": model_object(model),
        "setting": {
            "batch": asked.batch,
            "tokens": asked.tokens,
            "source": asked.source,
            "images": asked.images,
            "image_tokens": asked.image_tokens,
            "sounds": asked.sounds,
            "precision": held.states.precision.name,
            "optimizer": held.states.name,
            "attention": held.attention,
            "policy": held.policy,
            "recompute": held.recompute,
            "accumulation": held.states.accumulation,
            "device": held.device,
        },
        "peak": _moment(held.peak),
        "resident": held.resident,
        "saved": held.saved,
        "loss": held.loss,
        "layers": [{"name": one.name, "times": one.times, "bytes": one.bytes} for one in held.layers],
        "flops": {"forward": held.work.forward, "backward": held.work.backward, "again": held.work.again},
        "timeline": [_moment(moment) for moment in held.timeline],
        "notes": notes(held),
    }


def _moment(moment: Moment) -> Mapping[str, Any]:
    return {"name": moment.name, "at": moment.at, "bytes": moment.bytes, "parts": dict(moment.parts)}
