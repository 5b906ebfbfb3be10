"""The layers of a description: which blocks each holds, how they join the residual stream, where each kind stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.blocks import Branch, Layer, Norm, Rope, Step
from assay.blocks.stacks import Scaled
from assay.errors import SourceError
from assay.records import replace
from assay.sources.describable import BLOCKS, CROSS, NORMS, Around, Role, read_block
from assay.sources.fields import Section
from assay.sources.rotations import within

ROPE = Rope(theta=10000.0)

Group = tuple[Any, ...]  # blocks that read the same and are added together


def _pre(group: Group, norm: Norm) -> Step:
    if len(group) == 1:
        return Step((Branch(group[0], norm),))
    return Step(tuple(map(Branch, group)), before=norm)


def _post(group: Group, norm: Norm) -> Step:
    return Step(tuple(map(Branch, group)), after=norm)


# how the blocks of a layer join the residual stream
RESIDUALS: dict[str, Callable[[list[Group], Norm], tuple[Step, ...]]] = {
    "pre": lambda groups, norm: tuple(_pre(group, norm) for group in groups),
    "pre-rest": lambda groups, norm: (
        Step(tuple(map(Branch, groups[0]))),
        *(_pre(group, norm) for group in groups[1:]),
    ),
    "post": lambda groups, norm: tuple(_post(group, norm) for group in groups),
    "inner-post": lambda groups, norm: tuple(
        Step(tuple(Branch(body, None, norm) for body in group)) for group in groups
    ),
    "sandwich": lambda groups, norm: tuple(Step(tuple(Branch(body, norm, norm) for body in group)) for group in groups),
    "parallel": lambda groups, norm: (Step(tuple(Branch(body) for group in groups for body in group), before=norm),),
    "parallel-norms": lambda groups, norm: (Step(tuple(Branch(body, norm) for group in groups for body in group)),),
    "onto-normed": lambda groups, norm: tuple(
        Step(tuple(map(Branch, group)), before=norm, onto_normed=True) for group in groups
    ),
}

IN_LAYER = ("norm", "positions", "residual", "residual_scale", "residual_keep", "gains", "blocks", *BLOCKS)


def read_norm(c: Section) -> Norm:
    """The norm that stands wherever nothing else is said: a word or a table."""
    made: Norm = c.block("norm", Norm, NORMS, NORMS["rmsnorm"])
    return made


def read_positions(c: Section, default: Rope | str | None = ROPE) -> Rope | str | None:
    """Rope, "alibi", "learned", "sinusoidal" or None: a word, or a table of the rotation."""
    words = {"rope": ROPE, "alibi": "alibi", "learned": "learned", "sinusoidal": "sinusoidal", "none": None}
    if "positions" not in c.data:
        c.used.add("positions")
        return default
    made: Rope | str | None = c.block("positions", Rope, words, ROPE)
    return made


def read_layers(
    c: Section, depth: int, width: int, role: Role, positions: Rope | str | None = ROPE
) -> tuple[Layer, ...]:
    """Every layer; those of one kind are one object. A learned bias of the distance is held by the first that has one.

    Raises SourceError.
    """
    tables = c.child("layer")
    for name in tables.data:
        tables.child(name).known(key for key in IN_LAYER if key != "cross" or role.source)
    order = _order(c, tables, depth)
    common = {key: c.data[key] for key in (*IN_LAYER, "context") if key in c.data}
    held: set[str] = set()
    merged = {kinds: c.overlaid(common, tables, kinds) for kinds in dict.fromkeys(order)}
    distant = [_is_distant(merged[kinds]) for kinds in order]
    first = distant.index(True) if True in distant else 0
    keys = [(kinds, not far or index == first) for index, (kinds, far) in enumerate(zip(order, distant, strict=True))]
    made = {
        (kinds, holds): _layer(merged[kinds], width, "+".join(kinds), held, role, positions, holds)
        for kinds, holds in dict.fromkeys(keys)
    }
    unused = [name for name in tables.data if not any(name in kinds for kinds in order)]
    for name in unused:
        raise SourceError(f"{c.where}: {tables.path(name)} is in none of first, pattern and last")
    for name in BLOCKS:
        for kind in tables.data:
            if name in tables.child(kind).data and name not in held:
                raise SourceError(f"{c.where}: {tables.child(kind).path(name)} is in no layer; blocks says which are")
        if name in c.data and name not in held:
            raise SourceError(f"{c.where}: {c.path(name)} is in no layer; blocks says which of them a layer has")
    return tuple(made[key] for key in keys)


def _is_distant(c: Section) -> bool:
    """True where a layer's attention has a learned bias of the distance."""
    table = c.data.get("attention")
    return isinstance(table, dict) and table.get("relative", "none") != "none"


def _order(c: Section, tables: Section, depth: int) -> list[tuple[str, ...]]:
    """The kinds of each layer: `first`, then `pattern` again and again, then `last`."""
    first, pattern, last = (_expand(c, tables, key, depth) for key in ("first", "pattern", "last"))
    rest = depth - len(first) - len(last)
    if rest < 0:
        ends = len(first) + len(last)
        raise SourceError(f"{c.where}: {c.path('layers')} is {depth}; it must be at least the {ends} of first and last")
    if not pattern:
        if rest and tables.data:
            c.fail("pattern", f"a list of {', '.join(tables.data)}")
        pattern = [()]
    middle = pattern * -(-rest // len(pattern))
    return [*first, *middle[:rest], *last]


def _expand(c: Section, tables: Section, key: str, depth: int) -> list[tuple[str, ...]]:
    """`["local * 3", "global + moe"]` as the kinds of so many layers."""
    made: list[tuple[str, ...]] = []
    for item in c.sequence(key, lambda v: isinstance(v, str), "names of layer tables") or []:
        text, star, times = item.partition("*")
        many = int(times) if times.strip().isdecimal() and len(times) < 12 else 0
        if star and not 1 <= many <= depth:
            raise SourceError(
                f"{c.where}: {c.path(key)} holds {item!r}; a count must be an integer of at least 1, at most layers"
            )
        kinds = tuple(part.strip() for part in text.split("+"))
        for kind in kinds:
            if kind not in tables.data:
                c.refuse(key, f"holds {kind!r}, no [layer.{kind}]", kind, tables.data)
        made += [kinds] * (many if star else 1)
    return made


def _layer(
    c: Section,
    width: int,
    kind: str,
    held: set[str],
    role: Role,
    default: Rope | str | None,
    holds: bool,
) -> Layer:
    """One layer from the common tables with those of its kinds laid over them."""
    positions = read_positions(c, default)
    if isinstance(positions, Rope):
        positions = within(positions, c.maybe("context"))
    if positions in ("learned", "sinusoidal"):
        if "layer." in c.path("positions"):
            c.fail("positions", f"rope, alibi, none or a table of the rotation: {positions} positions are all layers'")
        positions = None
    around = Around(width, read_norm(c), positions, role, holds)
    groups = _groups(c, kind, role)
    held.update(name for group in groups for name in group)
    gains = c.flag("gains", False)
    steps = RESIDUALS[c.word("residual", "pre", RESIDUALS)](
        [_group(c, names, around, gains) for names in groups], around.norm
    )
    by, keep = c.number("residual_scale"), c.number("residual_keep")
    return Layer(tuple(replace(step, scale=by, keep=keep) for step in steps), kind)


def _group(c: Section, names: tuple[str, ...], around: Around, gains: bool) -> Group:
    """The blocks of some names; a second one of the same letter gets another, so that their names differ."""
    made: list[Any] = []
    for name in names:
        body = read_block(_table(c, name), BLOCKS[name], around)
        if any(other.tag == body.tag for other in made):
            body = replace(body, tag="s") if isinstance(body, Scaled) else Scaled(body, tag="s")
        made.append(body)
    return tuple(map(_gained, made) if gains else made)


def _gained(body: Any) -> Any:
    """A block whose output has a learned gain for each channel."""
    from assay.blocks.towers import Gained  # few models have it

    return Gained(body)


def _table(c: Section, name: str) -> Section:
    """The table of a block; attention to a source is sized like the layer's own where its table leaves it open."""
    table = c.child(name)
    if name == "cross":
        own = c.data.get("attention", {})
        table.data = {**{key: own[key] for key in CROSS if key in own}, **table.data}
    return table


def _groups(c: Section, kind: str, role: Role) -> list[tuple[str, ...]]:
    """`blocks`, or the tables that there are, mixers of tokens first; what reads the same input is one group."""
    of = f"layer {kind}" if kind else "a layer"
    known = [name for name in BLOCKS if name != "cross" or role.source]
    listed = c.sequence("blocks", lambda v: isinstance(v, str) and set(_parts(v)) <= set(known), _some(known))
    if listed is None:
        own = [name for name in known if name in c.data or (name == "cross" and "attention" in c.data)]
        groups: list[tuple[str, ...]] = [(name,) for name in own]
    else:
        groups = [_parts(item) for item in listed]
    if not groups:
        raise SourceError(f"{c.where}: {of} has no blocks; describe {_some(known)}")
    for group in groups:
        if len(group) > 2:
            c.fail("blocks", "a list in which no more than two blocks are joined by +")
    alone: list[tuple[str, ...]] = [group for group in groups if len(group) == 1]
    for tag in dict.fromkeys(BLOCKS[group[0]].block.tag for group in alone):
        alike = [group[0] for group in alone if BLOCKS[group[0]].block.tag == tag]
        if len(alike) > 1:
            raise SourceError(f"{c.where}: {of} has {' and '.join(alike)}; list in blocks the one that it has")
    return groups


def _parts(text: str) -> tuple[str, ...]:
    """The blocks that + joins."""
    return tuple(part.strip() for part in text.split("+"))


def _some(names: list[str]) -> str:
    return f"some of {', '.join(names)}"
