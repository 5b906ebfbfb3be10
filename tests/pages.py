"""Parts of the documents that are made from the code: the Python interface, and tables of figures held against others.

What is recorded beside the repository is known where it is at hand alone: a table of it is None elsewhere, and what
is written stays.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

# in the order of a reader's questions
INTERFACE = {
    "Reading a model": "load block Model Segment Block Op Tensor Weight",
    "Counting": "count Count Parameters Flops Cache Row Setting CONVENTIONS Convention tensors Entry",
    "Training": "flops_per_token mfu Utilization train TrainingRun Machines training Training",
    "Memory": "memory Memory training_memory TrainingMemory states States",
    "Many ranks, and adapters": "sharded Sharded shard Plan Rank lora freeze",
    "Fitting on GPUs": "fit Fit",
    "Hardware": "chip chips Chip",
    "Explaining figures": "explain Explanation crossovers Crossover regimes Regime",
    "Pictures of a model": "draw Diagram",
    "Many settings, many models": "sweep Sweep compare Comparison design Proposal",
    "Running": "build learn Batch Recipe History shifted",
    "Measuring": "measure Measurement",
    "Errors": "AssayError SourceError UnknownModel SettingError SizeError NotationError KindError BuildError"
    " MeasureError HardwareError",
}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown; a bar within a cell is escaped."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# -- the Python interface --------------------------------------------------------------------------------------------


def python_reference() -> str:
    """Every public name: its signature, what it says of itself, its attributes and methods."""
    import assay

    listed = [name for names in INTERFACE.values() for name in names.split()]
    assert sorted(listed) == sorted(assay.__all__), set(listed) ^ set(assay.__all__)
    return "\n\n".join(
        f"## {title}\n\n" + "\n\n".join(_entry(name, getattr(assay, name)) for name in names.split())
        for title, names in INTERFACE.items()
    )


def _entry(name: str, value: Any) -> str:
    title = f"### `{name}`"
    if inspect.isclass(value):
        return "\n\n".join([title, *_class(name, value)])
    if callable(value):
        return "\n\n".join([title, f"```text\n{_call(name, value)}\n```", prose(inspect.getdoc(value) or "")])
    keys = ", ".join(f"`{key}`" for key in value)
    return f"{title}\n\nA mapping from a name to its [convention](conventions.md): {keys}."


def _class(name: str, cls: type) -> Iterable[str]:
    base = cls.__mro__[1].__name__
    above = f"A kind of `{base}`. " if issubclass(cls, Exception) and base != "Exception" else ""
    yield above + prose(inspect.getdoc(cls) or "")
    made = [c for c in reversed(cls.__mro__) if c.__module__.startswith("assay")]
    fields = {key: kind for c in made for key, kind in inspect.get_annotations(c).items()}
    public = {key: member for c in made for key, member in vars(c).items() if not key.startswith("_")}
    attributes = [f"`{key}: {kind}`" for key, kind in fields.items() if not key.startswith("_")]
    if attributes:
        yield "Attributes: " + ", ".join(attributes) + "."
    rows = [(key, member) for key, member in public.items() if isinstance(member, property) or callable(member)]
    told = [f"- {_member(key, member)}" for key, member in rows if key not in fields]
    if told:
        yield "\n".join(told)


def _member(name: str, member: Any) -> str:
    says = " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split())
    return f"`{name}`: {says}" if isinstance(member, property) else f"`{_call(name, member, wide=True)}`: {says}"


class _Plain:
    """An annotation, as it is written."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def __repr__(self) -> str:
        return str(self.text)


def _call(name: str, function: Any, *, wide: bool = False) -> str:
    """A signature as it is written, an argument a line where it is long."""
    signature = inspect.signature(function)
    empty = signature.empty
    kept = [
        p if p.annotation is empty else p.replace(annotation=_Plain(p.annotation))
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    gives = signature.return_annotation
    plain = inspect.Signature(kept, return_annotation=empty if gives is empty else _Plain(gives))
    text = f"{name}{plain}"
    if wide or len(text) <= 100:
        return text
    lines: list[str] = []
    for p in kept:
        if p.kind is p.KEYWORD_ONLY and not any("*" in line[:1] for line in lines):
            lines.append("*")
        lines.append(str(p))
    end = f" -> {gives}" if gives is not empty else ""
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f"){end}"


_SECTION = re.compile(r"^(Args|Returns|Raises):\n((?: {4}.*\n?|\n)+)", re.MULTILINE)
_TITLES = {"Args": "Arguments", "Returns": "Returns", "Raises": "Raises"}


def prose(doc: str) -> str:
    """A docstring as Markdown: its sections as lists."""

    def section(found: re.Match[str]) -> str:
        body = inspect.cleandoc(found[2])
        items = re.sub(r"\n +", " ", body).splitlines()
        if not all(re.match(r"\w+: ", item) for item in items):
            return f"{_TITLES[found[1]]}: {' '.join(items)}\n\n"
        listed = "\n".join(re.sub(r"^(\w+): ", r"- `\1`: ", item) for item in items)
        return f"{_TITLES[found[1]]}:\n\n{listed}\n\n"

    return _SECTION.sub(section, doc.strip() + "\n").strip()


# -- figures held against others -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """A row of the published figures, and ours in its unit."""

    row: dict[str, Any]
    ours: float

    @property
    def printed(self) -> float:
        return float(self.row["value"])

    @property
    def off(self) -> float:
        return (self.ours - self.printed) / self.printed


@lru_cache
def _published() -> tuple[Published, ...]:
    import test_published as known

    def of(row: dict[str, Any]) -> Published:
        unit = 1 if row["quantity"].startswith("KV bytes") else known.UNITS[row["unit"]]
        return Published(row, float(known.FIGURES[row["quantity"]](row)) / unit)

    return tuple(of(row) for row in known.COVERED if row["value_origin"] == "published")


def published() -> str | None:
    """Published figures and ours, row by row, with how far they are apart."""
    from published_rows import FILE

    if not FILE.exists():
        return None
    rows = (
        (
            one.row["model"],
            one.row["quantity"],
            f"{figure(one.printed)} {one.row['unit']}".strip(),
            figure(one.ours),
            "0" if one.off == 0 else f"{100 * one.off:+.2f} %",
            one.row["source"].split(";")[0].split(" (")[0],
        )
        for one in _published()
    )
    return table(("model", "figure", "published", "counted", "off", "source"), rows)


WITNESSED = {
    "parameters": "every parameter, of the public implementation",
    "tensors": "every tensor's name and shape, of the public implementation",
    "flops": "FLOPs of prefill and decode, counted while it runs, or summed by hand",
    "cache": "bytes of its own cache tensors",
}


def held() -> str:
    """How many model types each figure is held for, by what: all of them to the unit."""
    import json

    tests = json.loads((ROOT / "src/assay/sources/witnesses.json").read_text(encoding="utf-8"))
    rows = [
        (says, f"{sum(1 for figures in tests.values() if figures.get(name)):,} model types", "0, to the unit")
        for name, says in WITNESSED.items()
    ]
    return table(("what our figure is compared with", "for", "largest error"), rows)


def differences() -> str | None:
    """Of the published figures, how far they are from ours."""
    from published_rows import FILE

    if not FILE.exists():
        return None
    off = sorted(abs(one.off) for one in _published())
    median = off[len(off) // 2]
    within = [sum(1 for o in off if o <= limit) for limit in (0, 0.001, 0.01)]
    head = ("published figures", "equal", "within 0.1 %", "within 1 %", "median", "largest")
    row = (str(len(off)), *map(str, within), f"{100 * median:.3f} %", f"{100 * off[-1]:.2f} %")
    return table(head, [row])


def reports() -> str | None:
    """Public reports of wrong figures: what is right, as we count it."""
    import json

    import test_cases

    if not test_cases.FILE.exists():
        return None
    known = {entry["id"]: entry for entry in json.loads(test_cases.FILE.read_text())}
    rows = []
    for name, case in test_cases.CASES.items():
        entry = known[name]
        ours = case.ours()
        values = ours if isinstance(ours, tuple) else (ours,)
        rows.append((entry["kind"], ", ".join(map(figure, values)), links(entry["source"])))
    return f"{len(rows)} reports.\n\n" + table(("what went wrong", "right, as counted", "report"), rows)


def figure(value: Any) -> str:
    """A number as tables have it: whole ones with commas, others to five digits."""
    if isinstance(value, str):
        return value
    if float(value).is_integer() and abs(value) < 1e16:
        return f"{int(value):,}"
    return f"{value:,.5g}" if abs(value) < 1e5 or abs(value) >= 1e16 else f"{value:,.1f}"


def links(text: str) -> str:
    """Addresses as short links."""
    found = re.findall(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)", text)
    short = [
        f"[{repository}#{number}](https://github.com/{repository}/issues/{number})" for repository, number in found
    ]
    return ", ".join(short) or text
