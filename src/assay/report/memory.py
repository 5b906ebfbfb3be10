"""The memory of inference as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.kinds.training.values import CACHE, STATES
from assay.readings.count import count_setting
from assay.readings.memory import EXACT, Memory, Pass
from assay.records import replace
from assay.report.contract import model_object
from assay.report.table import Style, table, wrap
from assay.report.units import binary_bytes, decimal_bytes, digits, plural, share, shorten
from assay.spec import Model

TENSORS = 6  # of the fullest moment, those that a report shows


def sizes(value: int) -> list[str]:
    """Bytes in both units."""
    return [decimal_bytes(value), binary_bytes(value)]


def report(model: Model, held: Memory, style: Style) -> list[str]:
    """The lines of the report."""
    lines = [style.bold(shorten(model.name, 100)), *wrap(_setting(held), "")]
    lines += ["", *table(_headline(model, held), "<>><")]
    lines += ["", style.bold("What it is made of"), *_parts(held, style)]
    lines += ["", style.bold(f"The fullest moment: {_where(held.at)}"), *_moment(held, style)]
    if len(held.passes) > 1:
        lines += ["", style.bold("Each pass at its fullest, but weights, cache and states"), *_passes(held, style)]
    lines += ["", style.bold("Notes"), *(line for note in held.notes for line in wrap(note, "  · ", "    "))]
    return lines


def _setting(held: Memory) -> str:
    asked = held.setting
    said = [f"batch {digits(asked.batch)}", f"tokens {digits(asked.tokens)}", f"past {digits(asked.past)}"]
    said += [f"source {digits(asked.source)}"] if asked.source is not None else []
    said += [f"images {digits(asked.images)}"] if asked.images else []
    said += [f"sounds {digits(asked.sounds)}"] if asked.sounds else []
    said += [f"chunk {digits(held.chunk)}"] if held.chunk else []
    said += [f"generate {digits(held.generate)}"] if held.generate else []
    said += [f"context {digits(held.context)}", f"logits {asked.logits}", f"attention {held.attention}"]
    return " · ".join([*said, f"policy {held.policy}"])


def _headline(model: Model, held: Memory) -> list[list[str]]:
    """The three figures that matter: all of it, what every request shares, what one sequence takes."""
    rows = [["memory", *sizes(held.total), "at the fullest moment"]]
    rows.append(["weights", *sizes(held.part("weights")), held.parts[0].says])
    kept = (held.cache if held.reserved is None else held.reserved) + held.states
    if kept:
        batch = int(held.setting.batch)
        more = marginal(model, held)
        grows = f"{digits(more)} bytes for one token more" if more else "of a fixed size"
        rows.append(["a sequence", *sizes(-(-kept // batch)), f"cache at {plural(held.context, 'token')}; {grows}"])
    return rows


def marginal(model: Model, held: Memory) -> Any:
    """Bytes that one more token of one sequence adds to the cache."""
    asked = replace(held.setting, tokens=1, past=held.context - 1) if held.cache else held.setting
    return count_setting(model, asked).cache.marginal_bytes_per_token if held.cache else 0


def _parts(held: Memory, style: Style) -> list[str]:
    rows = []
    for part in held.parts:
        rows.append([part.name, digits(part.bytes), *sizes(part.bytes), share(part.bytes, held.total), part.standing])
        rows[-1].append(part.says)
        if part.name == "weights" and len(held.weights_by) > 1:
            rows += [[f"  {name}", digits(size), *sizes(size), "", "", ""] for name, size in held.weights_by.items()]
        if part.name == "cache" and held.reserved not in (None, held.cache):
            rows.append(["  needed", digits(held.cache), *sizes(held.cache), "", EXACT, "by the architecture"])
    rows.append(["total", digits(held.total), *sizes(held.total), "", "", ""])
    return table(rows, "<>>>><<", ["part", "bytes", "GB", "GiB", "share", "", ""], style)


def _where(one: Pass) -> str:
    past = f" behind {digits(one.past)}" if one.past else ""
    return f"{one.name}, {plural(one.tokens, 'token')}{past}, {one.peak.where}"


def _moment(held: Memory, style: Style) -> list[str]:
    peak = held.at.peak
    lines = wrap(str(peak.op), "  ", "    ")
    groups = {group: size for group, size in peak.live.items() if group not in (CACHE, STATES)}
    rows = [[group, *sizes(size)] for group, size in sorted(groups.items(), key=lambda one: -one[1])]
    lines += table(rows, "<>>", ["alive", "GB", "GiB"], style)
    largest = [one for one in peak.largest if one.group not in (CACHE, STATES)][:TENSORS]
    rows = [[one.name, *sizes(one.bytes), one.group] for one in largest]
    return [*lines, *table(rows, "<>><", ["largest tensors", "GB", "GiB", ""], style)]


def _passes(held: Memory, style: Style) -> list[str]:
    rows = [
        [one.name, digits(one.tokens), digits(one.past), *sizes(one.activations + one.logits), one.peak.where]
        for one in held.passes
    ]
    return table(rows, "<>>>><", ["pass", "tokens", "past", "GB", "GiB", ""], style)


def document(version: str, model: Model, held: Memory) -> dict[str, Any]:
    """The memory as one object of JSON."""
    asked = held.setting
    return {
        "assay": version,
        "model": model_object(model),
        "setting": {
            "batch": asked.batch,
            "tokens": asked.tokens,
            "past": asked.past,
            "context": held.context,
            "source": asked.source,
            "images": asked.images,
            "logits": asked.logits,
            "latent": asked.latent,
            "weights": asked.weights,
            "cache": asked.cache,
            "state": asked.state,
            "attention": held.attention,
            "policy": held.policy,
            "page": held.page,
            "chunk": held.chunk,
            "generate": held.generate,
        },
        "total": held.total,
        "parts": [
            {"name": part.name, "bytes": part.bytes, "standing": part.standing, "says": part.says}
            for part in held.parts
        ],
        "weights": {"bytes": held.part("weights"), "by_format": dict(held.weights_by)},
        "cache": {
            "bytes": held.cache,
            "reserved_bytes": held.reserved,
            "states_bytes": held.states,
            "marginal_bytes_per_token": marginal(model, held),
        },
        "peak": _pass(held.at),
        "passes": [_pass(one) for one in held.passes],
        "notes": list(held.notes),
    }


def _pass(one: Pass) -> Mapping[str, Any]:
    return {
        "name": one.name,
        "tokens": one.tokens,
        "past": one.past,
        "segment": one.peak.segment.name,
        "layer": one.peak.layer,
        "op": str(one.peak.op),
        "activations": one.activations,
        "logits": one.logits,
        "alive": dict(one.peak.live),
    }
