"""What the letters of a formula are and where their values are from: a key, an option, or other letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from assay.readings.letters import SETTING, Letter
from assay.readings.words import is_expression
from assay.report.algebra import TEXT, Script, rank, split, write
from assay.report.table import INDENT, NARROW, WIDTH, table
from assay.report.units import digits, shorten
from assay.spec import Block, Model

KEYS = 34  # characters for keys, at most, where there is little room
LONG = 130  # characters of an expression of keys that are more than a person reads
KINDS = 2  # of layers that a letter names
NO_KEY = "no key of its own"  # the same in all models of its type
DEFAULT = "default"  # the file lacks the key: the value is that of its class
KEY = re.compile(r"[A-Za-z_][\w.]*")

Legend = Sequence[Letter]


def origin(letter: Letter, model: Model, legend: Legend, script: Script = TEXT) -> str:
    """Where a letter's value came from: a config key or several, an option, or other letters."""
    if letter.definition is not None:
        return f"= {write(letter.definition, script)}"
    axis, _ = split(letter.symbol.name)
    if letter.origin and not is_expression(letter.origin):
        return letter.origin
    if axis in SETTING and not letter.where and not letter.origin:
        return SETTING[axis]
    if _is_depth(letter):
        return letter.origin
    found = derived(axis, letter, model, legend, script)
    if not found and len(letter.origin) > LONG:
        return f"from {', '.join(dict.fromkeys(KEY.findall(letter.origin)))}"
    found = found or script.keys(letter.origin)
    return f"= {found}" if found else NO_KEY


def _is_depth(letter: Letter) -> bool:
    """True for how many layers there are: of a kind among others, `of the 61 of KEY`."""
    return letter.says == "layers" and split(letter.symbol.name)[0] == "L"


def default(letter: Letter, model: Model, legend: Legend) -> str:
    """Which keys behind a letter the file lacks, as a remark: nothing where it has all that are shown."""
    shown = origin(letter, model, legend)
    named = [
        key for key in dict.fromkeys(KEY.findall(shown)) if key in letter.origin and key not in ("of", "the", "from")
    ]
    lacking = [key for key in named if key in model.unsaid]
    if not lacking:
        return ""
    return f"({DEFAULT})" if lacking == named else f"({DEFAULT}: {', '.join(lacking)})"


def derived(axis: str, letter: Letter, model: Model, legend: Legend, script: Script) -> str:
    """A size that no key gives, in terms of those that keys give: by letter, or by key where that is no letter here."""
    blocks = [segment.block for segment in model.segments if segment.name in letter.where]
    block = next((one for one in blocks if one.sizes.get(axis) == letter.value), None)
    if block is None:
        return ""

    def size(name: str) -> int:
        found: int = block.sizes.get(name, 0)
        return found

    def joined(left: str, sign: str, right: str) -> str:
        sides = [_called(of, block, letter, legend, script) for of in (left, right)]
        return sign.join(sides) if all(sides) else ""

    if axis == "r" and size("g") * letter.value == size("h") > 0:
        return joined("h", "/", "g")
    if axis == "k" and size("o") and size("o") + size("p") == letter.value:
        return joined("o", " + ", "p")
    if axis in ("k", "v") and size("h") * letter.value == size("d") > 0:
        return joined("d", "/", "h")
    if axis == "f" and letter.value == 4 * size("d"):
        width = _called("d", block, letter, legend, script)
        return f"4{width}" if _letter("d", block, letter, legend) else script.keys("4·") + width if width else ""
    return ""


def _letter(axis: str, block: Block, beside: Letter, legend: Legend) -> Letter | None:
    """The letter of a size of a block, where a formula has one: in the kinds of layers of the letter beside it."""
    for one in legend:
        same = split(one.symbol.name)[0] == axis and one.value == block.sizes.get(axis)
        if same and one.origin == block.origins.get(axis, "") and {*beside.where} & {*one.where}:
            return one
    return None


def _called(axis: str, block: Block, beside: Letter, legend: Legend, script: Script) -> str:
    """A size of a block by its letter, else by its key: nothing where it has neither."""
    letter = _letter(axis, block, beside, legend)
    if letter is not None:
        return script.letter(letter.symbol)
    key = block.origins.get(axis, "")
    return f"({script.keys(key)})" if is_expression(key) else script.keys(key)


def place(letter: Letter) -> str:
    """The first kinds of layers a letter is of, where another one goes by the same name."""
    kinds = list(dict.fromkeys(letter.where)) if split(letter.symbol.name)[1] else []
    return ", ".join(kinds[:KINDS]) + (" …" if len(kinds) > KINDS else "")


def legend_rows(legend: Legend, model: Model, script: Script) -> list[tuple[str, str, str, str, str]]:
    """Letter, value, what it is, where its value is from, and whether by default."""
    rows = []
    for letter in sorted(legend, key=lambda one: rank(one.symbol)):
        says = ", ".join(filter(None, (letter.says, place(letter))))
        known = origin(letter, model, legend, script), default(letter, model, legend)
        rows.append((script.letter(letter.symbol), digits(letter.value), says, *known))
    return rows


def legend_lines(legend: Legend, model: Model, wide: int = WIDTH) -> list[str]:
    """Letters with what they are, shortened where that leaves no room for the keys."""
    rows = [[*row[:3], " ".join(filter(None, row[3:]))] for row in legend_rows(legend, model, TEXT)]
    first, second, _, last = (max(map(len, column)) for column in zip(*rows, strict=True))
    room = max(NARROW, wide - len(INDENT) - first - second - min(last, KEYS) - 6)
    return table([[letter, value, shorten(says, room), key] for letter, value, says, key in rows], "<><<", wide=wide)


def unlike(letters: Iterable[Letter]) -> list[Letter]:
    """Each letter once."""
    return list({letter.symbol.name: letter for letter in letters}.values())
