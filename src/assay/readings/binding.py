"""What readings share: a block as a model, a setting's axes bound in a block, what makes two weights one tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.errors import SettingError, no_model
from assay.kinds import Extent
from assay.readings.plans import Plan, plan_of
from assay.size import Size, ceil_div, lift, only_at_zero
from assay.spec import Block, Model, Place, Segment, Weight


def arguments_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The arguments that a function of a model takes by name."""
    code = function.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


def parted(asked: Mapping[str, Any], function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a function of a model takes of all that is asked, and the sizes of axes that the rest are."""
    known = arguments_of(function)
    taken = {name: value for name, value in asked.items() if name in known}
    return taken, {name: value for name, value in asked.items() if name not in known}


def as_model(block: Model | Block, sizes: Mapping[str, object], asked: Callable[..., Any] | None = None) -> Model:
    """A block alone, as a model of one segment, with `sizes` for axes that it leaves open; a model as it is.

    Raises SettingError for a size that is none of its own, with the arguments of the function that was `asked`, and
    SizeError.
    """
    if isinstance(block, Model):
        if sizes:
            known = () if asked is None else arguments_of(asked)
            can = f"; what can: {', '.join(known)}" if known else ""
            raise SettingError(f"a model has no open sizes; {', '.join(sizes)} cannot be set{can}")
        return block
    if not isinstance(block, Block):
        raise no_model(block, "a model or a block")
    lifted = {axis: lift(size, axis) for axis, size in sizes.items()}
    axes = block.axes()
    for axis in lifted:
        if axis not in axes:
            raise SettingError(f"{axis} is no size of {block.name}, whose axes are {', '.join(sorted(axes))}")
    return Model(block.name, (Segment(block.name, block.resize(**lifted)),))


def placed(segment: Segment, sizes: Mapping[str, Size]) -> dict[str, Size]:
    """The setting's axes as this segment sees them: an encoder's n is the source, a tower's batch the images."""
    if not segment.axes:
        return dict(sizes)
    return {**sizes, **{axis: _taken(to, sizes) for axis, to in segment.axes.items()}}


def _taken(to: Place, sizes: Mapping[str, Size]) -> Size:
    """What an axis of a segment is: an axis of the setting, a multiple of it or of a part, 0 where there is none; a
    size; or several of these together. `first` is one in a pass that has nothing before it, `later` in others.
    """
    if isinstance(to, str):
        one = {"first": 1, "later": 0}.get(to)
        return sizes.get(to, 0) if one is None else only_at_zero(one, sizes["past"], 1 - one)
    if not isinstance(to, tuple):
        return to
    if not isinstance(to[0], str):
        return sum((_taken(each, sizes) for each in to), start=0)
    whole = _taken(to[0], sizes)
    return (whole if len(to) == 2 else ceil_div(whole, to[2])) * to[1]


def bind(block: Block, sizes: Mapping[str, Size], plan: Plan | None = None) -> Extent:
    """The extent of a block in a setting, with the axes that its ops make. Raises SizeError for an open axis."""
    extent = Extent({**sizes, **block.sizes})
    for op, bound in (plan_of(block.ops) if plan is None else plan).binding:
        bound(op, extent)
    return extent


def identity(name: str, where: Weight) -> str:
    """What makes two weights one tensor: their path, and their place in it where several lie behind each other."""
    return f"{where.path}:{name}" if where.layout and "+" in where.layout else where.path
