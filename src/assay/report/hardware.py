"""The catalogue of chips as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.hardware import DTYPES, Chip
from assay.report.table import Style, table, wrap
from assay.report.units import binary_bytes, decimal_bytes

COLUMNS = {"fp32": ("fp32",), "16 bits": ("bf16", "fp16"), "fp8": ("fp8",), "int8": ("int8",), "fp4": ("fp4",)}
TOGETHER = {  # columns of a page, where all dtypes are told
    "fp64": ("fp64",),
    "fp32": ("fp32",),
    "tf32": ("tf32",),
    "16 bits": ("bf16", "fp16"),
    "fp8": ("fp8",),
    "int8": ("int8",),
    "fp6": ("fp6",),
    "4 bits": ("fp4", "int4"),
}
PER = 10**12  # rates are shown in TFLOP/s
_WHAT = {"int8": "TOP/s", "int4": "TOP/s"}


def rate(value: int | None) -> str:
    """A rate in units of 10^12 a second, to a tenth: 989.4; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value / PER:,.1f}".removesuffix(".0") if value >= 10 * PER else f"{value / PER:.2f}"


def row(one: Chip) -> list[str]:
    """A chip in a row: its name, memory, bandwidth, rates, links, power."""
    rates = [rate(next((one.rates[d] for d in dtypes if d in one.rates), None)) for dtypes in COLUMNS.values()]
    links = "–" if one.interconnect is None else decimal_bytes(one.interconnect) + "/s"
    power = "–" if one.power is None else f"{one.power:g} W"
    return [one.name, binary_bytes(one.memory), decimal_bytes(one.bandwidth) + "/s", *rates, links, power]


HEAD = ["chip", "memory", "bandwidth", *COLUMNS, "links", "power"]


def report(listed: Sequence[Chip], style: Style) -> list[str]:
    """A row a chip."""
    lines = table([row(one) for one in listed], "<" + ">" * (len(HEAD) - 1), HEAD, style, indent="")
    told = "Rates in TFLOP/s (int8: TOP/s) of dense matrix products; `assay gpus NAME` says where each figure is from."
    return [*lines, "", *wrap(told, "")]


def details(one: Chip, style: Style) -> list[str]:
    """One chip, every figure with its source."""
    numbers = {source: str(at) for at, source in enumerate(one.sources, 1)}

    def line(what: str, figure: str, shown: str, note: str = "") -> list[str]:
        doubt = "" if one.verified(what) else "not verified"
        return [
            figure,
            shown,
            f"[{numbers[one.source(what.partition('.')[0])]}]",
            "; ".join(filter(None, (note, doubt))),
        ]

    rows = [line("memory", "memory", binary_bytes(one.memory), f"{one.memory:,} bytes; sold as {one.sold}")]
    rows.append(line("bandwidth", "bandwidth", decimal_bytes(one.bandwidth) + "/s"))
    if one.interconnect is not None:
        rows.append(line("interconnect", "links", decimal_bytes(one.interconnect) + "/s", one.links or ""))
    if one.power is not None:
        rows.append(line("power", "power", f"{one.power:g} W"))
    rows += [
        line(f"rates.{dtype}", dtype, f"{rate(one.rates[dtype])} {_WHAT.get(dtype, 'TFLOP/s')}")
        for dtype in DTYPES
        if dtype in one.rates
    ]
    made = [style.bold(one.title)]
    if one.aliases:
        made += wrap(f"{one.name}; also {', '.join(one.aliases)}", "")
    made += ["", *table(rows, "<>><", indent="  ")]
    if one.note:
        made += ["", *wrap(one.note, "  ")]
    made += ["", style.dim("Rates are of dense matrix products. Sources:")]
    for source, number in numbers.items():
        made += [f"  [{number}] {source.title}", f"      {source.address}"]
        made += [f"      read in {source.copy}"] if source.copy else []
    return made


def document(version: str, listed: Sequence[Chip]) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {"assay": version, "chips": [chip_object(one) for one in listed]}


def chip_object(one: Chip) -> dict[str, Any]:
    """A chip as an object of JSON: bytes, bytes/s, FLOP/s, watts."""
    return {
        "name": one.name,
        "title": one.title,
        "aliases": list(one.aliases),
        "sold": one.sold,
        "memory": one.memory,
        "bandwidth": one.bandwidth,
        "interconnect": one.interconnect,
        "links": one.links,
        "power": one.power,
        "rates": dict(one.rates),
        "note": one.note,
        "unverified": list(one.unverified),
        "sources": [
            {"title": s.title, "address": s.address, "gives": list(s.gives), "copy": s.copy} for s in one.sources
        ],
    }


def markdown(listed: Sequence[Chip]) -> str:
    """The catalogue as tables of a document, and under them where each chip's figures are from."""
    made = ["### Memory, links and power", _markdown_table(listed, _machine)]
    made += ["### Rates in TFLOP/s, of integers in TOP/s", _markdown_table(listed, _rates), "### Where they are from"]
    for one in listed:
        from_ = "; ".join(f"[{s.title}]({s.address}) ({', '.join(s.gives)})" for s in one.sources)
        also = f" Also {', '.join(f'`{alias}`' for alias in one.aliases)}." if one.aliases else ""
        note = f" {one.note}" if one.note else ""
        made.append(f"**`{one.name}`**: {one.title}, sold as {one.sold}.{also}{note} {from_}.")
    return "\n\n".join(made)


def _machine(one: Chip) -> dict[str, str]:
    """The columns of a chip but its rates."""
    _, memory, bandwidth, *_, links, power = row(one)
    return {
        "memory": _marked(one, "memory", memory),
        "bandwidth": _marked(one, "bandwidth", bandwidth),
        "links": _marked(one, "interconnect", links),
        "power": _marked(one, "power", power),
    }


def _rates(one: Chip) -> dict[str, str]:
    """The columns of its rates; where not all dtypes of a column have the same, each says which it is."""
    made = {}
    for head, dtypes in TOGETHER.items():
        rates = [_marked(one, f"rates.{dtype}", rate(one.rates.get(dtype))) for dtype in dtypes]
        named = [f"{dtype} {text}" for dtype, text in zip(dtypes, rates, strict=True) if text != "–"]
        made[head] = rates[0] if len(set(rates)) == 1 else ", ".join(named)
    return made


def _marked(one: Chip, figure: str, text: str) -> str:
    """A figure as text, in italics where it is not verified."""
    return text if text == "–" or one.verified(figure) else f"*{text}*"


def _markdown_table(listed: Sequence[Chip], columns: Callable[[Chip], dict[str, str]]) -> str:
    """A row a chip."""
    head = ["chip", *columns(listed[0])]
    rows = [head, ["---"] * len(head), *([f"`{one.name}`", *columns(one).values()] for one in listed)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
