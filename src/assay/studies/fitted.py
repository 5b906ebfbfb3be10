"""An answer to whether a model fits, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.readings.count import count
from assay.readings.setting import setting
from assay.report.contract import model_object, stored_in
from assay.report.table import Style, table, wrap
from assay.report.units import binary_bytes, decimal_bytes, digits, plural, share
from assay.studies.needs import Serving

if TYPE_CHECKING:
    from assay.studies.fit import Fit, Limit
    from assay.studies.remedies import Change

ENDS = {
    "memory": "",
    "positions": "the whole position table",
    "range": "all that the model claims",
    "nothing": "",
}
SAYS = {
    "weights": "of the model",
    "cache": "keys and values",
    "states": "of recurrences",
    "activations": "at the fullest moment",
    "logits": "",
    "parameters": "",
    "gradients": "",
    "optimizer": "states and master copies",
    "loss": "head and loss",
    "inputs": "token ids",
}


def report(made: Fit, style: Style) -> list[str]:
    """Yes or no, the three figures, the parts, the limits, and what would make it fit."""
    lines = [style.bold(f"{made.model.name} on {_machines(made)}: {_verdict(made)}")]
    lines += [style.dim(line) for line in wrap(_asked(made), "")]
    lines += ["", *_figures(made)]
    lines += ["", *_parts(made, style)]
    lines += ["", *_limits(made)]
    if not made.fits:
        lines += ["", *_changes(made, style)]
    return [*lines, "", *(line for note in made.notes for line in wrap(note, "", "  "))]


def _machines(made: Fit) -> str:
    return f"{made.gpus:,} × {made.chip.title}" if made.gpus > 1 else made.chip.title


def _verdict(made: Fit) -> str:
    left = f"{decimal_bytes(abs(made.margin))} ({share(abs(made.margin), made.room)})"
    each = " on each rank" if made.gpus > 1 and made.need.rank.count == made.gpus else ""
    each = f" on {made.need.rank.name}" if made.gpus > 1 and not each else each
    return f"fits, {left} left{each}" if made.fits else f"does not fit, {left} too much{each}"


def _asked(made: Fit) -> str:
    """The setting in words."""
    case, work = made.case, made.case.work
    said = ["inference" if isinstance(work, Serving) else "training"]
    said += [f"{case.plan}"] if made.gpus > 1 else []
    said.append(f"batch {digits(case.batch)}{' a replica' if case.plan.data > 1 else ''}")
    said.append(f"context {digits(case.context)}")
    seen = {name: getattr(work, name) for name in ("source", "images", "image_tokens", "sounds")}
    understood = setting(made.model, tokens=case.context, **seen)
    said += [f"{name.replace('_', ' ')} {digits(size)}" for name in seen if (size := getattr(understood, name))]
    said += list(_work(work, made))
    return " · ".join(said)


def _work(work: Any, made: Fit) -> Iterator[str]:
    """What is not as usual, and what is always said."""
    if isinstance(work, Serving):
        yield f"weights {work.weights or stored_in(made.model, count(made.model, tokens=1))}"
        if work.cache:
            yield f"cache {work.cache}"
        if work.page:
            yield f"pages of {plural(work.page, 'token')}"
        yield f"prompts {digits(work.chunk)} tokens at a time" if work.chunk else "prompts read whole"
        if work.prompts:
            yield f"{digits(work.prompts)} of them together"
        yield f"logits {work.logits}"
    else:
        if work.lora:
            frozen = f" in {work.weights}" if work.weights else ""
            yield f"adapters of rank {digits(work.lora)} trained, other weights frozen{frozen}"
        yield f"optimizer {work.optimizer if isinstance(work.optimizer, str) else work.optimizer.name}"
        yield f"precision {work.precision if isinstance(work.precision, str) else work.precision.name}"
        yield f"recomputed {work.recompute}"
        if work.accumulation > 1:
            yield f"{digits(work.accumulation)} passes a step"
        if work.logits_chunk:
            yield f"head and loss {digits(work.logits_chunk)} tokens at a time"
    yield f"attention {work.attention}"
    yield f"policy {work.policy}"


def _figures(made: Fit) -> list[str]:
    held = f"{made.utilization:.0%} of {digits(made.memory)}" if made.utilization != 1 else digits(made.memory)
    less = f" less {digits(made.reserve)} reserved" if made.reserve else ""
    rows = [
        ["needed", _both(made.need.bytes), _rank(made)],
        ["there is", _both(made.room), f"{held}{less}"],
        ["left" if made.fits else "missing", _both(abs(made.margin)), share(abs(made.margin), made.room)],
    ]
    return table(rows, "<><", indent="")


def _both(size: int) -> str:
    return f"{decimal_bytes(size)} = {binary_bytes(size)}"


def _rank(made: Fit) -> str:
    """The most loaded rank, and its fullest moment."""
    need = made.need
    if made.gpus == 1:
        return f"at the fullest moment: {need.at}"
    many = f", {digits(need.rank.count)} of {digits(made.gpus)}" if need.rank.count < made.gpus else ""
    return f"{need.rank.name}{many}; at the fullest moment: {need.at}"


def _parts(made: Fit, style: Style) -> list[str]:
    rows = [
        [name, decimal_bytes(size), share(size, made.need.bytes), digits(size), _says(name, made)]
        for name, size in made.need.parts.items()
    ]
    rows.append(["total", decimal_bytes(made.need.bytes), "", digits(made.need.bytes), ""])
    lines = table(rows, "<>>><", ["part", "", "", "bytes", ""], style, indent="")
    if len(made.ranks) > 1:
        others = [[n.rank.name, decimal_bytes(n.bytes), plural(n.rank.count, "rank")] for n in made.ranks]
        lines += ["", *table(others, "<>>", ["ranks that differ", "needed", ""], style, indent="")]
    return lines


def _says(name: str, made: Fit) -> str:
    whole = name == "parameters" and made.case.plan.zero == 3
    return "a share, and the largest layer whole" if whole else SAYS.get(name, "")


def _limits(made: Fit) -> list[str]:
    case = made.case
    replica = " a replica" if case.plan.data > 1 else ""
    rows = [
        [f"largest batch{replica} at context {digits(case.context)}", *_limit(made.batch)],
        [f"longest context at batch {digits(case.batch)}", *_limit(made.context)],
    ]
    return table(rows, "<><", indent="")


def _limit(limit: Limit) -> list[str]:
    if limit.value is None:
        return ["any", "nothing grows with it"]
    return [digits(limit.value) if limit.value else "none", ENDS[limit.ends] if limit.value else "not even 1 fits"]


def _changes(made: Fit, style: Style) -> list[str]:
    """What would do, then what would not."""
    lines = []
    enough = [one for one in made.changes if one.fits]
    if enough:
        lines += [style.bold("One change that makes it fit"), *_table(enough, style)]
    if made.pairs:
        lines += [*([""] if lines else []), style.bold("Two that do on the same chips"), *_table(made.pairs, style)]
    rest = [one for one in made.changes if not one.fits]
    if rest:
        lines += [*([""] if lines else []), style.bold("Not enough alone"), *_table(rest, style)]
    return lines or ["No change that is known of makes it fit."]


def _table(changes: Any, style: Style) -> list[str]:
    def row(one: Change) -> list[str]:
        left = decimal_bytes(abs(one.margin))
        return [one.says, decimal_bytes(one.need.bytes), left if one.fits else f"-{left}"]

    return table([row(one) for one in changes], "<>>", ["", "needed", "left"], style)


def document(version: str, made: Fit) -> dict[str, Any]:
    """The answer as one object of JSON."""
    model, case, need = made.model, made.case, made.need
    return {
        "assay": version,
        "model": model_object(model),
        "gpu": {"name": made.chip.name, "title": made.chip.title, "memory": made.memory, "gpus": made.gpus},
        "setting": {
            "train": not isinstance(case.work, Serving),
            "batch": case.batch,
            "context": case.context,
            **_plain(case.work),
            "reserve": made.reserve,
            "utilization": made.utilization,
        },
        "plan": _plain(case.plan),
        "fits": made.fits,
        "need": {
            "bytes": need.bytes,
            "parts": dict(need.parts),
            "rank": need.rank.name,
            "ranks": need.rank.count,
            "at": need.at,
        },
        "available": made.room,
        "margin": made.margin,
        "margin_percent": round(100 * made.margin / made.room, 4),
        "ranks": [{"name": n.rank.name, "ranks": n.rank.count, "needed": n.bytes} for n in made.ranks],
        "largest_batch": {"value": made.batch.value, "ends": made.batch.ends},
        "longest_context": {"value": made.context.value, "ends": made.context.ends},
        "changes": [_change(one) for one in made.changes],
        "pairs": [_change(one) for one in made.pairs],
        "notes": list(made.notes),
    }


def _change(one: Change) -> dict[str, Any]:
    return {
        "change": one.says,
        "sets": dict(one.sets),
        "fits": one.fits,
        "needed": one.need.bytes,
        "margin": one.margin,
        "gpus": one.gpus,
        "gpu": one.chip,
    }


def _plain(record: Any) -> Mapping[str, Any]:
    """The fields of a record, those that are records themselves by their names."""
    values = {name: getattr(record, name) for name in record.__match_args__}
    return {name: getattr(value, "name", value) for name, value in values.items()}
