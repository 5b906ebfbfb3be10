"""Crossovers and regimes as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import SettingError
from assay.readings.crossovers import AMOUNTS, COMPARISONS, Comparison, Crossover, images_alone
from assay.readings.letters import MISSING, algebra
from assay.readings.regimes import Regime
from assay.readings.setting import Setting
from assay.report.algebra import joined, quotient, terms, write
from assay.report.explain_text import counted_as, folded, latent_as
from assay.report.legend import default, legend_lines, origin, unlike
from assay.report.table import WIDTH, Style, table, wrap
from assay.report.units import digits, share
from assay.spec import Model

_HEADS = {"prefill": "prefill of n", "decode": "one token at n"}
OWN = "--weights sets one dtype for all, and the formula is shown"
LONG = 250  # characters of a formula that a terminal is not asked to show


def report(
    model: Model, made: Sequence[Crossover], asked: Setting, source: int | None, style: Style, wide: int = WIDTH
) -> list[str]:
    """Each comparison: where it is reached, and the formula; `source` is that of an encoder where one is given."""
    kept = "weights in the model's own formats" if asked.quantized else f"weights {asked.weights}"
    said = f"batch {digits(asked.batch)} · {kept}, cache {asked.cache}"
    if "source" in model.settings:
        length = source or model.source_tokens
        said += f" · source of {digits(length) if length else 'n'} tokens"
    counted = counted_as(asked.convention) + latent_as(model, asked.latent)
    lines = [style.bold(f"crossovers of {model.name}, over all layers")]
    lines += [*map(style.dim, [*wrap(said, "", wide=wide), *wrap(counted, "", wide=wide)]), ""]
    lines += _rows(made, style, _heads(model), wide)
    lines += _turns(made, wide)
    if asked.quantized and any(one.at is not None and one.comparison.left == "cache" for one in made):
        lines += ["", *wrap(f"Weights of several formats have no formula in letters; {OWN}.", "", wide=wide)]
    lines += _beyond(model, made, wide)
    if any(one.legend for one in made):
        lines += ["", style.dim("letters"), *_letters(model, made, wide)]
    elif not _can_solve():
        lines += ["", MISSING]
    lines += ["", style.dim("what is compared")]
    return lines + table(_sides(made), "<<", wide=wide)


def _can_solve() -> bool:
    """Whether SymPy is there."""
    try:
        algebra()
    except SettingError:
        return False
    return True


def _heads(model: Model) -> dict[str, str]:
    """What n is the length of."""
    return {"prefill": "image of n positions"} if images_alone(model) else _HEADS


def _rows(made: Sequence[Crossover], style: Style, named: Mapping[str, str], wide: int) -> list[str]:
    """A line for each comparison, its formula at its end where it is short, else below it."""
    shown = [one for one in COMPARISONS if any(c.comparison is one for c in made)]
    ways = [way for way in named if any(one.way == way for one in made)]
    cells = [["", *(named[way] for way in ways)]]
    cells += [[one.says, *(_at(made, one, way) for way in ways)] for one in shown]
    heads, *rows = table(cells, "<" + ">" * len(ways))
    lines = [style.dim(heads)]
    for comparison, row in zip(shown, rows, strict=True):
        formulas = {one.way: text for one in made if one.comparison is comparison and (text := formula(one))}
        several = len(set(formulas.values())) > 1 or len(formulas) < sum(one.comparison is comparison for one in made)
        texts = [f"{way}: {text}" for way, text in formulas.items()] if several else list(formulas.values())[:1]
        short = texts[0].removeprefix("n = ") if texts and not several else ""
        whole = f"{row:<{max(map(len, rows))}}   {short}" if short else ""
        if whole and len(whole) <= wide:
            lines.append(whole)
        else:
            lines.append(row)
            for text in texts:
                lines += folded(text, "      ", wide)
    return lines


def _at(made: Sequence[Crossover], comparison: Comparison, way: str) -> str:
    for one in made:
        if one.comparison is comparison and one.way == way:
            return "never" if one.at is None else digits(one.at)
    return ""


def formula(one: Crossover) -> str:
    """Where the sides are equal, in letters, and within which bounds: nothing where that is not known, or long."""
    if one.formula is None:
        return ""
    text = f"n = {quotient(one.formula)}" if one.exact.is_Rational else _equation(one.equation)
    if len(text) > LONG:
        return "…  (its many terms are in --json)"
    within = [f"{write(bound.low)} ≤ {write(bound.high)}" for bound in one.bounds]
    return f"{text}, where {' and '.join(within)}" if within else text


def _equation(difference: Any) -> str:
    """What is 0 as two sides: of a square in n, where a root would have to be written."""
    sides: dict[bool, list[tuple[bool, str]]] = {True: [], False: []}
    for positive, term in terms(difference):
        sides[positive].append((True, term))
    return f"{joined(sides[True])} = {joined(sides[False])}"


def _turns(made: Sequence[Crossover], wide: int) -> list[str]:
    """Where what has come does not stay, for keys at hand drop with each new chunk."""
    lines = []
    for one in made:
        if one.at is not None and one.lasting != one.at:
            stays = "never for good" if one.lasting is None else f"for good from {digits(one.lasting)} on"
            lines += wrap(f"{one.comparison.says}, {one.way}: first at {digits(one.at)}, {stays}.", "", wide=wide)
    return ["", *lines] if lines else []


def _beyond(model: Model, made: Sequence[Crossover], wide: int) -> list[str]:
    """What a model's positions do not reach."""
    alone = images_alone(model)
    if alone is not None:
        return [
            "",
            *wrap(f"An image of {model.name} has {digits(alone)} positions; a larger one has more.", "", wide=wide),
        ]
    limit = model.positions or model.trained
    if limit is None or not any(one.at is None or one.at > limit for one in made):
        return []
    what = "its position table ends at" if model.positions else "it claims a context of"
    return ["", *wrap(f"Some of these lengths are beyond {model.name}: {what} {digits(limit)} tokens.", "", wide=wide)]


def _letters(model: Model, made: Sequence[Crossover], wide: int) -> list[str]:
    tied = dict.fromkeys(
        f"{write(tie.left)} = {write(tie.right)}" for one in made if one.formula is not None for tie in one.ties
    )
    lines = legend_lines(unlike(letter for one in made for letter in one.legend), model, wide)
    return [*lines, *wrap(f"formulas use that here {', '.join(tied)}", "", wide=wide)] if tied else lines


def _sides(made: Sequence[Crossover]) -> list[list[str]]:
    shown: list[Comparison] = [one for one in COMPARISONS if any(c.comparison is one for c in made)]
    names = dict.fromkeys(name for one in shown for name in (one.left, one.right))
    return [[name, says] for name, says in AMOUNTS.items() if name in names]


def document(version: str, model: Model, made: Sequence[Crossover], asked: Setting) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "model": model.name,
        "setting": _setting(asked),
        "amounts": AMOUNTS,
        "crossovers": [
            {
                "name": one.comparison.name,
                "says": one.comparison.says,
                "left": one.comparison.left,
                "right": one.comparison.right,
                "pass": one.way,
                "tokens": one.at,
                "lasting": one.lasting,
                "exact": None if one.exact is None else str(one.exact),
                "formula": None if one.formula is None else str(one.formula),
                "formula_text": formula(one).removeprefix("n = ") or None,
                "letters": {
                    letter.symbol.name: {
                        "value": letter.value,
                        "origin": origin(letter, model, one.legend),
                        "by_default": bool(default(letter, model, one.legend)),
                    }
                    for letter in one.legend
                },
            }
            for one in made
        ],
    }


def _setting(asked: Setting) -> dict[str, Any]:
    """What holds at all lengths."""
    names = ("batch", "convention", "latent", "weights", "cache", "state")
    return {name: getattr(asked, name) for name in names}


# -- regimes -----------------------------------------------------------------------------------------------------------

HEAD = ("prefill of", "attention", "MLP", "compute", "scores", "hidden", "memory")


def regimes_report(
    model: Model,
    made: Sequence[Regime],
    edges: tuple[int | None, int | None],
    asked: Setting,
    style: Style,
    wide: int = WIDTH,
) -> list[str]:
    """Each length: which of attention and the MLP leads in FLOPs, and which of scores and hidden in elements."""
    lines = [style.bold(f"regimes of {model.name}, over all layers")]
    said = counted_as(asked.convention) + latent_as(model, asked.latent)
    lines += [*map(style.dim, wrap(said, "", wide=wide)), ""]
    rows = []
    for one in made:
        flops, elements = one.attention + one.mlp, one.scores + one.hidden
        rows.append(
            [
                digits(one.tokens),
                share(one.attention, flops),
                share(one.mlp, flops),
                one.compute,
                share(one.scores, elements),
                share(one.hidden, elements),
                one.memory,
            ]
        )
    lines += [*table(rows, ">>><>><", _head(model), style, wide=wide), ""]
    lines += [
        *table(
            grid(made, edges), "<<<", ("", "memory: hidden of the MLP", "memory: scores of all heads"), style, wide=wide
        ),
        "",
    ]
    said = (
        "compute: FLOPs of attention with its projections, against those of the MLP, experts and routers. memory: "
        "elements that an implementation without fused attention writes, scores of all heads against what the MLP's "
        "last matrix reads; fused attention writes no scores."
    )
    return lines + wrap(said, "", wide=wide)


def _head(model: Model) -> tuple[str, ...]:
    return ("image of n", *HEAD[1:]) if images_alone(model) else HEAD


def grid(made: Sequence[Regime], edges: tuple[int | None, int | None]) -> list[list[str]]:
    """The four quadrants: from which length to which each holds, and which of the lengths asked for are in it."""
    compute, memory = edges
    rows = []
    for flops in ("MLP", "attention"):
        cells = []
        for held in ("hidden", "scores"):
            low = max(_from(compute, flops == "attention"), _from(memory, held == "scores"))
            high = min(_to(compute, flops == "attention"), _to(memory, held == "scores"))
            inside = [digits(one.tokens) for one in made if (one.compute, one.memory) == (flops, held)]
            cells.append(f"{_span(low, high)}{': ' if inside else ''}{', '.join(inside)}")
        rows.append([f"compute: {flops}", *cells])
    return rows


ENDLESS = 10**15


def _from(edge: int | None, beyond: bool) -> int:
    return (ENDLESS if edge is None else edge) if beyond else 1


def _to(edge: int | None, beyond: bool) -> int:
    return ENDLESS if beyond or edge is None else edge - 1


def _span(low: int, high: int) -> str:
    if low > high or low >= ENDLESS:
        return "nowhere"
    if high >= ENDLESS:
        return "everywhere" if low == 1 else f"n ≥ {digits(low)}"
    return f"n ≤ {digits(high)}" if low == 1 else f"{digits(low)} ≤ n ≤ {digits(high)}"


def regimes_document(
    version: str, model: Model, made: Sequence[Regime], edges: tuple[int | None, int | None], asked: Setting
) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "model": model.name,
        "setting": _setting(asked),
        "attention_leads_from": edges[0],
        "scores_lead_from": edges[1],
        "regimes": [
            {
                "tokens": one.tokens,
                "attention_flops": one.attention,
                "mlp_flops": one.mlp,
                "compute": one.compute,
                "score_elements": one.scores,
                "hidden_elements": one.hidden,
                "memory": one.memory,
            }
            for one in made
        ],
    }
