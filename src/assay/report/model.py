"""The report of a model: the figures people came for, then where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.readings.conventions import CONVENTIONS
from assay.readings.count import Count, Row, count_setting
from assay.readings.plans import plan_of
from assay.readings.published import Formula, active
from assay.records import replace
from assay.report.contract import ordered, stored_in
from assay.report.table import INDENT, WIDTH, Style, table, wrap
from assay.report.units import (
    binary_bytes,
    decimal_bytes,
    digits,
    flop,
    layer_ranges,
    plain,
    plural,
    ratio,
    share,
    short,
    shorten,
    times,
)
from assay.size import Size
from assay.spec import Model

if TYPE_CHECKING:  # a report without it does not wait for it
    from assay.readings.generate import Generated
    from assay.readings.setting import Setting

FAR = 1.2  # where the dense count is so many times the visible one, the visible one stands on top


def notes(model: Model, counted: Count, chosen: str | None) -> tuple[str, ...]:
    """What a reader of the figures has to know; `chosen` is the weights' dtype where one was asked for."""
    made = list(model.notes)
    asked = counted.setting
    if model.trained is not None and asked.context > model.trained:
        made.append(f"context {asked.context:,} is beyond the {model.trained:,} positions that the model claims")
    made += _seen(model, asked)
    if asked.quantized and model.scheme is not None:
        if model.scheme.unknown:
            what = f"the config quantizes weights in a format that is not known: {model.scheme.unknown}"
            made.append(f"{what}; their bytes are unknown, --weights counts them in one dtype")
        else:
            what = f"{stored_as(model, counted)}: scales and tables included, headers of files not"
            made.append(f"{what}; --weights counts all of them in one dtype")
    elif chosen is None and model.dtype is None:
        made.append(f"no dtype is named, so weights are counted in {asked.weights}; --weights sets another")
    harmless = [shorten(key, 40) for key in model.ignored if key not in model.allowed]
    if harmless:
        made.append(f"config keys that change no figure: {', '.join(harmless)}")
    return tuple(made)


def _seen(model: Model, asked: Setting) -> list[str]:
    """What the figures take for granted of images."""
    sight = model.sight
    if sight is not None and sight.alone is not None:
        return [f"tokens are the {sight.alone:,} positions of each image"]
    if sight is None or asked.image_tokens is None or not asked.images:
        return []
    size = f", {sight.says}" if asked.image_tokens == sight.tokens else ""
    return [f"modelled: an image makes {digits(asked.image_tokens)} tokens{size}; --image-tokens sets it"]


def stored_as(model: Model, counted: Count) -> str:
    """What the weights are stored in: one dtype, or the formats of the model's scheme beside it."""
    return f"weights {stored_in(model, counted) or counted.setting.weights}"


def report(
    model: Model,
    counted: Count,
    generated: Generated | None,
    published: tuple[Formula, ...],
    said: tuple[str, ...],
    style: Style,
) -> list[str]:
    """The lines of the report."""
    lines = [*_title(model, counted, style), "", *_headline(model, counted, style)]
    if generated is not None:
        lines += ["", *_generated(generated, counted, style)]
    lines += ["", *_parts(counted, style), "", *_blocks(counted, style)]
    lines += ["", *_ways(model, counted, style)]
    if published:
        lines += ["", *_published(published, style)]
    if said:
        lines += ["", style.bold("Notes"), *(line for note in said for line in wrap(note, "  · ", "    "))]
    return lines


def about(model: Model) -> str:
    """Family, class, depth and width, as far as they are known."""
    known = [model.family, model.cls]
    known += [plural(model.layers, "layer")] if model.layers else []
    known += [f"width {model.width:,}"] if model.width else []
    return " · ".join(shorten(text) for text in known if text)


def has_latent(model: Model) -> bool:
    """True where some layer's attention can be run another way."""
    return any(segment.absorbed is not None for segment in model.segments)


def asked_for(counted: Count, latent: bool = True) -> str:
    """The setting, every size as the integer understood; how latent attention runs where there is any."""
    asked = counted.setting
    said = [
        f"batch {digits(asked.batch)}",
        f"tokens {digits(asked.tokens)}",
        f"past {digits(asked.past)}",
        f"context {digits(asked.context)}",
    ]
    said += [f"source {digits(asked.source)}"] if asked.source is not None else []
    said += [f"images {digits(asked.images)}"] if asked.images else []
    said += [f"sounds {digits(asked.sounds)}"] if asked.sounds else []
    said += ["latent attention absorbed"] if asked.latent == "absorbed" and latent else []
    return " · ".join([*said, f"logits {asked.logits}", f"convention {asked.convention}"])


def _title(model: Model, counted: Count, style: Style) -> list[str]:
    lines = [style.bold(shorten(model.name, WIDTH))]
    lines += [about(model)] if about(model) else []
    return [*lines, *(style.dim(line) for line in wrap(asked_for(counted, has_latent(model)), ""))]


def _headline(model: Model, counted: Count, style: Style) -> list[str]:
    weights, flops, asked = counted.parameters, counted.flops, counted.setting
    rows = [["parameters", short(weights.total), digits(weights.total), "exact", "every tensor once"]]
    if weights.active != weights.total:
        share_of = share(weights.active, weights.total)
        rows.append(
            ["active", short(weights.active), digits(weights.active), "exact", f"{share_of} of them for each token"]
        )
    if weights.buffers:
        rows.append(["buffers", short(weights.buffers), digits(weights.buffers), "exact", "stored, but no parameters"])
    rows += _flops_rows(counted)
    rows += _other_latent(model, counted)
    if counted.weight_bytes is None:
        rows.append(["weights", "unknown", "", "", "the config quantizes them; see the notes"])
    else:
        rows.append(_byte_row("weights", counted.weight_bytes, stored_as(model, counted).replace("weights", "in", 1)))
    kept = counted.cache
    if kept.bytes:
        formats, states = _kept_in(model, asked)
        rows.append(_byte_row("cache", kept.bytes, f"in {formats}, at context {asked.context:,}"))
        rows.append(_byte_row("  one token more", kept.marginal_bytes_per_token, "of one sequence"))
    if kept.fixed_bytes:
        rows.append(_byte_row("  of it fixed", kept.fixed_bytes, f"whatever the context{states}"))
    if flops.total == 0:
        rows = [row for row in rows if not row[0].startswith("visible")]
    return table(rows, "<>><<", style=style)


def _kept_in(model: Model, asked: Setting) -> tuple[str, str]:
    """The formats of what is kept between passes, and that of recurrent states where there are others beside them."""
    ops = [plan_of(segment.block.ops).stateful for segment in model.segments]
    recurrent = {kind.kept == "state" for stateful in ops for _, kind, _ in stateful}
    formats = [asked.cache] * (False in recurrent) + [asked.state] * (True in recurrent)
    states = f"; states in {asked.state}" if len(set(formats)) > 1 else ""
    return " and ".join(dict.fromkeys(formats)), states


def _byte_row(name: str, size: Size, says: str) -> list[str]:
    return [name, decimal_bytes(size), f"{digits(size)} B", "exact", f"{binary_bytes(size)} {says}"]


def _flops_rows(counted: Count) -> list[list[str]]:
    """Dense and visible side by side; the visible one first where they are far apart."""
    flops, asked = counted.flops, counted.setting
    tokens = asked.batch * asked.tokens
    each = counted.flops_per_token
    keys = "causal, windows skipped" if CONVENTIONS[asked.convention].visible else "a forward pass, attention dense"
    dense = [["FLOPs per token", flop(each), plain(each), "exact", keys]]
    if tokens > 1:
        dense.append(["FLOPs in all", flop(flops.total), digits(flops.total), "exact", plural(tokens, "token")])
    if flops.visible_total == flops.total:
        return dense
    seen = flops.visible_total / tokens if flops.visible_total % tokens else flops.visible_total // tokens
    visible = [
        ["visible per token", flop(seen), plain(seen), "exact", "only pairs that the mask lets through"],
        [
            "visible in all",
            flop(flops.visible_total),
            digits(flops.visible_total),
            "exact",
            f"the dense count is {times(flops.total, flops.visible_total)} this",
        ],
    ]
    return [*visible, *dense] if flops.total > FAR * flops.visible_total else [*dense, visible[-1]]


def _other_latent(model: Model, counted: Count) -> list[list[str]]:
    """With a past, latent attention run the other way."""
    if not counted.setting.past or not has_latent(model):
        return []
    other = "expanded" if counted.setting.latent == "absorbed" else "absorbed"
    total = count_setting(model, replace(counted.setting, latent=other)).flops.total
    why = ", as engines decode" if other == "absorbed" else ", as the public implementation runs it"
    return [[f"  {other}", flop(total), digits(total), "exact", f"latent attention {other}{why}"]]


def _generated(made: Generated, counted: Count, style: Style) -> list[str]:
    """A prefill and N cached steps, beside the same without a cache."""
    prompt = counted.setting.context
    lengths = f"{prompt + 1:,} to {prompt + made.new:,}"
    rows = [
        ["prefill", flop(made.prefill.total), digits(made.prefill.total), plural(counted.setting.tokens, "token")],
        ["cached steps", flop(made.steps.total), digits(made.steps.total), f"contexts {lengths}"],
        ["total", flop(made.total), digits(made.total), "with a cache"],
        [
            "without a cache",
            flop(made.uncached_total),
            digits(made.uncached_total),
            f"{times(made.uncached_total, made.total)} as much: {made.new + 1:,} passes",
        ],
        [
            "cache at the end",
            decimal_bytes(made.cache.bytes),
            f"{digits(made.cache.bytes)} B",
            f"{binary_bytes(made.cache.bytes)} at context {prompt + made.new:,}",
        ],
    ]
    title = f"Generate {plural(made.new, 'token')} after {prompt:,}"
    return [style.bold(title), *table(rows, "<>><", style=style)]


def _parts(counted: Count, style: Style) -> list[str]:
    """Parameters and FLOPs by part, each with its share."""
    weights, flops = counted.parameters, counted.flops
    by_weights = ordered(weights.by_part, {})
    by_flops = ordered(flops.by_part, weights.by_part)
    rows = []
    for part in ordered(dict.fromkeys({**by_weights, **by_flops}, 1), {}):
        held, spent = by_weights.get(part), by_flops.get(part, 0)
        rows.append(
            [
                part,
                digits(held) if held is not None else "–",
                share(held, weights.total) if held is not None else "",
                digits(spent),
                share(spent, flops.total),
            ]
        )
        if part == "attention" and flops.attention_scores:
            scores = flops.attention_scores
            rows.append(["  scores (QKᵀ, AV)", "", "", digits(scores), share(scores, flops.total)])
    rows.append(["total", digits(weights.total), "", digits(flops.total), ""])
    return table(rows, "<>>>>", ("by part", "parameters", "share", "FLOPs", "share"), style)


def _blocks(counted: Count, style: Style) -> list[str]:
    """Each block that differs, all its layers together."""
    some = any(row.cache.bytes for row in counted.rows)
    rows = [_block_row(row, some) for row in counted.rows]
    head = ("block", "layers", "times", "parameters", "FLOPs", *(("cache",) if some else ()))
    return table(rows, "<<>>>" + (">" if some else ""), head, style)


def _block_row(row: Row, cached: bool) -> list[str]:
    made = [shorten(row.name, 24), shorten(layer_ranges(row.layers), 26), digits(len(row.layers) or 1)]
    made.append(short(row.parameters.total) if row.parameters.total else "–")
    made.append(flop(row.flops.total) if row.flops.total else "–")
    return [*made, decimal_bytes(row.cache.bytes) if row.cache.bytes else "–"] if cached else made


def _ways(model: Model, counted: Count, style: Style) -> list[str]:
    """The published conventions of active parameters."""
    ways = active(model, counted)
    rows = [
        ["with both vocabulary matrices", short(ways.all), digits(ways.all), "ours"],
        ["without tables only looked up", short(ways.without_input), digits(ways.without_input), "what is multiplied"],
        ["without embedding and head", short(ways.without_both), digits(ways.without_both), "Kaplan's N"],
    ]
    return table(rows, "<>><", ("active parameters", "", "", ""), style)


def _published(published: tuple[Formula, ...], style: Style) -> list[str]:
    """Published formulas beside the count, with the ratio."""
    rows = [[f.name, f.text, f.work, flop(f.value), ratio(f.value, f.ours), f.source] for f in published]
    head = ("formula", "per token", "of", "gives", "÷ ours", "source")
    lines = table(rows, "<<<>><", head, style)
    said = "N active parameters, N' without embedding and head, c context; the other letters as in `assay ops`"
    return [*lines, *(style.dim(line) for line in wrap(said))]


def conventions(style: Style) -> list[str]:
    """What each convention counts, and where it is from."""
    lines = []
    for known in CONVENTIONS.values():
        lines += [style.bold(known.name), *wrap(known.says, INDENT), *wrap(f"from: {known.source}", INDENT), ""]
    return lines[:-1]


def conventions_document(version: str) -> dict[str, Any]:
    """The same as one object of JSON."""
    listed = [{"name": known.name, "says": known.says, "source": known.source} for known in CONVENTIONS.values()]
    return {"assay": version, "conventions": listed}
