"""Designs as text, as JSON, and as files of descriptions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay.errors import SettingError
from assay.report.table import Style, table, wrap
from assay.report.units import decimal_bytes, digits, flop, share, short
from assay.sources.shown import name as shown

if TYPE_CHECKING:
    from assay.studies.design import Frame, Proposal, Targets

HEAD = ("width", "layers", "heads", "kv", "MLP", "parameters", "FLOPs a token", "cache a token", "off", "strange")
MET = (
    "those within {within} of every target come first, the most usual shape first; then the others, the nearest first. "
)
UNMET = "none is within {within} of every target: the nearest first. "
RULE = (
    "off: of the target that is missed most. strange: 0 for what most published dense decoders have; "
    "`assay design --rule` says how it is counted"
)


def report(made: Sequence[Proposal], targets: Targets, frame: Frame, within: float, style: Style) -> list[str]:
    """The targets, the rule, a row a proposal, and the best one's description."""
    said = [f"{form(value)} {label}" for label, value, form in _asked(targets) if value is not None]
    fixed = f"vocabulary {digits(frame.vocabulary)} · context {digits(frame.context)} · cache {frame.cache}"
    lines = [style.bold("plain decoders with " + " · ".join(said)), *(style.dim(line) for line in wrap(fixed, "")), ""]
    head = ["", *HEAD]
    rows = [
        [
            str(place),
            digits(p.sizes["width"]),
            str(p.sizes["layers"]),
            str(p.sizes["heads"]),
            str(p.sizes["kv_heads"]),
            digits(p.sizes["inner"]),
            short(p.count.parameters.total),
            flop(p.count.flops_per_token),
            decimal_bytes(p.count.cache.marginal_bytes_per_token),
            share(p.off, 1),
            f"{p.strange:.2f}",
        ]
        for place, p in enumerate(made, 1)
    ]
    lines += table(rows, "<" + ">" * 10, head, style, indent="")
    order = MET if any(p.off <= within for p in made) else UNMET
    lines += ["", *wrap(order.format(within=share(within, 1)) + RULE, "")]
    lines += ["", style.bold(f"the first, {digits(made[0].count.parameters.total)} parameters, as a description")]
    return [*lines, *(f"  {line}".rstrip() for line in made[0].description.splitlines())]


def _asked(targets: Targets) -> list[tuple[str, Any, Any]]:
    return [
        ("parameters", targets.parameters, short),
        ("a token", targets.flops_per_token, flop),
        ("of cache a token", targets.cache_per_token, decimal_bytes),
    ]


def to_json(made: Sequence[Proposal], targets: Targets, frame: Frame, within: float, version: str) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "targets": {
            "parameters": targets.parameters,
            "flops_per_token": targets.flops_per_token,
            "cache_per_token": targets.cache_per_token,
            "within": within,
        },
        "setting": {"vocabulary": frame.vocabulary, "context": frame.context, "cache": frame.cache},
        "proposals": [
            {
                "name": p.name,
                "sizes": dict(p.sizes),
                "parameters": p.count.parameters.total,
                "flops_per_token": p.count.flops_per_token,
                "cache_per_token": p.count.cache.marginal_bytes_per_token,
                "off": p.off,
                "strange": round(p.strange, 6),
                "description": p.description,
            }
            for p in made
        ],
    }


def write(made: Sequence[Proposal], folder: str) -> list[str]:
    """A file for each description, in a folder that may have to be made; what was written. Raises SettingError."""
    try:
        os.makedirs(folder, exist_ok=True)
        said = []
        for proposal in made:
            path = os.path.join(folder, f"{proposal.name}.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(proposal.description)
            said.append(f"{shown(path)}: {digits(proposal.count.parameters.total)} parameters")
    except OSError as error:
        raise SettingError(f"{shown(folder)}: cannot be written to: {error.strerror or type(error).__name__}") from None
    return said
