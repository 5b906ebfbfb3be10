"""What is read and what is refused, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from assay.report.table import Style, table

if TYPE_CHECKING:
    from assay.sources.support import Refused, Support

LETTERS = {"parameters": "P", "tensors": "T", "flops": "F", "cache": "C"}
LEGEND = (
    "exact: P parameters, T tensors by name and shape, F FLOPs, C cache; R runs, r but for its towers",
    "tests: of tests/sources, test_NAME_families.py or test_NAME.py; drawn, kept try nearly all",
)
MARKS = {"yes": "R", "text": "r", "no": "·"}  # whether it runs
ALL = ("drawn", "kept")
SPELLED = {"flops": "FLOPs"}


def report(read: Sequence[Support], refused: Sequence[Refused], style: Style) -> list[str]:
    """A row for each model_type that is read, by kind; then those refused by name, under what they are."""
    rows = [
        [
            one.model_type,
            one.cls,
            _letters(one) + MARKS[_runs(one)],
            " ".join(name for name in _short(one) if name not in ALL),
        ]
        for one in read
    ]
    first, *lines = table(rows, "<<<<", ("model_type", "public class", "exact", "tests"), style, indent="")
    made = [first]
    for name, rows_of_kind in _by_kind(zip(read, lines, strict=True)):
        made += ["", style.bold(f"{name} ({len(rows_of_kind)})"), *(line for _, line in rows_of_kind)]
    if not read:
        made = ["no type that is read"]
    else:
        made += ["", *LEGEND]
    if apart := [f"  {one.model_type}: {says}" for one, says in _apart(read)]:
        made += ["", style.bold("counted with a reservation"), *apart]
    if unrun := _by_reason((why, one.model_type) for one in read for why in one.not_run):
        made += ["", style.bold("not run, or without towers")]
        for why, types in unrun:
            made += _folded(f"{why}: {', '.join(types)}")
    if refused:
        made += ["", style.bold("refused by name")]
    for says, types in _by_reason((one.says, one.model_type) for one in refused):
        made += _folded(f"{says}: {', '.join(types)}")
    return [*made, "", f"{len(read)} types are read, {len(refused)} refused by name; all others as unknown"]


def markdown(read: Sequence[Support], refused: Sequence[Refused]) -> str:
    """The same as a page, with what each architecture is."""
    lines = [f"{len(read)} types are read, {len(refused)} refused by name, all others refused as unknown.", ""]
    for name, own in _by_kind((one, "") for one in read):
        lines += [
            f"## {name.capitalize()} ({len(own)})",
            "",
            "| `model_type` | public class | what it is | exact | runs | tests |",
        ]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| `{one.model_type}` | `{one.cls}` | {one.says} | {_letters(one)} | {_runs(one)} "
            f"| {', '.join(_short(one))} |"
            for one, _ in own
        ]
        lines.append("")
    lines += ["## Counted with a reservation", ""]
    lines += [f"- `{one.model_type}`: {says}" for one, says in _apart(read)]
    lines += ["", "## Not run", "", "| why | `model_type` |", "|---|---|"]
    unrun = _by_reason((why, one.model_type) for one in read for why in one.not_run)
    lines += [f"| {why} | {', '.join(f'`{name}`' for name in types)} |" for why, types in unrun]
    lines += ["", "## Refused by name", "", "| what it is | `model_type` |", "|---|---|"]
    reasons = _by_reason((one.says, one.model_type) for one in refused)
    lines += [f"| {says} | {', '.join(f'`{name}`' for name in types)} |" for says, types in reasons]
    return "\n".join(lines)


def document(version: str, read: Sequence[Support], refused: Sequence[Refused]) -> dict[str, Any]:
    """The same as one object of JSON."""
    return {
        "assay": version,
        "families": [
            {
                "model_type": one.model_type,
                "kind": one.kind,
                "class": one.cls,
                "classes": list(one.classes),
                "says": one.says,
                "exact": list(one.exact),
                "apart": dict(one.apart),
                "tests": {figure: list(names) for figure, names in one.tests.items()},
                "runs": one.runs,
                "not_run": list(one.not_run),
            }
            for one in read
        ],
        "refused": [{"model_type": one.model_type, "says": one.says} for one in refused],
    }


def _by_kind(read: Iterable[tuple[Support, str]]) -> list[tuple[str, list[tuple[Support, str]]]]:
    kinds: dict[str, list[tuple[Support, str]]] = {}
    for one, line in read:
        kinds.setdefault(one.kind, []).append((one, line))
    return list(kinds.items())


def _letters(one: Support) -> str:
    return "".join(letter if figure in one.exact else "·" for figure, letter in LETTERS.items())


def _short(one: Support) -> list[str]:
    """Every file that holds a figure, once, without what all their names have."""
    files = (name.partition("::")[0] for names in one.tests.values() for name in names)
    return list(dict.fromkeys(file.removeprefix("test_").removesuffix("_families") for file in files))


def _apart(read: Iterable[Support]) -> Iterator[tuple[Support, str]]:
    for one in read:
        for figure, says in one.apart.items():
            yield one, f"{SPELLED.get(figure, figure)} {says}"


def _runs(one: Support) -> str:
    return "no" if not one.runs else "text" if one.not_run else "yes"


def _by_reason(found: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Types by what is said of them."""
    reasons: dict[str, list[str]] = {}
    for says, model_type in found:
        reasons.setdefault(says, []).append(model_type)
    return list(reasons.items())


def _folded(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, 96, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
