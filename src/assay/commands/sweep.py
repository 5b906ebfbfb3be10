"""`assay sweep MODEL ...`: every figure over ranges of settings and sizes, as a table, a file or a picture."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any

from assay.commands.frame import Answer, Parser, as_json, as_text, version
from assay.commands.options import list_conventions, setting_options, split_size
from assay.errors import SettingError
from assay.report.progress import Progress
from assay.report.table import style_of_stdout
from assay.report.units import digits, plural, shorten
from assay.sources.shown import name as shown
from assay.studies.beside import groups
from assay.studies.ranges import values
from assay.studies.sweep import EXACT, SWEPT, WORDS, Plan, corners, gather, pieces, plan

LENGTHS = ("tokens", "past", "context", "source")  # along which a picture is drawn smoothly
SMOOTH = 241  # points of a range that says nothing of its steps, in a picture

SAYS = """\
Every figure of the report at every combination of models, settings and sizes, as a table, CSV, JSON,
Parquet or a plot. Each row is what `assay MODEL` reports at that setting. Needs NumPy.

Any setting may be a list or a range:
  1,8,64             these values; as a comma separates them, write 131,072 as 131072 or 128Ki
  1k:1M              from 1,000 to 1,000,000, doubling; both ends are included
  1k:1M:x10          the same in steps of ten times
  1k:1M:20           20 values, evenly spaced on a logarithmic scale
  0:100k:+10k        from 0 to 100,000 in steps of 10,000
So may sizes of a preset, a description or a config, and other sizes may be expressions of them:
  --set width=1024:8192 --set mlp.width=4*width --set attention.heads=width/128

Columns of memory (inference), training (a step) and published (formulas of papers) are counted only if
--columns names them.

MODEL is what `assay MODEL` takes; several are swept side by side."""

EXAMPLES = """\
examples:
  assay sweep llama-3-8b --context 1k:1M --batch 1,8
  assay sweep llama-3-8b --context 1k:1M --plot flops.png
  assay sweep llama-3-8b deepseek-v3 --tokens 1k:1M --figure attention-share --plot share.svg
  assay sweep llama-3-8b --tokens 1 --context 1k:1M --batch 1,8,64 --figure memory --plot cache.html
  assay sweep gpt-2 --set width=768:12288 --set mlp.width=4*width --columns width,parameters.total,flops.total
  assay sweep llama-3-8b --tokens 1 --context 1:1M:+1 --write contexts.parquet"""


def run(words: list[str]) -> Answer:
    """A table, or what was written."""
    parser = _parser()
    args = parser.parse_args(words)
    if args.convention == "list":
        return list_conventions(style_of_stdout(), args.json)
    if args.figure == "list":
        return as_json({"assay": version(), "figures": _figures()}) if args.json else as_text(_listed(_figures()))
    if not args.models:
        parser.error("MODEL is missing: a config.json, a preset, or org/name")
    _check_endings(args)
    asked = _plan(args, smooth=False)
    if args.columns == "list":
        names = list(corners(asked, True))
        return as_json({"assay": version(), "columns": names}) if args.json else as_text(names)
    printed = args.csv or args.json
    if printed and len(asked) > EXACT:
        raise SettingError(f"{digits(len(asked))} rows are too many to print; --write FILE.csv writes them to a file")
    made = [*_written(args, asked), *_drawn(args)]
    return as_text(made) if made and not printed else _printed(args, asked)


def _parser() -> Parser:
    from assay.studies.figures import FIGURES

    made = Parser("assay sweep", "assay sweep MODEL [MODEL ...] [options]", SAYS, EXAMPLES)
    add = made.add_argument
    add("models", metavar="MODEL", nargs="*", help="what to read")
    add("--set", dest="sizes", metavar="KEY=SIZES", action="append", default=[], help="sizes of a key; may be repeated")
    add("--class", dest="cls", metavar="NAME", help="the class to build, where a config fits several")
    add("--mtp", action="store_true", help="with the modules that predict further tokens")
    add("--allow", metavar="KEY", action="append", default=[], help="let an unknown config key pass; may be repeated")
    out = made.add_argument_group("output").add_argument
    out("--columns", metavar="NAMES", help="which columns, or groups of them such as flops; list shows all")
    out("--csv", action="store_true", help="rows as CSV")
    out("--json", action="store_true", help="rows as one object of JSON")
    out("--write", metavar="FILE", action="append", default=[], help="to a .csv, .json or .parquet; may be repeated")
    out("--plot", metavar="FILE", action="append", default=[], help="draw a .png, .svg or .html; may be repeated")
    out("--figure", metavar="NAME", help=f"what is drawn or shown: {', '.join(FIGURES)}; list explains all")
    out("--exact", action="store_true", help=f"exact integers beyond {EXACT:,} rows, too; else float64 there")
    setting_options(made)
    add("--generate", metavar="N", help="tokens made behind the prompt: a prefill and N cached steps")
    made.set_defaults(**dict.fromkeys(WORDS))
    return made


def _figures() -> dict[str, str]:
    """What each figure shows."""
    from assay.studies.figures import FIGURES

    return {figure.name: figure.says for figure in FIGURES.values()}


def _listed(says: dict[str, str]) -> list[str]:
    from assay.report.table import table

    return table(list(map(list, says.items())), "<<", indent="")


def _check_endings(args: Namespace) -> None:
    """Refuse a file of no known kind before anything is counted. Raises SettingError."""
    from assay.studies.figures import figure_of, sort_of
    from assay.studies.written import format_of

    for path in args.write:
        format_of(path)
    for path in args.plot:
        sort_of(path)
    if args.figure is not None:
        figure_of(args.figure)
    if args.csv and args.json:
        raise SettingError("--csv and --json are two formats of one output; give one, and --write for the other")


def _plan(args: Namespace, smooth: bool) -> Plan:
    """What is asked for; `smooth` where a picture is drawn. Raises SettingError."""
    given: dict[str, Any] = {name: getattr(args, name) for name in WORDS}
    for name, least in SWEPT.items():
        text = getattr(args, name)
        if text is not None:
            between = SMOOTH if smooth and name in LENGTHS else None
            given[name] = values(text, f"--{name.replace('_', '-')}", least, between)
    figure = _figure(args)
    if figure is not None and given["convention"] is None:
        given["convention"] = figure.convention
    sizes: dict[str, str] = {}
    for word in args.sizes:
        key, value = split_size(word)
        if key in sizes:
            raise SettingError(f"--set gives {shorten(key)} twice; a list is written {shorten(key)}=1,2")
        sizes[key] = value
    wanted = (args.columns or "").split(",")
    also = ("attention", "published", "memory") if args.columns == "list" else groups(wanted)
    if figure is not None and figure.split:
        also = (*also, "attention")
    reading = {"allow": args.allow, "cls": args.cls, "mtp": args.mtp}
    return plan(args.models, sizes, dict.fromkeys(also), **reading, **given)


def _figure(args: Namespace) -> Any:
    from assay.studies.figures import figure_of

    return None if args.figure is None else figure_of(args.figure)


def _columns(args: Namespace) -> list[str] | None:
    return None if args.columns is None else [name.strip() for name in args.columns.split(",")]


def _written(args: Namespace, asked: Plan) -> list[str]:
    """Write every file that is asked for, piece by piece; what was written."""
    from assay.studies.names import chosen
    from assay.studies.written import format_of, write_rows

    if not args.write:
        return []
    exact = args.exact or len(asked) <= EXACT
    sorts = corners(asked, exact)
    names = chosen(_columns(args), sorts)
    said = []
    for path in args.write:
        progress = Progress("writing")

        def rows(progress: Progress = progress) -> Iterator[tuple[int, Sequence[Any]]]:
            for piece in pieces(asked, exact):
                lacking = {name: None if sorts[name] == "s" else 0 for name in names if name not in piece.figures}
                figures = {**piece.figures, **lacking}
                yield piece.stop - piece.start, [figures[name] for name in names]
                progress(piece.stop, len(asked))

        try:
            write_rows(path, format_of(path), {name: sorts[name] for name in names}, rows())
        finally:
            progress.end()
        rounded = "" if exact else "; integers beyond 2^53 are rounded, --exact keeps them"
        said.append(f"{shown(path)}: {plural(len(asked), 'row')} of {plural(len(names), 'column')}{rounded}")
    return said


def _drawn(args: Namespace) -> list[str]:
    """Draw into every file that is asked for; what was drawn."""
    from assay.studies.figures import figure_of, save, usual
    from assay.studies.names import chosen

    if not args.plot:
        return []
    asked = _plan(args, smooth=True)
    name = args.figure or usual(asked.swept)
    progress = Progress("counting")
    try:
        swept = gather(asked, exact=args.exact or None, progress=progress)
    finally:
        progress.end()
    if args.columns is not None:
        chosen(_columns(args), swept.columns)  # a picture needs none of them, but a name that is none is a mistake
    for path in args.plot:
        save(swept, name, path)
    return [f"{shown(path)}: {figure_of(name).says}" for path in args.plot]


def _printed(args: Namespace, asked: Plan) -> str:
    """The rows on standard output."""
    from assay.studies.names import chosen
    from assay.studies.shown import moves, report

    wanted, figure = _columns(args), _figure(args)
    progress = Progress("counting")
    try:
        swept = gather(asked, _needed(wanted, figure), args.exact or None, progress)
    finally:
        progress.end()
    if args.csv or args.json:
        named = swept if wanted is None else swept.only(chosen(wanted, swept.columns))
        return str(named.to_csv() if args.csv else named.to_json())
    if wanted is not None:
        return as_text(report(swept, style_of_stdout(), chosen(wanted, swept.columns)))
    if figure is None or not figure.table:
        return as_text(report(swept, style_of_stdout()))
    named_columns = [name for group in figure.table for name in _present(group, swept.columns)]
    kept = [name for name in named_columns if swept.columns[name].any() or name == "parameters.total"]
    leading = [name for name in swept.swept if moves(swept, name)]
    return as_text(report(swept, style_of_stdout(), list(dict.fromkeys([*leading, *kept]))))


def _present(group: str, columns: Any) -> list[str]:
    return [name for name in columns if name == group or name.startswith(f"{group}.")]


def _needed(wanted: list[str] | None, figure: Any) -> list[str] | None:
    """Columns to keep: those asked for, and what stands above a table."""
    if wanted is None:
        return None
    return [*wanted, "model.name", "setting", "set", "weights.format"] if figure is None else None
